//! Which structure a table gets.
//!
//! In: entries, and what steps of a look-up cost. Out: the structure that answers them in the fewest predicted cycles, and for
//! each of the others why not. Never: a clock, or anything that another machine would decide otherwise.
//!
//! A structure is out if the entries are not of its shape; that is asked first, from the most special on. Of those left, the
//! model counts what a look-up of a burst of 32 does, on uniform hits: loads from a structure of so many bytes, words that are
//! hashed, compared and joined, and jumps that are guessed wrong. Its constants stand beside what they were measured against:
//! the structures themselves on rule sets of ClassBench's kinds (`bench/lookups`). All of it is linear in the entries, or
//! nearly; merging tuples is tried on a sample of large tables.

use std::collections::HashSet;

use super::bit_vector::estimate;
use super::index::used;
use super::{Costs, Entry, Kind, tuple_space};

/// Bytes of bit vectors at the most: beyond, they would drive everything else out of the caches.
const MAX_VECTORS: usize = 64 << 20;
/// Entries that tuples are counted of.
const SAMPLE: usize = 16_384;
/// Cycles that a look-up in a burst costs beside what is counted: keys gathered, results stored.
const FLOOR: f32 = 4.0;

/// What is chosen, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The structure.
    pub kind: Kind,
    /// Predicted cycles a look-up, in bursts, on uniform hits.
    pub cycles: f32,
    /// Lines that a look-up reads at the most, predicted. The structure says exactly, once it is built.
    pub probes: u32,
    /// Bytes, predicted.
    pub memory: usize,
    /// The other structures, each with what speaks against it.
    pub rejected: Vec<(Kind, String)>,
}

/// A structure that fits, with what is predicted of it.
#[derive(Clone, Copy)]
struct Fit {
    kind: Kind,
    cycles: f32,
    probes: u32,
    memory: usize,
}

/// What a structure would cost, or why it cannot be.
type Candidate = fn(&Shape, &Costs) -> Result<Fit, String>;

/// Structures for entries of some shape.
const SPECIAL: [(Kind, Candidate); 5] =
    [(Kind::Index, index), (Kind::Hash, hash), (Kind::Lpm, lpm), (Kind::Lpm6, lpm6), (Kind::Ranges, ranges)];

/// Structures for any.
const GENERAL: [(Kind, Candidate); 2] = [(Kind::BitVector, bit_vector), (Kind::TupleSpace, tuple_space)];

/// Chooses the structure for entries over keys of so many words.
pub fn choose(width: usize, entries: &[Entry], costs: &Costs) -> Choice {
    let shape = Shape::of(width, entries);
    let (mut fits, mut rejected): (Vec<Fit>, _) = (Vec::new(), Vec::new());
    for (kind, candidate) in SPECIAL {
        match candidate(&shape, costs) {
            Ok(fit) => fits.push(fit),
            Err(why) => rejected.push((kind, why)),
        }
    }
    // What takes any entries need not be tried where something is made for them.
    let made = fits.first().map(|fit| format!("{} is made for such entries", name(fit.kind)));
    for (kind, candidate) in GENERAL {
        match made.clone().map_or_else(|| candidate(&shape, costs), Err) {
            Ok(fit) => fits.push(fit),
            Err(why) => rejected.push((kind, why)),
        }
    }
    // Of equal ones the more special, which stands earlier. The last fits always.
    fits.sort_by(|a, b| a.cycles.total_cmp(&b.cycles));
    let best = fits[0];
    rejected.extend(fits[1..].iter().map(|fit| {
        let why = format!("about {:.0} cycles a packet, {} about {:.0}", fit.cycles, name(best.kind), best.cycles);
        (fit.kind, why)
    }));
    Choice { kind: best.kind, cycles: best.cycles, probes: best.probes, memory: best.memory, rejected }
}

/// The name of a structure in messages and tests.
pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::TupleSpace => "tuple-space",
        Kind::Lpm => "lpm",
        Kind::BitVector => "bit-vector",
        Kind::Open => "open",
        Kind::Hash => "hash",
        Kind::Index => "index",
        Kind::Ranges => "ranges",
        Kind::Lpm6 => "lpm6",
    }
}

/// What is asked of entries.
struct Shape<'a> {
    width: usize,
    entries: &'a [Entry],
    /// Distinct masks.
    masks: usize,
    /// Some have ranges.
    ranges: bool,
    /// Words that some entry looks at.
    words: Vec<usize>,
    /// Bits from the lowest to the highest that some entry looks at, if they are of one word.
    span: Option<u32>,
}

