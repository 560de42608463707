//! Values where they are used: whether they are of the kind and width that is wanted, and what stands behind `in`.

use super::Resolver;
use super::names::Symbol;
use crate::ast::{Expr, ExprKind, Spanned};
use crate::constant::{Constant, Lookup, describe, evaluate, kind_width, max, prefix_mask, show};
use crate::diag::Diagnostic;
use crate::field::{Header, Kind};
use crate::hir::HeaderDecl;
use crate::source::Span;

/// Ranges of all conditions and sets of a program together, at the most.
const MAX_RANGES: usize = 1 << 21;

/// Values of a set, sorted and disjoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// What they are; none for an empty set.
    pub kind: Option<Kind>,
    /// First and last of each.
    pub list: Vec<(u128, u128)>,
}

/// What a value is used for: the names of bits it may use, and what to say about it.
#[derive(Clone, Debug)]
pub struct Target<'t> {
    /// The kind of values.
    pub kind: Kind,
    /// How many bits.
    pub width: u8,
    /// Names of bits.
    pub flags: &'t [(&'t str, u32)],
    /// What people call it.
    pub name: &'t str,
    /// Where it stands.
    pub span: Span,
}

/// An example of a kind, for help.
fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::Number => "a number, as in 80 or 0x50",
        Kind::Mac => "a MAC address, as in 02:00:00:00:00:01",
        Kind::Ipv4 => "an IPv4 address, as in 10.0.0.1",
        Kind::Ipv6 => "an IPv6 address, as in 2001:db8::1",
        Kind::Port => "the name of a port",
        Kind::Flags => "a number or names of flags, as in `syn|ack`",
    }
}

