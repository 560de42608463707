//! Actions that call themselves, by whatever way: they cannot be put in place of their calls.

use std::collections::HashSet;

use super::Resolver;
use crate::ast::{self, ActionKind, Name};
use crate::diag::Diagnostic;
use crate::source::Span;

impl<'a> Resolver<'a> {
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
}