impl Shape<'_> {
    fn of(width: usize, entries: &[Entry]) -> Shape<'_> {
        // Neighbours have the same mask more often than not, and need not be hashed.
        let new = entries.iter().enumerate().filter(|(i, e)| *i == 0 || entries[i - 1].mask != e.mask);
        let masks: HashSet<&[u64]> = new.map(|(_, entry)| entry.mask.as_slice()).collect();
        let looks_at = |word: usize| {
            let range = |entry: &Entry| entry.ranges.iter().any(|range| usize::from(range.word) == word);
            entries.iter().any(|entry| entry.mask[word] != 0 || range(entry))
        };
        let words: Vec<usize> = (0..width).filter(|word| looks_at(*word)).collect();
        let (_, bits) = used(width, entries);
        let span =
            (words.len() <= 1).then(|| if bits == 0 { 0 } else { 64 - bits.leading_zeros() - bits.trailing_zeros() });
        let ranges = entries.iter().any(|entry| !entry.ranges.is_empty());
        Shape { width, entries, masks: masks.len(), ranges, words, span }
    }

    fn one_mask(&self) -> bool {
        self.masks == 1 && !self.ranges
    }

    /// Whether longer masks come first, so that the longest prefix is the one.
    fn longest_first(&self) -> bool {
        let bits = |entry: &Entry| entry.mask.iter().map(|word| word.count_ones()).sum::<u32>();
        let mut by_place: Vec<(u32, u32)> = self.entries.iter().map(|e| (e.value as u32, bits(e))).collect();
        by_place.sort_unstable();
        by_place.is_sorted_by(|(_, a), (_, b)| a >= b)
    }

    /// Whether all masks are prefixes of one field, whose upper end is that of the highest bit in these words.
    fn prefixes(&self, low: Option<usize>, high: usize) -> bool {
        let of = |mask: &[u64]| u128::from(mask[high]) << 64 | low.map_or(0, |low| u128::from(mask[low]));
        let used = self.entries.iter().fold(0, |used, entry| used | of(&entry.mask));
        let above = used.leading_zeros();
        self.entries.iter().all(|entry| match of(&entry.mask) {
            0 => true,
            mask => {
                mask.leading_zeros() == above && mask.leading_zeros() + mask.count_ones() + mask.trailing_zeros() == 128
            }
        })
    }
}

fn index(shape: &Shape, costs: &Costs) -> Result<Fit, String> {
    match shape.span {
        None => Err(several(shape)),
        Some(bits) if bits > 16 => Err(format!("its key has {bits} bits; an array is for 16 or fewer")),
        Some(bits) => {
            let memory = (2 << bits) + 8 * shape.entries.len();
            // Few entries are few places that are hit.
            let cycles = FLOOR + costs.overlapped(memory.min(64 * shape.entries.len())) + costs.overlapped(memory / 8);
            Ok(Fit { kind: Kind::Index, cycles, probes: 2, memory })
        }
    }
}

fn hash(shape: &Shape, costs: &Costs) -> Result<Fit, String> {
    if shape.ranges {
        return Err("its entries have ranges".into());
    }
    if shape.masks > 1 {
        return Err(format!("its entries have {} different masks, not one", shape.masks));
    }
    let lines = (4 + 5 * shape.width).div_ceil(8).max(1);
    let memory = shape.entries.len() * (13 * shape.width + 13) * 2;
    let words = shape.width as f32;
    // Measured: 12 and 18 cycles for a thousand and a hundred thousand keys of one word, 24 for as many of two.
    let cycles = FLOOR + words * (costs.hash_word + costs.compare_word) + 3.0 + lines as f32 * costs.overlapped(memory);
    Ok(Fit { kind: Kind::Hash, cycles, probes: 4 * lines as u32, memory })
}

fn lpm(shape: &Shape, costs: &Costs) -> Result<Fit, String> {
    let [word] = shape.words[..] else { return Err(several(shape)) };
    prefixes(shape, None, word, Kind::Lpm, costs)
}

fn lpm6(shape: &Shape, costs: &Costs) -> Result<Fit, String> {
    match shape.words[..] {
        [low, high] if high == low + 1 => prefixes(shape, Some(low), high, Kind::Lpm6, costs),
        [_] => Err("its field lies in one word".into()),
        _ => Err(several(shape)),
    }
}

