//! Open tables are linear search, and stay so while entries come and go.

use super::super::shape::ones;
use super::super::tests::Numbers;
use super::*;

fn shape(parts: &[(u8, MatchKind)]) -> Shape {
    Shape {
        parts: parts.iter().map(|&(width, kind)| Part { width, kind }).collect(),
        args: 2,
        size: 64,
        idle_ns: 0,
        hard_ns: 0,
        timed_entries: false,
        learned: false,
    }
}

fn masked(value: u128, mask: u128) -> KeyMatch {
    KeyMatch::Masked { value: value & mask, mask }
}

fn entry(slot: u32, priority: u32, key: Vec<KeyMatch>) -> OpenEntry {
    OpenEntry { slot, priority, key, action: slot as u16 % 3, args: vec![u64::from(slot), 7], idle_ns: 0, hard_ns: 0 }
}

#[test]
fn parts_lie_in_words_without_overlap() {
    let shape = shape(&[
        (12, MatchKind::Exact),
        (128, MatchKind::Exact),
        (3, MatchKind::Ternary),
        (48, MatchKind::Exact),
        (64, MatchKind::Range),
        (100, MatchKind::Lpm),
    ]);
    let key = [0xabc, u128::MAX, 5, 0xffff_0000_1111, 1 << 63, (1 << 99) | 1];
    assert_eq!(shape.unpack(&shape.pack(&key)), key);
    assert_eq!(shape.words(), 6);
}

#[test]
fn priority_decides_then_the_prefix_then_the_order() {
    let shape = Arc::new(shape(&[(32, MatchKind::Lpm), (16, MatchKind::Ternary)]));
    let any = masked(0, 0);
    let long = masked(0x0a00_0000, 0xffff_0000);
    let short = masked(0x0a00_0000, 0xff00_0000);
    let entries = vec![
        entry(0, 0, vec![short, any]),
        entry(1, 0, vec![long, any]),
        entry(2, 5, vec![short, masked(7, 0xffff)]),
        entry(3, 0, vec![long, masked(1, 1)]),
    ];
    let table = Open::new(shape.clone(), entries, 1);
    let slot = |a: u128, b: u128| Some(table.lookup(&shape.pack(&[a, b]))).filter(|f| *f != MISS).map(|f| f as u32);
    assert_eq!(slot(0x0a00_0001, 7), Some(2));
    assert_eq!(slot(0x0a00_0001, 9), Some(1));
    assert_eq!(slot(0x0a01_0001, 9), Some(0));
    assert_eq!(slot(0x0b01_0001, 9), None);
    let row = table.find(&shape.pack(&[0x0a00_0001, 7]));
    assert_eq!((row.found(), row.args().collect::<Vec<u64>>()), (2 << 32 | 2, vec![2, 7]));
}

#[test]
fn every_structure_is_linear_search() {
    let kinds: [&[(u8, MatchKind)]; 5] = [
        &[(32, MatchKind::Lpm)],
        &[(128, MatchKind::Lpm)],
        &[(48, MatchKind::Exact), (12, MatchKind::Exact)],
        &[(16, MatchKind::Range), (8, MatchKind::Optional), (32, MatchKind::Ternary)],
        &[(7, MatchKind::Lpm), (128, MatchKind::Ternary), (16, MatchKind::Range)],
    ];
    let mut state = 9u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u128::from(state % 7)
    };
    for parts in kinds {
        for n in [0u32, 1, 5, 60] {
            let shape = Arc::new(shape(parts));
            let entries: Vec<OpenEntry> = (0..n)
                .map(|slot| {
                    let key = parts.iter().map(|&(width, kind)| match kind {
                        MatchKind::Exact => masked(next(), ones(width)),
                        MatchKind::Lpm => masked(next(), ones(width) & !ones(next() as u8 % 4)),
                        MatchKind::Ternary => masked(next(), next()),
                        MatchKind::Optional if next() < 3 => masked(0, 0),
                        MatchKind::Optional => masked(next(), ones(width)),
                        MatchKind::Range => {
                            let (a, b) = (next(), next());
                            KeyMatch::Range { low: a.min(b), high: a.max(b) }
                        }
                    });
                    let key = key.collect();
                    let priority = if parts.iter().any(|p| p.1.has_priority()) { next() as u32 } else { 0 };
                    entry(slot, priority, key)
                })
                .collect();
            let words: Vec<u64> = Open::encode(&shape, &entries)
                .chunks_exact(8)
                .map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")))
                .collect();
            let table = Open::decode(&words[1..], 4);
            assert_eq!(**table.shape(), *shape);
            for _ in 0..400 {
                let key: Vec<u128> = parts.iter().map(|_| next()).collect();
                let packed = shape.pack(&key);
                let first = table.entries().into_iter().find(|entry| entry.holds(&key));
                assert_eq!(table.lookup(&packed), first.map_or(MISS, |e| e.found()), "{parts:?} {n} {key:?}");
            }
        }
    }
}

/// A random key match of a part.
fn wanted(numbers: &mut Numbers, width: u8, kind: MatchKind) -> KeyMatch {
    let mut next =
        || u128::from(numbers.next() % 11) << (u32::from(width).saturating_sub(4) * (numbers.next() as u32 & 1));
    match kind {
        MatchKind::Exact => masked(next(), ones(width)),
        MatchKind::Lpm => {
            let (value, len) = (next(), next() as u32 % (u32::from(width) + 1));
            masked(value, ones(width) & !ones(width).checked_shr(len).unwrap_or(0))
        }
        MatchKind::Ternary => masked(next(), next() & ones(width)),
        MatchKind::Optional if next() < 3 => masked(0, 0),
        MatchKind::Optional => masked(next(), ones(width)),
        MatchKind::Range => {
            let (a, b) = (next(), next());
            KeyMatch::Range { low: a.min(b), high: a.max(b) }
        }
    }
}

