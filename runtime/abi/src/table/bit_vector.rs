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
//! Scalable Packet Classification, 2001). Then the summaries are joined first, and only words in which something may be found
//! are read, mostly one.
//!
//! A burst goes piece by piece, so that loads of 32 keys overlap and no branch depends on a packet until the last step.
//!
//! Cost: a load for each eight bits that entries look at, one a join, and of each vector left a line for its summary and one for
//! each word that is tried. A packet may be made such that summaries promise what words do not hold, but never more words than
//! there are: the bound is [`BitVector::worst_probes`].

mod build;
mod classes;
mod cut;
mod piece;

use super::{BURST, Entry, MAX_WORDS, MISS};

/// Pieces of a key at the most: each word in pieces of 16 bits, and cut once more by ranges that lie across.
const MAX_PIECES: usize = MAX_WORDS * 8;
/// Pieces that most keys have at the most.
const FEW_PIECES: usize = 8;
/// Vectors of so many words have no summary.
const FEW_WORDS: usize = 4;

/// Entries under any masks and ranges, some thousands at the most.
#[derive(Debug, Default)]
pub struct BitVector {
    width: usize,
    pieces: Vec<Piece>,
    /// Blocks of 256 classes, or of numbers of blocks.
    blocks: Vec<[u16; 256]>,
    joins: Vec<Join>,
    /// The arrays of joins: classes by pairs.
    pairs: Vec<u16>,
    /// What is left, to be joined by vectors.
    left: Vec<Left>,
    /// For each class a summary, if there is one, then a vector.
    rows: Vec<u64>,
    /// Words of a summary, of a vector.
    summary: usize,
    words: usize,
    /// Values by place in the vectors; if one class is left, by class.
    values: Vec<u64>,
}

/// A piece of the key. What it finds is kept in the place that it has among all pieces.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it lies in the key.
    word: usize,
    shift: u32,
    mask: u64,
    /// Eight bits each.
    levels: usize,
    /// Its blocks, and the one that the uppermost bits choose in.
    start: usize,
    len: usize,
    top: usize,
}

impl Piece {
    /// Goes down the levels; of a piece with more than 4, as many as it has.
    #[inline(always)]
    fn classes<const K: usize, const L: usize>(&self, blocks: &[[u16; 256]], words: &[u64; K], classes: &mut [u16; K]) {
        let (shift, mask) = (self.shift & 63, self.mask);
        let mut values = [[0u8; 8]; K];
        for (value, word) in values.iter_mut().zip(words) {
            *value = (word >> shift & mask).to_le_bytes();
        }
        let levels = if L <= 4 { L } else { self.levels };
        let blocks = blocks.get(self.start..).unwrap_or(&[]);
        let Some(top) = blocks.get(self.top) else { return };
        // Where numbers of blocks have eight bits, no look needs to be checked.
        if let Some(few) = blocks.first_chunk::<256>().filter(|_| self.len <= 256) {
            each(classes, &values, |class, value| {
                let mut at = top[usize::from(value[(levels - 1) & 7])];
                for level in (0..levels - 1).rev() {
                    at = few[usize::from(at as u8)][usize::from(value[level & 7])];
                }
                *class = at;
            });
        } else {
            each(classes, &values, |class, value| {
                let mut at = top[usize::from(value[(levels - 1) & 7])];
                for level in (0..levels - 1).rev() {
                    at = blocks.get(usize::from(at)).unwrap_or(top)[usize::from(value[level & 7])];
                }
                *class = at;
            });
        }
    }
}

impl Join {
    #[inline(always)]
    fn classes<const K: usize>(&self, pairs: &[u16], a: &mut [u16; K], b: &[u16; K]) {
        let pairs = pairs.get(self.start..).unwrap_or(&[]);
        // As above, of places that have sixteen bits.
        if let Some(few) = pairs.first_chunk::<0x1_0000>().filter(|_| self.len <= 0x1_0000) {
            let stride = self.stride as u16;
            each(a, b, |a, b| *a = few[usize::from(a.wrapping_mul(stride).wrapping_add(*b))]);
        } else {
            each(a, b, |a, b| {
                *a = pairs.get(usize::from(*a) * self.stride + usize::from(*b)).copied().unwrap_or(0);
            });
        }
    }
}

/// One word of each key.
#[inline(always)]
fn column_of<const K: usize, const W: usize>(keys: &[u64], of: usize, column: &mut [u64; K]) {
    let (keys, _) = keys.as_chunks::<W>();
    let Some(keys) = keys.first_chunk::<K>() else { return };
    for place in 0..W {
        if place == of {
            each(column, keys, |word, key| *word = key[place]);
        }
    }
}

