//! Layers of a packet: their names and values, and whether they can stand as they do.

use super::Built;
use super::headers::{HEADERS, Header, Part};
use crate::ast::{Arg, ExprKind, Layer, Spanned};
use crate::constant::{Lookup, describe, evaluate, max};
use crate::diag::Diagnostic;
use crate::field::{Kind, TCP_FLAGS};
use crate::hir::HeaderField;
use crate::source::Span;
use crate::suggest::closest;

/// Reads layers, and says what is wrong with them.
pub struct Reader<'l> {
    /// What names mean, and where mistakes go.
    pub lookup: &'l mut dyn Lookup,
}

impl Reader<'_> {
    fn error(&mut self, code: &'static str, message: impl Into<String>, span: Span, label: &str) {
        self.lookup.report(Diagnostic::error(code, message, span, label));
    }

    /// A layer with its values.
    pub fn layer(&mut self, layer: &Spanned<Layer>) -> Option<Built> {
        match &layer.node {
            Layer::Payload(text) => Some(Built::Bytes(text.clone().into_bytes())),
            Layer::Header(name, args) if name.node == "hex" => self.hex(args, layer.span).map(Built::Bytes),
            Layer::Header(name, args) => {
                let Some((_, header, parts)) = HEADERS.iter().find(|(n, ..)| *n == name.node) else {
                    if let Some((at, declared)) = self.lookup.header(&name.node) {
                        let field = |field: &HeaderField| (field.name.clone(), field.kind, field.width, None);
                        let parts: Vec<_> = declared.fields.iter().map(field).collect();
                        let parts: Vec<Part> = parts
                            .iter()
                            .map(|(name, kind, width, none)| (name.as_str(), *kind, *width, *none))
                            .collect();
                        let values = self.header(&name.node, &parts, args)?;
                        return Some(Built::Declared(at, declared, values));
                    }
                    let message = format!("a packet has no header `{}`", name.node);
                    let names = HEADERS.iter().map(|(n, ..)| *n).chain(["hex"]);
                    let help = match closest(&name.node, names.clone()) {
                        Some(close) => format!("did you mean `{close}`?"),
                        None => format!("headers are {}", names.collect::<Vec<_>>().join(", ")),
                    };
                    self.lookup.report(Diagnostic::error("unknown-name", message, name.span, "not known").help(help));
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
                self.lookup.report(Diagnostic::error("unknown-name", message, name.span, "not known").help(help));
                whole = false;
                continue;
            };
            if let Some(first) = given[index].replace(name.span) {
                let message = format!("`{}` is given twice", name.node);
                self.lookup.report(
                    Diagnostic::error("duplicate", message, name.span, "again here").label(first, "first here"),
                );
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
        let value = evaluate(self.lookup, &arg.value, flags)?;
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
    pub fn stacked(&mut self, layers: &[(Built, Span)]) -> bool {
        let Some((place, below)) = misplaced(layers) else { return true };
        let message = "this header cannot stand here";
        let diagnostic = match below {
            Some(below) => Diagnostic::error("bad-packet", message, place, "not behind what stands before it")
                .label(below, "what stands before it"),
            None => Diagnostic::error("bad-packet", message, place, "not at the beginning"),
        };
        let help = "write, for example, `ipv4(src = 10.0.0.1, dst = 10.0.0.2) / udp(dst = 53)`";
        self.lookup.report(diagnostic.help(help));
        false
    }
}

/// The first layer that cannot stand where it does, and what stands before it. What a declared header is put before is the
/// program's business.
pub fn misplaced(layers: &[(Built, Span)]) -> Option<(Span, Option<Span>)> {
    use Header::*;
    let mut below: Option<(Option<Header>, Span)> = None;
    let mut behind_declared = false;
    for (part, span) in layers {
        let header = if let Built::Header(header, _) = part { Some(*header) } else { None };
        let declared = matches!(part, Built::Declared(..));
        let allowed = match (header, below.map(|(header, _)| header)) {
            (None, _) => true,
            (Some(_), _) if behind_declared => true,
            (Some(Eth), below) => below.is_none(),
            (Some(Vlan), below) => matches!(below, None | Some(Some(Eth | Vlan))),
            (Some(Arp), below) => matches!(below, None | Some(Some(Eth | Vlan))),
            (Some(Ipv4), below) => matches!(below, None | Some(Some(Eth | Vlan | Icmp | Ipv4 | Ipv6))),
            (Some(Ipv6), below) => matches!(below, None | Some(Some(Eth | Vlan | Icmpv6 | Ipv4 | Ipv6))),
            (Some(Tcp | Udp | Sctp), below) => matches!(below, Some(Some(Ipv4 | Ipv6))),
            (Some(Icmp), below) => below == Some(Some(Ipv4)),
            (Some(Icmpv6), below) => below == Some(Some(Ipv6)),
        };
        if !allowed {
            return Some((*span, below.map(|(_, place)| place)));
        }
        below = Some((header, *span));
        behind_declared = declared;
    }
    None
}
