//! The short ways from a frame to a key: TCP and UDP without a tag, IP options, extension headers or fragments, and with
//! nothing wrong.
//!
//! In goes a frame; if it is of that kind, out comes what [`parse`](super::parse) would say of it. If it is not, or anything
//! about it is wrong, the answer is no, and the long way tells why.

use pipec_abi::header::{self, proto};

use super::checksum::Sum;
use super::key::{self, Key6};
use super::parse::{Class, Parsed};
use super::tcp::{self, Segment};
use super::tcp_options::say_nothing;

/// `N` bytes at `at`, which are there.
#[inline(always)]
fn field<const N: usize, const M: usize>(bytes: &[u8; M], at: usize) -> [u8; N] {
    match bytes[at..].first_chunk() {
        Some(field) => *field,
        None => [0; N],
    }
}

/// A plain IPv4 packet: fills `parsed`.
#[inline(always)]
pub fn plain4(data: &[u8], zone: u16, parsed: &mut Parsed) -> bool {
    let Some(head) = data.first_chunk::<42>() else {
        return false;
    };
    // Type, version and header length, TOS, total length, identifier: all in one word.
    let lead = u64::from_le_bytes(field(head, 12));
    let total = usize::from(((lead >> 32) as u16).swap_bytes());
    let fragment = u16::from_ne_bytes(field(head, 20)) & 0x3fff_u16.to_be();
    let ip = Sum::default().eight(field(head, 14)).eight(field(head, 22)).four(field(head, 30));
    let ports = u32::from_be_bytes(field(head, 34));
    // IPv4, five words of header: `& 0f` leaves out the version, which is not checked.
    let is_plain = (lead & 0x0f_ffff == 0x05_0008) & (fragment == 0) & are_ports(ports) & ip.is_right();
    if !is_plain {
        return false;
    }
    let Some(payload) = data.get(34..14 + total) else {
        return false;
    };
    let proto = head[23];
    let pseudo = Sum::default().eight(field(head, 26)).number(u32::from(proto));
    if proto == proto::UDP && field(head, 40) == [0, 0] {
        let len = usize::from(u16::from_be_bytes(field(head, 38)));
        if len < 8 || len > payload.len() {
            return false;
        }
        parsed.class = Class::Other;
    } else if !transport(payload, proto, pseudo, 34, parsed) {
        return false;
    }
    let addresses = u64::from_be_bytes(field(head, 26));
    let (src, dst) = ((addresses >> 32) as u32, addresses as u32);
    (parsed.key4, parsed.swapped) = key::key4(src, dst, (ports >> 16) as u16, ports as u16, proto, zone);
    parsed.v6 = false;
    true
}

/// A plain IPv6 packet: fills `parsed` and `key6`.
#[inline(always)]
pub fn plain6(data: &[u8], zone: u16, parsed: &mut Parsed, key6: &mut Key6) -> bool {
    let Some(head) = data.first_chunk::<62>() else {
        return false;
    };
    let is_ip = u16::from_be_bytes(field(head, 12)) == header::IPV6;
    let ports = u32::from_be_bytes(field(head, 54));
    if !(is_ip & are_ports(ports)) {
        return false;
    }
    let len = usize::from(u16::from_be_bytes(field(head, 18)));
    let Some(payload) = data.get(54..54 + len) else {
        return false;
    };
    let proto = head[20];
    let pseudo = Sum::default().eight(field(head, 22)).eight(field(head, 30)).eight(field(head, 38));
    let pseudo = pseudo.eight(field(head, 46)).number(u32::from(proto));
    if !transport(payload, proto, pseudo, 54, parsed) {
        return false;
    }
    let (src, dst) = (u128::from_be_bytes(field(head, 22)), u128::from_be_bytes(field(head, 38)));
    (*key6, parsed.swapped) = key::key6(src, dst, (ports >> 16) as u16, ports as u16, proto, zone);
    parsed.v6 = true;
    true
}

/// Whether neither of two ports is 0.
#[inline(always)]
fn are_ports(ports: u32) -> bool {
    (ports >> 16 != 0) & (ports as u16 != 0)
}