fn prefixes(shape: &Shape, low: Option<usize>, high: usize, kind: Kind, costs: &Costs) -> Result<Fit, String> {
    if shape.one_mask() {
        return Err("its entries have one mask, for which a hash table is enough".into());
    }
    if shape.ranges {
        return Err("its entries have ranges, not prefixes".into());
    }
    if !shape.prefixes(low, high) {
        return Err("its entries are not prefixes of one field".into());
    }
    if !shape.longest_first() {
        return Err("its longer prefixes do not come first".into());
    }
    let n = shape.entries.len();
    let memory = (256 << 10) + 30 * n;
    // An array, then nodes of six bits; a hundred thousand prefixes of IPv4 take one or two, measured 18 cycles.
    let longest =
        shape.entries.iter().map(|e| e.mask.iter().map(|word| word.count_ones()).sum::<u32>()).max().unwrap_or(0);
    let depth = longest.saturating_sub(14).div_ceil(6);
    let usual = (depth as f32).min(if low.is_some() { 6.0 } else { 2.0 });
    let cycles = FLOOR + 4.0 + 2.0 * costs.overlapped(memory) + usual * (4.0 + costs.overlapped(memory));
    Ok(Fit { kind, cycles, probes: 1 + 2 * depth, memory })
}

fn ranges(shape: &Shape, costs: &Costs) -> Result<Fit, String> {
    let Some(bits) = shape.span else { return Err(several(shape)) };
    if shape.one_mask() {
        return Err("its entries have one mask, for which a hash table is enough".into());
    }
    let (word, used) = used(shape.width, shape.entries);
    let end = 64 - used.leading_zeros();
    let full = if end == 0 { 0 } else { u64::MAX >> (64 - end) };
    let is_interval = |entry: &Entry| {
        let free = full & !entry.mask[word];
        match entry.ranges[..] {
            [] => free & free.wrapping_add(1) == 0,
            [range] => entry.mask[word] == 0 && u32::from(range.shift) + u32::from(range.width) == end,
            _ => false,
        }
    };
    if !shape.entries.iter().all(is_interval) {
        return Err("its entries are not intervals of one field".into());
    }
    let n = shape.entries.len();
    let memory = if bits <= 16 { 2 << bits } else { (256 << 10) + 60 * n };
    let depth = bits.saturating_sub(14).div_ceil(6);
    let usual = (depth as f32).min(3.0);
    let cycles = FLOOR + 5.0 + 2.0 * costs.overlapped(memory) + usual * (4.0 + costs.overlapped(memory));
    Ok(Fit { kind: Kind::Ranges, cycles, probes: 1 + 2 * depth, memory })
}

fn bit_vector(shape: &Shape, costs: &Costs) -> Result<Fit, String> {
    let n = shape.entries.len();
    let estimate = estimate(shape.width, shape.entries).ok_or("its entries look at too many pieces of the key")?;
    if estimate.memory > MAX_VECTORS {
        return Err(format!("{n} entries would take about {} MiB", estimate.memory >> 20));
    }
    let loads = estimate.loads as f32;
    let from = costs.overlapped(estimate.memory / 4); // half of it is never hit, and upper levels are all the time
    let vectors = estimate.vectors as f32 * (2.0 * from + 2.0 + costs.vector_word);
    // Measured: 26 cycles for 100 rules, 45 and 67 for 1,000 with few and with many wildcards, 110 for 2,000.
    let wrong = estimate.wrong * costs.mispredict * 1.5;
    let cycles = FLOOR + loads * (0.7 + 0.5 * from) + vectors + wrong;
    Ok(Fit { kind: Kind::BitVector, cycles, probes: estimate.probes as u32, memory: estimate.memory })
}

fn tuple_space(shape: &Shape, costs: &Costs) -> Result<Fit, String> {
    let n = shape.entries.len();
    let sample = n.div_ceil(SAMPLE);
    let sampled: Vec<Entry> = shape.entries.iter().step_by(sample.max(1)).cloned().collect();
    let tuples = tuple_space::count(&sampled);
    let memory = n * (16 * shape.width + 16 + 16);
    let words = shape.width as f32;
    // A probe of a tuple that has nothing, then what is compared where there is something, mostly guessed wrong.
    let probe = words * (costs.hash_word + costs.compare_word) + 4.0 + costs.overlapped(memory);
    // With an early answer, later tuples are left out: about a quarter of them.
    let cycles = FLOOR + 0.75 * tuples as f32 * (probe + 0.35 * costs.mispredict) + 1.5 * costs.mispredict;
    Ok(Fit { kind: Kind::TupleSpace, cycles, probes: 6 * tuples as u32, memory })
}

