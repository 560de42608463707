//! The classes of a piece: where the value space turns from one class to another, and the trie that finds the class of a value.
//!
//! The trie takes eight bits a level and has all its leaves at the bottom, so a look-up has no branch. Where a class covers all
//! below a node early, the levels left go through a block that leads to itself: block `c` is full of `c`, and as a class that
//! is `c` too. Classes that need such a block have the lowest numbers.
//!
//! With few blocks and classes, all numbers stand there times 256: a step is then an "or" with the next eight bits and a load.

use std::collections::{BTreeMap, HashMap};

use super::super::Entry;
use super::classes::{ByHash, ByPair, Classes};
use super::cut::{Cut, Want};
use super::part::{Piece, window};

/// The piece and its classes, its blocks behind those that are there; nothing if it would be too large.
pub(super) fn piece(
    cut: Cut,
    entries: &[Entry],
    words: usize,
    blocks: &mut Vec<[u16; 256]>,
) -> Option<(Piece, Classes)> {
    let wants: Vec<Want> = entries.iter().map(|entry| cut.want(entry)).collect();
    let used = wants.iter().fold(0, |used, want| used | want.mask);
    let ranges = wants.iter().any(|want| want.low > 0 || want.high < cut.ones());
    // Bits below and above those that entries look at are cut off.
    let (cut, wants) = if ranges || used == 0 {
        (cut, wants)
    } else {
        let low = used.trailing_zeros();
        let cut = Cut { shift: cut.shift + low, width: 64 - used.leading_zeros() - low, ..cut };
        (cut, entries.iter().map(|entry| cut.want(entry)).collect())
    };
    let mut classes = Classes::new(words);
    let turns = turns(cut, &wants, &mut classes)?;
    let (piece, numbers) = trie(cut, turns, classes.len(), blocks)?;
    Some((piece, classes.renumbered(&numbers)))
}

/// The piece that finds the class of a value from where classes begin, its blocks behind those that are there, and the numbers
/// that classes have there. Nothing if there would be too many blocks.
pub(super) fn trie(
    cut: Cut,
    turns: Vec<(u64, u16)>,
    classes: usize,
    blocks: &mut Vec<[u16; 256]>,
) -> Option<(Piece, Vec<u16>)> {
    let mut trie = Trie { turns, uniform: vec![false; classes], own: Vec::new(), known: ByHash::default() };
    let levels = cut.width.div_ceil(8);
    trie.find_uniform(levels - 1, 0, 0..trie.turns.len());
    let numbers = trie.number_uniform();
    let top = trie.block(levels - 1, 0, 0..trie.turns.len())?;
    let window = window(trie.own.len().max(classes));
    if window > 0 {
        trie.own.as_flattened_mut().iter_mut().for_each(|way| *way <<= 8);
    }
    let piece = Piece {
        word: cut.word,
        shift: cut.shift,
        mask: cut.ones(),
        levels: levels as usize,
        start: blocks.len(),
        top: top.into(),
        window,
        join: None,
    };
    blocks.append(&mut trie.own);
    Some((piece, numbers))
}

/// Where classes begin, lowest value first.
fn turns(cut: Cut, wants: &[Want], classes: &mut Classes) -> Option<Vec<(u64, u16)>> {
    // Entries that want the same, together: prefixes and ranges by where they begin and end, other masks by value.
    let mut same: HashMap<Want, Vec<usize>> = HashMap::new();
    for (i, want) in wants.iter().enumerate() {
        same.entry(*want).or_default().push(i);
    }
    let mut ends: Vec<(u64, &[usize])> = Vec::new();
    let mut masked: Vec<(&Want, &[usize])> = Vec::new();
    for (want, who) in &same {
        let free = cut.ones() & !want.mask;
        if free & free.wrapping_add(1) != 0 {
            masked.push((want, who));
            continue;
        }
        let (low, high) = (want.key.max(want.low), (want.key | free).min(want.high));
        if low <= high {
            ends.push((low, who));
            if high < cut.ones() {
                ends.push((high + 1, who));
            }
        }
    }
    ends.sort_unstable();
    let mut starts: Vec<u64> = ends.iter().map(|(at, _)| *at).chain([0]).collect();
    starts.sort_unstable();
    starts.dedup();
    let mut vector = vec![0u64; classes.words()];
    let (mut ends, mut turns): (_, Vec<(u64, u16)>) = (ends.into_iter().peekable(), Vec::new());
    for start in starts {
        while let Some((_, who)) = ends.next_if(|(at, _)| *at == start) {
            who.iter().for_each(|&i| vector[i / 64] ^= 1 << (i % 64));
        }
        let class = classes.number(&vector)?;
        if turns.last().is_none_or(|(_, last)| *last != class) {
            turns.push((start, class));
        }
    }
    if masked.is_empty() { Some(turns) } else { split(cut, &turns, &masked, classes) }
}