/// Validates TCP, or UDP with a checksum, that lies `at` in its frame.
#[inline(always)]
fn transport(payload: &[u8], proto: u8, pseudo: Sum, at: u16, parsed: &mut Parsed) -> bool {
    if proto == proto::TCP {
        let Some(head) = payload.first_chunk::<20>() else {
            return false;
        };
        let header_len = usize::from(head[12] >> 4) * 4;
        let flags = head[13];
        if header_len < 20 || header_len > payload.len() || !tcp::are_legal(flags) {
            return false;
        }
        if !pseudo.number(payload.len() as u32).slice(payload).is_right() {
            return false;
        }
        let options = &payload[20..header_len];
        parsed.class = Class::Tcp;
        parsed.segment = Segment {
            seq: u32::from_be_bytes(field(head, 4)),
            ack: u32::from_be_bytes(field(head, 8)),
            len: (payload.len() - header_len) as u16,
            window: u16::from_be_bytes(field(head, 14)),
            options_at: at + 20,
            options_len: if say_nothing(options) { 0 } else { options.len() as u8 },
            flags,
        };
        true
    } else if proto == proto::UDP {
        let Some(head) = payload.first_chunk::<8>() else {
            return false;
        };
        let len = usize::from(u16::from_be_bytes(field(head, 4)));
        parsed.class = Class::Other;
        // The exception of IPv4, a checksum of 0, was made before.
        len >= 8
            && len <= payload.len()
            && field(head, 6) != [0, 0]
            && pseudo.number(payload.len() as u32).slice(payload).is_right()
    } else {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conntrack::parse::{Invalid, parse};
    use crate::conntrack::tests::frames::{A, A6, ACK, B, B6, OPTIONS, SYN, Tcp, udp};

    /// What both ways must agree on.
    fn told(parsed: &Parsed, key6: Key6) -> (Class, bool, bool, key::Key4, Key6, Option<Segment>) {
        let segment = (parsed.class == Class::Tcp).then_some(parsed.segment);
        let (key4, key6) = if parsed.v6 { ([0; 2], key6) } else { (parsed.key4, [0; 5]) };
        (parsed.class, parsed.v6, parsed.swapped, key4, key6, segment)
    }

    fn short(frame: &[u8]) -> Option<(Parsed, Key6)> {
        let (mut parsed, mut key6) = (Parsed::invalid(Invalid::NotIp), [0; 5]);
        let is_plain = plain4(frame, 7, &mut parsed) || plain6(frame, 7, &mut parsed, &mut key6);
        is_plain.then_some((parsed, key6))
    }

    #[test]
    fn what_is_plain_is_the_same_the_long_way() {
        let stamp = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let mut frames = Vec::new();
        for (src, dst) in [(A, B), (B, A), (A6, B6), (B6, A6)] {
            frames.push(udp(src, dst, 1000, 53));
            for (flags, options, len) in [(SYN, OPTIONS, 0), (ACK, &[], 3), (ACK, &stamp[..], 200)] {
                let tcp = Tcp { src, dst, from: 5, to: 6, flags, seq: 1, ack: 2, window: 3, options, len };
                frames.push(tcp.frame());
            }
        }
        let mut state = 1u64;
        let mut random = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n
        };
        let mut plain = 0;
        for frame in &frames {
            assert!(short(frame).is_some());
            for _ in 0..20_000 {
                let mut frame = frame.clone();
                for _ in 0..random(3) {
                    // Changes that keep the checksum right, too: the same to two words an even number of bytes apart.
                    let (a, b, byte) = (random(frame.len()), random(frame.len()), random(256) as u8);
                    frame[a] = frame[a].wrapping_add(byte);
                    frame[b] = frame[b].wrapping_sub(byte);
                }
                frame.truncate(frame.len() - random(20) * usize::from(random(4) == 0));
                frame.resize(frame.len() + random(3) * 150, 0x33);
                if let Some((parsed, key6)) = short(&frame) {
                    let mut long6 = [0; 5];
                    let long = parse(&frame, 7, 1, &mut long6);
                    assert_eq!(told(&parsed, key6), told(&long, long6), "{frame:02x?}");
                    plain += 1;
                }
            }
        }
        assert!(plain > 20_000, "{plain} of the changed frames were plain");
    }
}
