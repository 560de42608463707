//! Actions: built-in ones by name, assignments, and calls of the program's own actions, which are put in place of the call
//! with the arguments for the parameters. Recursion is refused, and what grows without bounds.

use std::collections::{HashMap, HashSet};

use super::Resolver;
use super::marks::ActionMark;
use super::names::Symbol;
use super::value::{Constant, Target, max};
use crate::ast::{self, ActionKind, Arg, Expr, ExprKind, Name, Spanned};
use crate::diag::Diagnostic;
use crate::field::{Field, Kind};
use crate::hir::{Action, Ct, Place, PortId, Value};
use crate::source::Span;

/// Actions of one rule after its calls are expanded, at the most.
const MAX_ACTIONS: usize = 4_096;
/// Actions of a program after calls are expanded, at the most.
const MAX_ALL_ACTIONS: usize = 4_000_000;
/// Calls of actions in actions, at the most.
const MAX_NESTED_CALLS: usize = 32;

/// What is built in.
const BUILT_IN: &[&str] = &[
    "output", "in_port", "flood", "all", "normal", "drop", "dec_ttl", "ct", "ct_clear", "exit", "goto", "call", "clone",
];

/// What will be built in.
const LATER: &[&str] = &[
    "controller",
    "count",
    "decap",
    "encap",
    "group",
    "learn",
    "meter",
    "mirror",
    "nat",
    "pop",
    "pop_mpls",
    "pop_vlan",
    "push",
    "push_mpls",
    "push_vlan",
    "truncate",
];

/// Whether an action cannot be declared under this name.
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name) || LATER.contains(&name)
}

/// Names of built-in actions, for suggestions.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().copied()
}

/// What a parameter stands for in a call.
#[derive(Clone, Copy, Debug)]
enum Bound {
    Port(PortId),
    Const(Constant),
    Place(Place, Kind),
    /// Anything of this kind and width: the body of an action is checked by itself.
    Any(Kind, u8),
}

/// Where actions stand: in a rule, or in a call of an action.
#[derive(Clone, Debug, Default)]
struct Scope<'a> {
    params: HashMap<&'a str, Bound>,
    via: Option<Span>,
    /// How many calls this is inside of.
    depth: usize,
}

/// The actions of a rule so far.
#[derive(Debug, Default)]
pub struct Actions {
    /// How many there are, with those in clones and the calls that were expanded.
    count: usize,
    /// Where one of the limits was reached, and what to say.
    overflow: Option<(Span, &'static str)>,
    /// Their places.
    pub marks: Vec<ActionMark>,
}

/// The right side of an assignment, an argument, a zone.
#[derive(Clone, Copy)]
enum Operand {
    Const(Constant),
    Place(Place, Kind),
    Any(Kind, u8),
}

impl<'a> Resolver<'a> {
    /// The actions of a rule.
    pub fn actions(&mut self, list: &'a [ast::Action], into: &mut Actions) -> Option<Vec<Action>> {
        if self.action_count > MAX_ALL_ACTIONS {
            return None;
        }
        let actions = self.list(list, &Scope::default(), into);
        self.action_count += into.count;
        if self.action_count > MAX_ALL_ACTIONS
            && let Some(first) = list.first()
        {
            let message = "the actions of all rules together are too many";
            self.error("too-many", message, first.span, "beyond four million when calls are expanded");
        }
        self.report_overflow(into);
        actions
    }

    fn report_overflow(&mut self, into: &Actions) {
        if let Some((span, message)) = into.overflow {
            self.error("too-many", message, span, "too many when calls are expanded");
        }
    }

