//! Captures through a small program: order, clock, ports, ledgers, and what is broken.

use pipec_abi::{Burst, Ctx, DropReason, Emit, Env, Program, Verdict};

use super::*;
use crate::pcap::Problem;
use crate::pcap::tests::Scratch;

/// Sends by the first byte of the frame: 0 and 1 to that port, 2 to both, 9 nowhere; counts each.
struct ByFirstByte;

impl Program for ByFirstByte {
    const TABLES: &'static [&'static [u8]] = &[];
    const META: &'static str = r#"{"name":"t","ports":[{"name":"a","number":1},{"name":"b","number":2}],"tables":[],
        "counters":[{"rules":[]}],"vars":0,"points":0,"vlan_limit":1}"#;

    fn run<E: Env>(env: &mut E, ctx: &mut Ctx, burst: &mut Burst, _entry: u16) {
        for i in 0..burst.len() {
            ctx.count(0, burst.frame_len(i));
            match burst.bytes(i)[0] {
                port @ (0 | 1) => burst.set_verdict(i, Verdict::send(u16::from(port))),
                2 => {
                    env.emit(ctx, burst, i, 0, Emit::Copy);
                    env.emit(ctx, burst, i, 1, Emit::Share);
                }
                _ => burst.set_verdict(i, Verdict::drop(DropReason::Policy)),
            }
        }
    }
}

fn engine() -> Engine {
    Engine::of::<ByFirstByte>().unwrap()
}

fn capture(scratch: &Scratch, name: &str, packets: &[(u64, &[u8])]) -> PathBuf {
    let path = scratch.0.join(name);
    let mut writer = Writer::create(&path, Resolution::Nano).unwrap();
    packets.iter().for_each(|(stamp_ns, frame)| writer.write(*stamp_ns, frame).unwrap());
    writer.finish().unwrap();
    path
}

fn job(scratch: &Scratch, inputs: Vec<(u16, PathBuf)>) -> Job {
    let outputs = vec![Some(scratch.0.join("out-a.pcap")), Some(scratch.0.join("out-b.pcap"))];
    Job { inputs, outputs, attached: vec![true, true] }
}

fn run(job: &Job) -> (Report, Vec<(u16, usize)>) {
    let mut seen = Vec::new();
    let report = replay(&engine(), job, &AtomicBool::new(false), &mut |passed| {
        assert_eq!(passed.index, seen.len() as u64);
        seen.push((passed.in_port, passed.len));
        true
    });
    (report.unwrap(), seen)
}

fn written(scratch: &Scratch, name: &str) -> Vec<(u64, Vec<u8>)> {
    let capture = Capture::open(&scratch.0.join(name)).unwrap();
    capture.map(|packet| packet.unwrap()).map(|packet| (packet.stamp_ns.unwrap(), packet.frame)).collect()
}

#[test]
fn captures_are_merged_by_stamp_then_by_their_order() {
    let scratch = Scratch::new("merge");
    let a = capture(&scratch, "a.pcap", &[(10, &[1, 1]), (30, &[1, 1, 1])]);
    let b = capture(&scratch, "b.pcap", &[(10, &[0, 1, 1, 1]), (20, &[0, 1, 1, 1, 1]), (15, &[0; 6]), (30, &[0; 7])]);
    let (report, seen) = run(&job(&scratch, vec![(1, b), (0, a)]));
    assert_eq!(seen, [(1, 4), (0, 2), (1, 5), (1, 6), (1, 7), (0, 3)]);
    let stamps: Vec<u64> = written(&scratch, "out-a.pcap").iter().map(|(stamp, _)| *stamp).collect();
    assert_eq!(stamps, [10, 20, 20, 30]); // 15 counts as 20
    assert_eq!(written(&scratch, "out-b.pcap"), [(10, vec![1, 1]), (30, vec![1, 1, 1])]);
    assert_eq!(report.stats.seconds, 20e-9);
    assert_eq!(report.counters[0].packets, 6);
}

#[test]
fn both_ledgers_hold() {
    let scratch = Scratch::new("ledgers");
    let a = capture(&scratch, "a.pcap", &[(1, &[0]), (2, &[1]), (3, &[2]), (4, &[9]), (5, &[9])]);
    let job = job(&scratch, vec![(0, a)]);
    let (report, _) = run(&job);
    let ledger = Ledger { received: 5, forwarded: 3, dropped: 2, copies_made: 1, copies_sent: 1, ..Ledger::default() };
    assert_eq!(report.stats.ledger, ledger);
    let [a, b] = &report.stats.ports[..] else { panic!("two ports") };
    assert_eq!((a.rx_packets, a.tx_packets, b.rx_packets, b.tx_packets), (5, 2, 0, 2));
    assert_eq!((a.drops.get(DropReason::Policy), b.drops.total(), report.stats.drops.total()), (2, 0, 2));
}

