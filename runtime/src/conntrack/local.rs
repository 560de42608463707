//! What a worker keeps at hand, and what it does with entries: finding, making, ending them.
//!
//! In goes a packet with its key, out comes [`Tracked`]: its state and its connection.

use std::sync::Arc;

use pipec_abi::CtPoint;
use pipec_abi::ct::state::{INV, NEW, TRK};

use crate::sync::Padded;

use super::Conntrack;
use super::entry::{Entry, has_label, is_reply};
use super::other::{self, Timer, seen};
use super::parse::{Class, Invalid, Parsed};
use super::slab::KEEP;
use super::stats::Counters;
use super::table::{Inserted, Table};
use super::tcp;
use super::visit::{Visit, decorate, visit};

/// No entry.
pub const NONE: u32 = u32::MAX;

/// What a worker keeps at hand, apart from packets.
pub struct Local {
    credits: usize,
    kept: [Vec<u32>; 2],
    /// Its counts.
    pub counters: Arc<Padded<Counters>>,
}

/// A packet's way through one call, apart from its key.
pub struct Ask<'a> {
    pub parsed: &'a Parsed,
    pub options: &'a [u8],
    pub point: &'a CtPoint,
    pub now_ns: u64,
}

/// What became of a packet.
#[derive(Clone, Copy)]
pub struct Tracked {
    pub state: u32,
    pub conn: u32,
    pub mark: u32,
    pub labelled: bool,
}

impl Tracked {
    const fn bare(state: u32) -> Tracked {
        Tracked { state, conn: NONE, mark: 0, labelled: false }
    }
}

impl Local {
    /// Nothing at hand yet.
    pub fn new(counters: Arc<Padded<Counters>>) -> Local {
        Local { credits: 0, kept: [Vec::with_capacity(KEEP), Vec::with_capacity(KEEP)], counters }
    }

    /// Gives everything back.
    pub fn empty(&mut self, ct: &Conntrack) {
        let [kept4, kept6] = &mut self.kept;
        ct.v4.slab.give_all(kept4);
        ct.v6.slab.give_all(kept6);
        ct.credits.0.give_all(&mut self.credits);
    }

    /// Tracks a packet; `known` is what an earlier call found.
    pub fn track<const K: usize>(
        &mut self,
        ct: &Conntrack,
        table: &Table<K>,
        key: &[u64; K],
        ask: &Ask,
        known: Option<(u32, u32)>,
    ) -> Tracked {
        if ask.parsed.class == Class::Invalid {
            return self.invalid(ask.parsed.reason, known);
        }
        if let Some((state, conn)) = known
            && let Some(tracked) = self.track_again(ct, table, key, ask, state, conn)
        {
            return tracked;
        }
        let hash = table.hash(key);
        loop {
            let Some(number) = table.find(key, hash) else {
                match self.open(ct, table, key, hash, ask) {
                    Ok(tracked) => return tracked,
                    Err(Inserted::Found(_)) => continue, // another worker was faster: this packet belongs to what it made
                    Err(_) => return Tracked::bare(NEW | TRK),
                }
            };
            let entry = table.entry(number);
            if replaces(entry, key, ask) {
                self.replace(ct, table, key, number);
                continue;
            }
            match visit(ct, entry, key, ask.parsed, ask.options, ask.now_ns) {
                Visit::Seen(state, mark, labelled) => {
                    let mut tracked = Tracked { state, conn: number, mark, labelled };
                    if ask.point.flags & CtPoint::COMMIT != 0 {
                        tracked = decorate(ct, table, key, tracked, ask.point);
                    }
                    return tracked;
                }
                Visit::Outside => return self.invalid(Invalid::TcpWindow, None),
                Visit::Reuse => self.replace(ct, table, key, number),
                Visit::Expired => self.expire(ct, table, number, ask.now_ns),
                Visit::Gone => core::hint::spin_loop(),
            }
        }
    }

    /// Tracks a packet that was tracked before with the same key: its state is known, only a commit does something. `None`
    /// if it must be looked at afresh.
    fn track_again<const K: usize>(
        &mut self,
        ct: &Conntrack,
        table: &Table<K>,
        key: &[u64; K],
        ask: &Ask,
        state: u32,
        conn: u32,
    ) -> Option<Tracked> {
        let commits = ask.point.flags & CtPoint::COMMIT != 0;
        if state & INV != 0 {
            return Some(Tracked::bare(state));
        }
        if conn == NONE {
            return if commits { None } else { Some(Tracked::bare(state)) };
        }
        let entry = table.entry(conn);
        if replaces(entry, key, ask) {
            return None;
        }
        let Some(ctl) = entry.enter(ct.shared, key) else {
            return Some(Tracked::bare(state)); // ended since
        };
        let (mark, labelled) = (entry.mark(), has_label(ctl));
        entry.leave(ct.shared, ctl, 0);
        let mut tracked = Tracked { state, conn, mark, labelled };
        if commits {
            tracked = decorate(ct, table, key, tracked, ask.point);
        }
        Some(tracked)
    }

