//! Packets as tests write them: `ipv4(src = 10.0.0.1) / udp(dst = 53) / "payload"` to bytes.
//!
//! Layers stand outermost first; without `eth` at the front there is one all the same. What is not given has a value that
//! makes a plain packet; types, protocols, lengths and checksums follow from what comes behind. Frames are padded to 60
//! bytes, but those that begin with `hex("…")`, which are taken as they are. Never reads what it has written.

use crate::ast::{Arg, Expr, ExprKind, Layer, Packet, Spanned};
use crate::diag::Diagnostic;
use crate::field::{Kind, TCP_FLAGS};
use crate::resolve::value::{Constant, describe, max};
use crate::source::{Sources, Span};
use crate::suggest::closest;

/// Bytes of a frame without padding.
const MIN_FRAME: usize = 60;
/// Bytes of a frame, at the most.
const MAX_FRAME: usize = 65_535;

/// How the value of an expression is found; says why if there is none.
type Constants<'c> = dyn FnMut(&Expr, &[(&str, u32)]) -> Option<Constant> + 'c;

/// Parses `PORT: packet`, as `pipec trace` takes it. The text is added to `sources` for messages.
pub fn parse_packet(sources: &mut Sources, text: &str) -> Result<(String, Vec<u8>), Vec<Diagnostic>> {
    let file = sources.add("packet", text);
    let mut diagnostics = vec![];
    let mut found = vec![];
    let frame = crate::parse::packet(text, file, &mut diagnostics).and_then(|(port, packet)| {
        match build(&packet, &mut |expr, flags| crate::resolve::literal(expr, flags, &mut found)) {
            Ok(frame) => Some((port.node, frame)),
            Err(mut errors) => {
                diagnostics.append(&mut errors);
                None
            }
        }
    });
    diagnostics.append(&mut found);
    frame.ok_or(diagnostics)
}

/// A header that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    Eth,
    Vlan,
    Arp,
    Ipv4,
    Ipv6,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmpv6,
}