fn several(shape: &Shape) -> String {
    match shape.words.len() {
        0 => "its entries look at nothing".into(),
        1 => "its entries want several fields".into(),
        words => format!("its entries look at {words} words of the key, not at one field"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Range;
    use super::*;

    fn exact(words: &[u64], value: u64) -> Entry {
        Entry { mask: vec![u64::MAX; words.len()], key: words.to_vec(), ranges: vec![], value }
    }

    fn masked(mask: &[u64], key: &[u64], value: u64) -> Entry {
        Entry { mask: mask.to_vec(), key: key.iter().zip(mask).map(|(k, m)| k & m).collect(), ranges: vec![], value }
    }

    fn chosen(width: usize, entries: &[Entry]) -> Kind {
        let choice = choose(width, entries, &Costs::default());
        // All others say why not, once each, and the choice can be built.
        let mut others: Vec<&str> = choice.rejected.iter().map(|(kind, _)| name(*kind)).collect();
        others.sort_unstable();
        others.dedup();
        assert_eq!(others.len(), SPECIAL.len() + GENERAL.len() - 1, "{choice:?}");
        assert_eq!(super::super::Table::new(choice.kind as u64, width, entries, 1).kind(), choice.kind);
        assert_eq!(choice, choose(width, entries, &Costs::default()));
        choice.kind
    }

    #[test]
    fn exact_keys_are_hashed_and_small_ones_are_places() {
        let macs: Vec<Entry> = (0..1000).map(|i| masked(&[0xffff_ffff_ffff], &[i * 0x1_0001], i)).collect();
        assert_eq!(chosen(1, &macs), Kind::Hash);
        let wide: Vec<Entry> = (0..1000).map(|i| exact(&[i, i * i, 7], i)).collect();
        assert_eq!(chosen(3, &wide), Kind::Hash);
        let vlans: Vec<Entry> = (0..4000).map(|i| masked(&[0xfff], &[i], i)).collect();
        assert_eq!(chosen(1, &vlans), Kind::Index);
        let ports: Vec<Entry> = (0..20).map(|i| masked(&[0, 0xffff_0000], &[0, i << 20], i)).collect();
        assert_eq!(chosen(2, &ports), Kind::Index);
    }

    #[test]
    fn prefixes_of_one_field_are_tries() {
        let v4 = |lens: [u32; 5]| -> Vec<Entry> {
            let prefix =
                |i: u64| masked(&[u64::from(u32::MAX << (32 - lens[i as usize / 40]))], &[i << 20 | i << 9], i);
            (0..200).map(prefix).collect()
        };
        assert_eq!(chosen(1, &v4([32, 24, 20, 16, 8])), Kind::Lpm);
        // Shorter ones first: intervals, each of its first entry.
        assert_eq!(chosen(1, &v4([8, 16, 20, 24, 32])), Kind::Ranges);
        let v6: Vec<Entry> = [masked(&[u64::MAX, u64::MAX], &[5, 5], 0)]
            .into_iter()
            .chain((1..100).map(|i| masked(&[0, u64::MAX], &[0, i << 40], i)))
            .chain((100..200).map(|i| masked(&[0, u64::MAX << 32], &[0, i << 40], i)))
            .collect();
        assert_eq!(chosen(2, &v6), Kind::Lpm6);
    }

    #[test]
    fn ranges_of_one_field_are_intervals() {
        let range = |width: u8, i: u64| Range { word: 0, shift: 0, width, low: i * 100, high: i * 100 + 50 };
        let of = |width: u8| -> Vec<Entry> {
            (0..50).map(|i| Entry { ranges: vec![range(width, i)], ..masked(&[0], &[0], i) }).collect()
        };
        assert_eq!(chosen(1, &of(16)), Kind::Index);
        assert_eq!(chosen(1, &of(32)), Kind::Ranges);
    }

    #[test]
    fn tables_of_one_and_of_none() {
        assert_eq!(chosen(1, &[]), Kind::Index);
        assert_eq!(chosen(2, &[exact(&[1, 2], 0)]), Kind::Hash);
        chosen(1, &[masked(&[0], &[0], 0)]);
    }

    #[test]
    fn many_fields_are_bit_vectors_and_few_masks_tuples() {
        let lens = [32, 24, 16, 8, 0];
        let mask = |len: u32| if len == 0 { 0 } else { u64::from(u32::MAX << (32 - len)) };
        let rule = |i: u64| {
            let mask = [mask(lens[i as usize % 5]) | mask(lens[i as usize / 5 % 5]) << 32, [0xffff, 0][i as usize % 2]];
            masked(&mask, &[i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i], i)
        };
        assert_eq!(chosen(2, &(0..100).map(rule).collect::<Vec<_>>()), Kind::BitVector);
        assert_eq!(chosen(2, &(0..1000).map(rule).collect::<Vec<_>>()), Kind::BitVector);
        // Two masks of many entries are two probes, where vectors would be long.
        let two =
            |i: u64| masked(&[u64::MAX, [0xffff, 0][i as usize % 2]], &[i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i], i);
        assert_eq!(chosen(2, &(0..20_000).map(two).collect::<Vec<_>>()), Kind::TupleSpace);
    }
}
