//! Which tuples a set of entries gets, and which entry goes where.
//!
//! An entry may stand in any tuple whose mask looks at no bit that the entry does not look at. Fewer tuples are fewer probes,
//! but a mask that looks at little lets many entries have the same key. So entries are taken in order; each goes into the tuple
//! with the longest mask that still has room under its key, and only if there is none, it gets one of its own, with a mask made
//! shorter than its own (Daly, Bruschi, Linguaglossa, Pontarelli, Rossi, Tollet, Torng, Yourtchenko: TupleMerge, 2019).

use std::collections::HashMap;

use super::super::Entry;

/// Entries of a tuple that have the same key under its mask, at the most.
pub(super) const CROWD: usize = 8;
/// Tuples with shortened masks at the most; beyond, the search for one would cost too much.
const MAX_MERGED: usize = 64;
/// Masks with fewer bits than this are not made: too much would have the same key.
const MIN_BITS: u32 = 16;

/// A tuple to be: its mask, and its entries, the first first.
pub(super) struct Group<'a> {
    pub mask: Vec<u64>,
    pub entries: Vec<&'a Entry>,
    /// How many there are of each key.
    crowds: HashMap<Vec<u64>, usize>,
}

/// Tuples for entries that are sorted by their places.
pub(super) fn merge<'a>(entries: &[&'a Entry]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group> = Vec::new();
    // For each mask the groups that its entries may be in, the longest first, among those that have been looked at.
    let mut fitting: HashMap<&[u64], (usize, Vec<usize>)> = HashMap::new();
    let fields = fields(entries);
    for entry in entries {
        let (seen, own) = fitting.entry(&entry.mask).or_default();
        for (at, group) in groups.iter().enumerate().skip(*seen) {
            if group.mask.iter().zip(&entry.mask).all(|(group, own)| group & !own == 0) {
                own.push(at);
            }
        }
        if *seen < groups.len() {
            own.sort_by_key(|&at| std::cmp::Reverse(bits(&groups[at].mask)));
            *seen = groups.len();
        }
        if own.iter().any(|&at| groups[at].take(entry)) {
            continue;
        }
        // The shortest mask that is new; where all are there and crowded, one more with the entry's own.
        let is_new = |mask: &Vec<u64>| groups.len() < MAX_MERGED && !own.iter().any(|&at| groups[at].mask == *mask);
        let mask = shorter(&entry.mask, &fields).find(is_new).unwrap_or_else(|| entry.mask.clone());
        let mut group = Group { mask, entries: Vec::new(), crowds: HashMap::new() };
        group.take(entry);
        groups.push(group);
    }
    groups
}

fn bits(mask: &[u64]) -> u32 {
    mask.iter().map(|word| word.count_ones()).sum()
}

impl<'a> Group<'a> {
    /// Takes an entry if there is room.
    fn take(&mut self, entry: &'a Entry) -> bool {
        let key: Vec<u64> = entry.key.iter().zip(&self.mask).map(|(key, mask)| key & mask).collect();
        let crowd = self.crowds.entry(key).or_default();
        if *crowd == CROWD {
            return false;
        }
        *crowd += 1;
        self.entries.push(entry);
        true
    }
}

/// For each word, the bits that end some mask's run of ones: the upper ends of fields.
fn fields(entries: &[&Entry]) -> Vec<u64> {
    let width = entries.first().map_or(0, |entry| entry.mask.len());
    let tops = |word: usize| entries.iter().fold(0, |tops, entry| tops | entry.mask[word] & !(entry.mask[word] >> 1));
    (0..width).map(tops).collect()
}

/// Masks made of one by making the runs in its fields shorter, the shortest first; the last is the mask itself.
fn shorter(mask: &[u64], fields: &[u64]) -> impl Iterator<Item = Vec<u64>> {
    let with = |keep: fn(u32) -> u32| -> Vec<u64> {
        let word = |(mask, tops): (&u64, &u64)| {
            let (mut short, mut bit) = (0, 64);
            while bit > 0 {
                // A run from here down to where it or its field ends.
                let rest = mask << (64 - bit);
                if rest >> 63 == 0 {
                    bit -= rest.leading_zeros().min(bit);
                    continue;
                }
                let field = (1..bit).find(|down| tops >> (bit - 1 - down) & 1 != 0).unwrap_or(bit);
                let run = rest.leading_ones().min(field);
                let kept = keep(run).min(run);
                if kept > 0 {
                    short |= (u64::MAX >> (64 - kept)) << (bit - kept);
                }
                bit -= run;
            }
            short
        };
        mask.iter().zip(fields).map(word).collect()
    };
    let coarse = |run: u32| match run {
        24.. => 16,
        16.. => 12,
        _ => 0,
    };
    let fine = |run: u32| if run >= 16 { run / 4 * 4 } else { run };
    [with(coarse), with(fine), mask.to_vec()].into_iter().filter(|mask| bits(mask) >= MIN_BITS)
}