    /// Finds actions that call themselves, by whatever way.
    pub fn find_recursion(&mut self, actions: &[&'a ast::ActionDecl]) {
        /// Calls of actions in a list, with those in clones.
        fn calls<'a>(list: &'a [ast::Action], out: &mut Vec<(&'a Name, Span)>) {
            for action in list {
                match &action.node {
                    ActionKind::Run(name, _) => out.push((name, action.span)),
                    ActionKind::Clone(inner) => calls(inner, out),
                    _ => {}
                }
            }
        }
        let mut done: HashSet<&str> = HashSet::new();
        for &root in actions {
            // The path from the root: an action, its calls, and the next one to follow.
            let mut path: Vec<(&'a ast::ActionDecl, Vec<(&'a Name, Span)>)> = vec![];
            let mut enter = Some(root);
            loop {
                if let Some(action) = enter.take()
                    && done.insert(&action.name.node)
                {
                    let mut found = vec![];
                    calls(&action.body, &mut found);
                    path.push((action, found));
                }
                let Some((_, rest)) = path.last_mut() else { break };
                let Some((name, span)) = rest.pop() else {
                    path.pop();
                    continue;
                };
                let Some(callee) = self.names.peek_action(&name.node) else { continue };
                if path.iter().any(|(on, _)| on.name.node == name.node) {
                    self.broken.insert(&callee.name.node);
                    let message = format!("the action `{}` calls itself", name.node);
                    self.push(
                        Diagnostic::error("recursion", message, span, "called again here")
                            .label(callee.name.span, "declared here")
                            .help("a table can be entered again: `goto` or `call` it"),
                    );
                } else {
                    enter = Some(callee);
                }
            }
        }
    }

    /// Checks the body of an action by itself, whatever its arguments will be.
    pub fn action_body(&mut self, action: &'a ast::ActionDecl) {
        let mut scope = Scope::default();
        for param in &action.params {
            if let Some(first) = action.params.iter().find(|p| p.name.node == param.name.node)
                && first.name.span != param.name.span
            {
                self.push(super::names::duplicate("parameter", &param.name, first.name.span));
            }
            if let Some((kind, width)) = self.type_of(&param.ty) {
                scope.params.insert(&param.name.node, Bound::Any(kind, width));
            } else {
                scope.params.insert(&param.name.node, Bound::Any(Kind::Number, 1));
            }
        }
        let mut into = Actions::default();
        self.list(&action.body, &scope, &mut into);
        if into.overflow.is_some() {
            self.broken.insert(&action.name.node);
        }
        self.report_overflow(&into);
    }

    fn list(&mut self, list: &'a [ast::Action], scope: &Scope<'a>, into: &mut Actions) -> Option<Vec<Action>> {
        let mut out = vec![];
        let mut whole = true;
        for action in list {
            if into.count > MAX_ACTIONS {
                into.overflow = Some((scope.via.unwrap_or(action.span), "a rule has more than 4,096 actions"));
                return None;
            }
            whole &= self.action(action, scope, into, &mut out).is_some();
        }
        whole.then_some(out)
    }

    fn action(
        &mut self,
        action: &'a ast::Action,
        scope: &Scope<'a>,
        into: &mut Actions,
        out: &mut Vec<Action>,
    ) -> Option<()> {
        let mark = ActionMark { span: action.span, via: scope.via };
        let mut add = |into: &mut Actions, action: Action| {
            into.marks.push(mark);
            into.count += 1;
            out.push(action);
            Some(())
        };
        match &action.node {
            ActionKind::Goto(name) => {
                let table = self.table(name)?;
                add(into, Action::Goto(table))
            }
            ActionKind::Call(name) => {
                let table = self.table(name)?;
                add(into, Action::Call { table, in_port: None })
            }
            ActionKind::Clone(list) => {
                into.marks.push(mark);
                into.count += 1;
                let inner = self.list(list, scope, into)?;
                out.push(Action::Clone(inner));
                Some(())
            }
            ActionKind::Assign(name, value) => {
                let set = self.assign(name, value, scope)?;
                add(into, set)
            }
            ActionKind::Run(name, args) => {
                let args = args.as_deref();
                match name.node.as_str() {
                    "output" => {
                        let mut whole = Some(());
                        let args = args.unwrap_or(&[]);
                        if args.is_empty() {
                            self.error("arguments", "`output` needs a port", action.span, "no port");
                            return None;
                        }
                        for arg in args {
                            match self.port(arg, scope) {
                                Some(port) => whole = whole.and(add(into, Action::Output(port))),
                                None => whole = None,
                            }
                        }
                        whole
                    }
                    "ct" => {
                        let ct = self.ct(args.unwrap_or(&[]), scope)?;
                        add(into, Action::Ct(ct))
                    }
                    word => match simple(word) {
                        Some(simple) => {
                            if let Some(arg) = args.and_then(|args| args.first()) {
                                let message = format!("`{word}` takes no arguments");
                                self.error("arguments", message, arg.value.span, "one too many");
                                return None;
                            }
                            if matches!(simple, Action::Flood | Action::All | Action::Normal | Action::InPort) {
                                self.names.use_all_ports();
                            }
                            add(into, simple)
                        }
                        None => {
                            let list = self.call(name, args.unwrap_or(&[]), action.span, scope, into)?;
                            out.extend(list);
                            Some(())
                        }
                    },
                }
            }
        }
    }

