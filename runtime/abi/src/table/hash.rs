//! Exact match: a hash table of buckets that hold tags, keys and values together.
//!
//! **Layout.** A bucket is a few cache lines: a word of tags, one byte a lane, then the values of all lanes, two a word, then
//! their keys. How many lanes and lines follows from the width of the key, so that little is left over: four lanes in one
//! line for a key of one word, six in two lines for two words, five or six for wider ones. A bucket of nothing but tags and
//! indices, as in most hash tables for packets (Zhou, Fan, Lim, Kaminsky, Andersen: Scalable, High Performance Ethernet
//! Forwarding with CuckooSwitch, 2013), costs a second miss of cache and page table for the entry; here both lie in the same
//! page, and for one word in the same line. Values are 32 bits: where the upper halves of the entries' values differ, they are
//! places in a list.
//!
//! **Look-up.** The hash gives a bucket and a tag. All tags are compared at once, in one word; a lane whose tag is equal, as
//! hardly any but the right one's is, is compared in full. A burst hashes all keys and loads all words of tags first, so that
//! the misses overlap, and then has no branch that depends on whether a key is found.
//!
//! **Bound.** An entry lies at most [`MAX_PROBES`] buckets behind its own: where that fails, the table is built again with
//! another key of the hash and then larger. Linear probing was taken over two choices of bucket, because an entry never moves:
//! readers need no version. The last byte of the tags says whether an entry of this bucket or one before had to go on; where
//! it is 0, a look-up ends. The hash is keyed, multiplied and folded as in wyhash, so nobody without the key can choose
//! colliding packets, and nobody at all can make a look-up longer than the bound.
//!
//! **Changes in place.** One thread may change the table while others look up. A new entry is written behind tag 0, and the
//! store of the tags publishes it; another value is one store; taking an entry out is one store of the tags, and leaves the
//! tag [`WAITING`]. Such a lane is given a new entry only after [`Hash::release`], which the writer calls once no reader can
//! still be comparing the old one. So a reader sees an entry whole or not at all.

use core::sync::atomic::{AtomicU64, Ordering};

use super::values::{NONE, Values};
use super::{BURST, Entry, MAX_WORDS, MISS};

/// Buckets that a look-up visits at the most.
pub const MAX_PROBES: usize = 12;
/// The tag of a lane that is free.
const FREE: u64 = 0;
/// The tag of a lane whose entry was taken out, while a reader may still look at it.
const WAITING: u64 = 1;
/// A one in the byte of each lane.
const EACH: u64 = 0x0001_0101_0101_0101;
/// Set in the tags of a bucket that an entry could not stay in.
const OVERFLOWS: u64 = 1 << 56;
/// Words of a line.
const LINE: usize = 8;
/// Entries that get room of their own: fewer go on to another bucket, and the table stays in the caches.
const FEW: usize = 1 << 14;
/// Lines above which a burst touches all it will read before it reads.
const BEYOND_CACHES: usize = 1 << 12;

/// A cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; LINE]);

/// Entries that all compare the same bits.
#[derive(Debug)]
pub struct Hash {
    width: usize,
    mask: [u64; MAX_WORDS],
    seed: [u64; 2],
    /// Lanes and lines of a bucket.
    lanes: usize,
    lines: usize,
    buckets: u64,
    memory: Box<[Line]>,
    values: Values,
}

/// Where an entry lies: its bucket and its lane in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane(u32);

/// Lanes and lines of a bucket for keys of so many words.
const fn layout(width: usize) -> (usize, usize) {
    match width {
        1 => (4, 1),
        2 => (6, 2),
        3 => (6, 3),
        4 => (5, 3),
        width => (5, (4 + 5 * width).div_ceil(LINE)),
    }
}

/// The part of all lanes that so many entries may take: hardly one lies far behind its bucket then, and of few none.
fn load(width: usize, entries: usize) -> f64 {
    if entries < FEW {
        0.42
    } else if width == 1 {
        0.5
    } else {
        0.6
    }
}

