//! One set of entries as bit vectors: how it is looked up.

use super::{MAX_PIECES, MISS};

/// Pieces that most keys have at the most.
const FEW_PIECES: usize = 8;
/// Blocks and pairs of small tables are looked up in windows of these sizes, which must not end before them.
const WINDOWS: [usize; 2] = [16, 256];
pub(super) const PAIRS: usize = 1 << 14;
/// Vectors that are mostly left to be joined at the most.
const FEW_LEFT: usize = 8;
/// Vectors of so many words have no summary.
pub(super) const FEW_WORDS: usize = 4;

/// Vectors, and what leads to them.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub pieces: Vec<Piece>,
    /// Blocks of 256 classes, or of numbers of blocks.
    pub blocks: Vec<[u16; 256]>,
    /// Joins after all pieces; none in a chain.
    pub joins: Vec<Join>,
    /// The arrays of joins: classes by pairs.
    pub pairs: Vec<u16>,
    /// What is left, to be joined by vectors.
    pub left: Vec<Left>,
    /// For each class the summary of its vector, if there is one, then the vector.
    pub rows: Vec<u64>,
    /// Words of a summary, of a vector.
    pub summary: usize,
    pub words: usize,
    /// Values by place in the vectors.
    pub values: Vec<u64>,
    /// The place of the first entry of each word.
    pub firsts: Vec<u32>,
    /// If one class is left, values by class.
    pub answers: Vec<u64>,
}

/// A piece of the key. What it finds is kept in the place that it has among all pieces.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// Where it lies in the key.
    pub word: usize,
    pub shift: u32,
    pub mask: u64,
    /// Eight bits each.
    pub levels: usize,
    /// Its first block, and the one that the uppermost bits choose in.
    pub start: usize,
    pub top: usize,
    /// If it has few blocks, the size of the window that they are in; they hold numbers times 256 then. Else 0.
    pub window: usize,
    /// In a chain: joins what the pieces before have found with the class of this one.
    pub join: Option<Join>,
}

/// The class of a pair of classes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Join {
    /// Where the classes stand; the result goes where `a` was.
    pub a: usize,
    pub b: usize,
    /// How many classes `b` may be.
    pub stride: usize,
    pub start: usize,
    pub len: usize,
}

/// A class whose vector is to be joined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    pub at: usize,
    /// Its rows.
    pub start: usize,
    pub len: usize,
}

impl Part {
    pub(super) fn memory(&self) -> usize {
        let words = self.rows.len() + self.values.len() + self.answers.len();
        512 * self.blocks.len() + 2 * self.pairs.len() + 8 * words
    }

    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Lines that each look-up reads: of pieces and joins, and the value.
    fn fixed_probes(&self) -> usize {
        let of_piece = |piece: &Piece| piece.levels + usize::from(piece.join.is_some());
        self.pieces.iter().map(of_piece).sum::<usize>() + self.joins.len() + 1
    }

    pub(super) fn worst_probes(&self) -> u32 {
        let vectors = match self.left.len() {
            1 => 0,
            left => left * (self.summary + self.words),
        };
        (self.fixed_probes() + vectors) as u32
    }

    pub(super) fn probes(&self, width: usize, key: &[u64]) -> u32 {
        if self.left.len() == 1 || self.summary == 0 {
            return self.worst_probes();
        }
        let classes = self.classes_of(width, key);
        let mut read = self.fixed_probes();
        for group in 0..self.summary {
            read += self.left.len();
            let mut candidates = self.all(&classes, 0, group);
            while candidates != 0 {
                read += self.left.len();
                if self.all(&classes, 0, self.summary + group * 64 + candidates.trailing_zeros() as usize) != 0 {
                    // Summaries are read to the end before.
                    return (read + self.left.len() * (self.summary - 1 - group)) as u32;
                }
                candidates &= candidates - 1;
            }
        }
        read as u32
    }

    /// Looks keys up, and keeps what it finds where that comes before what is there.
    #[inline(always)]
    pub(super) fn find<const K: usize>(&self, width: usize, keys: &[u64], found: &mut [u64; K]) {
        // Few pieces, as of addresses and ports, are worth a smaller frame.
        if self.pieces.len() <= FEW_PIECES {
            self.find_in(width, keys, &mut [[0; K]; FEW_PIECES], found);
        } else {
            self.find_in_many(width, keys, found);
        }
    }

