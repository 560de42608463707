//! Connection tracking: which packets belong together, and whether they may.
//!
//! **What it is.** A pipeline says `ct(…)`, and learns of a packet whether it begins something (`new`), continues something
//! that both sides take part in (`est`), answers (`rpl`), is an error about something (`rel`), or cannot be part of anything
//! (`inv`). With `commit` a connection is remembered, with a mark and a label. [`Conntrack`] is the memory, shared by all
//! workers; each worker has a [`Tracker`], which looks at packets and does the remembering. Nothing here drops a packet,
//! writes to one, or reads a clock: time is the burst's.
//!
//! **A packet's way.** [`Tracker::prepare`] goes over the packets of a burst twice: first each is validated
//! (`plain`, `parse`), its key made (`key`) and hashed (`hash`), and the line of its bucket asked for; then each bucket's tags are
//! compared (`bucket`) and the line of the likely entry asked for. [`Tracker::ct`] comes later, packet by packet and in
//! order: it proves the guess by comparing keys, or looks the key up again, and does what the protocol asks (`tcp`,
//! `other`, `icmp_error`). So packets of one burst see each other's effects as if they had come alone. What `ct` found is
//! remembered until the next burst: asking again for the same packet, key and zone (a look first, a commit later) gives the
//! same answer and counts the packet once.
//!
//! **Layout.** One table a family of addresses (`table`): buckets of one line with eight tags and entry numbers, and entries
//! (`entry`) of one line for IPv4, two for IPv6, that hold key, timers, mark and TCP's state. An established packet touches
//! one of each. A key is the same for both directions, and the zone is part of it. Memory is reserved at the limit and used
//! as it is touched (`memory`); the table grows by one bucket at a time.
//!
//! **Life.** Entries expire by their timers; a look-up ends an expired entry it meets, and workers sweep the table bit by bit
//! (`sweep`). At the limit a commit does nothing but count; the packet goes on as new.
//!
//! **Workers.** With one worker there are no locks at all. With several, reading takes none either; what writes to an entry
//! holds a bit in it, and what changes a bucket holds a bit in that: made connections, state of TCP, the time of the others
//! (at most once a millisecond each). No packet takes a lock that others share. Threads that are not workers only ever set
//! one bit (`sweep`), so a worker never waits for them.
//!
//! **Beside Open vSwitch.** States are those of its userspace datapath, packet for packet, but for this:
//!
//! - `est` takes a packet in each direction, for TCP too (D3); there it is anything after the SYN.
//! - The right edge of the window counts selective acknowledgements, as in Linux (D14); there it does not.
//! - Two ends that open at once are tracked from both SYNs on; there the second SYN's numbers are not taken in, and most of
//!   what follows is `inv`.
//! - The window of a SYN that offers scaling to a peer that does not is at most 65,535; there it can wrap around to 0.
//! - A segment outside the window shows no mark and no label, and a commit does not set them; there it shows the connection's.
//! - Fragments are `inv`; there they are held and reassembled. (To come.)
//! - An ICMP error about a first fragment is related, as in today's Open vSwitch; in 3.1 it is `inv`. SCTP has ports, and its
//!   checksum and chunks are verified, as today; in 3.1 they are not.
//!
//! **To come.** Translation, helpers, fragments, SCTP's states, limits and time-outs by zone. An entry has room for the
//! number of a record with what few connections need.

mod bucket;
mod checksum;
mod dump;
mod entry;
pub(crate) mod hash;
mod icmp_error;
mod key;
mod local;
mod memory;
mod other;
mod parse;
mod plain;
mod slab;
mod stats;
mod sweep;
mod table;
mod tcp;
mod tcp_options;
mod tracker;
mod visit;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

pub use dump::Dump;
pub use key::{L4, Tuple};
pub use other::{Timeouts, Timer};
pub use parse::Invalid;
pub use stats::Stats;
pub use tcp::State;
pub use tracker::Tracker;

