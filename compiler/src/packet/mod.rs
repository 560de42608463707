//! Packets as tests write them: `ipv4(src = 10.0.0.1) / udp(dst = 53) / "payload"` to bytes.
//!
//! Layers stand outermost first; without `eth` at the front there is one all the same. What is not given has a value that
//! makes a plain packet; types, protocols, lengths and checksums follow from what comes behind. Frames are padded to 60
//! bytes, but those that begin with `hex("…")`, which are taken as they are. Never reads what it has written.
//! [`headers`] has the headers and their parts, [`declared`] those that programs declare, [`read`] checks what is written,
//! [`encode`] makes the bytes, [`show`] tells what is in a frame. [`stack`] is what `encap` puts in front of packets: headers
//! without a packet.

mod declared;
mod describe;
mod encode;
mod headers;
mod read;
mod show;
mod stack;

pub use headers::parts;

use crate::ast::Packet;
use crate::constant::{Constant, Lookup};
use crate::diag::Diagnostic;
use crate::hir::HeaderDecl;
use crate::source::{Sources, Span};
use crate::suggest::closest;
pub use describe::describe;
pub(crate) use describe::written;
pub use headers::Header;
use read::Reader;
pub use show::show;
pub use stack::{Stack, StackLayer};

/// Bytes of a frame without padding.
const MIN_FRAME: usize = 60;
/// Bytes of a frame, at the most.
const MAX_FRAME: usize = 65_535;

/// Parses `PORT: packet`, as `pipec trace` takes it. The text is added to `sources` for messages.
pub fn parse_packet(sources: &mut Sources, text: &str) -> Result<(String, Vec<u8>), Vec<Diagnostic>> {
    let file = sources.add("packet", text);
    let mut literals = Literals(vec![], vec![]);
    let parsed = crate::parse::packet(text, file, &mut literals.0);
    let frame = parsed.and_then(|(port, packet)| Some((port.node, build(&packet, &mut literals)?)));
    frame.ok_or(literals.0)
}

/// No names are known outside of a program, and of headers only the standard ones.
struct Literals(Vec<Diagnostic>, Vec<HeaderDecl>);

impl Lookup for Literals {
    fn header(&mut self, name: &str) -> Option<(u16, HeaderDecl)> {
        let at = crate::standard::add(&mut self.1, name)?;
        Some((at, self.1[usize::from(at)].clone()))
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    fn name(&mut self, name: &str, span: Span, flags: &[(&str, u32)]) -> Option<Constant> {
        let diagnostic = Diagnostic::error("unknown-name", format!("there is no value `{name}`"), span, "not known");
        self.report(match closest(name, flags.iter().map(|(flag, _)| *flag)) {
            Some(flag) => diagnostic.help(format!("did you mean `{flag}`?")),
            None => diagnostic,
        });
        None
    }
}

/// A layer with its values, in the order of the header's parts.
pub enum Built {
    /// A header; none where a value follows from the rest.
    Header(Header, Vec<Option<u128>>),
    /// A declared header, its place among the program's, and the values of its fields.
    Declared(u16, HeaderDecl, Vec<Option<u128>>),
    /// Payload.
    Bytes(Vec<u8>),
}

/// Builds the frame of a packet; none if something is wrong, which is reported.
pub fn build(packet: &Packet, lookup: &mut dyn Lookup) -> Option<Vec<u8>> {
    let mut reader = Reader { lookup };
    let layers: Vec<_> = packet.layers.iter().map(|layer| Some((reader.layer(layer)?, layer.span))).collect();
    let layers = layers.into_iter().collect::<Option<Vec<_>>>()?;
    if !reader.stacked(&layers) {
        return None;
    }
    let ((first, span), (_, end)) = (layers.first()?, layers.last()?);
    let raw = matches!(first, Built::Bytes(_));
    let mut frame = encode::encode(&layers, raw);
    if frame.len() > MAX_FRAME {
        let message = format!("this packet is longer than {MAX_FRAME} bytes");
        let label = format!("{} bytes", frame.len());
        lookup.report(Diagnostic::error("value-too-big", message, span.to(*end), label));
        return None;
    }
    if !raw && frame.len() < MIN_FRAME {
        frame.resize(MIN_FRAME, 0);
    }
    Some(frame)
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
    fn lengths_and_checksums_can_be_wrong() {
        assert!(
            frame("ipv4(len = 19, ihl = 6, version = 5, csum = 0xbeef)").contains(
                "080056000013000000004\
             0fdbeef"
                    .replace(' ', "")
                    .as_str()
            )
        );
        assert!(frame("ipv6(len = 65535, version = 4)").contains("86dd40000000ffff"));
        assert!(frame("ipv4() / udp(len = 7, csum = 0)").contains("9c40003500070000"));
        assert!(frame("ipv4() / tcp(doff = 15, csum = 1)").contains("f002faf000010000"));
        assert!(frame("ipv4() / icmp(csum = 0x1234)").contains("08001234"));
        assert!(frame("ipv4() / sctp(csum = 0x01020304)").contains("9c400b590000000001020304"));
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
