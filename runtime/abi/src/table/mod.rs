//! Tables that are looked up as data: what a program has too many rules of to be code.
//!
//! A table maps a key of a few words to a value, the one of its first entry that matches. An entry matches a key under a
//! mask, and may want fields of it to lie in ranges. `plan` lets [`choose`] say which structure is cheapest, writes the entries as bytes ([`encode`]), and every carrier takes them along; the
//! runtime builds the table once when it loads the program, and workers share it.
//!
//! | structure | for | cost of a look-up |
//! |---|---|---|
//! | [`TupleSpace`] | any entries, also tens of thousands | one probe a tuple, of which there are far fewer than masks |
//! | [`BitVector`] | up to ten thousand entries over several fields | a load for each eight bits of key, and a few words |
//! | [`Hash`](struct@Hash) | exact keys: all entries under one mask | one or two lines, for a key of up to two words |
//! | [`Index`] | one field of up to 16 bits, any entries | two loads |
//! | [`Ranges`] | one field of up to 64 bits, masks and ranges in any order | as `Index`, or a trie's |
//! | [`Lpm`], [`Lpm6`] | prefixes of one field, longer ones first | a line, and one or two for each six bits behind 18 |
//!
//! These are *sealed*: their entries are the program's rules. An [`Open`] table's entries come from outside; it is built of the
//! same structures. A [`Root`] leads to all tables of a program.
//!
//! A value's low 32 bits are the place of the entry among all (lower is first), the high ones what the program makes of it.

mod bit_vector;
pub mod calibrate;
mod choose;
mod costs;
mod entry;
pub mod hash;
mod hot;
mod index;
mod lpm;
mod open;
mod ranges;
mod root;
mod rows;
pub mod shape;
mod trie;
mod tuple_space;
mod values;

pub use bit_vector::BitVector;
pub use choose::{Choice, choose, name};
pub use costs::Costs;
pub use entry::{Entry, Range, decode, encode, prefixes};
pub use hash::Hash;
pub use hot::Hot;
pub use index::Index;
pub use lpm::{Lpm, Lpm6, Prefixes};
pub use open::{Change, Editor, Layer, OVERLAY, Open, OpenEntry, OpenPrefixes, Row, Rows, Structure, Task};
pub use ranges::Ranges;
pub use root::{EntryCounter, Root};
pub use shape::{KeyMatch, MAX_ARGS, MatchKind, Part, Shape};
pub use tuple_space::TupleSpace;

/// What a look-up gives where no entry matches.
pub const MISS: u64 = u64::MAX;
/// Words of a key at the most.
pub const MAX_WORDS: usize = 12;
/// Keys of a burst at the most.
pub const BURST: usize = 32;

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
    /// [`Hash`](struct@Hash)
    Hash = 4,
    /// [`Index`]
    Index = 5,
    /// [`Ranges`]
    Ranges = 6,
    /// [`Lpm6`]
    Lpm6 = 8,
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
    /// See [`Hash`](struct@Hash).
    Hash(Hash),
    /// See [`Index`].
    Index(Index),
    /// See [`Ranges`].
    Ranges(Ranges),
    /// See [`Lpm6`].
    Lpm6(Lpm6),
    /// See [`Open`].
    Open(Open),
}

/// The same of whichever structure a table is.
macro_rules! each {
    ($table:expr, $it:ident => $of:expr) => {
        match $table {
            Table::TupleSpace($it) => $of,
            Table::Lpm($it) => $of,
            Table::BitVector($it) => $of,
            Table::Hash($it) => $of,
            Table::Index($it) => $of,
            Table::Ranges($it) => $of,
            Table::Lpm6($it) => $of,
            Table::Open($it) => $of,
        }
    };
}

impl Table {
    /// The value of the first entry that matches, or [`MISS`].
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        each!(self, table => table.lookup(key))
    }

    /// The same for a burst: `found.len()` keys, up to [`BURST`], one behind the other in `keys`.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        each!(self, table => table.lookup_burst(keys, found));
    }

    /// Which structure it is.
    pub fn kind(&self) -> Kind {
        match self {
            Table::TupleSpace(_) => Kind::TupleSpace,
            Table::Lpm(_) => Kind::Lpm,
            Table::BitVector(_) => Kind::BitVector,
            Table::Open(_) => Kind::Open,
            Table::Hash(_) => Kind::Hash,
            Table::Index(_) => Kind::Index,
            Table::Ranges(_) => Kind::Ranges,
            Table::Lpm6(_) => Kind::Lpm6,
        }
    }

    /// Bytes that it takes, for people.
    pub fn memory(&self) -> usize {
        each!(self, table => table.memory())
    }

    /// Lines of a cache that one look-up reads at the most, whatever the packet.
    pub fn worst_probes(&self) -> u32 {
        each!(self, table => table.worst_probes())
    }

    /// Lines of a cache that the look-up of a key reads.
    pub fn probes(&self, key: &[u64]) -> u32 {
        each!(self, table => table.probes(key))
    }

    /// Builds a table from what [`encode`] or [`Open::encode`] wrote. Other bytes give a table that matches nothing.
    pub fn decode(bytes: &[u8], seed: u64) -> Table {
        let words = entry::words(bytes);
        if words.first() == Some(&(Kind::Open as u64)) {
            return Table::Open(Open::decode(&words[1..], seed));
        }
        let (kind, width, entries) = entry::decode_words(&words);
        Table::new(kind, width, &entries, seed)
    }

    /// Builds a table of the kind that has this number; of one that is not known, a tuple space.
    pub fn new(kind: u64, width: usize, entries: &[Entry], seed: u64) -> Table {
        const BIT_VECTOR: u64 = Kind::BitVector as u64;
        const LPM: u64 = Kind::Lpm as u64;
        const HASH: u64 = Kind::Hash as u64;
        const INDEX: u64 = Kind::Index as u64;
        const RANGES: u64 = Kind::Ranges as u64;
        const LPM6: u64 = Kind::Lpm6 as u64;
        let table = match kind {
            BIT_VECTOR => BitVector::new(width, entries, seed).map(Table::BitVector),
            LPM => Some(Table::Lpm(Lpm::new(width, entries, seed))),
            HASH => Some(Table::Hash(Hash::new(width, entries, seed))),
            INDEX => Some(Table::Index(Index::new(width, entries, seed))),
            RANGES => Some(Table::Ranges(Ranges::new(width, entries, seed))),
            LPM6 => Some(Table::Lpm6(Lpm6::new(width, entries, seed))),
            _ => None,
        };
        table.unwrap_or_else(|| Table::TupleSpace(TupleSpace::new(width, entries, seed)))
    }
}

/// A word of a table of constants, written as bytes; 0 behind its end.
#[inline(always)]
pub fn constant(words: &[u8], at: usize) -> u64 {
    let bytes = words.get(at * 8..).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// A burst, one key after another.
#[inline(always)]
fn one_by_one(keys: &[u64], found: &mut [u64], lookup: impl Fn(&[u64]) -> u64) {
    let width = keys.len() / found.len().max(1);
    for (found, key) in found.iter_mut().zip(keys.chunks_exact(width.max(1))) {
        *found = lookup(key);
    }
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod one_field;
#[cfg(test)]
mod tests;
