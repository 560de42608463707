//! Bytes put into frames and taken out of them, and writes to headers that lie behind others, with every length and checksum
//! that covers them kept right.
//!
//! Lengths of IP and UDP grow and shrink with what is put in or taken out. Checksums follow by the difference of the sums
//! before and after (RFC 1624): a wrong one stays wrong, a UDP checksum of 0 stays 0. What does not fit is not done.

mod mpls;
mod tunnel;

use crate::edit::{crc32c_without_checksum, mend};
use crate::header::{self, L3, proto};
use crate::{Burst, Ctx, DropReason, Env};

pub use tunnel::{MAX_STACK, NOTHING, Stack, encap, finish};

/// What to do to a frame; see [`apply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Reshape {
    /// [`Env::grow`]: `a` is the place, `b` how many bytes.
    Grow,
    /// [`Env::shrink`], likewise.
    Shrink,
    /// Room for bytes in a header's payload: as `Grow`, and lengths and checksums follow.
    Insert,
    /// As `Shrink`, and lengths and checksums follow.
    Remove,
    /// A label in front of all others, or behind Ethernet; `a` is the Ethernet type.
    PushMpls,
    /// Removes the outer label; `a` is the Ethernet type of what comes to light.
    PopMpls,
    /// Removes everything up to the packet inside of a tunnel: `a` is a [`Tunnel`]'s code, `b` where its header is.
    Decap,
}

impl Reshape {
    /// All, in the order of their codes.
    pub const ALL: &[Reshape] = &[
        Reshape::Grow,
        Reshape::Shrink,
        Reshape::Insert,
        Reshape::Remove,
        Reshape::PushMpls,
        Reshape::PopMpls,
        Reshape::Decap,
    ];
}

/// A tunnel whose header can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Tunnel {
    Vxlan,
    Geneve,
    Gre,
    Gtpu,
}

impl Tunnel {
    /// All, in the order of their codes, by the names of their headers.
    pub const NAMES: &[(&str, Tunnel)] =
        &[("vxlan", Tunnel::Vxlan), ("geneve", Tunnel::Geneve), ("gre", Tunnel::Gre), ("gtpu", Tunnel::Gtpu)];
}

/// What came of it: 0, or the code of a drop reason and 1. The packet is to fail then; it has not been changed.
pub type Outcome = u32;

/// The outcome that drops.
pub(crate) fn failed(reason: DropReason) -> Outcome {
    reason as u32 + 1
}

/// The reason of an outcome that is not 0.
pub fn reason(outcome: Outcome) -> DropReason {
    DropReason::from_code(outcome.wrapping_sub(1) as u8).unwrap_or(DropReason::Policy)
}

/// Changes the shape of packet `i`.
pub fn apply<E: Env + ?Sized>(
    env: &mut E,
    ctx: &mut Ctx,
    burst: &mut Burst,
    i: usize,
    what: Reshape,
    (a, b): (u64, u64),
    vlan_limit: u32,
) -> Outcome {
    let (at, n) = (a as usize, b as usize);
    match what {
        Reshape::Grow => grown(env.grow(ctx, burst, i, at, n)),
        Reshape::Shrink => {
            env.shrink(ctx, burst, i, at, n);
            0
        }
        Reshape::Insert => {
            let cover = Cover::of(burst.bytes(i), at, vlan_limit);
            let before = cover.sum(burst.bytes(i));
            if !env.grow(ctx, burst, i, at, n) {
                return grown(false);
            }
            cover.mend(burst.bytes_mut(i), before, n as i32);
            0
        }
        Reshape::Remove => {
            let cover = Cover::of(burst.bytes(i), at, vlan_limit);
            let before = cover.sum(burst.bytes(i));
            env.shrink(ctx, burst, i, at, n);
            cover.mend(burst.bytes_mut(i), before, -(n as i32));
            0
        }
        Reshape::PushMpls => mpls::push(env, ctx, burst, i, a as u16, vlan_limit),
        Reshape::PopMpls => mpls::pop(env, ctx, burst, i, a as u16, vlan_limit),
        Reshape::Decap => tunnel::decap(env, ctx, burst, i, a as u8, b as usize, vlan_limit),
    }
}

fn grown(done: bool) -> Outcome {
    if done { 0 } else { failed(DropReason::NoRoom) }
}

/// Writes `width` bits, `offset` bits behind byte `at`. `covered`: the checksum that covers them follows.
pub fn set_bits(data: &mut [u8], at: usize, offset: u32, width: u32, value: u128, covered: Option<u32>) {
    let first = at + offset as usize / 8;
    let last = at + (offset + width).div_ceil(8) as usize;
    if last > data.len() || width == 0 {
        return;
    }
    let cover = covered.map_or(Cover::NOTHING, |vlan_limit| Cover::of(data, at, vlan_limit));
    let old = cover.part(data, first, last);
    let below = (8 - (offset + width) % 8) % 8;
    let mut left = width;
    for (k, byte) in (first..last).rev().enumerate() {
        let low = if k == 0 { below } else { 0 };
        let bits = left.min(8 - low);
        let mask = ((1u32 << bits) - 1) << low;
        let from = width - left;
        let new = ((value >> from) as u32 & ((1 << bits) - 1)) << low;
        data[byte] = (u32::from(data[byte]) & !mask | new) as u8;
        left -= bits;
    }
    let new = cover.part(data, first, last);
    cover.mend_sum(data, old, new);
}

