//! How bit vectors are built: divide the entries, cut the key, find the classes of each piece, join what is small, lay the rest
//! out.

use super::super::{Entry, MISS};
use super::BitVector;
use super::classes::Classes;
use super::crossed::Crossed;
use super::cut::{Cut, cuts, richest, spell_others};
use super::part::{FEW_WORDS, Join, Left, PAIRS, Part, Piece, pad};
use super::piece::piece;

/// Pairs of classes that a join may have: a megabyte's worth of them stays near the processor.
const MAX_PAIRS: usize = 1 << 19;
/// Words that are compared to build one with long vectors: a hundredth of a second.
const MAX_WORK: usize = 1 << 23;
/// Words of vectors that are short.
const SHORT: usize = 16;
/// Words of the vectors that a join may lead to.
const MAX_ROWS: usize = 5 << 17;
/// Pairs of classes that a join of a chain may have.
const MAX_CHAIN: usize = 1 << 18;
/// Entries that are no part of their own.
const SMALL_PART: usize = 192;
/// Entries that are not divided.
pub(super) const UNDIVIDED: usize = 2048;

pub(super) fn build(width: usize, entries: &[Entry]) -> Option<BitVector> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.value & 0xffff_ffff);
    let cuts = cuts(width, &sorted)?;
    let crossed = match richest(&cuts, &sorted) {
        [Some(a), Some(b)] if sorted.len() > UNDIVIDED => Crossed::take(width, [a, b], &mut sorted),
        _ => None,
    };
    let parts = divide(&cuts, sorted).iter().map(|entries| part(&cuts, entries)).collect::<Option<_>>()?;
    Some(BitVector { width, parts, crossed: crossed.map(Box::new) })
}

/// The entries by what they say much about: neither of the two richest fields, one, the other, or both.
pub(super) fn divide<'a>(cuts: &[Cut], entries: Vec<&'a Entry>) -> Vec<Vec<&'a Entry>> {
    if entries.len() <= UNDIVIDED {
        return vec![entries];
    }
    let mut divided: [Vec<&Entry>; 4] = Default::default();
    let rich = richest(cuts, &entries);
    for entry in entries {
        let says = |cut: &Option<Cut>| cut.is_some_and(|cut| cut.want(entry).is_narrow(&cut));
        divided[usize::from(says(&rich[0])) | usize::from(says(&rich[1])) << 1].push(entry);
    }
    // A part costs more than the promises of a few entries.
    let mut divided: Vec<Vec<&Entry>> = divided.into_iter().collect();
    divided.sort_by_key(Vec::len);
    while divided.len() > 1 && divided[0].len() < SMALL_PART {
        let few = divided.remove(0);
        divided[0].extend(few);
        divided[0].sort_by_key(|entry| entry.value as u32);
    }
    divided.sort_by_key(|entries| entries[0].value as u32);
    divided
}

fn part(cuts: &[Cut], entries: &[&Entry]) -> Option<Part> {
    let spelled: Vec<Entry> = entries.iter().flat_map(|entry| spell_others(entry, cuts)).collect();
    // Lengths that are looked up whole are those that the look-up has code for.
    let words = match spelled.len().div_ceil(64) {
        3 => 4,
        words => words,
    };
    let mut part = Part { words, ..Part::default() };
    part.summary = if words <= FEW_WORDS { 0 } else { words.div_ceil(64) };
    part.values = spelled.iter().map(|entry| entry.value).collect();
    part.firsts = part.values.iter().step_by(64).map(|value| *value as u32).collect();
    let mut found: Vec<Option<Classes>> = Vec::new();
    for cut in cuts {
        let (piece, classes) = piece(*cut, &spelled, words, &mut part.blocks)?;
        // A piece that no entry looks at says nothing; one must stay, so that there is a vector.
        if classes.len() > 1 || found.is_empty() {
            part.pieces.push(piece);
            found.push(Some(classes));
        }
    }
    // Small tables are a chain.
    if chain(&mut part, &mut found).is_none() {
        join(&mut part, &mut found);
    }
    // Windows must not end before their size.
    pad(&mut part.blocks, &part.pieces);
    let last = part.pieces.iter().filter_map(|piece| piece.join).map(|join| join.start).max();
    part.pairs.resize(part.pairs.len().max(last.map_or(0, |last| last + PAIRS)), 0);
    for (at, classes) in found.iter().enumerate() {
        let Some(classes) = classes else { continue };
        let start = part.rows.len();
        classes.vectors().for_each(|vector| lay_out(&mut part, vector));
        part.left.push(Left { at, start, len: part.rows.len() - start });
    }
    if let [only] = part.left[..]
        && let Some(Some(classes)) = found.get(only.at)
    {
        let place = |vector: &[u64]| {
            let word = vector.iter().position(|word| *word != 0)?;
            part.values.get(word * 64 + vector[word].trailing_zeros() as usize).copied()
        };
        part.answers = classes.vectors().map(|vector| place(vector).unwrap_or(MISS)).collect();
    }
    Some(part)
}