    fn table(&mut self, name: &Name) -> Option<crate::hir::TableId> {
        let table = self.names.table(&name.node);
        if table.is_none() {
            self.names.unknown("table", name, &mut self.diagnostics);
        }
        table
    }

    /// An action of the program, in place of the call.
    fn call(
        &mut self,
        name: &'a Name,
        args: &'a [Arg],
        span: Span,
        scope: &Scope<'a>,
        into: &mut Actions,
    ) -> Option<Vec<Action>> {
        let Some(action) = self.names.action(&name.node) else {
            self.unknown_action(name);
            return None;
        };
        if self.broken.contains(action.name.node.as_str()) {
            return None; // Reported already.
        }
        if scope.depth == MAX_NESTED_CALLS {
            into.overflow = Some((scope.via.unwrap_or(span), "actions call each other more than 32 deep"));
            return None;
        }
        into.count += 1;
        if args.len() != action.params.len() {
            let message = format!("`{}` takes {}, not {}", name.node, count(action.params.len()), args.len());
            self.push(
                Diagnostic::error("arguments", message, span, "called here").label(action.name.span, "declared here"),
            );
            return None;
        }
        let mut inner = Scope { params: HashMap::new(), via: scope.via.or(Some(span)), depth: scope.depth + 1 };
        let mut whole = true;
        for (index, param) in action.params.iter().enumerate() {
            match self.argument(param, index, args, scope) {
                Some(bound) => drop(inner.params.insert(&param.name.node, bound)),
                None => whole = false,
            }
        }
        if !whole {
            return None;
        }
        // Mistakes in the body are reported where the body is checked by itself, once.
        let known = self.diagnostics.len();
        let list = self.list(&action.body, &inner, into);
        self.diagnostics.truncate(known);
        list
    }

    /// The argument for a parameter: by name, or by its place.
    fn argument(&mut self, param: &'a ast::Var, index: usize, args: &'a [Arg], scope: &Scope<'a>) -> Option<Bound> {
        let named = |arg: &&Arg| arg.name.as_ref().is_some_and(|n| n.node == param.name.node);
        let arg = args.iter().find(named).or_else(|| args.get(index).filter(|arg| arg.name.is_none()));
        let Some(arg) = arg else {
            if let Some(name) = args.get(index).and_then(|arg| arg.name.as_ref()) {
                let message = format!("the parameter `{}` is not given", param.name.node);
                self.push(
                    Diagnostic::error("arguments", message, name.span, "another name")
                        .label(param.name.span, "declared here"),
                );
            }
            return None;
        };
        let (kind, width) = self.type_of(&param.ty)?;
        if kind == Kind::Port {
            return Some(match self.port_or_param(&arg.value, scope)? {
                Ok(port) => Bound::Port(port),
                Err(bound) => bound,
            });
        }
        let target = Target { kind, width, flags: &[], name: &param.name.node, span: param.name.span };
        match self.operand(&arg.value, scope, &target)? {
            Operand::Const(value) => Some(Bound::Const(value)),
            Operand::Place(place, kind) => Some(Bound::Place(place, kind)),
            Operand::Any(kind, width) => Some(Bound::Any(kind, width)),
        }
    }

