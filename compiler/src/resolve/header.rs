//! Headers that a program declares: sizes, names and parents.

use std::collections::HashMap;

use super::Resolver;
use super::marks::RuleMarks;
use super::names::{Symbol, duplicate};
use crate::ast::{self, Name};
use crate::diag::Diagnostic;
use crate::field::{Header, Kind};
use crate::hir::{After, Cond, HeaderDecl, HeaderField, Place, Space};
use crate::source::Span;

/// Bytes of a header, at the most.
const MAX_BYTES: u32 = 256;
/// Headers of a program, at the most.
const MAX_HEADERS: usize = 1024;

impl Resolver<'_> {
    /// A declared header: its place among the program's.
    pub fn header_declaration(&mut self, header: &ast::HeaderDecl) -> Option<u16> {
        let (fields, bits) = self.header_fields(header)?;
        if bits == 0 || !bits.is_multiple_of(8) || bits / 8 > MAX_BYTES {
            let message = format!("the header `{}` has {bits} bits", header.name.node);
            let diagnostic = Diagnostic::error("header-size", message, header.name.span, "not a number of whole bytes");
            self.push(match bits {
                0 => diagnostic.help("give it a field, as in `{ id: u16 }`"),
                _ if bits / 8 > MAX_BYTES => diagnostic.help(format!("a header has at most {MAX_BYTES} bytes")),
                _ => diagnostic.help(format!("add a field of {} bits", 8 - bits % 8)),
            });
            return None;
        }
        let mut after = vec![];
        let mut whole = true;
        for (parent, cond) in &header.after {
            match self.after(parent, cond.as_ref()) {
                Some(parent) => after.push(parent),
                None => whole = false,
            }
        }
        if self.names.headers.len() >= MAX_HEADERS {
            self.error("too-many", "too many headers", header.name.span, "one too many");
            return None;
        }
        let name = header.name.node.clone();
        self.names.headers.push(HeaderDecl { name, bytes: (bits / 8) as u16, fields, after });
        whole.then_some(self.names.headers.len() as u16 - 1)
    }

    fn header_fields(&mut self, header: &ast::HeaderDecl) -> Option<(Vec<HeaderField>, u32)> {
        let mut fields: Vec<HeaderField> = vec![];
        let mut spans: HashMap<&str, Span> = HashMap::new();
        let mut bits = 0_u32;
        let mut whole = true;
        for field in &header.fields {
            if let Some(first) = spans.insert(&field.name.node, field.name.span) {
                self.push(duplicate("field", &field.name, first));
                whole = false;
            }
            let Some((kind, width)) = self.type_of(&field.ty) else {
                whole = false;
                continue;
            };
            if kind == Kind::Port {
                let message = "a header has no ports of the pipeline in it";
                self.push(
                    Diagnostic::error("wrong-kind", message, field.ty.span, "not in a packet").help("write `u16`"),
                );
                whole = false;
            }
            let offset = bits.min(u32::from(u16::MAX)) as u16;
            fields.push(HeaderField { name: field.name.node.clone(), offset, width, kind });
            bits += u32::from(width);
        }
        whole.then_some((fields, bits))
    }

    fn after(&mut self, parent: &Name, cond: Option<&ast::Expr>) -> Option<After> {
        let header = match Header::by_name(&parent.node) {
            Some(Header::Nd) => {
                let message = "`nd` has no end that something could stand behind";
                self.error("bad-parent", message, parent.span, "not a header to stand behind");
                return None;
            }
            Some(header) => header,
            None => match (self.names.header(&parent.node), self.names.peek(&parent.node)) {
                (Some(header), _) => Header::Declared(header),
                (None, Some(symbol)) => {
                    let message = format!("`{}` is a {}, not a header", parent.node, symbol.what());
                    self.error("bad-parent", message, parent.span, "expected a header");
                    return None;
                }
                (None, None) => {
                    let message = format!("there is no header `{}` before this one", parent.node);
                    self.push(
                        Diagnostic::error("bad-parent", message, parent.span, "not declared so far")
                            .help("a header stands behind one of the language or one that is declared before it"),
                    );
                    return None;
                }
            },
        };
        let cond = match cond {
            Some(expr) => {
                let cond = self.cond(expr, &mut RuleMarks::default())?;
                if !of_packet(&cond) {
                    let message = "what stands in a packet does not depend on ports, connections or variables";
                    self.push(
                        Diagnostic::error("header-condition", message, expr.span, "not of the packet alone")
                            .help("test fields of the packet here, and the rest in rules"),
                    );
                    return None;
                }
                cond
            }
            None => Cond::True,
        };
        Some(After { parent: header, cond })
    }

    /// A declared or standard header by its name, which is reported if there is none.
    pub fn header_by_name(&mut self, name: &Name) -> Option<u16> {
        if let Some(header) = self.names.header(&name.node) {
            return Some(header);
        }
        match self.names.symbol(&name.node) {
            Some(None) | Some(Some(Symbol::Header(_))) => {}
            Some(Some(symbol)) => {
                let message = format!("`{}` is a {}, not a header", name.node, symbol.what());
                self.error("wrong-kind", message, name.span, "expected a header");
            }
            None => self.names.unknown("header", name, &mut self.diagnostics),
        }
        None
    }
}

/// Whether a place is in the packet.
fn in_packet(place: Place) -> bool {
    match place.space {
        Space::Field(field) => !field.is_metadata(),
        Space::Header(_) => true,
        Space::Meta => false,
    }
}

/// Whether a condition reads nothing but the packet.
fn of_packet(cond: &Cond) -> bool {
    match cond {
        Cond::True | Cond::Has(_) => true,
        Cond::Compare(read, _) => in_packet(read.place),
        Cond::CompareTo(left, _, right) => in_packet(left.place) && in_packet(right.place),
        Cond::Not(inner) => of_packet(inner),
        Cond::All(parts) | Cond::Any(parts) => parts.iter().all(of_packet),
    }
}
