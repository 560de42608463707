//! A packet meets an entry: what the entry says to it, and what the packet changes in the entry.
//!
//! In go an entry that is probably the packet's and the packet's key; out comes a [`Visit`]. The entry is changed only if the
//! packet is accepted. Finding, making and ending entries happens elsewhere.

use pipec_abi::CtPoint;
use pipec_abi::ct::state::{EST, NEW, REL, RPL, TRK};

use super::Conntrack;
use super::entry::{Entry, ctl, has_label, has_replied, is_reply};
use super::local::Tracked;
use super::other::{self, Timer, seen};
use super::parse::{Class, Parsed};
use super::table::Table;
use super::tcp::{self, Outcome};

/// What an entry says to a packet.
pub enum Visit {
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

/// Shows a packet to an entry.
pub fn visit<const K: usize>(
    ct: &Conntrack,
    entry: &Entry<K>,
    key: &[u64; K],
    parsed: &Parsed,
    options: &[u8],
    now_ns: u64,
) -> Visit {
    match parsed.class {
        Class::Tcp => visit_tcp(ct, entry, key, parsed, options, now_ns),
        Class::Error => visit_error(ct, entry, key, parsed, now_ns),
        _ => visit_other(ct, entry, key, parsed, now_ns),
    }
}

/// `est` takes a packet in each direction (D3).
#[inline(always)]
fn state_of(replied: bool, reply: bool) -> u32 {
    (if replied { EST | TRK } else { NEW | TRK }) | if replied & reply { RPL } else { 0 }
}

/// Shows a TCP segment to an entry, if it is one of most: nothing if it is not, or the entry is not its own.
#[inline(always)]
pub fn glance_tcp<const K: usize, const SHARED: bool>(
    entry: &Entry<K>,
    key: &[u64; K],
    parsed: &Parsed,
    now_ns: u64,
    expires: u64,
) -> Option<Visit> {
    let ctl = entry.enter(SHARED, key)?;
    let old = entry.tcp(parsed.swapped);
    let new = tcp::update_established(old, &parsed.segment).filter(|_| now_ns < entry.expires());
    let Some(new) = new else {
        entry.leave(SHARED, ctl, 0);
        return None;
    };
    let reply = is_reply(ctl, parsed.swapped);
    let replied = reply | has_replied(ctl);
    entry.set_tcp(parsed.swapped, new);
    entry.set_expires(expires);
    let seen = Visit::Seen(state_of(replied, reply), entry.mark(), has_label(ctl));
    entry.leave(SHARED, ctl, if replied { ctl::REPLIED } else { 0 });
    Some(seen)
}

/// Shows a TCP segment to an entry.
fn visit_tcp<const K: usize>(
    ct: &Conntrack,
    entry: &Entry<K>,
    key: &[u64; K],
    parsed: &Parsed,
    options: &[u8],
    now_ns: u64,
) -> Visit {
    let Some(ctl) = entry.enter(ct.shared, key) else {
        return Visit::Gone;
    };
    let (bits, visit) = meet_tcp(ct, entry, ctl, parsed, options, now_ns);
    entry.leave(ct.shared, ctl, bits);
    visit
}

fn meet_tcp<const K: usize>(
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
    let reply = is_reply(ctl, parsed.swapped);
    let replied = reply | has_replied(ctl);
    let old = entry.tcp(parsed.swapped);
    let (pair, outcome) = tcp::update(tcp::Pair::unpack(old), &parsed.segment, options, ct.config.seq_check);
    let (state, timer) = match outcome {
        Outcome::Valid(timer) => (state_of(replied, reply), timer),
        Outcome::Opening => (NEW | TRK, Some(Timer::TcpFirst)),
        Outcome::Reuse => return (0, Visit::Reuse),
        Outcome::Outside => return (0, Visit::Outside),
    };
    entry.set_tcp(parsed.swapped, pair.pack());
    if let Some(timer) = timer {
        entry.set_expires(ct.config.timeouts.expiry(timer, now_ns));
    }
    (if replied { ctl::REPLIED } else { 0 }, Visit::Seen(state, entry.mark(), has_label(ctl)))
}

/// Shows a packet of a protocol without a state machine to an entry, if it is one of most: the entry is established. Nothing
/// if it is not, or is not the packet's own.
#[inline(always)]
pub fn glance_other<const K: usize, const SHARED: bool>(
    entry: &Entry<K>,
    key: &[u64; K],
    parsed: &Parsed,
    now_ns: u64,
    expires: u64,
) -> Option<Visit> {
    let seen = |ctl| {
        let is_usual = has_replied(ctl) & (now_ns < entry.expires());
        is_usual.then(|| Visit::Seen(state_of(true, is_reply(ctl, parsed.swapped)), entry.mark(), has_label(ctl)))
    };
    let is_due = !SHARED || !entry.ends_about(expires);
    if !is_due {
        // Workers that share an entry write to it once a millisecond, not with every packet.
        return entry.look(SHARED, key, seen)?;
    }
    let ctl = entry.enter(SHARED, key)?;
    let seen = seen(ctl);
    if seen.is_some() {
        entry.set_expires(expires);
    }
    entry.leave(SHARED, ctl, 0);
    seen
}

/// Shows a packet of a protocol without a state machine to an entry.
fn visit_other<const K: usize>(
    ct: &Conntrack,
    entry: &Entry<K>,
    key: &[u64; K],
    parsed: &Parsed,
    now_ns: u64,
) -> Visit {
    let Some(ctl) = entry.enter(ct.shared, key) else {
        return Visit::Gone;
    };
    let (bits, visit) = meet_other(ct, entry, ctl, parsed, now_ns);
    entry.leave(ct.shared, ctl, bits);
    visit
}

fn meet_other<const K: usize>(
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
    let old = if has_replied(ctl) { seen::BOTH } else { entry.rest() };
    let (state, timer) = other::update(old, parsed.class != Class::Other, reply);
    if state != old {
        entry.set_rest(state);
    }
    entry.set_expires(ct.config.timeouts.expiry(timer, now_ns));
    let replied = state == seen::BOTH;
    (if replied { ctl::REPLIED } else { 0 }, Visit::Seen(state_of(replied, reply), entry.mark(), has_label(ctl)))
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
pub fn decorate<const K: usize>(
    ct: &Conntrack,
    table: &Table<K>,
    key: &[u64; K],
    tracked: Tracked,
    point: &CtPoint,
) -> Tracked {
    if point.mark_mask == 0 && point.label_mask == [0; 2] {
        return tracked;
    }
    decorate_indeed(ct, table, key, tracked, point)
}

#[inline(never)]
fn decorate_indeed<const K: usize>(
    ct: &Conntrack,
    table: &Table<K>,
    key: &[u64; K],
    tracked: Tracked,
    point: &CtPoint,
) -> Tracked {
    let entry = table.entry(tracked.conn);
    let mix = |old: u64, new: u64, mask: u64| old & !mask | new & mask;
    let Some(ctl) = entry.enter(ct.shared, key) else {
        return tracked;
    };
    let mark = mix(entry.mark().into(), point.mark.into(), point.mark_mask.into()) as u32;
    entry.set_mark(mark);
    let mut bits = 0;
    if point.label_mask != [0; 2] {
        let old = if has_label(ctl) { table.label(tracked.conn) } else { [0; 2] };
        table.set_label(tracked.conn, [0, 1].map(|half| mix(old[half], point.label[half], point.label_mask[half])));
        bits = ctl::LABELLED;
    }
    entry.leave(ct.shared, ctl, bits);
    Tracked { mark, labelled: has_label(ctl | bits), ..tracked }
}
