//! An open table: entries that the program does not know when it is compiled.
//!
//! Its code depends on its [`Shape`] alone. An entry wants something of each part of the key, and gives an action's number and
//! arguments. Entries are tried by priority, the highest first, then by the length of their prefix, the longest first, then in
//! the order they were put in.
//!
//! ```text
//! mod        the table as packets see it
//! editor     the table as who changes it sees it; one thread at a time
//! rows       what entries give
//! exact      all parts exact: a hash table, changed in place
//! prefixes   one part, a prefix: a trie, changed in place
//! layers     all else: what was built, what has come and what has gone since
//! ```
//!
//! A change in place is one store, after which look-ups see the new entry and before which they see the old; all else is a new
//! [`Open`] over the same memory, put into a new root. Memory that is left is used again when no reader can be in it.

mod editor;
mod exact;
mod layers;
mod prefixes;
mod rows;

use std::sync::Arc;

use super::shape::{KeyMatch, MatchKind, Part, Shape, ones};
use super::{Hash, Kind, MISS, Table};
pub use editor::{Change, Editor};
use layers::Layers;
pub use layers::{Layer, OVERLAY, Task};
pub use prefixes::Prefixes as OpenPrefixes;
pub use rows::{Row, Rows};

/// An entry of an open table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenEntry {
    /// Its number among the table's entries as long as it lives: where it is counted.
    pub slot: u32,
    /// Higher first.
    pub priority: u32,
    /// What it wants of each part of the key.
    pub key: Vec<KeyMatch>,
    /// Which action of the table.
    pub action: u16,
    /// Its arguments, as words: two for one wider than 64 bits, the high one first.
    pub args: Vec<u64>,
    /// Not used for so long it is gone; 0: never.
    pub idle_ns: u64,
    /// Gone after so long; 0: never.
    pub hard_ns: u64,
}

impl OpenEntry {
    /// Bits of its prefixes.
    fn prefix(&self, shape: &Shape) -> u32 {
        let lpm = shape.parts.iter().zip(&self.key).filter(|(part, _)| part.kind == MatchKind::Lpm);
        lpm.map(|(_, want)| if let KeyMatch::Masked { mask, .. } = want { mask.count_ones() } else { 0 }).sum()
    }

    /// Whether it wants a key.
    pub fn holds(&self, key: &[u128]) -> bool {
        self.key.iter().zip(key).all(|(want, key)| want.holds(*key))
    }

    /// What a look-up that finds it gives: its action above 32 bits, its slot below.
    pub fn found(&self) -> u64 {
        u64::from(self.action) << 32 | u64::from(self.slot)
    }
}

/// An open table as packets see it.
#[derive(Clone, Debug)]
pub struct Open {
    shape: Arc<Shape>,
    rows: Arc<Rows>,
    find: Find,
}

/// What finds an entry's row.
#[derive(Clone, Debug)]
enum Find {
    /// The `Env` has the entries.
    Nothing,
    Exact(Arc<Hash>),
    Prefixes(Arc<OpenPrefixes>),
    Layers(Layers),
}

