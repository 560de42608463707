//! Conditions and values: from the flat list of operands and operators to the tree that the operators' precedence says.
//!
//! From loose to tight: `||`, `&&`, comparisons (which do not chain), `..=`, `|`, `^`, `&`, `<< >>`, `+ -`, `/`, `!`. So
//! `ipv4.dst & 255.0.0.255 == 10.0.0.1` compares what is left after the mask.

use std::net::{Ipv4Addr, Ipv6Addr};

use pest::iterators::Pair;

use super::grammar::{Context, Rule};
use crate::ast::{Arith, Comparison, Expr, ExprKind, Radix, Spanned};
use crate::diag::Diagnostic;
use crate::source::Span;

/// Operators of one level in a row, at the most; `&&` and `||` have no limit.
pub const MAX_CHAIN: usize = 32;
/// `!` in a row, at the most.
const MAX_NOTS: usize = 8;

/// Parses what a string means.
pub fn unescape(text: &str) -> Result<String, usize> {
    let inner = text.get(1..text.len().saturating_sub(1)).unwrap_or("");
    let mut out = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next().map(|(_, c)| c) {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('0') => out.push('\0'),
            Some(c @ ('\\' | '"')) => out.push(c),
            _ => return Err(at + 1),
        }
    }
    Ok(out)
}

/// The address that a text is, if it is one.
pub fn address(text: &str) -> Option<ExprKind> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(ExprKind::Ipv4(u32::from(address)));
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(ExprKind::Ipv6(u128::from(address)));
    }
    mac(text).map(ExprKind::Mac)
}

/// The prefix that a text is, as in `"2001:db8::/32"`.
fn prefix(text: &str, span: Span) -> Option<ExprKind> {
    let (network, length) = text.split_once('/')?;
    let network = Spanned::new(address(network)?, span);
    let value = length.parse::<u8>().ok()?;
    let length = ExprKind::Number { value: value.into(), radix: Radix::Decimal };
    Some(ExprKind::Slash(Box::new(network), Box::new(Spanned::new(length, span))))
}

/// The hardware address that a text is, if it is one.
fn mac(text: &str) -> Option<u64> {
    let groups: Vec<&str> = text.split(':').collect();
    let whole = groups.len() == 6 && groups.iter().all(|g| g.len() == 2);
    if !whole {
        return None;
    }
    groups.iter().try_fold(0, |value, group| Some(value << 8 | u64::from(u8::from_str_radix(group, 16).ok()?)))
}