    #[inline(never)]
    fn find_in_many<const K: usize>(&self, width: usize, keys: &[u64], found: &mut [u64; K]) {
        self.find_in(width, keys, &mut [[0; K]; MAX_PIECES], found);
    }

    #[inline(always)]
    fn find_in<const K: usize>(&self, width: usize, keys: &[u64], classes: &mut [[u16; K]], found: &mut [u64; K]) {
        self.classes(width, keys, classes);
        if let [left] = self.left[..] {
            let Some(classes) = classes.get(left.at) else { return };
            let answers = &self.answers[..];
            each(found, classes, |found, class| {
                *found = first(*found, answers.get(usize::from(*class)).copied().unwrap_or(MISS));
            });
            return;
        }
        match self.words {
            0 => {}
            1 => self.first::<K, 1>(classes, found),
            2 => self.first::<K, 2>(classes, found),
            3 | 4 => self.first::<K, 4>(classes, found),
            _ => self.first_by_summary(classes, found),
        }
    }

    /// The classes of what is left, each in its place.
    #[inline(always)]
    fn classes<const K: usize>(&self, width: usize, keys: &[u64], classes: &mut [[u16; K]]) {
        let mut column = [0u64; K];
        let mut of = usize::MAX;
        for (at, piece) in self.pieces.iter().enumerate() {
            if of != piece.word {
                of = piece.word;
                column_of_key(width, keys, of, &mut column);
            }
            let (before, own) = classes.split_at_mut(at);
            let Some(own) = own.first_mut() else { return };
            let (blocks, pairs) = (&self.blocks[..], &self.pairs[..]);
            match piece.join {
                None => piece.find(blocks, &column, own, |at, class| *class = at),
                Some(join) => {
                    let Some(a) = before.get_mut(join.a) else { continue };
                    let pairs = pairs.get(join.start..).unwrap_or(&[]);
                    // Where places have few bits, no look needs to be checked.
                    match pairs.first_chunk::<PAIRS>().filter(|_| join.len <= PAIRS) {
                        Some(few) => piece.find(blocks, &column, a, |b, a| {
                            *a = few[(usize::from(*a) * join.stride + usize::from(b)) % PAIRS];
                        }),
                        None => piece.find(blocks, &column, a, |b, a| *a = join.of(pairs, *a, b)),
                    }
                }
            }
        }
        for join in &self.joins {
            let Some(&b) = classes.get(join.b) else { continue };
            let Some(a) = classes.get_mut(join.a) else { continue };
            let pairs = self.pairs.get(join.start..).unwrap_or(&[]);
            each(a, &b, |a, b| *a = join.of(pairs, *a, *b));
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
            *found = first(*found, self.values.get(place).copied().unwrap_or(MISS));
        }
    }

    /// Summaries, then the first word that they leave; where that does not decide, the others.
    #[inline(always)]
    fn first_by_summary<const K: usize>(&self, classes: &[[u16; K]], found: &mut [u64; K]) {
        let stride = self.summary + self.words;
        let (mut candidates, mut at) = ([0u64; K], [0usize; K]);
        for group in (0..self.summary).rev() {
            let mut all = [u64::MAX; K];
            for left in &self.left {
                let rows = self.rows.get(left.start..left.start + left.len).unwrap_or(&[]);
                let Some(classes) = classes.get(left.at) else { continue };
                each(&mut all, classes, |all, class| {
                    *all &= rows.get(usize::from(*class) * stride + group).copied().unwrap_or(0);
                });
            }
            for ((candidates, at), all) in candidates.iter_mut().zip(&mut at).zip(&all) {
                let of_group = (*all, group * 64 + (all.trailing_zeros() as usize & 63));
                (*candidates, *at) = if *all == 0 { (*candidates, *at) } else { of_group };
            }
        }
        let mut words = [u64::MAX; K];
        for left in &self.left {
            let rows = self.rows.get(left.start + self.summary..left.start + left.len).unwrap_or(&[]);
            let Some(classes) = classes.get(left.at) else { continue };
            for ((all, class), at) in words.iter_mut().zip(classes).zip(&at) {
                *all &= rows.get(usize::from(*class) * stride + at).copied().unwrap_or(0);
            }
        }
        for (key, found) in found.iter_mut().enumerate() {
            let may_be_first = self.firsts.get(at[key]).is_some_and(|first| *first <= *found as u32);
            if candidates[key] == 0 || !may_be_first {
                continue;
            }
            let place = at[key] * 64 + words[key].trailing_zeros() as usize;
            let own = match words[key] {
                0 => self.first_from(classes, key, 64 * (at[key] + 1), *found as u32),
                _ => self.values.get(place).copied().unwrap_or(MISS),
            };
            *found = first(*found, own);
        }
    }