/// What covers a place of a frame.
struct Cover {
    /// Where the length of IP stands.
    ip_len: Option<usize>,
    /// Where the length of UDP stands.
    udp_len: Option<usize>,
    sum: Sum,
    /// The checksum of IPv4's header.
    ip_sum: Option<usize>,
    /// Where the transport's bytes begin and end.
    start: usize,
    end: usize,
}

/// A checksum over a transport header and what is behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    None,
    Internet { at: usize, zero_is_none: bool },
    Crc,
}

impl Cover {
    const NOTHING: Cover = Cover { ip_len: None, udp_len: None, sum: Sum::None, ip_sum: None, start: 0, end: 0 };

    /// What covers byte `at`: IP if it is in its payload, the transport protocol if it is in the payload of that.
    fn of(data: &[u8], at: usize, vlan_limit: u32) -> Cover {
        let l2 = header::l2(data, vlan_limit);
        let l3 = header::l3(data, l2);
        if !l3.has_rest() || at < l3.payload() || at > l3.end() {
            return Cover::NOTHING;
        }
        let l4 = header::l4(data, l3);
        let v6 = l3.is_v6();
        let mut cover = Cover {
            ip_len: Some(l2.end() + if v6 { 4 } else { 2 }),
            ip_sum: (!v6).then_some(l2.end() + 10),
            start: l3.payload(),
            end: l3.end(),
            ..Cover::NOTHING
        };
        if l4.for_matches() && at >= l4.offset() + transport_len(data, l3) {
            let start = l4.offset();
            cover.sum = match l3.proto() {
                proto::TCP => Sum::Internet { at: start + 16, zero_is_none: false },
                proto::UDP if header::load16(data, start + 6) == 0 => Sum::None,
                proto::UDP => Sum::Internet { at: start + 6, zero_is_none: true },
                proto::SCTP => Sum::Crc,
                _ => Sum::Internet { at: start + 2, zero_is_none: false },
            };
            cover.udp_len = (l3.proto() == proto::UDP).then_some(start + 4);
        }
        cover
    }

    /// The sum over all that the transport's checksum covers, the checksum itself left out.
    fn sum(&self, data: &[u8]) -> u64 {
        match self.sum {
            Sum::None => 0,
            Sum::Crc => u64::from(crc32c_without_checksum(&data[self.start..self.end])),
            Sum::Internet { at, .. } => {
                let whole = sum_words(&data[self.start..self.end]) + (self.end - self.start) as u64;
                let own = header::load16(data, at);
                fold(whole + (!own & 0xffff))
            }
        }
    }

    /// The same over the words that bytes lie in; for a CRC, over all.
    fn part(&self, data: &[u8], first: usize, last: usize) -> u64 {
        match self.sum {
            Sum::Internet { .. } => {
                let first = first - (first - self.start) % 2;
                let last = (last + (last - self.start) % 2).min(self.end);
                fold(sum_words(&data[first..last]))
            }
            _ => self.sum(data),
        }
    }

    /// Lengths and checksums after `n` bytes were put in (or, negative, taken out), where the sum was `before`.
    fn mend(mut self, data: &mut [u8], before: u64, n: i32) {
        self.end = self.end.wrapping_add_signed(n as isize);
        for at in [self.ip_len, self.udp_len].into_iter().flatten() {
            let old = header::load16(data, at);
            let new = old.wrapping_add_signed(i64::from(n)) & 0xffff;
            header::store::<2>(data, at, new);
            if let (Some(sum), true) = (self.ip_sum, Some(at) == self.ip_len) {
                mend(data, sum, (!old & 0xffff) + new, false);
            }
        }
        let after = self.sum(data);
        self.mend_sum(data, before, after);
    }

    fn mend_sum(&self, data: &mut [u8], old: u64, new: u64) {
        match self.sum {
            Sum::None => {}
            Sum::Internet { at, zero_is_none } => mend(data, at, (!old & 0xffff) + new, zero_is_none),
            Sum::Crc => {
                let at = self.start + 8;
                let stored = u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]]);
                data[at..at + 4].copy_from_slice(&(stored ^ old as u32 ^ new as u32).to_le_bytes());
            }
        }
    }
}

/// Bytes of the transport header, which is whole.
fn transport_len(data: &[u8], l3: L3) -> usize {
    match l3.proto() {
        proto::TCP => (header::load8(data, l3.payload() + 12) >> 4) as usize * 4,
        proto::SCTP => 12,
        _ => 8,
    }
}

/// The sum of 16-bit words; an odd byte at the end is the high one of a word.
fn sum_words(data: &[u8]) -> u64 {
    let (pairs, odd) = data.as_chunks::<2>();
    let sum: u64 = pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum();
    sum + odd.first().map_or(0, |&byte| u64::from(byte) << 8)
}

/// A sum as 16 bits, carries added at the other end.
fn fold(mut sum: u64) -> u64 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

#[cfg(test)]
mod tests;
