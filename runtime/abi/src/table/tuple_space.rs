//! A tuple space: for each distinct mask, a hash table of the keys under it.
//!
//! The tuples stand in the order of their first entry, and a look-up ends as soon as what it has found comes before
//! everything in the tuples left (Srinivasan, Suri, Varghese: Packet Classification using Tuple Space Search, 1999, with
//! the ordering by priority that Open vSwitch added). A tuple's table is made of buckets of eight 16-bit tags beside eight
//! places: a bucket that holds nothing of a key's tag, as nearly all do for tuples that do not match, costs one line and no
//! comparison of keys. Hashes are keyed, and a key lies at most [`MAX_PROBES`] buckets behind its own: where that fails, the
//! table is built again under another key and, if need be, larger. So what a look-up costs has a bound that no packet moves.

use super::{Entry, MISS};

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
    /// For each entry its key, then its value.
    entries: Vec<u64>,
}

/// Entries under any masks.
#[derive(Debug)]
pub struct TupleSpace {
    width: usize,
    tuples: Vec<Tuple>,
}

impl TupleSpace {
    /// Builds the table. Of entries with the same mask and key, the first counts.
    pub fn new(width: usize, entries: &[Entry], seed: u64) -> TupleSpace {
        let mut by_mask: std::collections::BTreeMap<&[u64], Vec<&Entry>> = std::collections::BTreeMap::new();
        let spelled: Vec<Entry> = entries.iter().flat_map(Entry::spelled).collect();
        for entry in &spelled {
            by_mask.entry(&entry.mask).or_default().push(entry);
        }
        let mut tuples: Vec<Tuple> =
            by_mask.into_iter().map(|(mask, entries)| Tuple::new(mask, entries, seed)).collect();
        tuples.sort_by_key(|tuple| tuple.first);
        TupleSpace { width, tuples }
    }

    /// Distinct masks.
    pub fn tuples(&self) -> usize {
        self.tuples.len()
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        let tuple = |t: &Tuple| size_of::<Bucket>() * t.buckets.len() + 8 * (t.entries.len() + t.mask.len());
        self.tuples.iter().map(tuple).sum()
    }

    /// The value of the first entry that matches, or [`MISS`].
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        match self.width {
            1 => self.lookup_words::<1>(key),
            2 => self.lookup_words::<2>(key),
            3 => self.lookup_words::<3>(key),
            4 => self.lookup_words::<4>(key),
            _ => self.lookup_any(key),
        }
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        super::one_by_one(keys, found, |key| self.lookup(key));
    }

    /// Lines that a look-up reads at the most: of each tuple its mask, buckets and keys with the same tag.
    pub fn worst_probes(&self) -> u32 {
        (self.tuples.len() * (1 + MAX_PROBES * (1 + LANES))) as u32
    }

    /// Lines that the look-up of a key reads, or more.
    pub fn probes(&self, _key: &[u64]) -> u32 {
        self.worst_probes()
    }

    #[inline(always)]
    fn lookup_words<const W: usize>(&self, key: &[u64]) -> u64 {
        let Some(key) = key.first_chunk::<W>() else { return MISS };
        let mut best = MISS;
        for tuple in &self.tuples {
            if best & 0xffff_ffff < tuple.first {
                break;
            }
            let Some(mask) = tuple.mask.first_chunk::<W>() else { break };
            let mut masked = *key;
            masked.iter_mut().zip(mask).for_each(|(k, m)| *k &= m);
            best = first(best, tuple.lookup(&masked));
        }
        best
    }

    #[inline(never)]
    fn lookup_any(&self, key: &[u64]) -> u64 {
        let mut masked = [0; super::MAX_WORDS];
        let mut best = MISS;
        for tuple in &self.tuples {
            if best & 0xffff_ffff < tuple.first {
                break;
            }
            for ((out, k), m) in masked.iter_mut().zip(key).zip(&tuple.mask) {
                *out = k & m;
            }
            best = first(best, tuple.lookup(&masked[..self.width]));
        }
        best
    }
}

/// The value whose entry comes first.
#[inline(always)]
fn first(a: u64, b: u64) -> u64 {
    if b & 0xffff_ffff < a & 0xffff_ffff { b } else { a }
}

