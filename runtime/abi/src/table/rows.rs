//! Entries one behind the other, to be compared whole: what structures that only narrow the choice end with.

use super::{Entry, MISS, Range};

/// Entries by number.
#[derive(Debug, Default)]
pub(super) struct Rows {
    width: usize,
    /// For each entry its mask, its key, where its ranges start and how many they are, and its value.
    words: Vec<u64>,
    ranges: Vec<Range>,
}

impl Rows {
    /// None yet, over keys of so many words.
    pub fn new(width: usize) -> Rows {
        Rows { width, words: Vec::new(), ranges: Vec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.words.len() / self.stride()
    }

    fn stride(&self) -> usize {
        2 * self.width + 2
    }

    pub fn memory(&self) -> usize {
        8 * self.words.len() + size_of_val(&*self.ranges)
    }

    pub fn push(&mut self, entry: &Entry) {
        self.words.extend(entry.mask.iter().chain(&entry.key));
        self.words.push((self.ranges.len() as u64) << 32 | entry.ranges.len() as u64);
        self.words.push(entry.value);
        self.ranges.extend(&entry.ranges);
    }

    /// The value of an entry, if it matches.
    #[inline(always)]
    pub fn get(&self, entry: usize, key: &[u64]) -> u64 {
        let stride = self.stride();
        let Some(row) = self.words.get(entry * stride..(entry + 1) * stride) else { return MISS };
        let (mask, row) = row.split_at(self.width);
        let (want, rest) = row.split_at(self.width);
        let differ = key.iter().zip(mask).zip(want).fold(0, |differ, ((k, m), w)| differ | (k & m ^ w));
        let [ranges, value] = rest[..] else { return MISS };
        if differ != 0 {
            return MISS;
        }
        if ranges as u32 != 0 {
            let start = (ranges >> 32) as usize;
            let ranges = self.ranges.get(start..start + ranges as u32 as usize).unwrap_or(&[]);
            if !ranges.iter().all(|range| range.holds(key)) {
                return MISS;
            }
        }
        value
    }
}
