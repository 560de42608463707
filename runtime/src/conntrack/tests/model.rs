//! Random traffic, tracked and modelled: the model is a map from tuples to the obvious.

use std::collections::HashMap;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::frames::{ACK, FIN, RST, SYN, Tcp, echo, frame, ip, udp};
use super::*;
use crate::conntrack::key::{L4, Tuple};
use crate::conntrack::tcp::{self, Outcome, Pair, Segment};

/// Small numbers without a pattern.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A packet as the model sees it.
#[derive(Clone)]
struct Packet {
    frame: Vec<u8>,
    tuple: Tuple,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Invalid,
    Tcp(Segment),
    Udp,
    Ask,
    Answer,
}

fn packet(random: &mut Random) -> Packet {
    let v6 = random.below(4) == 0;
    let host = |n: u64| {
        if v6 {
            IpAddr::V6(Ipv6Addr::from_bits(u128::from(n) << 60))
        } else {
            IpAddr::V4(Ipv4Addr::from_bits(n as u32 + 9))
        }
    };
    let (src, dst) = (host(random.below(3)), host(random.below(3)));
    let (from, to) = (1 + random.below(3) as u16, 1 + random.below(3) as u16);
    let mut l4 = L4::Ports(from, to);
    let (proto, kind, bytes) = match random.below(8) {
        0..3 => (17, Kind::Udp, udp(src, dst, from, to)),
        3..6 => {
            let flags = [SYN, SYN | ACK, ACK, ACK, ACK, FIN | ACK, RST, RST | ACK][random.below(8) as usize];
            let seq = [0, 1, 2, 3, 10, 70_000, 1 << 30][random.below(7) as usize];
            let ack = [0, 1, 2, 3, 10, 70_000][random.below(6) as usize];
            let tcp =
                Tcp { src, dst, from, to, flags, seq, ack, window: 100, options: &[], len: random.below(3) as usize };
            (6, Kind::Tcp(Segment::read(&tcp.bytes(), 0)), tcp.frame())
        }
        6 => {
            let answers = random.below(2) == 1;
            l4 = L4::Icmp(
                from,
                match (v6, answers) {
                    (false, false) => 8,
                    (false, true) => 0,
                    (true, false) => 128,
                    (true, true) => 129,
                },
            );
            (if v6 { 58 } else { 1 }, if answers { Kind::Answer } else { Kind::Ask }, echo(src, dst, from, answers))
        }
        _ => {
            l4 = L4::Ports(0, 0);
            (47, Kind::Udp, frame(&ip(src, dst, 47, &[0; 9])))
        }
    };
    let mut packet = Packet { frame: bytes, tuple: Tuple { src, dst, proto, l4, zone: 0 }, kind };
    if random.below(20) == 0 && proto != 47 {
        let at = if v6 { 54 } else { 34 }
            + if proto == 17 {
                6
            } else if proto == 6 {
                16
            } else {
                2
            };
        packet.frame[at] ^= 0x55;
        packet.kind = Kind::Invalid;
    }
    packet
}

/// A modelled connection. TCP's ends are kept originator first.
#[derive(Clone, Copy)]
struct Conn {
    expires: u64,
    replied: bool,
    mark: u32,
    tcp: Pair,
}

#[derive(Default)]
struct Model {
    /// By the tuple of the original direction.
    conns: HashMap<Tuple, Conn>,
    created: u64,
}

impl Model {
    /// State and mark.
    fn ct(&mut self, packet: &Packet, point: &CtPoint, zone: u16, now: u64) -> (u32, u32) {
        let tuple = Tuple { zone, ..packet.tuple };
        if packet.kind == Kind::Invalid {
            return (INV | TRK, 0);
        }
        self.conns.retain(|_, conn| now < conn.expires);
        let commits = point.flags & CtPoint::COMMIT != 0;
        let forces = point.flags & CtPoint::FORCE != 0;
        // A packet to oneself is its own answer; the original direction comes first.
        let ways = [(tuple, false), (tuple.reverse(), true)];
        let found = ways.into_iter().find(|(original, _)| self.conns.contains_key(original));
        if let Some((original, reply)) = found {
            if forces && reply {
                self.conns.remove(&original);
            } else if let Some(state) = self.update(packet, &original, reply, now) {
                let conn = self.conns.get_mut(&original).unwrap();
                if state & INV != 0 {
                    return (state, 0);
                }
                if commits {
                    conn.mark = conn.mark & !point.mark_mask | point.mark & point.mark_mask;
                }
                return (state, conn.mark);
            }
        }
        let opens = match packet.kind {
            Kind::Tcp(segment) => tcp::may_open(segment.flags, true),
            kind => kind != Kind::Answer,
        };
        if !opens {
            return (INV | TRK, 0);
        }
        let mut mark = 0;
        if commits {
            mark = point.mark & point.mark_mask;
            let (tcp, seconds) = match packet.kind {
                Kind::Tcp(segment) => (tcp::open(&segment, &[]), 30),
                _ => (Pair::default(), 60),
            };
            self.conns.insert(tuple, Conn { expires: now + seconds * S, replied: false, mark, tcp });
            self.created += 1;
        }
        (NEW | TRK, mark)
    }

