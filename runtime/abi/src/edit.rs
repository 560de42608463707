//! Writing header fields, with every checksum that covers them kept right by incremental update (RFC 1624).
//!
//! A checksum that was wrong stays wrong; a UDP checksum of 0 stays 0 and one that becomes 0 is sent as 0xffff; on later
//! fragments only the IP header's is touched. A write to a header that is not there does nothing.

use crate::header::{self, L3, L4, proto};

macro_rules! targets {
    ($($name:ident $doc:literal,)*) => {
        /// A field that can be written.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Target { $(#[doc = $doc] $name,)* }
        impl Target {
            /// All targets, in the order of their codes.
            pub const ALL: &[Target] = &[$(Target::$name,)*];
        }
    };
}
targets! {
    EthDst "`eth.dst`", EthSrc "`eth.src`", VlanVid "`vlan.vid`", VlanPcp "`vlan.pcp`",
    ArpOp "`arp.op`", ArpSpa "`arp.spa`", ArpTpa "`arp.tpa`", ArpSha "`arp.sha`", ArpTha "`arp.tha`",
    IpDscp "`ip.dscp`", IpEcn "`ip.ecn`", IpTtl "`ip.ttl`", Ipv4Src "`ipv4.src`", Ipv4Dst "`ipv4.dst`",
    Ipv6Src "`ipv6.src`", Ipv6Dst "`ipv6.dst`", Ipv6Label "`ipv6.label`",
    TcpSrc "`tcp.src`", TcpDst "`tcp.dst`", UdpSrc "`udp.src`", UdpDst "`udp.dst`", SctpSrc "`sctp.src`", SctpDst "`sctp.dst`",
    IcmpType "`icmp.type`", IcmpCode "`icmp.code`", Icmpv6Type "`icmpv6.type`", Icmpv6Code "`icmpv6.code`",
    EthType "`eth.type`", Vlan2Vid "`vlan2.vid`", Vlan2Pcp "`vlan2.pcp`", IpProto "`ip.proto`", Ipv4Id "`ipv4.id`",
    TcpSeq "`tcp.seq`", TcpAck "`tcp.ack`", TcpWindow "`tcp.window`", TcpFlags "`tcp.flags`",
    NdTarget "`nd.target`", NdSll "`nd.sll`", NdTll "`nd.tll`",
}

/// What `dec_ttl` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// Decremented, or not IP.
    Ok,
    /// It was 0 or 1 (or the header is malformed and reads 0): the action list stops.
    Expired,
}

/// Writes `value` to a field.
pub fn set(data: &mut [u8], target: Target, value: u128, vlan_limit: u32) {
    let l2 = header::l2(data, vlan_limit);
    let at = l2.end();
    let v6 = l2.eth_type() == header::IPV6;
    match target {
        Target::EthDst => put(data, 0, 6, value),
        Target::EthSrc => put(data, 6, 6, value),
        Target::VlanVid | Target::VlanPcp if l2.tci() == 0 => {}
        Target::VlanVid => set_tag(data, 14, l2.tci(), 0x0fff, value as u16),
        Target::VlanPcp => set_tag(data, 14, l2.tci(), 0xe000, (value as u16) << 13),
        Target::Vlan2Vid | Target::Vlan2Pcp if l2.second_tci() == 0 => {}
        Target::Vlan2Vid => set_tag(data, 18, l2.second_tci(), 0x0fff, value as u16),
        Target::Vlan2Pcp => set_tag(data, 18, l2.second_tci(), 0xe000, (value as u16) << 13),
        Target::EthType if l2.eth_type() == header::NO_TYPE => {}
        Target::EthType => put(data, at - 2, 2, value),
        Target::ArpOp | Target::ArpSpa | Target::ArpTpa | Target::ArpSha | Target::ArpTha => {
            if header::arp(data, l2) {
                let (offset, bytes) = match target {
                    Target::ArpOp => (6, 2),
                    Target::ArpSha => (8, 6),
                    Target::ArpSpa => (14, 4),
                    Target::ArpTha => (18, 6),
                    _ => (24, 4),
                };
                put(data, at + offset, bytes, value);
            }
        }
        Target::IpDscp | Target::IpEcn | Target::IpTtl | Target::Ipv6Label => {
            let l3 = header::l3(data, l2);
            if l3.has_rest() {
                set_ip_rest(data, at, v6, target, value as u32);
            }
        }
        Target::Ipv4Src | Target::Ipv4Dst => {
            let l3 = header::l3(data, l2);
            if l3.has_addresses() && !v6 {
                let offset = if target == Target::Ipv4Src { 12 } else { 16 };
                set_covered(data, at + offset, 4, value, Some(at + 10), pseudo_checksum(data, l3));
            }
        }
        Target::Ipv6Src | Target::Ipv6Dst => {
            let l3 = header::l3(data, l2);
            if l3.has_addresses() && v6 {
                let offset = if target == Target::Ipv6Src { 8 } else { 24 };
                let covered = target == Target::Ipv6Src || !routed(data, at);
                let checksum = if covered { pseudo_checksum(data, l3) } else { None };
                set_covered(data, at + offset, 16, value, None, checksum);
            }
        }
        Target::IpProto => set_protocol(data, header::l3(data, l2), at, value),
        Target::Ipv4Id => {
            if header::l3(data, l2).has_rest() && !v6 {
                set_covered(data, at + 4, 2, value, Some(at + 10), None);
            }
        }
        Target::NdTarget | Target::NdSll | Target::NdTll => set_nd(data, header::l3(data, l2), target, value),
        _ => set_transport(data, header::l3(data, l2), target, value),
    }
}

