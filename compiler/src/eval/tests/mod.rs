//! Tests of `eval`: an `Env` that records, and programs and frames to run on it.

mod actions;
mod choices;
mod parsing;
mod tables;
mod writes;

use std::collections::VecDeque;
use std::sync::Arc;

use pipec_abi::{Burst, CtPoint, CtView, Ctx, DropReason, Emit, Env, Verdict};

use super::{Eval, Event};
use crate::field::Field;
use crate::hir::{Action, Cond, Match, Place, Port, PortId, Program, Read, Rule, Table, TableId, Value, View};
use crate::source::Span;

/// What the environment was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Call {
    Controller(u8, Vec<u8>),
    Meter(u16),
    Emit(u16, Vec<u8>),
    Flood(u16, Vec<u8>),
    Normal(u16, Vec<u8>),
    Ct(CtPoint, u16, Vec<u8>),
    Fail(DropReason),
}

/// An `Env` that remembers what it was asked for, and answers `ct` from a script.
#[derive(Default)]
struct Recorder {
    calls: Vec<Call>,
    /// Views that the next calls of `ct` give; the zone is put in. Without one, new and tracked.
    script: VecDeque<CtView>,
    saved: Vec<Vec<u8>>,
    /// Bytes that are free before the frame.
    headroom: usize,
}

impl Env for Recorder {
    fn ct_prepare(&mut self, _: &mut Ctx, _: &Burst, _: u32, _: u16) {
        panic!("the reference never prepares");
    }
    fn ct(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, point: &CtPoint, zone: u16) -> u32 {
        let new = CtView { state: 0x21, ..CtView::CLEAR };
        *ctx.ct(i) = CtView { zone: zone.into(), ..self.script.pop_front().unwrap_or(new) };
        self.calls.push(Call::Ct(*point, zone, burst.bytes(i).to_vec()));
        ctx.ct(i).state
    }
    fn emit(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, port: u16, how: Emit) {
        assert_eq!(how, Emit::Copy);
        burst.set_verdict(i, Verdict::LISTED);
        self.calls.push(Call::Emit(port, burst.bytes(i).to_vec()));
    }
    fn flood(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, in_port: u16, how: Emit) {
        assert_eq!(how, Emit::Copy);
        burst.set_verdict(i, Verdict::LISTED);
        self.calls.push(Call::Flood(in_port, burst.bytes(i).to_vec()));
    }
    fn normal(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, in_port: u16, how: Emit) {
        assert_eq!(how, Emit::Copy);
        burst.set_verdict(i, Verdict::LISTED);
        self.calls.push(Call::Normal(in_port, burst.bytes(i).to_vec()));
    }
    fn save(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize) {
        self.saved.push(burst.bytes(i).to_vec());
    }
    fn restore(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize) {
        let bytes = self.saved.pop().expect("restore follows save");
        burst.bytes_mut(i).copy_from_slice(&bytes);
    }
    fn emit_part(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, port: u16, max_len: u16) {
        burst.set_verdict(i, Verdict::LISTED);
        let bytes = burst.bytes(i);
        self.calls.push(Call::Emit(port, bytes[..bytes.len().min(max_len.into())].to_vec()));
    }
    fn controller(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, reason: u8, max_len: u16) {
        burst.set_verdict(i, Verdict::LISTED);
        let bytes = burst.bytes(i);
        self.calls.push(Call::Controller(reason, bytes[..bytes.len().min(max_len.into())].to_vec()));
    }
    fn meter(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, meter: u16) -> bool {
        self.calls.push(Call::Meter(meter));
        meter != 1
    }
    fn live(&mut self, _: &mut Ctx, port: u16) -> bool {
        port != 1
    }
    fn grow(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, at: usize, n: usize) -> bool {
        if n > self.headroom {
            return false;
        }
        self.headroom -= n;
        let (data, len) = (burst.bytes_mut(i).as_mut_ptr(), burst.frame_len(i));
        // SAFETY: `run_scripted` has so many bytes before the frame.
        unsafe { burst.replace(i, data.wrapping_sub(n), len + n as u32) };
        let data = burst.bytes_mut(i);
        data.copy_within(n..n + at, 0);
        data[at..at + n].fill(0);
        true
    }
    fn fail(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, reason: DropReason) {
        self.calls.clear();
        self.calls.push(Call::Fail(reason));
        burst.set_verdict(i, Verdict::drop(reason));
    }
}

