//! Bytes of headers, from the innermost out: types, protocols, lengths and checksums follow from what is inside.

use super::headers::{DEFAULT_ETH, Header};
use super::{Built, declared};
use crate::field::Field;
use crate::hir::Place;
use crate::source::Span;

/// The bytes of a stack of layers; `raw`: without an Ethernet header of its own.
pub fn encode(layers: &[(Built, Span)], raw: bool) -> Vec<u8> {
    let mut body: Vec<u8> = vec![];
    for (index, (layer, _)) in layers.iter().enumerate().rev() {
        let next = layers.get(index + 1).map(|(layer, _)| layer);
        match layer {
            Built::Bytes(bytes) => body = [bytes.as_slice(), &body].concat(),
            Built::Declared(at, header, values) => {
                body = declared::encode(*at, header, values, body, &layers[index + 1..]);
            }
            Built::Header(header, values) => {
                let below = if index == 0 { None } else { layers.get(index - 1) };
                body = encode_header(*header, values, body, next, below.map(|(layer, _)| layer));
            }
        }
    }
    let first = layers.first().map(|(layer, _)| layer);
    if raw || header_of(first) == Some(Header::Eth) {
        return body;
    }
    encode_header(Header::Eth, &DEFAULT_ETH, body, first, None)
}

pub fn header_of(layer: Option<&Built>) -> Option<Header> {
    if let Some(Built::Header(header, _)) = layer { Some(*header) } else { None }
}

/// Big-endian bytes of a value.
fn put(out: &mut Vec<u8>, value: u128, bytes: usize) {
    out.extend_from_slice(&value.to_be_bytes()[16 - bytes..]);
}

/// A checksum that is given.
fn given(sum: Option<u128>) -> Option<[u8; 2]> {
    sum.map(|sum| (sum as u16).to_be_bytes())
}

/// A header before its body.
fn encode_header(
    header: Header,
    values: &[Option<u128>],
    body: Vec<u8>,
    next: Option<&Built>,
    below: Option<&Built>,
) -> Vec<u8> {
    let value = |index: usize| values[index].unwrap_or(0);
    let mut out = vec![];
    match header {
        Header::Eth => {
            put(&mut out, value(0), 6);
            put(&mut out, value(1), 6);
            put(&mut out, values[2].unwrap_or_else(|| eth_type(next, body.len())), 2);
        }
        Header::Vlan => {
            put(&mut out, value(1) << 13 | value(2) << 12 | value(0), 2);
            put(&mut out, values[4].unwrap_or_else(|| eth_type(next, body.len())), 2);
        }
        Header::Arp => {
            put(&mut out, 0x0001_0800_0604, 6);
            put(&mut out, value(0), 2);
            put(&mut out, value(3), 6);
            put(&mut out, value(1), 4);
            put(&mut out, value(4), 6);
            put(&mut out, value(2), 4);
        }
        Header::Ipv4 => {
            put(&mut out, value(12) << 4 | value(11), 1);
            put(&mut out, value(4) << 2 | value(5), 1);
            put(&mut out, values[10].unwrap_or((body.len() as u128 + 20) & 0xffff), 2);
            put(&mut out, value(6), 2);
            put(&mut out, value(7) << 14 | value(8) << 13 | value(9), 2);
            put(&mut out, value(2), 1);
            put(&mut out, values[3].unwrap_or(protocol(next)), 1);
            put(&mut out, 0, 2);
            put(&mut out, value(0), 4);
            put(&mut out, value(1), 4);
            let sum = given(values[13]).unwrap_or(checksum(&[&out]));
            out[10..12].copy_from_slice(&sum);
        }
        Header::Ipv6 => {
            put(&mut out, value(8) << 28 | value(4) << 22 | value(5) << 20 | value(6), 4);
            put(&mut out, values[7].unwrap_or(body.len() as u128 & 0xffff), 2);
            put(&mut out, values[3].unwrap_or(protocol(next)), 1);
            put(&mut out, value(2), 1);
            put(&mut out, value(0), 16);
            put(&mut out, value(1), 16);
        }
        Header::Tcp => {
            put(&mut out, value(0), 2);
            put(&mut out, value(1), 2);
            put(&mut out, value(3), 4);
            put(&mut out, value(4), 4);
            put(&mut out, value(6) << 12 | value(2), 2);
            put(&mut out, value(5), 2);
            put(&mut out, 0, 4);
            let sum = checksum(&[&pseudo(below, 6, 20 + body.len()), &out, &body]);
            out[16..18].copy_from_slice(&given(values[7]).unwrap_or(sum));
        }
        Header::Udp => {
            let dst = declared::implied(next, Place::field(Field::UdpDst)).unwrap_or(53);
            put(&mut out, value(0), 2);
            put(&mut out, values[1].unwrap_or(dst), 2);
            put(&mut out, values[2].unwrap_or((body.len() as u128 + 8) & 0xffff), 2);
            put(&mut out, 0, 2);
            let sum = checksum(&[&pseudo(below, 17, 8 + body.len()), &out, &body]);
            // 0 would say that there is no checksum.
            let sum = if sum == [0, 0] { [0xff, 0xff] } else { sum };
            out[6..8].copy_from_slice(&given(values[3]).unwrap_or(sum));
        }
        Header::Sctp => {
            put(&mut out, value(0), 2);
            put(&mut out, value(1), 2);
            put(&mut out, value(2), 4);
            put(&mut out, 0, 4);
            let given = values[3].map(|sum| (sum as u32).to_be_bytes());
            let sum = given.unwrap_or(crc32c(&[&out, &body]).to_le_bytes());
            out[8..12].copy_from_slice(&sum);
        }
        Header::Icmp | Header::Icmpv6 => {
            put(&mut out, value(0), 1);
            put(&mut out, value(1), 1);
            put(&mut out, 0, 2);
            put(&mut out, value(2), 2);
            put(&mut out, value(3), 2);
            let cover = if header == Header::Icmpv6 { pseudo(below, 58, 8 + body.len()) } else { vec![] };
            let sum = checksum(&[&cover, &out, &body]);
            out[2..4].copy_from_slice(&given(values[4]).unwrap_or(sum));
        }
    }
    out.extend_from_slice(&body);
    out
}