/// The structure that an open table's entries are found by.
#[derive(Clone, Copy, Debug)]
pub enum Structure<'t> {
    /// The `Env` has the entries.
    Nothing,
    /// A hash table that is changed in place.
    Exact(&'t Hash),
    /// A trie that is changed in place.
    Prefixes(&'t OpenPrefixes),
    /// What was built last, under what has changed since.
    Layers(&'t Table),
}

/// The same of whatever finds rows.
macro_rules! each {
    ($find:expr, $none:expr, $it:ident => $of:expr) => {
        match $find {
            Find::Nothing => $none,
            Find::Exact($it) => $of,
            Find::Prefixes($it) => $of,
            Find::Layers($it) => $of,
        }
    };
}

impl Open {
    /// A table of these entries, in the order they were put in.
    pub fn new(shape: Arc<Shape>, entries: Vec<OpenEntry>, seed: u64) -> Open {
        Editor::new(shape, entries, seed).open()
    }

    /// What its entries are found by, for people.
    pub fn structure(&self) -> Structure<'_> {
        match &self.find {
            Find::Nothing => Structure::Nothing,
            Find::Exact(table) => Structure::Exact(table),
            Find::Prefixes(table) => Structure::Prefixes(table),
            Find::Layers(layers) => Structure::Layers(&layers.main.find),
        }
    }

    /// Its shape.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Bytes that it takes, for people.
    pub fn memory(&self) -> usize {
        each!(&self.find, 0, table => table.memory()) + self.rows.memory()
    }

    /// Its entries, in the order they are tried.
    pub fn entries(&self) -> Vec<OpenEntry> {
        match &self.find {
            Find::Nothing => Vec::new(),
            Find::Exact(table) => {
                let key = |words: Vec<u64>| {
                    let values = self.shape.unpack(&words).into_iter().zip(&self.shape.parts);
                    values.map(|(value, part)| KeyMatch::Masked { value, mask: ones(part.width) }).collect()
                };
                self.listed(table.entries(0..table.buckets()).map(|(words, row)| (0, key(words), row)))
            }
            Find::Prefixes(table) => {
                let width = self.shape.parts[0].width;
                let mask = |len| ones(width) & !ones(width).checked_shr(u32::from(len)).unwrap_or(0);
                let key = |value, len| vec![KeyMatch::Masked { value, mask: mask(len) }];
                self.listed(table.list().into_iter().map(|(value, len, row)| (len, key(value, len), row)))
            }
            Find::Layers(layers) => layers.entries().into_iter().map(|placed| placed.entry.clone()).collect(),
        }
    }

    /// Entries without priorities and times of their own; the longest first, then in the order they came.
    fn listed(&self, entries: impl Iterator<Item = (u8, Vec<KeyMatch>, u32)>) -> Vec<OpenEntry> {
        let entry = |(len, key, row): (u8, Vec<KeyMatch>, u32)| {
            let row = self.rows.get(row.into());
            let (slot, action) = (row.found() as u32, (row.found() >> 32) as u16);
            let args = row.args().collect();
            let entry = OpenEntry { slot, priority: 0, key, action, args, idle_ns: 0, hard_ns: 0 };
            (core::cmp::Reverse(len), row.turn(), entry)
        };
        let mut all: Vec<_> = entries.map(entry).collect();
        all.sort_by_key(|(len, turn, _)| (*len, *turn));
        all.into_iter().map(|(.., entry)| entry).collect()
    }

    /// The row of the first entry that wants a key.
    #[inline(always)]
    pub fn find(&self, key: &[u64]) -> Row<'_> {
        self.rows.get(each!(&self.find, MISS, table => table.lookup(key)))
    }

    /// The rows of the first entries that want the `n` keys of a burst.
    #[inline]
    pub fn find_burst(&self, keys: &[u64], n: usize, mut f: impl FnMut(usize, Row<'_>)) {
        let mut rows = [MISS; super::BURST];
        let n = n.min(super::BURST);
        each!(&self.find, (), table => table.lookup_burst(keys, &mut rows[..n]));
        rows[..n].iter().enumerate().for_each(|(i, row)| f(i, self.rows.get(*row)));
    }

    /// What a look-up of a key gives: an action above 32 bits, the entry's slot below.
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        self.find(key).found()
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        each!(&self.find, found.fill(MISS), table => table.lookup_burst(keys, found));
        found.iter_mut().for_each(|found| *found = self.rows.get(*found).found());
    }

    /// Lines that a look-up reads at the most, the row not counted.
    pub fn worst_probes(&self) -> u32 {
        each!(&self.find, 0, table => table.worst_probes())
    }

    /// Lines that the look-up of a key reads.
    pub fn probes(&self, key: &[u64]) -> u32 {
        each!(&self.find, 0, table => table.probes(key))
    }

    /// The row of the first entry that wants a key and that `alive` lets pass, by trying one after another.
    pub fn find_alive(&self, key: &[u64], alive: impl Fn(u32) -> bool) -> Row<'_> {
        let key = self.shape.unpack(key);
        let Find::Layers(layers) = &self.find else { return Row::NONE };
        let all = layers.entries();
        let found = all.iter().find(|placed| placed.entry.holds(&key) && alive(placed.entry.slot));
        found.map_or(Row::NONE, |placed| self.rows.get(placed.row.into()))
    }

    /// As bytes: the shape, then the entries, whose slots are lost.
    pub fn encode(shape: &Shape, entries: &[OpenEntry]) -> Vec<u8> {
        let flags = u64::from(shape.learned) | u64::from(shape.timed_entries) << 1;
        let mut words = vec![Kind::Open as u64, shape.parts.len() as u64, u64::from(shape.args), flags];
        words.extend([u64::from(shape.size), shape.idle_ns, shape.hard_ns]);
        words.extend(shape.parts.iter().map(|part| u64::from(part.width) << 8 | part.kind as u64));
        for entry in entries {
            words.extend([u64::from(entry.priority), u64::from(entry.action), entry.idle_ns, entry.hard_ns]);
            for want in &entry.key {
                let (is_range, a, b) = match *want {
                    KeyMatch::Masked { value, mask } => (0, value, mask),
                    KeyMatch::Range { low, high } => (1, low, high),
                };
                words.extend([is_range, (a >> 64) as u64, a as u64, (b >> 64) as u64, b as u64]);
            }
            words.extend((0..usize::from(shape.args)).map(|k| entry.args.get(k).copied().unwrap_or(0)));
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Builds a table from the words behind the first that [`Open::encode`] wrote; what it did not write gives a table without
    /// entries. Slots count from 0.
    pub fn decode(words: &[u64], seed: u64) -> Open {
        let get = |at: usize| words.get(at).copied().unwrap_or(0);
        let n = (get(0) as usize).min(64);
        let shape = Shape {
            parts: (0..n).map(|k| part(get(6 + k))).collect(),
            args: get(1).min(super::MAX_ARGS as u64) as u8,
            size: get(3) as u32,
            idle_ns: get(4),
            hard_ns: get(5),
            timed_entries: get(2) & 2 != 0,
            learned: get(2) & 1 != 0,
        };
        let each = 4 + 5 * n + usize::from(shape.args);
        let rest = words.get(6 + n..).unwrap_or(&[]);
        let wide = |words: &[u64]| u128::from(words[0]) << 64 | u128::from(words[1]);
        let entries = rest.chunks_exact(each).enumerate().map(|(slot, words)| OpenEntry {
            slot: slot as u32,
            priority: words[0] as u32,
            action: words[1] as u16,
            idle_ns: words[2],
            hard_ns: words[3],
            key: (0..n)
                .map(|k| &words[4 + 5 * k..])
                .map(|w| match w[0] {
                    0 => KeyMatch::Masked { value: wide(&w[1..]), mask: wide(&w[3..]) },
                    _ => KeyMatch::Range { low: wide(&w[1..]), high: wide(&w[3..]) },
                })
                .collect(),
            args: words[4 + 5 * n..].to_vec(),
        });
        let entries = entries.collect();
        Open::new(Arc::new(shape), entries, seed)
    }
}

fn part(word: u64) -> Part {
    let kind = MatchKind::NAMES.get(word as usize & 0xff).map_or(MatchKind::Exact, |(_, kind)| *kind);
    Part { width: (word >> 8).clamp(1, 128) as u8, kind }
}

#[cfg(test)]
mod tests;
