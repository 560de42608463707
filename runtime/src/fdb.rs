//! What a learning switch has learned: behind which port each address is, by VLAN.
//!
//! In go the source addresses of packets, out come the ports of destinations. Packets are not looked at here.
//!
//! **Layout.** A chained hash table over entries that never move. An entry's *value* is its port and when it was last seen, in
//! one word. [`Fdb::lookup`], and [`Fdb::learn`] of an address that is where it was, lock nothing: they walk a chain and read
//! that word; seeing an address again writes it at most once a second. A new address, one that moved, and one that was
//! forgotten change the table under one lock, which workers try for a while and then do without: the next packet from there
//! will learn it.
//!
//! **Age.** An entry that was not seen for the idle time does not count any more; its place is taken back when needed, or by
//! [`Fdb::sweep`].
//!
//! **Full.** A new address takes the place of the one not seen for longest *of the port with most addresses*, so that a port
//! that makes addresses up pushes out its own. Each port's entries are in a list in the order they came; an entry that has
//! been seen since it was put there goes to its end once more before another is evicted.
//!
//! **Readers during a change.** A version, odd while the table changes, is compared after a look-up that found nothing.

use core::fmt;
use std::sync::Mutex;

use crate::conntrack::hash::Secret;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, lock, spin_loop, try_lock};

/// Time between two writes for an address that stays where it is.
const REFRESH_NS: u64 = 1_000_000_000;
/// The end of a list.
const END: u32 = u32::MAX;
/// Steps in a chain, at most.
const CHAIN: usize = 64;
/// Entries of a port that get a second chance in one eviction, at most.
const CHANCES: usize = 16;

/// Addresses and their ports.
pub struct Fdb {
    idle_ns: u64,
    secret: Secret,
    heads: Box<[AtomicU32]>,
    entries: Box<[Entry]>,
    version: AtomicU32,
    writer: Mutex<Writer>,
}

struct Entry {
    /// VLAN and address; see [`key`].
    key: AtomicU64,
    value: AtomicU64,
    next: AtomicU32,
}

/// A port, and when it was last seen there, in units of 512 ns modulo 2^48: four years.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Value(u64);

impl Value {
    fn new(port: u16, now_ns: u64) -> Value {
        Value(u64::from(port) << 48 | now_ns >> 9 & 0xffff_ffff_ffff)
    }

    fn port(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Time since then; 0 if another worker's clock was ahead.
    fn age_ns(self, now_ns: u64) -> u64 {
        let units = ((now_ns >> 9).wrapping_sub(self.0) << 16) as i64 >> 16;
        (units.max(0) as u64) << 9
    }
}

/// What changes under the lock.
struct Writer {
    links: Box<[Link]>,
    ports: Vec<Port>,
    free: Vec<u32>,
    counts: Stats,
}

/// An entry's place in the list of its port.
#[derive(Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
    port: u16,
    /// The value when it was put there.
    placed: Value,
}

/// A port's entries, the one to be evicted first at the head.
#[derive(Clone, Copy)]
struct Port {
    head: u32,
    tail: u32,
    len: u32,
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Addresses in the table, expired ones included until they are taken back.
    pub current: usize,
    /// Addresses it can hold.
    pub max: usize,
    /// Addresses learned.
    pub learned: u64,
    /// Addresses forgotten for their age.
    pub expired: u64,
    /// Addresses that had to make room.
    pub evicted: u64,
    /// Addresses that went to another port.
    pub moved: u64,
}

/// One address. `{}` is a line of `ovs-appctl fdb/show`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dump {
    /// Port.
    pub port: u16,
    /// VLAN.
    pub vlan: u16,
    /// Address.
    pub mac: [u8; 6],
    /// Seconds since it was last seen, to the second.
    pub age_s: u64,
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.mac;
        let Dump { port, vlan, age_s, .. } = self;
        write!(f, "{port:5}  {vlan:4}  {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}  {age_s:3}")
    }
}

