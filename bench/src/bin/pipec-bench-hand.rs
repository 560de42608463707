//! `hand`: the stateful firewall of the workloads, written by hand in Rust. It gives the same verdicts as what the compiler
//! makes of `firewall-N`, with the same connection tracker, ports and worker; it keeps no counters of rules. What is compiled
//! should come close to it.

use std::process::ExitCode;

use pipec_abi::external::Extern;
use pipec_abi::{Burst, CtPoint, Ctx, DropReason, Emit, Env, Program, Verdict, ct, header};
use pipec_runtime::{Engine, host};

/// The dense numbers of ports 1 and 2.
const LAN: u16 = 0;
const WAN: u16 = 1;
/// Where packets that are tracked wait until all of the burst have been parsed.
const TRACKED: u8 = 0;

const TRACK: CtPoint = CtPoint { flags: 0, mark: 0, mark_mask: 0, reserved: 0, label: [0; 2], label_mask: [0; 2] };
const COMMIT: CtPoint = CtPoint { flags: CtPoint::COMMIT, ..TRACK };

struct Firewall;

impl Program for Firewall {
    const META: &'static str = r#"{"name":"hand","ports":[{"name":"1","number":1},{"name":"2","number":2}],
        "tables":[],"counters":[],"vars":0,"points":1,"vlan_limit":1}"#;
    const TABLES: &'static [&'static [u8]] = &[];
    const EXTERNS: &'static [Extern] = &[];

    fn run<E: Env>(env: &mut E, ctx: &mut Ctx, burst: &mut Burst, entry: u16) {
        let mut tracked = 0u32;
        for i in 0..burst.len() {
            // Packets that come here from a point of their own have been parsed.
            if entry != 0 || classify(env, ctx, burst, i) {
                tracked |= 1 << i;
            }
        }
        if tracked != 0 && entry == 0 {
            env.ct_prepare(ctx, burst, tracked, 0);
        }
        while tracked != 0 {
            let i = tracked.trailing_zeros() as usize;
            tracked &= tracked - 1;
            let verdict = judge(env, ctx, burst, i);
            burst.set_verdict(i, verdict);
        }
    }
}

/// Whether the packet is to be tracked; of others all is known.
#[inline(always)]
fn classify<E: Env>(env: &mut E, ctx: &mut Ctx, burst: &mut Burst, i: usize) -> bool {
    if burst.frame_len(i) < 14 {
        burst.set_verdict(i, Verdict::drop(DropReason::Malformed));
        return false;
    }
    match header::l2(burst.bytes(i), 1).0 as u16 {
        0x0800 => {
            burst.suspend(i, TRACKED);
            true
        }
        0x0806 => {
            env.normal(ctx, burst, i, burst.in_port(i), Emit::Share);
            false
        }
        _ => {
            burst.set_verdict(i, Verdict::drop(DropReason::Policy));
            false
        }
    }
}

/// What becomes of a tracked packet: who is inside may begin, and answers come back.
#[inline(always)]
fn judge<E: Env>(env: &mut E, ctx: &mut Ctx, burst: &mut Burst, i: usize) -> Verdict {
    let state = env.ct(ctx, burst, i, &TRACK, 0);
    let (new, established) = (state & ct::state::NEW != 0, state & ct::state::EST != 0);
    match burst.in_port(i) {
        LAN if new => {
            env.ct(ctx, burst, i, &COMMIT, 0);
            Verdict::send(WAN)
        }
        LAN if established => Verdict::send(WAN),
        WAN if new => Verdict::drop(DropReason::Policy),
        WAN if established => Verdict::send(LAN),
        _ => Verdict::drop(DropReason::NoMatch),
    }
}

fn main() -> ExitCode {
    match Engine::of::<Firewall>() {
        Ok(engine) => host::main(&engine),
        Err(error) => {
            eprintln!("error: the firewall's description cannot be read: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use pipec_bench::compiled;
    use pipec_bench::workload::{Kind, Workload};
    use pipec_runtime::offline::Offline;

    use super::*;

    #[test]
    fn verdicts_are_those_of_the_compiled_firewall() {
        for name in ["firewall-64", "fwtcp-64", "random-50"] {
            let content = name.parse::<Workload>().unwrap().make();
            let firewall: Workload = Kind::Firewall { protocol: pipec_bench::frames::Protocol::Udp, streams: 1 }.into();
            let (compiled, ..) = compiled::compile("firewall.flows", &firewall.make().rules).unwrap();
            let mut engines = [Offline::new(&compiled), Offline::new(&Engine::of::<Firewall>().unwrap())];
            let mut frames: Vec<(u16, Vec<u8>)> = Vec::new();
            for (port, received) in content.frames.iter().enumerate() {
                frames.extend(received.iter().take(200).map(|frame| (port as u16, frame.to_vec())));
            }
            // Strangers from outside, what is too short, ARP, and another protocol.
            frames.extend(frames.clone().into_iter().map(|(port, frame)| (1 - port, frame)));
            frames.push((0, vec![0; 9]));
            for ethertype in [0x0806u16, 0x86dd] {
                let mut frame = frames[0].1.clone();
                frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
                frames.push((1, frame));
            }
            let [ours, by_hand] = engines.each_mut().map(|engine| engine.send(1_000_000_000, &frames));
            assert!(ours.iter().any(|outcome| !outcome.outputs.is_empty()), "{name}");
            assert_eq!(ours, by_hand, "{name}");
        }
    }
}
