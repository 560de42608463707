//! Ending connections: by time, by command, by a worker.
//!
//! Only workers take entries out of their buckets and use them again, so that no worker ever waits for a thread that may be
//! put to sleep. Other threads *doom* entries: packets do not find them any more, and the next sweep of a worker does the
//! rest. Workers sweep a few entries a millisecond, so that the whole table is passed every [`PERIOD_NS`]; nothing depends
//! on the sweep being early, because a look-up that meets an expired entry ends it.

use crate::sync::{AtomicUsize, Ordering};

use super::Conntrack;
use super::entry::ctl::{DOOMED, LIVE};
use super::local::Local;
use super::table::Table;

/// Time in which workers pass the whole table.
pub const PERIOD_NS: u64 = 8_000_000_000;
/// Time between two sweeps of a worker.
pub const PAUSE_NS: u64 = 1_000_000;
/// Entries in one sweep of a worker, at most.
const MOST: u64 = 512;

/// Where a sweep over both families is.
#[derive(Debug, Default)]
pub struct Cursor(AtomicUsize);

impl Cursor {
    /// The next `n` places of `total`, as up to two ranges.
    fn advance(&self, n: usize, total: usize) -> [core::ops::Range<usize>; 2] {
        let n = n.min(total);
        if n == 0 {
            return [0..0, 0..0];
        }
        let start = self.0.fetch_add(n, Ordering::Relaxed) % total;
        let end = start + n;
        [start..end.min(total), 0..end.saturating_sub(total)]
    }
}

/// Sweeps what falls due to a worker that last swept `since_ns` ago.
#[cold]
pub fn sweep(ct: &Conntrack, local: &mut Local, now_ns: u64, since_ns: u64) {
    let total = ct.v4.slab.used() + ct.v6.slab.used();
    let due = total as u64 * since_ns.min(PERIOD_NS) / PERIOD_NS;
    for_some(ct, &ct.cursor.0, (due + 1).min(MOST) as usize, |place| match place {
        Place::V4(number) => collect(ct, &ct.v4, local, number, now_ns),
        Place::V6(number) => collect(ct, &ct.v6, local, number, now_ns),
    });
}

/// Dooms what has expired among the next `budget` entries.
pub fn doom_expired(ct: &Conntrack, now_ns: u64, budget: usize) -> usize {
    let mut ended = 0;
    for_some(ct, &ct.outside_cursor, budget, |place| {
        ended += usize::from(match place {
            Place::V4(number) => doom(&ct.v4, number, |expires| expires <= now_ns),
            Place::V6(number) => doom(&ct.v6, number, |expires| expires <= now_ns),
        });
    });
    ended
}

/// Dooms all.
pub fn doom_all(ct: &Conntrack) -> usize {
    let v4 = (0..ct.v4.slab.used()).filter(|&number| doom(&ct.v4, number as u32, |_| true)).count();
    let v6 = (0..ct.v6.slab.used()).filter(|&number| doom(&ct.v6, number as u32, |_| true)).count();
    v4 + v6
}

enum Place {
    V4(u32),
    V6(u32),
}

fn for_some(ct: &Conntrack, cursor: &Cursor, n: usize, mut act: impl FnMut(Place)) {
    let used4 = ct.v4.slab.used();
    for range in cursor.advance(n, used4 + ct.v6.slab.used()) {
        for place in range {
            act(if place < used4 { Place::V4(place as u32) } else { Place::V6((place - used4) as u32) });
        }
    }
}

fn doom<const K: usize>(table: &Table<K>, number: u32, ended: impl Fn(u64) -> bool) -> bool {
    let entry = table.entry(number);
    entry.ctl() & LIVE != 0 && ended(entry.expires()) && entry.doom(|| ended(entry.expires()))
}

fn collect<const K: usize>(ct: &Conntrack, table: &Table<K>, local: &mut Local, number: u32, now_ns: u64) {
    let entry = table.entry(number);
    let ctl = entry.ctl();
    if ctl & LIVE != 0 && entry.expires() <= now_ns {
        local.expire(ct, table, number, now_ns);
    } else if ctl & DOOMED != 0 && entry.claim_doomed() {
        local.free(ct, table, number);
    }
}
