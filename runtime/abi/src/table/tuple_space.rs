//! A merged tuple space: hash tables, each of the entries whose masks look at least at the bits of its own.
//!
//! A tuple is a mask with a hash table of keys under it. If every mask had its own, a look-up would cost as many probes as there
//! are masks; here tuples with shorter masks take entries of many (`merge`; Daly et al.: TupleMerge, 2019), and what a tuple's
//! mask does not look at is compared in the entry: the rest of its mask, and its ranges. The tuples stand in the order of their
//! first entry, and a look-up ends as soon as what it has found comes before everything in the tuples left (Srinivasan, Suri,
//! Varghese: Packet Classification using Tuple Space Search, 1999, with the ordering by priority that Open vSwitch added).
//!
//! A tuple's table is made of buckets of eight 16-bit tags beside eight places: a bucket that holds nothing of a key's tag, as
//! nearly all do for tuples that do not match, costs one line and no comparison of keys. Entries with the same key under the
//! tuple's mask stand in their order, so the first that matches is the one.
//!
//! Hashes are keyed, and a key lies at most [`MAX_PROBES`] buckets behind its own: where that fails, the table is built again
//! under another key and, if need be, larger. At most [`merge::CROWD`] entries have the same key under a tuple's mask. So a
//! packet can cost all tuples, all buckets of a chain and all entries of a crowd, and never more: the number is found when the
//! table is built, and no packet moves it, wherever its sender may know the entries.
//!
//! A burst goes tuple by tuple: hashes and tags of all keys first, which overlap, then what is to be compared.

mod merge;

use super::rows::Rows;
use super::{BURST, Entry, MAX_WORDS, MISS};

/// Buckets that a look-up visits of one tuple, at the most.
pub const MAX_PROBES: usize = 4;
/// Places of a bucket.
const LANES: usize = 8;
/// The tag of an empty place.
const EMPTY: u16 = 0;

/// Eight entries, or fewer: one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Bucket {
    /// Two words of four tags each.
    tags: [u64; LANES / 4],
    /// Where the entries are.
    entries: [u32; LANES],
    /// Whether some entry of this bucket's hash lies in a later one.
    overflows: u32,
}

const NO_BUCKET: Bucket = Bucket { tags: [0; LANES / 4], entries: [0; LANES], overflows: 0 };

/// The keys under one mask.
#[derive(Debug)]
struct Tuple {
    /// Place of its first entry among all.
    first: u64,
    mask: Vec<u64>,
    /// Multipliers of the hash.
    seed: u64,
    /// A power of two of them.
    buckets: Vec<Bucket>,
    /// Buckets and entries that a look-up reads at the most.
    worst: u32,
}

/// Entries under any masks and ranges.
#[derive(Debug)]
pub struct TupleSpace {
    width: usize,
    tuples: Vec<Tuple>,
    rows: Rows,
}

impl TupleSpace {
    /// Builds the table. Of entries that want the same, the first counts.
    pub fn new(width: usize, entries: &[Entry], seed: u64) -> TupleSpace {
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        sorted.sort_by_key(|entry| entry.value & 0xffff_ffff);
        let mut seen = std::collections::HashSet::new();
        sorted.retain(|entry| seen.insert((&entry.mask, &entry.key, &entry.ranges)));
        let mut space = TupleSpace { width, tuples: Vec::new(), rows: Rows::new(width) };
        for group in merge::merge(&sorted) {
            let from = space.rows.len();
            group.entries.iter().for_each(|entry| space.rows.push(entry));
            space.tuples.push(Tuple::new(group.mask, &group.entries, from, seed));
        }
        space.tuples.sort_by_key(|tuple| tuple.first);
        space
    }

    /// Tuples, after merging.
    pub fn tuples(&self) -> usize {
        self.tuples.len()
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        let tuple = |t: &Tuple| size_of::<Bucket>() * t.buckets.len() + size_of::<Tuple>() + 8 * t.mask.len();
        let tuples: usize = self.tuples.iter().map(tuple).sum();
        tuples + self.rows.memory()
    }