fn key(vlan: u16, mac: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = mac;
    let [high, low] = vlan.to_be_bytes();
    u64::from_be_bytes([high, low, a, b, c, d, e, f])
}

impl Fdb {
    /// A table for `max` addresses, forgotten after `idle_s` seconds.
    pub fn new(max: usize, idle_s: u32) -> Fdb {
        let max = max.clamp(1, 1 << 24);
        let nowhere = Link { before: END, after: END, port: 0, placed: Value(0) };
        Fdb {
            idle_ns: u64::from(idle_s) * 1_000_000_000,
            secret: Secret::new(None),
            heads: (0..(2 * max).next_power_of_two()).map(|_| AtomicU32::new(END)).collect(),
            entries: (0..max)
                .map(|_| Entry { key: AtomicU64::new(0), value: AtomicU64::new(0), next: AtomicU32::new(END) })
                .collect(),
            version: AtomicU32::new(0),
            writer: Mutex::new(Writer {
                links: vec![nowhere; max].into_boxed_slice(),
                ports: Vec::new(),
                free: (0..max as u32).rev().collect(),
                counts: Stats { max, ..Stats::default() },
            }),
        }
    }

    /// Remembers that `mac` is behind `port`. Group addresses are nobody's and are not learned.
    #[inline]
    pub fn learn(&self, vlan: u16, mac: [u8; 6], port: u16, now_ns: u64) {
        if mac[0] & 1 != 0 {
            return;
        }
        let key = key(vlan, mac);
        let head = self.head(key);
        if let Some((entry, value)) = self.find(head, key)
            && value.port() == port
        {
            let age_ns = value.age_ns(now_ns);
            if age_ns < REFRESH_NS.min(self.idle_ns) {
                return;
            }
            if age_ns < self.idle_ns {
                // Whoever changed it meanwhile knows better.
                let new = Value::new(port, now_ns);
                let value_of = &self.entries[entry as usize].value;
                let _ = value_of.compare_exchange(value.0, new.0, Ordering::Release, Ordering::Relaxed);
                return;
            }
        }
        self.learn_slowly(head, key, port, now_ns);
    }

    /// The port that `mac` is behind.
    #[inline]
    pub fn lookup(&self, vlan: u16, mac: [u8; 6], now_ns: u64) -> Option<u16> {
        let key = key(vlan, mac);
        let (_, value) = self.find(self.head(key), key)?;
        (value.age_ns(now_ns) < self.idle_ns).then(|| value.port())
    }

    /// Forgets everything.
    pub fn flush(&self) {
        self.change(&mut lock(&self.writer), |fdb, writer| {
            for port in 0..writer.ports.len() {
                while let Some(entry) = writer.first_of(port as u16) {
                    fdb.forget(writer, entry);
                }
            }
        });
    }

    /// Takes back the places of addresses that have expired; returns how many.
    pub fn sweep(&self, now_ns: u64) -> usize {
        self.change(&mut lock(&self.writer), |fdb, writer| {
            let all: Vec<u32> = (0..writer.ports.len() as u16).flat_map(|port| writer.of_port(port)).collect();
            let expired: Vec<u32> = all.into_iter().filter(|&entry| fdb.is_expired(entry, now_ns)).collect();
            expired.iter().for_each(|&entry| fdb.forget(writer, entry));
            writer.counts.expired += expired.len() as u64;
            expired.len()
        })
    }

    /// All addresses that have not expired, by port, VLAN and address.
    pub fn dump(&self, now_ns: u64) -> Vec<Dump> {
        let writer = lock(&self.writer);
        let mut dumps: Vec<Dump> = (0..writer.ports.len() as u16)
            .flat_map(|port| writer.of_port(port))
            .filter(|&entry| !self.is_expired(entry, now_ns))
            .map(|entry| {
                let [high, low, a, b, c, d, e, f] =
                    self.entries[entry as usize].key.load(Ordering::Relaxed).to_be_bytes();
                let value = self.value(entry);
                Dump {
                    port: value.port(),
                    vlan: u16::from_be_bytes([high, low]),
                    mac: [a, b, c, d, e, f],
                    age_s: value.age_ns(now_ns) / 1_000_000_000,
                }
            })
            .collect();
        dumps.sort();
        dumps
    }

