//! Lives of connections: commit, force, marks, zones, limits, bursts, flush and sweep.

use super::frames::*;
use super::*;

fn there(port: u16) -> Vec<u8> {
    udp(A, B, port, 53)
}

fn back(port: u16) -> Vec<u8> {
    udp(B, A, 53, port)
}

#[test]
fn zones_are_independent() {
    let mut net = Net::new();
    net.view(&there(1), &mark(7), 1);
    net.view(&there(1), &mark(8), 2);
    let mut state = |frame: &[u8], zone| {
        let view = net.view(frame, &LOOK, zone);
        assert_eq!(view.zone, u32::from(zone));
        (words(view.state), view.mark)
    };
    assert_eq!(state(&back(1), 1), ("est+rpl".into(), 7));
    assert_eq!(state(&there(1), 2), ("new".into(), 8));
    assert_eq!(state(&back(1), 3), ("new".into(), 0));
    assert_eq!(state(&back(1), 0xffff), ("new".into(), 0));
    assert_eq!(net.ct.len(), 2);
}

#[test]
fn marks_and_labels_are_set_under_their_masks() {
    let mut net = Net::new();
    let point = |mark, mark_mask, label, label_mask| CtPoint { mark, mark_mask, label, label_mask, ..COMMIT };
    let view = net.view(&there(1), &point(0xabcd, 0xff00, [1, 2], [!0, !0]), 0);
    assert_eq!((view.mark, view.label), (0xab00, [1, 2]), "a new connection");
    let view = net.view(&back(1), &LOOK, 0);
    assert_eq!((view.mark, view.label), (0xab00, [1, 2]));
    let view = net.view(&back(1), &point(0x00ef, 0x00ff, [0xf0, 0], [0xf0, 0]), 0);
    assert_eq!((view.mark, view.label, words(view.state).as_str()), (0xabef, [0xf1, 2], "est+rpl"));
    let view = net.view(&there(1), &CtPoint { flags: 0, ..point(9, 0xff, [9, 9], [!0, !0]) }, 0);
    assert_eq!((view.mark, view.label), (0xabef, [0xf1, 2]), "only with a commit");
    assert_eq!(net.dump()[0].split(",timeout=30").collect::<Vec<_>>()[1], ",mark=44015,labels=0xf10000000000000002");
    let view = net.view(&there(2), &COMMIT, 0);
    assert_eq!((view.mark, view.label), (0, [0; 2]));
}

#[test]
fn a_place_used_again_keeps_nothing() {
    let mut net = Net::with(Config { max_conns: 1, ..Config::default() });
    net.view(&there(1), &CtPoint { label: [7, 7], label_mask: [!0; 2], ..mark(7) }, 0);
    net.ct(&back(1), &LOOK);
    net.ct.flush();
    net.wait(1); // the sweep makes room
    for _ in 0..3 {
        net.ct(&there(9), &LOOK);
        net.wait(1);
    }
    let view = net.view(&there(2), &COMMIT, 0);
    assert_eq!((net.ct.len(), view.mark, view.label), (1, 0, [0; 2]));
    let view = net.view(&there(2), &CtPoint { label: [1, 0], label_mask: [1, 0], ..COMMIT }, 0);
    assert_eq!((view.label, words(view.state).as_str()), ([1, 0], "new"));
}

#[test]
fn force_turns_a_connection_round() {
    let mut net = Net::new();
    net.ct(&there(1), &mark(5));
    net.ct(&back(1), &LOOK);
    assert_eq!(net.ct(&there(1), &CtPoint { mark: 6, mark_mask: !0, ..FORCE }), "est", "already its own direction");
    assert_eq!(net.view(&there(1), &LOOK, 0).mark, 6);
    let view = net.view(&back(1), &CtPoint { mark: 7, mark_mask: !0, ..FORCE }, 0);
    assert_eq!((words(view.state).as_str(), view.mark), ("new", 7));
    assert_eq!(net.ct(&there(1), &LOOK), "est+rpl");
    assert_eq!((net.ct.len(), net.ct.stats().replaced), (1, 1));
}

