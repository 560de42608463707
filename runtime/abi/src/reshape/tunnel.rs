//! Tunnels: a stack of headers in front of a frame or of the packet in it, and back.

use super::{Outcome, Tunnel, failed, fold, sum_words};
use crate::header::{self, IPV4, IPV6};
use crate::{Burst, Ctx, DropReason, Env};

/// Bytes of an outer stack, at the most.
pub const MAX_STACK: usize = 112;

/// Outer headers, with all that is known of them before a packet comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stack {
    /// The headers.
    pub bytes: [u8; MAX_STACK],
    /// How many bytes.
    pub len: u16,
    /// Offset of IP.
    pub ip: u16,
    /// Offset of UDP; 0: there is none.
    pub udp: u16,
    /// Offset of a length of 16 bits that counts what is behind the stack; 0: there is none.
    pub length: u16,
    /// Where the type of the packet inside is written, two bytes as an Ethernet type; 0: nowhere.
    pub eth_type: u16,
    /// Where the protocol number of the packet inside is written; 0: nowhere.
    pub protocol: u16,
    /// 1: the outer packet is IPv6.
    pub v6: u8,
    /// 1: an IP packet is inside and its Ethernet header goes; 0: the frame is inside.
    pub packet: u8,
}

/// Puts a stack in front, with its lengths. Fields that are known only now are written next, then comes [`finish`].
/// Outcome 1 << 31: nothing was done, since the frame has no IP packet to be inside.
pub fn encap<E: Env + ?Sized>(
    env: &mut E,
    ctx: &mut Ctx,
    burst: &mut Burst,
    i: usize,
    stack: &Stack,
    vlan_limit: u32,
) -> Outcome {
    let data = burst.bytes(i);
    let l2 = header::l2(data, vlan_limit);
    let l3 = header::l3(data, l2);
    let (gone, inside_end) = match stack.packet {
        0 => (0, data.len()),
        _ if !l3.has_addresses() => return NOTHING,
        _ if l3.has_rest() => (l2.end(), l3.end()),
        _ => (l2.end(), data.len()),
    };
    let len = usize::from(stack.len);
    let done = match len.checked_sub(gone) {
        Some(more) => env.grow(ctx, burst, i, 0, more),
        None => {
            env.shrink(ctx, burst, i, 0, gone - len);
            true
        }
    };
    if !done {
        return failed(DropReason::NoRoom);
    }
    let end = inside_end - gone + len;
    let data = burst.bytes_mut(i);
    data[..len].copy_from_slice(&stack.bytes[..len]);
    let mut put16 = |at: usize, value: usize| header::store::<2>(data, at, value as u64);
    let ip = usize::from(stack.ip);
    if stack.v6 == 0 {
        put16(ip + 2, end - ip)
    } else {
        put16(ip + 4, end - ip - 40)
    }
    if stack.udp != 0 {
        put16(usize::from(stack.udp) + 4, end - usize::from(stack.udp));
    }
    if stack.length != 0 {
        put16(usize::from(stack.length), end - len);
    }
    if stack.eth_type != 0 {
        put16(usize::from(stack.eth_type), usize::from(l2.eth_type()));
    }
    if stack.protocol != 0 {
        let protocol = if l2.eth_type() == IPV4 { 4 } else { 41 };
        header::store::<1>(data, usize::from(stack.protocol), protocol);
    }
    0
}

/// What [`encap`] returns where there is nothing to be inside.
pub const NOTHING: Outcome = 1 << 31;

