//! `push`, `pop`, `encap`, `decap`: which header, and the values of its fields.

use super::Resolver;
use super::action::Scope;
use super::operand::Operand;
use super::value::Target;
use crate::ast::{ActionKind, Arg, Expr, Name};
use crate::diag::Diagnostic;
use crate::field::{Header, Kind};
use crate::hir::{Action, Arith, Place, Space, Tunnel, Value};
use crate::parse::list;
use crate::source::Span;

/// A part that can be given: its name, kind and width.
pub type Part<'n> = (&'n str, Kind, u8);

impl<'a> Resolver<'a> {
    /// One of these actions.
    pub fn shape(&mut self, action: &'a ActionKind, span: Span, scope: &Scope<'a>) -> Option<Action> {
        match action {
            ActionKind::Push(name, args) => self.push_header(name, args.as_deref().unwrap_or(&[]), scope),
            ActionKind::Pop(name, args) => self.pop_header(name, args.as_deref().unwrap_or(&[]), scope),
            ActionKind::Encap(packet) => self.encap(packet, span, scope),
            ActionKind::Decap(name) => self.decap(name),
            _ => None,
        }
    }

    fn push_header(&mut self, name: &'a Name, args: &'a [Arg], scope: &Scope<'a>) -> Option<Action> {
        match (name.node.as_str(), Header::by_name(&name.node)) {
            ("vlan", _) => self.push_vlan(args, scope),
            ("mpls", _) if self.names.peek("mpls").is_none() => {
                let header = self.names.header("mpls")?;
                let mut values = self.header_values(header, args, &[("type", Kind::Number, 16)], scope)?;
                let eth_type = match values.iter().position(|(place, ..)| place.is_none()) {
                    Some(at) => self.fixed(values.remove(at))? as u16,
                    None => 0x8847,
                };
                let values = values.into_iter().filter_map(|(place, value, _)| Some((place?, value))).collect();
                Some(Action::PushMpls { eth_type, values })
            }
            (_, Some(_)) => {
                let message = format!("`{}` cannot be pushed by itself", name.node);
                self.push(
                    Diagnostic::error("not-pushable", message, name.span, "built in")
                        .help("headers to push are `vlan`, `mpls` and those that the program declares")
                        .help("a stack for a tunnel is written `encap eth(…) / ipv4(…) / udp(…) / vxlan(…)`"),
                );
                None
            }
            _ => {
                let header = self.header_by_name(name)?;
                let values = self.header_values(header, args, &[], scope)?;
                let values = values.into_iter().filter_map(|(place, value, _)| Some((place?, value))).collect();
                Some(Action::Push { header, values })
            }
        }
    }