/// Writes the bits of the tag at `at` that `mask` has. It clears bit 12, but a write that changes nothing leaves it (P4).
fn set_tag(data: &mut [u8], at: usize, tci: u16, mask: u16, bits: u16) {
    let bits = bits & mask;
    if tci & mask != bits {
        put(data, at, 2, u128::from(tci & !mask & !0x1000 | bits));
    }
}

/// Decrements TTL or hop limit.
pub fn dec_ttl(data: &mut [u8], vlan_limit: u32) -> Ttl {
    let l2 = header::l2(data, vlan_limit);
    let (at, v6) = (l2.end(), l2.eth_type() == header::IPV6);
    if l2.eth_type() != header::IPV4 && !v6 {
        return Ttl::Ok;
    }
    if !header::l3(data, l2).has_rest() {
        return Ttl::Expired;
    }
    let ttl = data[at + if v6 { 7 } else { 8 }];
    if ttl < 2 {
        return Ttl::Expired;
    }
    set_ip_rest(data, at, v6, Target::IpTtl, u32::from(ttl) - 1);
    Ttl::Ok
}

/// DSCP, ECN, TTL, label: fields that share a byte or word with others. The header is whole.
fn set_ip_rest(data: &mut [u8], at: usize, v6: bool, target: Target, value: u32) {
    if v6 {
        let word = header::load32(data, at) as u32;
        let word = match target {
            Target::IpDscp => word & !0x0fc0_0000 | (value & 0x3f) << 22,
            Target::IpEcn => word & !0x0030_0000 | (value & 3) << 20,
            Target::Ipv6Label => word & !0x000f_ffff | value & 0xf_ffff,
            _ => return put(data, at + 7, 1, u128::from(value)),
        };
        return put(data, at, 4, u128::from(word));
    }
    let (offset, old) =
        if target == Target::IpTtl { (8, header::load16(data, at + 8)) } else { (0, header::load16(data, at)) };
    let old = old as u32;
    let new = match target {
        Target::IpDscp => old & !0xfc | (value & 0x3f) << 2,
        Target::IpEcn => old & !3 | value & 3,
        Target::IpTtl => old & 0xff | value << 8,
        _ => return,
    };
    set_covered(data, at + offset, 2, u128::from(new), Some(at + 10), None);
}

/// The protocol, of IPv6 in the last extension header; not in later fragments of IPv6, which say 44.
fn set_protocol(data: &mut [u8], l3: L3, at: usize, value: u128) {
    if !l3.has_rest() || l3.is_v6() && l3.frag() > 1 {
        return;
    }
    if !l3.is_v6() {
        let word = u128::from(header::load8(data, at + 8)) << 8 | value & 0xff;
        return set_covered(data, at + 8, 2, word, Some(at + 10), None);
    }
    let (mut place, mut header_at) = (at + 6, at + 40);
    while header_at < l3.payload() {
        let len = header::load8(data, header_at + 1) as usize;
        let step = match header::load8(data, place) {
            44 => 8,
            51 => (len + 2) * 4,
            _ => (len + 1) * 8,
        };
        place = header_at;
        header_at += step;
    }
    put(data, place, 1, value);
}

/// Neighbour discovery.
fn set_nd(data: &mut [u8], l3: L3, target: Target, value: u128) {
    let nd = header::nd(data, l3);
    let (at, bytes) = match target {
        Target::NdTarget => (nd.target(), 16),
        Target::NdSll => (nd.sll(), 6),
        _ => (nd.tll(), 6),
    };
    if at != 0 {
        set_covered(data, at, bytes, value, None, Some((l3.payload() + 2, false)));
    }
}

