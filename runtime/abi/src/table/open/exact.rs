//! Exact keys that come and go: a hash table in place, and the larger one that it becomes.
//!
//! Growth has no pause: from some fullness on every change is made in the larger table too, and copies a few buckets into it; when
//! all are there, it takes the place of the other. Readers know only one of them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::hash::{Full, Hash, Lane};

/// Entries for which the smallest table has room.
const LEAST: usize = 64;
/// Buckets that a change copies.
const STEP: usize = 8;

/// A hash table of keys of so many words, with rows as values, and what only who writes it needs.
#[derive(Debug)]
pub struct Exact {
    width: usize,
    seed: u64,
    pub table: Arc<Hash>,
    pub len: usize,
    /// Entries it is for.
    room: usize,
    /// The next table, entries it is for, and how many buckets have been copied into it.
    next: Option<(Hash, usize, usize)>,
    /// Lanes that a reader may look at, with the time from which on none does.
    waiting: VecDeque<(u64, Lane)>,
}

impl Exact {
    /// A table for so many entries.
    pub fn new(width: usize, entries: usize, seed: u64) -> Exact {
        let room = entries.max(LEAST);
        let table = Arc::new(Hash::exact(width, room, seed));
        Exact { width, seed, table, len: 0, room, next: None, waiting: VecDeque::new() }
    }

    /// The row of a key.
    pub fn row(&self, key: &[u64]) -> Option<u32> {
        u32::try_from(self.table.lookup(key)).ok()
    }

    /// The same in memory of its own, with room for so many more.
    pub fn copy(&self, more: usize) -> Exact {
        let mut room = self.room.max((self.len + more).next_multiple_of(LEAST));
        loop {
            let seed = fresh(self.seed, room);
            let table = Hash::exact(self.width, room, seed);
            let mut all = self.table.entries(0..self.table.buckets());
            if all.all(|(key, row)| table.insert(&key, row).is_ok()) {
                let (table, waiting) = (Arc::new(table), VecDeque::new());
                return Exact { width: self.width, seed, table, len: self.len, room, next: None, waiting };
            }
            room += room / 4;
        }
    }

    /// Puts an entry in, or gives the one that is there another row. Whether there is another table now, to be published.
    pub fn put(&mut self, key: &[u64], row: u32) -> bool {
        match self.table.insert(key, row) {
            Ok(old) => self.len += usize::from(old.is_none()),
            Err(Full) => {
                *self = self.copy(self.room);
                self.put(key, row);
                return true;
            }
        }
        if let Some((next, ..)) = &self.next
            && next.insert(key, row).is_err()
        {
            self.next = None;
        }
        self.grow()
    }

    /// Takes an entry out; whether there is another table now.
    pub fn take(&mut self, key: &[u64], now: u64) -> bool {
        if let Some((lane, _)) = self.table.remove(key) {
            self.waiting.push_back((now, lane));
            self.len -= 1;
        }
        if let Some((next, ..)) = &self.next
            && let Some((lane, _)) = next.remove(key)
        {
            next.release(lane); // nobody reads it yet
        }
        self.grow()
    }

    /// Lanes that were left before `now` may be taken again.
    pub fn release(&mut self, now: u64) {
        while let Some(&(left, lane)) = self.waiting.front()
            && left <= now
        {
            self.table.release(lane);
            self.waiting.pop_front();
        }
    }

    /// A step of growth; whether it is done.
    fn grow(&mut self) -> bool {
        if self.next.is_none() && self.len + self.waiting.len() > self.room / 4 * 3 {
            let room = self.room * if self.len > self.room / 2 { 2 } else { 1 };
            self.next = Some((Hash::exact(self.width, room, fresh(self.seed, room)), room, 0));
        }
        let Some((next, _, copied)) = &mut self.next else { return false };
        for (key, row) in self.table.entries(*copied..(*copied + STEP).min(self.table.buckets())) {
            if next.insert(&key, row).is_err() {
                self.next = None;
                return false;
            }
        }
        *copied += STEP;
        if *copied < self.table.buckets() {
            return false;
        }
        if let Some((next, room, _)) = self.next.take() {
            self.room = room;
            self.table = Arc::new(next);
            self.waiting.clear();
        }
        true
    }
}

/// Another key of the hash.
fn fresh(seed: u64, room: usize) -> u64 {
    seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(room as u64 | 1)
}
