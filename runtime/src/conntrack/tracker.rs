//! One worker's side of the connection tracker: the packets of a burst, and what it keeps at hand.
//!
//! In go packets and what a program asks of them, out come their states. A packet's way is told at the head of
//! [the module](super).

use std::sync::Arc;

use pipec_abi::ct::state::{EST, INV, NEW, REL, RPL, TRK};
use pipec_abi::{BURST, Burst, CtPoint, CtView};

use crate::sync::Padded;

use super::Conntrack;
use super::entry::{Entry, ctl, has_label, has_replied, is_reply};
use super::key::{Key, Key6};
use super::other::{self, Timer, seen};
use super::parse::{Class, Invalid, Parsed, parse};
use super::slab::KEEP;
use super::stats::Counters;
use super::sweep;
use super::table::{Inserted, Table};
use super::tcp::{self, Outcome};

/// No entry.
const NONE: u32 = u32::MAX;

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

/// What a worker keeps at hand, apart from packets.
pub struct Local {
    credits: usize,
    kept: [Vec<u32>; 2],
    pub(super) counters: Arc<Padded<Counters>>,
}

/// Looks at packets for one worker.
pub struct Tracker {
    ct: Arc<Conntrack>,
    now_ns: u64,
    /// Packets whose slot is filled.
    ready: u32,
    /// Packets that were tracked, in the zone of their slot.
    done: u32,
    swept_ns: u64,
    slots: [Slot; BURST],
    keys6: [Key6; BURST],
    local: Local,
}

/// What an entry says to a packet.
enum Visit {
    /// It belongs to the entry: state, mark, and whether there is a label.
    Seen(u32, u32, bool),
    /// It can belong to no connection with this key.
    Outside,
    /// It begins a new connection in this one's place.
    Reuse,
    /// The entry's time is over.
    Expired,
    /// There is no such entry any more.
    Gone,
}

/// A packet's way through one call, apart from its key.
struct Ask<'a> {
    parsed: &'a Parsed,
    options: &'a [u8],
    hash: u64,
    point: &'a CtPoint,
    now_ns: u64,
}

/// What became of a packet.
#[derive(Clone, Copy)]
struct Tracked {
    state: u32,
    conn: u32,
    mark: u32,
    labelled: bool,
}

impl Tracked {
    const fn bare(state: u32) -> Tracked {
        Tracked { state, conn: NONE, mark: 0, labelled: false }
    }
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
        let kept = || Vec::with_capacity(KEEP);
        Tracker {
            ct,
            now_ns: 0,
            ready: 0,
            done: 0,
            swept_ns: 0,
            slots: [slot; BURST],
            keys6: [[0; 5]; BURST],
            local: Local { credits: 0, kept: [kept(), kept()], counters },
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
        let Tracker { ct, slots, keys6, .. } = self;
        let (shape4, shape6) = (ct.v4.shape(), ct.v6.shape());
        for i in ones(set) {
            let slot = &mut slots[i];
            slot.parsed = parse(burst.bytes(i), zone, ct.config.vlan_limit, &mut keys6[i]);
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
            if slot.parsed.v6 {
                slot.guess = ct.v6.guess(shape6, slot.hash).unwrap_or(NONE);
                ct.v6.prefetch_entry(slot.guess);
            } else {
                slot.guess = ct.v4.guess(shape4, slot.hash).unwrap_or(NONE);
                ct.v4.prefetch_entry(slot.guess);
            }
        }
        self.ready |= set;
        self.done &= !set;
    }

