//! Where a key is cut into pieces, and what entries want of a piece.

use std::collections::HashSet;

use super::super::{Entry, Range};
use super::MAX_PIECES;

/// Bits of a piece under masks that are no prefixes.
const PIECE: u32 = 16;
/// Pieces of a word at the most that are taken as wide as masks allow.
const WIDE: usize = 6;

/// A piece before its classes are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    pub word: usize,
    pub shift: u32,
    pub width: u32,
}

/// What an entry wants of a piece: bits under a mask, and a range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Want {
    pub mask: u64,
    pub key: u64,
    pub low: u64,
    pub high: u64,
}

impl Cut {
    pub(super) fn ones(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    fn is(&self, range: &Range) -> bool {
        (self.word, self.shift, self.width) == (range.word.into(), range.shift.into(), range.width.into())
    }

    pub(super) fn want(&self, entry: &Entry) -> Want {
        let of = |words: &[u64]| words[self.word] >> self.shift & self.ones();
        let mut want = Want { mask: of(&entry.mask), key: of(&entry.key), low: 0, high: self.ones() };
        for range in entry.ranges.iter().filter(|range| self.is(range)) {
            want.low = want.low.max(range.low);
            want.high = want.high.min(range.high);
        }
        want
    }
}

impl Want {
    /// Whether at most half the bits of a piece are free.
    pub(super) fn is_narrow(&self, cut: &Cut) -> bool {
        let free = cut.ones() & !self.mask;
        (self.high - self.low).min(free) < 1 << cut.width.div_ceil(2)
    }

    /// The values that are wanted, if they are an interval.
    pub(super) fn interval(&self, cut: &Cut) -> Option<(u64, u64)> {
        let free = cut.ones() & !self.mask;
        let (low, high) = (self.key.max(self.low), (self.key | free).min(self.high));
        (free & free.wrapping_add(1) == 0 && low <= high).then_some((low, high))
    }
}

/// The two pieces of which entries want the most different things.
pub(super) fn richest(cuts: &[Cut], entries: &[&Entry]) -> [Option<Cut>; 2] {
    let wants = |cut: &Cut| entries.iter().map(|entry| cut.want(entry)).collect::<HashSet<_>>().len();
    let mut counted: Vec<(usize, Cut)> = cuts.iter().map(|cut| (wants(cut), *cut)).collect();
    counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    [0, 1].map(|at| counted.get(at).map(|(_, cut)| *cut))
}

/// The pieces of a key; nothing if they are too many. A field with a range is one, if no other lies across it. The rest is cut
/// above every bit that ends some mask's run of ones, which leaves prefixes; where that would be too many pieces, every 16 bits.
pub(super) fn cuts(width: usize, entries: &[&Entry]) -> Option<Vec<Cut>> {
    let mut ranges: Vec<(usize, u32, u32)> = entries
        .iter()
        .flat_map(|entry| &entry.ranges)
        .map(|range| (range.word.into(), range.shift.into(), range.width.into()))
        .collect();
    ranges.sort_unstable();
    ranges.dedup();
    let mut cuts: Vec<Cut> = Vec::new();
    for word in 0..width {
        let tops = entries.iter().fold(0, |tops, entry| tops | entry.mask[word] & !(entry.mask[word] >> 1));
        let of_word = || ranges.iter().filter(|range| range.0 == word).map(|&(_, shift, width)| (shift, width));
        // Ranges that are spelled are prefixes of their field.
        let tops = of_word().fold(tops, |tops, (shift, width)| tops | 1 << (shift + width - 1));
        let ends = |bit: u32| tops >> bit & 1 != 0;
        let wide = of_word_cuts(word, of_word(), ends);
        let has_others = |cut: &Cut| cut.width > PIECE && (cut.shift..cut.shift + cut.width - 1).any(ends);
        let own = if wide.len() <= WIDE && !wide.iter().any(has_others) {
            wide
        } else {
            of_word_cuts(word, of_word().filter(|range| range.1 <= PIECE), |bit| bit % PIECE == PIECE - 1)
        };
        cuts.extend(own);
    }
    (cuts.len() <= MAX_PIECES).then_some(cuts)
}

fn of_word_cuts(word: usize, ranges: impl Iterator<Item = (u32, u32)>, ends: impl Fn(u32) -> bool) -> Vec<Cut> {
    let (mut cuts, mut at) = (Vec::new(), 0);
    for (shift, width) in ranges.chain([(64, 0)]) {
        if shift < at {
            continue; // lies across the one before, and is spelled
        }
        while at < shift {
            let next = (at..shift).find(|bit| ends(*bit)).map_or(shift, |bit| bit + 1);
            cuts.push(Cut { word, shift: at, width: next - at });
            at = next;
        }
        if width > 0 {
            cuts.push(Cut { word, shift, width });
            at += width;
        }
    }
    cuts
}

/// The entry, with ranges that are no piece as masks.
pub(super) fn spell_others(entry: &Entry, cuts: &[Cut]) -> Vec<Entry> {
    let (own, others) = entry.ranges.iter().partition(|range| cuts.iter().any(|cut| cut.is(range)));
    let mut spelled = Entry { ranges: others, ..entry.clone() }.spelled();
    spelled.iter_mut().for_each(|entry| entry.ranges.clone_from(&own));
    spelled
}