use crate::sync::Padded;
use hash::Secret;
use slab::Credits;
use stats::{Counters, Outside};
use sweep::Cursor;
use table::Table;

/// How connections are tracked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Connections there may be.
    pub max_conns: usize,
    /// Trackers there may be at a time.
    pub workers: usize,
    /// Whether a TCP segment other than a SYN may begin a connection.
    pub loose: bool,
    /// Whether TCP windows are enforced.
    pub seq_check: bool,
    /// Seed of the hash, for tests that must repeat; otherwise each start draws its own.
    pub seed: Option<u64>,
    /// VLAN tags looked behind.
    pub vlan_limit: u32,
    /// Time-outs.
    pub timeouts: Timeouts,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_conns: 3_000_000,
            workers: 1,
            loose: true,
            seq_check: true,
            seed: None,
            vlan_limit: 1,
            timeouts: Timeouts::default(),
        }
    }
}

/// All connections.
pub struct Conntrack {
    v4: Table<2>,
    v6: Table<5>,
    config: Config,
    shared: bool,
    credits: Padded<Credits>,
    cursor: Padded<Cursor>,
    outside_cursor: Cursor,
    outside: Outside,
    workers: Mutex<Workers>,
}

#[derive(Default)]
struct Workers {
    trackers: usize,
    counters: Vec<Arc<Padded<Counters>>>,
}

impl Conntrack {
    /// No connections yet. Reserves address space for `max_conns` of each family, and touches next to none of it.
    pub fn new(config: &Config) -> Conntrack {
        let workers = config.workers.max(1);
        let secret = Secret::new(config.seed);
        Conntrack {
            v4: Table::new(config.max_conns, workers, secret),
            v6: Table::new(config.max_conns, workers, secret),
            config: config.clone(),
            shared: workers > 1,
            credits: Padded(Credits::new(config.max_conns, workers)),
            cursor: Padded::default(),
            outside_cursor: Cursor::default(),
            outside: Outside::default(),
            workers: Mutex::default(),
        }
    }

    /// How many connections there are.
    pub fn len(&self) -> usize {
        self.stats().live as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends all connections there are. Workers go on meanwhile, and what they make meanwhile may stay.
    pub fn flush(&self) {
        let ended = sweep::doom_all(self);
        self.outside.add_flushed(ended as u64);
    }

    /// All connections there are, each consistent in itself.
    pub fn dump(&self, now_ns: u64) -> Vec<Dump> {
        let mut dumps = Vec::new();
        for number in 0..self.v4.slab.used() as u32 {
            dumps.extend(Dump::of(self.v4.entry(number), || self.v4.label(number), now_ns));
        }
        for number in 0..self.v6.slab.used() as u32 {
            dumps.extend(Dump::of(self.v6.entry(number), || self.v6.label(number), now_ns));
        }
        dumps.retain(|dump| dump.left_ns > 0);
        dumps
    }

    /// Looks at `budget` entries and ends those that have expired; returns how many. Workers sweep by themselves while they
    /// have packets, so this is for whoever wants exact counts, or has idle workers.
    pub fn sweep(&self, now_ns: u64, budget: usize) -> usize {
        let ended = sweep::doom_expired(self, now_ns, budget);
        self.outside.add_expired(ended as u64);
        ended
    }

    /// What happened so far.
    pub fn stats(&self) -> Stats {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        Stats::sum(workers.counters.iter().map(|counters| &counters.0), &self.outside)
    }

    /// Counters for one more tracker.
    fn enter(&self) -> Arc<Padded<Counters>> {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(workers.trackers < self.config.workers.max(1), "as many trackers as the configuration has workers");
        workers.trackers += 1;
        let counters = Arc::<Padded<Counters>>::default();
        workers.counters.push(counters.clone());
        counters
    }

    /// A tracker less.
    fn leave(&self) {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).trackers -= 1;
    }
}
