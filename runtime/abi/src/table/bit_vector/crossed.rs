//! Entries that say much about two fields: which intervals of both a key lies in is looked up together.
//!
//! The ends of what entries want cut each of the two fields into intervals. For every pair of intervals that some entry covers,
//! the entries that cover it are listed in their order (Srinivasan, Varghese, Suri, Waldvogel: Fast and Scalable Layer Four
//! Switching, 1998, called it cross-producting; here only pairs that exist are kept), and compared whole. An entry that would
//! cover too many pairs, or find a list full, is left to others, so lists and memory are bounded whatever the entries.
//!
//! Pairs are found by a perfect hash: pairs that meet under a first hash are sent apart by a number that is found when the table
//! is built (Pagh: Hash and Displace, 1999). So a look-up reads one number and one place, and nothing can collide.

use std::collections::HashMap;

use super::super::rows::Rows;
use super::super::{Entry, MISS};
use super::cut::Cut;
use super::part::{Piece, column_of_key, each, pad};
use super::piece::trie;

/// Pairs that one entry may cover.
const MAX_COVERED: usize = 1024;
/// Pairs that all may cover, an entry each.
const MAX_PAIRS: usize = 1 << 21;
/// Entries of a list.
pub(super) const MAX_LIST: usize = 16;
/// Fewer entries are not worth it.
pub(super) const FEW: usize = 1024;
/// The place of no pair.
const NOTHING: u64 = u64::MAX;

/// Entries by pairs of intervals.
#[derive(Debug)]
pub(super) struct Crossed {
    pieces: [Piece; 2],
    blocks: Vec<[u16; 256]>,
    hash: Perfect,
    /// Entries of all lists.
    lists: Vec<u32>,
    rows: Rows,
}

/// Pairs, each with where its list starts and how long it is.
#[derive(Debug)]
struct Perfect {
    seed: u64,
    /// What sends pairs apart, by their first hash.
    displace: Vec<u16>,
    /// A pair in the lower half; in the upper the start of its list, and its length in the lowest byte.
    places: Vec<u64>,
}

impl Crossed {
    /// Takes what it can of entries in order, and leaves the others.
    pub(super) fn take<'a>(width: usize, rich: [Cut; 2], entries: &mut Vec<&'a Entry>) -> Option<Crossed> {
        let wants = |(at, entry): (usize, &&'a Entry)| {
            let wants = rich.map(|cut| cut.want(entry));
            let narrow = rich.iter().zip(&wants).all(|(cut, want)| want.is_narrow(cut));
            let [Some(a), Some(b)] = [0, 1].map(|field| wants[field].interval(&rich[field])) else { return None };
            narrow.then_some((at, *entry, [a, b]))
        };
        let wanted: Vec<_> = entries.iter().enumerate().filter_map(wants).collect();
        if wanted.len() < FEW {
            return None;
        }
        let starts = [0, 1].map(|field| {
            let ends = wanted.iter().flat_map(|(_, _, of)| [of[field].0, of[field].1.wrapping_add(1)]);
            let mut starts: Vec<u64> = ends.filter(|end| *end <= rich[field].ones()).chain([0]).collect();
            starts.sort_unstable();
            starts.dedup();
            starts
        });
        let mut blocks = Vec::new();
        let mut tries = Vec::new();
        for field in [0, 1] {
            let numbers = 0..u16::try_from(starts[field].len()).ok()?;
            let turns = starts[field].iter().copied().zip(numbers).collect();
            tries.push(trie(rich[field], turns, starts[field].len(), &mut blocks)?);
        }
        let mut covered: Vec<(u32, u32)> = Vec::new();
        let mut taken = vec![true; wanted.len()];
        for (i, (_, _, of)) in wanted.iter().enumerate() {
            let [a, b] = [0, 1].map(|field| {
                let at = |value: u64| starts[field].partition_point(|start| *start <= value) - 1;
                at(of[field].0)..=at(of[field].1)
            });
            taken[i] = (a.end() - a.start() + 1).saturating_mul(b.end() - b.start() + 1) <= MAX_COVERED;
            if taken[i] {
                let number = |field: usize, at: usize| u32::from(tries[field].1[at]);
                covered.extend(
                    a.flat_map(|a| b.clone().map(move |b| (a, b)))
                        .map(|(a, b)| (number(0, a) << 16 | number(1, b), i as u32)),
                );
            }
            if covered.len() > MAX_PAIRS {
                return None;
            }
        }
        covered.sort_unstable();
        for list in covered.chunk_by(|a, b| a.0 == b.0) {
            list.iter().skip(MAX_LIST).for_each(|(_, entry)| taken[*entry as usize] = false);
        }
        covered.retain(|(_, entry)| taken[*entry as usize]);
        let (mut lists, mut known, mut pairs) = (Vec::new(), HashMap::new(), Vec::new());
        for list in covered.chunk_by(|a, b| a.0 == b.0) {
            let of: Vec<u32> = list.iter().map(|(_, entry)| *entry).collect();
            let len = of.len() as u64;
            let start = *known.entry(of).or_insert_with_key(|of| {
                lists.extend(of);
                (lists.len() - of.len()) as u64
            });
            pairs.push(u64::from(list[0].0) | start << 40 | len << 32);
        }
        if lists.len() >= 1 << 24 {
            return None;
        }
        let mut rows = Rows::new(width);
        wanted.iter().for_each(|(_, entry, _)| rows.push(entry));
        let mut left = vec![true; entries.len()];
        wanted.iter().zip(&taken).for_each(|((at, ..), taken)| left[*at] = !taken);
        let mut left = left.into_iter();
        entries.retain(|_| left.next().unwrap_or(true));
        let pieces = [tries[0].0, tries[1].0];
        pad(&mut blocks, &pieces);
        Some(Crossed { pieces, blocks, hash: Perfect::new(&pairs)?, lists, rows })
    }

    pub(super) fn memory(&self) -> usize {
        512 * self.blocks.len() + self.hash.memory() + 4 * self.lists.len() + self.rows.memory()
    }

    pub(super) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Levels of both pieces, the two places of the hash, the list, and the entries in it.
    pub(super) fn worst_probes(&self) -> u32 {
        (self.fixed_probes() + MAX_LIST) as u32
    }

    fn fixed_probes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.levels).sum::<usize>() + 3
    }

    pub(super) fn probes(&self, width: usize, key: &[u64]) -> u32 {
        let mut places = [NOTHING];
        self.places(width, key, &mut places);
        let list = self.list(places[0]);
        let read = list.iter().position(|entry| self.rows.get(*entry as usize, key) != MISS);
        (self.fixed_probes() + read.map_or(list.len(), |at| at + 1)) as u32
    }

    /// Where the pairs that keys lie in have their lists.
    #[inline(always)]
    fn places<const K: usize>(&self, width: usize, keys: &[u64], places: &mut [u64; K]) {
        let mut classes = [[0u16; K]; 2];
        for (piece, classes) in self.pieces.iter().zip(&mut classes) {
            let mut column = [0; K];
            column_of_key(width, keys, piece.word, &mut column);
            piece.find(&self.blocks, &column, classes, |at, class| *class = at);
        }
        let [a, b] = classes;
        let mut pairs = [0u32; K];
        for ((pair, a), b) in pairs.iter_mut().zip(&a).zip(&b) {
            *pair = u32::from(*a) << 16 | u32::from(*b);
        }
        each(places, &pairs, |place, pair| *place = self.hash.get(*pair));
    }

    #[inline(always)]
    fn list(&self, place: u64) -> &[u32] {
        let (start, len) = ((place >> 40) as usize, (place >> 32) as usize & 0xff);
        if place == NOTHING { &[] } else { self.lists.get(start..start + len).unwrap_or(&[]) }
    }

    #[inline(always)]
    pub(super) fn find<const K: usize>(&self, width: usize, keys: &[u64], found: &mut [u64; K]) {
        let mut places = [NOTHING; K];
        self.places(width, keys, &mut places);
        for ((found, place), key) in found.iter_mut().zip(&places).zip(keys.chunks_exact(width)) {
            *found = MISS;
            for entry in self.list(*place) {
                *found = self.rows.get(*entry as usize, key);
                if *found != MISS {
                    break;
                }
            }
        }
    }

    pub(super) fn find_after(&self, width: usize, key: &[u64], after: u32) -> u64 {
        let mut places = [NOTHING];
        self.places(width, key, &mut places);
        let all = self.list(places[0]).iter().map(|entry| self.rows.get(*entry as usize, key));
        all.filter(|value| *value != MISS && *value as u32 > after).min_by_key(|value| *value as u32).unwrap_or(MISS)
    }
}