#[test]
fn at_the_limit_packets_stay_new_and_are_counted() {
    for max in [0, 1, 10, 300] {
        let mut net = Net::with(Config { max_conns: max, ..Config::default() });
        for port in 1..=max as u16 {
            let frame = if port % 3 == 0 { udp(A6, B6, port, 53) } else { there(port) };
            assert_eq!(net.ct(&frame, &COMMIT), "new");
        }
        assert_eq!(net.ct.len(), max);
        let view = net.view(&there(60_000), &mark(5), 0);
        assert_eq!((words(view.state).as_str(), view.mark), ("new", 0));
        assert_eq!(net.ct(&back(60_000), &COMMIT), "new");
        assert_eq!((net.ct.len(), net.ct.stats().full), (max, 2));
        if max > 0 {
            assert_eq!(net.ct(&back(1), &COMMIT), "est+rpl", "what is there goes on");
            net.wait(61);
            net.ct(&there(1), &LOOK); // ends that one
            assert_eq!(net.ct(&there(60_000), &COMMIT), "new");
            assert_eq!(net.ct(&back(60_000), &COMMIT), "est+rpl");
        }
    }
}

#[test]
fn packets_of_a_burst_see_each_other() {
    let mut net = Net::new();
    let (there, back) = (there(1), back(1));
    let states = net.together(&[(&there, &COMMIT), (&back, &LOOK), (&there, &LOOK), (&back, &FORCE), (&there, &LOOK)]);
    assert_eq!(states, ["new", "est+rpl", "est", "new", "est+rpl"]);
    assert_eq!(net.ct.len(), 1);
    let syn = Tcp { src: A, dst: B, from: 5, to: 6, flags: SYN, seq: 0, ack: 0, window: 9, options: &[], len: 0 };
    let (syn, rst) = (syn.frame(), Tcp { src: B, dst: A, from: 6, to: 5, flags: RST | ACK, ack: 1, ..syn }.frame());
    let states = net.together(&[(&syn, &COMMIT), (&rst, &LOOK), (&syn, &COMMIT), (&rst, &LOOK)]);
    assert_eq!(states, ["new", "est+rpl", "new", "est+rpl"]);
    assert_eq!((net.ct.len(), net.ct.stats().replaced), (2, 2));
}

#[test]
fn whole_bursts_of_both_families() {
    let mut net = Net::new();
    for round in 0..3 {
        let frames: Vec<_> = (0..32u16)
            .map(|n| match n % 4 {
                0 => there(100 + n),
                1 => udp(A6, B6, 100 + n, 53),
                2 => echo(A, B, n, false),
                _ => Tcp {
                    src: A6,
                    dst: B6,
                    from: 1 + n,
                    to: 9,
                    flags: ACK,
                    seq: 5,
                    ack: 5,
                    window: 9,
                    options: &[],
                    len: 3,
                }
                .frame(),
            })
            .collect();
        let burst: Vec<_> = frames.iter().map(|frame| (&frame[..], &COMMIT)).collect();
        assert!(net.together(&burst).iter().all(|state| state == "new"), "round {round}");
        assert_eq!(net.ct.len(), 32);
    }
}

#[test]
fn a_second_look_in_one_pass_gives_the_same_answer_and_counts_once() {
    let mut net = Net::new();
    let frame = there(1);
    let mut states = Vec::new();
    net.burst(&[&frame], |_, tracker, burst, view| {
        tracker.prepare(burst, 1, 0);
        for point in [&LOOK, &mark(3), &LOOK, &mark(4)] {
            states.push((words(tracker.ct(view, burst, 0, point, 0)), view.mark));
        }
        tracker.prepare(burst, 1, 0);
        states.push((words(tracker.ct(view, burst, 0, &LOOK, 0)), view.mark));
    });
    assert_eq!(states, [("new".into(), 0), ("new".into(), 3), ("new".into(), 3), ("new".into(), 4), ("new".into(), 4)]);
    assert_eq!(net.ct.len(), 1);
    let bad = &frame[..30];
    net.burst(&[bad], |_, tracker, burst, view| {
        for point in [&LOOK, &COMMIT] {
            assert_eq!(words(tracker.ct(view, burst, 0, point, 0)), "inv");
        }
    });
    assert_eq!(net.ct.stats().invalid.iter().sum::<u64>(), 1);
}

