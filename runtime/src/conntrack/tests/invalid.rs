//! Packets that no connection can contain.

use super::frames::*;
use super::*;
use crate::conntrack::Invalid;
use crate::conntrack::checksum::Sum;

/// The reason a frame is invalid for, if it is.
fn reason(frame: &[u8]) -> Option<Invalid> {
    let mut net = Net::new();
    let state = net.ct(frame, &mark(1));
    let stats = net.ct.stats();
    let reasons: Vec<_> = Invalid::ALL.into_iter().filter(|&reason| stats.invalid(reason) > 0).collect();
    assert_eq!(reasons.len(), usize::from(state == "inv"), "{state}");
    assert_eq!(net.ct.len(), usize::from(state != "inv"));
    reasons.first().copied()
}

const SYN_FRAME: Tcp =
    Tcp { src: A, dst: B, from: 5, to: 6, flags: SYN, seq: 1, ack: 0, window: 9, options: OPTIONS, len: 0 };

/// Changes a frame, then makes the IP header's checksum right again.
fn with_ip(frame: &[u8], change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut frame = frame.to_vec();
    change(&mut frame);
    frame[24..26].fill(0);
    let sum = (!Sum::default().slice(&frame[14..34]).fold()).to_ne_bytes();
    frame[24..26].copy_from_slice(&sum);
    frame
}

/// Changes a byte.
fn with(frame: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut frame = frame.to_vec();
    assert_ne!(frame[at], byte);
    frame[at] = byte;
    frame
}

#[test]
fn frames_and_ip_headers() {
    let good = udp(A, B, 1, 2);
    assert_eq!(reason(&good), None);
    assert_eq!(reason(&with(&good, 13, 6)), Some(Invalid::NotIp));
    assert_eq!(reason(&tagged(&tagged(&good, 1), 2)), Some(Invalid::NotIp), "one tag is looked behind");
    assert_eq!(reason(&with(&good, 24, 0)), Some(Invalid::IpChecksum));
    assert_eq!(reason(&with_ip(&good, |f| f[14] = 0x44)), Some(Invalid::IpHeader));
    assert_eq!(reason(&with_ip(&good, |f| f[14] = 0x4f)), Some(Invalid::IpHeader));
    assert_eq!(reason(&with_ip(&good, |f| f[17] = 47)), Some(Invalid::IpHeader), "longer than the frame");
    assert_eq!(reason(&with_ip(&good, |f| f[17] = 19)), Some(Invalid::IpHeader));
    assert_eq!(reason(&with_ip(&good, |f| f[20] = 0x20)), Some(Invalid::Fragment));
    assert_eq!(reason(&with_ip(&good, |f| f[21] = 1)), Some(Invalid::Fragment));
    assert_eq!(reason(&with_ip(&good, |f| f[20] = 0x40)), None, "do not fragment");
    assert_eq!(reason(&with_ip(&good, |f| f[14] = 0x75)), None, "the version is not checked");
    assert_eq!(reason(&with_ip(&good, |f| f[22] = 0)), None, "nor the TTL");
    assert_eq!(reason(&with(&udp(A6, B6, 1, 2), 18, 9)), Some(Invalid::IpHeader), "longer than the frame");
    let fragment = [&[17, 0, 0, 1, 0, 0, 0, 9][..], &[0; 16]].concat();
    assert_eq!(reason(&frame(&ip(A6, B6, 44, &fragment))), Some(Invalid::Fragment));
}

#[test]
fn ip_options_and_extension_headers_are_skipped() {
    let udp = udp_bytes(A, B, 1, 2, b"x");
    let mut packet = ip(A, B, 17, &[&[1u8, 1, 1, 0][..], &udp].concat());
    packet[0] = 0x46;
    packet[10..12].fill(0);
    let sum = (!Sum::default().slice(&packet[..24]).fold()).to_ne_bytes();
    packet[10..12].copy_from_slice(&sum);
    assert_eq!(reason(&frame(&packet)), None);
    packet[20] = 7;
    assert_eq!(reason(&frame(&packet)), Some(Invalid::IpChecksum), "options are summed too");
    let udp = udp_bytes(A6, B6, 1, 2, b"x");
    assert_eq!(reason(&frame(&ip(A6, B6, 0, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp].concat()))), None);
    assert_eq!(reason(&frame(&ip(A6, B6, 44, &[&[17, 0, 0, 0, 0, 0, 0, 0][..], &udp].concat()))), None, "atomic");
}

