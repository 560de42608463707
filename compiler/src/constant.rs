//! Values that are known when the program is compiled. Each has a kind, and a value of one kind never stands for one of
//! another. [`evaluate`] makes a value of an expression; what names mean, its caller says.

use crate::ast::{Arith, Expr, ExprKind, Spanned};
use crate::diag::Diagnostic;
use crate::field::Kind;
use crate::hir::HeaderDecl;
use crate::parse::address;
use crate::source::Span;

/// A value with its kind: of ports, the dense number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    /// The bits.
    pub bits: u128,
    /// How it is written; never `Flags`.
    pub kind: Kind,
}

/// What names mean, and where mistakes go.
pub trait Lookup {
    /// Takes a mistake.
    fn report(&mut self, diagnostic: Diagnostic);

    /// The value of a name that is none of `flags`; reports why there is none.
    fn name(&mut self, name: &str, span: Span, flags: &[(&str, u32)]) -> Option<Constant>;

    /// A declared or standard header, with its place among the program's.
    fn header(&mut self, name: &str) -> Option<(u16, HeaderDecl)>;
}

/// The value of an expression without fields. Names of `flags` stand for their bits.
pub fn evaluate(lookup: &mut dyn Lookup, expr: &Expr, flags: &[(&str, u32)]) -> Option<Constant> {
    let constant = |bits, kind| Some(Constant { bits, kind });
    match &expr.node {
        ExprKind::Number { value, .. } => constant(*value, Kind::Number),
        ExprKind::Mac(bits) => constant(u128::from(*bits), Kind::Mac),
        ExprKind::Ipv4(bits) => constant(u128::from(*bits), Kind::Ipv4),
        ExprKind::Ipv6(bits) => constant(*bits, Kind::Ipv6),
        ExprKind::Text(text) => match address(text) {
            Some(node) => evaluate(lookup, &Spanned::new(node, expr.span), flags),
            None => {
                let message = "a string is not a value here";
                lookup.report(Diagnostic::error("wrong-kind", message, expr.span, "not an address either"));
                None
            }
        },
        ExprKind::Path(name) => match flags.iter().find(|(flag, _)| flag == name) {
            Some((_, bit)) => constant(u128::from(*bit), Kind::Number),
            None => lookup.name(name, expr.span, flags),
        },
        ExprKind::Arith(op, left, right) => arith(lookup, *op, left, right, flags),
        _ => {
            let message = "expected a value that is known in advance";
            lookup.report(Diagnostic::error("not-a-value", message, expr.span, "not a value"));
            None
        }
    }
}

fn arith(lookup: &mut dyn Lookup, op: Arith, left: &Expr, right: &Expr, flags: &[(&str, u32)]) -> Option<Constant> {
    let (a, b) = (evaluate(lookup, left, flags), evaluate(lookup, right, flags));
    let (a, b) = (a?, b?);
    for (value, expr) in [(a, left), (b, right)] {
        if value.kind != Kind::Number {
            let message = format!("`{}` works on numbers, not on {}", op.name(), describe(value.kind));
            lookup.report(Diagnostic::error("wrong-kind", message, expr.span, "not a number"));
            return None;
        }
    }
    let bits = match op {
        Arith::BitOr => Some(a.bits | b.bits),
        Arith::BitAnd => Some(a.bits & b.bits),
        Arith::Add => a.bits.checked_add(b.bits),
        Arith::Sub => a.bits.checked_sub(b.bits),
        Arith::BitXor => Some(a.bits ^ b.bits),
        Arith::Shl => u32::try_from(b.bits).ok().and_then(|n| shifted(a.bits, n)),
        Arith::Shr => Some(u32::try_from(b.bits).ok().and_then(|n| a.bits.checked_shr(n)).unwrap_or(0)),
    };
    if bits.is_none() {
        let message = if op == Arith::Sub { "this is below 0" } else { "this needs more than 128 bits" };
        let span = left.span.to(right.span);
        lookup.report(Diagnostic::error("value-too-big", message, span, "out of range"));
    }
    Some(Constant { bits: bits?, kind: Kind::Number })
}

/// Shifted to the left, if no bit is lost.
fn shifted(bits: u128, n: u32) -> Option<u128> {
    (bits == 0 || n <= bits.leading_zeros()).then(|| bits.checked_shl(n).unwrap_or(0))
}

/// What people call values of a kind.
pub fn describe(kind: Kind) -> &'static str {
    match kind {
        Kind::Number => "a number",
        Kind::Mac => "a MAC address",
        Kind::Ipv4 => "an IPv4 address",
        Kind::Ipv6 => "an IPv6 address",
        Kind::Port => "a port",
        Kind::Flags => "a set of flags",
    }
}

/// Bits that values of a kind have; 128 for numbers.
pub fn kind_width(kind: Kind) -> u8 {
    match kind {
        Kind::Mac => 48,
        Kind::Ipv4 => 32,
        Kind::Port => 16,
        Kind::Number | Kind::Ipv6 | Kind::Flags => 128,
    }
}

/// The greatest value of a width.
pub fn max(width: u8) -> u128 {
    u128::MAX >> (128 - u32::from(width.clamp(1, 128)))
}

/// Sorts ranges and joins those that touch.
pub fn normalise(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut out: Vec<(u128, u128)> = vec![];
    for (low, high) in ranges {
        match out.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => out.push((low, high)),
        }
    }
    out
}

/// The mask of a prefix.
pub fn prefix_mask(width: u8, length: u8) -> u128 {
    if length == 0 { 0 } else { max(width) & !(max(width).checked_shr(u32::from(length)).unwrap_or(0)) }
}

/// A value as it is written.
pub fn show(value: Constant) -> String {
    match value.kind {
        Kind::Mac => {
            let bytes = value.bits.to_be_bytes();
            let groups: Vec<String> = bytes[10..].iter().map(|b| format!("{b:02x}")).collect();
            groups.join(":")
        }
        Kind::Ipv4 => std::net::Ipv4Addr::from(value.bits as u32).to_string(),
        Kind::Ipv6 => std::net::Ipv6Addr::from(value.bits).to_string(),
        _ => value.bits.to_string(),
    }
}