#[test]
fn a_second_look_does_not_run_tcp_twice() {
    let mut net = Net::new();
    let syn = Tcp { src: A, dst: B, from: 5, to: 6, flags: SYN, seq: 0, ack: 0, window: 9, options: &[], len: 0 };
    let rst = Tcp { src: B, dst: A, from: 6, to: 5, flags: RST | ACK, ack: 1, ..syn }.frame();
    net.ct(&syn.frame(), &COMMIT);
    net.ct(&rst, &LOOK);
    // The SYN ends the closed connection; the commit makes one, and must not take that for a closed one again.
    net.burst(&[&syn.frame()], |_, tracker, burst, view| {
        assert_eq!(words(tracker.ct(view, burst, 0, &LOOK, 0)), "new");
        assert_eq!(words(tracker.ct(view, burst, 0, &COMMIT, 0)), "new");
        assert_eq!(words(tracker.ct(view, burst, 0, &COMMIT, 0)), "new");
    });
    let stats = net.ct.stats();
    assert_eq!((stats.live, stats.created, stats.replaced), (1, 2, 1));
}

#[test]
fn another_zone_in_one_pass_is_another_look() {
    let mut net = Net::new();
    let frame = there(1);
    net.burst(&[&frame], |_, tracker, burst, view| {
        tracker.prepare(burst, 1, 1);
        for (zone, expected) in [(1, 1), (2, 2), (1, 1), (5, 5)] {
            assert_eq!(words(tracker.ct(view, burst, 0, &mark(zone), zone as u16)), "new");
            assert_eq!((view.zone, view.mark), (expected, expected));
        }
    });
    assert_eq!(net.ct.len(), 3);
}

#[test]
fn a_packet_that_was_written_is_looked_at_afresh() {
    let mut net = Net::new();
    let fresh = CtPoint { flags: CtPoint::FRESH | CtPoint::COMMIT, ..LOOK };
    let frame = there(1);
    net.burst(&[&frame], |_, tracker, burst, view| {
        tracker.prepare(burst, 1, 0);
        assert_eq!(words(tracker.ct(view, burst, 0, &COMMIT, 0)), "new");
        pipec_abi::edit::set(burst.bytes_mut(0), pipec_abi::edit::Target::UdpSrc, 77, 1);
        assert_eq!(words(tracker.ct(view, burst, 0, &fresh, 0)), "new");
        assert_eq!(words(tracker.ct(view, burst, 0, &fresh, 0)), "new", "not written since");
        burst.bytes_mut(0)[45] ^= 1;
        assert_eq!(words(tracker.ct(view, burst, 0, &fresh, 0)), "inv");
    });
    assert_eq!(net.ct.len(), 2);
    assert_eq!(net.ct(&back(77), &LOOK), "est+rpl");
}

#[test]
fn flush_ends_everything_at_once() {
    let mut net = Net::new();
    for port in 1..=200 {
        net.ct(&there(port), &COMMIT);
        net.ct(&udp(A6, B6, port, 53), &COMMIT);
    }
    net.ct.flush();
    assert_eq!((net.ct.len(), net.ct.stats().flushed, net.dump().len()), (0, 400, 0));
    for port in 1..=200 {
        assert_eq!(net.ct(&back(port), &COMMIT), "new");
    }
    assert_eq!(net.ct.len(), 200);
}

#[test]
fn a_flush_in_the_middle_of_a_burst() {
    let mut net = Net::new();
    let (there, back) = (there(1), back(1));
    net.ct(&there, &COMMIT);
    let ct = net.ct.clone();
    let mut states = Vec::new();
    net.burst(&[&there, &back], |i, tracker, burst, view| {
        if i == 0 {
            tracker.prepare(burst, 3, 0);
            states.push(words(tracker.ct(view, burst, 0, &LOOK, 0)));
            ct.flush();
            states.push(words(tracker.ct(view, burst, 0, &mark(1), 0)));
        } else {
            states.push(words(tracker.ct(view, burst, 1, &LOOK, 0)));
        }
    });
    assert_eq!(states, ["new", "new", "new"]);
}