#[test]
fn udp_lengths_ports_and_checksums() {
    for (a, b, at) in [(A, B, 34), (A6, B6, 54)] {
        let good = udp(a, b, 1, 2);
        assert_eq!(reason(&good), None);
        assert_eq!(reason(&with(&good, at + 5, 7)), Some(Invalid::Length));
        assert_eq!(reason(&with(&good, at + 5, 14)), Some(Invalid::Length));
        assert_eq!(reason(&with(&good, at + 6, !good[at + 6])), Some(Invalid::Checksum));
        assert_eq!(reason(&with(&good, at + 9, 0)), Some(Invalid::Checksum), "payload");
        assert_eq!(reason(&udp(a, b, 0, 2)), Some(Invalid::PortZero));
        assert_eq!(reason(&udp(a, b, 1, 0)), Some(Invalid::PortZero));
        let mut unsummed = good.clone();
        unsummed[at + 6..at + 8].fill(0);
        assert_eq!(reason(&unsummed), if a == A { None } else { Some(Invalid::Checksum) });
        let short = frame(&ip(a, b, 17, &udp_bytes(a, b, 1, 2, b"hello")[..7]));
        assert_eq!(reason(&short), Some(Invalid::Length));
        let trailing = [udp_bytes(a, b, 1, 2, b"hello"), vec![9; 5]].concat();
        assert_eq!(reason(&frame(&ip(a, b, 17, &trailing))), Some(Invalid::Checksum), "bytes behind the datagram");
    }
}

#[test]
fn tcp_lengths_ports_and_checksums() {
    for (a, b, at) in [(A, B, 34), (A6, B6, 54)] {
        let syn = Tcp { src: a, dst: b, ..SYN_FRAME };
        let good = syn.frame();
        assert_eq!(reason(&good), None);
        assert_eq!(reason(&with(&good, at + 12, 0x40)), Some(Invalid::Length));
        assert_eq!(reason(&with(&good, at + 12, 0x80)), Some(Invalid::Length));
        assert_eq!(reason(&with(&good, at + 16, !good[at + 16])), Some(Invalid::Checksum));
        assert_eq!(reason(&with(&good, at + 25, 9)), Some(Invalid::Checksum), "options");
        assert_eq!(reason(&Tcp { from: 0, ..syn }.frame()), Some(Invalid::PortZero));
        assert_eq!(reason(&Tcp { to: 0, ..syn }.frame()), Some(Invalid::PortZero));
        for len in [0, 1, 5, 6, 7, 100, 127, 128, 129, 1459, 1460] {
            let data = Tcp { flags: ACK, len, options: &[], ..syn }.frame();
            assert_eq!(reason(&data), None, "{len} bytes");
            if len > 0 {
                let last = at + 20 + len - 1;
                assert_eq!(reason(&with(&data, last, 0)), Some(Invalid::Checksum), "{len} bytes");
            }
        }
        assert_eq!(reason(&frame(&ip(a, b, 6, &syn.bytes()[..19]))), Some(Invalid::Length));
    }
}

#[test]
fn t1_flags_that_make_no_sense() {
    for flags in 0..64u8 {
        let has = |bits: u8| flags & bits != 0;
        let torn = has(SYN) && has(RST | FIN);
        let silent = !has(SYN | ACK | RST);
        let naked = has(FIN | PSH | URG) && !has(ACK);
        let expected = if torn || silent || naked {
            Some(Invalid::TcpFlags)
        } else if has(SYN) && has(ACK) {
            Some(Invalid::TcpOpening)
        } else {
            None
        };
        for (src, dst) in [(A, B), (A6, B6)] {
            assert_eq!(reason(&Tcp { src, dst, flags, ..SYN_FRAME }.frame()), expected, "flags {flags:#x}");
            assert_eq!(reason(&Tcp { src, dst, flags: flags | 0xc0, ..SYN_FRAME }.frame()), expected, "ECN");
        }
    }
}

#[test]
fn icmp_types_codes_and_checksums() {
    let good = echo(A, B, 7, false);
    assert_eq!(reason(&with(&good, 36, !good[36])), Some(Invalid::Checksum));
    assert_eq!(reason(&frame(&ip(A, B, 1, &icmp_bytes(A, B, 8, 0, [0; 4], &[])[..7]))), Some(Invalid::Length));
    assert_eq!(reason(&icmp(A, B, 8, 1, [0; 4], &[])), Some(Invalid::IcmpType));
    for kind in [9, 10, 17, 18, 30, 255] {
        assert_eq!(reason(&icmp(A, B, kind, 0, [0; 4], &[0; 20])), Some(Invalid::IcmpType), "type {kind}");
    }
    for kind in [130, 131, 132, 133, 134, 135, 136, 137, 143] {
        assert_eq!(reason(&icmp(A6, B6, kind, 0, [0; 4], &[0; 20])), Some(Invalid::IcmpType), "type {kind}");
    }
    for kind in [0, 14, 16] {
        assert_eq!(reason(&icmp(A, B, kind, 0, [0; 4], &[0; 20])), Some(Invalid::IcmpAnswer), "type {kind}");
    }
    assert_eq!(reason(&icmp(A, B, 3, 0, [0; 4], &[0; 28])), Some(Invalid::IcmpError));
    let good = echo(A6, B6, 7, false);
    assert_eq!(reason(&with(&good, 61, !good[61])), Some(Invalid::Checksum));
    assert_eq!(reason(&frame(&ip(A6, B6, 1, &[8, 0, 0xf7, 0xff, 0, 0, 0, 0]))), Some(Invalid::IcmpType));
    assert_eq!(reason(&frame(&ip(A, B, 58, &[128, 0, 0, 0, 0, 0, 0, 0]))), None, "not ICMPv6 over IPv4");
}