impl Hash {
    /// A table of these entries. They are taken to have the mask of the first; of equal keys the first entry counts.
    pub fn new(width: usize, entries: &[Entry], seed: u64) -> Hash {
        let mask = entries.first().map_or(&[][..], |entry| &entry.mask);
        let values = Values::of(entries);
        let mut load = load(width, entries.len());
        for attempt in 0u64.. {
            let seed = seed.wrapping_add(attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut table = Hash::with_capacity(width, mask, entries.len(), load, seed);
            if entries.iter().all(|entry| table.put(&entry.key, values.kept(entry.value), u32::min).is_ok()) {
                table.values = values;
                return table;
            }
            load *= if attempt % 2 == 1 { 0.9 } else { 1.0 };
        }
        unreachable!("a table that grows takes all entries at last")
    }

    /// An empty table for so many entries whose keys are compared as a whole.
    pub fn exact(width: usize, entries: usize, seed: u64) -> Hash {
        Hash::with_capacity(width, &[u64::MAX; MAX_WORDS], entries, load(width, entries), seed)
    }

    /// An empty table for so many entries, of which that part of the lanes is taken then. Its values are 31 bits.
    pub fn with_capacity(width: usize, mask: &[u64], entries: usize, load: f64, seed: u64) -> Hash {
        let width = width.clamp(1, MAX_WORDS);
        let (lanes, lines) = layout(width);
        let buckets = ((entries as f64 / load / lanes as f64) as usize).max(1);
        let mut all = [0; MAX_WORDS];
        all.iter_mut().zip(mask).take(width).for_each(|(all, mask)| *all = *mask);
        let seed =
            [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db].map(|salt| fold(seed ^ salt, 0x8ebc_6af0_9c88_c6e3) | 1);
        let memory = (0..buckets * lines).map(|_| Line::default()).collect();
        Hash { width, mask: all, seed, lanes, lines, buckets: buckets as u64, memory, values: Values::default() }
    }

    /// Buckets there are.
    pub fn buckets(&self) -> usize {
        self.buckets as usize
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.memory) + self.values.memory()
    }

    /// Lines that a look-up reads at the most.
    pub fn worst_probes(&self) -> u32 {
        (MAX_PROBES.min(self.buckets()) * self.lines) as u32
    }

    /// Lines that the look-up of a key reads.
    pub fn probes(&self, key: &[u64]) -> u32 {
        let mut probes = 0;
        self.visit(self.hash(key), |bucket, mut lanes| {
            let mut read = 1u64;
            let found = lanes.find(|lane| {
                read |= 1 << ((1 + lane / 2) / LINE);
                (0..self.width).for_each(|k| read |= 1 << ((self.key_at(*lane) + k) / LINE));
                self.is(bucket, *lane, key)
            });
            probes += read.count_ones();
            found
        });
        probes
    }

