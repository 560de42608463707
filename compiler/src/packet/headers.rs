//! The headers that packets can be written with, and their parts.

use crate::field::Kind;

/// A header that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Header {
    Eth,
    Vlan,
    Arp,
    Ipv4,
    Ipv6,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmpv6,
}

/// A part of a header: name, kind, width, and what it is if not given; none: it follows from the rest.
pub type Part<'n> = (&'n str, Kind, u8, Option<u128>);

const MAC_A: u128 = 0x0200_0000_0001;
const MAC_B: u128 = 0x0200_0000_0002;
/// 192.0.2.1 and 192.0.2.2, for documentation (RFC 5737).
const V4_A: u128 = 0xc000_0201;
const V4_B: u128 = 0xc000_0202;
/// 2001:db8::1 and 2001:db8::2, for documentation (RFC 3849).
const V6_A: u128 = 0x2001_0db8 << 96 | 1;
const V6_B: u128 = 0x2001_0db8 << 96 | 2;

/// The Ethernet header that a packet has without `eth`.
pub const DEFAULT_ETH: [Option<u128>; 3] = [Some(MAC_B), Some(MAC_A), None];

/// Names of headers, and their parts.
pub const HEADERS: &[(&str, Header, &[Part<'static>])] = &[
    (
        "eth",
        Header::Eth,
        &[("dst", Kind::Mac, 48, Some(MAC_B)), ("src", Kind::Mac, 48, Some(MAC_A)), ("type", Kind::Number, 16, None)],
    ),
    (
        "vlan",
        Header::Vlan,
        &[
            ("vid", Kind::Number, 12, Some(0)),
            ("pcp", Kind::Number, 3, Some(0)),
            ("dei", Kind::Number, 1, Some(0)),
            ("tpid", Kind::Number, 16, Some(0x8100)),
            ("type", Kind::Number, 16, None),
        ],
    ),
    (
        "arp",
        Header::Arp,
        &[
            ("op", Kind::Number, 16, Some(1)),
            ("spa", Kind::Ipv4, 32, Some(V4_A)),
            ("tpa", Kind::Ipv4, 32, Some(V4_B)),
            ("sha", Kind::Mac, 48, Some(MAC_A)),
            ("tha", Kind::Mac, 48, Some(0)),
        ],
    ),
    (
        "ipv4",
        Header::Ipv4,
        &[
            ("src", Kind::Ipv4, 32, Some(V4_A)),
            ("dst", Kind::Ipv4, 32, Some(V4_B)),
            ("ttl", Kind::Number, 8, Some(64)),
            ("proto", Kind::Number, 8, None),
            ("dscp", Kind::Number, 6, Some(0)),
            ("ecn", Kind::Number, 2, Some(0)),
            ("id", Kind::Number, 16, Some(0)),
            ("df", Kind::Number, 1, Some(0)),
            ("mf", Kind::Number, 1, Some(0)),
            ("offset", Kind::Number, 13, Some(0)),
            ("len", Kind::Number, 16, None),
            ("ihl", Kind::Number, 4, Some(5)),
            ("version", Kind::Number, 4, Some(4)),
            ("csum", Kind::Number, 16, None),
        ],
    ),
    (
        "ipv6",
        Header::Ipv6,
        &[
            ("src", Kind::Ipv6, 128, Some(V6_A)),
            ("dst", Kind::Ipv6, 128, Some(V6_B)),
            ("hop_limit", Kind::Number, 8, Some(64)),
            ("proto", Kind::Number, 8, None),
            ("dscp", Kind::Number, 6, Some(0)),
            ("ecn", Kind::Number, 2, Some(0)),
            ("label", Kind::Number, 20, Some(0)),
            ("len", Kind::Number, 16, None),
            ("version", Kind::Number, 4, Some(6)),
        ],
    ),
    (
        "tcp",
        Header::Tcp,
        &[
            ("src", Kind::Number, 16, Some(40_000)),
            ("dst", Kind::Number, 16, Some(80)),
            ("flags", Kind::Flags, 12, Some(0x002)),
            ("seq", Kind::Number, 32, Some(0)),
            ("ack", Kind::Number, 32, Some(0)),
            ("win", Kind::Number, 16, Some(64_240)),
            ("doff", Kind::Number, 4, Some(5)),
            ("csum", Kind::Number, 16, None),
        ],
    ),
    (
        "udp",
        Header::Udp,
        &[
            ("src", Kind::Number, 16, Some(40_000)),
            ("dst", Kind::Number, 16, None),
            ("len", Kind::Number, 16, None),
            ("csum", Kind::Number, 16, None),
        ],
    ),
    (
        "sctp",
        Header::Sctp,
        &[
            ("src", Kind::Number, 16, Some(40_000)),
            ("dst", Kind::Number, 16, Some(2_905)),
            ("tag", Kind::Number, 32, Some(0)),
            ("csum", Kind::Number, 32, None),
        ],
    ),
    (
        "icmp",
        Header::Icmp,
        &[
            ("type", Kind::Number, 8, Some(8)),
            ("code", Kind::Number, 8, Some(0)),
            ("id", Kind::Number, 16, Some(1)),
            ("seq", Kind::Number, 16, Some(1)),
            ("csum", Kind::Number, 16, None),
        ],
    ),
    (
        "icmpv6",
        Header::Icmpv6,
        &[
            ("type", Kind::Number, 8, Some(128)),
            ("code", Kind::Number, 8, Some(0)),
            ("id", Kind::Number, 16, Some(1)),
            ("seq", Kind::Number, 16, Some(1)),
            ("csum", Kind::Number, 16, None),
        ],
    ),
];

/// Names of the parts of a header; none for what is no header.
pub fn parts(header: &str) -> impl Iterator<Item = &'static str> {
    let known = HEADERS.iter().find(|(name, ..)| *name == header);
    known.into_iter().flat_map(|(_, _, parts)| parts.iter().map(|(name, ..)| *name))
}