impl Perfect {
    /// The pairs differ in their lower halves. Nothing if no number sends some apart, which luck would have to refuse often.
    fn new(pairs: &[u64]) -> Option<Perfect> {
        let groups = (pairs.len() / 3).next_power_of_two().max(2);
        let places = (pairs.len() * 5 / 4).next_power_of_two().max(2);
        for attempt in 1..8u64 {
            let mut hash = Perfect {
                seed: attempt.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
                displace: vec![0; groups],
                places: vec![NOTHING; places],
            };
            let mut by_group: Vec<(u32, u64)> =
                pairs.iter().map(|pair| (hash.group(*pair as u32) as u32, *pair)).collect();
            by_group.sort_unstable();
            let mut sorted: Vec<&[(u32, u64)]> = by_group.chunk_by(|a, b| a.0 == b.0).collect();
            sorted.sort_by_key(|group| std::cmp::Reverse(group.len()));
            if sorted.into_iter().all(|group| hash.place_all(group)) {
                return Some(hash);
            }
        }
        None
    }

    /// Finds the number that sends the pairs of a group to places that are free.
    fn place_all(&mut self, group: &[(u32, u64)]) -> bool {
        for displace in 0..=u16::MAX {
            let mut at = 0;
            while at < group.len() {
                let place = self.place(group[at].1 as u32, displace);
                if self.places[place] != NOTHING {
                    break;
                }
                self.places[place] = group[at].1;
                at += 1;
            }
            if at == group.len() {
                self.displace[group[0].0 as usize] = displace;
                return true;
            }
            for (_, pair) in &group[..at] {
                let place = self.place(*pair as u32, displace);
                self.places[place] = NOTHING;
            }
        }
        false
    }

    #[inline(always)]
    fn group(&self, pair: u32) -> usize {
        (u64::from(pair).wrapping_mul(self.seed) >> 33) as usize & (self.displace.len() - 1)
    }

    #[inline(always)]
    fn place(&self, pair: u32, displace: u16) -> usize {
        let both = u64::from(pair) ^ u64::from(displace) << 40;
        let mixed = (both ^ both >> 29).wrapping_mul(0xd6e8_feb8_6659_fd93);
        ((mixed ^ mixed >> 32) as usize) & (self.places.len() - 1)
    }

    #[inline(always)]
    fn get(&self, pair: u32) -> u64 {
        let displace = self.displace.get(self.group(pair)).copied().unwrap_or(0);
        let place = self.places.get(self.place(pair, displace)).copied().unwrap_or(NOTHING);
        if place as u32 == pair { place } else { NOTHING }
    }

    fn memory(&self) -> usize {
        size_of_val(&*self.displace) + size_of_val(&*self.places)
    }
}
