//! What actions take: ports, and values that are known or read from the packet when the action runs.

use super::Resolver;
use super::action::{Bound, Scope};
use super::names::Symbol;
use super::value::Target;
use crate::ast::{Arg, Expr, ExprKind, Name, Spanned};
use crate::constant::Constant;
use crate::diag::Diagnostic;
use crate::field::{Field, Kind};
use crate::hir::{Action, Place, PortId, Value};

/// The right side of an assignment, an argument, a zone.
#[derive(Clone, Copy)]
pub enum Operand {
    /// It is known.
    Const(Constant),
    /// It is read.
    Place(Place, Kind),
    /// Anything of this kind and width: the body of an action is checked by itself.
    Any(Kind, u8),
}

impl<'a> Resolver<'a> {
    /// An argument that is a port.
    pub fn port(&mut self, arg: &'a Arg, scope: &Scope<'a>) -> Option<PortId> {
        if let Some(name) = &arg.name {
            self.error("arguments", "`output` takes ports without names", name.span, "not a port");
            return None;
        }
        match self.port_or_param(&arg.value, scope)? {
            Ok(port) => Some(port),
            // Some port: the body of an action is being checked by itself.
            Err(_) => Some(PortId(0)),
        }
    }

    pub fn port_or_param(&mut self, expr: &Expr, scope: &Scope<'a>) -> Option<Result<PortId, Bound>> {
        match &expr.node {
            ExprKind::Path(name) => {
                match scope.params.get(name.as_str()) {
                    Some(Bound::Port(port)) => return Some(Ok(*port)),
                    Some(bound @ Bound::Any(Kind::Port, _)) => return Some(Err(*bound)),
                    Some(_) => {
                        self.error("wrong-kind", format!("`{name}` is not a port"), expr.span, "expected a port");
                        return None;
                    }
                    None => {}
                }
                if name == "in_port" {
                    let message = "a packet is not sent back by `output`";
                    self.push(
                        Diagnostic::error("wrong-kind", message, expr.span, "the port it came in by")
                            .help("write the action `in_port`"),
                    );
                    return None;
                }
                match self.names.symbol(name) {
                    Some(Some(Symbol::Port(port))) => Some(Ok(port)),
                    Some(Some(Symbol::Var(_, Kind::Port))) => {
                        self.error("not-yet", "computed outputs are not available yet", expr.span, "known at run time");
                        None
                    }
                    Some(Some(symbol)) => {
                        let message = format!("`{name}` is a {}, not a port", symbol.what());
                        self.error("wrong-kind", message, expr.span, "expected a port");
                        None
                    }
                    Some(None) => None,
                    None if Field::by_name(name).is_some() => {
                        self.error("not-yet", "computed outputs are not available yet", expr.span, "known at run time");
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
            Some(Operand::Place(place, kind))
        };
        if let ExprKind::Path(name) = &expr.node {
            match scope.params.get(name.as_str()).copied() {
                Some(Bound::Port(port)) => {
                    let constant = Constant { bits: u128::from(port.0), kind: Kind::Port };
                    return self.fit(constant, expr.span, target).map(|_| Operand::Const(constant));
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
        if let ExprKind::Arith(op, left, right) = &expr.node
            && [left, right].iter().any(|e| {
                matches!(&e.node, ExprKind::Path(name)
                if scope.params.contains_key(name.as_str()) || self.readable(name).is_some())
            })
        {
            let message = format!("`{}` of what a packet holds is not available yet", op.name());
            self.error("not-yet", message, expr.span, "not available yet");
            return None;
        }
        let constant = self.constant(expr, target.flags)?;
        let bits = self.fit(constant, expr.span, target)?;
        let kind = if target.kind == Kind::Port { Kind::Port } else { constant.kind };
        Some(Operand::Const(Constant { bits, kind }))
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
        };
        Some(Action::Set { place, value })
    }
}
