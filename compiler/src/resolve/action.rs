//! Action lists: built-in actions, assignments, and calls of the program's own actions, which are put in place of the call
//! with the arguments for the parameters. Recursion is refused, and what grows without bounds.

use std::collections::{HashMap, HashSet};

use super::Resolver;
use super::built_in::simple;
use super::marks::ActionMark;
use super::operand::Operand;
use super::value::Target;
use crate::ast::{self, ActionKind, Arg, Name};
use crate::constant::Constant;
use crate::diag::Diagnostic;
use crate::field::Kind;
use crate::hir::{Action, Place, PortId, Value};
use crate::source::Span;

/// Actions of one rule after its calls are expanded, at the most.
const MAX_ACTIONS: usize = 4_096;
/// Actions of a program after calls are expanded, at the most.
const MAX_ALL_ACTIONS: usize = 4_000_000;
/// Calls of actions in actions, at the most.
const MAX_NESTED_CALLS: usize = 32;
/// What a parameter stands for in a call.
#[derive(Clone, Debug)]
pub enum Bound {
    /// A port.
    Port(PortId),
    /// A value that is known.
    Const(Constant),
    /// A field or variable.
    Place(Place, Kind),
    /// Anything of this kind and width: the body of an action is checked by itself.
    Any(Kind, u8),
    /// A value that is computed where the parameter stands, with its kind and width.
    Value(Value, Kind, u8),
}

/// Where actions stand: in a rule, or in a call of an action.
#[derive(Clone, Debug, Default)]
pub struct Scope<'a> {
    /// What the parameters stand for.
    pub params: HashMap<&'a str, Bound>,
    /// The rule's call that this is in.
    pub via: Option<Span>,
    /// How many calls this is inside of.
    depth: usize,
}

impl<'a> Scope<'a> {
    /// The body of an action by itself, whose parameters stand for these.
    pub fn of_params(params: HashMap<&'a str, Bound>) -> Scope<'a> {
        Scope { params, ..Scope::default() }
    }
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

impl Actions {
    /// Counts an action and remembers its place.
    pub(super) fn mark(&mut self, mark: ActionMark, action: Action) -> Action {
        self.marks.push(mark);
        self.count += 1;
        action
    }
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
        // As it is printed, the body has every name that it uses.
        let body = crate::print::actions(&action.body);
        let words: HashSet<&str> = body.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
        for param in action.params.iter().filter(|param| !words.contains(param.name.node.as_str())) {
            self.names.unused_param(&param.name);
        }
        let mut into = Actions::default();
        self.list(&action.body, &scope, &mut into);
        if into.overflow.is_some() {
            self.broken.insert(&action.name.node);
        }
        self.report_overflow(&into);
    }

    /// The body of an action of a keyed table.
    pub fn body(&mut self, list: &'a [ast::Action], scope: &Scope<'a>, into: &mut Actions) -> Option<Vec<Action>> {
        let actions = self.list(list, scope, into);
        self.action_count += into.count;
        actions
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
        match &action.node {
            ActionKind::Goto(name) => {
                let table = self.table(name)?;
                out.push(into.mark(mark, Action::Goto(table)));
            }
            ActionKind::Call(name) => {
                let table = self.table(name)?;
                out.push(into.mark(mark, Action::Call { table, in_port: None }));
            }
            ActionKind::Clone(list) => {
                // Its mark stands before those of its actions.
                into.marks.push(mark);
                into.count += 1;
                let inner = self.list(list, scope, into)?;
                out.push(Action::Clone(inner));
            }
            ActionKind::Learn(table, key, learned) => {
                let learn = self.learn(table, key, learned, scope)?;
                out.push(into.mark(mark, learn));
            }
            ActionKind::Assign(name, value) => {
                let set = self.assign(name, value, scope)?;
                out.push(into.mark(mark, set));
            }
            ActionKind::Push(..) | ActionKind::Pop(..) | ActionKind::Encap(_) | ActionKind::Decap(_) => {
                let shape = self.shape(&action.node, action.span, scope)?;
                out.push(into.mark(mark, shape));
            }
            ActionKind::Run(name, args) => {
                let args = args.as_deref().unwrap_or(&[]);
                match name.node.as_str() {
                    word @ ("output" | "mirror" | "truncate" | "controller" | "count" | "group" | "meter") => {
                        for action in self.sending(word, args, action.span, scope)? {
                            out.push(into.mark(mark, action));
                        }
                    }
                    "ct" => {
                        let ct = self.ct(args, scope)?;
                        out.push(into.mark(mark, Action::Ct(ct)));
                    }
                    "dec_mpls_ttl" => {
                        self.without_arguments("dec_mpls_ttl", args)?;
                        let header = self.names.header("mpls")?;
                        out.push(into.mark(mark, Action::DecMplsTtl { header }));
                    }
                    word => match simple(word) {
                        Some(simple) => {
                            self.without_arguments(word, args)?;
                            if matches!(simple, Action::Flood | Action::All | Action::Normal | Action::InPort) {
                                self.names.use_all_ports();
                            }
                            out.push(into.mark(mark, simple));
                        }
                        None => out.extend(self.call(name, args, action.span, scope, into)?),
                    },
                }
            }
        }
        Some(())
    }

    fn without_arguments(&mut self, name: &str, args: &[Arg]) -> Option<()> {
        let Some(arg) = args.first() else { return Some(()) };
        self.error("arguments", format!("`{name}` takes no arguments"), arg.value.span, "one too many");
        None
    }

    pub fn table(&mut self, name: &Name) -> Option<crate::hir::TableId> {
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
        if let Some((action, declared)) = self.names.extern_action(&name.node) {
            return self.call_extern(action, declared, name, args, span, scope, into);
        }
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
        self.right_number(&name.node, action.name.span, action.params.len(), args.len(), span)?;
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

    /// Reports a call with too many or too few arguments.
    pub(super) fn right_number(
        &mut self,
        name: &str,
        declared: Span,
        wanted: usize,
        given: usize,
        at: Span,
    ) -> Option<()> {
        if wanted == given {
            return Some(());
        }
        let message = format!("`{name}` takes {}, not {given}", count(wanted));
        self.push(Diagnostic::error("arguments", message, at, "called here").label(declared, "declared here"));
        None
    }

    /// The argument for a parameter: by name, or by its place.
    pub(super) fn argument(
        &mut self,
        param: &'a ast::Var,
        index: usize,
        args: &'a [Arg],
        scope: &Scope<'a>,
    ) -> Option<Bound> {
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
            Operand::Computed(value, kind, width) => Some(Bound::Value(value, kind, width)),
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

/// "2 arguments".
fn count(n: usize) -> String {
    match n {
        0 => "no arguments".into(),
        1 => "1 argument".into(),
        n => format!("{n} arguments"),
    }
}
