//! What entries give: a row each of what the look-up gives, the arguments, and when the entry came.
//!
//! Rows never move and are written before anything leads to them, so readers need nothing but their number; who writes gives a
//! row to another entry only when no reader can have its number any more.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use super::super::MISS;

/// Rows that memory is taken for at once.
const CHUNK: usize = 256;

/// Rows of all entries of a table.
#[derive(Debug)]
pub struct Rows {
    /// What is found, arguments, and the entry's turn.
    stride: usize,
    chunks: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

/// The row of an entry, or of none.
#[derive(Clone, Copy, Debug)]
pub struct Row<'t>(&'t [AtomicU64]);

impl Rows {
    /// Room for the rows of `entries`, some more that wait to be free, and words of arguments in each.
    pub fn new(args: usize, entries: usize) -> Rows {
        let chunks = (4 * entries.min(1 << 26) + (1 << 16)).div_ceil(CHUNK);
        Rows { stride: args + 2, chunks: (0..chunks).map(|_| OnceLock::new()).collect() }
    }

    /// Rows there may be.
    pub fn capacity(&self) -> u32 {
        (self.chunks.len() * CHUNK) as u32
    }

    /// Writes a row that nothing leads to.
    pub fn write(&self, row: u32, found: u64, args: &[u64], turn: u64) {
        let Some(chunk) = self.chunks.get(row as usize / CHUNK) else { return };
        let chunk = chunk.get_or_init(|| (0..CHUNK * self.stride).map(|_| AtomicU64::new(0)).collect());
        let words = &chunk[row as usize % CHUNK * self.stride..][..self.stride];
        words[0].store(found, Ordering::Relaxed);
        let args = args.iter().copied().chain(core::iter::repeat(0));
        words[1..self.stride - 1].iter().zip(args).for_each(|(word, arg)| word.store(arg, Ordering::Relaxed));
        words[self.stride - 1].store(turn, Ordering::Relaxed);
    }

    /// The row with a number.
    #[inline(always)]
    pub fn get(&self, row: u64) -> Row<'_> {
        let chunk = self.chunks.get(row as usize / CHUNK).and_then(OnceLock::get);
        let start = row as usize % CHUNK * self.stride;
        Row(chunk.and_then(|chunk| chunk.get(start..start + self.stride)).unwrap_or(&[]))
    }

    /// Bytes.
    pub fn memory(&self) -> usize {
        self.chunks.iter().filter_map(OnceLock::get).map(|chunk| 8 * chunk.len()).sum()
    }
}

impl<'t> Row<'t> {
    /// No entry's row.
    pub const NONE: Row<'static> = Row(&[]);

    /// What a look-up gives: the action above 32 bits, the slot below; [`MISS`] if there is no entry.
    #[inline(always)]
    pub fn found(self) -> u64 {
        self.0.first().map_or(MISS, |word| word.load(Ordering::Relaxed))
    }

    /// The arguments.
    #[inline(always)]
    pub fn args(self) -> impl Iterator<Item = u64> + 't {
        let args = self.0.get(1..self.0.len().wrapping_sub(1)).unwrap_or(&[]);
        args.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// When the entry came, among all of the table.
    pub fn turn(self) -> u64 {
        self.0.last().map_or(0, |word| word.load(Ordering::Relaxed))
    }
}