/// The Ethernet type of what follows, of a tag its `tpid`, of 802.3 its length; for local experiments (IEEE 802) where it is
/// unknown.
pub fn eth_type(next: Option<&Built>, len: usize) -> u128 {
    match declared::implied(next, Place::field(Field::EthType)) {
        Some(0x05ff) => return len as u128,
        Some(value) => return value,
        None => {}
    }
    match header_of(next) {
        Some(Header::Vlan) => match next {
            Some(Built::Header(_, values)) => values[3].unwrap_or(0x8100),
            _ => 0x8100,
        },
        Some(Header::Arp) => 0x0806,
        Some(Header::Ipv4) => 0x0800,
        Some(Header::Ipv6) => 0x86dd,
        _ => 0x88b5,
    }
}

/// The IP protocol of what follows; for experiments (RFC 3692) where it is unknown.
fn protocol(next: Option<&Built>) -> u128 {
    match header_of(next) {
        Some(Header::Tcp) => 6,
        Some(Header::Udp) => 17,
        Some(Header::Sctp) => 132,
        Some(Header::Icmp) => 1,
        Some(Header::Icmpv6) => 58,
        Some(Header::Ipv4) => 4,
        Some(Header::Ipv6) => 41,
        _ => declared::implied(next, Place::field(Field::IpProto)).unwrap_or(253),
    }
}

/// The pseudo header of a transport protocol over what lies below.
fn pseudo(below: Option<&Built>, protocol: u128, length: usize) -> Vec<u8> {
    let Some(Built::Header(header, values)) = below else { return vec![] };
    let bytes = if *header == Header::Ipv6 { 16 } else { 4 };
    let mut out = vec![];
    put(&mut out, values[0].unwrap_or(0), bytes);
    put(&mut out, values[1].unwrap_or(0), bytes);
    put(&mut out, length as u128, 4);
    put(&mut out, protocol, 4);
    out
}

/// The Internet checksum (RFC 1071) over pieces, all but the last of even length.
fn checksum(pieces: &[&[u8]]) -> [u8; 2] {
    let words = pieces.iter().flat_map(|piece| piece.chunks(2));
    let mut sum: u64 = words.map(|word| u64::from(word[0]) << 8 | u64::from(word.get(1).copied().unwrap_or(0))).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    (!(sum as u16)).to_be_bytes()
}

/// CRC-32C (RFC 9260, appendix A).
fn crc32c(pieces: &[&[u8]]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in pieces.iter().copied().flatten() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32c_is_the_one_of_sctp() {
        assert_eq!(crc32c(&[b"1234", b"56789"]), 0xe306_9283);
    }
}
