//! Tests of the structures for exact keys and for one field: each is linear search, and stays within its bound.

use super::tests::{Numbers, linear};
use super::*;

fn check(kind: Kind, width: usize, entries: &[Entry], keys: &[Vec<u64>]) {
    let table = Table::decode(&encode(kind, width, entries), 77);
    for burst in keys.chunks(BURST) {
        let flat: Vec<u64> = burst.concat();
        let mut found = vec![0; burst.len()];
        table.lookup_burst(&flat, &mut found);
        for (key, found) in burst.iter().zip(found) {
            let want = linear(entries, key);
            assert_eq!(found, want, "{kind:?} in a burst: {key:x?} of {} entries", entries.len());
            assert_eq!(table.lookup(key), want, "{kind:?}: {key:x?} of {} entries", entries.len());
            assert!(table.probes(key) <= table.worst_probes(), "{kind:?}: {key:x?} of {} entries", entries.len());
        }
    }
}

/// Mask, key and ranges of an entry.
type Wants = (Vec<u64>, Vec<u64>, Vec<Range>);

/// Entries in order, with values whose upper halves differ or do not.
fn numbered(entries: impl IntoIterator<Item = Wants>, high: u64) -> Vec<Entry> {
    let entry = |(i, (mask, key, ranges)): (usize, Wants)| {
        let key = key.iter().zip(&mask).map(|(key, mask)| key & mask).collect();
        Entry { mask, key, ranges, value: i as u64 | (i as u64 % high) << 32 }
    };
    entries.into_iter().enumerate().map(entry).collect()
}

#[test]
fn exact_keys_of_any_width() {
    let mut numbers = Numbers(5);
    for width in 1..=MAX_WORDS {
        for (n, mask) in [(0, u64::MAX), (1, 0), (1, u64::MAX), (40, 0xff0f), (3000, u64::MAX)] {
            let mask: Vec<u64> = (0..width).map(|k| if k % 2 == 0 { mask } else { u64::MAX }).collect();
            let mut key = || (0..width).map(|k| if k == 0 { numbers.next() % 5000 } else { 7 }).collect::<Vec<u64>>();
            let entries = numbered((0..n).map(|_| (mask.clone(), key(), vec![])), 1 + n % 3);
            let keys: Vec<Vec<u64>> = (0..2500).map(|_| key()).collect();
            check(Kind::Hash, width, &entries, &keys);
        }
    }
}

#[test]
fn a_small_field_of_masks_and_ranges() {
    let mut numbers = Numbers(6);
    for (word, shift, bits) in [(0, 0, 16), (1, 5, 12), (0, 63, 1), (1, 48, 16), (0, 9, 3)] {
        for n in [0u64, 1, 4, 60] {
            let full = u64::MAX >> (64 - bits);
            let place = |value: u64| if word == 0 { vec![value << shift, 0] } else { vec![0, value << shift] };
            let entries = (0..n).map(|i| {
                let (a, b) = (numbers.next() & full, numbers.next() & full);
                let range = |low, high| Range { word, shift, width: bits as u8, low, high };
                match i % 6 {
                    0 => (place(full), place(a), vec![]),
                    1 => (place(a), place(b), vec![]),
                    2 => (vec![0, 0], vec![0, 0], vec![range(a.min(b), a.max(b))]),
                    3 => (vec![0, 0], vec![0, 0], vec![range(0, a / 4)]),
                    4 => (vec![0, 0], vec![0, 0], vec![range(full - a / 4, full)]),
                    _ => (place(full & full << (a % 8)), place(b), vec![]),
                }
            });
            let entries = numbered(entries.collect::<Vec<_>>(), 2);
            let edges = entries.iter().flat_map(|e| match e.ranges[..] {
                [r] => vec![r.low.wrapping_sub(1), r.low, r.high, r.high + 1],
                _ => vec![e.key[word as usize] >> shift],
            });
            let more = [0, full, 1, full / 2];
            let keys = edges.chain(more).chain((0..500).map(|k| k * 131)).map(|value| {
                let mut key = vec![0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa];
                key[word as usize] = key[word as usize] & !(full << shift) | (value & full) << shift;
                key
            });
            let keys: Vec<Vec<u64>> = keys.collect();
            check(Kind::Index, 2, &entries, &keys);
            check(Kind::Ranges, 2, &entries, &keys);
        }
    }
}

