//! Random frames: mostly well-formed, of few hosts and ports so that they meet rules and each other, some damaged.

use proptest::prelude::*;

/// A frame and what was done to it.
pub fn frame() -> impl Strategy<Value = Vec<u8>> {
    (packet(), damage()).prop_map(|(mut frame, damage)| {
        match damage {
            Damage::None => {}
            Damage::Cut(len) => frame.truncate(len),
            Damage::Byte(at, value) => {
                let at = at % frame.len().max(1);
                if let Some(byte) = frame.get_mut(at) {
                    *byte = value;
                }
            }
            Damage::Pad(n) => frame.extend(std::iter::repeat_n(0, n)),
        }
        frame
    })
}

#[derive(Clone, Debug)]
enum Damage {
    None,
    Cut(usize),
    Byte(usize, u8),
    Pad(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        6 => Just(Damage::None),
        1 => (0usize..80).prop_map(Damage::Cut),
        2 => (12usize..60, any::<u8>()).prop_map(|(at, value)| Damage::Byte(at, value)),
        1 => (1usize..64).prop_map(Damage::Pad),
    ]
}

fn packet() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop_oneof![4 => Just(None), 1 => (0u16..4, 0u16..8).prop_map(|(vid, pcp)| Some(pcp << 13 | vid))];
    let network = prop_oneof![5 => ipv4(), 2 => ipv6(), 1 => arp(), 1 => other(), 2 => labels(), 2 => tunnels()];
    (0u8..4, 0u8..4, tag, network).prop_map(|(dst, src, tag, (eth_type, payload))| {
        let dst = if dst == 3 { [0xff; 6] } else { [2, 0, 0, 0, 0, dst] };
        let mut frame = dst.to_vec();
        frame.extend([2, 0, 0, 0, 0, src]);
        if let Some(tci) = tag {
            frame.extend([0x81, 0]);
            frame.extend(tci.to_be_bytes());
        }
        frame.extend(eth_type.to_be_bytes());
        frame.extend(payload);
        frame
    })
}

fn ipv4() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let frag = prop_oneof![8 => Just(0u16), 1 => Just(0x2000), 1 => Just(0x2001), 1 => Just(3)];
    (1u8..4, 1u8..4, 0u8..4, any::<bool>(), frag, transport(false)).prop_map(
        |(src, dst, ttl, options, frag, (proto, payload))| {
            let ihl = if options { 6 } else { 5 };
            let len = (ihl * 4 + payload.len()) as u16;
            let mut ip = vec![0x40 | ihl as u8, 0, (len >> 8) as u8, len as u8, 0, 7];
            ip.extend(frag.to_be_bytes());
            ip.extend([ttl, proto, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
            if options {
                ip.extend([1, 1, 1, 0]);
            }
            let sum = checksum(&ip, 0);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            let pseudo = [10, 0, 0, src, 10, 0, 0, dst, 0, proto, (payload.len() >> 8) as u8, payload.len() as u8];
            ip.extend(with_checksum(proto, payload, &pseudo));
            (0x0800, ip)
        },
    )
}

fn ipv6() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let extension = prop_oneof![4 => Just(0u8), 1 => Just(1), 1 => Just(2), 1 => Just(3)];
    (1u8..4, 1u8..4, 0u8..4, extension, transport(true)).prop_map(|(src, dst, hops, extension, (proto, payload))| {
        let address = |last: u8| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        let mut pseudo = [address(src), address(dst)].concat();
        pseudo.extend([0, 0, (payload.len() >> 8) as u8, payload.len() as u8, 0, 0, 0, proto]);
        let payload = with_checksum(proto, payload, &pseudo);
        let (next, before): (u8, Vec<u8>) = match extension {
            1 => (0, vec![proto, 0, 1, 4, 0, 0, 0, 0]),
            2 => (44, vec![proto, 0, 0, 1, 0, 0, 0, 9]),
            3 => (44, vec![proto, 0, 0, 9, 0, 0, 0, 9]),
            _ => (proto, vec![]),
        };
        let len = (before.len() + payload.len()) as u16;
        let mut ip = vec![0x60, 0x10, 0, 5, (len >> 8) as u8, len as u8, next, hops];
        ip.extend(address(src));
        ip.extend(address(dst));
        ip.extend(before);
        ip.extend(payload);
        (0x86dd, ip)
    })
}

fn transport(v6: bool) -> impl Strategy<Value = (u8, Vec<u8>)> {
    let ports = (1u16..4, 1u16..4);
    let tcp = (ports.clone(), 0u8..64, 0u32..3, 0u32..3).prop_map(|((src, dst), flags, seq, ack)| {
        let mut tcp = [src.to_be_bytes(), dst.to_be_bytes()].concat();
        tcp.extend((1000 + seq).to_be_bytes());
        tcp.extend((1000 + ack).to_be_bytes());
        tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        (6, tcp)
    });
    let udp = ports.prop_map(|(src, dst)| {
        let mut udp = [src.to_be_bytes(), dst.to_be_bytes()].concat();
        udp.extend([0, 12, 0, 0, b'p', b'i', b'p', b'e']);
        (17, udp)
    });
    let icmp = (prop_oneof![Just(8u8), Just(0), Just(128), Just(129), Just(3)], 0u8..2, 0u8..3)
        .prop_map(move |(kind, code, id)| (if v6 { 58 } else { 1 }, vec![kind, code, 0, 0, 0, id, 0, 1]));
    let odd = prop_oneof![Just((47u8, vec![0; 8])), Just((132, vec![0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0]))];
    prop_oneof![4 => tcp, 4 => udp, 2 => icmp, 1 => odd]
}

