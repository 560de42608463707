//! Values that are computed when an action runs: `+ - & | ^ << >>` of fields, variables and parameters, and `hash(…)`.
//!
//! They are computed in 64 bits, and what they are written to keeps its low ones. Numbers go with all operators, addresses
//! with those that work bit by bit, ports with none.

use super::Resolver;
use super::action::{Bound, Scope};
use super::operand::Operand;
use super::value::Target;
use crate::ast::{self, Arith, Expr, ExprKind, Name};
use crate::constant::{Constant, describe};
use crate::diag::Diagnostic;
use crate::field::{Field, Kind};
use crate::hir::{self, Place, Space, Value};
use crate::source::Span;

/// A value on its way: of this kind, in at most so many bits.
pub struct Term {
    /// The value.
    pub value: Value,
    /// How it is written.
    pub kind: Kind,
    /// Bits that may be 1.
    pub width: u8,
}

/// The place where a port's number is read.
pub fn as_number(place: Place) -> Place {
    if place.space == Space::Field(Field::InPort) { Place::field(Field::InPortNumber) } else { place }
}

impl<'a> Resolver<'a> {
    /// Whether a value is more than a constant or one place.
    pub fn is_computed(&mut self, expr: &Expr, scope: &Scope<'a>) -> bool {
        match &expr.node {
            ExprKind::Call(..) => true,
            ExprKind::Arith(_, left, right) => {
                [left, right].into_iter().any(|e| self.is_read(e, scope) || self.is_computed(e, scope))
            }
            _ => false,
        }
    }

    fn is_read(&mut self, expr: &Expr, scope: &Scope<'a>) -> bool {
        let ExprKind::Path(name) = &expr.node else { return false };
        scope.params.contains_key(name.as_str()) || self.readable(name).is_some()
    }

    /// A value, computed or not.
    pub fn term(&mut self, expr: &Expr, scope: &Scope<'a>) -> Option<Term> {
        match &expr.node {
            ExprKind::Call(name, args) => self.hash_call(name, args, scope),
            ExprKind::Arith(op, left, right) if self.is_computed(expr, scope) => {
                let (a, b) = (self.term(left, scope), self.term(right, scope));
                self.combine(*op, (a?, left), (b?, right))
            }
            ExprKind::Path(name) => self.named(name, expr, scope),
            _ => self.known(expr),
        }
    }

    fn named(&mut self, name: &str, expr: &Expr, scope: &Scope<'a>) -> Option<Term> {
        let read = |place: Place, kind| Term { value: Value::Read(place), kind, width: place.width };
        match scope.params.get(name).cloned() {
            Some(Bound::Port(port)) => {
                Some(Term { value: Value::Const(self.names.number_of(port)), kind: Kind::Port, width: 16 })
            }
            Some(Bound::Const(constant)) => Some(of_constant(constant)),
            Some(Bound::Place(place, kind)) => Some(read(as_number(place), kind)),
            Some(Bound::Any(kind, width)) => Some(Term { value: Value::Const(0), kind, width }),
            Some(Bound::Value(value, kind, width)) => Some(Term { value, kind, width }),
            None => match self.readable(name) {
                Some((place, kind, ..)) => Some(read(as_number(place), kind)),
                None => self.known(expr),
            },
        }
    }

    fn known(&mut self, expr: &Expr) -> Option<Term> {
        let constant = self.constant(expr, &[])?;
        Some(match constant.kind {
            Kind::Port => {
                let number = self.names.number_of(hir::PortId(constant.bits as u16));
                of_constant(Constant { bits: number, kind: Kind::Port })
            }
            _ => of_constant(constant),
        })
    }

