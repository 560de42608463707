//! Actions in Rust: their parameters, and calls of them.

use super::Resolver;
use super::action::{Actions, Bound, Scope};
use super::marks::ActionMark;
use crate::ast::{self, Arg, Name};
use crate::diag::Diagnostic;
use crate::field::Kind;
use crate::hir::{Action, Value};
use crate::source::Span;

impl<'a> Resolver<'a> {
    /// The kind and width of a parameter.
    pub(super) fn extern_param(&mut self, param: &ast::Var) -> (Kind, u8) {
        match self.type_of(&param.ty) {
            Some((_, width)) if width > 64 => {
                let message = "an argument of an action in Rust has at most 64 bits";
                self.push(
                    Diagnostic::error("value-too-big", message, param.ty.span, format!("has {width} bits"))
                        .help("give it in two parts, or read it from the packet"),
                );
                (Kind::Number, 64)
            }
            found => found.unwrap_or((Kind::Number, 64)),
        }
    }

    /// A call of an action in Rust.
    #[allow(clippy::too_many_arguments)] // what a call is
    pub(super) fn call_extern(
        &mut self,
        action: u16,
        declared: &'a ast::Extern,
        name: &Name,
        args: &'a [Arg],
        span: Span,
        scope: &Scope<'a>,
        into: &mut Actions,
    ) -> Option<Vec<Action>> {
        self.right_number(&name.node, declared.name.span, declared.params.len(), args.len(), span)?;
        let mut values = vec![];
        for (index, param) in declared.params.iter().enumerate() {
            values.push(match self.argument(param, index, args, scope)? {
                Bound::Port(port) => Value::Const(self.names.number_of(port)),
                Bound::Const(constant) => Value::Const(constant.bits),
                Bound::Place(place, _) => Value::Read(place),
                Bound::Any(..) => Value::Const(0),
                Bound::Value(value, ..) => value,
            });
        }
        let mark = ActionMark { span, via: scope.via };
        Some(vec![into.mark(mark, Action::Extern { action, args: values })])
    }
}
