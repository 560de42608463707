//! Frames as people read them: `ipv4(src = 10.0.0.1, dst = 8.8.8.8, ttl = 63) / udp(src = 40000, dst = 53) / 5 bytes`, in the
//! notation that packets are written in. In: any bytes. Out: one line. Never: a judgement; what does not parse is so many
//! bytes.

mod tunnels;

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A frame on one line.
pub fn show(frame: &[u8]) -> String {
    let mut layers = vec![];
    let mut rest = Bytes(frame);
    ethernet(&mut rest, &mut layers);
    match rest.0.len() {
        0 => {}
        n if rest.0.iter().all(|byte| *byte == 0) => layers.push(format!("{n} zero bytes")),
        n => layers.push(format!("{n} bytes")),
    }
    layers.join(" / ")
}

/// What is left of a frame.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// The next `n` bytes, if they are there.
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// A two-byte number `at` bytes from here.
    fn peek16(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes([*self.0.get(at)?, *self.0.get(at + 1)?]))
    }
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte))
}

fn mac(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

fn v4(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::from(number(bytes) as u32)
}

fn v6(bytes: &[u8]) -> Ipv6Addr {
    Ipv6Addr::from(bytes.iter().fold(0_u128, |n, byte| n << 8 | u128::from(*byte)))
}

fn ethernet(rest: &mut Bytes<'_>, layers: &mut Vec<String>) {
    let Some(head) = rest.take(12) else { return };
    let mut text = format!("eth(src = {}, dst = {}", mac(&head[6..]), mac(&head[..6]));
    let mut tags = vec![];
    while let Some(tpid @ (0x8100 | 0x88a8)) = rest.peek16(0)
        && rest.0.len() >= 6
    {
        rest.0 = &rest.0[2..];
        let tci = rest.take(2).map_or(0, number);
        let mut tag = format!("vlan(vid = {}", tci & 0xfff);
        if tci >> 13 != 0 {
            let _ = write!(tag, ", pcp = {}", tci >> 13); // writing to a string does not fail
        }
        if tpid != 0x8100 {
            let _ = write!(tag, ", tpid = {tpid:#06x}");
        }
        tags.push(tag + ")");
    }
    let Some(eth_type) = rest.take(2).map(number) else { return layers.push(text + ")") };
    if !matches!(eth_type, 0x0800 | 0x86dd | 0x0806) {
        let _ = write!(text, ", type = {eth_type:#06x}");
    }
    layers.push(text + ")");
    layers.append(&mut tags);
    match eth_type {
        0x0800 => ipv4(rest, layers),
        0x86dd => ipv6(rest, layers),
        0x0806 => arp(rest, layers),
        0x8847 | 0x8848 => tunnels::mpls(rest, layers),
        _ => {}
    }
}

fn arp(rest: &mut Bytes<'_>, layers: &mut Vec<String>) {
    let Some(head) = rest.take(28) else { return };
    layers.push(format!(
        "arp(op = {}, spa = {}, tpa = {}, sha = {}, tha = {})",
        number(&head[6..8]),
        v4(&head[14..18]),
        v4(&head[24..28]),
        mac(&head[8..14]),
        mac(&head[18..24])
    ));
}

fn ipv4(rest: &mut Bytes<'_>, layers: &mut Vec<String>) {
    let length = usize::from(rest.0.first().map_or(0, |byte| byte & 15)) * 4;
    if length < 20 || rest.0[0] >> 4 != 4 {
        return;
    }
    let Some(head) = rest.take(length) else { return };
    let (proto, fragment) = (head[9], number(&head[6..8]));
    let mut text = format!("ipv4(src = {}, dst = {}, ttl = {}", v4(&head[12..16]), v4(&head[16..20]), head[8]);
    for (name, value) in [
        ("dscp", u64::from(head[1] >> 2)),
        ("ecn", u64::from(head[1] & 3)),
        ("id", number(&head[4..6])),
        ("df", fragment >> 14 & 1),
        ("mf", fragment >> 13 & 1),
        ("offset", fragment & 0x1fff),
    ] {
        if value != 0 {
            let _ = write!(text, ", {name} = {value}");
        }
    }
    let later = fragment & 0x1fff != 0;
    ended(text, proto, later, 1, rest, layers);
}

fn ipv6(rest: &mut Bytes<'_>, layers: &mut Vec<String>) {
    let Some(head) = rest.take(40) else { return };
    let first = number(&head[..4]);
    let mut text = format!("ipv6(src = {}, dst = {}, hop_limit = {}", v6(&head[8..24]), v6(&head[24..40]), head[7]);
    for (name, value) in [("dscp", first >> 22 & 63), ("ecn", first >> 20 & 3), ("label", first & 0xf_ffff)] {
        if value != 0 {
            let _ = write!(text, ", {name} = {value}");
        }
    }
    ended(text, head[6], false, 58, rest, layers);
}

/// Ends an IP header, and goes on to what it carries.
fn ended(mut text: String, proto: u8, later: bool, icmp: u8, rest: &mut Bytes<'_>, layers: &mut Vec<String>) {
    if !matches!(proto, 6 | 17 | 132) && proto != icmp || later {
        let _ = write!(text, ", proto = {proto}");
    }
    layers.push(text + ")");
    if later {
        return;
    }
    let length = match proto {
        6 => rest.0.get(12).map_or(20, |byte| usize::from(byte >> 4) * 4).max(20),
        17 => 8,
        132 => 12,
        _ if proto == icmp => 8,
        _ => return,
    };
    let Some(head) = rest.take(length) else { return };
    let ports = format!("src = {}, dst = {}", number(&head[..2]), number(&head[2..4]));
    layers.push(match proto {
        6 => {
            let bits = number(&head[12..14]) as u32 & 0xfff;
            let flags: Vec<&str> =
                crate::field::TCP_FLAGS.iter().filter(|(_, bit)| bits & bit != 0).map(|(name, _)| *name).collect();
            let flags = if flags.is_empty() { "0".to_string() } else { flags.join("|") };
            format!("tcp({ports}, flags = {flags}, seq = {}, ack = {})", number(&head[4..8]), number(&head[8..12]))
        }
        17 => format!("udp({ports})"),
        132 => format!("sctp({ports}, tag = {})", number(&head[4..8])),
        _ => format!("{}(type = {}, code = {})", if icmp == 1 { "icmp" } else { "icmpv6" }, head[0], head[1]),
    });
    if proto == 17 {
        tunnels::behind_udp(number(&head[2..4]), rest, layers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::parse_packet;
    use crate::source::Sources;

    #[test]
    fn what_is_shown_is_what_was_built() {
        for (text, padding) in [
            ("ipv4(src = 10.0.0.1, dst = 8.8.8.8, ttl = 5, proto = 253)", 26_usize),
            ("ipv4(src = 10.0.0.1, dst = 8.8.8.8, ttl = 63) / udp(src = 40000, dst = 53)", 18),
            (
                "ipv4(src = 10.0.0.1, dst = 8.8.8.8, ttl = 1, dscp = 3, df = 1) / tcp(src = 1, dst = 2, flags = syn|ack, seq = 7, ack = 9)",
                6,
            ),
            ("ipv4(src = 10.0.0.1, dst = 8.8.8.8, ttl = 64, offset = 5, proto = 17)", 26),
            ("ipv6(src = 2001:db8::1, dst = 2001:db8::2, hop_limit = 9, label = 5) / icmpv6(type = 128, code = 0)", 0),
            ("ipv6(src = 2001:db8::1, dst = 2001:db8::2, hop_limit = 9) / sctp(src = 1, dst = 2, tag = 3)", 0),
            ("arp(op = 2, spa = 10.0.0.1, tpa = 10.0.0.2, sha = 02:00:00:00:00:01, tha = 00:00:00:00:00:00)", 18),
        ] {
            for tags in ["", "vlan(vid = 5, pcp = 3, tpid = 0x88a8) / vlan(vid = 7) / "] {
                let eth = "eth(src = 02:00:00:00:00:01, dst = 02:00:00:00:00:02) / ";
                let whole = format!("{eth}{tags}{text}");
                let (_, frame) = parse_packet(&mut Sources::default(), &format!("lan: {whole}")).expect("a packet");
                let shown = show(&frame);
                let padding = if tags.is_empty() { padding } else { padding.saturating_sub(8) };
                let padded = if padding == 0 { whole } else { format!("{whole} / {padding} zero bytes") };
                assert_eq!(shown, padded);
                // Any prefix of it is shown, too.
                (0..frame.len()).for_each(|length| assert!(length == 0 || !show(&frame[..length]).is_empty()));
            }
        }
        assert_eq!(show(&[1, 2, 3]), "3 bytes");
    }

    #[test]
    fn labels_and_tunnels_are_shown_with_what_is_inside() {
        let eth = "eth(src = 02:00:00:00:00:01, dst = 02:00:00:00:00:02";
        let ip = "ipv4(src = 10.0.0.1, dst = 8.8.8.8, ttl = 9) / udp(src = 1, dst = 53)";
        let outer = "ipv4(src = 1.1.1.1, dst = 2.2.2.2, ttl = 64) / udp(src = 7, dst = ";
        for text in [
            format!(
                "{eth}, type = 0x8847) / mpls(label = 5, tc = 3, bos = 0, ttl = 4) / mpls(label = 6, bos = 1, ttl = 8) / {ip}"
            ),
            format!("{eth}) / {outer}4789) / vxlan(vni = 77) / {eth}) / {ip}"),
            format!("{eth}) / {outer}2152) / gtpu(teid = 9) / {ip}"),
        ] {
            let (_, frame) = parse_packet(&mut Sources::default(), &format!("lan: {text}")).expect("a packet");
            let shown = show(&frame);
            assert!(shown.starts_with(&text), "{shown} is not {text}");
            (1..frame.len()).for_each(|length| assert!(!show(&frame[..length]).is_empty()));
        }
    }

    #[test]
    fn nothing_is_shown_as_nothing() {
        assert_eq!(show(&[]), "");
    }
}