    /// Counts since the start.
    pub fn stats(&self) -> Stats {
        let writer = lock(&self.writer);
        Stats { current: self.entries.len() - writer.free.len(), ..writer.counts }
    }

    #[inline]
    fn head(&self, key: u64) -> &AtomicU32 {
        &self.heads[self.secret.hash(&[key, 0]) as usize & (self.heads.len() - 1)]
    }

    fn value(&self, entry: u32) -> Value {
        Value(self.entries[entry as usize].value.load(Ordering::Acquire))
    }

    fn is_expired(&self, entry: u32, now_ns: u64) -> bool {
        self.value(entry).age_ns(now_ns) >= self.idle_ns
    }

    /// The entry with this key, and its value.
    #[inline]
    fn find(&self, head: &AtomicU32, key: u64) -> Option<(u32, Value)> {
        for _ in 0..3 {
            let version = self.version.load(Ordering::Acquire);
            let found = self.find_in(head, key);
            if found.is_some() {
                return found;
            }
            fence(Ordering::Acquire);
            if version & 1 == 0 && self.version.load(Ordering::Relaxed) == version {
                break;
            }
            spin_loop();
        }
        None
    }

    #[inline]
    fn find_in(&self, head: &AtomicU32, key: u64) -> Option<(u32, Value)> {
        let mut at = head.load(Ordering::Acquire);
        for _ in 0..CHAIN {
            let entry = self.entries.get(at as usize)?;
            if entry.key.load(Ordering::Acquire) == key {
                let value = entry.value.load(Ordering::Acquire);
                // A place that was given to another address meanwhile has another key, or had another value.
                if entry.key.load(Ordering::Relaxed) == key {
                    return Some((at, Value(value)));
                }
            }
            at = entry.next.load(Ordering::Acquire);
        }
        None
    }

    /// Runs `act` while the version is odd.
    fn change<R>(&self, writer: &mut Writer, act: impl FnOnce(&Fdb, &mut Writer) -> R) -> R {
        self.version.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::Release);
        let result = act(self, writer);
        self.version.fetch_add(1, Ordering::Release);
        result
    }

    #[cold]
    #[inline(never)]
    fn learn_slowly(&self, head: &AtomicU32, key: u64, port: u16, now_ns: u64) {
        let Some(mut writer) = try_lock(&self.writer) else {
            return;
        };
        let new = Value::new(port, now_ns);
        self.change(&mut writer, |fdb, writer| match fdb.find_in(head, key) {
            Some((entry, old)) => {
                if old.age_ns(now_ns) >= fdb.idle_ns {
                    writer.counts.expired += 1;
                    writer.counts.learned += 1;
                } else if old.port() != port {
                    writer.counts.moved += 1;
                }
                writer.unlink(entry);
                writer.append(entry, port, new);
                fdb.entries[entry as usize].value.store(new.0, Ordering::Release);
            }
            None => {
                let entry = fdb.make_room(writer, now_ns);
                let place = &fdb.entries[entry as usize];
                place.value.store(new.0, Ordering::Release);
                place.key.store(key, Ordering::Release);
                place.next.store(head.load(Ordering::Relaxed), Ordering::Release);
                head.store(entry, Ordering::Release);
                writer.append(entry, port, new);
                writer.counts.learned += 1;
            }
        });
    }

    /// A free place, if need be of an address that has expired or is evicted.
    fn make_room(&self, writer: &mut Writer, now_ns: u64) -> u32 {
        if writer.free.is_empty() {
            let oldest = (0..writer.ports.len() as u16).filter_map(|port| writer.first_of(port));
            let expired: Option<u32> = oldest.into_iter().find(|&entry| self.is_expired(entry, now_ns));
            match expired {
                Some(entry) => {
                    writer.counts.expired += 1;
                    self.forget(writer, entry);
                }
                None => {
                    writer.counts.evicted += 1;
                    let entry = self.choose_victim(writer);
                    self.forget(writer, entry);
                }
            }
        }
        writer.free.pop().unwrap_or(0)
    }

    /// The address not seen for longest, or nearly so, of the port with most.
    fn choose_victim(&self, writer: &mut Writer) -> u32 {
        let most = (0..writer.ports.len()).max_by_key(|&port| writer.ports[port].len).unwrap_or(0) as u16;
        for _ in 0..CHANCES {
            let entry = writer.ports[usize::from(most)].head;
            let value = self.value(entry);
            if value == writer.links[entry as usize].placed {
                return entry;
            }
            writer.unlink(entry);
            writer.append(entry, most, value);
        }
        writer.ports[usize::from(most)].head
    }

    /// Takes an address out of the table.
    fn forget(&self, writer: &mut Writer, entry: u32) {
        let place = &self.entries[entry as usize];
        let mut link = self.head(place.key.load(Ordering::Relaxed));
        while link.load(Ordering::Relaxed) != entry {
            link = &self.entries[link.load(Ordering::Relaxed) as usize].next;
        }
        link.store(place.next.load(Ordering::Relaxed), Ordering::Release);
        writer.unlink(entry);
        writer.free.push(entry);
    }
}

