//! Conditions: from `tcp.dst == 80 && in_port == lan` to `has`, `compare`, `not`, `all`, `any`.
//!
//! A comparison of a field becomes `all [has(header), compare]`, so that it is false where the header is absent; `!=` is
//! `all [has(header), not compare]`. What can never hold becomes `any []`, with a warning where it is certain here.

use super::Resolver;
use super::marks::{ReadMark, RuleMarks};
use super::names::Symbol;
use super::value::Target;
use crate::ast::{Arith, Comparison, Expr, ExprKind, Spanned};
use crate::constant::{Constant, describe, max, normalise, prefix_mask};
use crate::diag::Diagnostic;
use crate::field::{CT_FLAGS, Field, Header, Kind, TCP_FLAGS};
use crate::hir::{Cond, Match, Place, PortId, Read, Space, View};
use crate::source::Span;

/// What is compared: a field or variable, under a mask or not.
pub(super) struct Subject {
    pub(super) place: Place,
    pub(super) kind: Kind,
    flags: &'static [(&'static str, u32)],
    pub(super) header: Option<Header>,
    name: String,
    pub(super) span: Span,
    pub(super) mask: Option<(u128, Span)>,
}

impl Subject {
    fn target(&self) -> Target<'_> {
        Target { kind: self.kind, width: self.place.width, flags: self.flags, name: &self.name, span: self.span }
    }
}

/// `false`: what no packet is.
fn never() -> Cond {
    Cond::Any(vec![])
}

/// `all` of conditions, flat and without repeated headers.
pub fn all(conds: impl IntoIterator<Item = Cond>) -> Cond {
    let mut out: Vec<Cond> = vec![];
    let mut headers: Vec<Header> = vec![];
    let mut push = |cond: Cond| match cond {
        Cond::True => {}
        Cond::Has(header) => {
            if !headers.contains(&header) {
                headers.push(header);
                out.push(cond);
            }
        }
        cond => out.push(cond),
    };
    for cond in conds {
        match cond {
            Cond::All(inner) => inner.into_iter().for_each(&mut push),
            cond => push(cond),
        }
    }
    match out.len() {
        0 => Cond::True,
        1 => out.swap_remove(0),
        _ => Cond::All(out),
    }
}

/// A condition on a field that must be present. Ethernet always is.
pub(super) fn present(header: Option<Header>, cond: Cond) -> Cond {
    match header {
        None | Some(Header::Eth) => cond,
        Some(header) => all([Cond::Has(header), cond]),
    }
}

