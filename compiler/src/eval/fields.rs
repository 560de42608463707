//! Values of fields: what a table or an action sees of a frame. Reads only; a field whose header is absent or malformed
//! reads 0.

use super::headers::{Frag, Headers, Rest, be16};
use crate::field::{Field, Header};
use crate::hir::{Arith, Match, View};

/// What an operation makes of two words.
pub fn arith(op: Arith, left: u64, right: u64) -> u64 {
    let bits = u32::try_from(right).unwrap_or(u32::MAX);
    match op {
        Arith::Add => left.wrapping_add(right),
        Arith::Sub => left.wrapping_sub(right),
        Arith::And => left & right,
        Arith::Or => left | right,
        Arith::Xor => left ^ right,
        Arith::Shl => left.checked_shl(bits).unwrap_or(0),
        Arith::Shr => left.checked_shr(bits).unwrap_or(0),
    }
}

impl Headers {
    /// Whether a header is present: IP by Ethernet type alone, transport by IP protocol alone.
    pub fn has(&self, header: Header) -> bool {
        let proto = self.ip.and_then(|ip| ip.rest).map_or(0, |rest| rest.proto);
        let (v4, v6) = (self.eth_type == 0x0800, self.eth_type == 0x86dd);
        match header {
            Header::Eth => true,
            Header::Vlan => self.tci.is_some(),
            Header::Arp => self.eth_type == 0x0806,
            Header::Rarp => self.eth_type == 0x8035,
            Header::Ipv4 => v4,
            Header::Ipv6 => v6,
            Header::IpAny => v4 || v6,
            Header::Tcp => proto == 6,
            Header::Udp => proto == 17,
            Header::Sctp => proto == 132,
            Header::Icmp => v4 && proto == 1,
            Header::Icmpv6 => v6 && proto == 58,
            Header::Vlan2 => self.second_tci.is_some(),
            Header::Nd => self.nd.is_some() && self.rest().is_some_and(|rest| rest.frag == Frag::No),
            // The machine knows these.
            Header::Declared(_) => false,
        }
    }

    /// What there is to read of IP beyond addresses.
    pub fn rest(&self) -> Option<Rest> {
        self.ip.and_then(|ip| ip.rest)
    }

    /// Offset of the transport header that `header` names, if it is whole.
    pub fn transport(&self, header: Header) -> Option<usize> {
        let rest = self.rest()?;
        (rest.transport && self.has(header)).then_some(rest.l4)
    }

    /// The value of a field of the frame; `in_port` and `ct.*` are not in it and read 0.
    pub fn read(&self, frame: &[u8], field: Field, view: View) -> u128 {
        self.value(frame, field, view).unwrap_or(0)
    }

    /// The value of a field of the frame, if it can be read.
    pub fn value(&self, frame: &[u8], field: Field, view: View) -> Option<u128> {
        let number = |at: usize, bytes: usize| frame[at..at + bytes].iter().fold(0, |n, &b| n << 8 | u128::from(b));
        let arp = |at: usize, bytes| self.arp.then(|| number(self.l3 + at, bytes));
        let address = |v6, at: usize, bytes| self.ip.filter(|ip| ip.v6 == v6).map(|_| number(self.l3 + at, bytes));
        let port = |header, at: usize, bytes| {
            // P24: tables see no fragment's ports, not even the first's.
            if view == View::Table && self.rest()?.frag != Frag::No {
                return None;
            }
            self.transport(header).map(|l4| number(l4 + at, bytes))
        };
        match field {
            Field::InPort | Field::InPortNumber | Field::CtState | Field::CtZone | Field::CtMark | Field::CtLabel => {
                None
            }
            Field::EthDst => Some(number(0, 6)),
            Field::EthSrc => Some(number(6, 6)),
            Field::EthType => Some(u128::from(self.eth_type)),
            // P4: bit 12 says that there is a tag, whatever the frame has there.
            Field::VlanTci => self.tci.map(|tci| u128::from(tci | 0x1000)),
            Field::VlanVid => self.tci.map(|tci| u128::from(tci & 0x0fff)),
            Field::VlanPcp => self.tci.map(|tci| u128::from(tci >> 13)),
            Field::ArpOp => arp(6, 2).filter(|&op| op <= 255),
            Field::ArpSha => arp(8, 6),
            Field::ArpSpa => arp(14, 4),
            Field::ArpTha => arp(18, 6),
            Field::ArpTpa => arp(24, 4),
            Field::IpProto => self.rest().map(|rest| u128::from(rest.proto)),
            Field::IpFrag => self.rest().map(|rest| rest.frag as u128),
            Field::IpDscp => self.traffic_class(frame).map(|class| u128::from(class >> 2)),
            Field::IpEcn => self.traffic_class(frame).map(|class| u128::from(class & 3)),
            Field::IpTtl => self.ttl_at().map(|at| u128::from(frame[at])),
            Field::Ipv4Src => address(false, 12, 4),
            Field::Ipv4Dst => address(false, 16, 4),
            Field::Ipv6Src => address(true, 8, 16),
            Field::Ipv6Dst => address(true, 24, 16),
            Field::Ipv6Label => self.rest().and(address(true, 0, 4)).map(|word| word & 0xf_ffff),
            Field::TcpSrc => port(Header::Tcp, 0, 2),
            Field::TcpDst => port(Header::Tcp, 2, 2),
            // P24 speaks of ports only: tables see the flags of a first fragment.
            Field::TcpFlags => self.transport(Header::Tcp).map(|l4| number(l4 + 12, 2) & 0xfff),
            Field::UdpSrc => port(Header::Udp, 0, 2),
            Field::UdpDst => port(Header::Udp, 2, 2),
            Field::SctpSrc => port(Header::Sctp, 0, 2),
            Field::SctpDst => port(Header::Sctp, 2, 2),
            Field::IcmpType => port(Header::Icmp, 0, 1),
            Field::IcmpCode => port(Header::Icmp, 1, 1),
            Field::Icmpv6Type => port(Header::Icmpv6, 0, 1),
            Field::Icmpv6Code => port(Header::Icmpv6, 1, 1),
            Field::FrameLen => Some(frame.len() as u128),
            Field::Vlan2Tci => self.second_tci.map(|tci| u128::from(tci | 0x1000)),
            Field::Vlan2Vid => self.second_tci.map(|tci| u128::from(tci & 0x0fff)),
            Field::Vlan2Pcp => self.second_tci.map(|tci| u128::from(tci >> 13)),
            Field::IpValid => Some(u128::from(self.ip.is_some())),
            Field::Ipv4Ihl => address(false, 0, 1).map(|byte| byte & 15),
            Field::Ipv4Len => address(false, 2, 2),
            Field::Ipv4Id => address(false, 4, 2),
            Field::Ipv6Len => address(true, 4, 2),
            Field::TcpSeq => port(Header::Tcp, 4, 4),
            Field::TcpAck => port(Header::Tcp, 8, 4),
            Field::TcpWindow => port(Header::Tcp, 14, 2),
            Field::UdpLen => port(Header::Udp, 4, 2),
            Field::NdTarget | Field::NdSll | Field::NdTll => {
                if view == View::Table && self.rest()?.frag != Frag::No {
                    return None;
                }
                let nd = self.nd?;
                match field {
                    Field::NdTarget => nd.target.map(|at| number(at, 16)),
                    Field::NdSll => nd.sll.map(|at| number(at, 6)),
                    _ => nd.tll.map(|at| number(at, 6)),
                }
            }
        }
    }

