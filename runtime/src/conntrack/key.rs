//! Keys: the addresses, ports, protocol and zone of a connection, the same words for both of its directions.
//!
//! An endpoint is an address and 16 bits of layer 4. A key holds the lower endpoint before the higher, so a packet and its
//! answer have one key, one hash and one comparison; which of them comes from the lower endpoint is one bit beside the key
//! (`swapped`: the sender is the higher). Ports are the layer-4 bits of TCP, UDP and SCTP; other protocols have zeroes.
//!
//! ICMP queries have no ports but an identifier, and a type that tells question from answer. Their endpoint's layer-4 bits
//! are the type that *it* sends in this exchange; the pair of types follows from one of them, so the place of the other
//! holds the identifier. Two hosts that ping each other with one identifier have two keys, as they must.
//!
//! ```text
//! IPv4  zone·16 lower address·32 lower l4·16 | proto·16 higher address·32 higher l4 or id·16
//! IPv6  lower address·128 | higher address·128 | lower l4·16 higher l4 or id·16 zone·16 proto·16
//! ```

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use pipec_abi::header::proto;

/// Key of an IPv4 connection.
pub type Key4 = [u64; 2];
/// Key of an IPv6 connection.
pub type Key6 = [u64; 5];

const LOW48: u64 = (1 << 48) - 1;

/// What layer 4 adds to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum L4 {
    /// Source and destination port; zeroes for protocols without ports.
    Ports(u16, u16),
    /// Identifier and type of an ICMP query or its answer.
    Icmp(u16, u8),
}

/// One direction of a connection, spelled out: for dumps and tests, not for the packet path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Sender.
    pub src: IpAddr,
    /// Receiver.
    pub dst: IpAddr,
    /// IP protocol.
    pub proto: u8,
    /// Ports, or what ICMP has instead.
    pub l4: L4,
    /// Zone.
    pub zone: u16,
}

impl Tuple {
    /// The other direction.
    pub fn reverse(self) -> Tuple {
        let l4 = match self.l4 {
            L4::Ports(src, dst) => L4::Ports(dst, src),
            L4::Icmp(id, kind) => L4::Icmp(id, icmp_pair(self.proto, kind).unwrap_or(kind)),
        };
        Tuple { src: self.dst, dst: self.src, l4, ..self }
    }
}

/// Whether an ICMP type asks, for those that can be asked or answered; `None` for all others.
#[inline(always)]
pub fn icmp_asks(proto: u8, kind: u8) -> Option<bool> {
    match (proto, kind) {
        (proto::ICMP, 8 | 13 | 15) | (proto::ICMPV6, 128) => Some(true),
        (proto::ICMP, 0 | 14 | 16) | (proto::ICMPV6, 129) => Some(false),
        _ => None,
    }
}

/// The type that answers, or is answered by, an ICMP type.
#[inline(always)]
pub fn icmp_pair(proto: u8, kind: u8) -> Option<u8> {
    match (proto, kind) {
        (proto::ICMP, 0 | 8) => Some(8 - kind),
        (proto::ICMP, 13 | 14) => Some(27 - kind),
        (proto::ICMP, 15 | 16) => Some(31 - kind),
        (proto::ICMPV6, 128 | 129) => Some(1 ^ kind),
        _ => None,
    }
}

/// The key of an IPv4 packet, and whether it was swapped.
#[inline(always)]
pub fn key4(src: u32, dst: u32, l4_src: u16, l4_dst: u16, proto: u8, zone: u16) -> (Key4, bool) {
    let from = u64::from(src) << 16 | u64::from(l4_src);
    let to = u64::from(dst) << 16 | u64::from(l4_dst);
    let swapped = from > to;
    ([from.min(to) | u64::from(zone) << 48, from.max(to) | u64::from(proto) << 48], swapped)
}

/// The key of an ICMP query or answer over IPv4. `pair` is the type on the way back.
#[inline(always)]
pub fn key4_icmp(src: u32, dst: u32, kind: u8, pair: u8, id: u16, zone: u16) -> (Key4, bool) {
    let ([lower, higher], swapped) = key4(src, dst, u16::from(kind), u16::from(pair), proto::ICMP, zone);
    ([lower, higher & !0xffff | u64::from(id)], swapped)
}

/// The key of an IPv6 packet, and whether it was swapped.
#[inline(always)]
pub fn key6(src: u128, dst: u128, l4_src: u16, l4_dst: u16, proto: u8, zone: u16) -> (Key6, bool) {
    let swapped = (src, l4_src) > (dst, l4_dst);
    let ((a, a4), (b, b4)) = if swapped { ((dst, l4_dst), (src, l4_src)) } else { ((src, l4_src), (dst, l4_dst)) };
    let last = u64::from(a4) << 48 | u64::from(b4) << 32 | u64::from(zone) << 16 | u64::from(proto);
    ([(a >> 64) as u64, a as u64, (b >> 64) as u64, b as u64, last], swapped)
}

