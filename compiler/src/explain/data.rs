//! The shape of a table that is data: how many entries and masks, how much memory, how many probes. In: the bytes that a plan
//! has of it. Out: numbers for people. It builds the table as the runtime would.

use std::collections::BTreeSet;

use pipec_abi::table::{Costs, KeyMatch, Open, Structure, Table, choose, decode, name, prefixes};

use super::cost;

/// What a table that is data looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `tuple-space`, `lpm` or `bit-vector`; of an open table also `learned` or `empty`.
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

/// About the bytes of an entry that packets make, beside its key and arguments.
const LEARNED_ENTRY: usize = 64;

impl Shape {
    /// The shape of an encoded table.
    pub fn of(bytes: &[u8]) -> Shape {
        if let Table::Open(open) = Table::decode(bytes, 0) {
            return Shape::open(&open);
        }
        let (_, key_words, entries) = decode(bytes);
        let masks = entries.iter().map(|entry| entry.mask.as_slice()).collect::<BTreeSet<_>>().len();
        let table = Table::decode(bytes, 0);
        let cycles = choose(key_words, &entries, &Costs::default()).cycles.round() as u64;
        let probes = super::count(table.worst_probes() as usize, "cache line");
        let (classifier, memory) = (name(table.kind()), table.memory());
        Shape { classifier, entries: entries.len(), masks, key_words, memory, probes, least: cycles, most: cycles }
    }

    /// The shape of an open table with the entries that the program gives it.
    fn open(open: &Open) -> Shape {
        let shape = open.shape();
        // A range is as many entries as it has prefixes.
        let ways = |want: &KeyMatch, width| match *want {
            KeyMatch::Masked { mask, .. } => vec![mask],
            KeyMatch::Range { low, high } => prefixes(low, high, width).into_iter().map(|(_, mask)| mask).collect(),
        };
        let (mut spelled, mut masks) = (0, BTreeSet::new());
        for entry in &open.entries() {
            let mut own: Vec<Vec<u128>> = vec![vec![]];
            for (part, want) in shape.parts.iter().zip(&entry.key) {
                let ways = ways(want, part.width);
                let all = own.iter().flat_map(|before| ways.iter().map(|mask| [before.as_slice(), &[*mask]].concat()));
                own = all.collect();
            }
            spelled += own.len();
            masks.extend(own);
        }
        let (key_words, masks) = (shape.words(), masks.len());
        let entries = open.entries().len();
        let (classifier, probes, (least, most)) = match open.structure() {
            Structure::Layers(_) | Structure::Exact(_) | Structure::Prefixes(_) if entries == 0 => {
                ("empty", "nothing".to_string(), (0, 0))
            }
            Structure::Exact(table) => {
                let probes = super::count(table.worst_probes() as usize, "cache line");
                ("hash", probes, cost::tuple_space(1, entries))
            }
            Structure::Prefixes(table) => {
                let probes = super::count(table.worst_probes() as usize, "cache line");
                ("lpm", probes, cost::lpm())
            }
            Structure::Layers(Table::BitVector(vectors)) => {
                let words = super::count(spelled.div_ceil(64), "word");
                let probes = format!("{} of the key, {words} of bits", super::count(vectors.pieces(), "piece"));
                ("bit-vector", probes, cost::bit_vector(vectors.pieces(), spelled))
            }
            Structure::Layers(Table::TupleSpace(space)) => {
                let tuples = space.tuples();
                ("tuple-space", super::count(tuples, "probe"), cost::tuple_space(tuples, spelled))
            }
            Structure::Layers(table) => {
                let probes = super::count(table.worst_probes() as usize, "cache line");
                (name(table.kind()), probes, cost::lpm())
            }
            Structure::Nothing if shape.learned => {
                let size = shape.size as usize;
                // Beside its words an entry has its times and counters, and two places of the hash table lead to it.
                let memory = size * (8 * (key_words + usize::from(shape.args)) + LEARNED_ENTRY);
                let (least, most) = cost::tuple_space(1, size);
                let probes = "1 chain of a hash table".to_string();
                return Shape { classifier: "learned", entries, masks: 1, key_words, memory, probes, least, most };
            }
            Structure::Nothing => ("none", "nothing".to_string(), (0, 0)),
        };
        Shape { classifier, entries, masks, key_words, memory: open.memory(), probes, least, most }
    }
}