/// Splits classes by masks that are no prefixes, one mask after another, over all values of a piece, which is narrow.
fn split(
    cut: Cut,
    turns: &[(u64, u16)],
    masked: &[(&Want, &[usize])],
    classes: &mut Classes,
) -> Option<Vec<(u64, u16)>> {
    let mut by_value = Vec::new();
    for (i, (start, class)) in turns.iter().enumerate() {
        let end = turns.get(i + 1).map_or(cut.ones() + 1, |(next, _)| *next);
        by_value.extend(std::iter::repeat_n(*class, (end - start) as usize));
    }
    let mut by_mask: BTreeMap<_, Vec<(u64, &[usize])>> = BTreeMap::new();
    for (want, who) in masked {
        by_mask.entry((want.mask, want.low, want.high)).or_default().push((want.key, who));
    }
    for ((mask, low, high), wanted) in by_mask {
        let mut by_key = vec![0u32; by_value.len()];
        wanted.iter().enumerate().for_each(|(n, (key, _))| by_key[*key as usize] = n as u32 + 1);
        let (mut next, mut known) = (Classes::new(classes.words()), ByPair::default());
        for (value, class) in by_value.iter_mut().enumerate() {
            let inside = (low..=high).contains(&(value as u64));
            let group = if inside { by_key[value & mask as usize] } else { 0 };
            let pair = (u64::from(*class) << 32 | u64::from(group)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if let Some(class_of) = known.get(&pair) {
                *class = *class_of;
                continue;
            }
            let mut vector = classes.vector(*class).to_vec();
            if group > 0 {
                wanted[group as usize - 1].1.iter().for_each(|&i| vector[i / 64] |= 1 << (i % 64));
            }
            *class = next.number(&vector)?;
            known.insert(pair, *class);
        }
        *classes = next;
    }
    let mut turns: Vec<(u64, u16)> = by_value.iter().enumerate().map(|(at, class)| (at as u64, *class)).collect();
    turns.dedup_by_key(|(_, class)| *class);
    Some(turns)
}

struct Trie {
    turns: Vec<(u64, u16)>,
    /// Classes that cover all below a node above the last level.
    uniform: Vec<bool>,
    own: Vec<[u16; 256]>,
    /// Numbers of blocks by their hash.
    known: ByHash,
}

impl Trie {
    /// For each child of a node at a level, counted from the bottom, the turns in it.
    fn children(
        &self,
        level: u32,
        base: u64,
        within: std::ops::Range<usize>,
    ) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
        let size = 8 * level;
        let mut next = within.start;
        (0..256u64).map(move |i| {
            let (low, high) = (base | i << size, base | i << size | ((1u64 << size) - 1));
            while next + 1 < within.end && self.turns[next + 1].0 <= low {
                next += 1;
            }
            let mut end = next + 1;
            while end < within.end && self.turns[end].0 <= high {
                end += 1;
            }
            let start = next;
            next = end - 1;
            (low, start..end)
        })
    }

    fn find_uniform(&mut self, level: u32, base: u64, within: std::ops::Range<usize>) {
        if level == 0 {
            return;
        }
        for (base, within) in self.children(level, base, within).collect::<Vec<_>>() {
            if within.len() == 1 {
                self.uniform[usize::from(self.turns[within.start].1)] = true;
            } else {
                self.find_uniform(level - 1, base, within);
            }
        }
    }

    /// Gives uniform classes the lowest numbers, and blocks that lead to themselves.
    fn number_uniform(&mut self) -> Vec<u16> {
        let mut order: Vec<u16> = (0..self.uniform.len()).map(|class| class as u16).collect();
        order.sort_by_key(|class| !self.uniform[usize::from(*class)]);
        let mut new = vec![0; order.len()];
        order.iter().enumerate().for_each(|(to, from)| new[usize::from(*from)] = to as u16);
        self.turns.iter_mut().for_each(|(_, class)| *class = new[usize::from(*class)]);
        let blocks = self.uniform.iter().filter(|uniform| **uniform).count();
        self.own.extend((0..blocks).map(|class| [class as u16; 256]));
        new
    }

    fn block(&mut self, level: u32, base: u64, within: std::ops::Range<usize>) -> Option<u16> {
        let mut block = [0; 256];
        for ((base, within), place) in
            self.children(level, base, within).collect::<Vec<_>>().into_iter().zip(&mut block)
        {
            *place = if within.len() == 1 { self.turns[within.start].1 } else { self.block(level - 1, base, within)? };
        }
        let step = |hash: u64, way: &u16| (hash.rotate_left(5) ^ u64::from(*way)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let same = self.known.entry(block.iter().fold(0, step)).or_default();
        if let Some(known) = same.iter().find(|known| self.own[usize::from(**known)] == block) {
            return Some(*known);
        }
        let number = u16::try_from(self.own.len()).ok()?;
        same.push(number);
        self.own.push(block);
        Some(number)
    }
}