#[test]
fn sweeps_end_what_has_expired_and_nothing_else() {
    let mut net = Net::new();
    for port in 1..=100 {
        net.ct(&there(port), &COMMIT);
        net.ct(&udp(A6, B6, port, 53), &COMMIT);
    }
    net.wait(30);
    for port in 1..=50 {
        net.ct(&there(port), &LOOK);
    }
    net.wait(30);
    assert_eq!(net.ct.sweep(net.now_ns, 0), 0);
    let first = net.ct.sweep(net.now_ns, 60);
    assert!(first < 60 && net.ct.len() == 200 - first);
    assert_eq!(first + net.ct.sweep(net.now_ns, 140), 150);
    assert_eq!((net.ct.len(), net.ct.sweep(net.now_ns, 1000)), (50, 0));
    assert_eq!(net.ct(&back(7), &LOOK), "est+rpl");
}

#[test]
fn workers_sweep_by_themselves_and_use_places_again() {
    let mut net = Net::new();
    for generation in 0..20 {
        for port in 1..=500 {
            assert_eq!(net.ct(&there(port + generation * 500), &COMMIT), "new");
        }
        net.wait(60);
        for _ in 0..2_000 {
            net.now_ns += S / 100;
            net.tracker.begin(net.now_ns);
        }
        assert_eq!(net.ct.len(), 0, "generation {generation}");
    }
    let stats = net.ct.stats();
    assert_eq!((stats.created, stats.expired, stats.full), (10_000, 10_000, 0));
    assert!(net.ct.v4.slab.used() <= 1000);
}

#[test]
fn a_look_up_that_meets_an_expired_connection_ends_it() {
    let mut net = Net::with(Config { max_conns: 1, ..Config::default() });
    net.ct(&there(1), &COMMIT);
    net.wait(61);
    assert_eq!(net.ct(&there(1), &COMMIT), "new");
    let stats = net.ct.stats();
    assert_eq!((stats.live, stats.created, stats.expired, stats.full), (1, 2, 1, 0));
}

#[test]
fn dumps_are_in_the_words_of_open_vswitch() {
    let mut net = Net::new();
    net.view(&tagged(&there(1), 9), &mark(4), 0xffff);
    net.ct(&echo(B, A, 3, false), &COMMIT);
    net.ct(&udp(B6, A6, 7, 8), &COMMIT);
    net.ct(&frame(&ip(B, A, 47, &[0; 8])), &COMMIT);
    net.ct(
        &Tcp { src: B, dst: A, from: 9, to: 5, flags: SYN, seq: 0, ack: 0, window: 9, options: &[], len: 0 }.frame(),
        &COMMIT,
    );
    let mut dump: Vec<_> = net.ct.dump(net.now_ns).iter().map(ToString::to_string).collect();
    dump.sort();
    assert_eq!(
        dump,
        [
            "47,orig=(src=10.0.0.2,dst=10.0.0.1,sport=0,dport=0),reply=(src=10.0.0.1,dst=10.0.0.2,sport=0,dport=0)",
            "icmp,orig=(src=10.0.0.2,dst=10.0.0.1,id=3,type=8,code=0),reply=(src=10.0.0.1,dst=10.0.0.2,id=3,type=0,code=0)",
            "tcp,orig=(src=10.0.0.2,dst=10.0.0.1,sport=9,dport=5),reply=(src=10.0.0.1,dst=10.0.0.2,sport=5,dport=9),protoinfo=(state=SYN_SENT)",
            "udp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=1,dport=53),reply=(src=10.0.0.2,dst=10.0.0.1,sport=53,dport=1),zone=65535,mark=4",
            "udp,orig=(src=fd00::2,dst=fd00::1,sport=7,dport=8),reply=(src=fd00::1,dst=fd00::2,sport=8,dport=7)",
        ]
    );
}

#[test]
fn trackers_come_and_go_but_are_no_more_than_workers() {
    let ct = Arc::new(Conntrack::new(&Config { max_conns: 10, ..Config::default() }));
    for _ in 0..3 {
        drop(Tracker::new(ct.clone()));
    }
    let _one = Tracker::new(ct.clone());
    assert!(std::panic::catch_unwind(|| Tracker::new(ct.clone())).is_err());
}
