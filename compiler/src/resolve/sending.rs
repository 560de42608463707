//! `output`, `mirror`, `controller`, `count`, `group` and `meter`, with their arguments.

use super::Resolver;
use super::action::{Bound, Scope};
use super::value::Target;
use crate::ast::{Arg, ExprKind, Name, Spanned};
use crate::diag::Diagnostic;
use crate::field::Kind;
use crate::hir::{Action, PortId, Value};
use crate::source::Span;

/// Bytes of an Ethernet header: no copy is cut shorter.
const ETHERNET: u128 = 14;
/// Why the controller gets a packet, if nothing else is said: because an action says so.
const ACTION: u8 = 1;

/// Where an output goes.
enum Destination {
    Port(PortId),
    Number(Value),
}

impl<'a> Resolver<'a> {
    /// One of these actions.
    pub fn sending(&mut self, word: &str, args: &'a [Arg], span: Span, scope: &Scope<'a>) -> Option<Vec<Action>> {
        match word {
            "output" => self.outputs(args, span, scope),
            "mirror" => {
                let arg = self.only(word, "a port", args, span)?;
                match self.destination(word, arg, scope)? {
                    Destination::Port(port) => Some(vec![Action::Mirror(port)]),
                    Destination::Number(_) => {
                        let message = "`mirror` needs a port that is known in advance";
                        self.error("wrong-kind", message, arg.value.span, "known only at run time");
                        None
                    }
                }
            }
            "truncate" => {
                let arg = self.only(word, "a length in bytes", args, span)?;
                let name = Name::new(word.to_owned(), span);
                Some(vec![Action::Truncate(self.max_len(&name, arg)?)])
            }
            "controller" => self.controller(args),
            "count" => {
                let name = self.only_name(word, "a name to count under", args, span)?;
                match self.names.counter(&name.node) {
                    Some(counter) => Some(vec![Action::Count(counter)]),
                    None => {
                        self.error("too-many", "too many counters", name.span, "one too many");
                        None
                    }
                }
            }
            "group" => {
                let name = self.only_name(word, "the name of a group", args, span)?;
                let group = self.names.group(&name.node);
                if group.is_none() {
                    self.names.unknown("group", &name, &mut self.diagnostics);
                }
                let group = group?;
                if self.in_group.is_some_and(|own| group >= own) {
                    let message = format!("the group `{}` is not declared yet", name.node);
                    self.push(
                        Diagnostic::error("recursion", message, name.span, "used before its declaration")
                            .help("a bucket may only use groups that stand before its own"),
                    );
                    return None;
                }
                Some(vec![Action::Group(group)])
            }
            _ => {
                let name = self.only_name(word, "the name of a meter", args, span)?;
                let meter = self.names.meter(&name.node);
                if meter.is_none() {
                    self.names.unknown("meter", &name, &mut self.diagnostics);
                }
                Some(vec![Action::Meter(meter?)])
            }
        }
    }

