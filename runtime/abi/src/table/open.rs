//! An open table: entries that the program does not know when it is compiled.
//!
//! Its code depends on its [`Shape`] alone. An entry wants something of each part of the key, and gives an action's number and
//! arguments. Entries are tried by priority, the highest first, then by the length of their prefix, the longest first, then in
//! the order they were put in. A table is never changed: a new one takes its place.

use std::sync::Arc;

use super::shape::{KeyMatch, MatchKind, Part, Shape};
use super::{BitVector, Entry, Kind, Lpm, MISS, TupleSpace, prefixes};

/// Masks of a tuple space that cost less than bit vectors.
const FEW_MASKS: usize = 6;
/// Entries of bit vectors at the most.
const MAX_VECTOR: usize = 8192;

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

/// An open table with its entries.
#[derive(Debug)]
pub struct Open {
    shape: Arc<Shape>,
    entries: Vec<OpenEntry>,
    find: Find,
    /// For each entry what a look-up gives, then its arguments.
    rows: Vec<u64>,
    stride: usize,
}

/// What finds an entry's place.
#[derive(Debug)]
enum Find {
    Nothing,
    TupleSpace(TupleSpace),
    Lpm(Lpm),
    BitVector(BitVector),
}

/// The structure that an open table's entries are found by.
#[derive(Clone, Copy, Debug)]
pub enum Structure<'t> {
    /// There are no entries, or the `Env` has them.
    Nothing,
    /// See [`TupleSpace`].
    TupleSpace(&'t TupleSpace),
    /// See [`Lpm`].
    Lpm(&'t Lpm),
    /// See [`BitVector`].
    BitVector(&'t BitVector),
}

impl Open {
    /// What its entries are found by, for people.
    pub fn structure(&self) -> Structure<'_> {
        match &self.find {
            Find::Nothing => Structure::Nothing,
            Find::TupleSpace(table) => Structure::TupleSpace(table),
            Find::Lpm(table) => Structure::Lpm(table),
            Find::BitVector(table) => Structure::BitVector(table),
        }
    }

    /// A table of these entries, in the order they were put in.
    pub fn new(shape: Arc<Shape>, mut entries: Vec<OpenEntry>, seed: u64) -> Open {
        entries.sort_by_cached_key(|e| (core::cmp::Reverse(e.priority), core::cmp::Reverse(e.prefix(&shape))));
        let stride = 1 + usize::from(shape.args);
        let mut rows = Vec::with_capacity(entries.len() * stride);
        for entry in &entries {
            rows.push(entry.found());
            rows.extend((0..stride - 1).map(|k| entry.args.get(k).copied().unwrap_or(0)));
        }
        let find = structure(&shape, &entries, seed);
        Open { shape, entries, find, rows, stride }
    }

    /// Its shape.
    pub fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    /// Bytes that its look-up takes, for people.
    pub fn memory(&self) -> usize {
        let find = match &self.find {
            Find::Nothing => 0,
            Find::TupleSpace(table) => table.memory(),
            Find::Lpm(table) => table.memory(),
            Find::BitVector(table) => table.memory(),
        };
        find + self.rows.len() * size_of::<u64>()
    }

    /// Its entries, in the order they are tried.
    pub fn entries(&self) -> &[OpenEntry] {
        &self.entries
    }

    /// The row of the first entry that wants a key: what the look-up gives, then its arguments. Empty if there is none.
    #[inline(always)]
    pub fn find(&self, key: &[u64]) -> &[u64] {
        let place = match &self.find {
            Find::Nothing => MISS,
            Find::TupleSpace(table) => table.lookup(key),
            Find::Lpm(table) => table.lookup(key),
            Find::BitVector(table) => table.lookup(key),
        };
        let at = (place as usize).wrapping_mul(self.stride);
        self.rows.get(at..at.wrapping_add(self.stride)).unwrap_or(&[])
    }

    /// The first word of that row, or [`MISS`].
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        self.find(key).first().copied().unwrap_or(MISS)
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        super::one_by_one(keys, found, |key| self.lookup(key));
    }

    /// Lines that a look-up reads at the most, its row not counted.
    pub fn worst_probes(&self) -> u32 {
        match &self.find {
            Find::Nothing => 0,
            Find::TupleSpace(table) => table.worst_probes(),
            Find::Lpm(table) => table.worst_probes(),
            Find::BitVector(table) => table.worst_probes(),
        }
    }

    /// Lines that the look-up of a key reads.
    pub fn probes(&self, key: &[u64]) -> u32 {
        match &self.find {
            Find::Nothing => 0,
            Find::TupleSpace(table) => table.probes(key),
            Find::Lpm(table) => table.probes(key),
            Find::BitVector(table) => table.probes(key),
        }
    }

    /// The row of the first entry that wants a key and that `alive` lets pass, by trying one after another.
    pub fn find_alive(&self, key: &[u64], alive: impl Fn(u32) -> bool) -> &[u64] {
        let key = self.shape.unpack(key);
        let found = self.entries.iter().position(|entry| entry.holds(&key) && alive(entry.slot));
        found.map_or(&[], |at| &self.rows[at * self.stride..(at + 1) * self.stride])
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

/// What finds the place of the first entry that wants a key.
fn structure(shape: &Shape, entries: &[OpenEntry], seed: u64) -> Find {
    if entries.is_empty() || shape.learned {
        return Find::Nothing;
    }
    let width = shape.words();
    let spelled: Vec<Entry> =
        entries.iter().enumerate().flat_map(|(place, entry)| spell(shape, &entry.key, width, place as u64)).collect();
    if let [Part { width: 32, kind: MatchKind::Lpm }] = shape.parts[..] {
        return Find::Lpm(Lpm::new(width, &spelled, seed));
    }
    let mut masks: Vec<&[u64]> = spelled.iter().map(|e| e.mask.as_slice()).collect();
    masks.sort_unstable();
    masks.dedup();
    if masks.len() > FEW_MASKS
        && spelled.len() <= MAX_VECTOR
        && let Some(vectors) = BitVector::new(width, &spelled, seed)
    {
        return Find::BitVector(vectors);
    }
    Find::TupleSpace(TupleSpace::new(width, &spelled, seed))
}

/// An entry as masks over the words of a key: one for each way to take the prefixes that its ranges are made of.
fn spell(shape: &Shape, key: &[KeyMatch], width: usize, value: u64) -> Vec<Entry> {
    let mut all = vec![Entry { mask: vec![0; width], key: vec![0; width], ranges: vec![], value }];
    for ((part, slot), want) in shape.parts.iter().zip(shape.slots()).zip(key) {
        let ways = match *want {
            KeyMatch::Masked { value, mask } => vec![(value, mask)],
            KeyMatch::Range { low, high } => prefixes(low, high, part.width),
        };
        let with = |entry: &Entry, (value, mask): (u128, u128)| {
            let mut entry = entry.clone();
            entry.mask[slot.word] |= (mask as u64) << slot.shift;
            entry.key[slot.word] |= (value as u64) << slot.shift;
            if part.width > 64 {
                entry.mask[slot.word + 1] |= (mask >> 64) as u64;
                entry.key[slot.word + 1] |= (value >> 64) as u64;
            }
            entry
        };
        all = all.iter().flat_map(|entry| ways.iter().map(|way| with(entry, *way)).collect::<Vec<_>>()).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::shape::ones;
    use super::*;

    fn shape(parts: &[(u8, MatchKind)]) -> Shape {
        Shape {
            parts: parts.iter().map(|&(width, kind)| Part { width, kind }).collect(),
            args: 2,
            size: 64,
            idle_ns: 0,
            hard_ns: 0,
            timed_entries: false,
            learned: false,
        }
    }

    fn masked(value: u128, mask: u128) -> KeyMatch {
        KeyMatch::Masked { value: value & mask, mask }
    }

    fn entry(slot: u32, priority: u32, key: Vec<KeyMatch>) -> OpenEntry {
        OpenEntry {
            slot,
            priority,
            key,
            action: slot as u16 % 3,
            args: vec![u64::from(slot), 7],
            idle_ns: 0,
            hard_ns: 0,
        }
    }

    #[test]
    fn parts_lie_in_words_without_overlap() {
        let shape = shape(&[
            (12, MatchKind::Exact),
            (128, MatchKind::Exact),
            (3, MatchKind::Ternary),
            (48, MatchKind::Exact),
            (64, MatchKind::Range),
            (100, MatchKind::Lpm),
        ]);
        let key = [0xabc, u128::MAX, 5, 0xffff_0000_1111, 1 << 63, (1 << 99) | 1];
        assert_eq!(shape.unpack(&shape.pack(&key)), key);
        assert_eq!(shape.words(), 6);
    }

    #[test]
    fn priority_decides_then_the_prefix_then_the_order() {
        let shape = Arc::new(shape(&[(32, MatchKind::Lpm), (16, MatchKind::Ternary)]));
        let any = masked(0, 0);
        let long = masked(0x0a00_0000, 0xffff_0000);
        let short = masked(0x0a00_0000, 0xff00_0000);
        let entries = vec![
            entry(0, 0, vec![short, any]),
            entry(1, 0, vec![long, any]),
            entry(2, 5, vec![short, masked(7, 0xffff)]),
            entry(3, 0, vec![long, masked(1, 1)]),
        ];
        let table = Open::new(shape.clone(), entries, 1);
        let slot = |a: u128, b: u128| table.find(&shape.pack(&[a, b])).first().map(|row| *row as u32);
        assert_eq!(slot(0x0a00_0001, 7), Some(2));
        assert_eq!(slot(0x0a00_0001, 9), Some(1));
        assert_eq!(slot(0x0a01_0001, 9), Some(0));
        assert_eq!(slot(0x0b01_0001, 9), None);
        assert_eq!(table.find(&shape.pack(&[0x0a00_0001, 7])), [2 << 32 | 2, 2, 7]);
    }

    #[test]
    fn every_structure_is_linear_search() {
        let kinds: [&[(u8, MatchKind)]; 5] = [
            &[(32, MatchKind::Lpm)],
            &[(128, MatchKind::Lpm)],
            &[(48, MatchKind::Exact), (12, MatchKind::Exact)],
            &[(16, MatchKind::Range), (8, MatchKind::Optional), (32, MatchKind::Ternary)],
            &[(7, MatchKind::Lpm), (128, MatchKind::Ternary), (16, MatchKind::Range)],
        ];
        let mut state = 9u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            u128::from(state % 7)
        };
        for parts in kinds {
            for n in [0u32, 1, 5, 60] {
                let shape = Arc::new(shape(parts));
                let entries: Vec<OpenEntry> = (0..n)
                    .map(|slot| {
                        let key = parts.iter().map(|&(width, kind)| match kind {
                            MatchKind::Exact => masked(next(), ones(width)),
                            MatchKind::Lpm => masked(next(), ones(width) & !ones(next() as u8 % 4)),
                            MatchKind::Ternary => masked(next(), next()),
                            MatchKind::Optional if next() < 3 => masked(0, 0),
                            MatchKind::Optional => masked(next(), ones(width)),
                            MatchKind::Range => {
                                let (a, b) = (next(), next());
                                KeyMatch::Range { low: a.min(b), high: a.max(b) }
                            }
                        });
                        let key = key.collect();
                        let priority = if parts.iter().any(|p| p.1.has_priority()) { next() as u32 } else { 0 };
                        entry(slot, priority, key)
                    })
                    .collect();
                let words: Vec<u64> = Open::encode(&shape, &entries)
                    .chunks_exact(8)
                    .map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")))
                    .collect();
                let table = Open::decode(&words[1..], 4);
                assert_eq!(**table.shape(), *shape);
                for _ in 0..400 {
                    let key: Vec<u128> = parts.iter().map(|_| next()).collect();
                    let packed = shape.pack(&key);
                    assert_eq!(table.find(&packed), table.find_alive(&packed, |_| true), "{parts:?} {n} {key:?}");
                }
            }
        }
    }
}