    /// Lines that a look-up reads at the most: of each tuple all buckets that a key may lie in, and as many entries as may have
    /// one tag. It is the same under any key of the hash: a table that would read more is built again under another.
    pub fn worst_probes(&self) -> u32 {
        self.tuples.iter().map(|tuple| tuple.worst).sum()
    }

    /// Lines that the look-up of a key reads.
    pub fn probes(&self, key: &[u64]) -> u32 {
        let (mut read, mut best) = (0, MISS);
        for tuple in &self.tuples {
            if best & 0xffff_ffff < tuple.first {
                break;
            }
            let (mut at, mut left) = (tuple.hash(key), MAX_PROBES);
            let tag = tag(at);
            let mut found = MISS;
            while left > 0 && found == MISS {
                let bucket = &tuple.buckets[at as usize & (tuple.buckets.len() - 1)];
                read += 1;
                let mut lanes = bucket.lanes(tag);
                while lanes != 0 && found == MISS {
                    read += 1;
                    found = self.rows.get(bucket.entry(lanes), key);
                    lanes &= lanes - 1;
                }
                left = if bucket.overflows == 0 { 0 } else { left - 1 };
                at = at.wrapping_add(1);
            }
            best = first(best, found);
        }
        read
    }

    /// The value of the first entry that matches and has a place behind `after`, or [`MISS`]. Slow.
    pub fn lookup_after(&self, key: &[u64], after: u32) -> u64 {
        let mut best = MISS;
        for tuple in &self.tuples {
            let hash = tuple.hash(key);
            for step in 0..MAX_PROBES {
                let bucket = &tuple.buckets[(hash as usize + step) & (tuple.buckets.len() - 1)];
                let mut lanes = bucket.lanes(tag(hash));
                while lanes != 0 {
                    let found = self.rows.get(bucket.entry(lanes), key);
                    best = if found as u32 > after { first(best, found) } else { best };
                    lanes &= lanes - 1;
                }
                if bucket.overflows == 0 {
                    break;
                }
            }
        }
        best
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
            Err(_) => super::one_by_one(keys, found, |key| self.lookup(key)),
        }
    }

    #[inline(always)]
    fn find<const K: usize>(&self, keys: &[u64], found: &mut [u64; K]) {
        match self.width {
            1 => self.find_words::<K, 1>(keys, found),
            2 => self.find_words::<K, 2>(keys, found),
            3 => self.find_words::<K, 3>(keys, found),
            4 => self.find_words::<K, 4>(keys, found),
            _ => self.find_any(keys, found),
        }
    }

    #[inline(never)]
    fn find_any<const K: usize>(&self, keys: &[u64], found: &mut [u64; K]) {
        // Words that a key does not have are 0, here as in masks.
        let mut wide = [[0; MAX_WORDS]; K];
        for (wide, key) in wide.iter_mut().zip(keys.chunks_exact(self.width.max(1))) {
            wide.iter_mut().zip(key).for_each(|(wide, word)| *wide = *word);
        }
        self.find_keys(&wide, found);
    }

    #[inline(always)]
    fn find_words<const K: usize, const W: usize>(&self, keys: &[u64], found: &mut [u64; K]) {
        match keys.as_chunks::<W>().0.first_chunk::<K>() {
            Some(keys) => self.find_keys(keys, found),
            None => found.fill(MISS),
        }
    }

    #[inline(always)]
    fn find_keys<const K: usize, const W: usize>(&self, keys: &[[u64; W]; K], found: &mut [u64; K]) {
        found.fill(MISS);
        let mut worst = MISS;
        for tuple in &self.tuples {
            if worst & 0xffff_ffff < tuple.first {
                break; // no key of the burst can find better
            }
            let mut mask = [0; W];
            mask.iter_mut().zip(&tuple.mask).for_each(|(to, from)| *to = *from);
            let last = tuple.buckets.len().wrapping_sub(1);
            // Which keys have something to compare, or to look for in the next bucket.
            let (mut hashes, mut open) = ([0; K], 0u64);
            for (i, ((key, at), found)) in keys.iter().zip(&mut hashes).zip(&*found).enumerate() {
                let masked: [u64; W] = core::array::from_fn(|word| key[word] & mask[word]);
                *at = hash(&masked, tuple.seed);
                let Some(bucket) = tuple.buckets.get(*at as usize & last) else { return };
                let more = bucket.lanes(tag(*at)) | u64::from(bucket.overflows);
                let may = more != 0 && found & 0xffff_ffff >= tuple.first;
                open |= u64::from(may) << i;
            }
            if open == 0 {
                continue;
            }
            while open != 0 {
                let i = open.trailing_zeros() as usize & (K - 1);
                open &= open - 1;
                found[i] = first(found[i], self.chain(tuple, hashes[i], &keys[i]));
            }
            worst = found.iter().fold(0, |worst, found| worst.max(found & 0xffff_ffff));
        }
    }

    /// The first entry of a tuple that matches.
    #[inline(always)]
    fn chain(&self, tuple: &Tuple, hash: u64, key: &[u64]) -> u64 {
        let tag = tag(hash);
        let last = tuple.buckets.len().wrapping_sub(1);
        for step in 0..MAX_PROBES {
            let Some(bucket) = tuple.buckets.get((hash as usize + step) & last) else { return MISS };
            let mut lanes = bucket.lanes(tag);
            while lanes != 0 {
                let found = self.rows.get(bucket.entry(lanes), key);
                if found != MISS {
                    return found;
                }
                lanes &= lanes - 1;
            }
            if bucket.overflows == 0 {
                return MISS;
            }
        }
        MISS
    }
}

