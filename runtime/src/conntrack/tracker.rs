//! One worker's side of the connection tracker: the packets of a burst.
//!
//! In go packets and what a program asks of them, out come their states. A packet's way is told at the head of
//! [the module](super).

use std::sync::Arc;

use pipec_abi::{BURST, Burst, CtPoint, CtView};

use super::Conntrack;
use super::key::{Key, Key6};
use super::local::{Ask, Local, NONE, Tracked};
use super::other::Timer;
use super::parse::{Class, Invalid, Parsed, parse};
use super::plain::{plain4, plain6};
use super::sweep;
use super::visit::{Visit, glance_other, glance_tcp, visit};

/// What is known of one packet of the burst.
#[derive(Clone, Copy)]
struct Slot {
    parsed: Parsed,
    /// Its bucket.
    bucket: u32,
    /// Its entry: the one it probably belongs to, and once tracked the one it does.
    conn: u32,
    /// Its state, once tracked; 0 before.
    state: u32,
    zone: u16,
    tag: u16,
    /// The way it takes through [`Tracker::ct`].
    route: Route,
}

/// Ways through [`Tracker::ct`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Route {
    /// With a look-up.
    Slow,
    /// A plain TCP segment over IPv4 with a guess.
    Tcp,
    /// A plain packet of another protocol over IPv4 with a guess.
    Other,
    /// A plain IPv6 packet with a guess.
    Six,
    /// Any packet with a guess.
    Odd,
}

