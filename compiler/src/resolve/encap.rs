//! `encap`: a stack of headers by the packet builder. Its known values are in the bytes; the others are written when the
//! action runs.

use super::Resolver;
use super::action::Scope;
use crate::ast::{Layer, Packet};
use crate::diag::Diagnostic;
use crate::hir::{Action, Encap, Value};
use crate::packet::{Header, Stack, StackLayer};
use crate::source::Span;

/// Bytes of a stack, at the most.
const MAX_BYTES: usize = pipec_abi::reshape::MAX_STACK;

impl<'a> Resolver<'a> {
    pub fn encap(&mut self, packet: &'a Packet, span: Span, scope: &Scope<'a>) -> Option<Action> {
        let mut layers = vec![];
        let mut whole = true;
        for layer in &packet.layers {
            match &layer.node {
                Layer::Header(name, args) => {
                    let Some(mut stacked) = StackLayer::by_name(&name.node, layer.span, self) else {
                        self.names.unknown("header", name, &mut self.diagnostics);
                        whole = false;
                        continue;
                    };
                    let parts = stacked.parts();
                    let borrowed: Vec<_> =
                        parts.iter().map(|(name, kind, width)| (name.as_str(), *kind, *width)).collect();
                    match self.parts(&name.node, &borrowed, args, scope) {
                        Some(given) => {
                            given.into_iter().for_each(|(index, value, span)| stacked.give(index, value, span))
                        }
                        None => whole = false,
                    }
                    layers.push(stacked);
                }
                Layer::Payload(_) => {
                    self.error("bad-stack", "a stack has headers only", layer.span, "payload");
                    whole = false;
                }
            }
        }
        if !whole {
            return None;
        }
        let stack = Stack::of(layers);
        if !self.stands(&stack, span) {
            return None;
        }
        let bytes = stack.bytes();
        if bytes.len() > MAX_BYTES {
            let message = format!("these headers have {} bytes", bytes.len());
            self.error("bad-stack", message, span, format!("at most {MAX_BYTES}"));
            return None;
        }
        let values = self.late_values(&stack)?;
        let (ip, v6) = stack.ip()?;
        let inside = stack.inside()?;
        Some(Action::Encap(Box::new(Encap {
            bytes,
            values,
            ip: (ip, v6),
            udp: stack.offset_of(Header::Udp),
            length: stack.declared("gtpu").map(|at| at + 2),
            inside,
        })))
    }

    /// Values that are known when the action runs: first bit, width and value.
    fn late_values(&mut self, stack: &Stack) -> Option<Vec<(u16, u8, Value)>> {
        let mut values = vec![];
        let mut whole = true;
        for (place, value, span) in stack.late() {
            match place {
                Some((offset, width)) => values.push((offset, width, value)),
                None => {
                    whole = false;
                    self.fixed((None, value, span));
                }
            }
        }
        whole.then_some(values)
    }

    /// Whether the stack is one that can be put in front.
    fn stands(&mut self, stack: &Stack, span: Span) -> bool {
        let say = |message: &str, at: Span, label: &str| {
            Diagnostic::error("bad-stack", message, at, label).help(
                "write, for example, `encap eth(dst = …) / ipv4(src = …, dst = …) / udp(dst = 4789) / vxlan(vni = 5)`",
            )
        };
        let diagnostic = match stack.misplaced() {
            Some(at) => say("this header cannot stand here", at, "not behind what stands before it"),
            None if stack.offset_of(Header::Eth) != Some(0) => say("a stack begins with `eth`", span, "it does not"),
            None if stack.ip().is_none() => say("a stack has one header of IP", span, "none, or more than one"),
            None if stack.inside().is_none() => {
                say("nothing can be inside of these headers", span, "ends with none of those that carry packets")
                    .help("the last is `vxlan`, `geneve`, `gre`, `gtpu`, `ipv4` or `ipv6`")
            }
            None => return true,
        };
        self.push(diagnostic);
        false
    }
}
