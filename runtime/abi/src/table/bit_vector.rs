//! Bit vectors: the key is cut into pieces of 16 bits; each piece says, by one load, which entries it allows, as a vector of
//! bits; the first bit that all vectors have is the answer (Lakshman, Stiliadis: High-Speed Policy-based Packet Forwarding,
//! 1998). A mask splits into masks of pieces exactly, so entries of any shape fit: what the prefix tables of the paper do
//! for one field is an array here.
//!
//! Pieces with the same vector share it: the array holds classes. Beside each vector stands a summary with a bit for every
//! word that is not zero (Baboescu, Varghese: Scalable Packet Classification, 2001), so that only words in which something
//! may be found are read. Cost: two loads a piece, and a few words; it does not depend on which packets come.

use std::collections::HashMap;

use super::{Entry, MAX_WORDS, MISS};

/// Bits of a piece.
const PIECE: u32 = 16;
/// Pieces of a key at the most.
const MAX_PIECES: usize = MAX_WORDS * (64 / PIECE as usize);
/// Pieces that most keys have at the most.
const FEW_PIECES: usize = 12;

/// One piece of the key.
#[derive(Debug)]
struct Piece {
    /// Where it lies in the key.
    word: usize,
    shift: u32,
    /// Bits that some entry looks at.
    used: u64,
    /// For each value of those bits, where the row of its class starts.
    starts: Vec<u32>,
    /// For each class a summary, then a vector.
    rows: Vec<u64>,
}

/// Entries under any masks, a few thousand at the most.
#[derive(Debug)]
pub struct BitVector {
    pieces: Vec<Piece>,
    /// Words of a summary.
    summary: usize,
    /// Values by place in the vectors.
    values: Vec<u64>,
}

impl BitVector {
    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| 4 * piece.starts.len() + 8 * piece.rows.len());
        pieces.sum::<usize>() + 8 * self.values.len()
    }

    /// Builds the vectors.
    pub fn new(width: usize, entries: &[Entry], _seed: u64) -> BitVector {
        let spelled: Vec<Entry> = entries.iter().flat_map(Entry::spelled).collect();
        let mut sorted: Vec<&Entry> = spelled.iter().collect();
        sorted.sort_by_key(|e| e.value & 0xffff_ffff);
        let words = sorted.len().div_ceil(64);
        let mut table = BitVector { pieces: vec![], summary: words.div_ceil(64), values: vec![] };
        for word in 0..width.min(MAX_WORDS) {
            for shift in (0..64).step_by(PIECE as usize) {
                let used = sorted.iter().fold(0, |used, e| used | e.mask[word] >> shift & 0xffff);
                if used != 0 {
                    table.pieces.push(Piece::new(word, shift, used, &sorted, words));
                }
            }
        }
        table.values = sorted.iter().map(|e| e.value).collect();
        table
    }

    /// Pieces that a look-up reads.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The value of the first entry that matches, or [`MISS`].
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        // Few pieces, as of addresses and ports, are worth a smaller frame.
        if self.pieces.len() <= FEW_PIECES {
            self.lookup_of::<FEW_PIECES>(key)
        } else {
            self.lookup_of::<MAX_PIECES>(key)
        }
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        super::one_by_one(keys, found, |key| self.lookup(key));
    }

    /// Lines that a look-up reads at the most: each word of each piece, and its class.
    pub fn worst_probes(&self) -> u32 {
        (self.pieces.len() * (1 + self.summary + self.values.len().div_ceil(64))) as u32 + 1
    }

    /// Lines that the look-up of a key reads, or more.
    pub fn probes(&self, _key: &[u64]) -> u32 {
        self.worst_probes()
    }

    #[inline(always)]
    fn lookup_of<const N: usize>(&self, key: &[u64]) -> u64 {
        let pieces = &self.pieces[..self.pieces.len().min(N)];
        let mut starts = [0u32; N];
        for (start, piece) in starts.iter_mut().zip(pieces) {
            let value = key.get(piece.word).map_or(0, |word| word >> piece.shift) & piece.used;
            *start = piece.starts.get(value as usize).copied().unwrap_or(0);
        }
        let all = |at: usize| {
            let row = |(piece, start): (&Piece, &u32)| piece.rows.get(*start as usize + at).copied().unwrap_or(0);
            pieces.iter().zip(&starts).map(row).fold(u64::MAX, |all, word| all & word)
        };
        for group in 0..self.summary {
            let mut candidates = all(group);
            while candidates != 0 {
                let word = group * 64 + candidates.trailing_zeros() as usize;
                let found = all(self.summary + word);
                if found != 0 {
                    return self.values.get(word * 64 + found.trailing_zeros() as usize).copied().unwrap_or(MISS);
                }
                candidates &= candidates - 1;
            }
        }
        MISS
    }
}

impl Piece {
    fn new(word: usize, shift: u32, used: u64, entries: &[&Entry], words: usize) -> Piece {
        // Entries by what they want of this piece.
        let mut wants: Vec<(u64, HashMap<u64, Vec<u64>>)> = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            let mask = entry.mask[word] >> shift & 0xffff;
            let at = wants.iter().position(|(m, _)| *m == mask).unwrap_or_else(|| {
                wants.push((mask, HashMap::new()));
                wants.len() - 1
            });
            let vector = wants[at].1.entry(entry.key[word] >> shift & mask).or_insert_with(|| vec![0; words]);
            vector[i / 64] |= 1 << (i % 64);
        }
        let size = 1usize << (64 - used.leading_zeros());
        let mut piece = Piece { word, shift, used, starts: Vec::with_capacity(size), rows: Vec::new() };
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut vector = vec![0; words];
        for value in 0..size as u64 {
            vector.fill(0);
            for (mask, by_value) in &wants {
                if let Some(allowed) = by_value.get(&(value & mask)) {
                    vector.iter_mut().zip(allowed).for_each(|(all, word)| *all |= word);
                }
            }
            let next = piece.rows.len() as u32;
            let start = *known.entry(vector.clone()).or_insert(next);
            if start == next {
                let summary = vector
                    .chunks(64)
                    .map(|chunk| chunk.iter().enumerate().fold(0, |bits, (k, word)| bits | u64::from(*word != 0) << k));
                piece.rows.extend(summary);
                piece.rows.extend(&vector);
            }
            piece.starts.push(start);
        }
        piece
    }
}
