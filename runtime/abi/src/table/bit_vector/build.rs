//! How bit vectors are built: cut the key, find the classes of each piece, join what is small, lay the rest out.

use super::super::{Entry, MISS};
use super::classes::Classes;
use super::cut::{cuts, spell_others};
use super::piece::piece;
use super::{BitVector, FEW_WORDS, Join, Left};

/// Pairs of classes that a join may have: half a megabyte's worth of them stays near the processor.
const MAX_PAIRS: usize = 1 << 19;
/// Words that are compared to build one: some hundredths of a second.
const MAX_WORK: usize = 1 << 23;

pub(super) fn build(width: usize, entries: &[Entry]) -> Option<BitVector> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.value & 0xffff_ffff);
    let cuts = cuts(width, &sorted)?;
    let spelled: Vec<Entry> = sorted.into_iter().flat_map(|entry| spell_others(entry, &cuts)).collect();
    // Lengths that are looked up whole are those that the look-up has code for.
    let words = match spelled.len().div_ceil(64) {
        3 => 4,
        words => words,
    };
    let mut table = BitVector { width, words, ..BitVector::default() };
    table.summary = if words <= FEW_WORDS { 0 } else { words.div_ceil(64) };
    table.values = spelled.iter().map(|entry| entry.value).collect();
    let mut parts: Vec<Option<Classes>> = Vec::new();
    for cut in cuts {
        let (piece, classes) = piece(cut, &spelled, words, &mut table.blocks)?;
        // A piece that no entry looks at says nothing; one must stay, so that there is a vector.
        if classes.len() > 1 || parts.is_empty() {
            table.pieces.push(piece);
            parts.push(Some(classes));
        }
    }
    join(&mut table, &mut parts)?;
    // Small pieces and joins are looked up in windows of a fixed size, which must not end before it.
    let last = table.pieces.iter().map(|piece| piece.start).max().unwrap_or(0);
    table.blocks.resize(table.blocks.len().max(last + 256), [0; 256]);
    let last = table.joins.iter().map(|join| join.start).max().unwrap_or(0);
    table.pairs.resize(table.pairs.len().max(last + 0x1_0000), 0);
    if let [Some(only)] = &parts.iter().filter(|part| part.is_some()).collect::<Vec<_>>()[..] {
        let place = |vector: &[u64]| {
            let word = vector.iter().position(|word| *word != 0)?;
            table.values.get(word * 64 + vector[word].trailing_zeros() as usize).copied()
        };
        let values = only.vectors().map(|vector| place(vector).unwrap_or(MISS)).collect();
        table.values = values;
        let at = parts.iter().position(Option::is_some).unwrap_or(0);
        table.left.push(Left { at, start: 0, len: 0 });
        (table.words, table.summary) = (0, 0);
        return Some(table);
    }
    for (at, classes) in parts.iter().enumerate() {
        let Some(classes) = classes else { continue };
        let start = table.rows.len();
        for vector in classes.vectors() {
            if table.summary > 0 {
                table.rows.extend(vector.chunks(64).map(|words| {
                    words.iter().enumerate().fold(0, |bits, (k, word)| bits | u64::from(*word != 0) << k)
                }));
            }
            table.rows.extend(vector);
        }
        table.left.push(Left { at, start, len: table.rows.len() - start });
    }
    Some(table)
}

/// Joins classes by arrays, the smallest first.
fn join(table: &mut BitVector, parts: &mut [Option<Classes>]) -> Option<()> {
    let max = MAX_PAIRS.min(MAX_WORK / table.words.max(1));
    loop {
        let mut best: Option<(usize, usize, usize)> = None;
        for a in 0..parts.len() {
            for b in a + 1..parts.len() {
                let (Some(one), Some(other)) = (&parts[a], &parts[b]) else { continue };
                let pairs = one.len() * other.len();
                if pairs <= max && best.is_none_or(|(least, ..)| pairs < least) {
                    best = Some((pairs, a, b));
                }
            }
        }
        let Some((pairs, a, b)) = best else { return Some(()) };
        let (Some(one), Some(other)) = (parts[a].take(), parts[b].take()) else { return Some(()) };
        let mut joined = Classes::new(table.words);
        table.joins.push(Join { a, b, stride: other.len(), start: table.pairs.len(), len: pairs });
        let mut both = vec![0; table.words];
        for x in one.vectors() {
            for y in other.vectors() {
                both.iter_mut().zip(x.iter().zip(y)).for_each(|(both, (x, y))| *both = x & y);
                table.pairs.push(joined.number(&both)?);
            }
        }
        parts[a] = Some(joined);
    }
}