/// Looks at packets for one worker.
pub struct Tracker {
    ct: Arc<Conntrack>,
    now_ns: u64,
    /// Packets whose slot is filled.
    ready: u32,
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
        let slot = Slot {
            parsed: Parsed::invalid(Invalid::NotIp),
            bucket: 0,
            conn: NONE,
            state: 0,
            zone: 0,
            tag: 0,
            route: Route::Slow,
        };
        Tracker {
            ct,
            now_ns: 0,
            ready: 0,
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
            if plain4(burst.bytes(i), zone, &mut slot.parsed) {
                slot.zone = zone;
                slot.state = 0;
                (slot.bucket, slot.tag) = ct.v4.approach(shape, ct.v4.hash(&slot.parsed.key4));
            } else {
                odd |= 1 << i;
            }
        }
        for i in ones(set & !odd) {
            let slot = &mut slots[i];
            let guess = ct.v4.guess(slot.bucket, slot.tag);
            let route = if slot.parsed.class == Class::Tcp { Route::Tcp } else { Route::Other };
            slot.route = if guess.is_some() { route } else { Route::Slow };
            slot.conn = guess.unwrap_or(NONE);
        }
        self.ready |= set;
        if odd != 0 {
            self.prepare_slowly(burst, odd, zone);
        }
    }

    /// [`Tracker::prepare`] for packets other than plain IPv4.
    #[inline(never)]
    fn prepare_slowly(&mut self, burst: &Burst, set: u32, zone: u16) {
        let Tracker { ct, slots, keys6, .. } = self;
        let (shape4, shape6) = (ct.v4.shape(), ct.v6.shape());
        for i in ones(set) {
            let slot = &mut slots[i];
            slot.route = Route::Six;
            if !plain6(burst.bytes(i), zone, &mut slot.parsed, &mut keys6[i]) {
                slot.route = Route::Odd;
                slot.parsed = parse(burst.bytes(i), zone, ct.config.vlan_limit, &mut keys6[i]);
            }
            slot.zone = zone;
            slot.state = 0;
            (slot.bucket, slot.tag) = if slot.parsed.v6 {
                ct.v6.approach(shape6, ct.v6.hash(&keys6[i]))
            } else {
                ct.v4.approach(shape4, ct.v4.hash(&slot.parsed.key4))
            };
        }
        for i in ones(set) {
            let slot = &mut slots[i];
            let guess = match slot.parsed.v6 {
                _ if slot.parsed.class == Class::Invalid => None,
                true => ct.v6.guess(slot.bucket, slot.tag),
                false => ct.v4.guess(slot.bucket, slot.tag),
            };
            if guess.is_none() {
                slot.route = Route::Slow;
            }
            slot.conn = guess.unwrap_or(NONE);
        }
    }

    /// Tracks packet `i`: fills `view` and returns its state. The packet need not have been prepared.
    #[inline]
    pub fn ct(&mut self, view: &mut CtView, burst: &mut Burst, i: usize, point: &CtPoint, zone: u16) -> u32 {
        let i = i % BURST;
        let slot = &self.slots[i];
        let is_usual = point.flags & (CtPoint::FRESH | CtPoint::FORCE) == 0 && slot.zone == zone;
        if self.ready >> i & 1 == 0 || !is_usual {
            return self.ct_slowly(view, burst, i, point, zone);
        }
        match (slot.route, self.ct.shared) {
            (Route::Tcp, false) => self.ct_tcp::<false>(view, burst, i, point),
            (Route::Other, false) => self.ct_other::<false>(view, burst, i, point),
            (Route::Tcp, true) => self.ct_tcp::<true>(view, burst, i, point),
            (Route::Other, true) => self.ct_other::<true>(view, burst, i, point),
            (Route::Six, false) => self.ct_six::<false>(view, burst, i, point),
            (Route::Six, true) => self.ct_six::<true>(view, burst, i, point),
            (Route::Odd, _) => self.ct_odd(view, burst, i, point),
            (Route::Slow, _) => self.ct_slowly(view, burst, i, point, zone),
        }
    }

    /// [`Tracker::ct`] for a plain TCP segment over IPv4 with a guess.
    #[inline(never)]
    fn ct_tcp<const SHARED: bool>(&mut self, view: &mut CtView, burst: &Burst, i: usize, point: &CtPoint) -> u32 {
        let (slot, now_ns) = (&self.slots[i], self.now_ns);
        let expires = self.ct.config.timeouts.expiry(Timer::TcpEstablished, now_ns);
        let entry = self.ct.v4.entry(slot.conn);
        let visit = glance_tcp::<2, SHARED>(entry, &slot.parsed.key4, &slot.parsed, now_ns, expires);
        self.end_plain(view, burst, i, point, visit)
    }

    /// [`Tracker::ct`] for a plain packet of another protocol over IPv4 with a guess.
    #[inline(never)]
    fn ct_other<const SHARED: bool>(&mut self, view: &mut CtView, burst: &Burst, i: usize, point: &CtPoint) -> u32 {
        let (slot, now_ns) = (&self.slots[i], self.now_ns);
        let expires = self.ct.config.timeouts.expiry(Timer::OtherBoth, now_ns);
        let entry = self.ct.v4.entry(slot.conn);
        let visit = glance_other::<2, SHARED>(entry, &slot.parsed.key4, &slot.parsed, now_ns, expires);
        self.end_plain(view, burst, i, point, visit)
    }

    /// [`Tracker::ct`] for a plain IPv6 packet with a guess.
    #[inline(never)]
    fn ct_six<const SHARED: bool>(&mut self, view: &mut CtView, burst: &Burst, i: usize, point: &CtPoint) -> u32 {
        let (slot, key, now_ns) = (&self.slots[i], &self.keys6[i], self.now_ns);
        let is_tcp = slot.parsed.class == Class::Tcp;
        let timer = if is_tcp { Timer::TcpEstablished } else { Timer::OtherBoth };
        let expires = self.ct.config.timeouts.expiry(timer, now_ns);
        let entry = self.ct.v6.entry(slot.conn);
        let visit = if is_tcp {
            glance_tcp::<5, SHARED>(entry, key, &slot.parsed, now_ns, expires)
        } else {
            glance_other::<5, SHARED>(entry, key, &slot.parsed, now_ns, expires)
        };
        self.end_plain(view, burst, i, point, visit)
    }

    /// Shows what came of a glance at a guess; if nothing, goes on slowly.
    #[inline(always)]
    fn end_plain(&mut self, view: &mut CtView, burst: &Burst, i: usize, point: &CtPoint, visit: Option<Visit>) -> u32 {
        let slot = &mut self.slots[i];
        let Some(Visit::Seen(state, mark, labelled)) = visit else {
            return self.ct_slowly(view, burst, i, point, self.slots[i].zone);
        };
        slot.state = state;
        slot.route = Route::Slow;
        if labelled | (point.flags & CtPoint::COMMIT != 0) {
            // Its state is known now, so the long way only does what is left.
            return self.ct_slowly(view, burst, i, point, self.slots[i].zone);
        }
        *view = CtView { state, zone: u32::from(slot.zone), mark, reserved: 0, label: [0; 2] };
        state
    }

    /// [`Tracker::ct`] for any packet with a guess.
    #[inline(never)]
    fn ct_odd(&mut self, view: &mut CtView, burst: &Burst, i: usize, point: &CtPoint) -> u32 {
        let Tracker { ct, slots, keys6, .. } = self;
        let Slot { parsed, conn, .. } = &slots[i];
        let options = options(burst, i, parsed);
        let visit = if parsed.v6 {
            visit(ct, ct.v6.entry(*conn), &keys6[i], parsed, options, self.now_ns)
        } else {
            visit(ct, ct.v4.entry(*conn), &parsed.key4, parsed, options, self.now_ns)
        };
        self.end_plain(view, burst, i, point, Some(visit))
    }

    /// [`Tracker::ct`] for everything else.
    #[inline(never)]
    fn ct_slowly(&mut self, view: &mut CtView, burst: &Burst, i: usize, point: &CtPoint, zone: u16) -> u32 {
        self.settle(burst, i, point.flags & CtPoint::FRESH != 0, zone);
        let Tracker { ct, slots, keys6, local, .. } = self;
        let slot = &mut slots[i];
        let options = options(burst, i, &slot.parsed);
        let known = (slot.state != 0).then_some((slot.state, slot.conn));
        let ask = Ask { parsed: &slot.parsed, options, point, now_ns: self.now_ns };
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
        slot.route = Route::Slow;
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
        keys6[i] = key6;
        self.ready |= 1 << i;
        if !is_same {
            slot.state = 0;
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
