//! A program that shows every header and field that it finds, on machine code (which parses by the abi) and on the reference
//! (which has a parser of its own).

use std::cell::LazyCell;

use pipec_compiler::field::{Field, Header};
use pipec_compiler::hir::{
    Action, Cond, Match, Options, Place, Port, PortId, Program, Read, Rule, Space, Table, TableId, Value, View,
};
use pipec_compiler::source::Span;
use pipec_runtime::Engine;

use super::input::Input;
use crate::engines::{assert_same, eval, jit};

/// Bits that are shown at a time, in `eth.dst`.
const SHOWN: u8 = 48;

thread_local! {
    static ENGINES: LazyCell<Vec<(Program, Engine, Engine)>> = LazyCell::new(|| {
        let engines = |program: Program| {
            let (reference, engine) = (eval(&program), jit(&program));
            (program, reference, engine)
        };
        [1, 2].map(everything).map(engines).into()
    });
}

/// Frames through a program that shows all it sees of them.
pub fn headers(data: &[u8]) {
    let arrivals = Input(data).arrivals(1);
    ENGINES.with(|engines| {
        for (program, reference, engine) in engines.iter() {
            assert_same(program, reference, engine, &arrivals);
        }
    });
}

fn rule(cond: Cond, actions: Vec<Action>) -> Rule {
    Rule { priority: 0, cond, actions, text: String::new(), span: Span::default() }
}

fn set(place: Place, value: Value) -> Action {
    Action::Set { place, value }
}

/// Shows a value of at most 48 bits: a copy of the packet leaves with it in `eth.dst`.
fn show(value: Value, width: u8) -> Action {
    let place = Place { offset: (SHOWN - width).into(), width, ..Place::field(Field::EthDst) };
    Action::Clone(vec![set(Place::field(Field::EthDst), Value::Const(0)), set(place, value), Action::Output(PortId(1))])
}

/// A program that shows every field as actions see it, then which headers are there, then which bits of fields are set as
/// tables see them.
fn everything(vlan_limit: u8) -> Program {
    let mut actions = vec![];
    for &field in Field::ALL.iter().filter(|field| **field != Field::InPort) {
        for offset in (0..field.width()).step_by(SHOWN.into()) {
            let place =
                Place { offset: offset.into(), width: SHOWN.min(field.width() - offset), ..Place::field(field) };
            actions.push(show(Value::Read(place), place.width));
        }
    }
    let mut tables = vec![];
    let mut bit = 0;
    let mut ask = |cond: Cond, actions: &mut Vec<Action>| {
        let place = Place { space: Space::Meta, offset: bit, width: 1 };
        bit += 1;
        let name = format!("t{}", tables.len() + 1);
        tables.push(Table {
            name,
            rules: vec![rule(cond, vec![set(place, Value::Const(1))])],
            span: Span::default(),
            keyed: None,
        });
        actions.push(Action::Call { table: TableId(tables.len() as u16), in_port: None });
    };
    for header in [Header::Vlan, Header::Arp, Header::Rarp, Header::Ipv4, Header::Ipv6, Header::IpAny, Header::Tcp] {
        ask(Cond::Has(header), &mut actions);
    }
    for header in [Header::Udp, Header::Sctp, Header::Icmp, Header::Icmpv6] {
        ask(Cond::Has(header), &mut actions);
    }
    for field in [Field::EthType, Field::IpFrag, Field::TcpDst, Field::TcpFlags, Field::UdpSrc, Field::IcmpType] {
        let header = field.header().unwrap_or(Header::Eth);
        for bit in 0..field.width() {
            let read = Read { place: Place::field(field), view: View::Table };
            let is_set = Cond::Compare(read, Match::Masked { value: 1 << bit, mask: 1 << bit });
            ask(Cond::All(vec![Cond::Has(header), is_set]), &mut actions);
        }
    }
    let words = bit.div_ceil(64);
    for offset in (0..words * 64).step_by(32) {
        actions.push(show(Value::Read(Place { space: Space::Meta, offset, width: 32 }), 32));
    }
    let first = Table { name: "t0".into(), rules: vec![rule(Cond::True, actions)], span: Span::default(), keyed: None };
    tables.insert(0, first);
    Program {
        name: "everything".into(),
        ports: (1..3).map(|number| Port { name: format!("p{number}"), number }).collect(),
        options: Options { vlan_limit },
        metadata_words: words,
        tables,
        ..Program::default()
    }
}