    /// Tracks packet `i`: fills `view` and returns its state. The packet need not have been prepared.
    #[inline]
    pub fn ct(&mut self, view: &mut CtView, burst: &mut Burst, i: usize, point: &CtPoint, zone: u16) -> u32 {
        let Tracker { ct, slots, .. } = self;
        let bit = 1u32 << (i % BURST);
        let slot = &mut slots[i % BURST];
        let is_plain = point.flags & (CtPoint::FRESH | CtPoint::FORCE) == 0 && !slot.parsed.v6;
        if self.ready & !self.done & bit != 0 && slot.zone == zone && slot.guess != NONE && is_plain {
            let entry = ct.v4.entry(slot.guess);
            let options = options(burst, i, &slot.parsed);
            let visit = visit(ct, entry, &slot.parsed.key4, &slot.parsed, options, self.now_ns);
            if let Visit::Seen(state, mark, labelled) = visit {
                let mut tracked = Tracked { state, conn: slot.guess, mark, labelled };
                if point.flags & CtPoint::COMMIT != 0 {
                    decorate(ct, &ct.v4, &slot.parsed.key4, &mut tracked, point);
                }
                slot.state = state;
                slot.conn = slot.guess;
                self.done |= bit;
                show(view, zone, &tracked, || ct.v4.label_of(tracked.conn, &slot.parsed.key4));
                return state;
            }
        }
        self.ct_slowly(view, burst, i % BURST, point, zone)
    }

    /// [`Tracker::ct`] for everything else.
    #[inline(never)]
    fn ct_slowly(&mut self, view: &mut CtView, burst: &Burst, i: usize, point: &CtPoint, zone: u16) -> u32 {
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
            slot.guess = NONE;
            self.done &= !(1 << i);
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let [kept4, kept6] = &mut self.local.kept;
        self.ct.v4.slab.give_all(kept4);
        self.ct.v6.slab.give_all(kept6);
        self.ct.credits.0.give_all(&mut self.local.credits);
        self.ct.leave();
    }
}

