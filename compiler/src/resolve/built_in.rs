//! Actions that the language knows by name, now and later, and what to say about names that are no action.

use super::Resolver;
use crate::ast::Name;
use crate::diag::Diagnostic;
use crate::hir::Action;

/// What is built in.
const BUILT_IN: &[&str] = &[
    "controller",
    "count",
    "group",
    "meter",
    "mirror",
    "output",
    "in_port",
    "flood",
    "all",
    "normal",
    "drop",
    "dec_ttl",
    "ct",
    "ct_clear",
    "exit",
    "goto",
    "call",
    "clone",
    "learn",
    "push",
    "pop",
    "encap",
    "decap",
    "dec_mpls_ttl",
    "truncate",
];

/// What will be built in.
const LATER: &[&str] = &["nat"];

/// Whether an action cannot be declared under this name.
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.contains(&name) || LATER.contains(&name)
}

/// Names of built-in actions, for suggestions.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().copied()
}

/// Actions without arguments.
pub fn simple(name: &str) -> Option<Action> {
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

impl Resolver<'_> {
    pub fn unknown_action(&mut self, name: &Name) {
        if LATER.contains(&name.node.as_str()) {
            let message =
                format!("`{}` is not available yet: address translation waits for connection tracking", name.node);
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
            "push_vlan" => Some("write `push vlan(vid = …)`"),
            "pop_vlan" | "strip_vlan" => Some("write `pop vlan`"),
            "push_mpls" => Some("write `push mpls(label = …)`"),
            "pop_mpls" => Some("write `pop mpls(TYPE)`, with the Ethernet type of what is behind the label"),
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
}
