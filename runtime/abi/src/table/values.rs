//! Values in 32 bits: what structures keep where 64 would cost them lines.
//!
//! A value's low half is the place of its entry, the high half what the program makes of it. Where the high half is the same for
//! all, as it is for tables whose entries come from outside, the low half is kept and the other put before it. Else a place in
//! a list is kept, in order of precedence.

use super::{Entry, MISS};

/// What 32 bits stand for nothing.
pub(super) const NONE: u32 = u32::MAX >> 1;

/// Values of 31 bits and what they stand for.
#[derive(Debug, Default)]
pub(super) struct Values {
    high: u64,
    /// Empty where the value itself is what is kept.
    list: Box<[u64]>,
}

impl Values {
    /// The values of entries.
    pub fn of(entries: &[Entry]) -> Values {
        let high = entries.first().map_or(0, |entry| entry.value >> 32);
        if entries.iter().all(|entry| entry.value >> 32 == high && (entry.value as u32) < NONE) {
            return Values { high: high << 32, list: Box::default() };
        }
        let mut list: Vec<u64> = entries.iter().map(|entry| entry.value).collect();
        list.sort_unstable_by_key(|value| value & 0xffff_ffff);
        list.dedup();
        Values { high: 0, list: list.into() }
    }

    /// What is kept of a value that is one of those.
    pub fn kept(&self, value: u64) -> u32 {
        if self.list.is_empty() {
            return value as u32;
        }
        let at = self.list.partition_point(|other| other & 0xffff_ffff < value & 0xffff_ffff);
        self.list[at..].iter().position(|other| *other == value).map_or(NONE, |more| (at + more) as u32)
    }

    /// The value again, or [`MISS`].
    #[inline(always)]
    pub fn value(&self, kept: u32) -> u64 {
        if self.list.is_empty() {
            if kept == NONE { MISS } else { self.high | u64::from(kept) }
        } else {
            self.list.get(kept as usize).copied().unwrap_or(MISS)
        }
    }

    /// The values of a burst again.
    #[inline(always)]
    pub fn of_burst(&self, kept: &[u32], found: &mut [u64]) {
        match (&self.list[..], self.high) {
            ([], high) => found.iter_mut().zip(kept).for_each(|(found, kept)| {
                *found = if *kept == NONE { MISS } else { high | u64::from(*kept) };
            }),
            (list, _) => found.iter_mut().zip(kept).for_each(|(found, kept)| {
                *found = list.get(*kept as usize).copied().unwrap_or(MISS);
            }),
        }
    }

    /// Bytes.
    pub fn memory(&self) -> usize {
        8 * self.list.len()
    }
}