/// Tuples that entries would be merged into.
pub(super) fn count(entries: &[Entry]) -> usize {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.value & 0xffff_ffff);
    merge::merge(&sorted).len()
}

/// The value whose entry comes first.
#[inline(always)]
fn first(a: u64, b: u64) -> u64 {
    if b & 0xffff_ffff < a & 0xffff_ffff { b } else { a }
}

impl Bucket {
    /// Lanes that may have a tag: bit 7 of byte `lane` each. Both words at once, in the bytes of one.
    #[inline(always)]
    fn lanes(&self, tag: u16) -> u64 {
        const ONES: u64 = 0x0001_0001_0001_0001;
        let tags = u64::from(tag) * ONES;
        // Lanes that are zero after the exclusive or; a borrow may mark one more, which the entry will refuse.
        let zero = |word: u64| {
            let differ = word ^ tags;
            differ.wrapping_sub(ONES) & !differ & 0x8000_8000_8000_8000
        };
        zero(self.tags[0]) >> 8 | zero(self.tags[1])
    }

    /// The entry of the lowest of these lanes: lanes of the first word are the even bytes, of the second the odd ones.
    #[inline(always)]
    fn entry(&self, lanes: u64) -> usize {
        self.entries[(lanes.trailing_zeros() as usize / 8) & (LANES - 1)] as usize
    }
}