#[test]
fn sctp_chunks_and_checksum() {
    let packet = |from: u16, chunk: &[u8]| {
        let mut sctp = [&from.to_be_bytes()[..], &[0, 9, 1, 2, 3, 4, 0, 0, 0, 0], chunk].concat();
        let mut crc = !0u32;
        for &byte in &sctp {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
            }
        }
        sctp[8..12].copy_from_slice(&(!crc).to_le_bytes());
        sctp
    };
    let good = packet(7, &[1, 0, 0, 6, 0, 0, 0, 0]);
    assert_eq!(reason(&frame(&ip(A, B, 132, &good))), None);
    assert_eq!(reason(&frame(&ip(A6, B6, 132, &good))), None, "no pseudo header");
    assert_eq!(reason(&frame(&ip(A, B, 132, &with(&good, 4, 9)))), Some(Invalid::Checksum));
    assert_eq!(reason(&frame(&ip(A, B, 132, &packet(0, &[1, 0, 0, 4])))), Some(Invalid::PortZero));
    for chunk in [&[1u8, 0, 0, 3][..], &[1, 0, 0, 8], &[1, 0, 0], &[]] {
        assert_eq!(reason(&frame(&ip(A, B, 132, &packet(7, chunk)))), Some(Invalid::Length));
    }
    let mut net = Net::new();
    net.ct(&frame(&ip(A, B, 132, &packet(7, &[1, 0, 0, 4]))), &COMMIT);
    assert_eq!(net.ct(&frame(&ip(A, B, 132, &packet(8, &[1, 0, 0, 4]))), &LOOK), "new", "ports tell them apart");
}

#[test]
fn padding_takes_no_part() {
    for len in 0..20 {
        let mut frame = Tcp { flags: ACK, len, options: &[], ..SYN_FRAME }.frame();
        for more in [0, 1, 255, 256, 1400] {
            frame.resize(frame.len() + more, 0x77);
            assert_eq!(reason(&frame), None, "{len} bytes and {more} of padding");
        }
    }
}

#[test]
fn every_truncation_survives_and_is_invalid() {
    let frames = [
        udp(A, B, 1, 2),
        udp(A6, B6, 1, 2),
        SYN_FRAME.frame(),
        Tcp { src: A6, dst: B6, ..SYN_FRAME }.frame(),
        echo(A, B, 7, false),
        echo(A6, B6, 7, false),
        tagged(&udp(A, B, 1, 2), 5),
        frame(&ip(A6, B6, 0, &[&[17, 0, 1, 4, 0, 0, 0, 0][..], &udp_bytes(A6, B6, 1, 2, b"x")].concat())),
        icmp(R, A, 3, 1, [0; 4], &ip(A, B, 17, &udp_bytes(A, B, 1, 2, b"question"))),
        icmp(R6, A6, 1, 0, [0; 4], &ip(A6, B6, 17, &udp_bytes(A6, B6, 1, 2, b"question"))),
    ];
    for frame in &frames {
        let l3 = if frame[12] == 0x81 { 18 } else { 14 };
        let end = if frame[l3] >> 4 == 4 {
            l3 + usize::from(u16::from_be_bytes([frame[l3 + 2], frame[l3 + 3]]))
        } else {
            l3 + 40 + usize::from(u16::from_be_bytes([frame[l3 + 4], frame[l3 + 5]]))
        };
        for len in 0..end {
            assert!(reason(&frame[..len]).is_some(), "{len} of {end} bytes");
        }
    }
}

#[test]
fn every_byte_may_be_wrong() {
    // Whatever the bytes are: an answer, and no connection where the answer is `inv`.
    let frames = [udp(A, B, 1, 2), SYN_FRAME.frame(), Tcp { src: A6, dst: B6, ..SYN_FRAME }.frame()];
    for frame in &frames {
        for at in 12..frame.len() {
            for byte in [0, 1, 0x0f, 0x7f, 0x80, 0xff] {
                let mut other = frame.clone();
                other[at] = byte;
                let mut net = Net::with(Config { max_conns: 4, ..Config::default() });
                let state = net.ct(&other, &COMMIT);
                assert_eq!(net.ct.len(), usize::from(state == "new"), "byte {at} = {byte:#x}");
            }
        }
    }
}

#[test]
fn an_invalid_packet_shows_no_mark_and_changes_nothing() {
    let mut net = Net::new();
    let good = udp(A, B, 1000, 53);
    net.ct(&good, &mark(5));
    let view = net.view(&with(&good, 45, 0), &mark(6), 3);
    assert_eq!((words(view.state), view.zone, view.mark, view.label), ("inv".into(), 3, 0, [0; 2]));
    assert_eq!(net.view(&good, &LOOK, 0).mark, 5);
}