/// Does the same for each of a burst, four at a time so that the loop itself costs little.
#[inline(always)]
fn each<A, B, const K: usize>(to: &mut [A; K], of: &[B; K], mut step: impl FnMut(&mut A, &B)) {
    let (to, to_rest) = to.as_chunks_mut::<4>();
    let (of, of_rest) = of.as_chunks::<4>();
    for ([a, b, c, d], [w, x, y, z]) in to.iter_mut().zip(of) {
        step(a, w);
        step(b, x);
        step(c, y);
        step(d, z);
    }
    to_rest.iter_mut().zip(of_rest).for_each(|(to, of)| step(to, of));
}

/// The class of a pair of classes.
#[derive(Clone, Copy, Debug)]
struct Join {
    /// Where the classes stand; the result goes where `a` was.
    a: usize,
    b: usize,
    /// How many classes `b` may be.
    stride: usize,
    start: usize,
    len: usize,
}

/// A class whose vector is to be joined.
#[derive(Clone, Copy, Debug)]
struct Left {
    at: usize,
    /// Its rows.
    start: usize,
    len: usize,
}

impl BitVector {
    /// Builds the vectors. It takes any entries, but memory grows with their number times that of the classes.
    /// Nothing if there are too many classes.
    pub fn new(width: usize, entries: &[Entry], _seed: u64) -> Option<BitVector> {
        build::build(width, entries)
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        512 * self.blocks.len() + 2 * self.pairs.len() + 8 * (self.rows.len() + self.values.len())
    }

    /// Pieces that a look-up reads.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Joins by arrays, and vectors that are left to be joined.
    pub fn joins(&self) -> (usize, usize) {
        (self.joins.len(), self.left.len())
    }

