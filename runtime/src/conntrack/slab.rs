//! Which entries are free, and how many more connections there may be.
//!
//! Entries are taken in the order of their numbers, so a table touches only the memory it needs. A worker keeps the ones it
//! freed at hand and passes surplus on through a shared pool; a worker that finds the pool busy does without. The limit on
//! connections is counted in credits, of which workers hold a few each: with one worker it is exact, with several it may
//! bite a few dozen connections early.

use std::sync::{Mutex, TryLockError};

use crate::sync::{AtomicU32, AtomicUsize, Ordering};

/// Free entries a worker keeps for each table, at most.
pub const KEEP: usize = 512;
/// Entries that move between a worker and the pool at a time.
const BATCH: usize = 64;

/// The free entries of one table that no worker holds.
pub struct Slab {
    capacity: u32,
    /// Entries below this number have been taken at least once.
    used: AtomicU32,
    pool: Mutex<Vec<u32>>,
}

impl Slab {
    /// Entries 0 up to `capacity`.
    pub fn new(capacity: usize) -> Slab {
        let capacity = u32::try_from(capacity).expect("fewer than 2^32 connections");
        Slab { capacity, used: AtomicU32::new(0), pool: Mutex::new(Vec::with_capacity(capacity as usize)) }
    }

    /// Entries below this number may be in use.
    #[inline(always)]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Acquire).min(self.capacity) as usize
    }

    /// Takes a free entry.
    pub fn take(&self, kept: &mut Vec<u32>) -> Option<u32> {
        if let Some(entry) = kept.pop() {
            return Some(entry);
        }
        self.with_pool(|pool| {
            let rest = pool.len().saturating_sub(BATCH);
            kept.extend(pool.drain(rest..));
        });
        if let Some(entry) = kept.pop() {
            return Some(entry);
        }
        let first = self.used.load(Ordering::Relaxed);
        if first >= self.capacity {
            return None;
        }
        // Workers that overshoot leave `used` a little above the capacity; `used()` knows.
        let entry = self.used.fetch_add(1, Ordering::AcqRel);
        (entry < self.capacity).then_some(entry)
    }

    /// Gives an entry back.
    pub fn give(&self, kept: &mut Vec<u32>, entry: u32) {
        kept.push(entry);
        if kept.len() >= KEEP / 2 {
            let moved = self.with_pool(|pool| pool.extend(kept.drain(..BATCH)));
            assert!(moved || kept.len() < KEEP * 64, "the pool of free entries is never held for long");
        }
    }

    /// Gives all entries back.
    pub fn give_all(&self, kept: &mut Vec<u32>) {
        match self.pool.lock() {
            Ok(mut pool) => pool.append(kept),
            Err(poisoned) => poisoned.into_inner().append(kept),
        }
    }

    fn with_pool(&self, act: impl FnOnce(&mut Vec<u32>)) -> bool {
        match self.pool.try_lock() {
            Ok(mut pool) => act(&mut pool),
            Err(TryLockError::Poisoned(poisoned)) => act(&mut poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => return false,
        }
        true
    }
}

/// How many more connections there may be.
pub struct Credits {
    left: AtomicUsize,
    batch: usize,
}

impl Credits {
    /// `max` connections among `workers`.
    pub fn new(max: usize, workers: usize) -> Credits {
        Credits { left: AtomicUsize::new(max), batch: (max / (workers.max(1) * 64)).clamp(1, 64) }
    }

    /// Takes one.
    #[inline]
    pub fn take(&self, kept: &mut usize) -> bool {
        if *kept == 0 {
            let taken = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                (left > 0).then(|| left - left.min(self.batch))
            });
            *kept = taken.map_or(0, |left| left.min(self.batch));
        }
        let has = *kept > 0;
        *kept -= usize::from(has);
        has
    }

    /// Gives one back.
    #[inline]
    pub fn give(&self, kept: &mut usize) {
        *kept += 1;
        if *kept >= 2 * self.batch {
            *kept -= self.batch;
            self.left.fetch_add(self.batch, Ordering::Relaxed);
        }
    }

    /// Gives all back.
    pub fn give_all(&self, kept: &mut usize) {
        self.left.fetch_add(core::mem::take(kept), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_before_new_ones_are_taken() {
        let slab = Slab::new(3);
        let mut kept = Vec::new();
        let taken: Vec<_> = (0..4).map(|_| slab.take(&mut kept)).collect();
        assert_eq!(taken, [Some(0), Some(1), Some(2), None]);
        slab.give(&mut kept, 1);
        assert_eq!((slab.take(&mut kept), slab.take(&mut kept), slab.used()), (Some(1), None, 3));
        slab.give(&mut kept, 2);
        slab.give_all(&mut kept);
        assert_eq!(slab.take(&mut Vec::new()), Some(2));
    }

    #[test]
    fn surplus_reaches_other_workers() {
        let slab = Slab::new(10_000);
        let (mut one, mut two) = (Vec::new(), Vec::new());
        let taken: Vec<_> = (0..5_000).filter_map(|_| slab.take(&mut one)).collect();
        taken.into_iter().for_each(|entry| slab.give(&mut one, entry));
        assert!(one.len() < KEEP);
        for _ in 0..4_000 {
            assert!(slab.take(&mut two).is_some());
        }
        assert_eq!(slab.used(), 5_000);
    }

    #[test]
    fn credits_are_exact_for_one_worker() {
        for max in [0, 1, 10, 1_000] {
            let credits = Credits::new(max, 1);
            let mut kept = 0;
            assert_eq!((0..2_000).filter(|_| credits.take(&mut kept)).count(), max);
            (0..max).for_each(|_| credits.give(&mut kept));
            assert_eq!((0..2_000).filter(|_| credits.take(&mut kept)).count(), max);
        }
    }
}