/// Ports, ICMP type and code.
fn set_transport(data: &mut [u8], l3: L3, target: Target, value: u128) {
    let l4 = header::l4(data, l3);
    let (protocol, offset, bytes) = match target {
        Target::TcpSrc => (proto::TCP, 0, 2),
        Target::TcpDst => (proto::TCP, 2, 2),
        Target::TcpSeq => (proto::TCP, 4, 4),
        Target::TcpAck => (proto::TCP, 8, 4),
        Target::TcpFlags => (proto::TCP, 12, 2),
        Target::TcpWindow => (proto::TCP, 14, 2),
        Target::UdpSrc => (proto::UDP, 0, 2),
        Target::UdpDst => (proto::UDP, 2, 2),
        Target::SctpSrc => (proto::SCTP, 0, 2),
        Target::SctpDst => (proto::SCTP, 2, 2),
        Target::IcmpType => (proto::ICMP, 0, 1),
        Target::IcmpCode => (proto::ICMP, 1, 1),
        Target::Icmpv6Type => (proto::ICMPV6, 0, 1),
        _ => (proto::ICMPV6, 1, 1),
    };
    if l3.proto() != protocol || !l4.for_actions() {
        return;
    }
    let at = l4.offset();
    let checksum = match protocol {
        proto::SCTP => return set_sctp_port(data, l3, at + offset, value),
        proto::ICMP | proto::ICMPV6 => {
            let old = header::load16(data, at) as u32;
            let new = if offset == 0 { old & 0xff | (value as u32) << 8 } else { old & 0xff00 | value as u32 & 0xff };
            return set_covered(data, at, 2, u128::from(new), None, Some((at + 2, false)));
        }
        _ => transport_checksum(data, l3, l4),
    };
    let value = match target {
        Target::TcpFlags => u128::from(header::load16(data, at + 12)) & 0xf000 | value & 0xfff,
        _ => value,
    };
    set_covered(data, at + offset, bytes, value, None, checksum);
}

/// Writes a port of SCTP and changes its CRC32c by what the change is worth: the CRC is linear, so a wrong one stays wrong.
fn set_sctp_port(data: &mut [u8], l3: L3, at: usize, value: u128) {
    let start = l3.payload();
    let end = l3.end();
    let before = crc32c_without_checksum(&data[start..end]);
    let stored = u32::from_le_bytes([data[start + 8], data[start + 9], data[start + 10], data[start + 11]]);
    put(data, at, 2, value);
    let after = crc32c_without_checksum(&data[start..end]);
    data[start + 8..start + 12].copy_from_slice(&(stored ^ before ^ after).to_le_bytes());
}

/// CRC32c (RFC 9260 appendix A) of an SCTP packet, its checksum field read as 0.
pub fn crc32c_without_checksum(packet: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for (i, &byte) in packet.iter().enumerate() {
        crc ^= u32::from(if (8..12).contains(&i) { 0 } else { byte });
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 != 0 { 0x82f6_3b78 } else { 0 };
        }
    }
    !crc
}

/// The transport checksum that covers the addresses, and whether 0 means "none".
fn pseudo_checksum(data: &[u8], l3: L3) -> Option<(usize, bool)> {
    match l3.proto() {
        proto::TCP | proto::UDP => transport_checksum(data, l3, header::l4(data, l3)),
        proto::ICMPV6 if l3.is_v6() && header::l4(data, l3).for_actions() => Some((l3.payload() + 2, false)),
        _ => None,
    }
}

fn transport_checksum(data: &[u8], l3: L3, l4: L4) -> Option<(usize, bool)> {
    if !l4.for_actions() {
        return None;
    }
    match l3.proto() {
        proto::TCP => Some((l4.offset() + 16, false)),
        proto::UDP if header::load16(data, l4.offset() + 6) != 0 => Some((l4.offset() + 6, true)),
        _ => None,
    }
}

/// Whether an IPv6 packet at `at` has a routing header with segments left: its checksum covers the last of them, not `dst`.
fn routed(data: &[u8], at: usize) -> bool {
    let (mut next, mut at) = (header::load8(data, at + 6), at + 40);
    for _ in 0..header::MAX_EXTENSIONS {
        match next {
            43 if header::load8(data, at + 3) != 0 => return true,
            0 | 43 | 44 | 51 | 60 => {}
            _ => return false,
        }
        let len = header::load8(data, at + 1) as usize;
        let step = match next {
            44 => 8,
            51 => (len + 2) * 4,
            _ => (len + 1) * 8,
        };
        next = header::load8(data, at);
        at += step;
    }
    false
}

