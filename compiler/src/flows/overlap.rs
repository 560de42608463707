//! Rules of one table and priority that a packet can match both of. Rules in, pairs out.
//!
//! Rules are grouped by their masks. Two groups are compared as a hash join does it, on the bits that both of them look at; rules
//! of one group differ in those and never overlap. So a hundred thousand rules with a few masks take no longer than reading
//! them. There is a budget: where many rules have many masks, what it does not reach is not found.
//!
//! Bits of `ct_state` that exclude each other count as such: `+new` and `+est` do not overlap.

use std::collections::HashMap;

use pipec_abi::ct::state;

use super::matches::{Entry, Key, Match};
use crate::field::Field;

/// Rules that may be hashed or looked up, in all.
pub const BUDGET: usize = 500_000;

/// Which bits of which fields a match looks at, sorted by key.
type Masks = Vec<(Key, u128)>;

/// Calls `found` with pairs of places in `matches`, of rules that overlap: for each later rule the first earlier one found.
pub fn find(matches: &[&Match], budget: &mut usize, mut found: impl FnMut(usize, usize)) {
    let mut groups: Vec<(Masks, Vec<usize>)> = Vec::new();
    let mut index: HashMap<Masks, usize> = HashMap::new();
    let matches: Vec<Vec<Entry>> = matches.iter().map(|m| m.entries().iter().map(implied).collect()).collect();
    for (i, entries) in matches.iter().enumerate() {
        let masks: Vec<_> = entries.iter().map(|entry| (entry.key, entry.mask)).collect();
        let group = *index.entry(masks).or_insert_with_key(|masks| {
            groups.push((masks.clone(), vec![]));
            groups.len() - 1
        });
        groups[group].1.push(i);
    }
    for (a, (masks_a, rules_a)) in groups.iter().enumerate() {
        for (masks_b, rules_b) in &groups[..a] {
            let cost = rules_a.len() + rules_b.len();
            if *budget < cost {
                return;
            }
            *budget -= cost;
            let common = common(masks_a, masks_b);
            let mut by_value: HashMap<Vec<u128>, usize> = HashMap::new();
            for &rule in rules_b {
                by_value.entry(values(&matches[rule], &common)).or_insert(rule);
            }
            for &rule in rules_a {
                if let Some(&other) = by_value.get(&values(&matches[rule], &common)) {
                    found(rule.min(other), rule.max(other));
                }
            }
        }
    }
}

/// An entry with the bits that follow from it: what is new is not established, what is invalid is neither, and all that says
/// anything has been tracked.
fn implied(entry: &Entry) -> Entry {
    let mut entry = *entry;
    if entry.key != Key::Field(Field::CtState) {
        return entry;
    }
    let (is, not) = (entry.value as u32, entry.mask as u32 & !entry.value as u32);
    let exclusive = state::NEW | state::EST | state::INV;
    let mut imply = |bits: u32, value: u32| {
        let new = u128::from(bits) & !entry.mask;
        entry.mask |= new;
        entry.value |= u128::from(value) & new;
    };
    if is & exclusive != 0 {
        imply(exclusive, 0);
    }
    if is != 0 {
        imply(state::TRK, state::TRK);
    } else if not & state::TRK != 0 {
        imply(0xff, 0);
    }
    entry
}

/// The bits that both look at. Both are sorted by key.
fn common(a: &[(Key, u128)], b: &[(Key, u128)]) -> Masks {
    let both = a.iter().filter_map(|(key, mask)| {
        let at = b.binary_search_by_key(key, |(key, _)| *key).ok()?;
        Some((*key, mask & b[at].1))
    });
    both.filter(|(_, mask)| *mask != 0).collect()
}

/// The values of some bits of a match.
fn values(entries: &[Entry], bits: &[(Key, u128)]) -> Vec<u128> {
    let value = |(key, mask): &(Key, u128)| {
        let at = entries.binary_search_by_key(key, |entry| entry.key);
        at.map_or(0, |at| entries[at].value & mask)
    };
    bits.iter().map(value).collect()
}
