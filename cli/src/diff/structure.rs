//! How the text of two programs differs: tables and rules, whatever names of files and spaces they are written with.
//!
//! In: two programs. Out: lines for people. Rules are told apart by what they mean, in a normal form; so a rule that is written
//! in another way is the same.

use std::collections::BTreeMap;
use std::fmt::Write;

use pipec_compiler::hir::{Cond, Program, Rule, Table};
use pipec_compiler::words;

use super::keyed;
use crate::program::Loaded;
use crate::rules;

/// Pairs of rules that are compared for the order of rules, at the most.
const MAX_PAIRS: usize = 20_000_000;
/// Rules that are shown of a table.
pub const MAX_SHOWN: usize = 40;

/// Differences, as lines; nothing if there are none.
pub fn structure(a: &Loaded, b: &Loaded) -> String {
    let mut out = String::new();
    let names = |loaded: &Loaded| loaded.program.tables.iter().map(|table| table.name.clone()).collect::<Vec<_>>();
    let (of_a, of_b) = (names(a), names(b));
    let count = |table: &Table| match table.rules.len() {
        1 => "1 rule".to_string(),
        n => format!("{n} rules"),
    };
    // Writing to a string does not fail.
    for table in a.program.tables.iter().filter(|table| !of_b.contains(&table.name)) {
        let _ = writeln!(out, "- table {}: {}", table.name, count(table));
    }
    for table in b.program.tables.iter().filter(|table| !of_a.contains(&table.name)) {
        let _ = writeln!(out, "+ table {}: {}", table.name, count(table));
    }
    for table in &a.program.tables {
        if let Some(other) = b.program.tables.iter().find(|other| other.name == table.name) {
            out += &of_table((a, table), (b, other));
            out += &keyed::keyed((a, table), (b, other));
        }
    }
    out
}

/// A rule in its normal form: condition and actions.
type Key = (String, String);

fn key(program: &Program, rule: &Rule) -> Key {
    (normal(program, &rule.cond), words::actions(program, &rule.actions))
}

/// A condition with the parts of `all` and `any` flat, sorted, and each once.
fn normal(program: &Program, cond: &Cond) -> String {
    match cond {
        Cond::All(parts) => {
            joined(program, parts, " && ", |part| if let Cond::All(inner) = part { Some(inner) } else { None })
        }
        Cond::Any(parts) => {
            joined(program, parts, " || ", |part| if let Cond::Any(inner) = part { Some(inner) } else { None })
        }
        Cond::Not(inner) => format!("!({})", normal(program, inner)),
        other => words::cond(program, other),
    }
}

fn joined(program: &Program, parts: &[Cond], by: &str, inner: fn(&Cond) -> Option<&Vec<Cond>>) -> String {
    let mut texts = vec![];
    let mut open: Vec<&Cond> = parts.iter().collect();
    while let Some(part) = open.pop() {
        match inner(part) {
            Some(parts) => open.extend(parts),
            None => texts.push(normal(program, part)),
        }
    }
    texts.sort();
    texts.dedup();
    match texts.len() {
        1 => texts.remove(0),
        _ => format!("({})", texts.join(by)),
    }
}

