//! A gateway that balances the load of services: the service by address and port, the back end by the client's address. The
//! same in three forms, which should cost the same: one table, two with a register between them, or one a service. (After the
//! pipelines of `pipelines/gwlb_*.pipe`, which are TIPSY's.)

use super::{Content, SEED, frame_count};
use crate::frames::{self, put};
use crate::random::Random;

/// Back ends of a service, by the first bits of the client's address.
const BACKENDS: u32 = 8;

/// How the gateway is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In one table.
    Universal,
    /// In two: the first puts the service's number into a register.
    Metadata,
    /// In one for services, and one for each service's back ends.
    Goto,
}

impl Form {
    /// The form of this name.
    pub fn named(name: &str) -> Option<Form> {
        [Form::Universal, Form::Metadata, Form::Goto].into_iter().find(|form| form.name() == name)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Form::Universal => "universal",
            Form::Metadata => "metadata",
            Form::Goto => "goto",
        }
    }
}

/// So many services of eight back ends.
pub fn make(services: u32, form: Form) -> Content {
    let rules = (0..services).map(|service| rules(service, form)).collect::<String>() + super::LAST;
    let mut random = Random::new(SEED);
    let frames = (0..frame_count(services * BACKENDS)).map(|_| {
        let mut frame = frames::plain();
        let service = random.below(u64::from(services)) as u32;
        put(&mut frame, 26, 4, random.below(1 << 32));
        put(&mut frame, 30, 4, u64::from(address(service)));
        put(&mut frame, 36, 2, u64::from(port(service)));
        frames::seal(&mut frame);
        frame
    });
    Content { rules, frames: vec![frames.collect()] }
}

fn address(service: u32) -> u32 {
    0xc612_0000 + service // of 198.18.0.0/15, which is for benchmarks
}

fn port(service: u32) -> u16 {
    1000 + (service % 100) as u16
}

fn rules(service: u32, form: Form) -> String {
    let matched = format!("udp,nw_dst={},tp_dst={}", std::net::Ipv4Addr::from(address(service)), port(service));
    let number = service + 1; // of its table, or in the register
    let mut lines = match form {
        Form::Universal => String::new(),
        Form::Metadata => {
            format!("table=0,priority=10,{matched} actions=load:{number:#x}->NXM_NX_REG0[],goto_table:1\n")
        }
        Form::Goto => format!("table=0,priority=10,{matched} actions=goto_table:{number}\n"),
    };
    for backend in 0..BACKENDS {
        let client = format!("nw_src={}/3", std::net::Ipv4Addr::from(backend << 29));
        let mac = format!("02:00:{:02x}:{:02x}:{:02x}:{backend:02x}", service >> 16, service >> 8 & 255, service & 255);
        let actions = format!("actions=dec_ttl,set_field:{mac}->eth_dst,output:2");
        lines += &match form {
            Form::Universal => format!("table=0,priority=10,{matched},{client} {actions}\n"),
            Form::Metadata => format!("table=1,priority=10,reg0={number:#x},ip,{client} {actions}\n"),
            Form::Goto => format!("table={number},priority=10,ip,{client} {actions}\n"),
        };
    }
    lines
}