/// The order in which entries are tried, by a sort that knows nothing of the table's.
fn first<'e>(shape: &Shape, entries: &'e [OpenEntry], key: &[u128]) -> Option<&'e OpenEntry> {
    let holding = entries.iter().enumerate().filter(|(_, entry)| entry.holds(key));
    let best = holding.max_by_key(|(at, entry)| (entry.priority, entry.prefix(shape), core::cmp::Reverse(*at)));
    best.map(|(_, entry)| entry)
}

#[test]
fn entries_come_and_go() {
    use MatchKind::{Exact, Lpm, Optional, Range, Ternary};
    let shapes: [&[(u8, MatchKind)]; 9] = [
        &[(16, Exact)],
        &[(48, Exact), (12, Exact)],
        &[(128, Exact), (64, Exact), (16, Exact)],
        &[(32, Lpm)],
        &[(128, Lpm)],
        &[(16, Range)],
        &[(32, Lpm), (8, Exact)],
        &[(32, Ternary), (16, Range), (8, Optional)],
        &[(100, Range), (9, Ternary)],
    ];
    for (round, parts) in shapes.into_iter().enumerate() {
        let shape = Arc::new(Shape { size: 600, ..shape(parts) });
        let mut numbers = Numbers(round as u64 + 1);
        let mut editor = Editor::new(shape.clone(), vec![], 5);
        let mut entries: Vec<OpenEntry> = Vec::new();
        let mut table = editor.open();
        let mut task = None;
        let in_place = matches!(table.structure(), Structure::Exact(_) | Structure::Prefixes(_));
        for version in 1..if in_place { 1500 } else { 120u64 } {
            let mut changes = Vec::new();
            // Mostly one change, sometimes a batch, now and then a large one.
            let n = [1, 1, 1, 1, 3, if version % 50 == 0 { 400 } else { 1 }][(numbers.next() % 6) as usize];
            for _ in 0..n {
                let key: Vec<KeyMatch> = parts.iter().map(|&(width, kind)| wanted(&mut numbers, width, kind)).collect();
                let priority = if parts.iter().any(|p| p.1.has_priority()) { numbers.next() as u32 % 3 } else { 0 };
                let at = entries.iter().position(|e| e.priority == priority && e.key == key);
                match at {
                    Some(at) if numbers.next().is_multiple_of(2) => {
                        entries.remove(at);
                        changes.push(Change::Take(priority, key));
                    }
                    _ if entries.len() >= 500 => {
                        let gone = entries.swap_remove((numbers.next() % 500) as usize);
                        // Order counts: what was swapped is put where the one that goes was, so take all behind it out, too.
                        changes.push(Change::Take(gone.priority, gone.key.clone()));
                        entries.sort_by_key(|e| e.slot);
                    }
                    _ => {
                        let slot = at.map_or(version as u32 * 1000 + changes.len() as u32, |at| entries[at].slot);
                        let mut new = entry(slot, priority, key);
                        new.args = vec![numbers.next(), version];
                        match at {
                            Some(at) => entries[at] = new.clone(),
                            None => entries.push(new.clone()),
                        }
                        changes.push(Change::Put(new));
                    }
                }
            }
            let published = match &changes[..] {
                [change] => editor.change(change, version).expect("there is room"),
                changes => editor.change_all(changes, version).map(|()| true).expect("there is room"),
            };
            if version % 7 == 0 && task.is_none() {
                task = editor.begin();
            } else if version % 11 == 0
                && let Some(task) = task.take()
            {
                editor.merged(task.run());
                table = editor.open();
            }
            if published {
                table = editor.open();
            }
            editor.release(version);
            assert_eq!(editor.len(), entries.len());
            for _ in 0..20 {
                let key: Vec<u128> = match numbers.next() % 3 {
                    0 => parts.iter().map(|&(width, _)| u128::from(numbers.next() % 11) & ones(width)).collect(),
                    _ if entries.is_empty() => continue,
                    _ => {
                        let near = &entries[(numbers.next() % entries.len() as u64) as usize];
                        near.key
                            .iter()
                            .map(|(KeyMatch::Masked { value, .. } | KeyMatch::Range { low: value, .. })| *value)
                            .collect()
                    }
                };
                let row = table.find(&shape.pack(&key));
                let want = first(&shape, &entries, &key);
                assert_eq!(row.found(), want.map_or(MISS, OpenEntry::found), "{parts:?}, version {version}: {key:x?}");
                assert_eq!(row.args().collect::<Vec<u64>>(), want.map_or(vec![], |e| e.args.clone()), "{parts:?}");
                let mut found = [0; 2];
                table.lookup_burst(&shape.pack(&key).repeat(2), &mut found);
                assert_eq!(found, [row.found(); 2], "{parts:?}");
            }
        }
        let mut listed = table.entries();
        assert!(listed.is_sorted_by_key(|e| core::cmp::Reverse((e.priority, e.prefix(&shape)))), "{parts:?}");
        listed.sort_by_key(|e| e.slot);
        entries.sort_by_key(|e| e.slot);
        assert_eq!(listed, entries, "{parts:?}");
    }
}