/// A part of a header: name, kind, width, and what it is if not given; none: it follows from the rest.
type Part = (&'static str, Kind, u8, Option<u128>);

const MAC_A: u128 = 0x0200_0000_0001;
const MAC_B: u128 = 0x0200_0000_0002;
/// 192.0.2.1 and 192.0.2.2, for documentation (RFC 5737).
const V4_A: u128 = 0xc000_0201;
const V4_B: u128 = 0xc000_0202;
/// 2001:db8::1 and 2001:db8::2, for documentation (RFC 3849).
const V6_A: u128 = 0x2001_0db8 << 96 | 1;
const V6_B: u128 = 0x2001_0db8 << 96 | 2;

/// Names of headers, and their parts.
const HEADERS: &[(&str, Header, &[Part])] = &[
    (
        "eth",
        Header::Eth,
        &[("dst", Kind::Mac, 48, Some(MAC_B)), ("src", Kind::Mac, 48, Some(MAC_A)), ("type", Kind::Number, 16, None)],
    ),
    (
        "vlan",
        Header::Vlan,
        &[
            ("vid", Kind::Number, 12, Some(0)),
            ("pcp", Kind::Number, 3, Some(0)),
            ("dei", Kind::Number, 1, Some(0)),
            ("tpid", Kind::Number, 16, Some(0x8100)),
            ("type", Kind::Number, 16, None),
        ],
    ),
    (
        "arp",
        Header::Arp,
        &[
            ("op", Kind::Number, 16, Some(1)),
            ("spa", Kind::Ipv4, 32, Some(V4_A)),
            ("tpa", Kind::Ipv4, 32, Some(V4_B)),
            ("sha", Kind::Mac, 48, Some(MAC_A)),
            ("tha", Kind::Mac, 48, Some(0)),
        ],
    ),
    (
        "ipv4",
        Header::Ipv4,
        &[
            ("src", Kind::Ipv4, 32, Some(V4_A)),
            ("dst", Kind::Ipv4, 32, Some(V4_B)),
            ("ttl", Kind::Number, 8, Some(64)),
            ("proto", Kind::Number, 8, None),
            ("dscp", Kind::Number, 6, Some(0)),
            ("ecn", Kind::Number, 2, Some(0)),
            ("id", Kind::Number, 16, Some(0)),
            ("df", Kind::Number, 1, Some(0)),
            ("mf", Kind::Number, 1, Some(0)),
            ("offset", Kind::Number, 13, Some(0)),
        ],
    ),
    (
        "ipv6",
        Header::Ipv6,
        &[
            ("src", Kind::Ipv6, 128, Some(V6_A)),
            ("dst", Kind::Ipv6, 128, Some(V6_B)),
            ("hop_limit", Kind::Number, 8, Some(64)),
            ("proto", Kind::Number, 8, None),
            ("dscp", Kind::Number, 6, Some(0)),
            ("ecn", Kind::Number, 2, Some(0)),
            ("label", Kind::Number, 20, Some(0)),
        ],
    ),
    (
        "tcp",
        Header::Tcp,
        &[
            ("src", Kind::Number, 16, Some(40_000)),
            ("dst", Kind::Number, 16, Some(80)),
            ("flags", Kind::Flags, 12, Some(0x002)),
            ("seq", Kind::Number, 32, Some(0)),
            ("ack", Kind::Number, 32, Some(0)),
            ("win", Kind::Number, 16, Some(64_240)),
        ],
    ),
    ("udp", Header::Udp, &[("src", Kind::Number, 16, Some(40_000)), ("dst", Kind::Number, 16, Some(53))]),
    (
        "sctp",
        Header::Sctp,
        &[
            ("src", Kind::Number, 16, Some(40_000)),
            ("dst", Kind::Number, 16, Some(2_905)),
            ("tag", Kind::Number, 32, Some(0)),
        ],
    ),
    (
        "icmp",
        Header::Icmp,
        &[
            ("type", Kind::Number, 8, Some(8)),
            ("code", Kind::Number, 8, Some(0)),
            ("id", Kind::Number, 16, Some(1)),
            ("seq", Kind::Number, 16, Some(1)),
        ],
    ),
    (
        "icmpv6",
        Header::Icmpv6,
        &[
            ("type", Kind::Number, 8, Some(128)),
            ("code", Kind::Number, 8, Some(0)),
            ("id", Kind::Number, 16, Some(1)),
            ("seq", Kind::Number, 16, Some(1)),
        ],
    ),
];

/// A layer with its values, in the order of the header's parts.
enum Built {
    Header(Header, Vec<Option<u128>>),
    Bytes(Vec<u8>),
}

/// Builds the frame of a packet.
pub fn build(packet: &Packet, constants: &mut Constants) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let mut reader = Reader { constants, diagnostics: vec![] };
    let mut layers = vec![];
    let mut whole = true;
    for layer in &packet.layers {
        match reader.layer(layer) {
            Some(part) => layers.push((part, layer.span)),
            None => whole = false,
        }
    }
    if !whole || !reader.stacked(&layers) {
        return Err(reader.diagnostics);
    }
    let Some((first, span)) = layers.first().map(|(layer, span)| (layer, *span)) else { return Ok(vec![]) };
    let raw = matches!(first, Built::Bytes(_));
    let mut frame = encode(&layers, raw);
    if frame.len() > MAX_FRAME {
        let message = format!("this packet is longer than {MAX_FRAME} bytes");
        let end = layers.last().map_or(span, |(_, last)| span.to(*last));
        return Err(vec![Diagnostic::error("value-too-big", message, end, format!("{} bytes", frame.len()))]);
    }
    if !raw && frame.len() < MIN_FRAME {
        frame.resize(MIN_FRAME, 0);
    }
    Ok(frame)
}

struct Reader<'c, 'e> {
    constants: &'c mut Constants<'e>,
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_, '_> {
    fn error(&mut self, code: &'static str, message: impl Into<String>, span: Span, label: &str) {
        self.diagnostics.push(Diagnostic::error(code, message, span, label));
    }

