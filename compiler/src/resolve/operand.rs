//! What actions take: ports, and values that are known or read from the packet when the action runs.

use super::Resolver;
use super::action::{Bound, Scope};
use super::arith::{Term, as_number};
use super::names::Symbol;
use super::value::Target;
use crate::ast::{Expr, ExprKind, Name, Spanned};
use crate::constant::Constant;
use crate::diag::Diagnostic;
use crate::field::{Field, Kind};
use crate::hir::{Action, Place, PortId, Value};

/// The right side of an assignment, an argument, a zone.
#[derive(Clone)]
pub enum Operand {
    /// It is known.
    Const(Constant),
    /// It is read.
    Place(Place, Kind),
    /// Anything of this kind and width: the body of an action is checked by itself.
    Any(Kind, u8),
    /// It is computed: of this kind, in so many bits.
    Computed(Value, Kind, u8),
}

impl<'a> Resolver<'a> {
    /// The port with this name, and nothing else.
    pub fn port_named(&mut self, name: &Name) -> Option<PortId> {
        match self.names.symbol(&name.node) {
            Some(Some(Symbol::Port(port))) => Some(port),
            Some(None) => None,
            Some(Some(symbol)) => {
                let message = format!("`{}` is a {}, not a port", name.node, symbol.what());
                self.error("wrong-kind", message, name.span, "expected a port");
                None
            }
            None => {
                self.names.unknown("port", name, &mut self.diagnostics);
                None
            }
        }
    }

    pub fn port_or_param(&mut self, expr: &Expr, scope: &Scope<'a>) -> Option<Result<PortId, Bound>> {
        match &expr.node {
            ExprKind::Path(name) => {
                match scope.params.get(name.as_str()) {
                    Some(Bound::Port(port)) => return Some(Ok(*port)),
                    Some(
                        bound @ (Bound::Any(Kind::Port, _)
                        | Bound::Place(_, Kind::Port)
                        | Bound::Value(_, Kind::Port, _)),
                    ) => {
                        return Some(Err(bound.clone()));
                    }
                    Some(_) => {
                        self.error("wrong-kind", format!("`{name}` is not a port"), expr.span, "expected a port");
                        return None;
                    }
                    None => {}
                }
                match self.names.symbol(name) {
                    Some(Some(Symbol::Port(port))) => Some(Ok(port)),
                    Some(Some(Symbol::Var(place, Kind::Port))) => Some(Err(Bound::Place(place, Kind::Port))),
                    Some(Some(symbol)) => {
                        let message = format!("`{name}` is a {}, not a port", symbol.what());
                        self.error("wrong-kind", message, expr.span, "expected a port");
                        None
                    }
                    Some(None) => None,
                    None if name == "in_port" => Some(Err(Bound::Place(Place::field(Field::InPortNumber), Kind::Port))),
                    None if Field::by_name(name).is_some() => {
                        self.error("wrong-kind", format!("`{name}` is not a port"), expr.span, "expected a port");
                        None
                    }
                    None => {
                        let name = Spanned::new(name.clone(), expr.span);
                        self.names.unknown("port", &name, &mut self.diagnostics);
                        None
                    }
                }
            }
            ExprKind::Number { value, .. } => {
                let port = self.names.port_by_number(*value);
                if port.is_none() {
                    self.error("unknown-name", format!("no port has the number {value}"), expr.span, "not a port");
                }
                port.map(Ok)
            }
            _ => {
                self.error("wrong-kind", "expected a port", expr.span, "not a port");
                None
            }
        }
    }

