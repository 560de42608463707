//! What becomes of outputs when a burst is committed.

use super::*;
use crate::conntrack::{Config, Conntrack};
use crate::engine::Engine;

struct Nothing;

impl pipec_abi::Program for Nothing {
    const META: &'static str =
        r#"{"name":"nothing","ports":[],"tables":[],"counters":[],"vars":0,"points":0,"vlan_limit":1}"#;
    const TABLES: &'static [&'static [u8]] = &[];

    fn run<E: Env>(_: &mut E, _: &mut Ctx, _: &mut Burst, _: u16) {}
}

/// Packets are numbers; how often each is held.
struct Held(Vec<u16>);

fn handle(number: usize) -> Handle {
    core::ptr::without_provenance_mut(number + 1)
}

fn number(pkt: Handle) -> usize {
    pkt.addr() - 1
}

impl Buffers for Held {
    const ANY_ORDER: bool = true;

    fn copy(&mut self, _: &Burst, i: usize) -> Option<Handle> {
        self.0.push(1);
        (i % 7 != 3).then(|| handle(self.0.len() - 1)).or_else(|| {
            self.0.pop();
            None
        })
    }
    fn share(&mut self, pkt: Handle, more: u16) {
        self.0[number(pkt)] += more;
    }
    fn free(&mut self, pkt: Handle) {
        self.0[number(pkt)] -= 1;
    }
    fn frame_len(&self, _: Handle) -> u32 {
        60
    }
    fn cut(&mut self, _: Handle, _: u32) {}
    fn prepend(&mut self, _: Handle, _: usize) -> Option<*mut u8> {
        None
    }
    fn strip(&mut self, _: Handle, _: usize) -> *mut u8 {
        core::ptr::null_mut()
    }
}

/// What was sent, by port, with whether it was a copy; how many were dropped and lost.
#[derive(Default)]
struct Seen {
    sent: std::collections::BTreeMap<u16, Vec<(usize, bool)>>,
    dropped: usize,
    lost: usize,
}

impl Sink<Held> for Seen {
    fn send(&mut self, buffers: &mut Held, port: u16, pkt: Handle, _: u32, copy: bool) {
        self.sent.entry(port).or_default().push((number(pkt), copy));
        buffers.free(pkt);
    }
    fn drop(&mut self, buffers: &mut Held, _: u16, pkt: Handle, _: u32, _: DropReason) {
        self.dropped += 1;
        buffers.free(pkt);
    }
    fn lost(&mut self, _: u16, _: DropReason) {
        self.lost += 1;
    }
    fn punt(&mut self, buffers: &mut Held, _: u16, pkt: Handle, _: u32, _: u8) {
        buffers.free(pkt);
    }
}

#[test]
fn every_output_is_committed_once_and_ports_keep_the_order_of_packets() {
    let engine = Engine::of::<Nothing>().expect("a program");
    let conntrack = Arc::new(Conntrack::new(&Config { workers: 1, ..Config::default() }));
    let fdb = Arc::new(Fdb::new(16, 300));
    let tables = Tables::of(&engine);
    let mut env = WorkerEnv::new(Held(Vec::new()), Tracker::new(conntrack), fdb, vec![], tables);
    let mut frame = [0u8; 60];
    let mut seed = 7u32;
    let mut random = |below: u32| {
        seed = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        (seed >> 16) % below
    };
    for round in 0..4000 {
        let (mut burst, n) = (Burst::new(), 1 + random(BURST as u32) as usize);
        burst.begin(0);
        env.buffers.0 = vec![1; n];
        // The packets that each port gets, as they are; copies have other numbers.
        let mut wanted: std::collections::BTreeMap<u16, Vec<usize>> = Default::default();
        let (mut dropped, mut lost) = (0, 0);
        for i in 0..n {
            // SAFETY: the frame outlives the burst, and nobody reads it.
            unsafe { burst.push(handle(i), frame.as_mut_ptr(), 60, 0) };
            let mut own = Vec::new();
            match random(4) {
                0 => burst.set_verdict(i, Verdict::drop(DropReason::Policy)),
                1 => {
                    let port = random(3) as u16;
                    burst.set_verdict(i, Verdict::send(port));
                    own.push(port);
                }
                _ => {
                    for _ in 0..1 + random(5) {
                        let port = [0, 1, 2, 5, 63, 64, 70][random(7) as usize];
                        // Copies are asked for in some rounds only: they make lists.
                        if round % 2 == 1 && random(4) == 0 {
                            let there = env.buffers.0.len();
                            env.emit_as(&mut burst, i, port, Emit::Copy);
                            lost += usize::from(env.buffers.0.len() == there);
                        } else {
                            env.emit_as(&mut burst, i, port, Emit::Share);
                            own.push(port);
                        }
                    }
                    if random(9) == 0 {
                        env.discard(&mut burst, i, DropReason::Ttl);
                        own.clear();
                    }
                }
            }
            dropped += usize::from(burst.verdict(i).reason().is_some());
            own.iter().for_each(|port| wanted.entry(*port).or_default().push(i));
        }
        let mut seen = Seen::default();
        env.commit(&burst, &mut seen);
        assert!(env.buffers.0.iter().all(|held| *held == 0), "round {round}: {:?}", env.buffers.0);
        assert_eq!((seen.dropped, seen.lost), (dropped, lost), "round {round}");
        let mut moved = vec![0; n];
        for (port, sent) in &seen.sent {
            let own: Vec<usize> = sent.iter().map(|(pkt, _)| *pkt).filter(|pkt| *pkt < n).collect();
            assert_eq!(own, wanted.remove(port).unwrap_or_default(), "round {round}, port {port}");
            sent.iter().filter(|(pkt, copy)| *pkt < n && !copy).for_each(|(pkt, _)| moved[*pkt] += 1);
            assert!(sent.iter().all(|(pkt, copy)| *pkt < n || *copy), "a copy is told as one");
        }
        assert!(wanted.is_empty(), "round {round}: {wanted:?}");
        assert!(moved.iter().all(|moved| *moved <= 1), "one of a packet's outputs is the packet itself");
    }
}

#[test]
fn every_packet_of_a_burst_is_committed_once() {
    let mut frame = [0u8; 60];
    let mut seed = 1u32;
    for round in 0..2000 {
        let mut burst = Burst::new();
        burst.begin(0);
        for i in 0..round % (BURST + 1) {
            // SAFETY: the frame outlives the burst, and nobody reads it.
            unsafe { burst.push(core::ptr::null_mut(), frame.as_mut_ptr(), 60, 0) };
            seed = seed.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            let verdict = match seed >> 28 {
                0 => Verdict::LISTED,
                1..4 => Verdict::drop(DropReason::Ttl),
                4..9 => Verdict::drop(DropReason::Policy),
                port => Verdict::send(port as u16 / (1 + round as u16 % 9)),
            };
            burst.set_verdict(i, verdict);
        }
        let (many, left) = by_verdict(&burst);
        let mut seen = left;
        for (verdict, which) in many.into_iter().flatten() {
            assert_eq!(seen & which, 0, "a packet twice");
            assert!(ones(which).all(|i| burst.verdict(i) == verdict) && verdict != Verdict::LISTED);
            assert!(ones(left).all(|i| burst.verdict(i) != verdict), "packets of a port stay in order");
            seen |= which;
        }
        assert_eq!(seen, burst.all());
    }
}
