//! How two keyed tables differ: in what they are, and in the entries that they begin with.
//!
//! In: two tables of one name. Out: lines for people. Bodies of actions are rules, and compared as such.

use std::collections::BTreeMap;
use std::fmt::Write;

use pipec_compiler::hir::{Keyed, Program, Table};
use pipec_compiler::words;

use super::structure::MAX_SHOWN;
use crate::program::Loaded;
use crate::rules;

/// Differences, as lines; nothing if there are none.
pub fn keyed((a, table): (&Loaded, &Table), (b, other): (&Loaded, &Table)) -> String {
    let (of_a, of_b) = match (&table.keyed, &other.keyed) {
        (None, None) => return String::new(),
        (Some(of_a), Some(of_b)) => (of_a, of_b),
        (of_a, _) => {
            let (with, without) = if of_a.is_some() { ("first", "second") } else { ("second", "first") };
            return format!("table {}: has a key in the {with} program, rules in the {without}\n", table.name);
        }
    };
    let mut lines = vec![];
    let (is_a, is_b) = (head(&a.program, of_a), head(&b.program, of_b));
    if is_a != is_b {
        lines.push(format!("changed  {is_a}"));
        lines.push(format!("     to  {is_b}"));
    }
    lines.extend(entries((a, of_a), (b, of_b)));
    if lines.is_empty() {
        return String::new();
    }
    let mut out = format!("table {}, its key and entries:\n", table.name);
    // Writing to a string does not fail.
    for line in lines.iter().take(MAX_SHOWN) {
        let _ = writeln!(out, "  {line}");
    }
    if lines.len() > MAX_SHOWN {
        let _ = writeln!(out, "  and {} more", lines.len() - MAX_SHOWN);
    }
    out
}

/// What a table is, beside its entries.
fn head(program: &Program, keyed: &Keyed) -> String {
    let key = keyed.key.iter().map(|part| format!("{}: {}", part.name, part.kind.name()));
    let mut parts = vec![format!("key {}", key.collect::<Vec<_>>().join(", ")), format!("size {}", keyed.size)];
    if let Some((rule, args)) = &keyed.default {
        parts.push(format!("default {}", words::taken(program, keyed, usize::from(*rule), args)));
    }
    let times = [("idle", keyed.idle_ns), ("hard", keyed.hard_ns)];
    parts.extend(times.iter().filter(|(_, ns)| *ns > 0).map(|(name, ns)| format!("{name} {}", words::time(*ns))));
    parts.extend(keyed.learned.then(|| "learned".to_string()));
    parts.join("; ")
}

/// Entries that only one has, and those that do something else.
fn entries((a, of_a): (&Loaded, &Keyed), (b, of_b): (&Loaded, &Keyed)) -> Vec<String> {
    let (all_a, all_b) = (by_key(a, of_a), by_key(b, of_b));
    let mut lines = vec![];
    for (key, (place, does)) in &all_a {
        match all_b.get(key) {
            None => lines.push(format!("removed  {place}: {key} => {does}")),
            Some((_, same)) if same == does => {}
            Some((now, other)) => {
                lines.push(format!("changed  {place}: {key} => {does}"));
                lines.push(format!("     to  {now}: {key} => {other}"));
            }
        }
    }
    let added = all_b.iter().filter(|(key, _)| !all_a.contains_key(*key));
    lines.extend(added.map(|(key, (place, does))| format!("added    {place}: {key} => {does}")));
    lines
}

/// Entries by what they want: where they stand, and what they do.
fn by_key(loaded: &Loaded, keyed: &Keyed) -> BTreeMap<String, (String, String)> {
    let program = &loaded.program;
    let entries = keyed.entries.iter().map(|entry| {
        let mut does = words::taken(program, keyed, usize::from(entry.action), &entry.args);
        for (name, ns) in [("idle", entry.idle_ns), ("hard", entry.hard_ns)] {
            does += &ns.map_or(String::new(), |ns| format!(" {name} {}", words::time(ns)));
        }
        (words::entry_key(program, keyed, entry), (rules::at(loaded, entry.span), does))
    });
    entries.collect()
}