#[test]
fn what_goes_to_a_port_that_is_not_attached_is_dropped() {
    let scratch = Scratch::new("unattached");
    let a = capture(&scratch, "a.pcap", &[(1, &[1]), (2, &[2])]);
    let job = Job { attached: vec![true, false], ..job(&scratch, vec![(0, a)]) };
    let (report, _) = run(&job);
    let ledger =
        Ledger { received: 2, forwarded: 1, dropped: 1, copies_made: 1, copies_dropped: 1, ..Ledger::default() };
    assert_eq!(report.stats.ledger, ledger);
    assert_eq!(report.stats.drops.get(DropReason::NoPort), 2);
    assert_eq!(written(&scratch, "out-b.pcap"), []);
}

#[test]
fn a_broken_capture_runs_up_to_the_break_beside_the_others() {
    let scratch = Scratch::new("broken");
    let a = capture(&scratch, "a.pcap", &[(1, &[1]), (2, &[1])]);
    let b = capture(&scratch, "b.pcap", &[(1, &[0]), (3, &[0])]);
    let bytes = std::fs::read(&a).unwrap();
    std::fs::write(&a, &bytes[..bytes.len() - 1]).unwrap();
    let (report, seen) = run(&job(&scratch, vec![(0, a), (1, b)]));
    assert_eq!(seen, [(0, 1), (1, 1), (1, 1)]);
    assert!(matches!(report.broken[..], [CaptureError { problem: Problem::Truncated(1), .. }]));
}

#[test]
fn many_packets_of_one_stamp_keep_their_order() {
    let scratch = Scratch::new("bursts");
    let frames: Vec<Vec<u8>> = (0..100u8).map(|i| vec![1, i]).collect();
    let packets: Vec<(u64, &[u8])> = frames.iter().map(|frame| (7, frame.as_slice())).collect();
    let a = capture(&scratch, "a.pcap", &packets);
    run(&job(&scratch, vec![(0, a)]));
    let out: Vec<Vec<u8>> = written(&scratch, "out-b.pcap").into_iter().map(|(_, frame)| frame).collect();
    assert_eq!(out, frames);
}

#[test]
fn a_capture_is_never_written_over() {
    let scratch = Scratch::new("overwrite");
    let a = capture(&scratch, "a.pcap", &[(1, &[1])]);
    let before = std::fs::read(&a).unwrap();
    let good = job(&scratch, vec![(0, a.clone())]);
    let same = Job { outputs: vec![None, Some(a.clone())], ..good.clone() };
    let twice = Job { outputs: vec![good.outputs[0].clone(), good.outputs[0].clone()], ..good };
    for (job, part) in [(same, "would destroy the one that is read"), (twice, "two ports would write this capture")] {
        let error = replay(&engine(), &job, &AtomicBool::new(false), &mut |_| true).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(error.status(), 2);
    }
    assert_eq!(std::fs::read(&a).unwrap(), before);
}

#[test]
fn the_clock_follows_the_stamps_and_skips_long_gaps() {
    let mut clock = Clock::default();
    assert_eq!(clock.advance(1_000), 1_000);
    assert_eq!(clock.advance(5_000), 5_000);
    let far = 5_000 + 2 * MAX_GAP_NS;
    assert_eq!(clock.advance(far), 5_000 + MAX_GAP_NS);
    assert_eq!(clock.advance(far + 1), 5_001 + MAX_GAP_NS);
    assert_eq!(clock.seconds(), (4_001 + MAX_GAP_NS) as f64 / 1e9);
}

#[test]
fn a_run_ends_when_it_is_told_to() {
    let scratch = Scratch::new("stop");
    let a = capture(&scratch, "a.pcap", &[(1, &[1]), (2, &[1]), (3, &[1])]);
    let job = job(&scratch, vec![(0, a)]);
    let report = replay(&engine(), &job, &AtomicBool::new(true), &mut |_| true).unwrap();
    assert_eq!(report.stats.ledger.received, 1);
    let report = replay(&engine(), &job, &AtomicBool::new(false), &mut |passed| passed.index < 1).unwrap();
    assert_eq!(report.stats.ledger.received, 2);
}