impl Resolver<'_> {
    /// The condition of a rule; its marks collect what it reads.
    pub fn cond(&mut self, expr: &Expr, marks: &mut RuleMarks) -> Option<Cond> {
        match &expr.node {
            ExprKind::And(list) => {
                let conds: Vec<Option<Cond>> = list.iter().map(|e| self.cond(e, marks)).collect();
                Some(all(conds.into_iter().collect::<Option<Vec<Cond>>>()?))
            }
            ExprKind::Or(list) => {
                let conds: Vec<Option<Cond>> = list.iter().map(|e| self.cond(e, marks)).collect();
                let mut out = vec![];
                for cond in conds.into_iter().collect::<Option<Vec<Cond>>>()? {
                    match cond {
                        Cond::Any(inner) => out.extend(inner),
                        cond => out.push(cond),
                    }
                }
                Some(if out.len() == 1 { out.swap_remove(0) } else { Cond::Any(out) })
            }
            ExprKind::Not(inner) => {
                let mut below = RuleMarks::default();
                let cond = self.cond(inner, &mut below)?;
                let named: Vec<Header> =
                    below.reads.iter().filter(|r| r.field.is_none()).filter_map(|r| r.header).collect();
                let unnamed = |r: &&ReadMark| r.field.is_some() && r.header.is_some_and(|h| !named.contains(&h));
                marks.negated.extend(below.reads.iter().filter(unnamed).cloned());
                marks.reads.append(&mut below.reads);
                Some(match cond {
                    Cond::Not(inner) => *inner,
                    cond => Cond::Not(Box::new(cond)),
                })
            }
            ExprKind::Path(name) => self.flag(name, expr.span, marks),
            ExprKind::Compare(Comparison::In, left, right) => self.compare_in(left, right, marks),
            ExprKind::Compare(op, left, right) => self.compare(*op, left, right, marks),
            _ => {
                let message = "this is a value, not a condition";
                self.push(
                    Diagnostic::error("not-a-condition", message, expr.span, "true or false is expected here")
                        .help("compare it with something, as in `ipv4.ttl == 1`"),
                );
                None
            }
        }
    }

    /// A name alone: a header, a flag, a variable of one bit.
    fn flag(&mut self, name: &str, span: Span, marks: &mut RuleMarks) -> Option<Cond> {
        if let Some(header) = Header::by_name(name) {
            let mark = ReadMark { name: name.into(), field: None, header: Some(header), mask: 0, span };
            marks.reads.push(mark);
            return Some(present(Some(header), Cond::True));
        }
        if self.names.peek(name).is_none_or(|symbol| matches!(symbol, Symbol::Header(_)))
            && let Some(header) = self.names.header(name)
        {
            let header = Some(Header::Declared(header));
            marks.reads.push(ReadMark { name: name.into(), field: None, header, mask: 0, span });
            return Some(present(header, Cond::True));
        }
        if let Some((place, Kind::Number, field, header)) = self.readable(name)
            && place.width == 1
            && header.is_some()
        {
            marks.reads.push(ReadMark { name: name.into(), field, header, mask: 1, span });
            return Some(present(header, compare(place, Match::Masked { value: 1, mask: 1 })));
        }
        for (prefix, flags, field) in [("ct.", CT_FLAGS, Field::CtState), ("tcp.", TCP_FLAGS, Field::TcpFlags)] {
            let flag = name.strip_prefix(prefix).and_then(|flag| flags.iter().find(|(f, _)| *f == flag));
            if let Some((_, bit)) = flag {
                let bit = u128::from(*bit);
                let header = field.header();
                marks.reads.push(ReadMark { name: name.into(), field: Some(field), header, mask: bit, span });
                return Some(present(header, compare(Place::field(field), Match::Masked { value: bit, mask: bit })));
            }
        }
        if let Some(Symbol::Var(place, Kind::Number)) = self.names.peek(name)
            && place.width == 1
        {
            let place = *place;
            self.names.symbol(name);
            return Some(compare(place, Match::Masked { value: 1, mask: 1 }));
        }
        if Field::by_name(name).is_some() || self.names.peek(name).is_some() || self.names.is_header_field(name) {
            let message = format!("`{name}` is a value, not a condition");
            self.push(
                Diagnostic::error("not-a-condition", message, span, "true or false is expected here")
                    .help(format!("compare it with something, as in `{name} == …`")),
            );
            self.names.symbol(name);
            return None;
        }
        let declared = self.names.symbol(name).is_some();
        if !declared {
            self.names.unknown("field", &Spanned::new(name.to_string(), span), &mut self.diagnostics);
        }
        None
    }

    /// Whether an expression names something that is read from the packet.
    fn is_subject(&self, expr: &Expr) -> bool {
        match &expr.node {
            ExprKind::Path(name) => {
                Field::by_name(name).is_some()
                    || matches!(self.names.peek(name), Some(Symbol::Var(..)))
                    || self.names.is_header_field(name)
            }
            ExprKind::Arith(Arith::BitAnd, left, right) => self.is_subject(left) || self.is_subject(right),
            _ => false,
        }
    }

    /// What a port is compared as: its dense number in `in_port`, its OpenFlow number anywhere else.
    fn port_bits(&self, subject: &Subject, bits: u128) -> u128 {
        let dense = subject.kind != Kind::Port || subject.place.space == Space::Field(Field::InPort);
        if dense { bits } else { self.names.number_of(PortId(bits as u16)) }
    }

    /// What stands on the left of a comparison.
    pub(super) fn subject(&mut self, expr: &Expr, marks: &mut RuleMarks) -> Option<Subject> {
        match &expr.node {
            ExprKind::Path(name) => {
                if let Some((place, kind, field, header)) = self.readable(name) {
                    let mask = max(place.width);
                    marks.reads.push(ReadMark { name: name.clone(), field, header, mask, span: expr.span });
                    let flags = match field {
                        Some(Field::TcpFlags) => TCP_FLAGS,
                        Some(Field::CtState) => CT_FLAGS,
                        _ => &[],
                    };
                    let (name, span) = (name.clone(), expr.span);
                    return Some(Subject { place, kind, flags, header, name, span, mask: None });
                }
                match self.names.symbol(name) {
                    Some(Some(symbol)) => {
                        let message = format!("the {} `{name}` cannot be compared", symbol.what());
                        let help = "a comparison has a field or a variable on one side";
                        self.push(Diagnostic::error("not-a-field", message, expr.span, "always the same").help(help));
                    }
                    Some(None) => {}
                    None => {
                        self.names.unknown("field", &Spanned::new(name.to_string(), expr.span), &mut self.diagnostics)
                    }
                }
                None
            }
            ExprKind::Arith(Arith::BitAnd, left, right) => {
                let (field, mask) =
                    if self.is_subject(left) || !self.is_subject(right) { (left, right) } else { (right, left) };
                let mut subject = self.subject(field, marks)?;
                let value = self.value(mask, &subject.target())?;
                if subject.kind == Kind::Port {
                    self.error("wrong-kind", "ports have no bits to mask", mask.span, "a mask of ports");
                    return None;
                }
                if let Some((_, first)) = subject.mask {
                    self.push(
                        Diagnostic::error("two-masks", "a field under two masks", mask.span, "the second mask")
                            .label(first, "the first mask"),
                    );
                    return None;
                }
                subject.mask = Some((value, mask.span));
                if let Some(read) = marks.reads.last_mut() {
                    read.mask = value;
                }
                Some(subject)
            }
            ExprKind::Arith(op, ..) => {
                let message = format!("`{}` of what a packet holds does not stand in a condition", op.name());
                let help = "compute it first, `x = …`, and compare the variable in the next table";
                self.push(Diagnostic::error("not-a-field", message, expr.span, "computed").help(help));
                None
            }
            ExprKind::Not(_) => {
                let message = "`!` is nearer to the field than the comparison";
                self.push(
                    Diagnostic::error("not-a-field", message, expr.span, "true or false, not a field")
                        .help("put the comparison in parentheses: `!(… == …)`"),
                );
                None
            }
            _ => {
                let message = "a comparison needs a field or a variable on one side";
                self.error("not-a-field", message, expr.span, "not a field");
                None
            }
        }
    }

    /// A field or variable: where it is, its kind, and what must be present.
    pub fn readable(&mut self, name: &str) -> Option<(Place, Kind, Option<Field>, Option<Header>)> {
        if let Some(Symbol::Var(place, kind)) = self.names.peek(name) {
            let found = (*place, *kind, None, None);
            self.names.symbol(name);
            return Some(found);
        }
        if let Some((field, header)) = Field::by_name(name) {
            return Some((Place::field(field), field.kind(), Some(field), header));
        }
        let (place, kind, header) = self.names.header_field(name)?;
        Some((place, kind, None, Some(Header::Declared(header))))
    }

    fn compare(&mut self, op: Comparison, left: &Expr, right: &Expr, marks: &mut RuleMarks) -> Option<Cond> {
        let (left_reads, right_reads) = (self.is_subject(left), self.is_subject(right));
        if left_reads && right_reads {
            return self.compare_two(op, (left, right), marks);
        }
        let (field, value, op) = if right_reads { (right, left, mirror(op)) } else { (left, right, op) };
        let subject = self.subject(field, marks)?;
        if matches!(op, Comparison::Eq | Comparison::Ne) {
            return self.compare_equal(op, subject, value);
        }
        if matches!(subject.kind, Kind::Port | Kind::Flags) {
            let message = format!("`{}` has no order", subject.name);
            self.push(
                Diagnostic::error("wrong-kind", message, subject.span, describe(subject.kind))
                    .help("compare it with `==`, `!=` or `in`"),
            );
            return None;
        }
        if !self.no_mask(&subject, op) {
            return None;
        }
        let bits = self.value(value, &subject.target())?;
        let top = max(subject.place.width);
        let range = match op {
            Comparison::Lt => bits.checked_sub(1).map(|high| (0, high)),
            Comparison::Le => Some((0, bits)),
            Comparison::Gt => (bits < top).then(|| (bits + 1, top)),
            _ => Some((bits, top)),
        };
        Some(self.in_ranges(&subject, range.into_iter().collect(), value.span))
    }

    /// `==` and `!=`.
    fn compare_equal(&mut self, op: Comparison, subject: Subject, value: &Expr) -> Option<Cond> {
        let target = subject.target();
        let full = max(subject.place.width);
        let (bits, mask) = match (&value.node, subject.mask) {
            (ExprKind::Slash(_, mask), Some((_, first))) => {
                self.push(
                    Diagnostic::error("two-masks", "a field under two masks", mask.span, "the second mask")
                        .label(first, "the first mask"),
                );
                return None;
            }
            (ExprKind::Slash(value, mask), None) => self.masked_value(value, mask, &target)?,
            (_, Some((mask, _))) => (self.value(value, &target)?, mask),
            (_, None) => {
                let bits = self.value(value, &target)?;
                (self.port_bits(&subject, bits), full)
            }
        };
        if bits & !mask != 0 {
            let sure = if op == Comparison::Eq { "never holds" } else { "always holds" };
            let message = format!("this comparison {sure}: the value has bits that the mask takes away");
            let diagnostic = Diagnostic::warning("never-matches", message, value.span, "bits outside the mask");
            self.push(match subject.mask {
                Some((_, span)) => diagnostic.label(span, "the mask"),
                None => diagnostic,
            });
            return Some(if op == Comparison::Eq { never() } else { present(subject.header, Cond::True) });
        }
        let equal = compare(subject.place, Match::Masked { value: bits, mask });
        Some(match op {
            Comparison::Eq => present(subject.header, equal),
            _ => present(subject.header, Cond::Not(Box::new(equal))),
        })
    }

    /// `value/mask` or `address/length`.
    pub fn masked_value(&mut self, value: &Expr, mask: &Expr, target: &Target) -> Option<(u128, u128)> {
        if matches!(target.kind, Kind::Ipv4 | Kind::Ipv6 | Kind::Mac)
            && let ExprKind::Number { .. } = mask.node
        {
            let (constant, length) = self.prefix(value, mask)?;
            self.fit(constant, value.span, target)?;
            let mask = prefix_mask(target.width, length);
            return Some((constant.bits & mask, mask));
        }
        if target.kind == Kind::Port {
            self.error("wrong-kind", "ports have no bits to mask", mask.span, "a mask of ports");
            return None;
        }
        let (bits, mask_bits) = (self.value(value, target), self.value(mask, target));
        let (bits, mask_bits) = (bits?, mask_bits?);
        if bits & !mask_bits != 0 {
            self.error("host-bits", "the value has bits that the mask takes away", value.span, "bits outside the mask");
            return None;
        }
        Some((bits, mask_bits))
    }

    fn no_mask(&mut self, subject: &Subject, op: Comparison) -> bool {
        if let Some((_, span)) = subject.mask {
            let message = format!("a mask goes with `==` and `!=`, not with `{}`", op.name());
            self.error("two-masks", message, span, "the mask");
        }
        subject.mask.is_none()
    }

    /// `in`.
    fn compare_in(&mut self, left: &Expr, right: &Expr, marks: &mut RuleMarks) -> Option<Cond> {
        let subject = self.subject(left, marks)?;
        if !self.no_mask(&subject, Comparison::In) {
            return None;
        }
        if !self.is_group(right) {
            let message = "`in` needs a set, a range or a prefix behind it";
            self.push(
                Diagnostic::error("not-a-set", message, right.span, "one value").help("compare with one value by `==`"),
            );
            return None;
        }
        let mut kind = None;
        let mut ranges = vec![];
        self.elements(right, subject.flags, &mut kind, &mut ranges)?;
        let target = subject.target();
        if target.kind == Kind::Port && kind.is_some_and(|(kind, _)| kind == Kind::Number) {
            ranges = self.ports_by_number(&ranges, right.span)?;
        } else if let Some((kind, span)) = kind {
            if !self.same_kind(kind, span, &target) {
                return None;
            }
            let greatest = ranges.iter().map(|(_, high)| *high).max().unwrap_or(0);
            if greatest > max(target.width) {
                let constant = Constant { bits: greatest, kind };
                self.fit(constant, right.span, &target)?;
            }
        }
        if target.kind == Kind::Port {
            let each = ranges.into_iter().flat_map(|(low, high)| low..=high);
            ranges = each.map(|port| self.port_bits(&subject, port)).map(|bits| (bits, bits)).collect();
        }
        let ranges = normalise(ranges);
        self.spend(ranges.len(), right.span)?;
        Some(self.in_ranges(&subject, ranges, right.span))
    }

    /// Whether an expression can stand behind `in`.
    fn is_group(&self, expr: &Expr) -> bool {
        match &expr.node {
            ExprKind::Elements(_) | ExprKind::Range(..) | ExprKind::Slash(..) => true,
            ExprKind::Path(name) => {
                !matches!(self.names.peek(name), Some(Symbol::Const(_) | Symbol::Port(_) | Symbol::Var(..)))
            }
            _ => false,
        }
    }

    /// Dense numbers of the ports whose OpenFlow numbers lie in ranges.
    fn ports_by_number(&mut self, ranges: &[(u128, u128)], span: Span) -> Option<Vec<(u128, u128)>> {
        let mut out = vec![];
        for id in 0..self.names.ports.len() {
            let number = u128::from(self.names.ports[id].number);
            if ranges.iter().any(|(low, high)| (low..=high).contains(&&number)) {
                self.names.port_by_number(number);
                out.push((id as u128, id as u128));
            }
        }
        if out.is_empty() && !ranges.is_empty() {
            self.error("unknown-name", "no port has such a number", span, "no port is in here");
            return None;
        }
        Some(out)
    }

    /// A field in sorted ranges.
    fn in_ranges(&mut self, subject: &Subject, ranges: Vec<(u128, u128)>, span: Span) -> Cond {
        let full = max(subject.place.width);
        let test = match ranges[..] {
            [] => {
                let message = format!("this comparison never holds: no value of `{}` is in there", subject.name);
                self.push(Diagnostic::warning("never-matches", message, span, "holds for no value"));
                return never();
            }
            [(low, high)] => {
                let size = (high - low).checked_add(1);
                match size {
                    None => Match::Masked { value: 0, mask: 0 },
                    Some(size) if size.is_power_of_two() && low % size == 0 => {
                        Match::Masked { value: low, mask: full & !(size - 1) }
                    }
                    _ => Match::Range { low, high },
                }
            }
            _ => Match::In(ranges),
        };
        present(subject.header, compare(subject.place, test))
    }
}

/// A comparison as tables see it.
fn compare(place: Place, test: Match) -> Cond {
    Cond::Compare(Read { place, view: View::Table }, test)
}

/// The comparison that says the same with the sides swapped.
fn mirror(op: Comparison) -> Comparison {
    match op {
        Comparison::Lt => Comparison::Gt,
        Comparison::Le => Comparison::Ge,
        Comparison::Gt => Comparison::Lt,
        Comparison::Ge => Comparison::Le,
        op => op,
    }
}
