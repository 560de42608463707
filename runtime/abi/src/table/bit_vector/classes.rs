//! Classes: vectors without doubles, by number.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Numbers by hashes that are good already.
pub(super) type ByHash = HashMap<u64, Vec<u16>, BuildHasherDefault<AsIs>>;

/// Numbers by pairs of numbers, multiplied.
pub(super) type ByPair = HashMap<u64, u16, BuildHasherDefault<AsIs>>;

/// A hash of a hash.
#[derive(Clone, Default)]
pub(super) struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0.rotate_left(8) ^ u64::from(*byte)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash ^ hash >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Vectors of the same length, each once.
#[derive(Clone)]
pub(super) struct Classes {
    words: usize,
    /// One behind the other.
    vectors: Vec<u64>,
    len: usize,
    by_hash: ByHash,
}

impl Classes {
    /// None yet, of so many words.
    pub(super) fn new(words: usize) -> Classes {
        Classes { words, vectors: Vec::new(), len: 0, by_hash: ByHash::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Words of each.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// The vectors by number.
    pub(super) fn vectors(&self) -> impl Iterator<Item = &[u64]> {
        self.vectors.chunks(self.words.max(1))
    }

    /// The vector of a class.
    pub(super) fn vector(&self, class: u16) -> &[u64] {
        &self.vectors[usize::from(class) * self.words..][..self.words]
    }

    /// The number of the class with this vector; nothing if there are too many.
    pub(super) fn number(&mut self, vector: &[u64]) -> Option<u16> {
        let step = |hash: u64, word: &u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let hash = vector.iter().fold(0, step);
        let same = self.by_hash.entry(hash).or_default();
        let words = self.words;
        if let Some(class) = same.iter().find(|&&class| &self.vectors[usize::from(class) * words..][..words] == vector)
        {
            return Some(*class);
        }
        let class = u16::try_from(self.len).ok()?;
        same.push(class);
        self.vectors.extend(vector);
        self.len += 1;
        Some(class)
    }

    /// The same classes under other numbers.
    pub(super) fn renumbered(&self, new: &[u16]) -> Classes {
        let mut old = vec![0usize; new.len()];
        new.iter().enumerate().for_each(|(from, to)| old[usize::from(*to)] = from);
        let mut classes = Classes::new(self.words);
        for from in old {
            let _ = classes.number(&self.vectors[from * self.words..][..self.words]);
        }
        classes
    }
}
