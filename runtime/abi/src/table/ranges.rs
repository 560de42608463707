//! One field in intervals: entries with ranges, prefixes and masks over a single field, in any order of precedence.
//!
//! Where entries begin and end, they cut the values of the field into intervals, and in each of them one entry comes first
//! (Lakshman, Stiliadis: High-Speed Policy-based Packet Forwarding, 1998, for one dimension). So precedence is settled when the
//! table is built, and a look-up only finds the interval: of a field of up to 16 bits in a direct array ([`Index`]), of a wider
//! one in a trie, whose nodes keep runs of equal neighbours and so hold intervals as well as prefixes. A binary search over the
//! ends would mispredict at every step. Bound: two loads, or the depth of the trie; no value of the field is worse.

use super::index::used;
use super::shape::ones;
use super::trie::{Prefix, Trie};
use super::values::Values;
use super::{BURST, Entry, Index, prefixes};

/// Entries that want one field.
#[derive(Debug)]
pub enum Ranges {
    /// Of up to 16 bits.
    Index(Index),
    /// Of up to 64 bits.
    Intervals(Intervals),
}

/// Intervals of a wide field.
#[derive(Debug)]
pub struct Intervals {
    word: usize,
    /// Bits of the word above the field.
    above: u32,
    trie: Trie,
    values: Values,
    depth: u32,
}

impl Ranges {
    /// Projects the entries onto the field.
    pub fn new(width: usize, entries: &[Entry], seed: u64) -> Ranges {
        let (word, used) = used(width, entries);
        if used >> (used.trailing_zeros() % 64) < 1 << 16 {
            return Ranges::Index(Index::new(width, entries, seed));
        }
        let (above, bits) = (used.leading_zeros(), 64 - used.leading_zeros());
        let values = Values::of(entries);
        let mut all = Vec::new();
        for entry in entries {
            for (low, high) in intervals(entry, word, bits) {
                all.push((low, high, values.kept(entry.value)));
            }
        }
        let mut found = Vec::new();
        for (low, high, value) in disjoint(&all) {
            for (bits_of, mask) in prefixes(low.into(), high.into(), bits as u8) {
                let len = mask.count_ones() as u8;
                found.push(Prefix { bits: bits_of << (128 - bits), len, value });
            }
        }
        let trie = Trie::new(&mut found, 0);
        Ranges::Intervals(Intervals { word, above, depth: trie.depth(), trie, values })
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        match self {
            Ranges::Index(table) => table.memory(),
            Ranges::Intervals(table) => table.trie.memory() + table.values.memory(),
        }
    }

    /// The value of the first entry that matches, or [`MISS`](super::MISS).
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        match self {
            Ranges::Index(table) => table.lookup(key),
            Ranges::Intervals(table) => table.values.value(table.trie.lookup(table.of(key), 0)),
        }
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        let table = match self {
            Ranges::Index(table) => return table.lookup_burst(keys, found),
            Ranges::Intervals(table) => table,
        };
        let width = keys.len() / found.len().max(1);
        let mut upper = [0; BURST];
        upper.iter_mut().zip(keys.chunks_exact(width.max(1))).for_each(|(upper, key)| *upper = table.of(key));
        let leaves = table.trie.lookup_burst(found.len(), &upper, |_| 0);
        table.values.of_burst(&leaves, found);
    }

    /// Lines that a look-up reads at the most.
    pub fn worst_probes(&self) -> u32 {
        match self {
            Ranges::Index(table) => table.worst_probes(),
            Ranges::Intervals(table) => 1 + 2 * table.depth,
        }
    }

    /// Lines that the look-up of a key reads, or more.
    pub fn probes(&self, key: &[u64]) -> u32 {
        match self {
            Ranges::Index(table) => table.probes(key),
            Ranges::Intervals(table) => 1 + 2 * table.trie.nodes(table.of(key), 0),
        }
    }
}

impl Intervals {
    /// What a key has there, at the upper end.
    #[inline(always)]
    fn of(&self, key: &[u64]) -> u64 {
        key.get(self.word).map_or(0, |word| word << self.above)
    }
}

/// The lower `bits` of a word that an entry wants, as intervals.
fn intervals(entry: &Entry, word: usize, bits: u32) -> Vec<(u64, u64)> {
    let full = ones(bits as u8) as u64;
    if let [range] = entry.ranges[..]
        && entry.mask[word] == 0
        && u32::from(range.shift) + u32::from(range.width) == bits
    {
        return vec![(
            range.low << range.shift,
            (range.high.min(range.ones()) << range.shift) | !(u64::MAX << range.shift),
        )];
    }
    let mut all = Vec::new();
    for entry in entry.spelled() {
        let (mask, key) = (entry.mask[word] & full, entry.key[word] & full);
        // Below its lowest bit a mask leaves an interval; bits that are free above are each taken both ways.
        let below = if mask == 0 { full } else { !(u64::MAX << mask.trailing_zeros()) };
        let mut free = full & !mask & !below;
        let mut lows = vec![key & mask];
        while free != 0 {
            let bit = free & free.wrapping_neg();
            lows.extend(lows.clone().iter().map(|low| low | bit));
            free &= free - 1;
        }
        all.extend(lows.iter().map(|low| (*low, low | below)));
    }
    all
}

/// Where intervals overlap, what comes first: disjoint intervals with the least value that covers each.
fn disjoint(all: &[(u64, u64, u32)]) -> Vec<(u64, u64, u32)> {
    let all = all.iter().filter(|(low, high, _)| low <= high);
    let begins = all.clone().map(|(low, _, value)| (*low, false, *value));
    let ends = all.filter_map(|(_, high, value)| Some((high.checked_add(1)?, true, *value)));
    let mut changes: Vec<(u64, bool, u32)> = begins.chain(ends).collect();
    changes.sort_unstable();
    let mut open: std::collections::BTreeMap<u32, u32> = Default::default();
    let mut found: Vec<(u64, u64, u32)> = Vec::new();
    for (k, &(at, ends, value)) in changes.iter().enumerate() {
        let times = open.entry(value).or_insert(0);
        *times = if ends { times.saturating_sub(1) } else { *times + 1 };
        if *times == 0 {
            open.remove(&value);
        }
        let next = changes.get(k + 1).map(|next| next.0);
        if next == Some(at) {
            continue;
        }
        let high = next.map_or(u64::MAX, |next| next - 1);
        if let Some((&first, _)) = open.first_key_value() {
            match found.last_mut() {
                Some(last) if last.2 == first && last.1.checked_add(1) == Some(at) => last.1 = high,
                _ => found.push((at, high, first)),
            }
        }
    }
    found
}