/// The checksums of a stack that was put in front: IPv4's header; UDP over IPv6, over IPv4 it stays 0.
pub fn finish(data: &mut [u8], stack: &Stack) {
    let (ip, udp) = (usize::from(stack.ip), usize::from(stack.udp));
    if stack.v6 == 0 {
        header::store::<2>(data, ip + 10, 0);
        let sum = fold(sum_words(&data[ip..ip + 20]));
        return header::store::<2>(data, ip + 10, !sum & 0xffff);
    }
    if udp != 0 {
        let end = (udp + header::load16(data, udp + 4) as usize).min(data.len());
        header::store::<2>(data, udp + 6, 0);
        let length = (end - udp) as u64;
        let sum = sum_words(&data[ip + 8..ip + 40]) + sum_words(&data[udp..end]) + length + 17;
        let sum = !fold(sum) & 0xffff;
        header::store::<2>(data, udp + 6, if sum == 0 { 0xffff } else { sum });
    }
}

/// What is inside of a tunnel.
enum Inside {
    Frame,
    /// A packet of this Ethernet type.
    Packet(u16),
}

/// Removes everything up to the packet inside; nothing where `at` is 0.
pub fn decap<E: Env + ?Sized>(
    env: &mut E,
    ctx: &mut Ctx,
    burst: &mut Burst,
    i: usize,
    kind: u8,
    at: usize,
    vlan_limit: u32,
) -> Outcome {
    let Some((_, tunnel)) = Tunnel::NAMES.get(usize::from(kind)).filter(|_| at != 0) else { return 0 };
    let data = burst.bytes(i);
    let end = header::l3(data, header::l2(data, vlan_limit)).end().min(data.len());
    let found = inside(&data[..end], *tunnel, at);
    let whole = found.filter(|(start, inside)| {
        end >= start
            + match inside {
                Inside::Frame => 14,
                Inside::Packet(IPV6) => 40,
                Inside::Packet(_) => 20,
            }
    });
    match whole {
        None => return failed(DropReason::NoInner),
        Some((start, Inside::Frame)) => env.shrink(ctx, burst, i, 0, start),
        Some((start, Inside::Packet(eth_type))) => {
            header::store::<2>(burst.bytes_mut(i), 12, u64::from(eth_type));
            env.shrink(ctx, burst, i, 14, start - 14);
        }
    }
    0
}

/// Where the packet inside begins, and what it is.
fn inside(data: &[u8], tunnel: Tunnel, at: usize) -> Option<(usize, Inside)> {
    let by_type = |eth_type: u64| match eth_type as u16 {
        0x6558 => Some(Inside::Frame),
        eth_type @ (IPV4 | IPV6) => Some(Inside::Packet(eth_type)),
        _ => None,
    };
    match tunnel {
        Tunnel::Vxlan => Some((at + 8, Inside::Frame)),
        Tunnel::Geneve => {
            let options = header::load8(data, at) as usize & 0x3f;
            Some((at + 8 + 4 * options, by_type(header::load16(data, at + 2))?))
        }
        Tunnel::Gre => {
            let flags = header::load16(data, at);
            // Checksum, key and sequence number are there or not; routing and other versions are not GRE as RFC 2784 has it.
            let optional = (flags & 0xb000).count_ones() as usize;
            let inside = by_type(header::load16(data, at + 2)).filter(|_| flags & 0x4007 == 0)?;
            Some((at + 4 + 4 * optional, inside))
        }
        Tunnel::Gtpu => gtpu(data, at),
    }
}

/// A G-PDU: optional words and extension headers, then IP.
fn gtpu(data: &[u8], at: usize) -> Option<(usize, Inside)> {
    let flags = header::load8(data, at);
    if header::load8(data, at + 1) != 255 {
        return None;
    }
    let mut start = at + 8;
    if flags & 7 != 0 {
        start += 4;
        let mut next = if flags & 4 != 0 { header::load8(data, start - 1) } else { 0 };
        for _ in 0..header::MAX_EXTENSIONS {
            let len = header::load8(data, start) as usize * 4;
            if next == 0 || len == 0 {
                break;
            }
            next = header::load8(data, start + len - 1);
            start += len;
        }
        if next != 0 {
            return None;
        }
    }
    match header::load8(data, start) >> 4 {
        4 => Some((start, Inside::Packet(IPV4))),
        6 => Some((start, Inside::Packet(IPV6))),
        _ => None,
    }
}
