//! One worker's side of the connection tracker: the packets of a burst.
//!
//! In go packets and what a program asks of them, out come their states. A packet's way is told at the head of
//! [the module](super).

use std::sync::Arc;

use pipec_abi::{BURST, Burst, CtPoint, CtView};

use super::Conntrack;
use super::key::{Key, Key6};
use super::local::{Ask, Local, NONE, Tracked};
use super::parse::{Class, Invalid, Parsed, general, parse, plain};
use super::sweep;
use super::table::Table;
use super::visit::{Visit, decorate, glance_tcp, visit, visit_other};

/// What is known of one packet of the burst.
#[derive(Clone, Copy)]
struct Slot {
    parsed: Parsed,
    hash: u64,
    /// The entry it probably belongs to.
    guess: u32,
    /// The entry it belongs to, once tracked.
    conn: u32,
    /// Its state, once tracked.
    state: u32,
    zone: u16,
}

/// Looks at packets for one worker.
pub struct Tracker {
    ct: Arc<Conntrack>,
    now_ns: u64,
    /// Packets whose slot is filled.
    ready: u32,
    /// Packets that were tracked, in the zone of their slot.
    done: u32,
    /// Packets whose slot has a guess and that were not tracked: the plain ones, and the others.
    guessed: u32,
    guessed_odd: u32,
    swept_ns: u64,
    slots: [Slot; BURST],
    keys6: [Key6; BURST],
    local: Local,
}

impl Tracker {
    /// A tracker for one worker. Allocates; not for the packet path.
    ///
    /// # Panics
    /// When there are as many as the configuration has workers.
    pub fn new(ct: Arc<Conntrack>) -> Tracker {
        let counters = ct.enter();
        let slot =
            Slot { parsed: Parsed::invalid(Invalid::NotIp), hash: 0, guess: NONE, conn: NONE, state: 0, zone: 0 };
        Tracker {
            ct,
            now_ns: 0,
            ready: 0,
            done: 0,
            guessed: 0,
            guessed_odd: 0,
            swept_ns: 0,
            slots: [slot; BURST],
            keys6: [[0; 5]; BURST],
            local: Local::new(counters),
        }
    }

    /// The connections it tracks.
    pub fn conntrack(&self) -> &Arc<Conntrack> {
        &self.ct
    }

    /// Begins a burst: what is known of the last one is forgotten. Now and then sweeps a few entries.
    #[inline]
    pub fn begin(&mut self, now_ns: u64) {
        self.ready = 0;
        self.done = 0;
        self.guessed = 0;
        self.guessed_odd = 0;
        self.now_ns = now_ns;
        let since = now_ns.wrapping_sub(self.swept_ns);
        if since >= sweep::PAUSE_NS {
            self.swept_ns = now_ns;
            sweep::sweep(&self.ct, &mut self.local, now_ns, since);
        }
    }

    /// Parses, validates and hashes the packets in `set`, and asks for the memory their look-ups will touch. Packets that are
    /// prepared for this zone already are left as they are.
    pub fn prepare(&mut self, burst: &Burst, set: u32, zone: u16) {
        let mut set = set;
        for i in ones(set & self.ready) {
            if self.slots[i].zone == zone {
                set &= !(1 << i);
            }
        }
        let Tracker { ct, slots, .. } = self;
        let shape = ct.v4.shape();
        let mut odd = 0;
        for i in ones(set) {
            let slot = &mut slots[i];
            if plain(burst.bytes(i), zone, &mut slot.parsed) {
                slot.zone = zone;
                slot.hash = ct.v4.hash(&slot.parsed.key4);
                ct.v4.prefetch_bucket(shape, slot.hash);
            } else {
                odd |= 1 << i;
            }
        }
        let mut guessed = 0;
        for i in ones(set & !odd) {
            let slot = &mut slots[i];
            let guess = ct.v4.guess(shape, slot.hash);
            guessed |= u32::from(guess.is_some()) << i;
            slot.guess = guess.unwrap_or(NONE);
            ct.v4.prefetch_entry(slot.guess);
        }
        self.ready |= set;
        self.done &= !set;
        self.guessed = self.guessed & !set | guessed;
        self.guessed_odd &= !set;
        if odd != 0 {
            self.prepare_slowly(burst, odd, zone);
        }
    }