impl Writer {
    fn first_of(&self, port: u16) -> Option<u32> {
        self.ports.get(usize::from(port)).map(|port| port.head).filter(|&entry| entry != END)
    }

    fn of_port(&self, port: u16) -> impl Iterator<Item = u32> {
        let next = |&entry: &u32| Some(self.links[entry as usize].after).filter(|&after| after != END);
        core::iter::successors(self.first_of(port), next)
    }

    fn unlink(&mut self, entry: u32) {
        let Link { before, after, port, .. } = self.links[entry as usize];
        let port = &mut self.ports[usize::from(port)];
        port.len -= 1;
        match self.links.get_mut(before as usize) {
            Some(link) => link.after = after,
            None => port.head = after,
        }
        match self.links.get_mut(after as usize) {
            Some(link) => link.before = before,
            None => port.tail = before,
        }
    }

    fn append(&mut self, entry: u32, port: u16, placed: Value) {
        let number = usize::from(port);
        if number >= self.ports.len() {
            self.ports.resize(number + 1, Port { head: END, tail: END, len: 0 });
        }
        let list = &mut self.ports[number];
        self.links[entry as usize] = Link { before: list.tail, after: END, port, placed };
        match self.links.get_mut(list.tail as usize) {
            Some(link) => link.after = entry,
            None => list.head = entry,
        }
        list.tail = entry;
        list.len += 1;
    }
}

/// Whether a switch keeps frames to this address to itself: those of 802.1D and of some vendors' link protocols.
pub fn is_reserved(mac: &[u8; 6]) -> bool {
    match *mac {
        [0x01, 0x80, 0xc2, 0x00, 0x00, last] => last < 0x10,
        // Extreme: EDP, EAPS.
        [0x00, 0xe0, 0x2b, 0x00, 0x00, last] => matches!(last, 0x00 | 0x04 | 0x06),
        // Cisco: ISL; CFM, CDP and its like, PVST+; STP Uplink Fast.
        [0x01, 0x00, 0x0c, 0x00, 0x00, 0x00] | [0x01, 0x00, 0x0c, 0xcd, 0xcd, 0xcd] => true,
        [0x01, 0x00, 0x0c, 0xcc, 0xcc, last] => matches!(last, 0xc0..=0xc7 | 0xcc | 0xcd),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