/// The key of an ICMPv6 query or answer. `pair` is the type on the way back.
#[inline(always)]
pub fn key6_icmp(src: u128, dst: u128, kind: u8, pair: u8, id: u16, zone: u16) -> (Key6, bool) {
    let ([a, b, c, d, last], swapped) = key6(src, dst, u16::from(kind), u16::from(pair), proto::ICMPV6, zone);
    ([a, b, c, d, last & !(0xffff << 32) | u64::from(id) << 32], swapped)
}

/// What both families can do with a key.
pub trait Key: Copy + Eq {
    /// The same connection in another zone.
    fn with_zone(self, zone: u16) -> Self;
    /// The protocol.
    fn proto(&self) -> u8;
    /// The direction in which the higher endpoint sends (`swapped`), or the other.
    fn tuple(&self, swapped: bool) -> Tuple;
}

impl Key for Key4 {
    #[inline(always)]
    fn with_zone(self, zone: u16) -> Key4 {
        [self[0] & LOW48 | u64::from(zone) << 48, self[1]]
    }

    #[inline(always)]
    fn proto(&self) -> u8 {
        (self[1] >> 48) as u8
    }

    fn tuple(&self, swapped: bool) -> Tuple {
        let address = |word: u64| IpAddr::V4(Ipv4Addr::from_bits((word >> 16) as u32));
        let (lower, higher) = ((address(self[0]), self[0] as u16), (address(self[1]), self[1] as u16));
        spell(lower, higher, self.proto(), (self[0] >> 48) as u16, swapped)
    }
}

impl Key for Key6 {
    #[inline(always)]
    fn with_zone(self, zone: u16) -> Key6 {
        let [a, b, c, d, last] = self;
        [a, b, c, d, last & !0xffff_0000 | u64::from(zone) << 16]
    }

    #[inline(always)]
    fn proto(&self) -> u8 {
        self[4] as u8
    }

    fn tuple(&self, swapped: bool) -> Tuple {
        let address = |high: u64, low: u64| IpAddr::V6(Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low)));
        let lower = (address(self[0], self[1]), (self[4] >> 48) as u16);
        let higher = (address(self[2], self[3]), (self[4] >> 32) as u16);
        spell(lower, higher, self.proto(), (self[4] >> 16) as u16, swapped)
    }
}

fn spell(lower: (IpAddr, u16), higher: (IpAddr, u16), proto: u8, zone: u16, swapped: bool) -> Tuple {
    let kind = lower.1 as u8;
    let is_icmp = if lower.0.is_ipv4() { proto == proto::ICMP } else { proto == proto::ICMPV6 };
    let l4 = match is_icmp.then(|| icmp_pair(proto, kind)).flatten() {
        Some(_) => L4::Icmp(higher.1, kind),
        None => L4::Ports(lower.1, higher.1),
    };
    let tuple = Tuple { src: lower.0, dst: higher.0, proto, l4, zone };
    if swapped { tuple.reverse() } else { tuple }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_have_one_key() {
        let (a, sa) = key4(0x0a00_0001, 0xc0a8_0001, 5000, 80, 6, 3);
        let (b, sb) = key4(0xc0a8_0001, 0x0a00_0001, 80, 5000, 6, 3);
        assert_eq!((a, sa, sb), (b, false, true));
        let (a, sa) = key6(1 << 100, 7, 5000, 80, 6, 3);
        let (b, sb) = key6(7, 1 << 100, 80, 5000, 6, 3);
        assert_eq!((a, sa, sb), (b, true, false));
    }

    #[test]
    fn pings_in_opposite_directions_with_one_id_differ() {
        let (one, _) = key4_icmp(1, 2, 8, 0, 77, 0);
        let (two, _) = key4_icmp(2, 1, 8, 0, 77, 0);
        assert_ne!(one, two);
        assert_eq!(one, key4_icmp(2, 1, 0, 8, 77, 0).0);
        assert_ne!(one, key4_icmp(1, 2, 8, 0, 78, 0).0);
        assert_ne!(one, key4_icmp(1, 2, 13, 14, 77, 0).0);
        let (own, asked) = key4_icmp(1, 1, 8, 0, 77, 0);
        assert_eq!((own, !asked), key4_icmp(1, 1, 0, 8, 77, 0));
    }

    #[test]
    fn tuples_come_back_in_both_directions() {
        let tuple = Tuple {
            src: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9)),
            dst: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            proto: 17,
            l4: L4::Ports(53, 1000),
            zone: 0xfff1,
        };
        let (key, swapped) = key4(0x0a00_0009, 0x0a00_0001, 53, 1000, 17, 0xfff1);
        assert_eq!((key.tuple(swapped), key.tuple(!swapped)), (tuple, tuple.reverse()));
        let (key, swapped) = key6_icmp(5, 4, 128, 129, 9, 2);
        assert_eq!((key.tuple(swapped).l4, key.tuple(!swapped).l4), (L4::Icmp(9, 128), L4::Icmp(9, 129)));
        assert_eq!((key.with_zone(7).tuple(false).zone, key.with_zone(7).proto()), (7, 58));
    }
}