    /// The value of the entry that matches, or [`MISS`].
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        self.find(key).map_or(MISS, |(bucket, lane)| self.values.value(self.value(bucket, lane)))
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        match self.width {
            1 => self.burst::<1, 4, 1>(keys, found),
            2 => self.burst::<2, 6, 2>(keys, found),
            3 => self.burst::<3, 6, 3>(keys, found),
            4 => self.burst::<4, 5, 3>(keys, found),
            _ => super::one_by_one(keys, found, |key| self.lookup(key)),
        }
    }

    /// Keys of `W` words, in buckets of so many lanes and lines.
    #[inline(always)]
    fn burst<const W: usize, const LANES: usize, const LINES: usize>(&self, keys: &[u64], found: &mut [u64]) {
        const { assert!(layout(W).0 == LANES && layout(W).1 == LINES) }
        let (keys, _) = keys.as_chunks::<W>();
        let Some(mask) = self.mask.first_chunk::<W>() else { return };
        let (buckets, _) = self.memory.as_chunks::<LINES>();
        let mut ahead = [(0u32, 0u32, 0u64); BURST];
        let mut touched = 0;
        let beyond = self.memory.len() > BEYOND_CACHES;
        for (ahead, key) in ahead.iter_mut().zip(keys) {
            let hash = hash(key, mask, &self.seed);
            let at = self.bucket(hash);
            let Some(bucket) = buckets.get(at) else { return };
            *ahead = (at as u32, tag(hash) as u32, bucket[0].0[0].load(Ordering::Acquire));
            if beyond {
                touched ^= bucket[LINES - 1].0[1].load(Ordering::Relaxed);
            }
        }
        core::hint::black_box(touched);
        for ((found, key), (at, tag, tags)) in found.iter_mut().zip(keys).zip(&ahead) {
            let Some(bucket) = buckets.get(*at as usize) else { return };
            let lanes = equal(*tags, u64::from(*tag));
            let lane = lanes.trailing_zeros() as usize / 8 % LANES;
            let word = |at: usize| bucket[at / LINE % LINES].0[at % LINE].load(Ordering::Acquire);
            let start = 1 + LANES.div_ceil(2) + lane * W;
            let mut differ = u64::from(lanes == 0);
            for k in 0..W {
                differ |= word(start + k) ^ key[k] & mask[k];
            }
            let value = (word(1 + lane / 2) >> (32 * (lane % 2))) as u32;
            *found = self.values.value(if differ == 0 { value } else { NONE });
            if differ != 0 && (lanes & lanes.wrapping_sub(1) != 0 || tags & OVERFLOWS != 0) {
                *found = self.lookup(key);
            }
        }
    }

    // ---- changes in place: by one thread at a time -------------------------------------------------------------------------

    /// Puts an entry in, or gives the one with this key another value: the value it had.
    ///
    /// # Errors
    /// When there is no room within the bound.
    pub fn insert(&self, key: &[u64], value: u32) -> Result<Option<u32>, Full> {
        self.put(key, value, |_, new| new)
    }

    /// Takes an entry out: its value, and its lane, which waits for [`Hash::release`].
    pub fn remove(&self, key: &[u64]) -> Option<(Lane, u32)> {
        let (bucket, lane) = self.find(key)?;
        let value = self.value(bucket, lane);
        self.set_tag(bucket, lane, WAITING);
        Some((Lane((bucket * LINE + lane) as u32), value))
    }

    /// A lane that was left may be taken again: no reader looks at it any more.
    pub fn release(&self, lane: Lane) {
        self.set_tag(lane.0 as usize / LINE, lane.0 as usize % LINE, FREE);
    }

    /// Keys and values of the entries in these buckets.
    pub fn entries(&self, buckets: core::ops::Range<usize>) -> impl Iterator<Item = (Vec<u64>, u32)> {
        let lanes = buckets.flat_map(|bucket| (0..self.lanes).map(move |lane| (bucket, lane)));
        let taken = lanes.filter(|(bucket, lane)| self.word(*bucket, 0) >> (8 * lane) & 0xff > WAITING);
        taken.map(|(bucket, lane)| {
            let key = (0..self.width).map(|k| self.word(bucket, self.key_at(lane) + k));
            (key.collect(), self.value(bucket, lane))
        })
    }

    /// Puts an entry in; where there is one with this key, `choose` says which of the old and the new value stays.
    fn put(&self, key: &[u64], value: u32, choose: fn(u32, u32) -> u32) -> Result<Option<u32>, Full> {
        if let Some((bucket, lane)) = self.find(key) {
            let old = self.value(bucket, lane);
            self.set_value(bucket, lane, choose(old, value));
            return Ok(Some(old));
        }
        let hash = self.hash(key);
        let all = (EACH << 7) & !(u64::MAX << (8 * self.lanes));
        let n = self.buckets();
        for bucket in (0..MAX_PROBES.min(n)).map(|k| (self.bucket(hash) + k) % n) {
            let free = equal(self.word(bucket, 0), FREE) & all;
            if free == 0 {
                self.set_word(bucket, 0, self.word(bucket, 0) | OVERFLOWS);
                continue;
            }
            let lane = free.trailing_zeros() as usize / 8;
            for (k, (key, mask)) in key.iter().zip(&self.mask).enumerate().take(self.width) {
                self.set_word(bucket, self.key_at(lane) + k, key & mask);
            }
            self.set_value(bucket, lane, value);
            self.set_tag(bucket, lane, tag(hash));
            return Ok(None);
        }
        Err(Full)
    }

    // ---- words -------------------------------------------------------------------------------------------------------------

    fn find(&self, key: &[u64]) -> Option<(usize, usize)> {
        let is = |bucket, mut lanes: Lanes| Some((bucket, lanes.find(|lane| self.is(bucket, *lane, key))?));
        self.visit(self.hash(key), is)
    }

    /// Visits the buckets that a key with this hash may lie in, with the lanes that have its tag, until `f` has found it.
    #[inline(always)]
    fn visit<T>(&self, hash: u64, mut f: impl FnMut(usize, Lanes) -> Option<T>) -> Option<T> {
        let mut bucket = self.bucket(hash);
        for _ in 0..MAX_PROBES {
            let tags = self.word(bucket, 0);
            let found = f(bucket, Lanes(equal(tags, tag(hash))));
            if found.is_some() || tags & OVERFLOWS == 0 {
                return found;
            }
            bucket = if bucket + 1 == self.buckets() { 0 } else { bucket + 1 };
        }
        None
    }

    #[inline(always)]
    fn hash(&self, key: &[u64]) -> u64 {
        hash(&key[..self.width.min(key.len())], &self.mask, &self.seed)
    }

    #[inline(always)]
    fn bucket(&self, hash: u64) -> usize {
        (((hash >> 32) * self.buckets) >> 32) as usize
    }

    /// The bucket that a key belongs to.
    #[cfg(test)]
    pub(super) fn home(&self, key: &[u64]) -> usize {
        self.bucket(self.hash(key))
    }

    /// The first word of a lane's key.
    #[inline(always)]
    fn key_at(&self, lane: usize) -> usize {
        1 + self.lanes.div_ceil(2) + lane * self.width
    }

    #[inline(always)]
    fn is(&self, bucket: usize, lane: usize, key: &[u64]) -> bool {
        let start = self.key_at(lane);
        key.iter().zip(&self.mask).enumerate().all(|(k, (key, mask))| self.word(bucket, start + k) == key & mask)
    }

    #[inline(always)]
    fn value(&self, bucket: usize, lane: usize) -> u32 {
        (self.word(bucket, 1 + lane / 2) >> (32 * (lane % 2))) as u32
    }

    #[inline(always)]
    fn word(&self, bucket: usize, at: usize) -> u64 {
        let line = self.memory.get(bucket * self.lines + at / LINE);
        line.map_or(0, |line| line.0[at % LINE].load(Ordering::Acquire))
    }

    fn set_word(&self, bucket: usize, at: usize, value: u64) {
        if let Some(line) = self.memory.get(bucket * self.lines + at / LINE) {
            line.0[at % LINE].store(value, Ordering::Release);
        }
    }

    fn set_value(&self, bucket: usize, lane: usize, value: u32) {
        let (at, shift) = (1 + lane / 2, 32 * (lane % 2));
        let other = self.word(bucket, at) & !(u64::from(u32::MAX) << shift);
        self.set_word(bucket, at, other | u64::from(value) << shift);
    }

    fn set_tag(&self, bucket: usize, lane: usize, tag: u64) {
        let others = self.word(bucket, 0) & !(0xff << (8 * lane));
        self.set_word(bucket, 0, others | tag << (8 * lane));
    }
}