/// Joins piece after piece to what was joined before, if all arrays stay so small that each piece can do it while its class is
/// at hand. The pieces then stand in that order, and one class is left. Else nothing changes.
fn chain(part: &mut Part, found: &mut Vec<Option<Classes>>) -> Option<()> {
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by_key(|&at| found[at].as_ref().map(Classes::len));
    let mut pairs = Vec::new();
    let mut pieces: Vec<Piece> = Vec::new();
    let mut all: Option<Classes> = None;
    for at in order {
        let (next, mut piece) = (found[at].as_ref()?, part.pieces[at]);
        all = match all {
            None => Some(next.clone()),
            Some(all) if all.len() * next.len() <= MAX_CHAIN => {
                let len = all.len() * next.len();
                piece.join = Some(Join { a: 0, b: pieces.len(), stride: next.len(), start: pairs.len(), len });
                Some(joined(&all, next, &mut pairs)?)
            }
            Some(_) => return None,
        };
        pieces.push(piece);
    }
    (part.pairs, part.pieces) = (pairs, pieces);
    found.clear();
    found.push(all);
    Some(())
}

/// The classes of pairs, by both, behind the pairs that are there.
fn joined(one: &Classes, other: &Classes, pairs: &mut Vec<u16>) -> Option<Classes> {
    let mut joined = Classes::new(one.words());
    let mut both = vec![0; one.words()];
    for x in one.vectors() {
        for y in other.vectors() {
            both.iter_mut().zip(x.iter().zip(y)).for_each(|(both, (x, y))| *both = x & y);
            pairs.push(joined.number(&both)?);
        }
    }
    Some(joined)
}

/// A vector behind its summary, if it has one.
fn lay_out(part: &mut Part, vector: &[u64]) {
    if part.summary > 0 {
        let summary =
            |words: &[u64]| words.iter().enumerate().fold(0, |bits, (k, word)| bits | u64::from(*word != 0) << k);
        part.rows.extend(vector.chunks(64).map(summary));
    }
    part.rows.extend(vector);
}

/// Which two of what has so many classes are joined next, and how many pairs that is: the fewest. Nothing if all are too many.
pub(super) fn next_join(classes: &[Option<usize>], words: usize) -> Option<(usize, usize, usize)> {
    let most = if words <= SHORT { MAX_PAIRS } else { MAX_PAIRS.min(MAX_WORK / words) };
    let all = classes.iter().enumerate().filter_map(|(at, classes)| classes.map(|classes| (at, classes)));
    let pairs = all
        .clone()
        .flat_map(|(a, one)| all.clone().filter(move |(b, _)| *b > a).map(move |(b, other)| (one * other, a, b)));
    pairs.filter(|(pairs, ..)| *pairs <= most).min()
}

/// Joins classes by arrays, the smallest first.
fn join(part: &mut Part, found: &mut [Option<Classes>]) {
    // What takes part no longer: there would be more classes than numbers, or more vectors than caches hold.
    let mut full = vec![false; found.len()];
    loop {
        let count = |(classes, full): (&Option<Classes>, &bool)| classes.as_ref().filter(|_| !full).map(Classes::len);
        let classes: Vec<Option<usize>> = found.iter().zip(&full).map(count).collect();
        let Some((pairs, a, b)) = next_join(&classes, part.words) else { return };
        let (Some(one), Some(other)) = (&found[a], &found[b]) else { return };
        let start = part.pairs.len();
        let both = joined(one, other, &mut part.pairs).filter(|both| both.len() * part.words <= MAX_ROWS);
        let Some(both) = both else {
            part.pairs.truncate(start);
            full[a] = true;
            continue;
        };
        part.joins.push(Join { a, b, stride: other.len(), start, len: pairs });
        (found[a], found[b]) = (Some(both), None);
    }
}
