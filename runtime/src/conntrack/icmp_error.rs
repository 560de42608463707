//! ICMP errors: which connection they are about.
//!
//! In goes an ICMP message with its outer addresses, out comes the key of the packet it quotes, turned round, because the
//! error travels against that packet. The quoted packet may be cut short and its checksums are not looked at, but its source
//! must be who the error is sent to; any router may have sent it.

use pipec_abi::header::{self, proto};

use super::key::{Key4, Key6};
use super::parse::{Ends, Invalid, Transport, any_key, ports, query};

/// Bytes of an ICMP header, before the quoted packet.
const HEADER: usize = 8;
/// Transport bytes that an error about an IPv4 packet quotes at least (RFC 792).
const QUOTED: usize = 8;

/// Whether an ICMP type is an error about another packet.
pub fn is_error(proto: u8, kind: u8) -> bool {
    match proto {
        proto::ICMP => matches!(kind, 3 | 4 | 5 | 11 | 12),
        _ => matches!(kind, 1..=4),
    }
}

/// The key of the connection that an error is about, and whether the error's direction is swapped.
pub fn about(message: &[u8], outer: Ends, zone: u16, key6: &mut Key6) -> Result<(Key4, bool), Invalid> {
    let quoted = message.get(HEADER..).ok_or(Invalid::IcmpError)?;
    let (ends, proto, transport) = match outer {
        Ends::V4(_, to) => quoted4(quoted, to),
        Ends::V6(_, to) => quoted6(quoted, to),
    }
    .ok_or(Invalid::IcmpError)?;
    let (key4, swapped) = any_key(ends, transport, proto, zone, key6);
    let is_own = match (ends, transport) {
        (Ends::V4(src, dst), Transport::Ports(from, to)) => src == dst && from == to,
        (Ends::V6(src, dst), Transport::Ports(from, to)) => src == dst && from == to,
        _ => false,
    };
    let against = if is_own { swapped } else { !swapped };
    Ok((key4, against))
}

fn quoted4(quoted: &[u8], outer_to: u32) -> Option<(Ends, u8, Transport)> {
    let len = usize::from(quoted.first()? & 15) * 4;
    let payload = quoted.get(len..)?;
    let ends = Ends::read(quoted, false)?;
    let Ends::V4(src, _) = ends else { return None };
    let is_later_fragment = header::load16(quoted, 6) & 0x1fff != 0;
    if len < 20 || payload.len() < QUOTED || is_later_fragment || src != outer_to {
        return None;
    }
    let proto = quoted[9];
    let transport = match proto {
        proto::TCP | proto::UDP | proto::SCTP => ports(payload).ok()?,
        proto::ICMP => query(payload, proto).ok()?,
        _ => Transport::Ports(0, 0),
    };
    Some((ends, proto, transport))
}

fn quoted6(quoted: &[u8], outer_to: u128) -> Option<(Ends, u8, Transport)> {
    let ends = Ends::read(quoted, true)?;
    let Ends::V6(src, _) = ends else { return None };
    if src != outer_to {
        return None;
    }
    let (proto, payload) = skip_extensions(quoted[6], quoted.get(40..)?)?;
    let (transport, least) = match proto {
        proto::TCP => (ports(payload).ok()?, 20),
        proto::UDP => (ports(payload).ok()?, 8),
        proto::SCTP => (ports(payload).ok()?, 12),
        proto::ICMPV6 => (query(payload, proto).ok()?, 8),
        _ => (Transport::Ports(0, 0), 0),
    };
    (payload.len() >= least).then_some((ends, proto, transport))
}

/// Follows extension headers in a packet that may be cut short. `None` in later fragments.
fn skip_extensions(mut next: u8, mut rest: &[u8]) -> Option<(u8, &[u8])> {
    for _ in 0..=header::MAX_EXTENSIONS {
        let step = match next {
            0 | 43 | 60 => (usize::from(*rest.get(1)?) + 1) * 8,
            51 => (usize::from(*rest.get(1)?) + 2) * 4,
            proto::FRAGMENT if header::load16(rest, 2) & 0xfff8 == 0 => 8,
            proto::FRAGMENT => return None,
            _ => return Some((next, rest)),
        };
        next = *rest.first()?;
        rest = rest.get(step..)?;
    }
    None
}