impl Context<'_, '_> {
    /// The tree of an `expr`.
    pub fn expr(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        let mut operands = vec![];
        let mut operators = vec![];
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::infix => operators.push((part.as_str().to_string(), self.span(&part))),
                _ => operands.push(self.operand(part)?),
            }
        }
        self.or(operands, &operators)
    }

    /// Splits at the loosest operators.
    fn or(&mut self, operands: Vec<Expr>, operators: &[(String, Span)]) -> Option<Expr> {
        let parts = split(operands, operators, "||");
        let mut terms = vec![];
        for (operands, operators) in parts {
            let mut factors = vec![];
            for (operands, operators) in split(operands, operators, "&&") {
                factors.push(self.comparison(operands, operators)?);
            }
            terms.push(join(factors, ExprKind::And)?);
        }
        join(terms, ExprKind::Or)
    }

    fn comparison(&mut self, operands: Vec<Expr>, operators: &[(String, Span)]) -> Option<Expr> {
        let find = |name: &str| Comparison::NAMES.iter().find(|(n, _)| *n == name).map(|(_, c)| *c);
        let mut found = operators.iter().enumerate().filter_map(|(i, (name, _))| Some((i, find(name)?)));
        let Some((at, comparison)) = found.next() else { return self.arith(operands, operators, 0) };
        if let Some((second, _)) = found.next() {
            let message = "comparisons do not chain";
            let diagnostic =
                Diagnostic::error("chained-comparison", message, operators[second].1, "a second comparison")
                    .label(operators[at].1, "the first one")
                    .help("join two comparisons with `&&`");
            self.diagnostics.push(diagnostic);
            return None;
        }
        let mut left = operands;
        let right = left.split_off(at + 1);
        let left = self.arith(left, &operators[..at], 0)?;
        let right = self.arith(right, &operators[at + 1..], 0)?;
        let span = left.span.to(right.span);
        Some(Spanned::new(ExprKind::Compare(comparison, Box::new(left), Box::new(right)), span))
    }

    /// Levels tighter than comparisons: what is left are operators from `..=` on.
    fn arith(&mut self, operands: Vec<Expr>, operators: &[(String, Span)], level: usize) -> Option<Expr> {
        const LEVELS: [&[&str]; 7] = [&["..="], &["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["/"]];
        let Some(names) = LEVELS.get(level).filter(|_| !operators.is_empty()) else {
            return operands.into_iter().next();
        };
        let mut operands = operands.into_iter();
        let mut parts = vec![];
        let mut start = 0;
        let at: Vec<usize> = (0..operators.len()).filter(|&i| names.contains(&operators[i].0.as_str())).collect();
        if at.len() > if level == 0 { 1 } else { MAX_CHAIN } {
            let span = operators[at[at.len() - 1]].1;
            let message = format!("too many `{}` in a row", names[0]);
            self.diagnostics.push(Diagnostic::error("too-deep", message, span, "one too many"));
            return None;
        }
        for &end in at.iter().chain([&operators.len()]) {
            let group = operands.by_ref().take(end - start + 1).collect();
            parts.push(self.arith(group, &operators[start..end], level + 1)?);
            start = end + 1;
        }
        let mut parts = parts.into_iter();
        let mut whole = parts.next()?;
        for (part, &i) in parts.zip(&at) {
            let span = whole.span.to(part.span);
            let (left, right) = (Box::new(whole), Box::new(part));
            let kind = match operators[i].0.as_str() {
                "..=" => ExprKind::Range(left, right),
                "/" => ExprKind::Slash(left, right),
                name => ExprKind::Arith(Arith::NAMES.iter().find(|(n, _)| *n == name)?.1, left, right),
            };
            whole = Spanned::new(kind, span);
        }
        Some(whole)
    }

    /// An operand with the `!` before it.
    fn operand(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        let whole = self.span(&pair);
        let mut nots = vec![];
        let mut primary = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::not => nots.push(self.span(&part)),
                _ => primary = Some(part),
            }
        }
        if nots.len() > MAX_NOTS {
            let diagnostic = Diagnostic::error("too-deep", "too many `!` in a row", nots[MAX_NOTS], "one too many");
            self.diagnostics.push(diagnostic);
            return None;
        }
        let mut expr = self.primary(primary?)?;
        for not in nots.into_iter().rev() {
            expr = Spanned::new(ExprKind::Not(Box::new(expr)), Span { end: whole.end, ..not });
        }
        Some(expr)
    }

    fn primary(&mut self, pair: Pair<'_, Rule>) -> Option<Expr> {
        let span = self.span(&pair);
        let text = pair.as_str();
        let kind = match pair.as_rule() {
            Rule::paren => {
                let inner = pair.into_inner().find(|p| p.as_rule() == Rule::expr)?;
                return Some(Spanned::new(self.expr(inner)?.node, span));
            }
            Rule::elements => ExprKind::Elements(self.elements(pair)?),
            Rule::path => ExprKind::Path(text.to_string()),
            Rule::function => {
                let mut inner = pair.into_inner();
                let name = self.name(&inner.next()?);
                let args = inner.filter(|p| p.as_rule() == Rule::expr).map(|p| self.expr(p));
                ExprKind::Call(name, args.collect::<Option<_>>()?)
            }
            Rule::number => return self.number(text, span),
            Rule::string => {
                let text = self.string(text, span)?;
                prefix(&text, span).unwrap_or(ExprKind::Text(text))
            }
            rule => match address(text) {
                Some(kind) => kind,
                None => {
                    let what = if rule == Rule::ipv4 { "an IPv4 address" } else { "an address" };
                    let message = format!("`{text}` is not {what}");
                    let help = if rule == Rule::ipv4 {
                        "an IPv4 address has four numbers from 0 to 255, as in 10.0.0.1"
                    } else {
                        "a MAC address has six groups of two hexadecimal digits, an IPv6 address eight groups or one `::`"
                    };
                    let diagnostic = Diagnostic::error("bad-literal", message, span, "not an address").help(help);
                    self.diagnostics.push(diagnostic);
                    return None;
                }
            },
        };
        Some(Spanned::new(kind, span))
    }

    /// What stands in `{ … }`.
    pub fn elements(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Expr>> {
        pair.into_inner().filter(|p| p.as_rule() == Rule::expr).map(|p| self.expr(p)).collect()
    }

    /// A number.
    pub fn number(&mut self, text: &str, span: Span) -> Option<Expr> {
        let digits = text.replace('_', "");
        let (radix, base, digits) = match digits.get(..2) {
            Some("0x") => (Radix::Hex, 16, &digits[2..]),
            Some("0b") => (Radix::Binary, 2, &digits[2..]),
            _ => (Radix::Decimal, 10, &digits[..]),
        };
        match u128::from_str_radix(digits, base) {
            Ok(value) => Some(Spanned::new(ExprKind::Number { value, radix }, span)),
            Err(_) => {
                let message = "this number cannot be read";
                let diagnostic = Diagnostic::error("bad-literal", message, span, "no digits, or more than 128 bits");
                self.diagnostics.push(diagnostic);
                None
            }
        }
    }

    /// A string.
    pub fn string(&mut self, text: &str, span: Span) -> Option<String> {
        match unescape(text) {
            Ok(text) => Some(text),
            Err(at) => {
                let at = span.start as usize + at;
                let message = "unknown escape in a string";
                let span = Span::new(self.file, at..at + 1);
                let diagnostic = Diagnostic::error("bad-literal", message, span, "here")
                    .help("there are \\n, \\r, \\t, \\0, \\\\ and \\\"");
                self.diagnostics.push(diagnostic);
                None
            }
        }
    }
}

/// A part of a flat list: operands, and the operators between them.
type Part<'o> = (Vec<Expr>, &'o [(String, Span)]);

/// Splits a flat list at an operator.
fn split<'o>(operands: Vec<Expr>, operators: &'o [(String, Span)], name: &str) -> Vec<Part<'o>> {
    let mut operands = operands.into_iter();
    operators
        .split(|(n, _)| n == name)
        .map(|operators| (operands.by_ref().take(operators.len() + 1).collect(), operators))
        .collect()
}

/// One part as it is, several under a node.
fn join(mut parts: Vec<Expr>, node: fn(Vec<Expr>) -> ExprKind) -> Option<Expr> {
    if parts.len() == 1 {
        return parts.pop();
    }
    let span = parts.first()?.span.to(parts.last()?.span);
    Some(Spanned::new(node(parts), span))
}