    /// A packet without a connection: it is new or invalid, and a commit makes one.
    fn open<const K: usize>(
        &mut self,
        ct: &Conntrack,
        table: &Table<K>,
        key: &[u64; K],
        hash: u64,
        ask: &Ask,
    ) -> Result<Tracked, Inserted> {
        let refused = match ask.parsed.class {
            Class::Tcp if !tcp::may_open(ask.parsed.segment.flags, ct.config.loose) => Some(Invalid::TcpOpening),
            Class::Answer => Some(Invalid::IcmpAnswer),
            Class::Error => Some(Invalid::IcmpError),
            _ => None,
        };
        if let Some(reason) = refused {
            return Ok(self.invalid(reason, None));
        }
        let mut tracked = Tracked::bare(NEW | TRK);
        if ask.point.flags & CtPoint::COMMIT != 0 {
            let Some(number) = self.allocate(ct, table) else {
                self.counters.0.full.add(1);
                return Ok(tracked);
            };
            let words = match ask.parsed.class {
                Class::Tcp => tcp::open(&ask.parsed.segment, ask.options).pack(),
                _ => (0, 0, seen::FIRST),
            };
            let timer = match ask.parsed.class {
                Class::Tcp => Timer::TcpFirst,
                class => other::first(class != Class::Other),
            };
            let expires = ct.config.timeouts.expiry(timer, ask.now_ns);
            table.entry(number).init(key, ask.parsed.swapped, expires, words);
            tracked.conn = number;
            tracked = decorate(ct, table, key, tracked, ask.point);
            match table.insert(key, hash, number) {
                Inserted::New => self.counters.0.created.add(1),
                other => {
                    table.entry(number).claim(|| true);
                    self.give(ct, table, number);
                    if other == Inserted::Full {
                        self.counters.0.full.add(1);
                    }
                    return Err(other);
                }
            }
        }
        Ok(tracked)
    }

    #[cold]
    fn invalid(&mut self, reason: Invalid, known: Option<(u32, u32)>) -> Tracked {
        if known.is_none() {
            self.counters.0.invalid[reason as usize].add(1);
        }
        Tracked::bare(INV | TRK)
    }
}

/// Whether a forced commit of this packet ends the entry.
fn replaces<const K: usize>(entry: &Entry<K>, key: &[u64; K], ask: &Ask) -> bool {
    const FORCED: u32 = CtPoint::COMMIT | CtPoint::FORCE;
    ask.point.flags & FORCED == FORCED
        && ask.parsed.class != Class::Error
        && entry.is_live(key)
        && is_reply(entry.ctl(), ask.parsed.swapped)
}

impl Local {
    /// Ends an entry whose time is over.
    #[cold]
    pub fn expire<const K: usize>(&mut self, ct: &Conntrack, table: &Table<K>, number: u32, now_ns: u64) {
        let entry = table.entry(number);
        if entry.claim(|| now_ns >= entry.expires()) {
            self.counters.0.expired.add(1);
            self.free(ct, table, number);
        }
    }

    /// Ends an entry for a new one, if it still has this key.
    #[cold]
    fn replace<const K: usize>(&mut self, ct: &Conntrack, table: &Table<K>, key: &[u64; K], number: u32) {
        let entry = table.entry(number);
        if entry.claim(|| entry.is(key)) {
            self.counters.0.replaced.add(1);
            self.free(ct, table, number);
        }
    }

    /// Frees an entry that was claimed.
    pub fn free<const K: usize>(&mut self, ct: &Conntrack, table: &Table<K>, number: u32) {
        table.remove(number);
        self.give(ct, table, number);
    }

    /// A free entry, if there may be one more.
    fn allocate<const K: usize>(&mut self, ct: &Conntrack, table: &Table<K>) -> Option<u32> {
        if !ct.credits.0.take(&mut self.credits) {
            return None;
        }
        let number = table.slab.take(&mut self.kept[usize::from(K > 2)]);
        if number.is_none() {
            ct.credits.0.give(&mut self.credits);
        }
        number
    }

    /// Gives back an entry that is in no bucket.
    fn give<const K: usize>(&mut self, ct: &Conntrack, table: &Table<K>, number: u32) {
        table.slab.give(&mut self.kept[usize::from(K > 2)], number);
        ct.credits.0.give(&mut self.credits);
    }
}