#[test]
fn intervals_of_wide_fields() {
    let mut numbers = Numbers(8);
    for (shift, bits) in [(0, 32), (16, 48), (0, 64), (7, 17)] {
        for n in [1u64, 2, 90] {
            let full = u64::MAX >> (64 - bits);
            let range = |low, high| vec![Range { word: 0, shift, width: bits as u8, low, high }];
            let entries = (0..n).map(|i| {
                let (a, b) = (numbers.next() & full, numbers.next() & full);
                match i % 7 {
                    0 => (vec![full << shift], vec![a << shift], vec![]),
                    1 => (vec![full << (bits - a % 9).min(63) & full << shift], vec![b << shift], vec![]),
                    2 => (vec![0], vec![0], range(a.min(b), a.max(b))),
                    3 => (vec![0], vec![0], range(0, a >> (b % 20))),
                    4 => (vec![0], vec![0], range(full - (a >> (b % 20)), full)),
                    5 => (vec![(full & !(0x1010 << (a % 4))) << shift], vec![b << shift], vec![]),
                    _ => (vec![0], vec![0], range(a, a)),
                }
            });
            let mut entries = numbered(entries.collect::<Vec<_>>(), 3);
            if n == 2 {
                entries[1].ranges = range(0, full); // all of the field
            }
            let edges = entries.iter().flat_map(|e| match e.ranges[..] {
                [r] => vec![r.low.wrapping_sub(1), r.low, r.high, r.high.wrapping_add(1)],
                _ => vec![e.key[0] >> shift, (e.key[0] >> shift) + 1],
            });
            let keys = edges.chain([0, full]).chain((0..300).map(|k: u64| k.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            let keys: Vec<Vec<u64>> = keys.map(|value| vec![(value & full) << shift | !(full << shift)]).collect();
            check(Kind::Ranges, 1, &entries, &keys);
        }
    }
}

/// Prefixes that nest and repeat, longer ones first.
fn prefixes(numbers: &mut Numbers, n: u64, bits: u32, at: impl Fn(u128) -> Vec<u64>) -> Vec<Entry> {
    let full = u128::MAX >> (128 - bits);
    let mut all: Vec<(u32, u128)> = (0..n)
        .map(|_| {
            let lengths = [0, 1, 7, 8, 16, 17, 18, 19, 24, 25, 29, 30, 31, 32, 36, 48, 63, 64, 65, 100, 127, 128];
            let len = lengths[(numbers.next() % 22) as usize].min(bits);
            let value = u128::from(numbers.next() & 0x0303_0000_0000_0303) << 64 | u128::from(numbers.next() & 3);
            (len, value >> (128 - bits) & full & !(full.checked_shr(len).unwrap_or(0)))
        })
        .collect();
    all.sort_by_key(|(len, _)| core::cmp::Reverse(*len));
    let entry = |(len, value): (u32, u128)| (at(full & !full.checked_shr(len).unwrap_or(0)), at(value), vec![]);
    numbered(all.into_iter().map(entry), 2)
}

#[test]
fn prefixes_of_narrow_and_wide_fields() {
    let mut numbers = Numbers(9);
    for (kind, bits, shift) in
        [(Kind::Lpm, 32, 0), (Kind::Lpm, 32, 16), (Kind::Lpm, 64, 0), (Kind::Lpm6, 128, 0), (Kind::Lpm6, 100, 0)]
    {
        let at = |value: u128| vec![(value as u64) << shift, (value >> 64) as u64, 0];
        for n in [0, 1, 5, 500] {
            let entries = prefixes(&mut numbers, n, bits, at);
            let near = entries.iter().flat_map(|e| {
                let mut after = e.key.clone();
                after[0] = after[0].wrapping_add(1 << shift);
                [e.key.clone(), after]
            });
            let far = (0..600).map(|k: u64| vec![k.wrapping_mul(0x0101_0101) << shift, (k % 5) << 56, 0]);
            let keys: Vec<Vec<u64>> =
                near.chain(far).map(|key| at(u128::from(key[0] >> shift) | u128::from(key[1]) << 64)).collect();
            let full = u128::MAX >> (128 - bits);
            let keys: Vec<Vec<u64>> =
                keys.iter().map(|k| at((u128::from(k[0] >> shift) | u128::from(k[1]) << 64) & full)).collect();
            check(kind, 3, &entries, &keys);
        }
    }
}

#[test]
fn keys_that_collide_under_another_key_of_the_hash_stay_within_the_bound() {
    let mut numbers = Numbers(13);
    let entry = |key: u64| Entry { mask: vec![u64::MAX], key: vec![key], ranges: vec![], value: key & 0xffff };
    let known = Hash::with_capacity(1, &[u64::MAX], 4000, 0.5, 1);
    // Keys of a few buckets of a table whose key is known, as an attacker would choose them, and as many of one tag.
    let chosen: Vec<u64> = (0..).map(|_| numbers.next()).filter(|key| known.home(&[*key]) < 8).take(4000).collect();
    for seed in [2, 3, u64::MAX] {
        let entries: Vec<Entry> = chosen.iter().map(|key| entry(*key)).collect();
        let table = Hash::new(1, &entries, seed);
        let probes: Vec<u32> = chosen.iter().map(|key| table.probes(&[*key])).collect();
        assert!(probes.iter().all(|probes| *probes <= table.worst_probes()));
        let mean = probes.iter().sum::<u32>() as f64 / probes.len() as f64;
        assert!(mean < 1.3, "as if they had not been chosen: {mean}");
        assert!(table.memory() < 64 * 2 * entries.len(), "nor does the table grow");
    }
}

#[test]
fn a_hash_table_changes_in_place() {
    let table = Hash::with_capacity(2, &[u64::MAX; 2], 500, 0.6, 4);
    let mut model = std::collections::BTreeMap::new();
    let mut numbers = Numbers(3);
    for round in 0..20_000u32 {
        let key = [numbers.next() % 700, 1];
        if numbers.next().is_multiple_of(3) {
            let removed = table.remove(&key);
            assert_eq!(removed.map(|(_, value)| value), model.remove(&key));
            if let Some((lane, _)) = removed {
                table.release(lane);
            }
        } else if model.len() < 500 || model.contains_key(&key) {
            assert_eq!(table.insert(&key, round), Ok(model.insert(key, round)));
        }
        let other = [numbers.next() % 700, 1];
        assert_eq!(table.lookup(&other), model.get(&other).map_or(MISS, |value| u64::from(*value)));
    }
    let mut all: Vec<(Vec<u64>, u32)> = table.entries(0..table.buckets()).collect();
    all.sort();
    assert_eq!(all, model.into_iter().map(|(key, value)| (key.to_vec(), value)).collect::<Vec<_>>());
}
