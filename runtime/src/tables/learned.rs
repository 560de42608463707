//! A table that packets write: exact keys, of fixed capacity, shared by workers.
//!
//! **Layout.** A chained hash table over entries that never move. An entry is its key, its action, its arguments and two times,
//! all words; a number that is odd while it is written tells a reader that it must read again. Look-ups, and learning what is
//! known already, lock nothing. A new entry, or another content, is written under one lock, which a worker tries for a while
//! and then does without: that is counted, and the packet goes on.
//!
//! **Time.** An entry whose time is over does not count; its place is taken back when one is needed, or by a sweep. A few
//! places are looked at for each entry that needs one, so that a full table costs no more than another.
//!
//! **Readers during a change.** A version, odd while chains change, is compared after a look-up that found nothing.

use std::sync::Mutex;

use pipec_abi::Counter;
use pipec_abi::table::Shape;

use super::GRAIN_NS;
use crate::conntrack::hash::Secret;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, lock, spin_loop, try_lock};

/// The end of a chain.
const END: u32 = u32::MAX;
/// Steps in a chain, at most.
const CHAIN: usize = 64;
/// Places that are looked at for one whose time is over.
const CHANCES: usize = 16;

/// A table that packets write.
pub struct Learned {
    key_words: usize,
    arg_words: usize,
    idle_ns: u64,
    hard_ns: u64,
    secret: Secret,
    heads: Box<[AtomicU32]>,
    entries: Box<[Place]>,
    /// For each entry its key, then its arguments.
    words: Box<[AtomicU64]>,
    version: AtomicU32,
    writer: Mutex<Writer>,
    full: AtomicU64,
    busy: AtomicU64,
}

#[derive(Default)]
struct Place {
    /// Odd while it is written.
    seq: AtomicU32,
    next: AtomicU32,
    action: AtomicU64,
    put_in: AtomicU64,
    used: AtomicU64,
    /// What was counted at the place before the entry came.
    packets: AtomicU64,
    bytes: AtomicU64,
}

struct Writer {
    free: Vec<u32>,
    taken: Box<[bool]>,
    /// The place to look at next for one whose time is over.
    hand: u32,
    learned: u64,
    expired: u64,
}

/// What happened in a table that packets write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LearnedStats {
    /// Entries, with those whose time is over until their places are taken back.
    pub entries: usize,
    /// Entries that packets made.
    pub learned: u64,
    /// Entries whose time was over.
    pub expired: u64,
    /// Times that the table was full.
    pub full: u64,
    /// Times that others were writing.
    pub busy: u64,
}

/// An entry: place, key, action, arguments, what was counted before.
pub type Raw = (u32, Vec<u64>, u16, Vec<u64>, Counter);

impl Learned {
    /// An empty table.
    pub fn new(shape: &Shape) -> Learned {
        let size = shape.size as usize;
        let (key_words, arg_words) = (shape.words(), usize::from(shape.args));
        Learned {
            key_words,
            arg_words,
            idle_ns: shape.idle_ns,
            hard_ns: shape.hard_ns,
            secret: Secret::new(None),
            heads: (0..(2 * size).next_power_of_two()).map(|_| AtomicU32::new(END)).collect(),
            entries: (0..size).map(|_| Place::default()).collect(),
            words: (0..size * (key_words + arg_words)).map(|_| AtomicU64::new(0)).collect(),
            version: AtomicU32::new(0),
            writer: Mutex::new(Writer {
                free: (0..shape.size).rev().collect(),
                taken: vec![false; size].into(),
                hand: 0,
                learned: 0,
                expired: 0,
            }),
            full: AtomicU64::new(0),
            busy: AtomicU64::new(0),
        }
    }

    /// Puts what a key finds into `row`: action and place, then arguments. How many words; 0 if there is none.
    pub fn find(&self, key: &[u64], now_ns: u64, row: &mut [u64]) -> usize {
        let Some((slot, action)) = self.look(key, &mut row[1..]) else { return 0 };
        let place = &self.entries[slot as usize];
        if self.is_over(place, now_ns) {
            return 0;
        }
        if now_ns.saturating_sub(place.used.load(Ordering::Relaxed)) >= GRAIN_NS {
            place.used.store(now_ns, Ordering::Relaxed);
        }
        row[0] = action << 32 | u64::from(slot);
        1 + self.arg_words
    }