/// Bytes before a frame that headers can be put into.
const HEADROOM: usize = 64;

/// What came of one packet.
struct Outcome {
    calls: Vec<Call>,
    verdict: Verdict,
    events: Vec<Event>,
    counters: Vec<u64>,
    bytes: Vec<u8>,
}

impl Outcome {
    /// Ports that the packet was sent to.
    fn ports(&self) -> Vec<u16> {
        let port = |call: &Call| if let Call::Emit(port, _) = call { Some(*port) } else { None };
        self.calls.iter().filter_map(port).collect()
    }

    /// Frames that were sent.
    fn frames(&self) -> Vec<Vec<u8>> {
        let frame = |call: &Call| if let Call::Emit(_, frame) = call { Some(frame.clone()) } else { None };
        self.calls.iter().filter_map(frame).collect()
    }
}

/// Runs one frame, from port 0.
fn run(program: &Program, frame: &[u8]) -> Outcome {
    run_scripted(program, frame, &[])
}

/// Runs one frame, from port 0, with what `ct` is to answer.
fn run_scripted(program: &Program, frame: &[u8], script: &[CtView]) -> Outcome {
    let eval = Eval::new(Arc::new(program.clone()));
    let script = script.iter().copied().collect();
    let mut env = Recorder { script, headroom: HEADROOM, ..Recorder::default() };
    let mut ctx = eval.ctx();
    let mut bytes = [&[0; HEADROOM], frame].concat();
    let data = bytes[..].as_mut_ptr().wrapping_add(HEADROOM);
    let mut burst = Burst::new();
    burst.begin(0);
    // SAFETY: `bytes` outlives the run and is touched by nobody else meanwhile.
    unsafe { burst.push(std::ptr::null_mut(), data, frame.len() as u32, 0) };
    let mut events = Vec::new();
    eval.run_traced(&mut env, &mut ctx, &mut burst, &mut |event| events.push(event));
    assert!(env.saved.is_empty(), "every save is put back");
    let counters = ctx.counters().iter().map(|c| c.packets).collect();
    let (verdict, bytes) = (burst.verdict(0), burst.bytes(0).to_vec());
    Outcome { calls: env.calls, verdict, events, counters, bytes }
}

/// A program of tables of rules, on three ports, with three words of metadata.
fn program(tables: Vec<Vec<(Cond, Vec<Action>)>>) -> Program {
    let rule = |(cond, actions)| Rule { priority: 0, cond, actions, text: String::new(), span: Span::default() };
    let table = |(i, rules): (usize, Vec<_>)| Table {
        name: i.to_string(),
        rules: rules.into_iter().map(rule).collect(),
        span: Span::default(),
        keyed: None,
    };
    Program {
        name: "test".into(),
        ports: (1..=3).map(|number| Port { name: number.to_string(), number }).collect(),
        metadata_words: 3,
        tables: tables.into_iter().enumerate().map(table).collect(),
        ..Program::default()
    }
}

/// A program with one rule, which every packet takes.
fn always(actions: Vec<Action>) -> Program {
    program(vec![vec![(Cond::True, actions)]])
}

fn output(port: u16) -> Action {
    Action::Output(PortId(port))
}

fn goto(table: u16) -> Action {
    Action::Goto(TableId(table))
}

fn call(table: u16) -> Action {
    Action::Call { table: TableId(table), in_port: None }
}