    /// Values of a declared header's fields, and of `more`, which have no place.
    fn header_values(
        &mut self,
        header: u16,
        args: &'a [Arg],
        more: &[Part<'static>],
        scope: &Scope<'a>,
    ) -> Option<Vec<(Option<Place>, Value, Span)>> {
        let declared = self.names.headers[usize::from(header)].clone();
        let fields = declared.fields.iter().map(|field| (field.name.as_str(), field.kind, field.width));
        let parts: Vec<Part> = fields.chain(more.iter().copied()).collect();
        let given = self.parts(&declared.name, &parts, args, scope)?;
        Some(
            given
                .into_iter()
                .map(|(index, value, span)| {
                    let field = declared.fields.get(index);
                    let place = |offset, width| Place { space: Space::Header(header), offset, width };
                    (field.map(|field| place(field.offset, field.width)), value, span)
                })
                .collect(),
        )
    }

    fn push_vlan(&mut self, args: &'a [Arg], scope: &Scope<'a>) -> Option<Action> {
        let number = |name: &'static str, width| (name, Kind::Number, width);
        let parts = [number("vid", 12), number("pcp", 3), number("dei", 1), number("tpid", 16)];
        let (mut tci, mut tpid) = (Value::Const(0), 0x8100);
        for (index, value, span) in self.parts("vlan", &parts, args, scope)? {
            let shift = match index {
                0 => 0,
                1 => 13,
                2 => 12,
                _ => {
                    tpid = self.fixed((None, value, span))? as u16;
                    continue;
                }
            };
            tci = or(tci, shifted(value, shift));
        }
        Some(Action::PushVlan { tpid, tci })
    }

    fn pop_header(&mut self, name: &'a Name, args: &'a [Arg], scope: &Scope<'a>) -> Option<Action> {
        if name.node == "mpls" && self.names.peek("mpls").is_none() {
            self.names.header("mpls")?;
            let given = match args {
                [Arg { name: None, value }] => {
                    let target = Target { kind: Kind::Number, width: 16, flags: &[], name: "type", span: name.span };
                    let found = self.value_of(value, scope, &target)?;
                    Some((None, found, value.span))
                }
                _ => None,
            };
            let Some(given) = given else {
                let message = "`pop mpls` needs the Ethernet type of what is behind the label";
                self.push(
                    Diagnostic::error("arguments", message, name.span, "expected `mpls(TYPE)`")
                        .help("write `pop mpls(0x0800)` for IPv4, `pop mpls(0x86dd)` for IPv6"),
                );
                return None;
            };
            return Some(Action::PopMpls { eth_type: self.fixed(given)? as u16 });
        }
        if let Some(arg) = args.first() {
            self.error("arguments", format!("`pop {}` takes no arguments", name.node), arg.value.span, "one too many");
            return None;
        }
        match (name.node.as_str(), Header::by_name(&name.node)) {
            ("vlan", _) => Some(Action::PopVlan),
            (_, Some(_)) => {
                let message = format!("`{}` cannot be popped by itself", name.node);
                self.push(
                    Diagnostic::error("not-pushable", message, name.span, "built in")
                        .help("headers to pop are `vlan`, `mpls` and those that the program declares")
                        .help("a tunnel's headers are removed by `decap vxlan`, `decap gre` and their like"),
                );
                None
            }
            _ => Some(Action::Pop { header: self.header_by_name(name)? }),
        }
    }

    fn decap(&mut self, name: &'a Name) -> Option<Action> {
        let Some((_, tunnel)) = Tunnel::NAMES.iter().find(|(n, _)| *n == name.node) else {
            let names: Vec<&str> = Tunnel::NAMES.iter().map(|(n, _)| *n).collect();
            let message = format!("there is no tunnel `{}`", name.node);
            let diagnostic = Diagnostic::error("unknown-name", message, name.span, "not known");
            self.push(diagnostic.help(format!("tunnels are {}", list(&names))));
            return None;
        };
        Some(Action::Decap { tunnel: *tunnel, header: self.names.header(&name.node)? })
    }

    /// A value that must be known at compile time.
    pub fn fixed(&mut self, (_, value, span): (Option<Place>, Value, Span)) -> Option<u128> {
        if let Value::Const(value) = value {
            return Some(value);
        }
        self.error("not-a-value", "this must be known when the program is compiled", span, "known only at run time");
        None
    }

    /// Arguments by the names of parts: for each its place among them, and its value.
    pub fn parts(
        &mut self,
        header: &str,
        parts: &[Part],
        args: &'a [Arg],
        scope: &Scope<'a>,
    ) -> Option<Vec<(usize, Value, Span)>> {
        let mut given: Vec<(usize, Value, Span)> = vec![];
        let mut whole = true;
        for arg in args {
            let Some(name) = &arg.name else {
                let message = format!("values of `{header}` have names");
                self.error("arguments", message, arg.value.span, "expected `name = value`");
                whole = false;
                continue;
            };
            let Some(index) = parts.iter().position(|(part, ..)| *part == name.node) else {
                let names: Vec<&str> = parts.iter().map(|(part, ..)| *part).collect();
                let message = format!("`{header}` has no `{}` here", name.node);
                let diagnostic = Diagnostic::error("unknown-name", message, name.span, "not known");
                let close = crate::suggest::closest(&name.node, names.iter().copied());
                self.push(match close {
                    Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
                    None => diagnostic.help(format!("it has {}", names.join(", "))),
                });
                whole = false;
                continue;
            };
            if let Some((.., first)) = given.iter().find(|(i, ..)| *i == index) {
                let message = format!("`{}` is given twice", name.node);
                let first = *first;
                self.push(Diagnostic::error("duplicate", message, name.span, "again here").label(first, "first here"));
                whole = false;
                continue;
            }
            let (part, kind, width) = parts[index];
            let target = Target { kind, width, flags: &[], name: part, span: name.span };
            match self.value_of(&arg.value, scope, &target) {
                Some(value) => given.push((index, value, arg.value.span)),
                None => whole = false,
            }
        }
        whole.then_some(given)
    }

    /// A value, known or not.
    fn value_of(&mut self, expr: &'a Expr, scope: &Scope<'a>, target: &Target) -> Option<Value> {
        Some(match self.operand(expr, scope, target)? {
            Operand::Const(constant) => Value::Const(constant.bits),
            Operand::Place(from, _) => Value::Read(from),
            Operand::Any(..) => Value::Const(0),
            Operand::Computed(value, ..) => value,
        })
    }
}

/// A value moved up.
fn shifted(value: Value, bits: u32) -> Value {
    match value {
        value if bits == 0 => value,
        Value::Const(value) => Value::Const(value << bits),
        value => Value::Arith(Arith::Shl, Box::new(value), Box::new(Value::Const(bits.into()))),
    }
}

fn or(left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Const(left), Value::Const(right)) => Value::Const(left | right),
        (Value::Const(0), value) | (value, Value::Const(0)) => value,
        (left, right) => Value::Arith(Arith::Or, Box::new(left), Box::new(right)),
    }
}
