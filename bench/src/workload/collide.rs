//! Addresses that a table does not have: any, or those that an attacker would choose.
//!
//! The attacker knows the rules, the structure that is chosen for them and its code, builds the same table under a key of its
//! own, and takes the addresses whose look-up reads most there, as those do that share a bucket with many. The table that runs
//! has another key, drawn when it starts, so these should cost what any others do.
//!
//! In: how many addresses the table has. Out: the rules of `l2-N`, and frames that all miss. Never: an address of the table.

use std::collections::HashSet;

use pipec_abi::table::Table;
use pipec_compiler::front;
use pipec_compiler::plan::plan;
use pipec_compiler::source::Sources;

use super::{Content, SEED, frame_count, l2};
use crate::frames::{self, Frame, put};
use crate::random::Random;

/// The key under which the attacker builds the table.
const ATTACKERS_KEY: u64 = 1;
/// Addresses that the attacker tries for each that is sent.
const TRIES: usize = 16;

/// What the frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strangers {
    /// Addresses as they come.
    Any,
    /// Those whose look-up reads most under another key.
    Colliding,
}

/// A table of so many addresses, and frames to others.
pub fn make(entries: u32, strangers: Strangers) -> Content {
    let rules = l2::rules(&l2::addresses(entries, &mut Random::new(SEED)));
    let frames = addresses(entries, strangers, &rules).into_iter().map(|mac| {
        let mut frame: Frame = frames::plain();
        put(&mut frame, 0, 6, mac);
        frame
    });
    Content { rules, frames: vec![frames.collect()] }
}

/// As many addresses as there are frames, none of which the table has.
fn addresses(entries: u32, strangers: Strangers, rules: &str) -> Vec<u64> {
    let known: HashSet<u64> = l2::addresses(entries, &mut Random::new(SEED)).into_iter().collect();
    let mut random = Random::new(SEED + 1);
    let tries = if strangers == Strangers::Any { 1 } else { TRIES };
    let count = frame_count(entries);
    let mut macs: Vec<u64> = Vec::with_capacity(count * tries);
    while macs.len() < count * tries {
        let low = random.below(1 << 40);
        if !known.contains(&low) {
            macs.push(0x02 << 40 | low);
        }
    }
    if let Some(attackers) = table(rules, ATTACKERS_KEY).filter(|_| tries > 1) {
        macs.sort_by_cached_key(|mac| std::cmp::Reverse(attackers.probes(&[*mac])));
    }
    macs.truncate(count);
    random.shuffle(&mut macs);
    macs
}

/// The table that is built of rules, under a key; its keys are addresses. None where the rules become code.
fn table(rules: &str, key: u64) -> Option<Table> {
    let mut sources = Sources::default();
    let file = sources.add("l2.flows", rules);
    let plan = plan(&front(&mut sources, file, &[1, 2]).0?);
    plan.tables.first().map(|bytes| Table::decode(bytes, key))
}

#[cfg(test)]
mod tests {
    use pipec_abi::table::MISS;

    use super::*;

    /// Cache lines that the addresses of a workload read under a key, on average.
    fn mean(macs: &[u64], rules: &str, known: u64, key: u64) -> f64 {
        let table = table(rules, key).unwrap();
        assert_ne!(table.lookup(&[known]), MISS, "keys are spelled as the program does");
        assert!(macs.iter().all(|mac| table.lookup(&[*mac]) == MISS), "all miss");
        macs.iter().map(|mac| f64::from(table.probes(&[*mac]))).sum::<f64>() / macs.len() as f64
    }

    #[test]
    fn collisions_are_of_the_attackers_table_alone() {
        let known = l2::addresses(5000, &mut Random::new(SEED));
        let (rules, first) = (l2::rules(&known), 0x02 << 40 | known[0]);
        let [any, colliding] =
            [Strangers::Any, Strangers::Colliding].map(|strangers| addresses(5000, strangers, &rules));
        assert_eq!(any.len(), colliding.len());
        let attackers = [&any, &colliding].map(|macs| mean(macs, &rules, first, ATTACKERS_KEY));
        assert!(attackers[1] > 1.3 * attackers[0], "{attackers:?}");
        for key in [2, 0xdead_beef] {
            let running = [&any, &colliding].map(|macs| mean(macs, &rules, first, key));
            assert!(running[1] < 1.03 * running[0], "{running:?}");
        }
    }
}
