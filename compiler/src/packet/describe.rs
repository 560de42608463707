//! A frame as a test would write it: bytes to `ipv4(src = 10.0.0.1) / udp(dst = 53) / "payload"`.
//!
//! In: a frame. Out: a text from which [`super::parse_packet`] makes exactly this frame; only what differs from a plain packet is
//! in it, and what cannot be written so is `hex("…")`. It reads bytes as they come, and never trusts them: what it has made of
//! them is built again and compared.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::headers::HEADERS;
use crate::field::{Kind, TCP_FLAGS};
use crate::source::Sources;

/// The text of a frame.
pub fn describe(frame: &[u8]) -> String {
    let text = layers(frame).map(|layers| layers.join(" / "));
    text.filter(|text| builds(text, frame)).unwrap_or_else(|| format!("hex(\"{}\")", hex(frame)))
}

fn builds(text: &str, frame: &[u8]) -> bool {
    let built = super::parse_packet(&mut Sources::default(), &format!("p: {text}"));
    built.is_ok_and(|(_, built)| built == frame)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes numbers off the front of bytes.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, n: usize) -> Option<u128> {
        Some(self.take(n)?.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }
}

fn layers(frame: &[u8]) -> Option<Vec<String>> {
    let mut bytes = Bytes(frame);
    let mut layers = vec![];
    let eth = [("dst", bytes.number(6)?), ("src", bytes.number(6)?)];
    let mut next = bytes.number(2)?;
    layers.extend(some(header("eth", &eth)?));
    while next == 0x8100 || next == 0x88a8 {
        let (tci, inner) = (bytes.number(2)?, bytes.number(2)?);
        layers
            .push(header("vlan", &[("vid", tci & 0xfff), ("pcp", tci >> 13), ("dei", tci >> 12 & 1), ("tpid", next)])?);
        next = inner;
    }
    let known = match next {
        0x0800 => ipv4(&mut bytes, &mut layers),
        0x86dd => ipv6(&mut bytes, &mut layers),
        0x0806 => arp(&mut bytes, &mut layers),
        _ => None,
    };
    if known.is_none() && layers.is_empty() {
        layers.push(format!("eth(type = {next:#06x})"));
        payload(trimmed(bytes.0), &mut layers);
    }
    (!layers.is_empty()).then_some(layers)
}