    /// The first entry of a key of a burst, from a place in the vectors on; none that surely comes behind another place.
    #[inline(never)]
    fn first_from<const K: usize>(&self, classes: &[[u16; K]], key: usize, start: usize, before: u32) -> u64 {
        let stride = self.summary + self.words;
        let mut few: [&[u64]; FEW_LEFT] = [&[]; FEW_LEFT];
        if self.left.len() > FEW_LEFT {
            return self.first_by(start, before, |at| self.all(classes, key, at));
        }
        for (row, left) in few.iter_mut().zip(&self.left) {
            let class = classes.get(left.at).and_then(|classes| classes.get(key)).copied().unwrap_or(0);
            let start = left.start + usize::from(class) * stride;
            *row = self.rows.get(start..start + stride).unwrap_or(&[]);
        }
        let rows = &few[..self.left.len()];
        self.first_by(start, before, |at| {
            rows.iter().fold(u64::MAX, |all, row| all & row.get(at).copied().unwrap_or(0))
        })
    }

    /// The same, by what all rows have in common at a place.
    #[inline(always)]
    fn first_by(&self, start: usize, before: u32, all: impl Fn(usize) -> u64) -> u64 {
        let (first, skip) = (start / 64, u64::MAX << (start % 64));
        let found_in = |word: usize| {
            let found = all(self.summary + word) & if word == first { skip } else { u64::MAX };
            let place = word * 64 + found.trailing_zeros() as usize;
            (found != 0).then(|| self.values.get(place).copied().unwrap_or(MISS))
        };
        if self.summary == 0 {
            return (first..self.words).find_map(found_in).unwrap_or(MISS);
        }
        for group in first / 64..self.summary {
            let of_group = if group == first / 64 { u64::MAX << (first % 64) } else { u64::MAX };
            let mut candidates = all(group) & of_group;
            while candidates != 0 {
                let word = group * 64 + candidates.trailing_zeros() as usize;
                if self.firsts.get(word).is_none_or(|first| *first > before) {
                    return MISS;
                }
                if let Some(found) = found_in(word) {
                    return found;
                }
                candidates &= candidates - 1;
            }
        }
        MISS
    }

    pub(super) fn find_after(&self, width: usize, key: &[u64], after: u32) -> u64 {
        let start = self.values.partition_point(|value| *value as u32 <= after);
        self.first_from(&self.classes_of(width, key), 0, start, u32::MAX)
    }

    fn classes_of(&self, width: usize, key: &[u64]) -> [[u16; 1]; MAX_PIECES] {
        let mut classes = [[0; 1]; MAX_PIECES];
        self.classes(width, key, &mut classes);
        classes
    }

    /// What rows of all that is left have in common, for one key of a burst.
    #[inline(always)]
    fn all<const K: usize>(&self, classes: &[[u16; K]], key: usize, at: usize) -> u64 {
        let row = |left: &Left| {
            let class = classes.get(left.at).and_then(|classes| classes.get(key)).copied().unwrap_or(0);
            let row = left.start + usize::from(class) * (self.summary + self.words);
            self.rows.get(row + at).copied().unwrap_or(0)
        };
        self.left.iter().fold(u64::MAX, |all, left| all & row(left))
    }
}

impl Piece {
    /// Goes down the levels for each key, and does something with the class.
    #[inline(always)]
    pub(super) fn find<const K: usize>(
        &self,
        blocks: &[[u16; 256]],
        words: &[u64; K],
        to: &mut [u16; K],
        step: impl Fn(u16, &mut u16),
    ) {
        match self.levels {
            1 => self.find_in::<K, 1>(blocks, words, to, step),
            2 => self.find_in::<K, 2>(blocks, words, to, step),
            3 => self.find_in::<K, 3>(blocks, words, to, step),
            4 => self.find_in::<K, 4>(blocks, words, to, step),
            _ => self.find_in::<K, 8>(blocks, words, to, step),
        }
    }