fn of_table((a, table): (&Loaded, &Table), (b, other): (&Loaded, &Table)) -> String {
    let keys = |loaded: &Loaded, table: &Table| -> Vec<Key> {
        table.rules.iter().map(|rule| key(&loaded.program, rule)).collect()
    };
    let (of_a, of_b) = (keys(a, table), keys(b, other));
    if of_a == of_b {
        return String::new();
    }
    let kept = in_order(&of_a, &of_b);
    let (mut left_a, mut left_b): (Vec<usize>, Vec<usize>) = (
        (0..of_a.len()).filter(|i| !kept.iter().any(|(at, _)| at == i)).collect(),
        (0..of_b.len()).filter(|i| !kept.iter().any(|(_, at)| at == i)).collect(),
    );
    let place = |loaded, rule: &Rule| format!("{}: {}", rules::place(loaded, rule), rule.text.trim_end_matches(';'));
    let mut lines = vec![];
    let moved = pairs(&mut left_a, &mut left_b, |i, j| of_a[i] == of_b[j]);
    for (i, j) in &moved {
        lines.push(format!("moved    {} (now {})", place(a, &table.rules[*i]), rules::place(b, &other.rules[*j])));
    }
    let changed = pairs(&mut left_a, &mut left_b, |i, j| of_a[i].0 == of_b[j].0);
    for (i, j) in &changed {
        lines.push(format!("changed  {}", place(a, &table.rules[*i])));
        lines.push(format!("     to  {}", place(b, &other.rules[*j])));
    }
    lines.extend(left_a.iter().map(|i| format!("removed  {}", place(a, &table.rules[*i]))));
    lines.extend(left_b.iter().map(|j| format!("added    {}", place(b, &other.rules[*j]))));
    let counts: Vec<String> =
        [(moved.len(), "moved"), (changed.len(), "changed"), (left_a.len(), "removed"), (left_b.len(), "added")]
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}"))
            .collect();
    let mut out = format!("table {}: {}\n", table.name, counts.join(", "));
    for line in lines.iter().take(MAX_SHOWN) {
        let _ = writeln!(out, "  {line}"); // writing to a string does not fail
    }
    if lines.len() > MAX_SHOWN {
        let _ = writeln!(out, "  and {} more", lines.len() - MAX_SHOWN);
    }
    out
}

/// Takes pairs that belong together off both lists.
fn pairs(a: &mut Vec<usize>, b: &mut Vec<usize>, belong: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize)> {
    let mut found = vec![];
    a.retain(|i| match b.iter().position(|j| belong(*i, *j)) {
        Some(at) => {
            found.push((*i, b.remove(at)));
            false
        }
        None => true,
    });
    found
}

/// Rules that both have in the same order: as many as there can be, or, of long tables, those around what differs.
fn in_order(a: &[Key], b: &[Key]) -> Vec<(usize, usize)> {
    let head = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a_rest, b_rest) = (&a[head..], &b[head..]);
    let tail = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a_mid, b_mid) = (&a_rest[..a_rest.len() - tail], &b_rest[..b_rest.len() - tail]);
    let mut kept: Vec<(usize, usize)> = (0..head).map(|i| (i, i)).collect();
    kept.extend((0..tail).map(|i| (a.len() - 1 - i, b.len() - 1 - i)));
    if a_mid.len().saturating_mul(b_mid.len()) > MAX_PAIRS {
        return kept;
    }
    // The longest common subsequence, from numbers that stand for rules.
    let mut numbers: BTreeMap<&Key, u32> = BTreeMap::new();
    let mut number = |key| {
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert(next)
    };
    let a_mid: Vec<u32> = a_mid.iter().map(&mut number).collect();
    let b_mid: Vec<u32> = b_mid.iter().map(&mut number).collect();
    let width = b_mid.len() + 1;
    let mut length = vec![0u32; (a_mid.len() + 1) * width];
    for i in (0..a_mid.len()).rev() {
        for j in (0..b_mid.len()).rev() {
            length[i * width + j] = match a_mid[i] == b_mid[j] {
                true => length[(i + 1) * width + j + 1] + 1,
                false => length[(i + 1) * width + j].max(length[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < a_mid.len() && j < b_mid.len() {
        if a_mid[i] == b_mid[j] {
            kept.push((head + i, head + j));
            (i, j) = (i + 1, j + 1);
        } else if length[(i + 1) * width + j] >= length[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: &str) -> Vec<Key> {
        names.chars().map(|c| (c.to_string(), String::new())).collect()
    }

    #[test]
    fn what_keeps_its_order_is_as_much_as_can_be() {
        let mut kept = in_order(&keys("abcde"), &keys("acbde"));
        kept.sort_unstable();
        assert_eq!(kept.len(), 4);
        assert_eq!(in_order(&keys("abc"), &keys("xyz")), []);
        assert_eq!(in_order(&keys("ab"), &keys("ab")), [(0, 0), (1, 1)]);
    }
}
