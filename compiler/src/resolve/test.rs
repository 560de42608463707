//! `test` blocks: ports by name, packets as bytes.

use super::Resolver;
use super::names::Symbol;
use crate::ast::{self, Step};
use crate::diag::Diagnostic;
use crate::hir::{self, PortId};
use crate::packet;

impl<'a> Resolver<'a> {
    /// A test.
    pub fn test(&mut self, test: &'a ast::Test) -> Option<hir::Test> {
        let mut steps = vec![];
        let mut whole = true;
        let mut sent = false;
        for step in &test.steps {
            match &step.node {
                Step::Send { port, packet } => {
                    sent = true;
                    let port = self.test_port(port);
                    match (port, packet::build(packet, self)) {
                        (Some(port), Some(frame)) => steps.push(hir::Step::Send { port, frame, span: step.span }),
                        _ => whole = false,
                    }
                }
                Step::Expect(names) => {
                    if !sent {
                        self.error("no-packet", "`expect` before any `send`", step.span, "nothing was sent");
                        whole = false;
                    }
                    match self.expected(names) {
                        Some(ports) => steps.push(hir::Step::Expect { ports, span: step.span }),
                        None => whole = false,
                    }
                }
                Step::After { ns } => steps.push(hir::Step::After { ns: *ns }),
            }
        }
        whole.then(|| hir::Test { name: test.name.node.clone(), steps, span: test.name.span })
    }

    fn expected(&mut self, names: &[ast::Name]) -> Option<Vec<PortId>> {
        let drop = names.iter().find(|name| name.node == "drop");
        match drop {
            Some(_) if names.len() == 1 => Some(vec![]),
            Some(drop) => {
                let message = "a packet is either dropped or comes out somewhere";
                self.push(
                    Diagnostic::error("arguments", message, drop.span, "`drop` beside ports")
                        .help("`drop` stands alone"),
                );
                None
            }
            None => {
                let ports: Vec<Option<PortId>> = names.iter().map(|name| self.test_port(name)).collect();
                ports.into_iter().collect()
            }
        }
    }

    fn test_port(&mut self, name: &ast::Name) -> Option<PortId> {
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
}
