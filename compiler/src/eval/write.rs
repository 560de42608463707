//! Writing fields of a frame, with the checksums that cover them changed by what the write changed (RFC 1624, equation 3):
//! a wrong checksum stays wrong. A write where the field cannot be read does nothing. Later fragments have no transport
//! header, so their payload is never touched.

use super::headers::{Headers, be16};
use crate::field::{Field, Header};

/// A checksum that covers a write.
#[derive(Clone, Copy)]
pub struct Sum {
    at: usize,
    /// UDP: 0 says that there is none, and one that comes out as 0 is sent as 0xffff.
    optional: bool,
}

/// Writes a whole field.
pub fn write(frame: &mut [u8], headers: &Headers, field: Field, value: u128) {
    let l3 = headers.l3;
    match field {
        Field::EthDst => put(frame, 0, 6, value),
        Field::EthSrc => put(frame, 6, 6, value),
        Field::VlanVid => write_tag(frame, 14, headers.tci, 0x0fff, value as u16 & 0x0fff),
        Field::VlanPcp => write_tag(frame, 14, headers.tci, 0xe000, (value as u16 & 7) << 13),
        Field::Vlan2Vid => write_tag(frame, 18, headers.second_tci, 0x0fff, value as u16 & 0x0fff),
        Field::Vlan2Pcp => write_tag(frame, 18, headers.second_tci, 0xe000, (value as u16 & 7) << 13),
        // Frames of 802.3 have a length there.
        Field::EthType => {
            if headers.eth_type != 0x05ff {
                put(frame, l3 - 2, 2, value);
            }
        }
        Field::IpProto => write_protocol(frame, headers, value as u8),
        Field::Ipv4Id => {
            if headers.ip.is_some_and(|ip| !ip.v6) {
                put_summed(frame, l3 + 4, 2, value, &[ipv4_sum(headers)]);
            }
        }
        Field::TcpSeq => write_port_of(frame, headers, Header::Tcp, 4, 4, value),
        Field::TcpAck => write_port_of(frame, headers, Header::Tcp, 8, 4, value),
        Field::TcpWindow => write_port_of(frame, headers, Header::Tcp, 14, 2, value),
        Field::TcpFlags => {
            if let Some(l4) = headers.transport(Header::Tcp) {
                let word = u128::from(be16(frame, l4 + 12) & 0xf000) | value & 0xfff;
                write_port_of(frame, headers, Header::Tcp, 12, 2, word);
            }
        }
        Field::NdTarget => write_nd(frame, headers, |nd| nd.target, 16, value),
        Field::NdSll => write_nd(frame, headers, |nd| nd.sll, 6, value),
        Field::NdTll => write_nd(frame, headers, |nd| nd.tll, 6, value),
        Field::ArpOp => write_arp(frame, headers, 6, 2, value),
        Field::ArpSha => write_arp(frame, headers, 8, 6, value),
        Field::ArpSpa => write_arp(frame, headers, 14, 4, value),
        Field::ArpTha => write_arp(frame, headers, 18, 6, value),
        Field::ArpTpa => write_arp(frame, headers, 24, 4, value),
        Field::IpDscp => write_class(frame, headers, 0x03, (value & 0x3f) << 2),
        Field::IpEcn => write_class(frame, headers, 0xfc, value & 3),
        Field::IpTtl => write_ttl(frame, headers, value as u8),
        Field::Ipv4Src => write_address(frame, headers, false, l3 + 12, 4, value),
        Field::Ipv4Dst => write_address(frame, headers, false, l3 + 16, 4, value),
        Field::Ipv6Src => write_address(frame, headers, true, l3 + 8, 16, value),
        Field::Ipv6Dst => write_address(frame, headers, true, l3 + 24, 16, value),
        Field::Ipv6Label => {
            if headers.ip.is_some_and(|ip| ip.v6 && ip.rest.is_some()) {
                let word = u128::from(be16(frame, l3)) << 16 & 0xfff0_0000;
                put(frame, l3, 4, word | value & 0xf_ffff);
            }
        }
        Field::TcpSrc => write_port(frame, headers, Header::Tcp, 0, value),
        Field::TcpDst => write_port(frame, headers, Header::Tcp, 2, value),
        Field::UdpSrc => write_port(frame, headers, Header::Udp, 0, value),
        Field::UdpDst => write_port(frame, headers, Header::Udp, 2, value),
        Field::SctpSrc => write_sctp_port(frame, headers, 0, value),
        Field::SctpDst => write_sctp_port(frame, headers, 2, value),
        Field::IcmpType => write_icmp(frame, headers, Header::Icmp, 0x00ff, (value & 0xff) << 8),
        Field::IcmpCode => write_icmp(frame, headers, Header::Icmp, 0xff00, value & 0xff),
        Field::Icmpv6Type => write_icmp(frame, headers, Header::Icmpv6, 0x00ff, (value & 0xff) << 8),
        Field::Icmpv6Code => write_icmp(frame, headers, Header::Icmpv6, 0xff00, value & 0xff),
        // `check` refuses writes to these.
        Field::InPort | Field::InPortNumber | Field::CtState | Field::CtZone | Field::CtMark | Field::CtLabel => {}
        Field::VlanTci | Field::Vlan2Tci | Field::IpFrag | Field::FrameLen | Field::IpValid => {}
        Field::Ipv4Ihl | Field::Ipv4Len | Field::Ipv6Len | Field::UdpLen => {}
    }
}