fn set(field: Field, value: u128) -> Action {
    Action::Set { place: Place::field(field), value: Value::Const(value) }
}

/// `field == value`, as tables see it.
fn is(field: Field, value: u128) -> Cond {
    sees(field, View::Table, value)
}

/// `field == value`, in some view.
fn sees(field: Field, view: View, value: u128) -> Cond {
    Cond::Compare(Read { place: Place::field(field), view }, Match::Masked { value, mask: u128::MAX })
}

/// Whether a condition holds for a frame.
fn holds(cond: Cond, frame: &[u8]) -> bool {
    !run(&program(vec![vec![(cond, vec![output(1)])]]), frame).ports().is_empty()
}

/// What a field reads.
fn reads(frame: &[u8], field: Field, view: View) -> u128 {
    let headers = super::headers::Headers::parse(frame, 1);
    headers.read(frame, field, view)
}

/// An Ethernet frame with this type and payload.
fn ethernet(eth_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &eth_type.to_be_bytes()[..], payload].concat()
}

/// One's complement sum of a header or packet, with what is not in it.
fn sum(bytes: &[u8], more: u32) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum = bytes.chunks(2).map(word).sum::<u32>() + more;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// An IPv4 frame, 10.0.0.1 to 10.0.0.2, with right checksums.
fn ipv4(proto: u8, payload: &[u8]) -> Vec<u8> {
    let total = 20 + payload.len() as u16;
    let mut ip = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 1, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let checksum = !sum(&ip, 0);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    ip.extend(transport(proto, payload, &ip[12..20]));
    ethernet(0x0800, &ip)
}

/// An IPv6 frame, fc00::1 to fc00::2, whose first header is `next`. Checksums are right if that is a transport header.
fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x60, 0, 0, 0, (payload.len() >> 8) as u8, payload.len() as u8, next, 64];
    for last in [1, 2] {
        ip.extend([0xfc, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    ip.extend(transport(next, payload, &ip[8..40]));
    ethernet(0x86dd, &ip)
}

/// The segment with its checksum filled in.
fn transport(proto: u8, payload: &[u8], addresses: &[u8]) -> Vec<u8> {
    let mut segment = payload.to_vec();
    let (at, pseudo) = match proto {
        6 => (16, true),
        17 => (6, true),
        1 => (2, false),
        58 => (2, true),
        132 if segment.len() >= 12 => {
            let crc = super::write::crc32c(&segment);
            segment[8..12].copy_from_slice(&crc.to_le_bytes());
            return segment;
        }
        _ => return segment,
    };
    if segment.len() >= at + 2 {
        segment[at..at + 2].fill(0);
        let checksum = !covered_sum(proto, pseudo, &segment, addresses);
        segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    }
    segment
}

/// The sum over a segment and, if it has one, its pseudo-header: 0xffff where the checksum is right.
fn covered_sum(proto: u8, pseudo: bool, segment: &[u8], addresses: &[u8]) -> u16 {
    let header = u32::from(proto) + segment.len() as u32 + u32::from(sum(addresses, 0));
    sum(segment, if pseudo { header } else { 0 })
}

/// A UDP header, ports 1000 and 53, and four bytes.
const UDP: [u8; 12] = [0x03, 0xe8, 0, 53, 0, 12, 0, 0, b'p', b'i', b'p', b'e'];
/// A TCP header, ports 1000 and 80, SYN and ACK, and four bytes.
const TCP: [u8; 24] = [0x03, 0xe8, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x12, 1, 0, 0, 0, 0, 0, b'p', b'i', b'p', b'e'];
/// An echo request.
const ECHO: [u8; 8] = [8, 0, 0, 0, 0, 1, 0, 2];
/// An SCTP header, ports 1000 and 2000, and a chunk.
const SCTP: [u8; 16] = [0x03, 0xe8, 0x07, 0xd0, 0, 0, 0, 1, 0, 0, 0, 0, 10, 0, 0, 4];
