//! A trie over the upper bits of a field: an array over the first bits, then nodes of six bits each.
//!
//! **Layout.** A node covers 64 ways to go on. Neighbouring ways that lead to the same are one *run*; the node is a word with a
//! bit for each way that begins a run, and behind it one leaf of 32 bits a run, so the leaf of a way is found by counting
//! bits (Asai, Ohara: Poptrie, SIGCOMM 2015, without its second vector: a leaf says by its top bit whether it is a value or
//! where the next node lies). Every leaf holds the value of the longest prefix that covers it, so a look-up reads one word of
//! the array, and a bit vector and a leaf for each node on its way; most nodes fit into one line. Before the leaves lies the
//! value of the longest prefix that covers the whole node: only changes read it.
//!
//! Nodes near the root of a deep trie are hot and few: there every way is a run of its own, and need not be counted.
//!
//! **Bursts** go level by level over all keys that have not arrived, so the misses of a level overlap.
//!
//! **Bound.** The depth of the trie: what packets come does not matter.
//!
//! **Changes in place** (see `open::prefixes`). A node is never written while a reader may come to it, but for single leaves: a changed
//! node is written anew, and one store of the leaf that leads to it puts it in the place of the old. So a look-up sees old or
//! new. The old node's words are given away again once no reader can be in it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::BURST;
use super::values::NONE;

/// Set in a leaf that leads to a node.
pub(super) const LEADS: u32 = 1 << 31;
/// Bits that a node decides.
pub(super) const STEP: u32 = 6;
/// Prefixes for which a small array does.
const FEW: usize = 64;
/// Words of nodes that lie in the nearer caches: there a burst gains nothing by going level by level.
const FEW_WORDS: usize = 1 << 15;
/// Ways out of a node.
pub(super) const WAYS: usize = 1 << STEP;

/// Prefixes by their bits, which stand at the upper end.
#[derive(Debug)]
pub(super) struct Trie {
    /// Bits that the array decides.
    pub(super) first: u32,
    /// Nodes that begin before this bit have all their ways as runs, so that a look-up need not count.
    pub(super) plain: u32,
    pub(super) top: Box<[AtomicU32]>,
    /// Nodes: a bit vector, then leaves, two a word, of which the first is the one that covers all.
    pub(super) words: Vec<AtomicU64>,
}

/// A prefix and its value of 31 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix {
    pub bits: u128,
    pub len: u8,
    pub value: u32,
}

/// The leaves of a node: for each way, and for the node as a whole.
pub(super) struct Node {
    pub ways: [u32; WAYS],
    pub covered: u32,
}

impl Trie {
    /// A trie of these prefixes, with nodes that are `plain` up to that bit; of equal prefixes the last counts.
    pub fn new(prefixes: &mut [Prefix], plain: u32) -> Trie {
        prefixes.sort_by_key(|p| (p.bits, p.len));
        let mut trie = Trie::empty(prefixes.len(), plain);
        let mut at = 0;
        while let Some(prefix) = prefixes.get(at) {
            let way = (prefix.bits >> (128 - trie.first)) as usize;
            if u32::from(prefix.len) <= trie.first {
                let ways = 1 << (trie.first - u32::from(prefix.len));
                trie.top[way..way + ways].iter().for_each(|leaf| leaf.store(prefix.value, Ordering::Relaxed));
                at += 1;
            } else {
                let below = under(&prefixes[at..], trie.first);
                let leaf = trie.grow(&prefixes[at..at + below], trie.first, trie.top[way].load(Ordering::Relaxed));
                trie.top[way].store(leaf, Ordering::Relaxed);
                at += below;
            }
        }
        trie.words.shrink_to_fit();
        trie
    }

    /// A trie of nothing, with an array that suits so many prefixes.
    pub fn empty(prefixes: usize, plain: u32) -> Trie {
        let first = Trie::first_of(prefixes);
        let top = (0..1usize << first).map(|_| AtomicU32::new(NONE)).collect();
        Trie { first, plain: if prefixes < FEW { 0 } else { plain }, top, words: Vec::new() }
    }

    /// Bits of the array that suits so many prefixes.
    pub fn first_of(prefixes: usize) -> u32 {
        if prefixes < FEW { 16 } else { 18 }
    }

