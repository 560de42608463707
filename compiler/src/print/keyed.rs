//! Statements of keyed tables as text.

use super::{expr, line, print_args, string, time};
use crate::ast::{Entry, EntryAction, KeyedStmt};

/// A statement, on lines of its own.
pub fn statement(stmt: &KeyedStmt, out: &mut String) {
    let text = match stmt {
        KeyedStmt::Key(parts) => {
            let parts = parts.iter().map(|part| format!("{}: {}", part.name.node, part.kind.node));
            format!("key {}", parts.collect::<Vec<_>>().join(", "))
        }
        KeyedStmt::Actions(names) => {
            let names: Vec<&str> = names.iter().map(|name| name.node.as_str()).collect();
            format!("actions {}", names.join(", "))
        }
        KeyedStmt::Default(default) => format!("default {}", action(default)),
        KeyedStmt::Size(size) => format!("size {}", expr(size)),
        KeyedStmt::Idle(ns) => format!("idle {}", time(*ns)),
        KeyedStmt::Hard(ns) => format!("hard {}", time(*ns)),
        KeyedStmt::Learned => "learned".into(),
        KeyedStmt::From(name) => format!("entries from {}", string(&name.node)),
        KeyedStmt::Entries(entries) => {
            line(out, 2, "entries {");
            for each in entries {
                line(out, 3, &(entry(&each.node) + ";"));
            }
            return line(out, 2, "}");
        }
    };
    line(out, 2, &(text + ";"));
}

/// An entry on one line, without the semicolon.
pub fn entry(entry: &Entry) -> String {
    let priority = entry.priority.as_ref().map_or(String::new(), |priority| format!("priority {}: ", expr(priority)));
    let key = entry.key.iter().map(|part| part.node.as_ref().map_or("_".to_string(), expr));
    let key = key.collect::<Vec<_>>().join(", ");
    let times = [("idle", entry.idle), ("hard", entry.hard)];
    let times = times.into_iter().filter_map(|(name, ns)| Some(format!(" {name} {}", time(ns?))));
    format!("{priority}{key} => {}{}", action(&entry.action), times.collect::<String>())
}

/// An action with its arguments.
pub fn action(action: &EntryAction) -> String {
    match &action.args {
        Some(args) => format!("{}({})", action.name.node, print_args(args)),
        None => action.name.node.clone(),
    }
}