    /// Pieces with more than 4 levels have as many as they say.
    #[inline(always)]
    fn find_in<const K: usize, const L: usize>(
        &self,
        blocks: &[[u16; 256]],
        words: &[u64; K],
        to: &mut [u16; K],
        step: impl Fn(u16, &mut u16),
    ) {
        let (shift, mask) = (self.shift & 63, self.mask);
        let mut values = [[0u8; 8]; K];
        for (value, word) in values.iter_mut().zip(words) {
            *value = (word >> shift & mask).to_le_bytes();
        }
        let levels = if L <= 4 { L } else { self.levels };
        let blocks = blocks.get(self.start..).unwrap_or(&[]);
        let Some(top) = blocks.get(self.top) else { return };
        match self.window {
            0 => each(to, &values, |to, value| {
                let mut at = top[usize::from(value[(levels - 1) & 7])];
                for level in (0..levels - 1).rev() {
                    at = blocks.get(usize::from(at)).unwrap_or(top)[usize::from(value[level & 7])];
                }
                step(at, to);
            }),
            window if window == WINDOWS[0] => {
                scaled::<K, { 256 * WINDOWS[0] }>(blocks, top, levels, &values, to, step);
            }
            _ => scaled::<K, { 256 * WINDOWS[1] }>(blocks, top, levels, &values, to, step),
        }
    }
}

/// Goes down blocks that hold numbers times 256: a step is an "or" with the next eight bits, and a load.
#[inline(always)]
fn scaled<const K: usize, const N: usize>(
    blocks: &[[u16; 256]],
    top: &[u16; 256],
    levels: usize,
    values: &[[u8; 8]; K],
    to: &mut [u16; K],
    step: impl Fn(u16, &mut u16),
) {
    let Some(window) = blocks.as_flattened().first_chunk::<N>() else {
        debug_assert!(false, "blocks end before the window");
        return;
    };
    each(to, values, |to, value| {
        let mut at = top[usize::from(value[(levels - 1) & 7])];
        for level in (0..levels - 1).rev() {
            at = window[usize::from(at | u16::from(value[level & 7])) % N];
        }
        step(at >> 8, to);
    });
}

/// The window for so many blocks.
pub(super) fn window(blocks: usize) -> usize {
    WINDOWS.into_iter().find(|window| blocks <= *window).unwrap_or(0)
}

/// Adds blocks until all windows are whole.
pub(super) fn pad(blocks: &mut Vec<[u16; 256]>, pieces: &[Piece]) {
    let end = pieces.iter().map(|piece| piece.start + piece.window).max().unwrap_or(0);
    blocks.resize(blocks.len().max(end), [0; 256]);
}

impl Join {
    /// The class of a pair.
    #[inline(always)]
    fn of(&self, pairs: &[u16], a: u16, b: u16) -> u16 {
        pairs.get(usize::from(a) * self.stride + usize::from(b)).copied().unwrap_or(0)
    }
}

/// One word of each key.
#[inline(always)]
pub(super) fn column_of_key<const K: usize>(width: usize, keys: &[u64], of: usize, column: &mut [u64; K]) {
    match width {
        1 => column_of::<K, 1>(keys, of, column),
        2 => column_of::<K, 2>(keys, of, column),
        3 => column_of::<K, 3>(keys, of, column),
        4 => column_of::<K, 4>(keys, of, column),
        _ => column.iter_mut().zip(keys.chunks_exact(width)).for_each(|(word, key)| *word = key[of]),
    }
}

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

/// The value whose entry comes first.
#[inline(always)]
fn first(a: u64, b: u64) -> u64 {
    if (b as u32) < a as u32 { b } else { a }
}

/// Does the same for each of a burst, four at a time so that the loop itself costs little.
#[inline(always)]
pub(super) fn each<A, B, const K: usize>(to: &mut [A; K], of: &[B; K], mut step: impl FnMut(&mut A, &B)) {
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