impl Tuple {
    fn new(mask: &[u64], mut entries: Vec<&Entry>, seed: u64) -> Tuple {
        entries.sort_by_key(|e| e.value & 0xffff_ffff);
        let mut seen = std::collections::BTreeSet::new();
        entries.retain(|e| seen.insert(&e.key));
        let first = entries.first().map_or(0, |e| e.value & 0xffff_ffff);
        let words = entries.iter().flat_map(|e| e.key.iter().copied().chain([e.value])).collect();
        let mut tuple = Tuple { first, mask: mask.to_vec(), seed: seed | 1, buckets: Vec::new(), entries: words };
        // At most half of all places are taken, so that a second try is rare.
        let mut buckets = (entries.len() * 2).div_ceil(LANES).next_power_of_two();
        for attempt in 1u64.. {
            tuple.seed = seed.wrapping_add(attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
            tuple.buckets = vec![NO_BUCKET; buckets];
            if (0..entries.len()).all(|i| tuple.place(i)) {
                break;
            }
            buckets *= if attempt % 2 == 0 { 2 } else { 1 };
        }
        tuple
    }

    /// Puts entry `i` into its bucket or one of the next; whether there was room.
    fn place(&mut self, i: usize) -> bool {
        let width = self.mask.len();
        let hash = hash(&self.entries[i * (width + 1)..][..width], self.seed);
        let (tag, mut at) = (tag(hash), hash as usize & (self.buckets.len() - 1));
        for _ in 0..MAX_PROBES {
            let mask = self.buckets.len() - 1;
            let bucket = &mut self.buckets[at];
            for lane in 0..LANES {
                let shift = lane % 4 * 16;
                if (bucket.tags[lane / 4] >> shift) as u16 == EMPTY {
                    bucket.tags[lane / 4] |= u64::from(tag) << shift;
                    bucket.entries[lane] = i as u32;
                    return true;
                }
            }
            bucket.overflows = 1;
            at = (at + 1) & mask;
        }
        false
    }

    /// The value of a key that is masked already.
    #[inline(always)]
    fn lookup(&self, key: &[u64]) -> u64 {
        let hash = hash(key, self.seed);
        let tags = u64::from(tag(hash)) * 0x0001_0001_0001_0001;
        let mask = self.buckets.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        for _ in 0..MAX_PROBES {
            let Some(bucket) = self.buckets.get(at) else { return MISS };
            for half in 0..LANES / 4 {
                // Lanes that are zero after the exclusive or; a borrow may mark one more, which the key will refuse.
                let differ = bucket.tags[half] ^ tags;
                let mut lanes = differ.wrapping_sub(0x0001_0001_0001_0001) & !differ & 0x8000_8000_8000_8000;
                while lanes != 0 {
                    let lane = half * 4 + lanes.trailing_zeros() as usize / 16;
                    let start = bucket.entries[lane & (LANES - 1)] as usize * (key.len() + 1);
                    if let Some((value, words)) =
                        self.entries.get(start..=start + key.len()).and_then(<[u64]>::split_last)
                        && words == key
                    {
                        return *value;
                    }
                    lanes &= lanes - 1;
                }
            }
            if bucket.overflows == 0 {
                return MISS;
            }
            at = (at + 1) & mask;
        }
        MISS
    }
}

/// A keyed hash: each word is multiplied to 128 bits with what came before and folded, as in wyhash.
#[inline(always)]
fn hash(key: &[u64], seed: u64) -> u64 {
    let mut hash = seed;
    for &word in key {
        let product = u128::from(word ^ hash) * u128::from(seed ^ 0xa076_1d64_78bd_642f);
        hash = (product >> 64) as u64 ^ product as u64;
    }
    let product = u128::from(hash) * u128::from(0xe703_7ed1_a0b4_28db_u64 ^ seed);
    (product >> 64) as u64 ^ product as u64
}

/// A hash's tag, never [`EMPTY`].
#[inline(always)]
fn tag(hash: u64) -> u16 {
    ((hash >> 48) as u16).max(1)
}
