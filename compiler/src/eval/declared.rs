//! Headers that the program declares: where they are, what their bits read, and writes of them with the checksum that covers
//! them.

use pipec_abi::Env;

use super::headers::{Frag, Headers, Rest, be16};
use super::machine::Machine;
use super::write;
use crate::field::Header;
use crate::hir::Place;

impl<E: Env + ?Sized> Machine<'_, E> {
    /// Where a declared header begins and what it lies in ends, if it is there.
    pub fn declared(&mut self, header: u16, headers: &Headers) -> Option<(usize, usize)> {
        let program = self.program;
        let declared = &program.headers[usize::from(header)];
        for after in &declared.after {
            let Some((start, end)) = self.behind(after.parent, headers) else { continue };
            if self.cond(&after.cond, headers, None) {
                return (start + usize::from(declared.bytes) <= end).then_some((start, end));
            }
        }
        None
    }

    /// Where the payload of a header begins and ends, if it is there.
    pub fn behind(&mut self, header: Header, headers: &Headers) -> Option<(usize, usize)> {
        let frame = self.burst.bytes(self.i);
        let whole = |start: usize| Some((start, frame.len()));
        match header {
            Header::Eth => whole(headers.l3),
            Header::Vlan => headers.tci.and(whole(headers.l3)),
            Header::Vlan2 => headers.second_tci.and(whole(headers.l3)),
            Header::Arp | Header::Rarp if headers.arp && headers.has(header) => whole(headers.l3 + 28),
            Header::Ipv4 | Header::Ipv6 | Header::IpAny if headers.has(header) => {
                headers.rest().filter(|rest| rest.frag == Frag::No).map(|rest| (rest.l4, rest.end))
            }
            Header::Tcp | Header::Udp | Header::Sctp | Header::Icmp | Header::Icmpv6 if headers.has(header) => {
                transport_payload(frame, headers).map(|start| (start, headers.rest().map_or(0, |rest| rest.end)))
            }
            Header::Declared(parent) => {
                let (start, end) = self.declared(parent, headers)?;
                Some((start + usize::from(self.program.headers[usize::from(parent)].bytes), end))
            }
            _ => None,
        }
    }

    /// Bits of a declared header; 0 where it is absent.
    pub fn declared_bits(&mut self, header: u16, offset: u16, width: u8, headers: &Headers) -> u128 {
        let Some((start, _)) = self.declared(header, headers) else { return 0 };
        let frame = self.burst.bytes(self.i);
        (0..usize::from(width))
            .fold(0, |value, k| value << 1 | u128::from(bit(frame, start * 8 + usize::from(offset) + k)))
    }

    /// Writes bits of a declared header, if it is there.
    pub fn set_declared(&mut self, header: u16, place: Place, value: u128) {
        let headers = self.headers();
        if let Some((start, _)) = self.declared(header, &headers) {
            self.set_bits(start, place.offset, place.width, value);
        }
    }

    /// Writes bits behind a byte, and mends the checksum that covers them.
    pub fn set_bits(&mut self, start: usize, offset: u16, width: u8, value: u128) {
        let headers = self.headers();
        let frame = self.burst.bytes_mut(self.i);
        let before = frame.to_vec();
        let first = start * 8 + usize::from(offset);
        put_bits(frame, first, width, value);
        let Some((rest, sum)) = covering(&before, &headers, start) else { return };
        match sum {
            Sum::Crc => mend_crc(frame, &before[rest.l4..rest.end], rest),
            Sum::Internet { at, optional } => {
                let mut checksum = be16(frame, at);
                let last = first + usize::from(width) - 1;
                // The words, as the checksum counts them, that hold these bits; half a word at the end has a 0 behind it.
                for word in (first / 8 - rest.l4) / 2..=(last / 8 - rest.l4) / 2 {
                    let word_of = |bytes: &[u8]| {
                        let at = rest.l4 + 2 * word;
                        u16::from(bytes[at]) << 8 | if at + 1 < rest.end { u16::from(bytes[at + 1]) } else { 0 }
                    };
                    checksum = write::updated(checksum, word_of(&before), word_of(frame));
                }
                store_checksum(frame, at, optional, checksum);
            }
        }
    }

    /// Lengths and checksums, after `n` bytes were put in at `at` (or, negative, taken out) of a frame that was `before`.
    pub fn follow(&mut self, before: &[u8], headers: &Headers, at: usize, n: i64) {
        let Some(rest) = headers.rest().filter(|rest| (rest.l4..=rest.end).contains(&at)) else { return };
        let v6 = headers.ip.is_some_and(|ip| ip.v6);
        let frame = self.burst.bytes_mut(self.i);
        let length = |frame: &[u8], at: usize| i64::from(be16(frame, at)) + n;
        let place = headers.l3 + if v6 { 4 } else { 2 };
        let new = length(frame, place) as u128;
        if v6 {
            write::put(frame, place, 2, new & 0xffff);
        } else {
            write::put_summed(frame, place, 2, new & 0xffff, &[write::ipv4_sum(headers)]);
        }
        let in_transport = transport_payload(before, headers).is_some_and(|payload| at >= payload);
        if in_transport && rest.proto == 17 {
            let new = length(frame, rest.l4 + 4) as u128 & 0xffff;
            write::put(frame, rest.l4 + 4, 2, new);
        }
        let Some((rest, sum)) = covering(before, headers, at) else { return };
        let end = (rest.end as i64 + n) as usize;
        match sum {
            Sum::Crc => mend_crc(frame, &before[rest.l4..rest.end], Rest { end, ..rest }),
            Sum::Internet { at, optional } => {
                let old = total(&before[rest.l4..rest.end], at - rest.l4);
                let new = total(&frame[rest.l4..end], at - rest.l4);
                let checksum = write::updated(be16(frame, at), old, new);
                store_checksum(frame, at, optional, checksum);
            }
        }
    }
}