impl Resolver<'_> {
    /// A value of the kind and width that `target` wants.
    pub fn value(&mut self, expr: &Expr, target: &Target) -> Option<u128> {
        let constant = self.constant(expr, target.flags)?;
        self.fit(constant, expr.span, target)
    }

    /// Checks that a value is of the right kind and fits.
    pub fn fit(&mut self, constant: Constant, span: Span, target: &Target) -> Option<u128> {
        if target.kind == Kind::Port && constant.kind == Kind::Number {
            let port = self.names.port_by_number(constant.bits);
            if port.is_none() {
                let message = format!("no port has the number {}", constant.bits);
                self.error("unknown-name", message, span, "not the number of a port");
            }
            return port.map(|id| u128::from(id.0));
        }
        if !self.same_kind(constant.kind, span, target) {
            return None;
        }
        if constant.bits > max(target.width) {
            let message = format!("this value does not fit into `{}`", target.name);
            let needs = 128 - constant.bits.leading_zeros();
            let has = format!("has {} bits: 0 to {}", target.width, show_max(target));
            self.push(
                Diagnostic::error("value-too-big", message, span, format!("needs {needs} bits"))
                    .label(target.span, has),
            );
            return None;
        }
        Some(constant.bits)
    }

    /// Reports a value of another kind than wanted.
    pub fn same_kind(&mut self, kind: Kind, span: Span, target: &Target) -> bool {
        let wanted = if target.kind == Kind::Flags { Kind::Number } else { target.kind };
        let kind = if kind == Kind::Flags { Kind::Number } else { kind };
        if kind != wanted {
            let message = format!("`{}` is {}, not {}", target.name, describe(target.kind), describe(kind));
            self.push(
                Diagnostic::error("wrong-kind", message, span, format!("this is {}", describe(kind)))
                    .label(target.span, format!("this is {}", describe(target.kind)))
                    .help(format!("write {}", example(target.kind))),
            );
        }
        kind == wanted
    }

    /// The value of an expression without fields. Names of `flags` stand for their bits.
    pub fn constant(&mut self, expr: &Expr, flags: &[(&str, u32)]) -> Option<Constant> {
        evaluate(self, expr, flags)
    }

    /// What a declared name stands for; reports one that is not known.
    pub fn lookup(&mut self, name: &str, span: Span, flags: &[(&str, u32)]) -> Option<Symbol> {
        if let Some(symbol) = self.names.symbol(name) {
            return symbol;
        }
        if crate::field::Field::by_name(name).is_some() {
            self.error("not-a-value", format!("the field `{name}` is not a constant"), span, "known only at run time");
            return None;
        }
        if Header::by_name(name).is_some() {
            self.error("not-a-value", format!("`{name}` is a header, not a value"), span, "a header");
            return None;
        }
        let close = crate::suggest::closest(name, flags.iter().map(|(flag, _)| *flag));
        if let Some(flag) = close {
            let message = format!("there is no flag `{name}`");
            self.push(
                Diagnostic::error("unknown-name", message, span, "not known").help(format!("did you mean `{flag}`?")),
            );
            return None;
        }
        self.names.unknown("constant or set", &Spanned::new(name.to_string(), span), &mut self.diagnostics);
        None
    }

    /// The values of what stands behind `in`, or in a set. `kind` and the place it was learned at are those of the values
    /// before; the first value gives them.
    pub fn elements(
        &mut self,
        expr: &Expr,
        flags: &[(&str, u32)],
        kind: &mut Option<(Kind, Span)>,
        out: &mut Vec<(u128, u128)>,
    ) -> Option<()> {
        let mut take = |resolver: &mut Self, found, span| resolver.one_kind(kind, found, span);
        match &expr.node {
            ExprKind::Elements(list) => {
                let mut all = Some(());
                for element in list {
                    if self.elements(element, flags, kind, out).is_none() {
                        all = None;
                    }
                }
                return all;
            }
            ExprKind::Path(name) if matches!(self.names.peek(name), Some(Symbol::Set(_))) => {
                if let Some(Some(Symbol::Set(set))) = self.names.symbol(name) {
                    if let Some(found) = set.kind {
                        take(self, found, expr.span)?;
                    }
                    self.spend(set.list.len(), expr.span)?;
                    out.extend_from_slice(&set.list);
                }
            }
            ExprKind::Range(first, last) => {
                let (low, high) = (self.constant(first, flags), self.constant(last, flags));
                let (low, high) = (low?, high?);
                take(self, low.kind, first.span)?;
                take(self, high.kind, last.span)?;
                if low.kind == Kind::Port {
                    self.error("wrong-kind", "ports have no order", expr.span, "a range of ports");
                    return None;
                }
                if low.bits > high.bits {
                    let message = "this range is empty: its first value is greater than its last";
                    self.push(
                        Diagnostic::error("empty-range", message, expr.span, "holds nothing").help("swap the two"),
                    );
                    return None;
                }
                out.push((low.bits, high.bits));
            }
            ExprKind::Slash(address, length) => {
                let (value, length) = self.prefix(address, length)?;
                take(self, value.kind, address.span)?;
                let width = kind_width(value.kind);
                let mask = prefix_mask(width, length);
                out.push((value.bits & mask, value.bits & mask | max(width) & !mask));
            }
            _ => {
                let value = self.constant(expr, flags)?;
                take(self, value.kind, expr.span)?;
                out.push((value.bits, value.bits));
            }
        }
        Some(())
    }

    /// Reports a value of another kind than those before it.
    fn one_kind(&mut self, kind: &mut Option<(Kind, Span)>, found: Kind, span: Span) -> Option<()> {
        let (first, place) = *kind.get_or_insert((found, span));
        if first == found {
            return Some(());
        }
        let message = "values of two kinds in one set";
        self.push(
            Diagnostic::error("wrong-kind", message, span, describe(found))
                .label(place, describe(first))
                .help("make two sets of it"),
        );
        None
    }

    /// Counts ranges that conditions and sets hold, and refuses too many.
    pub fn spend(&mut self, ranges: usize, span: Span) -> Option<()> {
        let before = self.ranges;
        self.ranges = before.saturating_add(ranges);
        if self.ranges <= MAX_RANGES {
            return Some(());
        }
        if before <= MAX_RANGES {
            let message = "the sets of all conditions together are too big";
            self.push(
                Diagnostic::error("too-many", message, span, "beyond two million ranges")
                    .help("test for the set in a table of its own, once, and go on with `goto`"),
            );
        }
        None
    }

    /// An address and the length of its prefix.
    pub fn prefix(&mut self, address: &Expr, length: &Expr) -> Option<(Constant, u8)> {
        let value = self.constant(address, &[])?;
        if matches!(value.kind, Kind::Number | Kind::Port) {
            let message = format!("{} has no prefix", describe(value.kind));
            self.push(
                Diagnostic::error("wrong-kind", message, address.span, "not an address")
                    .help("write a range, as in `8000..=8080`, or a mask, as in `tcp.dst & 0xfff0 == 0x50`"),
            );
            return None;
        }
        let width = kind_width(value.kind);
        let length_value = self.constant(length, &[])?;
        let bits = if length_value.kind == value.kind {
            // A mask in place of a length.
            let ones = length_value.bits.count_ones() as u8;
            (length_value.bits == prefix_mask(width, ones)).then_some(ones)
        } else if length_value.kind == Kind::Number {
            u8::try_from(length_value.bits).ok().filter(|bits| *bits <= width)
        } else {
            None
        };
        let Some(bits) = bits else {
            let message = "this is not the length of a prefix";
            let label = format!("expected 0 to {width}");
            self.error("bad-prefix", message, length.span, label);
            return None;
        };
        if value.bits & !prefix_mask(width, bits) != 0 {
            let network = Constant { bits: value.bits & prefix_mask(width, bits), ..value };
            self.push(
                Diagnostic::warning(
                    "host-bits",
                    "bits of the address beyond the prefix",
                    address.span,
                    "not a network",
                )
                .help(format!("write `{}/{bits}`", show(network))),
            );
        }
        Some((value, bits))
    }
}

impl Lookup for Resolver<'_> {
    fn header(&mut self, name: &str) -> Option<(u16, HeaderDecl)> {
        let at = self.names.header(name)?;
        Some((at, self.names.headers[usize::from(at)].clone()))
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.push(diagnostic);
    }

    fn name(&mut self, name: &str, span: Span, flags: &[(&str, u32)]) -> Option<Constant> {
        match self.lookup(name, span, flags)? {
            Symbol::Const(value) => Some(value),
            Symbol::Port(id) => Some(Constant { bits: u128::from(id.0), kind: Kind::Port }),
            symbol => {
                let message = format!("the {} `{name}` is not one value", symbol.what());
                let help = match symbol {
                    Symbol::Set(_) => "write `in` to look for a value in a set",
                    _ => "only constants can stand here",
                };
                self.push(Diagnostic::error("not-a-value", message, span, "not a constant").help(help));
                None
            }
        }
    }
}

/// The greatest value of a target as it is written.
fn show_max(target: &Target) -> String {
    show(Constant { bits: max(target.width), kind: target.kind })
}