    fn unknown_action(&mut self, name: &Name) {
        if LATER.contains(&name.node.as_str()) {
            let message = format!("the action `{}` is not available yet", name.node);
            self.error("not-yet", message, name.span, "not available yet");
            return;
        }
        let diagnostic = match name.node.as_str() {
            "resubmit" => Some("write `call TABLE`, which comes back, or `goto TABLE`, which does not"),
            "forward" | "send" | "redirect" => Some("write `output(PORT)`"),
            "accept" | "permit" | "allow" => {
                Some("write where the packet goes: `output(PORT)`, `normal` or `goto TABLE`")
            }
            "deny" | "reject" => Some("write `drop`"),
            _ => None,
        };
        match diagnostic {
            Some(help) => {
                let message = format!("there is no action `{}`", name.node);
                self.push(Diagnostic::error("unknown-name", message, name.span, "not known").help(help));
            }
            None if self.names.table(&name.node).is_some() => {
                let message = format!("`{}` is a table, not an action", name.node);
                self.push(
                    Diagnostic::error("unknown-name", message, name.span, "a table")
                        .help(format!("write `goto {0}` or `call {0}`", name.node)),
                );
            }
            None if self.names.peek(&name.node).is_some() => {
                let what = self.names.symbol(&name.node).flatten().map_or("name", |symbol| symbol.what());
                let message = format!("`{}` is a {what}, not an action", name.node);
                let diagnostic = Diagnostic::error("unknown-name", message, name.span, format!("a {what}"));
                self.push(if what == "port" {
                    diagnostic.help(format!("write `output({})`", name.node))
                } else {
                    diagnostic
                });
            }
            None => self.names.unknown("action", name, &mut self.diagnostics),
        }
    }

    /// An argument that is a port.
    fn port(&mut self, arg: &'a Arg, scope: &Scope<'a>) -> Option<PortId> {
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

    fn port_or_param(&mut self, expr: &Expr, scope: &Scope<'a>) -> Option<Result<PortId, Bound>> {
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
    fn operand(&mut self, expr: &Expr, scope: &Scope<'a>, target: &Target) -> Option<Operand> {
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
    fn assign(&mut self, name: &Name, value: &Expr, scope: &Scope<'a>) -> Option<Action> {
        let Some((place, kind, field, _)) = self.readable(&name.node) else {
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

    /// `ct(…)`.
    fn ct(&mut self, args: &'a [Arg], scope: &Scope<'a>) -> Option<Ct> {
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
            Operand::Place(..) => {
                let message = format!("`{}` from a field is not available yet", target.name);
                self.error("not-yet", message, value.span, "known only at run time");
                None
            }
            Operand::Any(..) => Some((0, mask)),
        }
    }

    /// The kind and width of a written type.
    pub fn type_of(&mut self, ty: &Name) -> Option<(Kind, u8)> {
        let found = match ty.node.as_str() {
            "port" => Some((Kind::Port, 16)),
            "mac" => Some((Kind::Mac, 48)),
            "ipv4" => Some((Kind::Ipv4, 32)),
            "ipv6" => Some((Kind::Ipv6, 128)),
            name => {
                let width = name.strip_prefix('u').and_then(|width| width.parse::<u8>().ok());
                width.filter(|width| (1..=128).contains(width)).map(|width| (Kind::Number, width))
            }
        };
        if found.is_none() {
            let message = format!("there is no type `{}`", ty.node);
            let help = "types are port, mac, ipv4, ipv6, and u1 to u128";
            self.push(Diagnostic::error("unknown-type", message, ty.span, "not a type").help(help));
        }
        found
    }
}

/// Actions without arguments.
fn simple(name: &str) -> Option<Action> {
    Some(match name {
        "in_port" => Action::InPort,
        "flood" => Action::Flood,
        "all" => Action::All,
        "normal" => Action::Normal,
        "drop" => Action::Drop,
        "dec_ttl" => Action::DecTtl,
        "ct_clear" => Action::CtClear,
        "exit" => Action::Exit,
        _ => return None,
    })
}

/// "2 arguments".
fn count(n: usize) -> String {
    match n {
        0 => "no arguments".into(),
        1 => "1 argument".into(),
        n => format!("{n} arguments"),
    }
}
