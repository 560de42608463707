//! What happened to connections, counted by each worker for itself and summed by the reader.

use crate::sync::{AtomicU64, Count, Ordering};

use super::parse::Invalid;

/// One worker's counts.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections made.
    pub created: Count,
    /// Connections ended by time.
    pub expired: Count,
    /// Connections that a new one took the place of.
    pub replaced: Count,
    /// Commits without room for a connection.
    pub full: Count,
    /// Invalid packets by reason.
    pub invalid: [Count; Invalid::ALL.len()],
}

/// What threads other than workers ended.
#[derive(Debug, Default)]
pub struct Outside {
    expired: AtomicU64,
    flushed: AtomicU64,
}

impl Outside {
    /// Counts connections ended by time.
    pub fn add_expired(&self, n: u64) {
        self.expired.fetch_add(n, Ordering::Relaxed);
    }

    /// Counts connections flushed.
    pub fn add_flushed(&self, n: u64) {
        self.flushed.fetch_add(n, Ordering::Relaxed);
    }
}

/// Counts of a connection tracker. `created = live + expired + replaced + flushed`, exactly so at quiescence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections there are.
    pub live: u64,
    /// Connections made since the start.
    pub created: u64,
    /// Connections ended by time.
    pub expired: u64,
    /// Connections that a new one took the place of: a port used again, or a forced commit.
    pub replaced: u64,
    /// Connections flushed.
    pub flushed: u64,
    /// Commits without room for a connection. Their packets went on as new.
    pub full: u64,
    /// Invalid packets by reason, in the order of [`Invalid::ALL`].
    pub invalid: [u64; Invalid::ALL.len()],
}

impl Stats {
    /// The sum over workers, and what others ended.
    pub fn sum<'a>(workers: impl Iterator<Item = &'a Counters>, outside: &Outside) -> Stats {
        let mut sum = Stats {
            expired: outside.expired.load(Ordering::Relaxed),
            flushed: outside.flushed.load(Ordering::Relaxed),
            ..Stats::default()
        };
        for worker in workers {
            sum.created += worker.created.get();
            sum.expired += worker.expired.get();
            sum.replaced += worker.replaced.get();
            sum.full += worker.full.get();
            for (total, count) in sum.invalid.iter_mut().zip(&worker.invalid) {
                *total += count.get();
            }
        }
        sum.live = sum.created.saturating_sub(sum.expired + sum.replaced + sum.flushed);
        sum
    }

    /// Invalid packets with this reason.
    pub fn invalid(&self, reason: Invalid) -> u64 {
        self.invalid[reason as usize]
    }
}
