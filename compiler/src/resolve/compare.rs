//! Comparisons of two places with each other.

use super::Resolver;
use super::arith::as_number;
use super::cond::{Subject, present};
use super::marks::RuleMarks;
use crate::ast::{Comparison, Expr};
use crate::constant::describe;
use crate::diag::Diagnostic;
use crate::field::Kind;
use crate::hir::{Cond, Order, Place, Read, View};

impl Resolver<'_> {
    /// `tcp.src == tcp.dst`
    pub(super) fn compare_two(
        &mut self,
        op: Comparison,
        (left, right): (&Expr, &Expr),
        marks: &mut RuleMarks,
    ) -> Option<Cond> {
        let (a, b) = (self.subject(left, marks), self.subject(right, marks));
        let (a, b) = (a?, b?);
        if let Some((_, span)) = a.mask.or(b.mask) {
            let message = "two fields are compared as a whole";
            let help = "keep what is masked in a variable first, and compare that";
            self.push(Diagnostic::error("two-masks", message, span, "a mask").help(help));
            return None;
        }
        let number = |kind| if kind == Kind::Flags { Kind::Number } else { kind };
        if number(a.kind) != number(b.kind) {
            let message = format!("{} compared with {}", describe(a.kind), describe(b.kind));
            self.push(
                Diagnostic::error("wrong-kind", message, b.span, format!("this is {}", describe(b.kind)))
                    .label(a.span, format!("this is {}", describe(a.kind))),
            );
            return None;
        }
        let equality = matches!(op, Comparison::Eq | Comparison::Ne);
        if !equality && matches!(a.kind, Kind::Port | Kind::Flags) {
            let message = format!("{} has no order", describe(a.kind));
            let help = "compare with `==` or `!=`";
            self.push(Diagnostic::error("wrong-kind", message, a.span, "not less or greater").help(help));
            return None;
        }
        if !equality && a.place.width.max(b.place.width) > 64 {
            let message = "fields of more than 64 bits have no order";
            self.error("wrong-kind", message, if a.place.width > 64 { a.span } else { b.span }, "too wide");
            return None;
        }
        let holds = self.compared(op, &a, &b)?;
        Some(present(a.header, present(b.header, holds)))
    }

    fn compared(&mut self, op: Comparison, a: &Subject, b: &Subject) -> Option<Cond> {
        let (x, y) = (as_number(a.place), as_number(b.place));
        let less = |x, y| Some(to(x, Order::Less, y));
        let at_most = |x, y| Some(to(x, Order::AtMost, y));
        match op {
            Comparison::Eq => self.equal((x, y), b),
            Comparison::Ne => Some(Cond::Not(Box::new(self.equal((x, y), b)?))),
            Comparison::Lt => less(x, y),
            Comparison::Gt => less(y, x),
            Comparison::Le => at_most(x, y),
            _ => at_most(y, x),
        }
    }

    /// Whether two places hold the same: wide ones by halves.
    fn equal(&mut self, (x, y): (Place, Place), b: &Subject) -> Option<Cond> {
        if x.width.max(y.width) <= 64 {
            return Some(to(x, Order::Equal, y));
        }
        if x.width != y.width {
            let message = "a field of more than 64 bits is compared with one of the same width";
            self.error("wrong-kind", message, b.span, format!("has {} bits, not {}", y.width, x.width));
            return None;
        }
        let upper = |place: Place| Place { width: place.width - 64, ..place };
        let lower = |place: Place| Place { offset: place.offset + u16::from(place.width) - 64, width: 64, ..place };
        Some(Cond::All(vec![to(upper(x), Order::Equal, upper(y)), to(lower(x), Order::Equal, lower(y))]))
    }
}

fn to(left: Place, order: Order, right: Place) -> Cond {
    let read = |place| Read { place, view: View::Table };
    Cond::CompareTo(read(left), order, read(right))
}
