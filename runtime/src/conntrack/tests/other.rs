//! UDP, ICMP queries and protocols without ports: states and time-outs.

use super::frames::*;
use super::*;

#[test]
fn udp_is_new_until_it_is_answered() {
    for (a, b) in [(A, B), (B, A), (A6, B6), (B6, A6)] {
        let mut net = Net::new();
        let (there, back) = (udp(a, b, 1000, 53), udp(b, a, 53, 1000));
        assert_eq!(net.ct(&there, &LOOK), "new");
        assert_eq!(net.ct(&back, &LOOK), "new", "nothing is stored without a commit");
        assert_eq!(net.ct(&there, &COMMIT), "new");
        for _ in 0..3 {
            assert_eq!(net.ct(&there, &LOOK), "new");
        }
        assert_eq!(net.ct(&back, &LOOK), "est+rpl");
        assert_eq!(net.ct(&there, &COMMIT), "est");
        assert_eq!(net.ct.len(), 1);
    }
}

/// Sends `first` with a commit, waits, and says what `then` is.
fn after(first: &[&[u8]], seconds: u64, then: &[u8]) -> String {
    let mut net = Net::new();
    for frame in first {
        net.ct(frame, &COMMIT);
    }
    net.wait(seconds);
    net.ct(then, &LOOK)
}

#[test]
fn udp_times_out() {
    let (there, back) = (&udp(A, B, 1000, 53)[..], &udp(B, A, 53, 1000)[..]);
    assert_eq!(after(&[there], 59, back), "est+rpl");
    assert_eq!(after(&[there], 60, back), "new");
    assert_eq!(after(&[there, there], 59, back), "est+rpl");
    assert_eq!(after(&[there, there], 60, back), "new");
    assert_eq!(after(&[there, back], 29, there), "est");
    assert_eq!(after(&[there, back], 30, there), "new");
    assert_eq!(after(&[there, back], 61, there), "new");
}

#[test]
fn a_look_refreshes_the_timer() {
    let mut net = Net::new();
    let (there, back) = (udp(A, B, 1000, 53), udp(B, A, 53, 1000));
    net.ct(&there, &COMMIT);
    for _ in 0..10 {
        net.wait(29);
        assert_eq!(net.ct(&back, &LOOK), "est+rpl");
    }
    assert_eq!(net.ct.dump(net.now_ns)[0].left_ns, 30 * S);
}

#[test]
fn workers_that_share_refresh_to_the_millisecond() {
    let mut net = Net::with(Config { workers: 2, max_conns: 10, ..Config::default() });
    let (there, back) = (udp(A, B, 1000, 53), udp(B, A, 53, 1000));
    net.ct(&there, &COMMIT);
    net.ct(&back, &LOOK);
    for (step, left) in [(999_999, 30 * S - 999_999), (1, 30 * S), (1_500_000, 30 * S), (500_000, 30 * S - 500_000)] {
        net.now_ns += step;
        assert_eq!(net.together(&[(&back, &LOOK)]), ["est+rpl"]);
        assert_eq!(net.ct.dump(net.now_ns)[0].left_ns, left);
    }
    net.wait(30);
    assert_eq!(net.together(&[(&back, &LOOK)]), ["new"]);
}

#[test]
fn icmp_queries_and_answers() {
    for (a, b) in [(A, B), (B, A), (A6, B6), (B6, A6)] {
        let mut net = Net::new();
        assert_eq!(net.ct(&echo(b, a, 7, true), &COMMIT), "inv", "nobody asked");
        assert_eq!(net.ct(&echo(a, b, 7, false), &COMMIT), "new");
        assert_eq!(net.ct(&echo(a, b, 7, false), &LOOK), "new");
        assert_eq!(net.ct(&echo(b, a, 8, true), &LOOK), "inv", "another identifier");
        assert_eq!(net.ct(&echo(b, a, 7, true), &LOOK), "est+rpl");
        assert_eq!(net.ct(&echo(a, b, 7, false), &LOOK), "est");
        assert_eq!(net.ct(&echo(b, a, 7, false), &LOOK), "new", "a ping in the other direction is another connection");
        assert_eq!(net.ct(&echo(a, b, 7, true), &LOOK), "inv");
    }
    let (ask, answer) = (&echo(A, B, 7, false)[..], &echo(B, A, 7, true)[..]);
    assert_eq!(after(&[ask], 59, answer), "est+rpl");
    assert_eq!(after(&[ask], 60, answer), "inv");
    assert_eq!(after(&[ask, answer], 29, answer), "est+rpl");
    assert_eq!(after(&[ask, answer], 30, answer), "inv");
}

#[test]
fn other_icmp_queries() {
    for (ask, answer) in [(13, 14), (15, 16)] {
        let mut net = Net::new();
        let message = |src, dst, kind| icmp(src, dst, kind, 0, [0, 9, 0, 1], &[0; 12]);
        assert_eq!(net.ct(&message(A, B, ask), &COMMIT), "new");
        assert_eq!(net.ct(&message(B, A, answer), &LOOK), "est+rpl");
        assert_eq!(net.ct(&echo(B, A, 9, true), &LOOK), "inv");
    }
}

#[test]
fn a_host_may_ping_itself() {
    let mut net = Net::new();
    assert_eq!(net.ct(&echo(A, A, 7, false), &COMMIT), "new");
    assert_eq!(net.ct(&echo(A, A, 7, true), &LOOK), "est+rpl");
}

#[test]
fn protocols_without_ports() {
    for proto in [2, 47, 50, 89, 255] {
        for (a, b) in [(A, B), (A6, B6)] {
            let mut net = Net::new();
            let packet = |src, dst| frame(&ip(src, dst, proto, &[1, 2, 3, 4, 5, 6, 7, 8]));
            assert_eq!(net.ct(&packet(a, b), &COMMIT), "new");
            assert_eq!(net.ct(&packet(a, b), &LOOK), "new");
            assert_eq!(net.ct(&packet(b, a), &LOOK), "est+rpl", "protocol {proto}");
        }
    }
    let (there, back) = (&frame(&ip(A, B, 47, &[0; 8]))[..], &frame(&ip(B, A, 47, &[0; 8]))[..]);
    assert_eq!(after(&[there], 59, back), "est+rpl");
    assert_eq!(after(&[there], 60, back), "new");
    assert_eq!(after(&[there, back], 30, back), "new");
}

#[test]
fn what_tells_connections_apart_and_what_does_not() {
    let mut net = Net::new();
    let frame = udp(A, B, 1000, 53);
    net.ct(&frame, &COMMIT);
    assert_eq!(net.ct(&udp(A, B, 1001, 53), &LOOK), "new");
    assert_eq!(net.ct(&udp(B, A, 1000, 53), &LOOK), "new");
    let mut other = frame.clone();
    other[0..12].fill(0x44);
    net.ct(&udp(B, A, 53, 1000), &LOOK);
    assert_eq!(net.ct(&other, &LOOK), "est", "Ethernet addresses do not");
    assert_eq!(net.ct(&tagged(&frame, 5), &LOOK), "est", "the VLAN does not");
}
