//! Rules of one table with the same priority, of which a packet can match two that do different things. In `.pipe` an
//! error: nothing says which one is meant.
//!
//! All pairs of a priority are compared where that is within [`MAX_PAIRS`]; a priority with more rules is split first by
//! places that all of its rules fix alike, since rules with different values there exclude each other.

use std::collections::BTreeMap;

use super::cube::{Cube, Key};
use super::{Input, Language};
use crate::diag::Diagnostic;

/// Pairs of rules that are compared in a program, at the most.
const MAX_PAIRS: usize = 1_000_000;
/// Groups up to this size are not split.
const SMALL: usize = 16;

/// Reports overlapping rules of equal priority.
pub fn check(input: &Input, diagnostics: &mut Vec<Diagnostic>) {
    if input.language == Language::Flows {
        return;
    }
    let mut pairs = 0;
    for (index, table) in input.program.tables.iter().enumerate() {
        let mut start = 0;
        while start < table.rules.len() {
            let priority = table.rules[start].priority;
            let same = table.rules[start..].iter().take_while(|rule| rule.priority == priority).count();
            let group: Vec<usize> = (start..start + same).filter(|&rule| !input.is_else(index, rule)).collect();
            check_group(input, index, &group, &mut pairs, diagnostics);
            start += same;
        }
    }
}

/// Rules that may overlap only within the groups that `group` falls into.
fn check_group(input: &Input, table: usize, group: &[usize], pairs: &mut usize, diagnostics: &mut Vec<Diagnostic>) {
    if group.len() > SMALL
        && let Some(groups) = split(&input.cubes[table], group)
    {
        for group in groups {
            check_group(input, table, &group, pairs, diagnostics);
        }
        return;
    }
    for (i, &later) in group.iter().enumerate() {
        for &earlier in &group[..i] {
            *pairs += 1;
            if *pairs > MAX_PAIRS {
                return;
            }
            if overlap(input, table, earlier, later) {
                let message = "a packet can match both of these rules, and they have the same priority";
                diagnostics.push(
                    Diagnostic::error("ambiguous-priority", message, input.cond_span(table, later), "this rule")
                        .label(input.cond_span(table, earlier), "and this one, which does something else")
                        .help("give the rule that should win a higher priority"),
                );
                break;
            }
        }
    }
}

fn overlap(input: &Input, table: usize, a: usize, b: usize) -> bool {
    let (Some(x), Some(y)) = (&input.cubes[table][a], &input.cubes[table][b]) else { return false };
    input.rule(table, a).actions != input.rule(table, b).actions
        && x.iter().any(|x| y.iter().any(|y| x.and(y).is_some()))
}

/// Splits rules by a place whose same bits all of them fix; none if there is no such place, or all have the same value.
fn split(cubes: &[Option<Vec<Cube>>], group: &[usize]) -> Option<Vec<Vec<usize>>> {
    let one = |rule: usize| cubes[rule].as_ref().filter(|c| c.len() == 1).map(|c| &c[0]);
    let first = one(group[0])?;
    let fixes = |cube: &Cube, key: Key, mask: u128| {
        cube.get(key).filter(|v| v.ranges.is_empty() && v.mask == mask).map(|v| v.value)
    };
    for (key, values) in &first.parts {
        let mut groups: BTreeMap<u128, Vec<usize>> = BTreeMap::new();
        let all = group.iter().all(|&rule| {
            let value = one(rule).and_then(|cube| fixes(cube, *key, values.mask));
            value.map(|value| groups.entry(value).or_default().push(rule)).is_some()
        });
        if all && groups.len() > 1 {
            return Some(groups.into_values().collect());
        }
    }
    None
}