/// Writes the TTL or hop limit.
pub fn write_ttl(frame: &mut [u8], headers: &Headers, ttl: u8) {
    let Some(at) = headers.ttl_at() else {
        return;
    };
    if headers.ip.is_some_and(|ip| ip.v6) {
        frame[at] = ttl;
    } else {
        let word = u128::from(ttl) << 8 | u128::from(frame[at + 1]);
        put_summed(frame, at, 2, word, &[ipv4_sum(headers)]);
    }
}

/// Replaces the bits of a tag that `mask` has. P4: this clears bit 12; a write that changes nothing leaves it.
fn write_tag(frame: &mut [u8], at: usize, tci: Option<u16>, mask: u16, bits: u16) {
    if let Some(tci) = tci.filter(|tci| tci & mask != bits) {
        let kept = tci & !mask & !0x1000;
        put(frame, at, 2, u128::from(kept | bits));
    }
}

fn write_arp(frame: &mut [u8], headers: &Headers, at: usize, bytes: usize, value: u128) {
    if headers.arp {
        put(frame, headers.l3 + at, bytes, value);
    }
}

/// Replaces the bits of the TOS or traffic class that `keep` leaves.
fn write_class(frame: &mut [u8], headers: &Headers, keep: u8, bits: u128) {
    let Some(ip) = headers.ip.filter(|ip| ip.rest.is_some()) else {
        return;
    };
    let word = be16(frame, headers.l3);
    if ip.v6 {
        put(frame, headers.l3, 2, u128::from(word & (0xf00f | u16::from(keep) << 4)) | bits << 4);
    } else {
        put_summed(frame, headers.l3, 2, u128::from(word & (0xff00 | u16::from(keep))) | bits, &[ipv4_sum(headers)]);
    }
}

fn write_address(frame: &mut [u8], headers: &Headers, v6: bool, at: usize, bytes: usize, value: u128) {
    let Some(ip) = headers.ip.filter(|ip| ip.v6 == v6) else {
        return;
    };
    let mut sums = Vec::new();
    if !v6 {
        sums.push(ipv4_sum(headers));
    }
    // The pseudo-header has the final destination, which is not in `dst` while a routing header has segments left.
    let final_address = !(ip.routed && at == headers.l3 + 24);
    if final_address {
        let icmpv6 = headers.transport(Header::Icmpv6).map(|l4| Sum { at: l4 + 2, optional: false });
        sums.extend(transport_sum(headers).or(icmpv6));
    }
    put_summed(frame, at, bytes, value, &sums);
}

fn write_port(frame: &mut [u8], headers: &Headers, header: Header, offset: usize, value: u128) {
    write_port_of(frame, headers, header, offset, 2, value);
}

fn write_port_of(frame: &mut [u8], headers: &Headers, header: Header, offset: usize, bytes: usize, value: u128) {
    if let Some(l4) = headers.transport(header) {
        let sum = transport_sum(headers);
        put_summed(frame, l4 + offset, bytes, value, sum.as_slice());
    }
}

