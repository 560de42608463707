//! The shape of a table that is data: how many entries and masks, how much memory, how many probes. In: the bytes that a plan
//! has of it. Out: numbers for people. It builds the table as the runtime would.

use std::collections::BTreeSet;

use pipec_abi::table::Table;

use super::cost;

/// What a table that is data looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `tuple-space`, `lpm` or `bit-vector`.
    pub classifier: &'static str,
    /// Entries.
    pub entries: usize,
    /// Distinct masks among them.
    pub masks: usize,
    /// Words of 64 bits that the key has.
    pub key_words: usize,
    /// Bytes when it is built.
    pub memory: usize,
    /// What it looks at for one packet, at the most.
    pub probes: String,
    /// Cycles of a look-up, at the least and at the most.
    pub least: u64,
    /// The most.
    pub most: u64,
}

impl Shape {
    /// The shape of an encoded table.
    pub fn of(bytes: &[u8]) -> Shape {
        let word = |at: usize| {
            let bytes = bytes.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_le_bytes)
        };
        let width = (word(1) as usize).max(1);
        let entry = 1 + 2 * width;
        let entries = (bytes.len() / 8).saturating_sub(2) / entry;
        let mask = |i: usize| (0..width).map(|w| word(2 + i * entry + 1 + w)).collect::<Vec<u64>>();
        let masks = (0..entries).map(mask).collect::<BTreeSet<_>>().len();
        let table = Table::decode(bytes, 0);
        let (least, most) = cost::lookup(&table, entries);
        let (classifier, probes) = match &table {
            Table::TupleSpace(space) => ("tuple-space", super::count(space.tuples(), "probe")),
            Table::Lpm(_) => ("lpm", "3 dependent loads".to_string()),
            Table::BitVector(vectors) => {
                let words = super::count(entries.div_ceil(64), "word");
                ("bit-vector", format!("{} of the key, {words} of bits", super::count(vectors.pieces(), "piece")))
            }
            #[allow(unreachable_patterns)] // structures that come later
            _ => ("look-up", "unknown".to_string()),
        };
        Shape { classifier, entries, masks, key_words: width, memory: table.memory(), probes, least, most }
    }
}
