//! What tables are built of: entries, and entries as bytes.
//!
//! An entry compares bits under a mask, and may want fields to lie between two values. Structures that know only masks take
//! [`Entry::spelled`]: the ranges as prefixes.

use super::shape::ones;
use super::{Kind, MAX_WORDS};

/// An entry: what of a key must be what, and the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Which bits are compared, a word each.
    pub mask: Vec<u64>,
    /// What they must be; 0 outside the mask.
    pub key: Vec<u64>,
    /// What else must hold, of bits outside the mask; at most one a field.
    pub ranges: Vec<Range>,
    /// What a look-up gives.
    pub value: u64,
}

/// Bits of a key that lie between two values, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    /// The word of the key.
    pub word: u8,
    /// The lowest bit.
    pub shift: u8,
    /// Bits, 1 to 64.
    pub width: u8,
    /// The least.
    pub low: u64,
    /// The greatest.
    pub high: u64,
}

impl Range {
    /// Its bits, at 0.
    pub fn ones(&self) -> u64 {
        u64::MAX >> (64 - u32::from(self.width.clamp(1, 64)))
    }

    /// What a key has there.
    #[inline]
    pub fn of(&self, key: &[u64]) -> u64 {
        key.get(usize::from(self.word)).map_or(0, |word| word >> (self.shift & 63)) & self.ones()
    }

    /// Whether a key lies in it.
    #[inline]
    pub fn holds(&self, key: &[u64]) -> bool {
        (self.low..=self.high).contains(&self.of(key))
    }
}

impl Entry {
    /// Whether it matches a key.
    pub fn holds(&self, key: &[u64]) -> bool {
        let masked = key.iter().zip(&self.mask).zip(&self.key).all(|((k, m), want)| k & m == *want);
        masked && self.ranges.iter().all(|range| range.holds(key))
    }

    /// The same as entries without ranges: one for each way to take the prefixes that its ranges are made of.
    pub fn spelled(&self) -> Vec<Entry> {
        let mut all = vec![Entry { ranges: vec![], ..self.clone() }];
        for range in &self.ranges {
            let ways = prefixes(range.low.into(), range.high.into(), range.width);
            let word = usize::from(range.word);
            let with = |entry: &Entry, (value, mask): (u128, u128)| {
                let mut entry = entry.clone();
                entry.mask[word] |= (mask as u64) << range.shift;
                entry.key[word] |= (value as u64) << range.shift;
                entry
            };
            all = all.iter().flat_map(|entry| ways.iter().map(|way| with(entry, *way)).collect::<Vec<_>>()).collect();
        }
        all
    }

    /// How many [`Entry::spelled`] would be.
    pub fn spellings(&self) -> usize {
        let ways = |range: &Range| prefixes(range.low.into(), range.high.into(), range.width).len();
        self.ranges.iter().map(ways).fold(1, usize::saturating_mul)
    }
}

/// A range as prefixes: value and mask of each, at most twice the width.
pub fn prefixes(low: u128, high: u128, width: u8) -> Vec<(u128, u128)> {
    let full = ones(width);
    if low == 0 && high >= full {
        return vec![(0, 0)];
    }
    let (mut prefixes, mut at) = (Vec::new(), low);
    while at <= high {
        // The largest block that starts here and does not reach beyond.
        let mut size = at.trailing_zeros().min(u32::from(width) - 1);
        while size > 0 && at + ((1u128 << size) - 1) > high {
            size -= 1;
        }
        prefixes.push((at, full & !((1u128 << size) - 1)));
        match at.checked_add(1u128 << size) {
            Some(next) if next <= full => at = next,
            _ => break,
        }
    }
    prefixes
}

/// A table as bytes: kind, words a key, then value, number of ranges, mask, key and ranges of each entry.
pub fn encode(kind: Kind, width: usize, entries: &[Entry]) -> Vec<u8> {
    let mut words = vec![kind as u64, width as u64];
    for entry in entries {
        words.extend([entry.value, entry.ranges.len() as u64]);
        words.extend(&entry.mask);
        words.extend(&entry.key);
        for range in &entry.ranges {
            let place = u64::from(range.word) | u64::from(range.shift) << 8 | u64::from(range.width) << 16;
            words.extend([place, range.low, range.high]);
        }
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The number of the kind, the words of a key, and the entries, from what [`encode`] wrote; of other bytes, what can be made
/// of them.
pub fn decode(bytes: &[u8]) -> (u64, usize, Vec<Entry>) {
    decode_words(&words(bytes))
}

/// Bytes as words.
pub(super) fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// [`decode`] of words.
pub(super) fn decode_words(words: &[u64]) -> (u64, usize, Vec<Entry>) {
    let mut words = words.iter().copied();
    let kind = words.next().unwrap_or(0);
    let width = (words.next().unwrap_or(1) as usize).clamp(1, MAX_WORDS);
    let mut entries = Vec::new();
    while let (Some(value), Some(ranges)) = (words.next(), words.next()) {
        let mask: Vec<u64> = words.by_ref().take(width).collect();
        let key: Vec<u64> = words.by_ref().take(width).collect();
        let mut all = Vec::new();
        for _ in 0..ranges {
            let (Some(place), Some(low), Some(high)) = (words.next(), words.next(), words.next()) else { break };
            let [word, shift, bits, ..] = place.to_le_bytes();
            let shift = shift.min(63);
            all.push(Range { word: word.min(width as u8 - 1), shift, width: bits.clamp(1, 64 - shift), low, high });
        }
        if key.len() == width {
            entries.push(Entry { mask, key, ranges: all, value });
        }
    }
    (kind, width, entries)
}