    fn layer(&mut self, layer: &Spanned<Layer>) -> Option<Built> {
        match &layer.node {
            Layer::Payload(text) => Some(Built::Bytes(text.clone().into_bytes())),
            Layer::Header(name, args) if name.node == "hex" => self.hex(args, layer.span).map(Built::Bytes),
            Layer::Header(name, args) => {
                let Some((_, header, parts)) = HEADERS.iter().find(|(n, ..)| *n == name.node) else {
                    let message = format!("a packet has no header `{}`", name.node);
                    let names = HEADERS.iter().map(|(n, ..)| *n).chain(["hex"]);
                    let help = match closest(&name.node, names.clone()) {
                        Some(close) => format!("did you mean `{close}`?"),
                        None => format!("headers are {}", names.collect::<Vec<_>>().join(", ")),
                    };
                    self.diagnostics
                        .push(Diagnostic::error("unknown-name", message, name.span, "not known").help(help));
                    return None;
                };
                self.header(&name.node, parts, args).map(|values| Built::Header(*header, values))
            }
        }
    }

    fn hex(&mut self, args: &[Arg], span: Span) -> Option<Vec<u8>> {
        let [Arg { name: None, value: Spanned { node: ExprKind::Text(text), span } }] = args else {
            self.error("arguments", "`hex` takes one string of hexadecimal digits", span, "expected `hex(\"…\")`");
            return None;
        };
        let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b':').collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let valid = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
        let bytes = valid.then(|| digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>()).flatten();
        if bytes.is_none() {
            self.error("bad-literal", "these are not bytes", *span, "expected an even number of hexadecimal digits");
        }
        bytes
    }

    /// The values of a header's parts.
    fn header(&mut self, header: &str, parts: &[Part], args: &[Arg]) -> Option<Vec<Option<u128>>> {
        let mut values: Vec<Option<u128>> = parts.iter().map(|part| part.3).collect();
        let mut given: Vec<Option<Span>> = vec![None; parts.len()];
        let mut whole = true;
        for arg in args {
            let Some(name) = &arg.name else {
                let message = format!("values of `{header}` have names");
                self.error("arguments", message, arg.value.span, "expected `name = value`");
                whole = false;
                continue;
            };
            let Some(index) = parts.iter().position(|part| part.0 == name.node) else {
                let message = format!("`{header}` has no `{}` here", name.node);
                let names: Vec<&str> = parts.iter().map(|part| part.0).collect();
                let help = match closest(&name.node, names.iter().copied()) {
                    Some(close) => format!("did you mean `{close}`?"),
                    None => format!("it has {}", names.join(", ")),
                };
                self.diagnostics.push(Diagnostic::error("unknown-name", message, name.span, "not known").help(help));
                whole = false;
                continue;
            };
            if let Some(first) = given[index].replace(name.span) {
                let message = format!("`{}` is given twice", name.node);
                self.diagnostics
                    .push(Diagnostic::error("duplicate", message, name.span, "again here").label(first, "first here"));
                whole = false;
            }
            match self.value(&parts[index], arg) {
                Some(value) => values[index] = Some(value),
                None => whole = false,
            }
        }
        whole.then_some(values)
    }

    fn value(&mut self, part: &Part, arg: &Arg) -> Option<u128> {
        let (name, kind, width, _) = *part;
        let flags = if kind == Kind::Flags { TCP_FLAGS } else { &[] };
        let value = (self.constants)(&arg.value, flags)?;
        let wanted = if kind == Kind::Flags { Kind::Number } else { kind };
        if value.kind != wanted {
            let message = format!("`{name}` is {}, not {}", describe(kind), describe(value.kind));
            self.error("wrong-kind", message, arg.value.span, describe(value.kind));
            return None;
        }
        if value.bits > max(width) {
            let message = format!("this value does not fit into `{name}`");
            self.error("value-too-big", message, arg.value.span, &format!("it has {width} bits"));
            return None;
        }
        Some(value.bits)
    }

    /// Whether each layer can stand where it does.
    fn stacked(&mut self, layers: &[(Built, Span)]) -> bool {
        use Header::*;
        let mut below: Option<(Option<Header>, Span)> = None;
        for (part, span) in layers {
            let header = if let Built::Header(header, _) = part { Some(*header) } else { None };
            let allowed = match (header, below.map(|(header, _)| header)) {
                (None, _) => true,
                (Some(Eth), below) => below.is_none(),
                (Some(Vlan), below) => matches!(below, None | Some(Some(Eth | Vlan))),
                (Some(Arp), below) => matches!(below, None | Some(Some(Eth | Vlan))),
                (Some(Ipv4), below) => matches!(below, None | Some(Some(Eth | Vlan | Icmp))),
                (Some(Ipv6), below) => matches!(below, None | Some(Some(Eth | Vlan | Icmpv6))),
                (Some(Tcp | Udp | Sctp), below) => matches!(below, Some(Some(Ipv4 | Ipv6))),
                (Some(Icmp), below) => below == Some(Some(Ipv4)),
                (Some(Icmpv6), below) => below == Some(Some(Ipv6)),
            };
            if !allowed {
                let message = "this header cannot stand here";
                let diagnostic = match below {
                    Some((_, place)) => {
                        Diagnostic::error("bad-packet", message, *span, "not behind what stands before it")
                            .label(place, "what stands before it")
                    }
                    None => Diagnostic::error("bad-packet", message, *span, "not at the beginning"),
                };
                let help = "write, for example, `ipv4(src = 10.0.0.1, dst = 10.0.0.2) / udp(dst = 53)`";
                self.diagnostics.push(diagnostic.help(help));
                return false;
            }
            below = Some((header, *span));
        }
        true
    }
}