/// Writes `bytes` bytes (an even number) and mends the checksums that cover them.
fn set_covered(data: &mut [u8], at: usize, bytes: usize, value: u128, ip: Option<usize>, l4: Option<(usize, bool)>) {
    let mut change = 0u64;
    for i in (0..bytes).step_by(2) {
        let new = (value >> (8 * (bytes - 2 - i))) as u64 & 0xffff;
        change += (!header::load16(data, at + i) & 0xffff) + new;
    }
    put(data, at, bytes, value);
    if let Some(at) = ip {
        mend(data, at, change, false);
    }
    if let Some((at, zero_is_none)) = l4 {
        mend(data, at, change, zero_is_none);
    }
}

/// RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
pub(crate) fn mend(data: &mut [u8], at: usize, change: u64, zero_is_none: bool) {
    let mut sum = (!header::load16(data, at) & 0xffff) + change;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let sum = !sum & 0xffff;
    put(data, at, 2, u128::from(if sum == 0 && zero_is_none { 0xffff } else { sum }));
}

/// The low `bytes` bytes of `value` at `at`, big-endian; nothing if they do not fit.
fn put(data: &mut [u8], at: usize, bytes: usize, value: u128) {
    if let Some(place) = data.get_mut(at..at + bytes) {
        place.copy_from_slice(&value.to_be_bytes()[16 - bytes..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(data: &[u8], start: u64) -> u64 {
        let mut sum = start;
        for pair in data.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    /// A UDP packet with right checksums.
    fn udp() -> Vec<u8> {
        let mut f = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        f.extend([0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 8, 8, 8, 8]);
        f.extend([4, 0, 0, 53, 0, 12, 0, 0, b'p', b'i', b'p', b'e']);
        let ip = !sum(&f[14..34], 0) as u16;
        f[24..26].copy_from_slice(&ip.to_be_bytes());
        let l4 = !sum(&f[26..46], 17 + 12) as u16;
        f[40..42].copy_from_slice(&l4.to_be_bytes());
        f
    }

    fn sums_are_right(f: &[u8]) -> bool {
        sum(&f[14..34], 0) == 0xffff && sum(&f[26..46], 17 + 12) == 0xffff
    }

    #[test]
    fn checksums_follow_every_write() {
        let mut f = udp();
        assert!(sums_are_right(&f));
        let writes = [
            (Target::Ipv4Src, 0xc0a8_0101),
            (Target::Ipv4Dst, 0x0101_0101),
            (Target::UdpSrc, 5353),
            (Target::UdpDst, 1),
            (Target::IpDscp, 46),
            (Target::IpEcn, 1),
            (Target::IpTtl, 9),
        ];
        for (target, value) in writes {
            set(&mut f, target, value, 1);
            assert!(sums_are_right(&f), "{target:?}");
        }
        assert_eq!(f[15], 46 << 2 | 1);
        assert_eq!(dec_ttl(&mut f, 1), Ttl::Ok);
        assert!(f[22] == 8 && sums_are_right(&f));
    }

    #[test]
    fn what_is_wrong_stays_wrong_and_no_checksum_stays_none() {
        let mut f = udp();
        f[40..42].copy_from_slice(&[0, 0]);
        f[24] ^= 1;
        set(&mut f, Target::Ipv4Dst, 0x0a0b_0c0d, 1);
        assert_eq!(f[40..42], [0, 0]);
        assert_ne!(sum(&f[14..34], 0), 0xffff);
    }

    #[test]
    fn payload_of_later_fragments_is_left_alone() {
        let mut f = udp();
        f[21] = 1;
        let payload = f[34..].to_vec();
        set(&mut f, Target::Ipv4Src, 0x0102_0304, 1);
        set(&mut f, Target::UdpSrc, 9, 1);
        assert_eq!(f[34..], payload[..]);
    }

    #[test]
    fn absent_headers_take_no_write() {
        let mut f = udp();
        let before = f.clone();
        for target in [Target::VlanVid, Target::ArpOp, Target::Ipv6Src, Target::TcpDst, Target::IcmpType] {
            set(&mut f, target, 1, 1);
        }
        assert_eq!(f, before);
    }

    #[test]
    fn ttl_of_one_expires_and_of_two_does_not() {
        let mut f = udp();
        set(&mut f, Target::IpTtl, 2, 1);
        assert_eq!(dec_ttl(&mut f, 1), Ttl::Ok);
        assert_eq!(dec_ttl(&mut f, 1), Ttl::Expired);
        assert_eq!(f[22], 1);
    }

    #[test]
    fn every_truncation_is_survived() {
        let whole = udp();
        for len in 14..whole.len() {
            for &target in Target::ALL {
                let mut f = whole[..len].to_vec();
                set(&mut f, target, u128::MAX, 1);
                dec_ttl(&mut f, 1);
                assert_eq!(f.len(), len);
            }
        }
    }
}