    /// [`Tracker::prepare`] for packets that are not plain.
    #[inline(never)]
    fn prepare_slowly(&mut self, burst: &Burst, set: u32, zone: u16) {
        let Tracker { ct, slots, keys6, .. } = self;
        let (shape4, shape6) = (ct.v4.shape(), ct.v6.shape());
        for i in ones(set) {
            let slot = &mut slots[i];
            slot.parsed = general(burst.bytes(i), zone, ct.config.vlan_limit, &mut keys6[i]);
            slot.zone = zone;
            if slot.parsed.v6 {
                slot.hash = ct.v6.hash(&keys6[i]);
                ct.v6.prefetch_bucket(shape6, slot.hash);
            } else {
                slot.hash = ct.v4.hash(&slot.parsed.key4);
                ct.v4.prefetch_bucket(shape4, slot.hash);
            }
        }
        for i in ones(set) {
            let slot = &mut slots[i];
            let (hash, guess) = (slot.hash, &mut slot.guess);
            if slot.parsed.v6 {
                *guess = ct.v6.guess(shape6, hash).unwrap_or(NONE);
                ct.v6.prefetch_entry(*guess);
            } else if slot.parsed.class != Class::Invalid {
                *guess = ct.v4.guess(shape4, hash).unwrap_or(NONE);
                ct.v4.prefetch_entry(*guess);
            } else {
                *guess = NONE;
            }
            self.guessed_odd |= u32::from(*guess != NONE) << i;
        }
    }

    /// Tracks packet `i`: fills `view` and returns its state. The packet need not have been prepared.
    #[inline]
    pub fn ct(&mut self, view: &mut CtView, burst: &mut Burst, i: usize, point: &CtPoint, zone: u16) -> u32 {
        let i = i % BURST;
        let slot = &self.slots[i];
        let is_plain = point.flags & (CtPoint::FRESH | CtPoint::FORCE) == 0 && slot.zone == zone;
        if self.guessed >> i & 1 == 0 || !is_plain {
            return self.ct_slowly(view, burst, i, point, zone);
        }
        if slot.parsed.class == Class::Tcp {
            self.ct_tcp(view, burst, i, point)
        } else {
            self.ct_other(view, burst, i, point)
        }
    }

    /// [`Tracker::ct`] for a plain TCP segment with a guess.
    #[inline(never)]
    fn ct_tcp(&mut self, view: &mut CtView, burst: &mut Burst, i: usize, point: &CtPoint) -> u32 {
        let Tracker { ct, slots, .. } = self;
        let Slot { parsed, guess, .. } = &slots[i];
        let visit = glance_tcp(ct, ct.v4.entry(*guess), &parsed.key4, parsed, self.now_ns);
        match visit.and_then(|visit| accept(ct, &ct.v4, &parsed.key4, &slots[i], visit, view, point)) {
            Some(state) => self.settled(i, state),
            None => self.ct_slowly(view, burst, i, point, self.slots[i].zone),
        }
    }

    /// [`Tracker::ct`] for a plain packet of another protocol with a guess.
    #[inline(never)]
    fn ct_other(&mut self, view: &mut CtView, burst: &mut Burst, i: usize, point: &CtPoint) -> u32 {
        let Tracker { ct, slots, .. } = self;
        let Slot { parsed, guess, .. } = &slots[i];
        let visit = visit_other(ct, ct.v4.entry(*guess), &parsed.key4, parsed, self.now_ns);
        match accept(ct, &ct.v4, &parsed.key4, &slots[i], visit, view, point) {
            Some(state) => self.settled(i, state),
            None => self.ct_slowly(view, burst, i, point, self.slots[i].zone),
        }
    }

    /// [`Tracker::ct`] for any packet with a guess; nothing if the guess is wrong, or more is to be done.
    fn ct_odd(&self, view: &mut CtView, burst: &Burst, i: usize, point: &CtPoint) -> Option<u32> {
        let Tracker { ct, slots, keys6, .. } = self;
        let slot = &slots[i];
        let Slot { parsed, guess, .. } = slot;
        let options = options(burst, i, parsed);
        if parsed.v6 {
            let visit = visit(ct, ct.v6.entry(*guess), &keys6[i], parsed, options, self.now_ns);
            accept(ct, &ct.v6, &keys6[i], slot, visit, view, point)
        } else {
            let visit = visit(ct, ct.v4.entry(*guess), &parsed.key4, parsed, options, self.now_ns);
            accept(ct, &ct.v4, &parsed.key4, slot, visit, view, point)
        }
    }

    /// Remembers what the guess turned out to be.
    #[inline(always)]
    fn settled(&mut self, i: usize, state: u32) -> u32 {
        let slot = &mut self.slots[i];
        slot.state = state;
        slot.conn = slot.guess;
        self.done |= 1 << i;
        self.guessed &= !(1 << i);
        state
    }

