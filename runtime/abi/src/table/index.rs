//! A direct array over one field of up to 16 bits: the value of the key is the place.
//!
//! What no entry wants, and what several want, is decided when the array is built, so any entries over such a field fit: values,
//! masks, ranges. The array holds 16 bits a place, which lead to a list of values, so that all VLANs are 8 KiB and all ports
//! 128 KiB. A look-up is two loads, whatever the key: there is nothing to collide.

use std::collections::HashMap;

use super::{Entry, MISS};

/// Entries that want one field of up to 16 bits.
#[derive(Debug)]
pub struct Index {
    word: usize,
    shift: u32,
    /// For each value of the field a place among the values.
    places: Box<[u16]>,
    values: Box<[u64]>,
}

impl Index {
    /// Builds the array over the bits that some entry wants. Bits beyond sixteen are not looked at.
    pub fn new(width: usize, entries: &[Entry], _seed: u64) -> Index {
        let (word, used) = used(width, entries);
        let shift = used.trailing_zeros() % 64;
        let size = 1usize << (64 - (used >> shift).leading_zeros()).min(16);
        let mut first = vec![MISS; size];
        let mut key = vec![0; width.max(1)];
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        sorted.sort_by_key(|entry| core::cmp::Reverse(entry.value & 0xffff_ffff));
        for entry in sorted {
            let (low, high) = span(entry, word, shift, size);
            for (at, first) in first.iter_mut().enumerate().take(high + 1).skip(low) {
                key[word] = (at as u64) << shift;
                if entry.holds(&key) {
                    *first = entry.value;
                }
            }
        }
        let mut table = Index { word, shift, places: Box::default(), values: Box::default() };
        let (mut values, mut known) = (Vec::new(), HashMap::new());
        let place = |value| {
            *known.entry(value).or_insert_with(|| {
                values.push(value);
                (values.len() - 1) as u16
            })
        };
        table.places = first.into_iter().map(place).collect();
        table.values = values.into();
        table
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.places) + size_of_val(&*self.values)
    }

    /// The value of the first entry that matches, or [`MISS`].
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        let bits = key.get(self.word).map_or(0, |word| word >> self.shift);
        let place = self.places.get(bits as usize & (self.places.len() - 1)).copied().unwrap_or(0);
        self.values.get(usize::from(place)).copied().unwrap_or(MISS)
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        super::one_by_one(keys, found, |key| self.lookup(key));
    }

    /// Lines that a look-up reads at the most.
    pub fn worst_probes(&self) -> u32 {
        2
    }

    /// Lines that the look-up of a key reads.
    pub fn probes(&self, _key: &[u64]) -> u32 {
        2
    }
}

/// The word that entries look at, and the bits of it.
pub(super) fn used(width: usize, entries: &[Entry]) -> (usize, u64) {
    let mut used = vec![0; width.max(1)];
    for entry in entries {
        used.iter_mut().zip(&entry.mask).for_each(|(used, mask)| *used |= mask);
        for range in &entry.ranges {
            if let Some(used) = used.get_mut(usize::from(range.word)) {
                *used |= range.ones() << range.shift;
            }
        }
    }
    let word = used.iter().position(|word| *word != 0).unwrap_or(0);
    (word, used[word])
}

/// The least and the greatest place that an entry may want.
fn span(entry: &Entry, word: usize, shift: u32, size: usize) -> (usize, usize) {
    let mask = entry.mask.get(word).map_or(0, |mask| mask >> shift) as usize & (size - 1);
    let key = entry.key.get(word).map_or(0, |key| key >> shift) as usize & (size - 1);
    match entry.ranges[..] {
        [] => (key & mask, key | !mask & (size - 1)),
        [range] if mask == 0 && u32::from(range.shift) == shift && range.ones() as usize == size - 1 => {
            (range.low as usize, (range.high as usize).min(size - 1))
        }
        _ => (0, size - 1),
    }
}