    /// A node for prefixes that are all longer than `depth` and go the same way so far; what leads to it.
    fn grow(&mut self, prefixes: &[Prefix], depth: u32, covered: u32) -> u32 {
        let mut node = Node { ways: [covered; WAYS], covered };
        let mut at = 0;
        while let Some(prefix) = prefixes.get(at) {
            let way = digit(prefix.bits, depth);
            let len = u32::from(prefix.len);
            if len <= depth + STEP {
                node.ways[way..way + (1 << (depth + STEP - len))].fill(prefix.value);
                at += 1;
            } else {
                let below = under(&prefixes[at..], depth + STEP);
                node.ways[way] = self.grow(&prefixes[at..at + below], depth + STEP, node.ways[way]);
                at += below;
            }
        }
        let place = self.words.len();
        self.words.extend(node.words(depth < self.plain).map(AtomicU64::new));
        LEADS | place as u32
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        4 * self.top.len() + 8 * self.words.capacity()
    }

    /// Nodes on the longest way.
    pub fn depth(&self) -> u32 {
        self.top.iter().map(|leaf| self.depth_of(leaf.load(Ordering::Relaxed))).max().unwrap_or(0)
    }

    fn depth_of(&self, leaf: u32) -> u32 {
        if leaf & LEADS == 0 {
            return 0;
        }
        let leaves = self.word(leaf & !LEADS).count_ones();
        1 + (1..=leaves).map(|k| self.depth_of(self.leaf(leaf & !LEADS, k))).max().unwrap_or(0)
    }

    /// The value that a key finds.
    #[inline(always)]
    pub fn lookup(&self, upper: u64, lower: u64) -> u32 {
        let leaf = self.top.get((upper >> (64 - self.first)) as usize);
        let leaf = leaf.map_or(NONE, |leaf| leaf.load(Ordering::Acquire));
        self.descend(leaf, self.first, upper, lower)
    }

    /// The value that a key finds from a leaf on that stands at bit `depth`.
    #[inline(always)]
    fn descend(&self, mut leaf: u32, mut depth: u32, upper: u64, lower: u64) -> u32 {
        while leaf & LEADS != 0 {
            let (node, way) = (leaf & !LEADS, way(upper, lower, depth));
            leaf = self.leaf(node, if depth < self.plain { way as u32 + 1 } else { run(self.word(node), way) });
            depth += STEP;
        }
        leaf
    }

    /// The nodes on the way of a key.
    pub fn nodes(&self, upper: u64, lower: u64) -> u32 {
        let mut leaf = self.top[(upper >> (64 - self.first)) as usize].load(Ordering::Relaxed);
        let mut nodes = 0;
        while leaf & LEADS != 0 {
            let way = way(upper, lower, self.first + STEP * nodes);
            leaf = self.leaf(leaf & !LEADS, run(self.word(leaf & !LEADS), way));
            nodes += 1;
        }
        nodes
    }

    /// The values that `n` keys find, at most [`BURST`], whose upper halves stand in `upper`; `lower` gives the others.
    #[inline(always)]
    pub fn lookup_burst(&self, n: usize, upper: &[u64; BURST], lower: impl Fn(usize) -> u64) -> [u32; BURST] {
        let mut leaves = [NONE; BURST];
        if self.words.len() < FEW_WORDS && self.plain <= self.first {
            self.lookup_near(&mut leaves, n, upper, lower);
            return leaves;
        }
        let (top, shift) = (&self.top[..], 64 - self.first);
        let mut under_way = [0u8; BURST];
        let mut left = 0;
        for (i, (leaf, upper)) in leaves.iter_mut().zip(upper).enumerate().take(n) {
            *leaf = top.get((upper >> shift) as usize).map_or(NONE, |leaf| leaf.load(Ordering::Acquire));
            under_way[left % BURST] = i as u8;
            left += (*leaf >> 31) as usize;
        }
        let mut depth = self.first;
        let mut runs = [0; BURST];
        while left > 0 {
            let plain = depth < self.plain;
            for (runs, i) in runs.iter_mut().zip(&under_way).take(if plain { 0 } else { left }) {
                *runs = self.word(leaves[usize::from(*i) % BURST] & !LEADS);
            }
            let mut still = 0;
            for at in 0..left.min(BURST) {
                let i = usize::from(under_way[at]) % BURST;
                let way = way(upper[i], if depth + STEP > 64 { lower(i) } else { 0 }, depth);
                let run = if plain { way as u32 + 1 } else { run(runs[at], way) };
                leaves[i] = self.leaf(leaves[i] & !LEADS, run);
                under_way[still % BURST] = i as u8;
                still += (leaves[i] >> 31) as usize;
            }
            left = still;
            depth += STEP;
        }
        leaves
    }