/// Without the zeros at the end, which padding may have been.
fn trimmed(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

/// A header that says something; `eth()` says nothing.
fn some(header: String) -> Option<String> {
    (!header.ends_with("()")).then_some(header)
}

fn arp(bytes: &mut Bytes<'_>, layers: &mut Vec<String>) -> Option<()> {
    bytes.take(6)?;
    let (op, sha, spa) = (bytes.number(2)?, bytes.number(6)?, bytes.number(4)?);
    let (tha, tpa) = (bytes.number(6)?, bytes.number(4)?);
    layers.push(header("arp", &[("op", op), ("spa", spa), ("tpa", tpa), ("sha", sha), ("tha", tha)])?);
    Some(())
}

fn ipv4(bytes: &mut Bytes<'_>, layers: &mut Vec<String>) -> Option<()> {
    bytes.take(1)?;
    let (class, total) = (bytes.number(1)?, bytes.number(2)? as usize);
    let (id, fragment, ttl) = (bytes.number(2)?, bytes.number(2)?, bytes.number(1)?);
    let proto = bytes.number(1)?;
    bytes.take(2)?;
    let mut parts = vec![("src", bytes.number(4)?), ("dst", bytes.number(4)?), ("ttl", ttl)];
    let fragments = [("df", fragment >> 14 & 1), ("mf", fragment >> 13 & 1), ("offset", fragment & 0x1fff)];
    parts.extend([("dscp", class >> 2), ("ecn", class & 3), ("id", id)]);
    parts.extend(fragments);
    let mut body = Bytes(bytes.take(total.checked_sub(20)?)?);
    transport("ipv4", parts, proto, &mut body, layers)
}

fn ipv6(bytes: &mut Bytes<'_>, layers: &mut Vec<String>) -> Option<()> {
    let (word, length) = (bytes.number(4)?, bytes.number(2)? as usize);
    let (proto, hops) = (bytes.number(1)?, bytes.number(1)?);
    let mut parts = vec![("src", bytes.number(16)?), ("dst", bytes.number(16)?), ("hop_limit", hops)];
    parts.extend([("dscp", word >> 22 & 0x3f), ("ecn", word >> 20 & 3), ("label", word & 0xf_ffff)]);
    let mut body = Bytes(bytes.take(length)?);
    transport("ipv6", parts, proto, &mut body, layers)
}

fn transport(
    ip: &'static str,
    mut parts: Vec<(&'static str, u128)>,
    proto: u128,
    body: &mut Bytes<'_>,
    layers: &mut Vec<String>,
) -> Option<()> {
    let whole = body.0;
    match ports(ip, proto, body) {
        Some(layer) => {
            layers.push(header(ip, &parts)?);
            layers.push(layer);
        }
        None => {
            body.0 = whole;
            parts.push(("proto", proto));
            layers.push(header(ip, &parts)?);
        }
    }
    payload(body.0, layers);
    Some(())
}

/// The transport header behind IP.
fn ports(ip: &str, proto: u128, bytes: &mut Bytes<'_>) -> Option<String> {
    match (ip, proto) {
        (_, 6) => {
            let mut parts = vec![("src", bytes.number(2)?), ("dst", bytes.number(2)?)];
            let (seq, ack) = (bytes.number(4)?, bytes.number(4)?);
            parts.extend([("flags", bytes.number(2)? & 0xfff), ("seq", seq), ("ack", ack), ("win", bytes.number(2)?)]);
            bytes.take(4)?;
            header("tcp", &parts)
        }
        (_, 17) => {
            let parts = [("src", bytes.number(2)?), ("dst", bytes.number(2)?)];
            bytes.take(4)?;
            header("udp", &parts)
        }
        (_, 132) => {
            let parts = [("src", bytes.number(2)?), ("dst", bytes.number(2)?), ("tag", bytes.number(4)?)];
            bytes.take(4)?;
            header("sctp", &parts)
        }
        ("ipv4", 1) | ("ipv6", 58) => {
            let (kind, code) = (bytes.number(1)?, bytes.number(1)?);
            bytes.take(2)?;
            let parts = [("type", kind), ("code", code), ("id", bytes.number(2)?), ("seq", bytes.number(2)?)];
            header(if ip == "ipv4" { "icmp" } else { "icmpv6" }, &parts)
        }
        _ => None,
    }
}

fn payload(bytes: &[u8], layers: &mut Vec<String>) {
    let plain = |byte: &u8| (byte.is_ascii_graphic() || *byte == b' ') && *byte != b'"' && *byte != b'\\';
    match bytes {
        [] => {}
        bytes if bytes.iter().all(plain) => layers.push(format!("\"{}\"", String::from_utf8_lossy(bytes))),
        bytes => layers.push(format!("hex(\"{}\")", hex(bytes))),
    }
}

/// A header with those of its parts that are not what they would be anyway.
fn header(name: &str, values: &[(&str, u128)]) -> Option<String> {
    let (.., parts) = HEADERS.iter().find(|(known, ..)| *known == name)?;
    let mut said = vec![];
    for (part, value) in values {
        let (_, kind, _, usual) = parts.iter().find(|(known, ..)| known == part)?;
        // DNS, unless what follows says otherwise.
        let usual = if (name, *part) == ("udp", "dst") { Some(53) } else { *usual };
        if usual != Some(*value) {
            said.push(format!("{part} = {}", written(*kind, *value)));
        }
    }
    Some(format!("{name}({})", said.join(", ")))
}

/// A value as tests write it.
pub fn written(kind: Kind, value: u128) -> String {
    match kind {
        Kind::Mac => value.to_be_bytes()[10..].iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":"),
        Kind::Ipv4 => Ipv4Addr::from(value as u32).to_string(),
        Kind::Ipv6 => Ipv6Addr::from(value).to_string(),
        Kind::Flags => {
            let names: Vec<&str> =
                TCP_FLAGS.iter().filter(|(_, bit)| value & u128::from(*bit) != 0).map(|(name, _)| *name).collect();
            let known = TCP_FLAGS.iter().fold(0, |known, (_, bit)| known | u128::from(*bit));
            if value & !known != 0 || names.is_empty() { value.to_string() } else { names.join("|") }
        }
        Kind::Number | Kind::Port => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Vec<u8> {
        super::super::parse_packet(&mut Sources::default(), &format!("p: {text}")).expect("a packet").1
    }

    #[test]
    fn what_tests_write_is_written_again() {
        for text in [
            "ipv4(src = 10.0.0.1, dst = 8.8.8.8) / udp(src = 1000) / \"hello\"",
            "eth(src = 02:00:00:00:00:ee) / vlan(vid = 10, pcp = 5) / ipv6(hop_limit = 9) / tcp(dst = 443, flags = syn|ack)",
            "vlan(vid = 5, tpid = 34984) / vlan(vid = 7) / arp(op = 2)",
            "ipv4(mf = 1) / sctp(tag = 7)",
            "ipv4(proto = 47) / hex(\"0102\")",
            "ipv4() / icmp(type = 3)",
            "ipv6() / icmpv6()",
            "arp()",
            "eth(type = 0x88cc) / \"a\"",
            "hex(\"0102\")",
        ] {
            assert_eq!(describe(&frame(text)), text);
        }
    }

    #[test]
    fn what_cannot_be_written_is_bytes() {
        for bytes in [vec![], vec![1; 14], vec![0x45; 40], frame("ipv4() / udp()")[..50].to_vec()] {
            let text = describe(&bytes);
            assert_eq!(frame(&text), bytes, "{text}");
        }
        let mut broken = frame("ipv4() / tcp()");
        broken[24] ^= 1; // the checksum
        assert!(describe(&broken).starts_with("hex("));
    }
}