/// The bytes of a stack of layers; `raw`: without an Ethernet header of its own.
fn encode(layers: &[(Built, Span)], raw: bool) -> Vec<u8> {
    let mut body: Vec<u8> = vec![];
    for (index, (layer, _)) in layers.iter().enumerate().rev() {
        let next = layers.get(index + 1).map(|(layer, _)| layer);
        match layer {
            Built::Bytes(bytes) => body = [bytes.as_slice(), &body].concat(),
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
    encode_header(Header::Eth, &[Some(MAC_B), Some(MAC_A), None], body, first, None)
}

fn header_of(layer: Option<&Built>) -> Option<Header> {
    if let Some(Built::Header(header, _)) = layer { Some(*header) } else { None }
}

/// Big-endian bytes of a value.
fn put(out: &mut Vec<u8>, value: u128, bytes: usize) {
    out.extend_from_slice(&value.to_be_bytes()[16 - bytes..]);
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
            put(&mut out, values[2].unwrap_or(eth_type(next)), 2);
        }
        Header::Vlan => {
            put(&mut out, value(1) << 13 | value(2) << 12 | value(0), 2);
            put(&mut out, values[4].unwrap_or(eth_type(next)), 2);
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
            put(&mut out, 0x45, 1);
            put(&mut out, value(4) << 2 | value(5), 1);
            put(&mut out, (body.len() as u128 + 20) & 0xffff, 2);
            put(&mut out, value(6), 2);
            put(&mut out, value(7) << 14 | value(8) << 13 | value(9), 2);
            put(&mut out, value(2), 1);
            put(&mut out, values[3].unwrap_or(protocol(next)), 1);
            put(&mut out, 0, 2);
            put(&mut out, value(0), 4);
            put(&mut out, value(1), 4);
            let sum = checksum(&[&out]);
            out[10..12].copy_from_slice(&sum);
        }
        Header::Ipv6 => {
            put(&mut out, 6 << 28 | value(4) << 22 | value(5) << 20 | value(6), 4);
            put(&mut out, body.len() as u128 & 0xffff, 2);
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
            put(&mut out, 5 << 12 | value(2), 2);
            put(&mut out, value(5), 2);
            put(&mut out, 0, 4);
            let sum = checksum(&[&pseudo(below, 6, 20 + body.len()), &out, &body]);
            out[16..18].copy_from_slice(&sum);
        }
        Header::Udp => {
            put(&mut out, value(0), 2);
            put(&mut out, value(1), 2);
            put(&mut out, (body.len() as u128 + 8) & 0xffff, 2);
            put(&mut out, 0, 2);
            let sum = checksum(&[&pseudo(below, 17, 8 + body.len()), &out, &body]);
            // 0 would say that there is no checksum.
            out[6..8].copy_from_slice(if sum == [0, 0] { &[0xff, 0xff] } else { &sum });
        }
        Header::Sctp => {
            put(&mut out, value(0), 2);
            put(&mut out, value(1), 2);
            put(&mut out, value(2), 4);
            put(&mut out, 0, 4);
            let sum = crc32c(&[&out, &body]).to_le_bytes();
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
            out[2..4].copy_from_slice(&sum);
        }
    }
    out.extend_from_slice(&body);
    out
}

