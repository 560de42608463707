//! Tables that are looked up as data: what a program has too many rules of to be code.
//!
//! A table maps a key of a few words to a value, the one of its first entry that matches. An entry matches a key under a
//! mask. `plan` chooses the structure, writes the entries as bytes ([`encode`]), and every carrier takes them along; the
//! runtime builds the table once when it loads the program, and workers share it.
//!
//! | structure | for | cost of a look-up |
//! |---|---|---|
//! | [`TupleSpace`] | any entries | one probe a distinct mask, fewer where an early one decides; one mask: a hash table |
//! | [`BitVector`] | a few thousand entries with many masks | two loads for each 16 bits of key, and a few words |
//! | [`Lpm`] | prefixes of one field of up to 32 bits, longer ones first | one to three dependent loads |
//!
//! These are *sealed*: their entries are the program's rules. An [`Open`] table's entries come from outside; it is built of the
//! same structures. A [`Root`] leads to all tables of a program.
//!
//! A value's low 32 bits are the place of the entry among all (lower is first), the high ones what the program makes of it.

mod bit_vector;
mod lpm;
mod open;
mod root;
pub mod shape;
mod tuple_space;

pub use bit_vector::BitVector;
pub use lpm::Lpm;
pub use open::{Open, OpenEntry, Structure, prefixes};
pub use root::{EntryCounter, Root};
pub use shape::{KeyMatch, MAX_ARGS, MatchKind, Part, Shape};
pub use tuple_space::TupleSpace;

/// What a look-up gives where no entry matches.
pub const MISS: u64 = u64::MAX;
/// Words of a key at the most.
pub const MAX_WORDS: usize = 12;

/// Which structure a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Kind {
    /// [`TupleSpace`]
    TupleSpace = 0,
    /// [`Lpm`]
    Lpm = 1,
    /// [`BitVector`]
    BitVector = 2,
    /// [`Open`]
    Open = 3,
}

/// An entry: what of a key must be what, and the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which bits are compared, a word each.
    pub mask: Vec<u64>,
    /// What they must be; 0 outside the mask.
    pub key: Vec<u64>,
    /// What a look-up gives.
    pub value: u64,
}

/// A table, ready to be looked up.
#[derive(Debug)]
pub enum Table {
    /// See [`TupleSpace`].
    TupleSpace(TupleSpace),
    /// See [`Lpm`].
    Lpm(Lpm),
    /// See [`BitVector`].
    BitVector(BitVector),
    /// See [`Open`].
    Open(Open),
}

impl Table {
    /// The value of the first entry that matches, or [`MISS`].
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        match self {
            Table::TupleSpace(table) => table.lookup(key),
            Table::Lpm(table) => table.lookup(key.first().copied().unwrap_or(0) as u32),
            Table::BitVector(table) => table.lookup(key),
            Table::Open(table) => table.find(key).first().copied().unwrap_or(MISS),
        }
    }

    /// Bytes that it takes, for people.
    pub fn memory(&self) -> usize {
        match self {
            Table::TupleSpace(table) => table.memory(),
            Table::Lpm(table) => table.memory(),
            Table::BitVector(table) => table.memory(),
            Table::Open(table) => table.memory(),
        }
    }

    /// Builds a table from what [`encode`] or [`Open::encode`] wrote. Other bytes give a table that matches nothing.
    pub fn decode(bytes: &[u8], seed: u64) -> Table {
        let mut words =
            bytes.chunks_exact(8).map(|w| u64::from_le_bytes([w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]]));
        let kind = words.next().unwrap_or(0);
        if kind == Kind::Open as u64 {
            return Table::Open(Open::decode(&words.collect::<Vec<u64>>(), seed));
        }
        let width = words.next().unwrap_or(1) as usize;
        let width = width.clamp(1, MAX_WORDS);
        let mut entries = Vec::new();
        while let Some(value) = words.next() {
            let mask: Vec<u64> = words.by_ref().take(width).collect();
            let key: Vec<u64> = words.by_ref().take(width).collect();
            if key.len() == width {
                entries.push(Entry { mask, key, value });
            }
        }
        if kind == Kind::BitVector as u64 {
            Table::BitVector(BitVector::new(width, &entries))
        } else if kind == Kind::Lpm as u64 {
            Table::Lpm(Lpm::new(&entries))
        } else {
            Table::TupleSpace(TupleSpace::new(width, &entries, seed))
        }
    }
}