    /// The value of the first entry that matches, or [`MISS`].
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        let mut found = [MISS];
        self.find::<1>(key, &mut found);
        found[0]
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        match <&mut [u64; BURST]>::try_from(&mut *found) {
            Ok(found) => self.find::<BURST>(keys, found),
            Err(_) => super::one_by_one(keys, found, |key| self.lookup(key)),
        }
    }

    /// Lines that a look-up reads at the most: blocks of pieces, arrays of joins, all of the vectors, and the value.
    pub fn worst_probes(&self) -> u32 {
        let pieces: usize = self.pieces.iter().map(|piece| piece.levels).sum();
        let vectors = self.left.len() * (self.summary + self.words);
        (pieces + self.joins.len() + vectors + 1) as u32
    }

    /// Lines that the look-up of a key reads.
    pub fn probes(&self, key: &[u64]) -> u32 {
        let pieces: usize = self.pieces.iter().map(|piece| piece.levels).sum();
        let mut classes = [[0; 1]; MAX_PIECES];
        self.classes(key, &mut classes);
        let groups = if self.summary == 0 { 1 } else { self.summary };
        let mut read = pieces + self.joins.len() + 1;
        for group in 0..groups {
            read += self.left.len() * if self.summary == 0 { self.words } else { 1 };
            let mut candidates = if self.summary == 0 { 0 } else { self.all(&classes, group) };
            while candidates != 0 {
                read += self.left.len();
                if self.all(&classes, self.summary + group * 64 + candidates.trailing_zeros() as usize) != 0 {
                    return read as u32;
                }
                candidates &= candidates - 1;
            }
        }
        read as u32
    }

    #[inline(always)]
    fn find<const K: usize>(&self, keys: &[u64], found: &mut [u64; K]) {
        // Few pieces, as of addresses and ports, are worth a smaller frame.
        if self.pieces.len() <= FEW_PIECES {
            let mut classes = [[0; K]; FEW_PIECES];
            self.find_in(keys, &mut classes, found);
        } else {
            self.find_in_many(keys, found);
        }
    }

    #[inline(never)]
    fn find_in_many<const K: usize>(&self, keys: &[u64], found: &mut [u64; K]) {
        let mut classes = [[0; K]; MAX_PIECES];
        self.find_in(keys, &mut classes, found);
    }

    #[inline(always)]
    fn find_in<const K: usize>(&self, keys: &[u64], classes: &mut [[u16; K]], found: &mut [u64; K]) {
        self.classes(keys, classes);
        if let [left] = self.left[..] {
            let Some(classes) = classes.get(left.at) else { return };
            let values = &self.values[..];
            each(found, classes, |found, class| *found = values.get(usize::from(*class)).copied().unwrap_or(MISS));
            return;
        }
        match self.words {
            0 => found.fill(MISS),
            1 => self.first::<K, 1>(classes, found),
            2 => self.first::<K, 2>(classes, found),
            3 | 4 => self.first::<K, 4>(classes, found),
            _ => self.first_by_summary(classes, found),
        }
    }

    /// The classes of what is left, each in its place.
    #[inline(always)]
    fn classes<const K: usize>(&self, keys: &[u64], classes: &mut [[u16; K]]) {
        let mut column = [0u64; K];
        let mut of = usize::MAX;
        for (piece, classes) in self.pieces.iter().zip(classes.iter_mut()) {
            if of != piece.word {
                of = piece.word;
                match self.width {
                    1 => column_of::<K, 1>(keys, of, &mut column),
                    2 => column_of::<K, 2>(keys, of, &mut column),
                    3 => column_of::<K, 3>(keys, of, &mut column),
                    4 => column_of::<K, 4>(keys, of, &mut column),
                    width => column.iter_mut().zip(keys.chunks_exact(width)).for_each(|(word, key)| *word = key[of]),
                }
            }
            let blocks = &self.blocks[..];
            match piece.levels {
                1 => piece.classes::<K, 1>(blocks, &column, classes),
                2 => piece.classes::<K, 2>(blocks, &column, classes),
                3 => piece.classes::<K, 3>(blocks, &column, classes),
                4 => piece.classes::<K, 4>(blocks, &column, classes),
                _ => piece.classes::<K, 8>(blocks, &column, classes),
            }
        }
        for join in &self.joins {
            let Some(&b) = classes.get(join.b) else { continue };
            let Some(a) = classes.get_mut(join.a) else { continue };
            join.classes(&self.pairs, a, &b);
        }
    }

    /// All vectors whole: they are `W` words long.
    #[inline(always)]
    fn first<const K: usize, const W: usize>(&self, classes: &[[u16; K]], found: &mut [u64; K]) {
        let mut all = [[u64::MAX; W]; K];
        for left in &self.left {
            let (rows, _) = self.rows.get(left.start..left.start + left.len).unwrap_or(&[]).as_chunks::<W>();
            let Some(classes) = classes.get(left.at) else { continue };
            for (all, class) in all.iter_mut().zip(classes) {
                let row = rows.get(usize::from(*class)).unwrap_or(&[0; W]);
                all.iter_mut().zip(row).for_each(|(all, word)| *all &= word);
            }
        }
        for (found, all) in found.iter_mut().zip(&all) {
            let mut place = usize::MAX;
            for (at, word) in all.iter().enumerate().rev() {
                place = if *word == 0 { place } else { at * 64 + word.trailing_zeros() as usize };
            }
            *found = self.values.get(place).copied().unwrap_or(MISS);
        }
    }

    /// Summaries, then the first word that they leave; where that does not decide, the others.
    #[inline(always)]
    fn first_by_summary<const K: usize>(&self, classes: &[[u16; K]], found: &mut [u64; K]) {
        let mut candidates = [u64::MAX; K];
        let mut words = [u64::MAX; K];
        let stride = self.summary + self.words;
        for left in &self.left {
            let rows = self.rows.get(left.start..left.start + left.len).unwrap_or(&[]);
            let Some(classes) = classes.get(left.at) else { continue };
            for (all, class) in candidates.iter_mut().zip(classes) {
                *all &= rows.get(usize::from(*class) * stride).copied().unwrap_or(0);
            }
        }
        for left in &self.left {
            let rows = self.rows.get(left.start..left.start + left.len).unwrap_or(&[]);
            let Some(classes) = classes.get(left.at) else { continue };
            for ((all, class), candidates) in words.iter_mut().zip(classes).zip(&candidates) {
                let at = self.summary + (candidates.trailing_zeros() & 63) as usize;
                *all &= rows.get(usize::from(*class) * stride + at).copied().unwrap_or(0);
            }
        }
        for (key, found) in found.iter_mut().enumerate() {
            let place = (candidates[key].trailing_zeros() as usize & 63) * 64 + words[key].trailing_zeros() as usize;
            *found = if candidates[key] == 0 || words[key] == 0 {
                self.other_words(classes, key, candidates[key])
            } else {
                self.values.get(place).copied().unwrap_or(MISS)
            };
        }
    }

    /// What is left to try of a key: the other words that its first summary names, then what other summaries name.
    #[inline(never)]
    fn other_words<const K: usize>(&self, classes: &[[u16; K]], key: usize, first: u64) -> u64 {
        let of_key = |class: &[u16; K]| [class.get(key).copied().unwrap_or(0)];
        let mut own = [[0; 1]; MAX_PIECES];
        own.iter_mut().zip(classes).for_each(|(own, class)| *own = of_key(class));
        for group in 0..self.summary {
            let mut candidates = if group == 0 { first & first.wrapping_sub(1) } else { self.all(&own, group) };
            while candidates != 0 {
                let word = group * 64 + candidates.trailing_zeros() as usize;
                let found = self.all(&own, self.summary + word);
                if found != 0 {
                    return self.values.get(word * 64 + found.trailing_zeros() as usize).copied().unwrap_or(MISS);
                }
                candidates &= candidates - 1;
            }
        }
        MISS
    }

    /// A word that all vectors of one key have in common.
    fn all(&self, classes: &[[u16; 1]; MAX_PIECES], at: usize) -> u64 {
        let stride = self.summary + self.words;
        let row = |left: &Left| {
            let class = classes.get(left.at).map_or(0, |class| usize::from(class[0]));
            self.rows.get(left.start + class * stride + at).copied().unwrap_or(0)
        };
        self.left.iter().fold(u64::MAX, |all, left| all & row(left))
    }
}
