//! Random tables through every structure that fits them, against linear search.

use super::choose::choose;
use super::tests::{Numbers, linear};
use super::*;

/// A field of a key.
struct Field {
    word: u8,
    shift: u8,
    width: u8,
}

/// What an entry may want of a field.
#[derive(Clone, Copy, Debug)]
enum Want {
    Exact,
    Prefix,
    Mask,
    Range,
    Any,
}

fn fields(numbers: &mut Numbers) -> Vec<Field> {
    let mut at = (0u8, 0u8);
    let fields = (0..1 + numbers.next() % 4).map(|_| {
        let width = [1, 7, 8, 12, 16, 17, 32, 32, 48, 64][(numbers.next() % 10) as usize];
        if at.1 + width > 64 {
            at = (at.0 + 1, 0);
        }
        at.1 += width;
        Field { word: at.0, shift: at.1 - width, width }
    });
    fields.collect()
}

/// A value of few bits that is near an end of the field, so that entries overlap and ends are met.
fn value(numbers: &mut Numbers, width: u8) -> u64 {
    let ones = u64::MAX >> (64 - width);
    match numbers.next() % 4 {
        0 => (numbers.next() % 5) & ones,
        1 => ones - ((numbers.next() % 5) & ones),
        2 => (numbers.next() % 7) << width.saturating_sub(3) & ones,
        _ => numbers.next() & ones,
    }
}

fn entries(numbers: &mut Numbers, fields: &[Field], width: usize, n: u64) -> Vec<Entry> {
    use Want::{Any, Exact, Mask, Prefix, Range as Between};
    // What a table's entries want is alike, or mixed.
    let all: [&[Want]; 6] =
        [&[Exact], &[Prefix], &[Between, Exact], &[Any, Exact], &[Mask], &[Exact, Prefix, Mask, Between, Any]];
    let wants: Vec<&[Want]> = fields.iter().map(|_| all[(numbers.next() % 6) as usize]).collect();
    let entry = |place: u64| {
        let mut entry = Entry { mask: vec![0; width], key: vec![0; width], ranges: vec![], value: place };
        for (field, wants) in fields.iter().zip(&wants) {
            let ones = u64::MAX >> (64 - field.width);
            let (low, high) = (value(numbers, field.width), value(numbers, field.width));
            let mask = match wants[numbers.next() as usize % wants.len()] {
                Exact => ones,
                Prefix => ones & (ones << (numbers.next() % u64::from(field.width))),
                Mask => high,
                Any => 0,
                Between => {
                    let Field { word, shift, width } = *field;
                    entry.ranges.push(Range { word, shift, width, low: low.min(high), high: low.max(high) });
                    0
                }
            };
            entry.mask[usize::from(field.word)] |= mask << field.shift;
            entry.key[usize::from(field.word)] |= (low & mask) << field.shift;
        }
        entry.value |= (numbers.next() % 3) << 32;
        entry
    };
    (0..n).map(entry).collect()
}

/// A key that an entry wants, or almost.
fn near(numbers: &mut Numbers, fields: &[Field], width: usize, entries: &[Entry]) -> Vec<u64> {
    let mut key: Vec<u64> = vec![0; width];
    for field in fields {
        key[usize::from(field.word)] |= value(numbers, field.width) << field.shift;
    }
    if !entries.is_empty() && !numbers.next().is_multiple_of(4) {
        let entry = &entries[numbers.next() as usize % entries.len()];
        for ((key, mask), want) in key.iter_mut().zip(&entry.mask).zip(&entry.key) {
            *key = *key & !mask | want;
        }
        for range in &entry.ranges {
            let place = &mut key[usize::from(range.word)];
            let end = [range.low, range.high, range.low.wrapping_sub(1), range.high + u64::from(range.high < u64::MAX)];
            let value = end[(numbers.next() % 4) as usize] & range.ones();
            *place = *place & !(range.ones() << range.shift) | value << range.shift;
        }
    }
    key
}

#[test]
fn every_structure_that_fits_is_linear_search() {
    let mut seen = std::collections::BTreeMap::new();
    for round in 1..=120u64 {
        let mut numbers = Numbers(round * 0x9e37_79b9);
        let fields = fields(&mut numbers);
        let width = usize::from(fields[fields.len() - 1].word) + 1;
        let n = [0, 1, 2, 9, 40, 150][(numbers.next() % 6) as usize];
        let entries = entries(&mut numbers, &fields, width, n);
        if entries.iter().map(Entry::spellings).sum::<usize>() > 4_000 {
            continue;
        }
        let choice = choose(width, &entries, &Costs::default());
        let mut kinds = vec![choice.kind, Kind::TupleSpace, Kind::BitVector];
        // What was rejected as dearer fits, too.
        kinds.extend(choice.rejected.iter().filter(|(_, why)| why.contains("cycles")).map(|(kind, _)| *kind));
        kinds.sort_by_key(|kind| *kind as u64);
        kinds.dedup();
        let keys: Vec<Vec<u64>> = (0..2 * BURST).map(|_| near(&mut numbers, &fields, width, &entries)).collect();
        let want: Vec<u64> = keys.iter().map(|key| linear(&entries, key)).collect();
        for kind in kinds {
            let table = Table::decode(&encode(kind, width, &entries), round);
            *seen.entry(table.kind() as u64).or_insert(0) += 1;
            for (keys, want) in keys.chunks(BURST).zip(want.chunks(BURST)) {
                let mut found = vec![0; keys.len()];
                table.lookup_burst(&keys.concat(), &mut found);
                assert_eq!(found, want, "round {round}: {kind:?} of {n} entries, {keys:x?}");
                for (key, want) in keys.iter().zip(want) {
                    assert_eq!(table.lookup(key), *want, "round {round}: {kind:?} of {n} entries, {key:x?}");
                    assert!(
                        table.probes(key) <= table.worst_probes(),
                        "round {round}: {kind:?} of {n} entries, {key:x?}"
                    );
                }
            }
        }
    }
    assert!(seen.len() >= 6, "most structures had their turn: {seen:?}");
}