/// There is no room for an entry within the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Lanes, by the top bit of a byte each.
struct Lanes(u64);

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let lane = (self.0 != 0).then(|| self.0.trailing_zeros() as usize / 8);
        self.0 &= self.0.wrapping_sub(1);
        lane
    }
}

/// The top bit of each byte that is `tag`; of a byte behind one that is, perhaps too.
#[inline(always)]
fn equal(tags: u64, tag: u64) -> u64 {
    let differ = tags ^ (tag * EACH);
    differ.wrapping_sub(EACH) & !differ & (EACH << 7)
}

/// A hash's tag, neither [`FREE`] nor [`WAITING`].
#[inline(always)]
fn tag(hash: u64) -> u64 {
    (hash & 0xff).max(WAITING + 1)
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// A keyed hash of what the mask leaves: two words a multiplication, and one more where that was not all.
#[inline(always)]
fn hash(key: &[u64], mask: &[u64], seed: &[u64; 2]) -> u64 {
    let word = |k: usize| if k < key.len() && k < mask.len() { key[k] & mask[k] } else { 0 };
    if key.len() == 1 {
        return fold(word(0) ^ seed[0], seed[1]);
    }
    let mut hash = seed[0];
    for k in (0..key.len()).step_by(2) {
        hash = fold(word(k) ^ hash, word(k + 1) ^ seed[1]);
    }
    fold(hash ^ seed[0], seed[1])
}
