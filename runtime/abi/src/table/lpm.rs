//! Longest prefix match over 32 bits: a trie of three levels, 16, 8 and 8 bits.
//!
//! The first level is an array over the upper 16 bits, the others are blocks of 256 that only exist where a prefix is longer
//! than the level above decides. A node says a value, or which block goes on. Built once: every place holds the longest
//! prefix that covers it, so a look-up is one to three loads and no comparison (Gupta, Lin, McKeown: Routing Lookups in
//! Hardware at Memory Access Speeds, 1998; smaller first levels as in DPDK's documentation of its LPM, for caches).

use super::{Entry, MISS};

/// Set in a node that leads to a block.
const LEADS: u32 = 1 << 31;
/// A node that nothing covers.
const NOTHING: u32 = LEADS - 1;
const BLOCK: usize = 256;

/// Prefixes of a 32-bit field.
#[derive(Debug)]
pub struct Lpm {
    /// One for each value of the upper 16 bits.
    root: Vec<u32>,
    /// Blocks of the second and third level.
    blocks: Vec<u32>,
    /// Values; nodes have places in it.
    values: Vec<u64>,
}

impl Lpm {
    /// Builds the trie. Entries are prefixes of the first word's lower 32 bits.
    pub fn new(_width: usize, entries: &[Entry], _seed: u64) -> Lpm {
        let mut lpm = Lpm { root: vec![NOTHING; 1 << 16], blocks: Vec::new(), values: Vec::new() };
        // Shorter first, so that longer ones lie on top; of equals the first entry last.
        let mut sorted: Vec<&Entry> = entries.iter().collect();
        sorted.sort_by_key(|e| (e.mask[0].count_ones(), std::cmp::Reverse(e.value & 0xffff_ffff)));
        for entry in sorted {
            let value = lpm.values.len() as u32;
            lpm.values.push(entry.value);
            lpm.insert(entry.key[0] as u32, entry.mask[0].count_ones() as usize, value);
        }
        lpm
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> usize {
        4 * (self.root.len() + self.blocks.len()) + 8 * self.values.len()
    }

    fn insert(&mut self, prefix: u32, len: usize, value: u32) {
        let top = (prefix >> 16) as usize;
        if len <= 16 {
            self.root[top..top + (1 << (16 - len))].fill(value);
            return;
        }
        let block = self.block_under(None, top);
        let second = block + (prefix >> 8) as usize % BLOCK;
        if len <= 24 {
            self.blocks[second..second + (1 << (24 - len))].fill(value);
            return;
        }
        let block = self.block_under(Some(()), second);
        let third = block + prefix as usize % BLOCK;
        self.blocks[third..third + (1 << (32 - len))].fill(value);
    }

    /// The block that a node leads to; made, full of what the node said, if there is none.
    fn block_under(&mut self, below_root: Option<()>, node: usize) -> usize {
        let old = if below_root.is_some() { self.blocks[node] } else { self.root[node] };
        if old & LEADS != 0 {
            return (old & !LEADS) as usize * BLOCK;
        }
        let block = self.blocks.len();
        self.blocks.extend([old; BLOCK]);
        let leads = LEADS | (block / BLOCK) as u32;
        if below_root.is_some() {
            self.blocks[node] = leads;
        } else {
            self.root[node] = leads;
        }
        block
    }

    /// The value of the longest prefix of `key`, or [`MISS`].
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        let key = key.first().copied().unwrap_or(0) as u32;
        let mut node = self.root[(key >> 16) as usize & 0xffff];
        if node & LEADS != 0 {
            node = self.under(node, key >> 8);
            if node & LEADS != 0 {
                node = self.under(node, key);
            }
        }
        self.values.get(node as usize).copied().unwrap_or(MISS)
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        super::one_by_one(keys, found, |key| self.lookup(key));
    }

    /// Lines that a look-up reads at the most.
    pub fn worst_probes(&self) -> u32 {
        4
    }

    /// Lines that the look-up of a key reads, or more.
    pub fn probes(&self, _key: &[u64]) -> u32 {
        4
    }

    #[inline(always)]
    fn under(&self, node: u32, key: u32) -> u32 {
        let at = (node & !LEADS) as usize * BLOCK + key as usize % BLOCK;
        self.blocks.get(at).copied().unwrap_or(NOTHING)
    }
}