/// A checksum over a transport header and its payload.
enum Sum {
    Internet { at: usize, optional: bool },
    Crc,
}

/// The checksum that covers a byte of the payload of a transport header.
fn covering(frame: &[u8], headers: &Headers, at: usize) -> Option<(Rest, Sum)> {
    let payload = transport_payload(frame, headers)?;
    let rest = headers.rest().filter(|rest| (payload..=rest.end).contains(&at))?;
    let sum = match rest.proto {
        6 => Sum::Internet { at: rest.l4 + 16, optional: false },
        17 if be16(frame, rest.l4 + 6) == 0 => return None,
        17 => Sum::Internet { at: rest.l4 + 6, optional: true },
        132 => Sum::Crc,
        _ => Sum::Internet { at: rest.l4 + 2, optional: false },
    };
    Some((rest, sum))
}

/// Where what is behind the transport header begins, in a packet that is no fragment.
fn transport_payload(frame: &[u8], headers: &Headers) -> Option<usize> {
    let rest = headers.rest().filter(|rest| rest.transport && rest.frag == Frag::No)?;
    let len = match rest.proto {
        6 => usize::from(frame[rest.l4 + 12] >> 4) * 4,
        132 => 12,
        _ => 8,
    };
    Some(rest.l4 + len)
}

/// The sum of the words and the length, all but the checksum at `checksum`.
fn total(segment: &[u8], checksum: usize) -> u16 {
    let mut sum = segment.len() as u64;
    for (k, byte) in segment.iter().enumerate().filter(|(k, _)| *k != checksum && *k != checksum + 1) {
        sum += u64::from(*byte) << if k % 2 == 0 { 8 } else { 0 };
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn store_checksum(frame: &mut [u8], at: usize, optional: bool, checksum: u16) {
    let checksum = if optional && checksum == 0 { 0xffff } else { checksum };
    write::put(frame, at, 2, u128::from(checksum));
}

/// Changes the CRC of SCTP by the difference of those of the packet as it was and as it is.
fn mend_crc(frame: &mut [u8], before: &[u8], rest: Rest) {
    let without = |segment: &[u8]| {
        let mut segment = segment.to_vec();
        segment[8..12].fill(0);
        write::crc32c(&segment)
    };
    let change = (without(before) ^ without(&frame[rest.l4..rest.end])).to_le_bytes();
    for (k, byte) in change.iter().enumerate() {
        frame[rest.l4 + 8 + k] ^= byte;
    }
}

fn bit(frame: &[u8], at: usize) -> u8 {
    frame[at / 8] >> (7 - at % 8) & 1
}

/// Writes `width` bits from bit `first` of a frame on.
pub fn put_bits(frame: &mut [u8], first: usize, width: u8, value: u128) {
    for k in 0..usize::from(width) {
        let (byte, shift) = ((first + k) / 8, 7 - (first + k) % 8);
        let one = (value >> (usize::from(width) - 1 - k) & 1) as u8;
        frame[byte] = frame[byte] & !(1 << shift) | one << shift;
    }
}