/// The Ethernet type of what follows, of a tag its `tpid`; for local experiments (IEEE 802) where it is unknown.
fn eth_type(next: Option<&Built>) -> u128 {
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
        _ => 253,
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

    fn frame(text: &str) -> String {
        let (port, frame) = parse_packet(&mut Sources::default(), &format!("lan: {text}")).expect("a packet");
        assert_eq!(port, "lan");
        frame.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Expected bytes are made by an independent program.
    #[test]
    fn headers_lengths_and_checksums_are_right() {
        let udp = "02000000000202000000000108004500002100000000401160bc0a0000010808080803e80035000d9dd468656c6c6f";
        assert_eq!(
            frame("ipv4(src = 10.0.0.1, dst = 8.8.8.8) / udp(src = 1000, dst = 53) / \"hello\""),
            udp.to_string() + &"00".repeat(MIN_FRAME - 47)
        );
        assert_eq!(
            frame(
                "eth(src = 02:00:00:00:00:ee, dst = 0a:00:00:00:00:ff) / vlan(vid = 10, pcp = 5) \
                 / ipv6(hop_limit = 9, dscp = 3, ecn = 1, label = 5) \
                 / tcp(src = 1234, dst = 443, seq = 7, ack = 9, win = 1000, flags = syn|ack) / hex(\"61 62:63\")"
            ),
            "0a00000000ff0200000000ee8100a00a86dd60d00005001706092001\
             0db800000000000000000000000120010db800000000000000000000000204d201bb0000000700000009501203e885730000616263"
                .replace(' ', "")
        );
        assert!(frame("ipv4() / icmp(seq = 2) / \"x\"").contains("08007ffc0001000278"));
        assert!(frame("ipv6() / icmpv6()").contains("8000244600010001"));
        assert_eq!(crc32c(&[b"1234", b"56789"]), 0xe306_9283);
    }

    #[test]
    fn types_and_tags_follow_from_what_comes_behind() {
        assert!(frame("vlan(vid = 5, tpid = 0x88a8) / vlan(vid = 7) / arp(op = 2)").starts_with(
            "02000000000202000000000188a8000581000007080600010800060400020200000000\
             01c000020100000000\
             0000c0000202"
        ));
        assert_eq!(frame("hex(\"0102\")"), "0102");
        assert!(frame("eth(type = 0x88cc) / \"a\"").starts_with("02000000000202000000000188cc61"));
        // An error message holds the packet it is about.
        assert!(frame("ipv4() / icmp(type = 3, code = 1) / ipv4(src = 10.0.0.1) / udp()").contains("0a000001c0000202"));
    }

    #[test]
    fn what_cannot_be_built_is_said() {
        for (text, code) in [
            ("lan: udp()", "bad-packet"),
            ("lan ipv4()", "syntax"),
            ("lan: ipv4(src = 1)", "wrong-kind"),
            ("lan: ipv4(src = HOST)", "unknown-name"),
            ("lan: ipv4() / tcp(flags = syn|akk)", "unknown-name"),
        ] {
            let mut sources = Sources::default();
            let diagnostics = parse_packet(&mut sources, text).expect_err(text);
            assert_eq!(diagnostics[0].code, code, "{}", crate::diag::render_all(&diagnostics, &sources, false));
        }
    }
}
