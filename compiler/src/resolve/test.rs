//! `test` blocks: ports by name, packets as bytes, and what is expected of them.

use pipec_abi::DropReason;

use super::Resolver;
use super::marks::{ReadMark, RuleMarks};
use crate::ast::{self, Expr, ExprKind, Like, Spanned, Step};
use crate::diag::Diagnostic;
use crate::field::Field;
use crate::hir::{self, Cond, End, Expected, PortId};
use crate::packet;
use crate::source::Span;

/// Packets of one `send`, and of what is expected of it, at the most.
const MAX_COUNT: u64 = 1_000;
/// The controller, as an output.
const CONTROLLER: PortId = PortId(0x7ffe);

impl<'a> Resolver<'a> {
    /// A test.
    pub fn test(&mut self, test: &'a ast::Test) -> Option<hir::Test> {
        let mut steps = vec![];
        let mut whole = true;
        let mut sent = None;
        let mut expects = false;
        for step in &test.steps {
            match &step.node {
                Step::Send { count, port, packet } => {
                    let count = self.count(count.as_ref());
                    sent = Some(count.unwrap_or(1));
                    let port = self.port_named(port);
                    match (count, port, packet::build(packet, self)) {
                        (Some(count), Some(port), Some(frame)) => {
                            steps.push(hir::Step::Send { port, frame, count, span: step.span });
                        }
                        _ => whole = false,
                    }
                }
                Step::Expect(ends) => {
                    expects = true;
                    if sent.is_none() {
                        self.error("no-packet", "`expect` before any `send`", step.span, "nothing was sent");
                        whole = false;
                    }
                    match self.expected(ends, sent.unwrap_or(1)) {
                        Some(ends) => steps.push(hir::Step::Expect { ends, span: step.span }),
                        None => whole = false,
                    }
                }
                Step::After { ns } => steps.push(hir::Step::After { ns: *ns }),
            }
        }
        if !expects && whole {
            let message = "this test expects nothing, so it cannot fail";
            self.push(
                Diagnostic::warning("no-expect", message, test.name.span, "no `expect` in it")
                    .help("write behind each `send` what becomes of the packet: `expect PORT;` or `expect drop;`"),
            );
        }
        whole.then(|| hir::Test { name: test.name.node.clone(), steps, span: test.name.span })
    }

    /// How often something is sent or expected.
    fn count(&mut self, count: Option<&Spanned<u64>>) -> Option<u32> {
        let Some(count) = count else { return Some(1) };
        if (1..=MAX_COUNT).contains(&count.node) {
            return Some(count.node as u32);
        }
        let message = format!("counts go from 1 to {MAX_COUNT}");
        self.error("value-too-big", message, count.span, "not a count of packets");
        None
    }

    /// The ends of the `sent` packets before.
    fn expected(&mut self, ends: &'a [Spanned<ast::Expected>], sent: u32) -> Option<Vec<Expected>> {
        let found: Vec<Option<Expected>> = ends.iter().map(|end| self.end(&end.node, end.span)).collect();
        let found: Vec<Expected> = found.into_iter().collect::<Option<_>>()?;
        let dropped = |end: &&Expected| matches!(end.end, End::Drop(_));
        let drops: u32 = found.iter().filter(dropped).map(|end| end.count).sum();
        let last = found.iter().rfind(dropped);
        if let Some(drop) = last
            && (drops > sent || drops == sent && found.iter().any(|end| matches!(end.end, End::Port(_))))
        {
            let message = if sent == 1 {
                "a packet is either dropped or comes out somewhere".to_string()
            } else {
                format!("{sent} packets were sent: they are not all dropped and come out as well")
            };
            let diagnostic = Diagnostic::error("arguments", message, drop.span, "`drop` beside others");
            self.push(diagnostic.help("a packet that comes out anywhere is not dropped"));
            return None;
        }
        Some(found)
    }

    /// One end.
    fn end(&mut self, expected: &'a ast::Expected, span: Span) -> Option<Expected> {
        let count = self.count(expected.count.as_ref());
        let declared = self.names.peek(&expected.name.node).is_some();
        let end = match expected.name.node.as_str() {
            "drop" => Some(End::Drop(match &expected.reason {
                Some(reason) => Some(self.reason(reason)?),
                None => None,
            })),
            "controller" if !declared => Some(End::Port(CONTROLLER)),
            _ => self.port_named(&expected.name).map(End::Port),
        };
        if let (Some(End::Port(_)), Some(reason)) = (end, &expected.reason) {
            let message = "only `drop` has a reason";
            self.error("arguments", message, reason.span, format!("not a drop: `{}`", expected.name.node));
            return None;
        }
        if let (Some(End::Drop(_)), Some(_)) = (end, &expected.like) {
            let message = "nothing can be said of a packet that is dropped";
            self.push(
                Diagnostic::error("arguments", message, span, "no packet comes out")
                    .help("name the reason: `drop(policy)`"),
            );
            return None;
        }
        let (mut when, mut frame) = (vec![], None);
        match &expected.like {
            None => {}
            Some(Like::Equal(packet)) => frame = Some(packet::build(packet, self)?),
            Some(Like::Where(cond)) => when = self.when(cond)?,
        }
        Some(Expected { end: end?, count: count?, when, frame, span })
    }

    /// The parts of what is said of a packet, each with its place.
    fn when(&mut self, cond: &Expr) -> Option<Vec<(Cond, Span)>> {
        let parts = if let ExprKind::And(parts) = &cond.node { parts.as_slice() } else { std::slice::from_ref(cond) };
        let resolved: Vec<Option<(Cond, Span)>> = parts
            .iter()
            .map(|part| {
                let mut marks = RuleMarks::default();
                let cond = self.cond(part, &mut marks)?;
                let outside = |read: &&ReadMark| match read.field {
                    Some(field) => {
                        matches!(field, Field::CtState | Field::CtMark | Field::CtLabel | Field::CtZone)
                            || field.name().starts_with("in_port")
                    }
                    None => read.header.is_none(),
                };
                if let Some(read) = marks.reads.iter().find(outside) {
                    let message = format!("`{}` is not in the packet", read.name);
                    self.push(
                        Diagnostic::error("not-a-field", message, read.span, "gone when the packet has come out")
                            .help("only what stands in its headers can be tested here"),
                    );
                    return None;
                }
                Some((cond, part.span))
            })
            .collect();
        resolved.into_iter().collect()
    }

    fn reason(&mut self, name: &ast::Name) -> Option<DropReason> {
        let found = DropReason::ALL.iter().copied().find(|reason| reason.name() == name.node);
        if found.is_none() {
            let message = format!("packets are never dropped for `{}`", name.node);
            let names = DropReason::ALL.iter().map(|reason| reason.name());
            let help = match crate::suggest::closest(&name.node, names.clone()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("reasons are {}", names.collect::<Vec<_>>().join(", ")),
            };
            self.push(Diagnostic::error("unknown-name", message, name.span, "not a reason").help(help));
        }
        found
    }
}