/// The protocol stands in the last extension header of IPv6; a later fragment's does not say what it is.
fn write_protocol(frame: &mut [u8], headers: &Headers, proto: u8) {
    let (Some(ip), Some(rest)) = (headers.ip, headers.rest()) else { return };
    if !ip.v6 {
        let word = u128::from(frame[headers.l3 + 8]) << 8 | u128::from(proto);
        return put_summed(frame, headers.l3 + 8, 2, word, &[ipv4_sum(headers)]);
    }
    if rest.frag == super::headers::Frag::Later {
        return;
    }
    let (mut place, mut at) = (headers.l3 + 6, headers.l3 + 40);
    while at < rest.l4 {
        let units = usize::from(frame[at + 1]);
        let len = match frame[place] {
            44 => 8,
            51 => units * 4 + 8,
            _ => units * 8 + 8,
        };
        (place, at) = (at, at + len);
    }
    frame[place] = proto;
}

fn write_nd(
    frame: &mut [u8],
    headers: &Headers,
    place: impl Fn(super::headers::Nd) -> Option<usize>,
    bytes: usize,
    value: u128,
) {
    if let (Some(at), Some(l4)) = (headers.nd.and_then(place), headers.transport(Header::Icmpv6)) {
        put_summed(frame, at, bytes, value, &[Sum { at: l4 + 2, optional: false }]);
    }
}

/// Replaces the bits of ICMP's first word, type and code, that `keep` leaves.
fn write_icmp(frame: &mut [u8], headers: &Headers, header: Header, keep: u16, bits: u128) {
    if let Some(l4) = headers.transport(header) {
        let word = u128::from(be16(frame, l4) & keep) | bits;
        put_summed(frame, l4, 2, word, &[Sum { at: l4 + 2, optional: false }]);
    }
}

/// SCTP's checksum is a CRC, and CRCs are linear: it changes by the difference of those of the old and the new packet.
fn write_sctp_port(frame: &mut [u8], headers: &Headers, offset: usize, value: u128) {
    let (Some(l4), Some(rest)) = (headers.transport(Header::Sctp), headers.rest()) else {
        return;
    };
    let checksum = l4 + 8..l4 + 12;
    let stored = frame[checksum.clone()].to_vec();
    frame[checksum.clone()].fill(0);
    let before = crc32c(&frame[l4..rest.end]);
    put(frame, l4 + offset, 2, value);
    let after = crc32c(&frame[l4..rest.end]);
    let change = (before ^ after).to_le_bytes();
    for (i, at) in checksum.enumerate() {
        frame[at] = stored[i] ^ change[i];
    }
}

/// CRC32c as RFC 9260 has it: reflected, the polynomial 0x1edc6f41.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        for bit in 0..8 {
            let low = crc ^ u32::from(byte >> bit);
            crc >>= 1;
            if low & 1 == 1 {
                crc ^= 0x1edc_6f41_u32.reverse_bits();
            }
        }
    }
    !crc
}

pub fn ipv4_sum(headers: &Headers) -> Sum {
    Sum { at: headers.l3 + 10, optional: false }
}

/// The checksum of TCP or UDP, which covers ports and addresses.
fn transport_sum(headers: &Headers) -> Option<Sum> {
    let tcp = headers.transport(Header::Tcp).map(|l4| Sum { at: l4 + 16, optional: false });
    let udp = headers.transport(Header::Udp).map(|l4| Sum { at: l4 + 6, optional: true });
    tcp.or(udp)
}

/// Writes `bytes` bytes, an even number that begins on a word of the checksummed header, and mends the checksums.
pub fn put_summed(frame: &mut [u8], at: usize, bytes: usize, value: u128, sums: &[Sum]) {
    let old: Vec<u16> = (0..bytes).step_by(2).map(|i| be16(frame, at + i)).collect();
    put(frame, at, bytes, value);
    for sum in sums {
        let mut checksum = be16(frame, sum.at);
        if sum.optional && checksum == 0 {
            continue;
        }
        for (i, &old) in old.iter().enumerate() {
            checksum = updated(checksum, old, be16(frame, at + 2 * i));
        }
        if sum.optional && checksum == 0 {
            checksum = 0xffff;
        }
        put(frame, sum.at, 2, u128::from(checksum));
    }
}

/// RFC 1624, equation 3: HC' = ~(~HC + ~m + m'), in one's complement.
pub fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The low `bytes` bytes of a value, big-endian.
pub fn put(frame: &mut [u8], at: usize, bytes: usize, value: u128) {
    frame[at..at + bytes].copy_from_slice(&value.to_be_bytes()[16 - bytes..]);
}