    /// [`Tracker::ct`] for everything else.
    #[inline(never)]
    fn ct_slowly(&mut self, view: &mut CtView, burst: &Burst, i: usize, point: &CtPoint, zone: u16) -> u32 {
        let is_plain = point.flags & (CtPoint::FRESH | CtPoint::FORCE) == 0 && self.slots[i].zone == zone;
        if self.guessed_odd >> i & 1 == 1
            && is_plain
            && let Some(state) = self.ct_odd(view, burst, i, point)
        {
            self.guessed_odd &= !(1 << i);
            return self.settled(i, state);
        }
        self.settle(burst, i, point.flags & CtPoint::FRESH != 0, zone);
        let Tracker { ct, slots, keys6, local, .. } = self;
        let slot = &mut slots[i];
        let known = (self.done >> i & 1 == 1).then_some((slot.state, slot.conn));
        let ask = Ask {
            parsed: &slot.parsed,
            options: options(burst, i, &slot.parsed),
            hash: slot.hash,
            point,
            now_ns: self.now_ns,
        };
        let tracked = if slot.parsed.v6 {
            let tracked = local.track(ct, &ct.v6, &keys6[i], &ask, known);
            show(view, zone, &tracked, || ct.v6.label_of(tracked.conn, &keys6[i]));
            tracked
        } else {
            let tracked = local.track(ct, &ct.v4, &slot.parsed.key4, &ask, known);
            show(view, zone, &tracked, || ct.v4.label_of(tracked.conn, &slot.parsed.key4));
            tracked
        };
        slot.state = tracked.state;
        slot.conn = tracked.conn;
        self.done |= 1 << i;
        self.guessed &= !(1 << i);
        self.guessed_odd &= !(1 << i);
        tracked.state
    }

    /// Makes the slot of packet `i` say what the packet is now, in this zone; what was found out about it stays only if its
    /// key did.
    fn settle(&mut self, burst: &Burst, i: usize, fresh: bool, zone: u16) {
        let Tracker { ct, slots, keys6, .. } = self;
        let slot = &mut slots[i];
        let was_ready = self.ready >> i & 1 == 1;
        if was_ready && !fresh && slot.zone == zone {
            return;
        }
        let mut key6 = keys6[i];
        let parsed = if fresh || !was_ready {
            parse(burst.bytes(i), zone, ct.config.vlan_limit, &mut key6)
        } else {
            key6 = key6.with_zone(zone);
            Parsed { key4: slot.parsed.key4.with_zone(zone), ..slot.parsed }
        };
        let identity = |parsed: &Parsed, key6: Key6| {
            let key6 = if parsed.v6 { key6 } else { [0; 5] };
            (parsed.class, parsed.v6, parsed.swapped, parsed.key4, key6)
        };
        let is_same = was_ready && identity(&parsed, key6) == identity(&slot.parsed, keys6[i]);
        slot.parsed = parsed;
        slot.zone = zone;
        slot.hash = if parsed.v6 { ct.v6.hash(&key6) } else { ct.v4.hash(&parsed.key4) };
        keys6[i] = key6;
        self.ready |= 1 << i;
        if !is_same {
            self.done &= !(1 << i);
            self.guessed &= !(1 << i);
            self.guessed_odd &= !(1 << i);
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.local.empty(&self.ct);
        self.ct.leave();
    }
}

/// The packets of a set.
#[inline(always)]
fn ones(mut set: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let i = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (i < BURST).then_some(i)
    })
}

/// Shows what came of a guess; nothing if it was wrong, or more is to be done.
#[inline(always)]
fn accept<const K: usize>(
    ct: &Conntrack,
    table: &Table<K>,
    key: &[u64; K],
    slot: &Slot,
    visit: Visit,
    view: &mut CtView,
    point: &CtPoint,
) -> Option<u32> {
    let Visit::Seen(state, mark, labelled) = visit else {
        return None;
    };
    let mut tracked = Tracked { state, conn: slot.guess, mark, labelled };
    if point.flags & CtPoint::COMMIT != 0 {
        tracked = decorate(ct, table, key, tracked, point);
    }
    show(view, slot.zone, &tracked, || table.label_of(tracked.conn, key));
    Some(state)
}

/// Options of a TCP segment.
#[inline(always)]
fn options<'a>(burst: &'a Burst, i: usize, parsed: &Parsed) -> &'a [u8] {
    if parsed.class != Class::Tcp || parsed.segment.options_len == 0 {
        return &[];
    }
    let at = usize::from(parsed.segment.options_at);
    burst.bytes(i).get(at..at + usize::from(parsed.segment.options_len)).unwrap_or(&[])
}

/// Fills a view.
#[inline(always)]
fn show(view: &mut CtView, zone: u16, tracked: &Tracked, label: impl FnOnce() -> [u64; 2]) {
    let label = if tracked.labelled { label() } else { [0; 2] };
    *view = CtView { state: tracked.state, zone: u32::from(zone), mark: tracked.mark, reserved: 0, label };
}