/// A word of a table of constants, written as bytes; 0 behind its end.
#[inline(always)]
pub fn constant(words: &[u8], at: usize) -> u64 {
    let bytes = words.get(at * 8..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A table as bytes: kind, words a key, then value, mask and key of each entry.
pub fn encode(kind: Kind, width: usize, entries: &[Entry]) -> Vec<u8> {
    let mut words = vec![kind as u64, width as u64];
    for entry in entries {
        words.push(entry.value);
        words.extend(&entry.mask);
        words.extend(&entry.key);
    }
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cheap sequence of numbers.
    struct Numbers(u64);
    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }
    }

    fn linear(entries: &[Entry], key: &[u64]) -> u64 {
        let matches = |e: &&Entry| key.iter().zip(&e.mask).zip(&e.key).all(|((k, m), want)| k & m == *want);
        entries.iter().filter(matches).map(|e| e.value).min_by_key(|v| v & 0xffff_ffff).unwrap_or(MISS)
    }

    #[test]
    fn tuple_spaces_and_bit_vectors_are_linear_search() {
        let mut numbers = Numbers(7);
        for (width, n) in [(1, 0), (1, 1), (2, 50), (2, 2000), (3, 300)] {
            let masks: Vec<Vec<u64>> =
                (0..9).map(|_| (0..width).map(|_| numbers.next() & numbers.next() & 0xff).collect()).collect();
            let entries: Vec<Entry> = (0..n)
                .map(|i| {
                    let mask = masks[(numbers.next() % 9) as usize].clone();
                    let key = mask.iter().map(|m| numbers.next() & m).collect();
                    Entry { mask, key, value: (numbers.next() % 4) << 32 | i }
                })
                .collect();
            for kind in [Kind::TupleSpace, Kind::BitVector] {
                let table = Table::decode(&encode(kind, width, &entries), 99);
                for _ in 0..3000 {
                    let key: Vec<u64> = (0..width).map(|_| numbers.next() & 0xff).collect();
                    assert_eq!(
                        table.lookup(&key),
                        linear(&entries, &key),
                        "{kind:?}: {width} words, {n} entries, {key:x?}"
                    );
                }
            }
        }
    }

    #[test]
    fn keys_that_are_near_entries_find_them() {
        let mut numbers = Numbers(11);
        for (width, n) in [(1, 40), (2, 700), (5, 200), (8, 90)] {
            let masks: Vec<Vec<u64>> = (0..40)
                .map(|i| {
                    (0..width)
                        .map(|_| {
                            if i % 3 == 0 { u64::MAX << (numbers.next() % 64) } else { numbers.next() | numbers.next() }
                        })
                        .collect()
                })
                .collect();
            let entries: Vec<Entry> = (0..n)
                .map(|i| {
                    let mask = masks[(numbers.next() % 40) as usize].clone();
                    let key = mask.iter().map(|m| numbers.next() & m).collect();
                    Entry { mask, key, value: i / 3 }
                })
                .collect();
            let tables =
                [Kind::TupleSpace, Kind::BitVector].map(|kind| Table::decode(&encode(kind, width, &entries), 5));
            for _ in 0..4000 {
                let near = &entries[(numbers.next() % n) as usize];
                let flip = if numbers.next().is_multiple_of(2) { 0 } else { 1 << (numbers.next() % 64) };
                let mut key: Vec<u64> = near.key.iter().zip(&near.mask).map(|(k, m)| k | numbers.next() & !m).collect();
                key[0] ^= flip;
                for table in &tables {
                    assert_eq!(table.lookup(&key), linear(&entries, &key), "{width} words, {n} entries, {key:x?}");
                }
            }
        }
    }

    #[test]
    fn prefixes_are_linear_search() {
        let mut numbers = Numbers(3);
        for n in [0, 1, 5, 3000] {
            let mut entries: Vec<Entry> = (0..n)
                .map(|_| {
                    let len = [0, 1, 7, 8, 9, 15, 16, 17, 20, 23, 24, 25, 31, 32][(numbers.next() % 14) as usize];
                    let mask = if len == 0 { 0 } else { u64::from(u32::MAX << (32 - len)) };
                    // Few high bits vary, so that prefixes nest.
                    Entry { mask: vec![mask], key: vec![numbers.next() & 0x0303_ffff & mask], value: 0 }
                })
                .collect();
            entries.sort_by_key(|e| std::cmp::Reverse(e.mask[0]));
            entries.iter_mut().enumerate().for_each(|(i, e)| e.value = i as u64 | 5 << 32);
            let table = Table::decode(&encode(Kind::Lpm, 1, &entries), 0);
            for i in 0..6000u64 {
                let key = match entries.get((i / 3) as usize % entries.len().max(1)) {
                    Some(e) => e.key[0] + i % 3,
                    None => numbers.next(),
                } & 0xffff_ffff;
                assert_eq!(table.lookup(&[key]), linear(&entries, &[key]), "{n} prefixes, {key:x}");
            }
        }
    }

    #[test]
    fn bytes_of_nobody_match_nothing() {
        assert_eq!(Table::decode(&[], 0).lookup(&[0; MAX_WORDS]), MISS);
        assert_eq!(Table::decode(&[7; 100], 0).lookup(&[1; MAX_WORDS]), MISS);
    }
}
