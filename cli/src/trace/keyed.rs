//! What a trace says of keyed tables: what is looked up, which entry is found and where it stands, what packets put in.

use pipec_compiler::hir::{Keyed, TableId};
use pipec_compiler::words;

use crate::program::Loaded;
use crate::rules;

fn table(loaded: &Loaded, table: TableId) -> Option<&Keyed> {
    loaded.program.table(table).keyed.as_ref()
}

/// Names and values of the parts of a key.
pub fn parts(loaded: &Loaded, table: TableId, key: &[u128]) -> Vec<(String, String)> {
    let parts = self::table(loaded, table).map_or(&[][..], |keyed| &keyed.key);
    let parts = parts.iter().zip(key);
    parts.map(|(part, value)| (part.name.clone(), words::key_value(&loaded.program, part, *value))).collect()
}

/// What an entry of the program wants, and where it stands; nothing of one that packets made.
pub fn found(loaded: &Loaded, table: TableId, slot: u32) -> Option<(String, String)> {
    let keyed = self::table(loaded, table)?;
    let entry = keyed.entries.get(slot as usize)?;
    Some((words::entry_key(&loaded.program, keyed, entry), rules::at(loaded, entry.span)))
}

/// An action with its arguments.
pub fn action(loaded: &Loaded, table: TableId, rule: usize, args: &[u128]) -> String {
    self::table(loaded, table).map_or(String::new(), |keyed| words::taken(&loaded.program, keyed, rule, args))
}

/// `key ipv4.dst = 10.1.2.3`
pub fn key(loaded: &Loaded, table: TableId, key: &[u128]) -> String {
    let parts = parts(loaded, table, key).into_iter().map(|(name, value)| format!("{name} = {value}"));
    format!("key {}", parts.collect::<Vec<_>>().join(", "))
}

/// `entry 10.1.2.0/24 (router.csv:3) => route(out = c)`
pub fn entry(loaded: &Loaded, table: TableId, slot: Option<u32>, rule: usize, args: &[u128]) -> String {
    let action = action(loaded, table, rule, args);
    match slot.map(|slot| found(loaded, table, slot)) {
        Some(Some((key, place))) => format!("entry {place}: {key} => {action}"),
        Some(None) => format!("an entry that a packet made => {action}"),
        None => format!("no entry; default {action}"),
    }
}

/// `learn addresses(network = 0) => to(out = p1)`
pub fn learn(loaded: &Loaded, table: TableId, key: &[u128], rule: usize, args: &[u128]) -> String {
    let parts = parts(loaded, table, key).into_iter().map(|(name, value)| format!("{name} = {value}"));
    let (name, action) = (rules::table(loaded, table), action(loaded, table, rule, args));
    format!("learn {name}({}) => {action}", parts.collect::<Vec<_>>().join(", "))
}
