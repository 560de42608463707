//! When the entries of a table with time-outs were put in and last used.
//!
//! Packets write that an entry was used, at most once a millisecond; so an entry that is in use shares its line between
//! workers seldom.

use pipec_abi::table::OpenEntry;

use super::GRAIN_NS;
use crate::sync::{AtomicU64, Ordering};

/// Not yet: the clock has not started.
pub const NOT_YET: u64 = u64::MAX;

/// The life of each place for an entry.
pub struct Lives {
    lives: Box<[Life]>,
    /// No entry ends before.
    next_end: AtomicU64,
}

#[derive(Default)]
struct Life {
    put_in: AtomicU64,
    used: AtomicU64,
    /// 0: never ends for being idle.
    idle_ns: AtomicU64,
    /// 0: never ends for being old.
    hard_ns: AtomicU64,
}

impl Lives {
    /// Lives for so many entries; those of the program begin with the clock.
    pub fn new(size: u32, entries: &[OpenEntry]) -> Lives {
        let lives = Lives { lives: (0..size).map(|_| Life::default()).collect(), next_end: AtomicU64::new(0) };
        for entry in entries {
            lives.begin(entry, NOT_YET);
        }
        lives
    }

    /// The clock starts: entries that were there before are put in now.
    pub fn start(&self, now_ns: u64) {
        for life in &self.lives {
            for time in [&life.put_in, &life.used] {
                let _ = time.compare_exchange(NOT_YET, now_ns, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }

    /// An entry is put in.
    pub fn begin(&self, entry: &OpenEntry, now_ns: u64) {
        let Some(life) = self.lives.get(entry.slot as usize) else { return };
        life.put_in.store(now_ns, Ordering::Relaxed);
        life.used.store(now_ns, Ordering::Relaxed);
        life.idle_ns.store(entry.idle_ns, Ordering::Relaxed);
        life.hard_ns.store(entry.hard_ns, Ordering::Relaxed);
        self.next_end.store(0, Ordering::Relaxed);
    }

    /// Whether an entry's time is not over.
    pub fn is_alive(&self, slot: u32, now_ns: u64) -> bool {
        self.lives.get(slot as usize).is_some_and(|life| life.end() > now_ns)
    }

    /// An entry is used, if its time is not over; whether it is not.
    #[inline]
    pub fn touch(&self, slot: u32, now_ns: u64) -> bool {
        let Some(life) = self.lives.get(slot as usize) else { return false };
        if life.end() <= now_ns {
            return false;
        }
        let used = life.used.load(Ordering::Relaxed);
        if now_ns.saturating_sub(used) >= GRAIN_NS {
            life.used.store(now_ns, Ordering::Relaxed);
        }
        true
    }

    /// Whether an entry may have ended since this was asked last.
    pub fn may_end(&self, now_ns: u64) -> bool {
        if now_ns < self.next_end.load(Ordering::Relaxed) {
            return false;
        }
        let ends = self.lives.iter().map(Life::end).filter(|end| *end > now_ns);
        self.next_end.store(ends.min().unwrap_or(NOT_YET), Ordering::Relaxed);
        true
    }

    /// What ended could not be taken out: [`Lives::may_end`] says so again.
    pub fn ask_again(&self) {
        self.next_end.store(0, Ordering::Relaxed);
    }
}

impl Life {
    /// When it is over.
    fn end(&self) -> u64 {
        let ends =
            |from: &AtomicU64, after: &AtomicU64| match (from.load(Ordering::Relaxed), after.load(Ordering::Relaxed)) {
                (NOT_YET, _) | (_, 0) => NOT_YET,
                (from, after) => from.saturating_add(after),
            };
        ends(&self.used, &self.idle_ns).min(ends(&self.put_in, &self.hard_ns))
    }
}