impl Local {
    /// Tracks a packet; `known` is what an earlier call found.
    fn track<const K: usize>(
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
        loop {
            let Some(number) = table.find(key, ask.hash) else {
                match self.open(ct, table, key, ask) {
                    Ok(tracked) => return tracked,
                    Err(Inserted::Found(_)) => continue, // another worker was faster: this packet belongs to what it made
                    Err(_) => return Tracked::bare(NEW | TRK),
                }
            };
            let entry = table.entry(number);
            if replaces(entry, key, ask) {
                self.replace(ct, table, number);
                continue;
            }
            match visit(ct, entry, key, ask.parsed, ask.options, ask.now_ns) {
                Visit::Seen(state, mark, labelled) => {
                    let mut tracked = Tracked { state, conn: number, mark, labelled };
                    if ask.point.flags & CtPoint::COMMIT != 0 {
                        decorate(ct, table, key, &mut tracked, ask.point);
                    }
                    return tracked;
                }
                Visit::Outside => return self.invalid(Invalid::TcpWindow, None),
                Visit::Reuse => self.replace(ct, table, number),
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
        let seen = entry.change(ct.shared, key, |ctl| (0, (entry.mark(), has_label(ctl))));
        let Some((mark, labelled)) = seen else {
            return Some(Tracked::bare(state)); // ended since
        };
        let mut tracked = Tracked { state, conn, mark, labelled };
        if commits {
            decorate(ct, table, key, &mut tracked, ask.point);
        }
        Some(tracked)
    }

    /// A packet without a connection: it is new or invalid, and a commit makes one.
    fn open<const K: usize>(
        &mut self,
        ct: &Conntrack,
        table: &Table<K>,
        key: &[u64; K],
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
            let pair = (ask.parsed.class == Class::Tcp).then(|| tcp::open(&ask.parsed.segment, ask.options));
            let timer = match ask.parsed.class {
                Class::Tcp => Timer::TcpFirst,
                class => other::first(class != Class::Other),
            };
            let expires = ct.config.timeouts.expiry(timer, ask.now_ns);
            table.entry(number).init(key, ask.parsed.swapped, expires, pair.as_ref());
            tracked.conn = number;
            decorate(ct, table, key, &mut tracked, ask.point);
            match table.insert(key, ask.hash, number) {
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

/// The packets of a set.
#[inline(always)]
fn ones(mut set: u32) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let i = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (i < BURST).then_some(i)
    })
}

/// Options of a TCP segment.
#[inline(always)]
fn options<'a>(burst: &'a Burst, i: usize, parsed: &Parsed) -> &'a [u8] {
    if parsed.segment.options_len == 0 {
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

/// Whether a forced commit of this packet ends the entry.
fn replaces<const K: usize>(entry: &Entry<K>, key: &[u64; K], ask: &Ask) -> bool {
    const FORCED: u32 = CtPoint::COMMIT | CtPoint::FORCE;
    ask.point.flags & FORCED == FORCED
        && ask.parsed.class != Class::Error
        && entry.is_live(key)
        && is_reply(entry.ctl(), ask.parsed.swapped)
}

/// Shows a packet to an entry that is probably its own.
#[inline(always)]
fn visit<const K: usize>(
    ct: &Conntrack,
    entry: &Entry<K>,
    key: &[u64; K],
    parsed: &Parsed,
    options: &[u8],
    now_ns: u64,
) -> Visit {
    match parsed.class {
        Class::Tcp => {
            let found = entry.change(ct.shared, key, |ctl| visit_tcp(ct, entry, ctl, parsed, options, now_ns));
            found.unwrap_or(Visit::Gone)
        }
        Class::Error => visit_error(ct, entry, key, parsed, now_ns),
        _ => {
            // Workers that share an established connection write to it once a millisecond, not with every packet.
            if ct.shared
                && let Some(Some(visit)) = entry.look(true, key, |ctl| glance(ct, entry, ctl, parsed, now_ns))
            {
                return visit;
            }
            let found = entry.change(ct.shared, key, |ctl| visit_other(ct, entry, ctl, parsed, now_ns));
            found.unwrap_or(Visit::Gone)
        }
    }
}

/// `est` takes a packet in each direction (D3).
#[inline(always)]
fn state_of(replied: bool, reply: bool) -> u32 {
    if replied { EST | TRK | if reply { RPL } else { 0 } } else { NEW | TRK }
}

#[inline(always)]
fn visit_tcp<const K: usize>(
    ct: &Conntrack,
    entry: &Entry<K>,
    ctl: u64,
    parsed: &Parsed,
    options: &[u8],
    now_ns: u64,
) -> (u64, Visit) {
    if now_ns >= entry.expires() {
        return (0, Visit::Expired);
    }
    let old = entry.pair(parsed.swapped);
    let mut pair = old;
    let reply = is_reply(ctl, parsed.swapped);
    let replied = reply || has_replied(ctl);
    let (state, timer) = match tcp::update(&mut pair, &parsed.segment, options, ct.config.seq_check) {
        Outcome::Valid(timer) => (state_of(replied, reply), timer),
        Outcome::Opening => (NEW | TRK, Some(Timer::TcpFirst)),
        Outcome::Reuse => return (0, Visit::Reuse),
        Outcome::Outside => return (0, Visit::Outside),
    };
    entry.set_pair(parsed.swapped, &old, &pair);
    if let Some(timer) = timer {
        entry.refresh(ct.config.timeouts.expiry(timer, now_ns));
    }
    (if replied { ctl::REPLIED } else { 0 }, Visit::Seen(state, entry.mark(), has_label(ctl)))
}

#[inline(always)]
fn visit_other<const K: usize>(
    ct: &Conntrack,
    entry: &Entry<K>,
    ctl: u64,
    parsed: &Parsed,
    now_ns: u64,
) -> (u64, Visit) {
    if now_ns >= entry.expires() {
        return (0, Visit::Expired);
    }
    let reply = is_reply(ctl, parsed.swapped);
    let is_icmp = parsed.class != Class::Other;
    let old = if has_replied(ctl) { seen::BOTH } else { entry.rest() };
    let (state, timer) = other::update(old, is_icmp, reply);
    let replied = state == seen::BOTH;
    if state != old {
        entry.set_rest(state);
    }
    entry.refresh(ct.config.timeouts.expiry(timer, now_ns));
    (if replied { ctl::REPLIED } else { 0 }, Visit::Seen(state_of(replied, reply), entry.mark(), has_label(ctl)))
}

/// [`visit_other`] where it would write nothing.
#[inline(always)]
fn glance<const K: usize>(ct: &Conntrack, entry: &Entry<K>, ctl: u64, parsed: &Parsed, now_ns: u64) -> Option<Visit> {
    let reply = is_reply(ctl, parsed.swapped);
    let (_, timer) = other::update(seen::BOTH, parsed.class != Class::Other, reply);
    let is_fresh = !entry.would_refresh(ct.config.timeouts.expiry(timer, now_ns));
    (has_replied(ctl) && now_ns < entry.expires() && is_fresh)
        .then(|| Visit::Seen(state_of(true, reply), entry.mark(), has_label(ctl)))
}

/// An error about a connection says nothing of its state, and does not prolong its life.
#[cold]
fn visit_error<const K: usize>(
    ct: &Conntrack,
    entry: &Entry<K>,
    key: &[u64; K],
    parsed: &Parsed,
    now_ns: u64,
) -> Visit {
    let found = entry.look(ct.shared, key, |ctl| {
        if now_ns >= entry.expires() {
            return Visit::Expired;
        }
        let state = REL | TRK | if is_reply(ctl, parsed.swapped) { RPL } else { 0 };
        Visit::Seen(state, entry.mark(), has_label(ctl))
    });
    found.unwrap_or(Visit::Gone)
}

/// What a commit writes to a connection: mark and label.
#[inline]
fn decorate<const K: usize>(ct: &Conntrack, table: &Table<K>, key: &[u64; K], tracked: &mut Tracked, point: &CtPoint) {
    if point.mark_mask != 0 || point.label_mask != [0; 2] {
        decorate_indeed(ct, table, key, tracked, point);
    }
}

#[inline(never)]
fn decorate_indeed<const K: usize>(
    ct: &Conntrack,
    table: &Table<K>,
    key: &[u64; K],
    tracked: &mut Tracked,
    point: &CtPoint,
) {
    let entry = table.entry(tracked.conn);
    let mix = |old: u64, new: u64, mask: u64| old & !mask | new & mask;
    let changed = entry.change(ct.shared, key, |ctl| {
        let mark = mix(entry.mark().into(), point.mark.into(), point.mark_mask.into()) as u32;
        entry.set_mark(mark);
        let mut bits = 0;
        if point.label_mask != [0; 2] {
            let old = if has_label(ctl) { table.label(tracked.conn) } else { [0; 2] };
            let [high, low] = [0, 1].map(|half| mix(old[half], point.label[half], point.label_mask[half]));
            table.set_label(tracked.conn, [high, low]);
            bits = ctl::LABELLED;
        }
        (bits, (mark, has_label(ctl | bits)))
    });
    if let Some((mark, labelled)) = changed {
        tracked.mark = mark;
        tracked.labelled = labelled;
    }
}

impl Local {
    /// Ends an entry whose time is over.
    #[cold]
    pub(super) fn expire<const K: usize>(&mut self, ct: &Conntrack, table: &Table<K>, number: u32, now_ns: u64) {
        let entry = table.entry(number);
        if entry.claim(|| now_ns >= entry.expires()) {
            self.counters.0.expired.add(1);
            self.free(ct, table, number);
        }
    }

    /// Ends an entry for a new one.
    #[cold]
    fn replace<const K: usize>(&mut self, ct: &Conntrack, table: &Table<K>, number: u32) {
        if table.entry(number).claim(|| true) {
            self.counters.0.replaced.add(1);
            self.free(ct, table, number);
        }
    }

    /// Frees an entry that was claimed.
    pub(super) fn free<const K: usize>(&mut self, ct: &Conntrack, table: &Table<K>, number: u32) {
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