    /// The state, or nothing if the connection ended for a new one.
    fn update(&mut self, packet: &Packet, original: &Tuple, reply: bool, now: u64) -> Option<u32> {
        let conn = self.conns.get_mut(original)?;
        let established = |conn: &Conn| if conn.replied { EST | TRK | if reply { RPL } else { 0 } } else { NEW | TRK };
        let Kind::Tcp(segment) = packet.kind else {
            conn.replied |= reply;
            conn.expires = now + if conn.replied { 30 } else { 60 } * S;
            return Some(established(conn));
        };
        let turn = |pair: Pair| if reply { Pair { src: pair.dst, dst: pair.src } } else { pair };
        let (pair, outcome) = tcp::update(turn(conn.tcp), &segment, &[], true);
        let state = match outcome {
            Outcome::Outside => return Some(INV | TRK),
            Outcome::Reuse => {
                self.conns.remove(original);
                return None;
            }
            Outcome::Opening => {
                conn.expires = now + 30 * S;
                conn.replied |= reply;
                NEW | TRK
            }
            Outcome::Valid(timer) => {
                if let Some(timer) = timer {
                    conn.expires = super::super::Timeouts::default().expiry(timer, now);
                }
                conn.replied |= reply;
                established(conn)
            }
        };
        conn.tcp = turn(pair);
        Some(state)
    }
}

#[test]
fn random_traffic_equals_the_model() {
    for seed in 0..60 {
        let mut random = Random(seed * 77 + 1);
        let mut net = Net::with(Config { max_conns: 5_000, seed: Some(seed), ..Config::default() });
        let mut model = Model::default();
        for step in 0..300 {
            net.now_ns += [0, S / 1000, S, 10 * S, 25 * S, 61 * S][random.below(6) as usize];
            let packets: Vec<_> = (0..1 + random.below(32)).map(|_| packet(&mut random)).collect();
            let frames: Vec<_> = packets.iter().map(|packet| &packet.frame[..]).collect();
            let (set, zone) = (random.0 as u32 & ((1u64 << packets.len()) - 1) as u32, random.below(2) as u16);
            let now = net.now_ns;
            let mut prepared = false;
            net.burst(&frames, |i, tracker, burst, view| {
                if !core::mem::replace(&mut prepared, true) {
                    tracker.prepare(burst, set, zone);
                }
                let point = CtPoint {
                    flags: [0, 0, CtPoint::COMMIT, CtPoint::COMMIT, CtPoint::COMMIT | CtPoint::FORCE]
                        [random.below(5) as usize]
                        | [0, 0, CtPoint::FRESH][random.below(3) as usize],
                    mark: random.below(1 << 31) as u32,
                    mark_mask: [0, 0xff, 0xff00][random.below(3) as usize],
                    ..LOOK
                };
                let zone = random.below(2) as u16;
                let expected = model.ct(&packets[i], &point, zone, now);
                let got = (tracker.ct(view, burst, i, &point, zone), view.mark);
                let at =
                    format!("seed {seed}, step {step}, packet {i}: {:?} {point:?} in zone {zone}", packets[i].tuple);
                assert_eq!((words(got.0), got.1), (words(expected.0), expected.1), "{at}");
                // Once more in the same pass: the same, but for what a commit does.
                let again = CtPoint { flags: point.flags & !CtPoint::FORCE, ..point };
                let state = tracker.ct(view, burst, i, &again, zone);
                assert_eq!(words(state), words(expected.0), "again: {at}");
            });
        }
        let live = model.conns.values().filter(|conn| net.now_ns < conn.expires).count();
        assert_eq!((net.ct.dump(net.now_ns).len(), net.ct.stats().created), (live, model.created), "seed {seed}");
    }
}
