//! Every structure is linear search, whatever the entries.

use super::*;

/// A cheap sequence of numbers.
pub(super) struct Numbers(pub u64);
impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

pub(super) fn linear(entries: &[Entry], key: &[u64]) -> u64 {
    entries.iter().filter(|entry| entry.holds(key)).map(|e| e.value).min_by_key(|v| v & 0xffff_ffff).unwrap_or(MISS)
}

#[test]
fn tuple_spaces_and_bit_vectors_are_linear_search() {
    let mut numbers = Numbers(7);
    for (width, n) in [(1, 0), (1, 1), (2, 50), (2, 2000), (3, 300)] {
        let masks: Vec<Vec<u64>> =
            (0..9).map(|_| (0..width).map(|_| numbers.next() & numbers.next() & 0xff).collect()).collect();
        let entries: Vec<Entry> = (0..n)
            .map(|i| {
                let mask = masks[(numbers.next() % 9) as usize].clone();
                let key = mask.iter().map(|m| numbers.next() & m).collect();
                Entry { mask, key, ranges: vec![], value: (numbers.next() % 4) << 32 | i }
            })
            .collect();
        for kind in [Kind::TupleSpace, Kind::BitVector] {
            let table = Table::decode(&encode(kind, width, &entries), 99);
            for _ in 0..3000 {
                let key: Vec<u64> = (0..width).map(|_| numbers.next() & 0xff).collect();
                assert_eq!(
                    table.lookup(&key),
                    linear(&entries, &key),
                    "{kind:?}: {width} words, {n} entries, {key:x?}"
                );
            }
        }
    }
}

#[test]
fn keys_that_are_near_entries_find_them() {
    let mut numbers = Numbers(11);
    for (width, n) in [(1, 40), (2, 700), (5, 200), (8, 90)] {
        let masks: Vec<Vec<u64>> =
            (0..40)
                .map(|i| {
                    (0..width)
                        .map(|_| {
                            if i % 3 == 0 { u64::MAX << (numbers.next() % 64) } else { numbers.next() | numbers.next() }
                        })
                        .collect()
                })
                .collect();
        let entries: Vec<Entry> = (0..n)
            .map(|i| {
                let mask = masks[(numbers.next() % 40) as usize].clone();
                let key = mask.iter().map(|m| numbers.next() & m).collect();
                Entry { mask, key, ranges: vec![], value: i / 3 }
            })
            .collect();
        let tables = [Kind::TupleSpace, Kind::BitVector].map(|kind| Table::decode(&encode(kind, width, &entries), 5));
        for _ in 0..4000 {
            let near = &entries[(numbers.next() % n) as usize];
            let flip = if numbers.next().is_multiple_of(2) { 0 } else { 1 << (numbers.next() % 64) };
            let mut key: Vec<u64> = near.key.iter().zip(&near.mask).map(|(k, m)| k | numbers.next() & !m).collect();
            key[0] ^= flip;
            for table in &tables {
                assert_eq!(table.lookup(&key), linear(&entries, &key), "{width} words, {n} entries, {key:x?}");
            }
        }
    }
}

#[test]
fn prefixes_are_linear_search() {
    let mut numbers = Numbers(3);
    for n in [0, 1, 5, 3000] {
        let mut entries: Vec<Entry> = (0..n)
            .map(|_| {
                let len = [0, 1, 7, 8, 9, 15, 16, 17, 20, 23, 24, 25, 31, 32][(numbers.next() % 14) as usize];
                let mask = if len == 0 { 0 } else { u64::from(u32::MAX << (32 - len)) };
                // Few high bits vary, so that prefixes nest.
                Entry { mask: vec![mask], key: vec![numbers.next() & 0x0303_ffff & mask], ranges: vec![], value: 0 }
            })
            .collect();
        entries.sort_by_key(|e| std::cmp::Reverse(e.mask[0]));
        entries.iter_mut().enumerate().for_each(|(i, e)| e.value = i as u64 | 5 << 32);
        let table = Table::decode(&encode(Kind::Lpm, 1, &entries), 0);
        for i in 0..6000u64 {
            let key = match entries.get((i / 3) as usize % entries.len().max(1)) {
                Some(e) => e.key[0] + i % 3,
                None => numbers.next(),
            } & 0xffff_ffff;
            assert_eq!(table.lookup(&[key]), linear(&entries, &[key]), "{n} prefixes, {key:x}");
        }
    }
}

#[test]
fn bytes_of_nobody_match_nothing() {
    assert_eq!(Table::decode(&[], 0).lookup(&[0; MAX_WORDS]), MISS);
    assert_eq!(Table::decode(&[7; 100], 0).lookup(&[1; MAX_WORDS]), MISS);
}

#[test]
fn ranges_are_their_prefixes_and_survive_encoding() {
    let range = |low, high| Range { word: 1, shift: 8, width: 16, low, high };
    for (low, high) in [(0, 65_535), (0, 0), (65_535, 65_535), (1, 65_534), (1024, 65_535), (0, 1023), (7, 9)] {
        let other = Range { word: 0, shift: 0, width: 64, low: 3, high: u64::MAX };
        let mask = vec![0, 0xff];
        let entry = Entry { mask, key: vec![0, 7], ranges: vec![range(low, high), other], value: 1 };
        let words: Vec<u64> = encode(Kind::Tree, 2, std::slice::from_ref(&entry))
            .chunks_exact(8)
            .map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")))
            .collect();
        assert_eq!(entry::decode(&words), (Kind::Tree as u64, 2, vec![entry.clone()]));
        let spelled = entry.spelled();
        assert_eq!(spelled.len(), entry.spellings());
        for port in [0, 1, 6, 7, 8, 9, 10, 1023, 1024, 65_534, 65_535u64] {
            for key in [[3, port << 8 | 7], [2, port << 8 | 7], [u64::MAX, port << 8 | 7], [3, port << 8 | 6]] {
                let ways = spelled.iter().filter(|e| e.holds(&key)).count();
                assert_eq!(ways, usize::from(entry.holds(&key)), "{low}..={high} {key:x?}");
            }
        }
    }
}