    /// The same where nodes lie in the nearer caches: what costs there are instructions, and branches that packets decide. So
    /// all keys take one step below the array, also those that have arrived; only the few that are then still under way go on,
    /// one by one.
    #[inline(always)]
    fn lookup_near(&self, leaves: &mut [u32; BURST], n: usize, upper: &[u64; BURST], lower: impl Fn(usize) -> u64) {
        let (top, words) = (&self.top[..], &self.words[..]);
        let (shift, below) = (64 - self.first, 64 - STEP - self.first);
        let mut under_way = [0u8; BURST];
        let mut left = 0;
        for (leaf, upper) in leaves.iter_mut().zip(upper).take(n) {
            *leaf = top.get((upper >> shift) as usize).map_or(NONE, |leaf| leaf.load(Ordering::Acquire));
        }
        let word = |at: usize| words.get(at).map_or(0, |word| word.load(Ordering::Acquire));
        let node = |leaf: u32| if leaf & LEADS != 0 { (leaf & !LEADS) as usize } else { 0 };
        let mut runs = [0; BURST];
        for (runs, leaf) in runs.iter_mut().zip(&*leaves).take(n) {
            *runs = word(node(*leaf));
        }
        for (i, ((leaf, upper), runs)) in leaves.iter_mut().zip(upper).zip(&runs).enumerate().take(n) {
            let run = run(*runs, (upper >> below) as usize % WAYS);
            let next = (word(node(*leaf) + 1 + run as usize / 2) >> (run % 2 * 32)) as u32;
            *leaf = if *leaf & LEADS != 0 { next } else { *leaf };
            under_way[left % BURST] = i as u8;
            left += (*leaf >> 31) as usize;
        }
        for i in under_way.iter().take(left).map(|i| usize::from(*i) % BURST) {
            leaves[i] = self.descend(leaves[i], self.first + STEP, upper[i], lower(i));
        }
    }

    #[inline(always)]
    pub(super) fn word(&self, at: u32) -> u64 {
        self.words.get(at as usize).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// The leaf of a run of a node; 0 is the one that covers all.
    #[inline(always)]
    pub(super) fn leaf(&self, node: u32, run: u32) -> u32 {
        (self.word(node + 1 + run / 2) >> (run % 2 * 32)) as u32
    }
}

impl Node {
    /// Its runs: a bit for each way that begins one.
    pub fn runs(&self, plain: bool) -> u64 {
        if plain {
            return u64::MAX;
        }
        (1..WAYS).fold(1, |runs, way| runs | u64::from(self.ways[way] != self.ways[way - 1]) << way)
    }

    /// What is written of it.
    pub fn words(&self, plain: bool) -> impl Iterator<Item = u64> {
        let runs = self.runs(plain);
        let mut leaves = [0; WAYS + 1];
        leaves[0] = self.covered;
        let starts = (0..WAYS).filter(|way| runs >> way & 1 != 0);
        leaves[1..].iter_mut().zip(starts).for_each(|(leaf, way)| *leaf = self.ways[way]);
        let words = 1 + runs.count_ones() as usize / 2;
        core::iter::once(runs).chain(
            (0..words)
                .map(move |k| u64::from(leaves[2 * k]) | u64::from(leaves.get(2 * k + 1).copied().unwrap_or(0)) << 32),
        )
    }
}

/// Which run of a node a way belongs to, counted from 1.
#[inline(always)]
fn run(runs: u64, way: usize) -> u32 {
    (runs << (63 - way)).count_ones()
}

/// The six bits behind the first `depth`, of 128; beyond them zeros.
#[inline(always)]
pub(super) fn digit(bits: u128, depth: u32) -> usize {
    ((bits << depth) >> (128 - STEP)) as usize
}

/// The same of a key in two halves.
#[inline(always)]
fn way(upper: u64, lower: u64, depth: u32) -> usize {
    if depth + STEP <= 64 {
        (upper >> (64 - STEP - depth)) as usize % WAYS
    } else {
        digit(u128::from(upper) << 64 | u128::from(lower), depth)
    }
}

/// How many prefixes go the same way for `depth` bits as the first does.
fn under(prefixes: &[Prefix], depth: u32) -> usize {
    let way = |prefix: &Prefix| prefix.bits >> (128 - depth);
    prefixes.partition_point(|prefix| way(prefix) <= way(&prefixes[0]))
}
