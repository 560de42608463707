//! Bit vectors over classes: many fields at once, whatever their masks and ranges.
//!
//! The key is cut into pieces, mostly its fields. Two values of a piece that all entries treat alike are of one class, and a
//! class stands for a vector with a bit for each entry that allows it. The first bit that the vectors of all pieces have is the
//! entry (Lakshman, Stiliadis: High-Speed Policy-based Packet Forwarding, 1998). A trie of eight bits a level, with equal parts
//! shared, leads from a value to its class. Prefixes and ranges are intervals of values, so nothing is expanded; masks that are
//! neither are cut every 16 bits, where all values can be tried.
//!
//! Classes of two pieces can be joined beforehand: an array by both numbers gives the class of the pair (Gupta, McKeown: Packet
//! Classification on Multiple Fields, 1999). Doing so to the end needs no vectors, but for many entries more memory than there
//! is. Here pieces are joined as long as arrays stay small, and what is left is joined by its vectors. If nothing is left to be
//! joined, as with a hundred rules, the class is the answer.
//!
//! With many entries, a vector is preceded by a summary: a bit for each of its words that is not zero (Baboescu, Varghese:
//! Scalable Packet Classification, 2001). The summaries are joined first, and only words in which something may be found are
//! read, mostly one.
//!
//! Of thousands of entries, those that say much about the two richest fields are looked up by both together, and compared whole
//! (`crossed`). The others are divided by which of the two they say much about, as decision trees do (Vamanan, Voskuilen,
//! Vijaykumar: EffiCuts, 2010): an entry that says little about a field allows most of its classes, and next to it the
//! summaries of the others would promise what is not there. Each part is looked up, but not beyond what is found already.
//!
//! A burst goes piece by piece, so that loads of 32 keys overlap and no branch depends on a packet until the last step.
//!
//! Cost: for each part a load for each eight bits that entries look at, one a join, and of each vector left a line for its
//! summary and one for each word that is tried. A packet may be made such that summaries promise what words do not hold, but
//! never more words than there are: the bound is [`BitVector::worst_probes`].
//!
//! A decision tree was weighed against this: with entries that say little it copies them, and each step waits for the one
//! before. DPDK's `rte_acl`, a trie of that kind, is what `bench/lookups` measures beside it.

mod build;
mod classes;
mod crossed;
mod cut;
mod estimate;
mod part;
mod piece;

use super::{BURST, Entry, MAX_WORDS, MISS};
use crossed::Crossed;
pub(super) use estimate::estimate;
use part::Part;

/// Keys that are looked up together where a burst is not full.
const SOME: usize = 8;
/// Pieces of a key at the most: each word in pieces of 16 bits, and cut once more by ranges that lie across.
const MAX_PIECES: usize = MAX_WORDS * 8;

/// Entries under any masks and ranges, some ten thousand at the most.
#[derive(Debug)]
pub struct BitVector {
    width: usize,
    parts: Vec<Part>,
    /// Of many, those that say much about two fields.
    crossed: Option<Box<Crossed>>,
}

impl BitVector {
    /// Builds the vectors; nothing if there are too many classes.
    pub fn new(width: usize, entries: &[Entry], _seed: u64) -> Option<BitVector> {
        build::build(width, entries)
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        self.parts.iter().map(Part::memory).chain(self.crossed.iter().map(|crossed| crossed.memory())).sum()
    }

    /// Pieces that a look-up reads, of all parts.
    pub fn pieces(&self) -> usize {
        self.parts.iter().map(Part::pieces).chain(self.crossed.iter().map(|crossed| crossed.pieces())).sum()
    }

    /// Parts that entries are divided into.
    pub fn parts(&self) -> usize {
        self.parts.len() + usize::from(self.crossed.is_some())
    }

    /// The value of the first entry that matches, or [`MISS`].
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        let mut found = [MISS];
        self.find(key, &mut found);
        found[0]
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        match <&mut [u64; BURST]>::try_from(&mut *found) {
            Ok(found) => self.find(keys, found),
            Err(_) => self.lookup_some(keys, found),
        }
    }

    /// Of a burst that is not full, some keys at a time; places that are left look for zeros.
    #[inline(never)]
    fn lookup_some(&self, keys: &[u64], found: &mut [u64]) {
        for (keys, found) in keys.chunks(SOME * self.width.max(1)).zip(found.chunks_mut(SOME)) {
            if let Ok(found) = <&mut [u64; SOME]>::try_from(&mut *found) {
                self.find(keys, found);
                continue;
            }
            let mut padded = [0; SOME * MAX_WORDS];
            let mut all = [MISS; SOME];
            padded[..keys.len()].copy_from_slice(keys);
            self.find(&padded[..SOME * self.width], &mut all);
            found.copy_from_slice(&all[..found.len()]);
        }
    }

    #[inline(always)]
    fn find<const K: usize>(&self, keys: &[u64], found: &mut [u64; K]) {
        match &self.crossed {
            Some(crossed) => crossed.find(self.width, keys, found),
            None => found.fill(MISS),
        }
        for part in &self.parts {
            part.find(self.width, keys, found);
        }
    }

    /// The value of the first entry that matches and has a place behind `after`, or [`MISS`]. Slow.
    pub fn lookup_after(&self, key: &[u64], after: u32) -> u64 {
        let of_parts = self.parts.iter().map(|part| part.find_after(self.width, key, after));
        let found = of_parts.chain(self.crossed.iter().map(|crossed| crossed.find_after(self.width, key, after)));
        found.min_by_key(|value| *value as u32).unwrap_or(MISS)
    }

    /// Lines that a look-up reads at the most: blocks of pieces, arrays of joins, all of the vectors, and the value.
    pub fn worst_probes(&self) -> u32 {
        self.parts.iter().map(Part::worst_probes).chain(self.crossed.iter().map(|crossed| crossed.worst_probes())).sum()
    }

    /// Lines that the look-up of a key reads.
    pub fn probes(&self, key: &[u64]) -> u32 {
        let of_parts = self.parts.iter().map(|part| part.probes(self.width, key));
        of_parts.chain(self.crossed.iter().map(|crossed| crossed.probes(self.width, key))).sum()
    }
}