fn arp() -> impl Strategy<Value = (u16, Vec<u8>)> {
    (1u8..3, 1u8..4, 1u8..4).prop_map(|(op, spa, tpa)| {
        let mut arp = vec![0, 1, 8, 0, 6, 4, 0, op, 2, 0, 0, 0, 0, spa, 10, 0, 0, spa];
        arp.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, tpa]);
        (0x0806, arp)
    })
}

fn other() -> impl Strategy<Value = (u16, Vec<u8>)> {
    prop_oneof![
        Just((0x88b5, vec![0; 46])),
        Just((38, vec![0x42, 0x42, 3, 0, 0, 0, 0, 0])),
        Just((38, vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45, 0])),
        Just((0x8100, vec![0, 1, 0x81, 0, 0, 2, 8, 0, 0x45])),
        Just((0x88a8, vec![0, 1, 0x81, 0, 0, 2, 0x88, 0xb5, 1, 2, 3, 4, 5, 6])),
    ]
}

/// MPLS, up to four labels, before IPv4 or nothing.
fn labels() -> impl Strategy<Value = (u16, Vec<u8>)> {
    (0usize..5, 0u8..4, ipv4(), any::<bool>()).prop_map(|(n, ttl, (_, ip), multicast)| {
        let label = |k: usize| [0, 0, 0x10 | u8::from(k + 1 == n), ttl];
        let mut payload: Vec<u8> = (0..n).flat_map(label).collect();
        payload.extend(ip);
        (if multicast { 0x8848 } else { 0x8847 }, payload)
    })
}

/// Frames and packets in tunnels over IPv4, and neighbour discovery.
fn tunnels() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let inner = prop_oneof![2 => ipv4(), 1 => ipv6(), 1 => arp()];
    (0u8..6, inner, any::<bool>(), 0u8..8).prop_map(|(kind, (eth_type, inner), sum, flags)| {
        let frame = [&[2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 6], &eth_type.to_be_bytes()[..], &inner].concat();
        let udp = |port: u16, payload: Vec<u8>| {
            let len = (payload.len() as u16 + 8).to_be_bytes();
            (17, [&[0x9c, 0x40], &port.to_be_bytes()[..], &len, &[0, u8::from(sum)], &payload].concat())
        };
        let (proto, payload) = match kind {
            0 => udp(4789, [&[8, 0, 0, 0, 0, 0, 7, 0], &frame[..]].concat()),
            1 => udp(6081, [&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 0, 1, 2, 0], &frame[..]].concat()),
            2 => (
                47,
                [&[flags << 4, 0], &eth_type.to_be_bytes()[..], &vec![0; flags.count_ones() as usize * 4], &inner]
                    .concat(),
            ),
            3 => {
                let optional =
                    if flags & 7 != 0 { vec![0, 1, 0, if flags & 4 != 0 { 0x85 } else { 0 }] } else { vec![] };
                let extension = if flags & 4 != 0 { vec![1, 16, 5, 0] } else { vec![] };
                let head = [0x30 | flags, 255, 0, 0, 0, 0, 0, 7];
                udp(2152, [&head[..], &optional, &extension, &inner].concat())
            }
            4 => udp(6081, [&[0, 0], &eth_type.to_be_bytes()[..], &[0, 0, 7, 0], &inner].concat()),
            _ => return (0x86dd, discovery(flags)),
        };
        let len = (payload.len() as u16 + 20).to_be_bytes();
        let mut ip = vec![0x45, 0, len[0], len[1], 0, 7, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let checksum = checksum(&ip, 0);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        ip.extend(payload);
        (0x0800, ip)
    })
}

/// A neighbour's solicitation or advertisement with some options.
fn discovery(flags: u8) -> Vec<u8> {
    let mut message = vec![135 + (flags & 1), 0, 0, 0, 0, 0, 0, 0];
    message.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    for kind in [1, 2, flags] {
        if flags & kind != 0 {
            message.extend([kind, 1, 2, 0, 0, 0, 0, 1]);
        }
    }
    let mut ip = vec![0x60, 0, 0, 0, 0, message.len() as u8, 58, 255];
    ip.extend([0xfd; 32]);
    let mut pseudo = [0xfd; 40].to_vec();
    pseudo[32..].copy_from_slice(&[0, 0, 0, message.len() as u8, 0, 0, 0, 58]);
    ip.extend(with_checksum(58, message, &pseudo));
    ip
}

fn with_checksum(proto: u8, mut payload: Vec<u8>, pseudo: &[u8]) -> Vec<u8> {
    let (at, covered) = match proto {
        6 => (16, pseudo),
        17 => (6, pseudo),
        58 => (2, pseudo),
        1 => (2, &[][..]),
        _ => return payload,
    };
    let sum = checksum(&payload, sum(covered));
    payload[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    payload
}

fn sum(data: &[u8]) -> u32 {
    data.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum()
}

/// The Internet checksum (RFC 1071) of data behind a partial sum.
pub fn checksum(data: &[u8], start: u32) -> u16 {
    let mut sum = sum(data) + start;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