impl Tuple {
    /// The entries are rows from `from` on, and sorted by place.
    fn new(mask: Vec<u64>, entries: &[&Entry], from: usize, seed: u64) -> Tuple {
        let first = entries.first().map_or(0, |entry| entry.value & 0xffff_ffff);
        let worst = bound(&mask, entries);
        let mut tuple = Tuple { first, mask, seed: seed | 1, buckets: Vec::new(), worst };
        // At most half of all places are taken, so that a second try is rare.
        let mut buckets = (entries.len() * 2).div_ceil(LANES).next_power_of_two();
        for attempt in 1u64.. {
            tuple.seed = seed.wrapping_add(attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
            tuple.buckets = vec![NO_BUCKET; buckets];
            let placed = entries.iter().enumerate().all(|(i, entry)| tuple.place(entry, (from + i) as u32));
            if placed && tuple.longest() <= worst {
                break;
            }
            buckets *= if attempt % 2 == 0 { 2 } else { 1 };
        }
        tuple
    }

    /// The hash of a key, as a look-up makes it: keys that are wide are as wide as can be.
    fn hash(&self, key: &[u64]) -> u64 {
        let mut masked = [0; MAX_WORDS];
        masked.iter_mut().zip(key.iter().zip(&self.mask)).for_each(|(to, (key, mask))| *to = key & mask);
        let words = if self.mask.len() <= 4 { self.mask.len() } else { MAX_WORDS };
        hash(&masked[..words], self.seed)
    }

    /// Puts an entry into its bucket or one of the next; whether there was room.
    fn place(&mut self, entry: &Entry, row: u32) -> bool {
        let hash = self.hash(&entry.key);
        let last = self.buckets.len() - 1;
        for step in 0..MAX_PROBES {
            let bucket = &mut self.buckets[(hash as usize + step) & last];
            // Lanes in the order in which a look-up tries them.
            for lane in 0..LANES {
                let shift = lane / 2 * 16;
                if (bucket.tags[lane % 2] >> shift) as u16 == EMPTY {
                    bucket.tags[lane % 2] |= u64::from(tag(hash)) << shift;
                    bucket.entries[lane] = row;
                    return true;
                }
            }
            bucket.overflows = 1;
        }
        false
    }

    /// The longest chain of buckets and the most entries of one tag in it.
    fn longest(&self) -> u32 {
        let last = self.buckets.len() - 1;
        let chain = |start: usize| {
            let (mut tags, mut read) = (Vec::new(), 0);
            for step in 0..MAX_PROBES {
                let bucket = &self.buckets[(start + step) & last];
                read += 1;
                tags.extend((0..LANES).map(|lane| (bucket.tags[lane % 2] >> (lane / 2 * 16)) as u16));
                if bucket.overflows == 0 {
                    break;
                }
            }
            tags.retain(|tag| *tag != EMPTY);
            tags.sort_unstable();
            // A lane that only a borrow marks follows one that has the tag, so there is at most one for each.
            let same = tags.chunk_by(|a, b| a == b).map(|same| 2 * same.len()).max().unwrap_or(0);
            read + same.min(tags.len()) as u32
        };
        (0..self.buckets.len()).map(chain).max().unwrap_or(0)
    }
}

/// Lines that a tuple may take: its probes, and the entries that have the key's tag: those with one key under the mask, and two
/// that have it by chance. A lane that only a borrow marks may follow each.
fn bound(mask: &[u64], entries: &[&Entry]) -> u32 {
    let masked = |entry: &&Entry| entry.key.iter().zip(mask).map(|(key, mask)| key & mask).collect::<Vec<u64>>();
    let mut keys: Vec<Vec<u64>> = entries.iter().map(masked).collect();
    keys.sort_unstable();
    let same = keys.chunk_by(|a, b| a == b).map(<[_]>::len).max().unwrap_or(0);
    (MAX_PROBES + 2 * (same + 2)) as u32
}

/// A keyed hash: two words at a time are multiplied to 128 bits, with what came before, and folded, as in wyhash.
#[inline(always)]
fn hash(key: &[u64], seed: u64) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product >> 64) as u64 ^ product as u64
    };
    let mut hash = seed;
    let mut pairs = key.chunks_exact(2);
    for pair in &mut pairs {
        hash = fold(pair[0] ^ hash, pair[1] ^ seed.rotate_left(32) ^ 0xe703_7ed1_a0b4_28db);
    }
    if let [word] = pairs.remainder() {
        hash = fold(word ^ hash, seed.rotate_left(32) ^ 0xe703_7ed1_a0b4_28db);
    }
    fold(hash ^ 0x8ebc_6af0_9c88_c6e3, seed ^ 0xa076_1d64_78bd_642f)
}

/// A hash's tag, never [`EMPTY`].
#[inline(always)]
fn tag(hash: u64) -> u16 {
    ((hash >> 48) as u16).max(1)
}