    /// The single argument of an action.
    fn only(&mut self, word: &str, what: &str, args: &'a [Arg], span: Span) -> Option<&'a Arg> {
        match args {
            [arg] if arg.name.is_none() => Some(arg),
            [] => {
                self.error("arguments", format!("`{word}` needs {what}"), span, "nothing given");
                None
            }
            [first, rest @ ..] => {
                let at = rest.first().unwrap_or(first);
                self.error("arguments", format!("`{word}` takes only {what}"), at.value.span, "not an argument");
                None
            }
        }
    }

    fn only_name(&mut self, word: &str, what: &str, args: &'a [Arg], span: Span) -> Option<Name> {
        let arg = self.only(word, what, args, span)?;
        match &arg.value.node {
            ExprKind::Path(name) if !name.contains('.') => Some(Spanned::new(name.clone(), arg.value.span)),
            _ => {
                self.error("arguments", format!("`{word}` needs {what}"), arg.value.span, "not a name");
                None
            }
        }
    }

    /// `output(a, b, max_len = 128)`
    fn outputs(&mut self, args: &'a [Arg], span: Span, scope: &Scope<'a>) -> Option<Vec<Action>> {
        let mut max_len = None;
        let mut ports = vec![];
        for arg in args {
            match &arg.name {
                None => ports.push(self.destination("output", arg, scope)),
                Some(name) if name.node == "max_len" => max_len = Some(self.max_len(name, arg)?),
                Some(name) => {
                    let message = format!("`output` has no argument `{}`", name.node);
                    let help = "write `output(PORT, …)` or `output(PORT, max_len = N)`";
                    self.push(Diagnostic::error("arguments", message, name.span, "not known").help(help));
                    return None;
                }
            }
        }
        if ports.is_empty() {
            self.error("arguments", "`output` needs a port", span, "no port");
            return None;
        }
        let ports = ports.into_iter().collect::<Option<Vec<_>>>()?;
        let action = |port| match (port, max_len) {
            (Destination::Port(port), None) => Action::Output(port),
            (Destination::Number(value), None) => Action::OutputTo(value),
            (Destination::Port(port), Some(max_len)) => {
                Action::OutputPart { port: Value::Const(self.names.number_of(port)), max_len }
            }
            (Destination::Number(port), Some(max_len)) => Action::OutputPart { port, max_len },
        };
        Some(ports.into_iter().map(action).collect())
    }

    fn destination(&mut self, word: &str, arg: &'a Arg, scope: &Scope<'a>) -> Option<Destination> {
        if let Some(name) = &arg.name {
            self.error("arguments", format!("`{word}` takes ports without names"), name.span, "not a port");
            return None;
        }
        if matches!(&arg.value.node, ExprKind::Path(name) if name == "in_port") {
            let message = format!("a packet is not sent back by `{word}`");
            self.push(
                Diagnostic::error("wrong-kind", message, arg.value.span, "the port it came in by")
                    .help("write the action `in_port`"),
            );
            return None;
        }
        Some(match self.port_or_param(&arg.value, scope)? {
            Ok(port) => Destination::Port(port),
            Err(Bound::Place(place, _)) => Destination::Number(Value::Read(place)),
            Err(Bound::Value(value, ..)) => Destination::Number(value),
            // Some port: the body of an action is being checked by itself.
            Err(_) => Destination::Port(PortId(0)),
        })
    }

    fn max_len(&mut self, name: &Name, arg: &'a Arg) -> Option<u16> {
        let target = Target { kind: Kind::Number, width: 16, flags: &[], name: &name.node, span: name.span };
        let bits = self.value(&arg.value, &target)?;
        if bits < ETHERNET {
            let message = "a packet has at least an Ethernet header";
            self.error("value-too-big", message, arg.value.span, format!("expected {ETHERNET} to 65535"));
            return None;
        }
        Some(bits as u16)
    }

    /// `controller(reason = 3, max_len = 128)`
    fn controller(&mut self, args: &'a [Arg]) -> Option<Vec<Action>> {
        let (mut reason, mut max_len) = (ACTION, u16::MAX);
        for arg in args {
            match &arg.name {
                Some(name) if name.node == "max_len" => max_len = self.max_len(name, arg)?,
                Some(name) if name.node == "reason" => {
                    let target = Target { kind: Kind::Number, width: 8, flags: &[], name: &name.node, span: name.span };
                    reason = self.value(&arg.value, &target)? as u8;
                }
                _ => {
                    let span = arg.name.as_ref().map_or(arg.value.span, |name| name.span);
                    let message = "`controller` has no such argument";
                    let help = "arguments are `reason = …` and `max_len = …`";
                    self.push(Diagnostic::error("arguments", message, span, "not known").help(help));
                    return None;
                }
            }
        }
        Some(vec![Action::Controller { reason, max_len }])
    }
}