    fn combine(&mut self, op: Arith, (a, left): (Term, &Expr), (b, right): (Term, &Expr)) -> Option<Term> {
        let number = |kind| if kind == Kind::Flags { Kind::Number } else { kind };
        let (ka, kb) = (number(a.kind), number(b.kind));
        let bitwise = matches!(op, Arith::BitAnd | Arith::BitOr | Arith::BitXor);
        for (kind, expr) in [(ka, left), (kb, right)] {
            let fits = kind == Kind::Number || bitwise && matches!(kind, Kind::Mac | Kind::Ipv4);
            if !fits {
                let message = format!("`{}` does not work on {}", op.name(), describe(kind));
                let works = if bitwise { "numbers, MAC and IPv4 addresses" } else { "numbers" };
                let diagnostic = Diagnostic::error("wrong-kind", message, expr.span, describe(kind));
                self.push(diagnostic.help(format!("`{}` works on {works}", op.name())));
                return None;
            }
        }
        if ka != kb && ka != Kind::Number && kb != Kind::Number {
            let message = format!("`{}` of {} and {}", op.name(), describe(ka), describe(kb));
            self.push(
                Diagnostic::error("wrong-kind", message, right.span, describe(kb)).label(left.span, describe(ka)),
            );
            return None;
        }
        for (term, expr) in [(&a, left), (&b, right)] {
            if term.width > 64 {
                let message = format!("`{}` works in 64 bits", op.name());
                self.error("value-too-big", message, expr.span, format!("has {} bits", term.width));
                return None;
            }
        }
        let kind = if ka == Kind::Number { kb } else { ka };
        let width = width(op, &a, &b);
        let value = Value::Arith(operation(op), Box::new(a.value), Box::new(b.value));
        Some(Term { value, kind, width })
    }

    /// `hash(…)`
    fn hash_call(&mut self, name: &Name, args: &[Expr], scope: &Scope<'a>) -> Option<Term> {
        if name.node != "hash" {
            let message = format!("there is no function `{}`", name.node);
            let known = self.names.peek_action(&name.node).is_some();
            let help = if known { "an action gives no value" } else { "the only one is `hash(…)`" };
            self.push(Diagnostic::error("unknown-name", message, name.span, "not known").help(help));
            return None;
        }
        Some(Term { value: Value::Hash(self.hashed(args, scope)?), kind: Kind::Number, width: 32 })
    }

    /// What a hash is of.
    pub fn hashed(&mut self, args: &[Expr], scope: &Scope<'a>) -> Option<Vec<Value>> {
        let terms: Vec<Option<Term>> = args.iter().map(|arg| self.term(arg, scope)).collect();
        terms.into_iter().map(|term| Some(term?.value)).collect()
    }

    /// Checks that a computed value is of the right kind and fits.
    pub fn fit_term(&mut self, term: Term, span: Span, target: &Target) -> Option<Operand> {
        if !self.same_kind(term.kind, span, target) {
            return None;
        }
        if term.width > target.width {
            let message = format!("this value may not fit into `{}`", target.name);
            let mask = (1_u128 << target.width) - 1;
            self.push(
                Diagnostic::error("value-too-big", message, span, format!("may have {} bits", term.width))
                    .label(target.span, format!("has {} bits", target.width))
                    .help(format!("keep the low bits: `(…) & {mask:#x}`")),
            );
            return None;
        }
        Some(Operand::Computed(term.value, term.kind, term.width))
    }
}

fn of_constant(constant: Constant) -> Term {
    let width = (128 - constant.bits.leading_zeros()).max(1) as u8;
    Term { value: Value::Const(constant.bits), kind: constant.kind, width }
}

/// How many bits may be 1. What is added or subtracted may wrap around as its operands do.
fn width(op: Arith, a: &Term, b: &Term) -> u8 {
    let by = |value: &Value| match value {
        Value::Const(bits) => Some((*bits).min(64) as u8),
        _ => None,
    };
    match op {
        Arith::BitAnd => a.width.min(b.width),
        Arith::Add | Arith::Sub | Arith::BitOr | Arith::BitXor => a.width.max(b.width),
        Arith::Shl => by(&b.value).map_or(64, |by| a.width.saturating_add(by).min(64)),
        Arith::Shr => by(&b.value).map_or(a.width, |by| a.width.saturating_sub(by).max(1)),
    }
}

fn operation(op: Arith) -> hir::Arith {
    match op {
        ast::Arith::BitOr => hir::Arith::Or,
        ast::Arith::BitAnd => hir::Arith::And,
        ast::Arith::Add => hir::Arith::Add,
        ast::Arith::Sub => hir::Arith::Sub,
        ast::Arith::BitXor => hir::Arith::Xor,
        ast::Arith::Shl => hir::Arith::Shl,
        ast::Arith::Shr => hir::Arith::Shr,
    }
}
