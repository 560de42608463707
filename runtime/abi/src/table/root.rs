//! What leads to all tables of a program, and what counts the packets of their entries.
//!
//! A root is never changed: who changes tables makes another one and puts it in its place, so that a packet sees all of a
//! change or nothing of it.

use std::sync::Arc;

use super::Table;
use core::sync::atomic::{AtomicU64, Ordering};

/// All tables of a program.
#[derive(Debug, Default)]
pub struct Root {
    /// Grows with every change.
    pub version: u64,
    /// The tables, by their numbers.
    pub tables: Box<[Arc<Table>]>,
}

/// Packets and bytes of an entry, counted by one worker and read by anybody.
#[derive(Debug, Default)]
#[repr(C)]
pub struct EntryCounter {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl EntryCounter {
    /// So many, all 0.
    pub fn new(n: usize) -> Arc<[EntryCounter]> {
        (0..n).map(|_| EntryCounter::default()).collect()
    }

    /// Counts a packet of `len` bytes. Only the worker whose counter it is does.
    #[inline(always)]
    pub fn count(&self, len: u32) {
        let more = |word: &AtomicU64, by: u64| word.store(word.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        more(&self.packets, 1);
        more(&self.bytes, u64::from(len));
    }

    /// What was counted.
    pub fn get(&self) -> crate::Counter {
        crate::Counter { packets: self.packets.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}
