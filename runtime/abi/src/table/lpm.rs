//! Longest prefix match: over a field in one word, as an IPv4 address, or in two, as an IPv6 address.
//!
//! A trie whose look-ups read one word of an array and, for most prefixes, one line more: see the module `trie`. A table of
//! the Internet's routes takes some ten bytes a prefix, so it lies in the caches where an array over 24 bits (Gupta, Lin,
//! McKeown: Routing Lookups in Hardware at Memory Access Speeds, 1998) does not; footprint beats the number of accesses. Cost:
//! two or three loads for IPv4 and up to six for IPv6, which overlap over a burst; bound: the length of the longest prefix.
//!
//! For IPv6 hashing by prefix length (Waldvogel, Varghese, Turner, Plattner: Scalable High Speed IP Routing Lookups, 1997)
//! would read as many lines, each from memory; the upper levels of the trie lie in the caches.

use super::trie::{Prefix, Trie};
use super::values::Values;
use super::{BURST, Entry};

/// Prefixes of a field in one word, or in two where `WIDE`. Longer ones come before shorter ones that cover them; of equal ones
/// the one that comes first counts.
#[derive(Debug)]
pub struct Prefixes<const WIDE: bool> {
    field: Field,
    trie: Trie,
    values: Values,
    depth: u32,
}

/// Prefixes of a field of up to 64 bits that lies in one word.
pub type Lpm = Prefixes<false>;

/// Prefixes of a field of up to 128 bits.
pub type Lpm6 = Prefixes<true>;

/// Where the field lies: its upper word (the lower is the one before), and how far it is from the upper end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Field {
    word: usize,
    shift: u32,
}

/// Nodes of wide prefixes are plain up to this bit: few IPv6 prefixes are shorter than 29 bits, and few go apart before.
pub(super) const PLAIN: u32 = 30;

impl<const WIDE: bool> Prefixes<WIDE> {
    /// Builds the trie. Entries want prefixes of the same field, and nothing else.
    pub fn new(_width: usize, entries: &[Entry], _seed: u64) -> Self {
        let (field, mut prefixes, values) = prefixes(entries);
        let trie = Trie::new(&mut prefixes, if WIDE { PLAIN } else { 0 });
        Prefixes { field, depth: trie.depth(), trie, values }
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        self.trie.memory() + self.values.memory()
    }

    /// The value of the longest prefix of `key`, or [`MISS`](super::MISS).
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        let (upper, lower) = self.field.of::<WIDE>(key);
        self.values.value(self.trie.lookup(upper, lower))
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        let (n, width) = (found.len(), keys.len() / found.len().max(1));
        let mut upper = [0; BURST];
        if !WIDE && width == 1 {
            upper.iter_mut().zip(keys).for_each(|(upper, key)| *upper = key << (self.field.shift & 63));
        } else {
            let keys = keys.chunks_exact(width.max(1));
            upper.iter_mut().zip(keys).for_each(|(upper, key)| *upper = self.field.of::<WIDE>(key).0);
        }
        let lower = |i: usize| self.field.of::<WIDE>(keys.get(i * width..).unwrap_or(&[])).1;
        let leaves = self.trie.lookup_burst(n, &upper, lower);
        self.values.of_burst(&leaves, found);
    }

    /// Lines that a look-up reads at the most: one of the array, and of each node the vector and a leaf.
    pub fn worst_probes(&self) -> u32 {
        1 + 2 * self.depth
    }

    /// Lines that the look-up of a key reads, or more.
    pub fn probes(&self, key: &[u64]) -> u32 {
        let (upper, lower) = self.field.of::<WIDE>(key);
        1 + 2 * self.trie.nodes(upper, lower)
    }
}

impl Field {
    /// What a key has there, at the upper end of two words.
    #[inline(always)]
    pub fn of<const WIDE: bool>(&self, key: &[u64]) -> (u64, u64) {
        let word = |at: usize| key.get(at).copied().unwrap_or(0);
        if WIDE {
            let bits = u128::from(word(self.word)) << 64 | u128::from(word(self.word.wrapping_sub(1)));
            let bits = bits << (self.shift & 127);
            ((bits >> 64) as u64, bits as u64)
        } else {
            (word(self.word) << (self.shift & 63), 0)
        }
    }

    fn bits(&self, key: &[u64]) -> u128 {
        let (upper, lower) = self.of::<true>(key);
        u128::from(upper) << 64 | u128::from(lower)
    }
}

/// The field that entries want prefixes of, the prefixes, and the values.
pub(super) fn prefixes(entries: &[Entry]) -> (Field, Vec<Prefix>, Values) {
    let values = Values::of(entries);
    let spelled = |entry: &Entry| if entry.ranges.is_empty() { vec![entry.clone()] } else { entry.spelled() };
    let mut spelled: Vec<Entry> = entries.iter().flat_map(spelled).collect();
    let word = spelled.iter().filter_map(|entry| entry.mask.iter().rposition(|word| *word != 0)).max().unwrap_or(0);
    let mut field = Field { word, shift: 0 };
    let used = spelled.iter().fold(0, |used, entry| used | field.bits(&entry.mask));
    field.shift = used.leading_zeros() % 128;
    // Of equal prefixes the one that comes first is put in last.
    spelled.sort_by_key(|entry| core::cmp::Reverse(entry.value & 0xffff_ffff));
    let prefix = |entry: &Entry| {
        let len = field.bits(&entry.mask).leading_ones() as u8;
        let bits = field.bits(&entry.key) & !u128::MAX.checked_shr(len.into()).unwrap_or(0);
        Prefix { bits, len, value: values.kept(entry.value) }
    };
    let prefixes = spelled.iter().map(prefix).collect();
    (field, prefixes, values)
}