    /// Makes an entry, or puts another content into the one with this key. `counted` says what was counted at a
    /// place, unless others are at it.
    pub fn learn(&self, key: &[u64], now_ns: u64, action: u16, args: &[u64], counted: impl Fn(u32) -> Option<Counter>) {
        let mut known = [0; pipec_abi::table::MAX_ARGS];
        if let Some((slot, old)) = self.look(key, &mut known) {
            let place = &self.entries[slot as usize];
            if old == u64::from(action) && known[..args.len()] == *args && !self.is_over(place, now_ns) {
                if now_ns.saturating_sub(place.put_in.load(Ordering::Relaxed)) >= GRAIN_NS {
                    place.put_in.store(now_ns, Ordering::Relaxed);
                    place.used.store(now_ns, Ordering::Relaxed);
                }
                return;
            }
        }
        self.learn_slowly(key, now_ns, action, args, counted);
    }

    #[cold]
    #[inline(never)]
    fn learn_slowly(
        &self,
        key: &[u64],
        now_ns: u64,
        action: u16,
        args: &[u64],
        counted: impl Fn(u32) -> Option<Counter>,
    ) {
        let Some(mut writer) = try_lock(&self.writer) else {
            self.busy.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let head = self.head(key);
        let known = self.chain(head).find(|slot| self.key_is(*slot, key));
        let slot = match known {
            Some(slot) if self.is_over(&self.entries[slot as usize], now_ns) => {
                writer.expired += 1;
                writer.learned += 1;
                slot
            }
            Some(slot) => return self.write(slot, None, now_ns, action, args, None),
            None => match self.make_room(&mut writer, now_ns) {
                Some(slot) => slot,
                None => {
                    self.full.fetch_add(1, Ordering::Relaxed);
                    return;
                }
            },
        };
        let Some(before) = counted(slot) else {
            if known.is_none() {
                writer.free.push(slot);
            }
            self.busy.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if known.is_some() {
            return self.write(slot, None, now_ns, action, args, Some(before));
        }
        writer.learned += 1;
        writer.taken[slot as usize] = true;
        self.write(slot, Some(key), now_ns, action, args, Some(before));
        self.change(|| {
            self.entries[slot as usize].next.store(head.load(Ordering::Relaxed), Ordering::Release);
            head.store(slot, Ordering::Release);
        });
    }

    /// Writes an entry so that no reader takes half of it.
    fn write(&self, slot: u32, key: Option<&[u64]>, now_ns: u64, action: u16, args: &[u64], before: Option<Counter>) {
        let place = &self.entries[slot as usize];
        place.seq.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::Release);
        let words = self.words_of(slot);
        for (to, from) in words.iter().zip(key.unwrap_or(&[])) {
            to.store(*from, Ordering::Relaxed);
        }
        let args = args.iter().copied().chain(core::iter::repeat(0));
        for (to, from) in words[self.key_words..].iter().zip(args) {
            to.store(from, Ordering::Relaxed);
        }
        place.action.store(u64::from(action), Ordering::Relaxed);
        place.put_in.store(now_ns, Ordering::Relaxed);
        place.used.store(now_ns, Ordering::Relaxed);
        if let Some(before) = before {
            place.packets.store(before.packets, Ordering::Relaxed);
            place.bytes.store(before.bytes, Ordering::Relaxed);
        }
        place.seq.fetch_add(1, Ordering::Release);
    }

    /// A free place, if need be of an entry whose time is over.
    fn make_room(&self, writer: &mut Writer, now_ns: u64) -> Option<u32> {
        if writer.free.is_empty() {
            for _ in 0..CHANCES.min(self.entries.len()) {
                let slot = writer.hand;
                writer.hand = (slot + 1) % self.entries.len() as u32;
                if writer.taken[slot as usize] && self.is_over(&self.entries[slot as usize], now_ns) {
                    self.forget(writer, slot);
                    writer.expired += 1;
                    break;
                }
            }
        }
        writer.free.pop()
    }

    /// Takes back the places of entries whose time is over.
    pub fn sweep(&self, now_ns: u64) {
        if self.idle_ns == 0 && self.hard_ns == 0 {
            return;
        }
        let mut writer = lock(&self.writer);
        for slot in 0..self.entries.len() as u32 {
            if writer.taken[slot as usize] && self.is_over(&self.entries[slot as usize], now_ns) {
                self.forget(&mut writer, slot);
                writer.expired += 1;
            }
        }
    }

    /// Takes the entry with this key out; whether there was one.
    pub fn remove(&self, key: &[u64]) -> bool {
        let mut writer = lock(&self.writer);
        let known = self.chain(self.head(key)).find(|slot| self.key_is(*slot, key));
        if let Some(slot) = known {
            self.forget(&mut writer, slot);
        }
        known.is_some()
    }

    /// All entries whose time is not over.
    pub fn list(&self, now_ns: u64) -> Vec<Raw> {
        let writer = lock(&self.writer);
        let slots = (0..self.entries.len() as u32).filter(|slot| writer.taken[*slot as usize]);
        let alive = slots.filter(|slot| !self.is_over(&self.entries[*slot as usize], now_ns));
        let raw = alive.map(|slot| {
            let place = &self.entries[slot as usize];
            let mut key: Vec<u64> = self.words_of(slot).iter().map(|word| word.load(Ordering::Relaxed)).collect();
            let args = key.split_off(self.key_words);
            let packets = place.packets.load(Ordering::Relaxed);
            let before = Counter { packets, bytes: place.bytes.load(Ordering::Relaxed) };
            (slot, key, place.action.load(Ordering::Relaxed) as u16, args, before)
        });
        raw.collect()
    }

    /// Counts since the start.
    pub fn stats(&self) -> LearnedStats {
        let writer = lock(&self.writer);
        LearnedStats {
            entries: self.entries.len() - writer.free.len(),
            learned: writer.learned,
            expired: writer.expired,
            full: self.full.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
        }
    }

    fn head(&self, key: &[u64]) -> &AtomicU32 {
        &self.heads[self.secret.hash_words(key) as usize & (self.heads.len() - 1)]
    }

    fn words_of(&self, slot: u32) -> &[AtomicU64] {
        let stride = self.key_words + self.arg_words;
        &self.words[slot as usize * stride..(slot as usize + 1) * stride]
    }

    fn is_over(&self, place: &Place, now_ns: u64) -> bool {
        let over =
            |from: &AtomicU64, after: u64| after > 0 && now_ns.saturating_sub(from.load(Ordering::Relaxed)) >= after;
        over(&place.used, self.idle_ns) || over(&place.put_in, self.hard_ns)
    }

    /// The entry with this key: its place and action, and its arguments into `args`.
    fn look(&self, key: &[u64], args: &mut [u64]) -> Option<(u32, u64)> {
        let head = self.head(key);
        for _ in 0..3 {
            let version = self.version.load(Ordering::Acquire);
            let mut torn = false;
            for slot in self.chain(head) {
                match self.read(slot, key, args) {
                    Some(Some(action)) => return Some((slot, action)),
                    Some(None) => {}
                    None => torn = true,
                }
            }
            fence(Ordering::Acquire);
            if !torn && version & 1 == 0 && self.version.load(Ordering::Relaxed) == version {
                break;
            }
            spin_loop();
        }
        None
    }

    /// An entry's action, and its arguments, if it has this key; nothing if it was being written.
    fn read(&self, slot: u32, key: &[u64], args: &mut [u64]) -> Option<Option<u64>> {
        let place = &self.entries[slot as usize];
        let seq = place.seq.load(Ordering::Acquire);
        let same = self.key_is(slot, key);
        let action = place.action.load(Ordering::Relaxed);
        if same {
            for (to, from) in args.iter_mut().zip(&self.words_of(slot)[self.key_words..]) {
                *to = from.load(Ordering::Relaxed);
            }
        }
        fence(Ordering::Acquire);
        let whole = seq & 1 == 0 && place.seq.load(Ordering::Relaxed) == seq;
        whole.then_some(same.then_some(action))
    }

    fn key_is(&self, slot: u32, key: &[u64]) -> bool {
        let words = &self.words_of(slot)[..self.key_words];
        words.iter().zip(key).all(|(word, key)| word.load(Ordering::Relaxed) == *key)
    }

    fn chain(&self, head: &AtomicU32) -> impl Iterator<Item = u32> {
        let mut at = head.load(Ordering::Acquire);
        let step = move || {
            let slot = at;
            at = self.entries.get(slot as usize)?.next.load(Ordering::Acquire);
            Some(slot)
        };
        core::iter::from_fn(step).take(CHAIN)
    }

    /// Takes an entry out.
    fn forget(&self, writer: &mut Writer, slot: u32) {
        let mut key = [0; pipec_abi::table::MAX_WORDS];
        for (to, from) in key.iter_mut().zip(&self.words_of(slot)[..self.key_words]) {
            *to = from.load(Ordering::Relaxed);
        }
        self.change(|| {
            let mut link = self.head(&key[..self.key_words]);
            while link.load(Ordering::Relaxed) != slot {
                let Some(next) = self.entries.get(link.load(Ordering::Relaxed) as usize) else { return };
                link = &next.next;
            }
            link.store(self.entries[slot as usize].next.load(Ordering::Relaxed), Ordering::Release);
        });
        writer.taken[slot as usize] = false;
        writer.free.push(slot);
    }

    /// Runs `act` while the version is odd.
    fn change(&self, act: impl FnOnce()) {
        self.version.fetch_add(1, Ordering::AcqRel);
        fence(Ordering::Release);
        act();
        self.version.fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use pipec_abi::table::{MatchKind, Part};

    use super::*;

    fn table(size: u32, idle_ns: u64) -> Learned {
        Learned::new(&Shape {
            parts: vec![Part { width: 64, kind: MatchKind::Exact }],
            args: 2,
            size,
            idle_ns,
            hard_ns: 0,
            timed_entries: false,
            learned: true,
        })
    }

    fn learn(table: &Learned, key: u64, now_ns: u64, value: u64) {
        table.learn(&[key], now_ns, 1, &[value, !value], |_| Some(Counter::default()));
    }

    fn find(table: &Learned, key: u64, now_ns: u64) -> Option<u64> {
        let mut row = [0; 3];
        (table.find(&[key], now_ns, &mut row) > 0).then(|| {
            assert_eq!((row[0] >> 32, row[1]), (1, !row[2]), "all of an entry");
            row[1]
        })
    }

    #[test]
    fn what_is_learned_is_found_until_its_time_is_over() {
        let table = table(3, 10 * GRAIN_NS);
        (0..3).for_each(|key| learn(&table, key, 0, key + 7));
        learn(&table, 3, GRAIN_NS, 1);
        assert_eq!((find(&table, 3, GRAIN_NS), table.stats().full), (None, 1));
        assert_eq!(find(&table, 2, 9 * GRAIN_NS), Some(9));
        learn(&table, 3, 12 * GRAIN_NS, 5);
        assert_eq!(find(&table, 3, 12 * GRAIN_NS), Some(5), "in the place of one whose time was over");
        assert_eq!((find(&table, 0, 12 * GRAIN_NS), find(&table, 2, 12 * GRAIN_NS)), (None, Some(9)));
        learn(&table, 2, 13 * GRAIN_NS, 11);
        assert_eq!(find(&table, 2, 13 * GRAIN_NS), Some(11));
        table.sweep(100 * GRAIN_NS);
        let LearnedStats { entries, learned, expired, .. } = table.stats();
        assert_eq!((entries, learned, expired), (0, 4, 4));
    }

    #[test]
    fn readers_never_see_half_an_entry() {
        let table = table(16, 0);
        std::thread::scope(|scope| {
            for writer in 0..2u64 {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..20_000u64 {
                        learn(table, round % 20, 0, round << 8 | writer);
                        if round % 7 == 0 {
                            table.remove(&[round % 16]);
                        }
                    }
                });
            }
            for _ in 0..4_000 {
                for key in 0..20 {
                    let _ = find(&table, key, 0); // it asserts that it finds all of an entry
                }
            }
        });
        assert!(table.stats().entries <= 16);
    }
}