    /// A value that is known, or read when the action runs, of the kind and width that `target` wants.
    pub fn operand(&mut self, expr: &Expr, scope: &Scope<'a>, target: &Target) -> Option<Operand> {
        let place = |resolver: &mut Self, place: Place, kind: Kind| -> Option<Operand> {
            if !resolver.same_kind(kind, expr.span, target) {
                return None;
            }
            if place.width > target.width {
                let message = format!("this value does not fit into `{}`", target.name);
                resolver.push(
                    Diagnostic::error("value-too-big", message, expr.span, format!("has {} bits", place.width))
                        .label(target.span, format!("has {} bits", target.width)),
                );
                return None;
            }
            let place = if kind == Kind::Port { as_number(place) } else { place };
            Some(Operand::Place(place, kind))
        };
        if let ExprKind::Path(name) = &expr.node {
            match scope.params.get(name.as_str()).cloned() {
                Some(Bound::Port(port)) => {
                    let constant = Constant { bits: u128::from(port.0), kind: Kind::Port };
                    let number = Constant { bits: self.names.number_of(port), kind: Kind::Port };
                    return self.fit(constant, expr.span, target).map(|_| Operand::Const(number));
                }
                Some(Bound::Value(value, kind, width)) => {
                    let term = Term { value, kind, width };
                    return self.fit_term(term, expr.span, target);
                }
                Some(Bound::Const(constant)) => {
                    let bits = self.fit(constant, expr.span, target)?;
                    return Some(Operand::Const(Constant { bits, ..constant }));
                }
                Some(Bound::Place(from, kind)) => return place(self, from, kind),
                Some(Bound::Any(kind, width)) => {
                    if !self.same_kind(kind, expr.span, target) {
                        return None;
                    }
                    let from = Place { width, ..Place::field(Field::InPort) };
                    return place(self, from, kind).map(|_| Operand::Any(kind, width));
                }
                None => {}
            }
            if let Some((from, kind, _, _)) = self.readable(name) {
                return place(self, from, kind);
            }
        }
        if self.is_computed(expr, scope) {
            let term = self.term(expr, scope)?;
            return self.fit_term(term, expr.span, target);
        }
        let constant = self.constant(expr, target.flags)?;
        let bits = self.fit(constant, expr.span, target)?;
        if target.kind == Kind::Port {
            let bits = self.names.number_of(PortId(bits as u16));
            return Some(Operand::Const(Constant { bits, kind: Kind::Port }));
        }
        Some(Operand::Const(Constant { bits, kind: constant.kind }))
    }

    /// `field = value`.
    pub fn assign(&mut self, name: &Name, value: &Expr, scope: &Scope<'a>) -> Option<Action> {
        let before = self.names.is_used(&name.node);
        let found = self.readable(&name.node);
        self.names.assigned(&name.node, before);
        let Some((place, kind, field, _)) = found else {
            if scope.params.contains_key(name.node.as_str()) {
                let message = format!("the parameter `{}` cannot be assigned", name.node);
                self.error("not-writable", message, name.span, "a parameter");
            } else if let Some(symbol) = self.names.symbol(&name.node) {
                let what = symbol.map_or("name", |symbol| symbol.what());
                self.error(
                    "not-writable",
                    format!("a {what} cannot be assigned"),
                    name.span,
                    "not a field or variable",
                );
            } else {
                self.names.unknown("field", name, &mut self.diagnostics);
            }
            return None;
        };
        if let Some(field) = field
            && field.target().is_none()
        {
            let message = format!("`{}` cannot be written", name.node);
            let diagnostic = Diagnostic::error("not-writable", message, name.span, "read only");
            self.push(match field {
                Field::CtMark => diagnostic.help("write `ct(commit, mark = …)`"),
                Field::CtLabel => diagnostic.help("write `ct(commit, label = …)`"),
                Field::CtZone => diagnostic.help("write `ct(zone = …)`"),
                _ => diagnostic,
            });
            return None;
        }
        let target = Target { kind, width: place.width, flags: &[], name: &name.node, span: name.span };
        let value = match self.operand(value, scope, &target)? {
            Operand::Const(constant) => Value::Const(constant.bits),
            Operand::Place(from, _) => Value::Read(from),
            Operand::Any(..) => Value::Const(0),
            Operand::Computed(value, ..) => value,
        };
        Some(Action::Set { place, value })
    }
}