    /// Offset of the TTL or hop limit, if it can be read.
    pub fn ttl_at(&self) -> Option<usize> {
        let ip = self.ip.filter(|ip| ip.rest.is_some())?;
        Some(self.l3 + if ip.v6 { 7 } else { 8 })
    }

    /// TOS or traffic class, if it can be read.
    fn traffic_class(&self, frame: &[u8]) -> Option<u8> {
        let ip = self.ip.filter(|ip| ip.rest.is_some())?;
        let word = be16(frame, self.l3);
        Some(if ip.v6 { (word >> 4) as u8 } else { word as u8 })
    }
}

/// Whether a value meets a test.
pub fn holds(value: u128, test: &Match) -> bool {
    match test {
        Match::Masked { value: wanted, mask } => value & mask == *wanted,
        Match::Range { low, high } => (*low..=*high).contains(&value),
        Match::In(ranges) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&value)),
    }
}

/// `width` bits from bit `offset` on, which counts from the most significant of `total` bits.
pub fn slice(value: u128, total: u8, offset: u16, width: u8) -> u128 {
    value >> (u16::from(total) - offset - u16::from(width)) & ones(width)
}

/// `value` with `width` bits from bit `offset` on replaced.
pub fn replace(value: u128, total: u8, offset: u16, width: u8, bits: u128) -> u128 {
    let shift = u16::from(total) - offset - u16::from(width);
    value & !(ones(width) << shift) | (bits & ones(width)) << shift
}

/// `width` bits of the metadata from bit `offset` on, which counts from the most significant bit of the first word.
pub fn metadata(words: &[u64], offset: u16, width: u8) -> u128 {
    let bit = |at: u16| u128::from(words[usize::from(at / 64)] >> (63 - at % 64) & 1);
    (offset..offset + u16::from(width)).fold(0, |value, at| value << 1 | bit(at))
}

/// Replaces `width` bits of the metadata.
pub fn set_metadata(words: &mut [u64], offset: u16, width: u8, value: u128) {
    for i in 0..u16::from(width) {
        let (word, bit) = (usize::from((offset + i) / 64), 63 - (offset + i) % 64);
        let one = (value >> (u16::from(width) - 1 - i) & 1) as u64;
        words[word] = words[word] & !(1 << bit) | one << bit;
    }
}

/// The lowest `width` bits.
fn ones(width: u8) -> u128 {
    if width == 128 { u128::MAX } else { (1 << width) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_count_from_the_most_significant_bit() {
        assert_eq!(slice(0xabcd, 16, 4, 8), 0xbc);
        assert_eq!(replace(0xabcd, 16, 4, 8, 0x1ff), 0xaffd);
        assert_eq!(slice(u128::MAX, 128, 0, 128), u128::MAX);
        assert_eq!(replace(0, 128, 0, 128, 7), 7);
    }

    #[test]
    fn metadata_crosses_words() {
        let mut words = [0, 0, 0];
        set_metadata(&mut words, 60, 72, u128::MAX);
        assert_eq!(words, [0xf, u64::MAX, 0xf << 60]);
        set_metadata(&mut words, 64, 128, 0x1_0000_0000_0000_0000_0002);
        assert_eq!(words, [0xf, 0x10000, 2]);
        assert_eq!(metadata(&words, 60, 16), 0xf000);
        assert_eq!(metadata(&words, 64, 128), 0x1_0000_0000_0000_0000_0002);
    }

    #[test]
    fn tests_hold_or_not() {
        assert!(holds(0x1234, &Match::Masked { value: 0x1030, mask: 0xf0f0 }));
        assert!(!holds(0x1234, &Match::Masked { value: 0x1031, mask: 0xffff }));
        assert!(holds(5, &Match::Range { low: 5, high: 5 }) && !holds(6, &Match::Range { low: 1, high: 5 }));
        assert!(holds(9, &Match::In(vec![(1, 2), (9, 12)])) && !holds(3, &Match::In(vec![(1, 2), (9, 12)])));
    }
}
