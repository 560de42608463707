//! `ct(…)` and its arguments.

use std::collections::HashMap;

use super::Resolver;
use super::action::Scope;
use super::operand::Operand;
use super::value::Target;
use crate::ast::{Arg, Expr, ExprKind};
use crate::constant::max;
use crate::diag::Diagnostic;
use crate::field::Kind;
use crate::hir::{Ct, Value};
use crate::source::Span;

impl<'a> Resolver<'a> {
    /// `ct(…)`.
    pub fn ct(&mut self, args: &'a [Arg], scope: &Scope<'a>) -> Option<Ct> {
        let mut ct = Ct { zone: Value::Const(0), commit: false, force: false, mark: None, label: None };
        let mut given: HashMap<&str, Span> = HashMap::new();
        let mut whole = true;
        for arg in args {
            let (name, span) = match (&arg.name, &arg.value.node) {
                (Some(name), _) => (name.node.as_str(), name.span),
                (None, ExprKind::Path(word)) => (word.as_str(), arg.value.span),
                (None, _) => {
                    self.error("arguments", "not an argument of `ct`", arg.value.span, "a value without a name");
                    whole = false;
                    continue;
                }
            };
            if let Some(first) = given.insert(name, span) {
                self.push(
                    Diagnostic::error("duplicate", format!("`{name}` is given twice"), span, "again here")
                        .label(first, "first here"),
                );
                whole = false;
            }
            whole &= self.ct_argument(name, span, arg, scope, &mut ct).is_some();
        }
        for name in ["force", "mark", "label"] {
            if let Some(span) = given.get(name)
                && !ct.commit
            {
                let message = format!("`{name}` without `commit`");
                self.push(
                    Diagnostic::error("arguments", message, *span, "only what is committed can have it")
                        .help(format!("write `ct(commit, {name}{})`", if name == "force" { "" } else { " = …" })),
                );
                whole = false;
            }
        }
        whole.then_some(ct)
    }

    fn ct_argument(&mut self, name: &'a str, span: Span, arg: &'a Arg, scope: &Scope<'a>, ct: &mut Ct) -> Option<()> {
        let valued = arg.name.is_some();
        let target = |width| Target { kind: Kind::Number, width, flags: &[], name, span };
        match (name, valued) {
            ("commit", false) => ct.commit = true,
            ("force", false) => ct.force = true,
            ("zone", true) => {
                ct.zone = match self.operand(&arg.value, scope, &target(16))? {
                    Operand::Const(constant) => Value::Const(constant.bits),
                    Operand::Place(place, _) => Value::Read(place),
                    Operand::Any(..) => Value::Const(0),
                    Operand::Computed(value, ..) => value,
                }
            }
            ("mark", true) => {
                let (value, mask) = self.ct_value(&arg.value, scope, &target(32))?;
                ct.mark = Some((value as u32, mask as u32));
            }
            ("label", true) => ct.label = Some(self.ct_value(&arg.value, scope, &target(128))?),
            ("nat" | "alg" | "helper" | "timeout", _) => {
                let message = format!("`{name}` in `ct` is not available yet");
                self.error("not-yet", message, span, "not available yet");
                return None;
            }
            ("table", _) => {
                self.push(
                    Diagnostic::error("arguments", "`ct` does not go to a table here", span, "not an argument of `ct`")
                        .help("write `ct(…), goto TABLE`: `ct.*` holds from there on"),
                );
                return None;
            }
            ("commit" | "force", true) => {
                self.error("arguments", format!("`{name}` has no value"), arg.value.span, "one too many");
                return None;
            }
            ("zone" | "mark" | "label", false) => {
                self.error("arguments", format!("`{name}` needs a value: `{name} = …`"), span, "no value");
                return None;
            }
            _ => {
                let message = format!("`ct` has no argument `{name}`");
                let help = "arguments are commit, force, zone = …, mark = …, label = …";
                self.push(Diagnostic::error("arguments", message, span, "not known").help(help));
                return None;
            }
        }
        Some(())
    }

    /// `value` or `value/mask`.
    fn ct_value(&mut self, expr: &Expr, scope: &Scope<'a>, target: &Target) -> Option<(u128, u128)> {
        let (value, mask) = match &expr.node {
            ExprKind::Slash(value, mask) => (&**value, Some(&**mask)),
            _ => (expr, None),
        };
        let mask = match mask {
            Some(mask) => self.value(mask, target)?,
            None => max(target.width),
        };
        match self.operand(value, scope, target)? {
            Operand::Const(constant) if constant.bits & !mask != 0 => {
                self.error(
                    "host-bits",
                    "the value has bits that the mask takes away",
                    value.span,
                    "bits outside the mask",
                );
                None
            }
            Operand::Const(constant) => Some((constant.bits, mask)),
            Operand::Place(..) | Operand::Computed(..) => {
                let message = format!("`{}` from a field is not available yet", target.name);
                self.error("not-yet", message, value.span, "known only at run time");
                None
            }
            Operand::Any(..) => Some((0, mask)),
        }
    }
}
