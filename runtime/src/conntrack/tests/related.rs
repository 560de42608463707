//! ICMP errors and the connections they are about.

use core::net::IpAddr;

use super::frames::*;
use super::*;

/// An error from `router` about a packet.
fn error(router: IpAddr, to: IpAddr, kind: u8, packet: &[u8]) -> Vec<u8> {
    icmp(router, to, kind, 1, [0; 4], packet)
}

/// A UDP connection from A to B, answered.
fn net(a: IpAddr, b: IpAddr) -> (Net, Vec<u8>, Vec<u8>) {
    let mut net = Net::new();
    let there = ip(a, b, 17, &udp_bytes(a, b, 1000, 53, b"question"));
    let back = ip(b, a, 17, &udp_bytes(b, a, 53, 1000, b"answer"));
    net.ct(&frame(&there), &mark(5));
    net.ct(&frame(&back), &LOOK);
    (net, there, back)
}

#[test]
fn errors_are_related_whoever_sends_them() {
    for (a, b, router, kinds) in [(A, B, R, &[3u8, 4, 5, 11, 12][..]), (A6, B6, R6, &[1, 2, 3, 4])] {
        let (mut net, there, back) = net(a, b);
        for &kind in kinds {
            for sender in [router, b] {
                assert_eq!(net.ct(&error(sender, a, kind, &there), &LOOK), "rel+rpl", "type {kind}");
            }
            assert_eq!(net.ct(&error(a, b, kind, &back), &LOOK), "rel", "type {kind}");
        }
        assert_eq!(net.view(&error(router, a, kinds[0], &there), &LOOK, 0).mark, 5);
    }
}

#[test]
fn errors_about_nothing_are_invalid_and_make_nothing() {
    let (mut net, there, _) = net(A, B);
    let other = ip(A, B, 17, &udp_bytes(A, B, 1001, 53, b"question"));
    assert_eq!(net.ct(&error(R, A, 3, &other), &COMMIT), "inv");
    assert_eq!(net.ct(&error(R, B, 3, &there), &COMMIT), "inv", "sent to somebody else than the quoted source");
    assert_eq!(words(net.view(&error(R, A, 3, &there), &COMMIT, 9).state), "inv", "another zone");
    assert_eq!(net.ct.len(), 1);
    net.wait(30);
    assert_eq!(net.ct(&error(R, A, 3, &there), &LOOK), "inv", "expired");
}

#[test]
fn errors_do_not_prolong_a_life() {
    let (mut net, there, _) = net(A, B);
    net.wait(20);
    assert_eq!(net.ct(&error(R, A, 3, &there), &COMMIT), "rel+rpl");
    net.wait(10);
    assert_eq!(net.ct(&frame(&there), &LOOK), "new");
}

#[test]
fn eight_transport_bytes_are_enough_for_ipv4() {
    let (mut net, there, _) = net(A, B);
    assert_eq!(net.ct(&error(R, A, 11, &there[..28]), &LOOK), "rel+rpl");
    assert_eq!(net.ct(&error(R, A, 11, &there[..27]), &LOOK), "inv");
    let tcp = Tcp { src: A, dst: B, from: 5, to: 6, flags: SYN, seq: 1, ack: 0, window: 9, options: OPTIONS, len: 0 };
    net.ct(&tcp.frame(), &COMMIT);
    let packet = ip(A, B, 6, &tcp.bytes());
    assert_eq!(net.ct(&error(R, A, 11, &packet[..28]), &LOOK), "rel+rpl");
    let tcp = Tcp { src: A6, dst: B6, ..tcp };
    net.ct(&tcp.frame(), &COMMIT);
    let packet = ip(A6, B6, 6, &tcp.bytes());
    assert_eq!(net.ct(&error(R6, A6, 3, &packet[..60]), &LOOK), "rel+rpl");
    assert_eq!(net.ct(&error(R6, A6, 3, &packet[..59]), &LOOK), "inv", "IPv6 quotes a whole header");
}

#[test]
fn errors_about_pings_and_fragments() {
    let mut net = Net::new();
    let ping = ip(A, B, 1, &icmp_bytes(A, B, 8, 0, [0, 7, 0, 1], b"abcdefgh"));
    net.ct(&frame(&ping), &COMMIT);
    assert_eq!(net.ct(&error(R, A, 11, &ping), &LOOK), "rel+rpl");
    let ping6 = ip(A6, B6, 58, &icmp_bytes(A6, B6, 128, 0, [0, 7, 0, 1], b"abcdefgh"));
    net.ct(&frame(&ping6), &COMMIT);
    assert_eq!(net.ct(&error(R6, A6, 1, &ping6), &LOOK), "rel+rpl");
    let mut first = ping.clone();
    first[6] = 0x20;
    assert_eq!(net.ct(&error(R, A, 11, &first), &LOOK), "rel+rpl", "a first fragment has ports");
    let mut later = ping;
    later[7] = 1;
    assert_eq!(net.ct(&error(R, A, 11, &later), &LOOK), "inv", "a later one has none");
    let nested = ip(R, A, 1, &icmp_bytes(R, A, 3, 1, [0; 4], &later));
    assert_eq!(net.ct(&error(A, R, 3, &nested), &LOOK), "inv", "no errors about errors");
}

#[test]
fn only_the_outer_checksum_counts() {
    let (mut net, mut there, _) = net(A, B);
    there[11] ^= 1;
    there[27] ^= 1;
    assert_eq!(net.ct(&error(R, A, 3, &there), &LOOK), "rel+rpl");
    let mut bad = error(R, A, 3, &there);
    bad[36] ^= 1;
    assert_eq!(net.ct(&bad, &LOOK), "inv");
}

#[test]
fn extension_headers_in_a_quoted_packet() {
    let mut net = Net::new();
    let udp = udp_bytes(A6, B6, 1000, 53, b"question");
    let options = [&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp].concat();
    let packet = ip(A6, B6, 60, &options);
    assert_eq!(net.ct(&frame(&packet), &COMMIT), "new");
    assert_eq!(net.ct(&error(R6, A6, 1, &packet), &LOOK), "rel+rpl");
    assert_eq!(net.ct(&error(R6, A6, 1, &packet[..44]), &LOOK), "inv");
    let first = [&[17, 0, 0, 1, 0, 0, 0, 9][..], &udp].concat();
    assert_eq!(net.ct(&error(R6, A6, 2, &ip(A6, B6, 44, &first)), &LOOK), "rel+rpl");
    let later = [&[17, 0, 0, 9, 0, 0, 0, 9][..], &udp].concat();
    assert_eq!(net.ct(&error(R6, A6, 2, &ip(A6, B6, 44, &later)), &LOOK), "inv");
}
