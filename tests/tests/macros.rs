//! Programs as parts of a crate: `#[pipeline]`, `pipeline!`, and actions that are written in Rust.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use pipec_compiler::source::Sources;
use pipec_runtime::Engine;
use pipec_runtime::abi::external::{Extern, Flow, Packet};
use pipec_runtime::abi::{DropReason, Program};
use pipec_runtime::inline::pipeline;
use pipec_runtime::offline::{Offline, Outcome};
use pipec_tests::engines;

/// The program below, for the engines that compile at run time.
const SOURCE: &str = r#"
pipeline stamp {
    port _a, b;
    extern action stamp(at: u8, value: u32, from: ipv4, mac: mac);
    extern action limit(most: u16);
    table t {
        udp  => stamp(6, 0x01020304, ipv4.src, eth.dst), limit(70), output(b);
        ipv4 => output(b), stamp(6, 7, 1.2.3.4, 02:00:00:00:00:09), output(b);
    }
}
"#;

mod in_rust {
    use super::*;

    pipeline! {
        /// Packets with marks of the crate's own.
        pub pipeline stamp {
            port _a, b;
            extern action stamp(at: u8, value: u32, from: ipv4, mac: mac);
            extern action limit(most: u16);
            table t {
                udp  => stamp(6, 0x01020304, ipv4.src, eth.dst), limit(70), output(b);
                ipv4 => output(b), stamp(6, 7, 1.2.3.4, 02:00:00:00:00:09), output(b);
            }
        }
    }

    fn stamp(packet: &mut Packet<'_>, at: u8, value: u32, from: Ipv4Addr, mac: [u8; 6]) {
        let at = usize::from(at);
        let sum = value + u32::from(from) + u32::from(mac[5]);
        packet.bytes_mut()[at..at + 4].copy_from_slice(&sum.to_be_bytes());
    }

    fn limit(packet: &mut Packet<'_>, most: u16) -> Flow {
        if packet.bytes().len() > usize::from(most) { Flow::Drop } else { Flow::Continue }
    }
}

fn frame(proto: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    frame[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    frame[22..24].copy_from_slice(&[64, proto]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame
}

fn all_engines() -> Vec<Engine> {
    let mut sources = Sources::default();
    let file = sources.add("stamp.pipe", SOURCE);
    let (program, diagnostics) = pipec_compiler::front(&mut sources, file, &[]);
    let program = program.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let externs = in_rust::Stamp::EXTERNS;
    vec![
        Engine::of::<in_rust::Stamp>().unwrap(),
        engines::eval(&program).with_externs(externs),
        engines::jit(&program).with_externs(externs),
    ]
}

#[test]
fn actions_in_rust_read_arguments_and_write_the_packet() {
    for engine in all_engines() {
        let mut offline = Offline::new(&engine);
        let outcomes = offline.send(0, &[(0, frame(17, 60)), (0, frame(6, 60))]);
        let sum = 0x0102_0304 + 0x0a00_0001 + 1;
        let mut stamped = frame(17, 60);
        stamped[6..10].copy_from_slice(&u32::to_be_bytes(sum));
        assert_eq!(outcomes[0], Outcome { outputs: vec![(1, stamped)], ..Outcome::default() });
        let mut second = frame(6, 60);
        second[6..10].copy_from_slice(&u32::to_be_bytes(7 + 0x0102_0304 + 9));
        let sent: Vec<_> = outcomes[1].outputs.iter().map(|(_, frame)| frame.clone()).collect();
        assert_eq!(sent, [frame(6, 60), second], "what was sent before is as it was");
    }
}

#[test]
fn actions_in_rust_may_end_the_packet() {
    for engine in all_engines() {
        let mut offline = Offline::new(&engine);
        let outcomes = offline.send(0, &[(0, frame(17, 100))]);
        assert!(outcomes[0].outputs.is_empty());
        assert_eq!(outcomes[0].drop, Some(DropReason::Policy));
    }
}

#[test]
fn a_program_whose_actions_are_missing_drops() {
    let engine = all_engines().remove(2).with_externs(&[]);
    let outcomes = Offline::new(&engine).send(0, &[(0, frame(17, 60))]);
    assert_eq!(outcomes[0].drop, Some(DropReason::Policy));
}

#[test]
fn a_packet_may_be_another_after_an_action_in_rust_of_a_called_table() {
    const RETYPE: &str = "pipeline retype {
        port _a, b, c;
        extern action retype();
        table t { ipv4 => call change, goto behind; else => drop; }
        table change { else => retype(); }
        table behind { arp => output(c); else => output(b); }
    }";
    let mut sources = Sources::default();
    let file = sources.add("retype.pipe", RETYPE);
    let (program, diagnostics) = pipec_compiler::front(&mut sources, file, &[]);
    let program = program.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let externs: &[Extern] = &[|packet, _| {
        packet.bytes_mut()[12..14].copy_from_slice(&[8, 6]);
        Flow::Continue
    }];
    for engine in [engines::eval(&program), engines::jit(&program)] {
        let outcomes = Offline::new(&engine.with_externs(externs)).send(0, &[(0, frame(17, 60))]);
        let ports: Vec<u16> = outcomes[0].outputs.iter().map(|(port, _)| *port).collect();
        assert_eq!(ports, [2]);
    }
}
