//! Every structure is linear search, whatever the entries, and reads no more than it says.

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

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Structures that take any entries.
const ANY: [Kind; 2] = [Kind::TupleSpace, Kind::BitVector];

pub(super) fn linear(entries: &[Entry], key: &[u64]) -> u64 {
    let found = entries.iter().filter(|entry| entry.holds(key)).map(|entry| entry.value);
    found.min_by_key(|value| value & 0xffff_ffff).unwrap_or(MISS)
}

/// Tables of these kinds, from bytes as the runtime builds them.
fn tables(kinds: &[Kind], width: usize, entries: &[Entry]) -> Vec<Table> {
    kinds.iter().map(|kind| Table::decode(&encode(*kind, width, entries), 99)).collect()
}

/// Keys alone and in bursts give what linear search does, and look-ups read what they may.
fn agree(what: &str, width: usize, entries: &[Entry], tables: &[Table], keys: &[Vec<u64>]) {
    let wanted: Vec<u64> = keys.iter().map(|key| linear(entries, key)).collect();
    for table in tables {
        let show = |key: &Vec<u64>| format!("{what}, {} entries, {width} words, {key:x?}\n{entries:x?}", entries.len());
        for (key, wanted) in keys.iter().zip(&wanted) {
            assert_eq!(table.lookup(key), *wanted, "{:?}: {}", table.kind(), show(key));
            let (read, most) = (table.probes(key), table.worst_probes());
            assert!(read <= most, "{:?} reads {read} of {most}: {}", table.kind(), show(key));
        }
        for (keys, wanted) in keys.chunks(BURST).zip(wanted.chunks(BURST)) {
            // Whole bursts, and what is left in the end.
            let mut found = vec![0; keys.len()];
            table.lookup_burst(&keys.concat(), &mut found);
            assert_eq!(found, wanted, "{:?} in a burst: {what}", table.kind());
        }
    }
}

/// A key that an entry matches, or nearly.
fn near(numbers: &mut Numbers, entry: &Entry) -> Vec<u64> {
    let mut key: Vec<u64> = entry.key.iter().zip(&entry.mask).map(|(k, m)| k | numbers.next() & !m).collect();
    for range in &entry.ranges {
        let span = range.high.wrapping_sub(range.low);
        let inside = range.low + if span == u64::MAX { numbers.next() } else { numbers.below(span + 1) };
        let value =
            numbers.one_of(&[range.low, range.high, inside, range.low.wrapping_sub(1), range.high.wrapping_add(1)]);
        let word = &mut key[usize::from(range.word)];
        *word = *word & !(range.ones() << range.shift) | (value & range.ones()) << range.shift;
    }
    if numbers.below(3) == 0 {
        let word = numbers.below(key.len() as u64) as usize;
        key[word] ^= 1 << numbers.below(64);
    }
    key
}

fn keys_near(numbers: &mut Numbers, width: usize, entries: &[Entry], n: usize) -> Vec<Vec<u64>> {
    let any = |numbers: &mut Numbers| (0..width).map(|_| numbers.next()).collect();
    (0..n)
        .map(|_| match entries.len() {
            0 => any(numbers),
            len => {
                let entry = &entries[numbers.below(len as u64) as usize];
                near(numbers, entry)
            }
        })
        .collect()
}

#[test]
fn masks_of_any_shape() {
    let mut numbers = Numbers(11);
    for (width, n) in [(1, 0), (1, 1), (1, 40), (2, 50), (2, 2000), (3, 300), (5, 200), (8, 90), (12, 30)] {
        let mut word = |i: usize| match i % 3 {
            0 => u64::MAX << numbers.below(64),
            1 => numbers.next() & numbers.next() & 0xff,
            _ => numbers.next() | numbers.next(),
        };
        let masks: Vec<Vec<u64>> = (0..40).map(|i| (0..width).map(|_| word(i)).collect()).collect();
        let mut entry = |i| {
            let mask = masks[numbers.below(40) as usize].clone();
            let key = mask.iter().map(|m| numbers.next() & m).collect();
            Entry { mask, key, ranges: vec![], value: numbers.below(4) << 32 | i }
        };
        let entries: Vec<Entry> = (0..n).map(&mut entry).collect();
        let keys = keys_near(&mut numbers, width, &entries, 1000);
        agree("masks", width, &entries, &tables(&ANY, width, &entries), &keys);
    }
}

/// Rules over two addresses, two ports and a protocol, of few values, so that they overlap, are equal and lie in each other.
fn five(numbers: &mut Numbers, n: u64) -> Vec<Entry> {
    const LENGTHS: [u32; 12] = [0, 0, 1, 7, 8, 9, 16, 23, 24, 25, 31, 32];
    const ENDS: [u64; 9] = [0, 1, 79, 80, 1023, 1024, 49_152, 65_534, 65_535];
    let mut entries: Vec<Entry> = Vec::new();
    for value in 0..n {
        let mut entry = Entry { mask: vec![0; 2], key: vec![0; 2], ranges: vec![], value: 3 << 32 | value };
        for shift in [0, 32] {
            let len = numbers.one_of(&LENGTHS);
            let mask = if len == 0 { 0 } else { u64::from(u32::MAX << (32 - len)) };
            let address = numbers.next() & 0x8101_0181 | numbers.one_of(&[0, 0xffff_ffff, 0x0a00_0000]);
            entry.mask[0] |= mask << shift;
            entry.key[0] |= (address & mask) << shift;
        }
        for shift in [0, 16] {
            let (a, b) = (numbers.one_of(&ENDS), numbers.one_of(&ENDS));
            match numbers.below(4) {
                0 => {}
                1 => {
                    entry.mask[1] |= 0xffff << shift;
                    entry.key[1] |= a << shift;
                }
                _ => entry.ranges.push(Range { word: 1, shift, width: 16, low: a.min(b), high: a.max(b) }),
            }
        }
        if numbers.below(3) != 0 {
            entry.mask[1] |= 0xff << 32;
            entry.key[1] |= numbers.one_of(&[0, 6, 17, 255]) << 32;
        }
        entries.push(entry);
    }
    // Some are there twice, and some match all.
    for at in (0..entries.len()).step_by(17) {
        let from = numbers.below(n) as usize;
        entries[at] = Entry { value: entries[at].value, ..entries[from].clone() };
    }
    if n > 60 {
        let value = entries[40].value;
        entries[40] = Entry { mask: vec![0; 2], key: vec![0; 2], ranges: vec![], value };
    }
    entries
}

#[test]
fn rules_over_five_fields() {
    let mut numbers = Numbers(5);
    for n in [1, 2, 3, 10, 64, 65, 130, 200, 257, 300, 700, 1500, 3000] {
        let entries = five(&mut numbers, n);
        let keys = keys_near(&mut numbers, 2, &entries, 300);
        agree("five fields", 2, &entries, &tables(&ANY, 2, &entries), &keys);
    }
}

/// Rules that mostly say much about both addresses, some of them crowded.
fn long_prefixes(numbers: &mut Numbers, n: u64) -> Vec<Entry> {
    let mut entries = five(numbers, n);
    for entry in &mut entries {
        for shift in [0, 32] {
            let len = numbers.one_of(&[0, 8, 16, 20, 24, 28, 32, 32, 32]);
            let mask = if len == 0 { 0 } else { u64::from(u32::MAX << (32 - len)) };
            let address = numbers.one_of(&[0x0a00_0000, 0xc0a8_0000, 0xffff_0000]) | numbers.next() & 0x0000_c3c3;
            entry.mask[0] = entry.mask[0] & !(0xffff_ffff << shift) | mask << shift;
            entry.key[0] = entry.key[0] & !(0xffff_ffff << shift) | (address & mask) << shift;
        }
    }
    entries
}

#[test]
fn thousands_of_rules_that_say_much_about_two_fields() {
    let mut numbers = Numbers(31);
    for n in [2500, 4000] {
        let entries = long_prefixes(&mut numbers, n);
        let mut keys = keys_near(&mut numbers, 2, &entries, 250);
        keys.extend(mixed(&mut numbers, &entries, 250));
        agree("long prefixes", 2, &entries, &tables(&ANY, 2, &entries), &keys);
    }
}

/// What an attacker sends who knows the entries: the fields of several entries in one key, so that each field promises much.
fn mixed(numbers: &mut Numbers, entries: &[Entry], n: usize) -> Vec<Vec<u64>> {
    const FIELDS: [[u64; 2]; 5] =
        [[0xffff_ffff, 0], [0xffff_ffff << 32, 0], [0, 0xffff], [0, 0xffff_0000], [0, 0xff << 32]];
    let key = |_| {
        let mut key = vec![0; 2];
        for field in FIELDS {
            let from = &entries[numbers.below(entries.len() as u64) as usize];
            let from = near(numbers, from);
            key.iter_mut().zip(&from).zip(field).for_each(|((key, from), field)| *key |= from & field);
        }
        key
    };
    (0..n).map(key).collect()
}

#[test]
fn packets_made_of_the_fields_of_many_rules_cost_what_is_said() {
    let mut numbers = Numbers(41);
    for n in [50, 400, 3000] {
        // Masks of all lengths, each with few entries: as many tuples as can be.
        let entries = five(&mut numbers, n);
        let keys = mixed(&mut numbers, &entries, 500);
        let tables = tables(&ANY, 2, &entries);
        agree("mixed", 2, &entries, &tables, &keys);
    }
}

#[test]
fn many_small_rule_sets_over_five_fields() {
    let mut numbers = Numbers(77);
    for n in 1..120 {
        let entries = five(&mut numbers, n);
        // Priorities against the order in which entries are given.
        let mut given = entries.clone();
        given.reverse();
        let keys = keys_near(&mut numbers, 2, &entries, 70);
        agree("five fields, the last first", 2, &given, &tables(&ANY, 2, &given), &keys);
    }
}

#[test]
fn ranges_of_all_widths_and_across_each_other() {
    let mut numbers = Numbers(21);
    for n in [1u64, 5, 40, 150] {
        for places in [
            &[(0u8, 0u8, 64u8)][..],
            &[(0, 0, 32), (1, 60, 4)],
            &[(0, 3, 13), (0, 10, 12), (1, 0, 1)],
            &[(0, 0, 16), (0, 8, 16), (0, 48, 16)],
        ] {
            let entries: Vec<Entry> = (0..n)
                .map(|value| {
                    let range = |(word, shift, width): (u8, u8, u8), numbers: &mut Numbers| {
                        let most = u64::MAX >> (64 - width);
                        // Few bits differ, so that spelling them stays small.
                        let end =
                            |numbers: &mut Numbers| numbers.one_of(&[0, 1, 2, most / 2, most / 2 + 1, most - 1, most]);
                        let (a, b) = (end(numbers) & most, end(numbers) & most);
                        Range { word, shift, width, low: a.min(b), high: a.max(b) }
                    };
                    let ranges: Vec<Range> = vec![range(numbers.one_of(places), &mut numbers)];
                    let free = !(ranges[0].ones() << ranges[0].shift);
                    let mut mask = vec![u64::MAX << numbers.one_of(&[0, 8, 20, 63]), numbers.one_of(&[0, 1, 0xff00])];
                    mask[usize::from(ranges[0].word)] &= free;
                    let key = mask.iter().map(|m| m & numbers.one_of(&[0, 1 << 63, 0xffff, u64::MAX])).collect();
                    Entry { mask, key, ranges, value }
                })
                .collect();
            let keys = keys_near(&mut numbers, 2, &entries, 200);
            agree("ranges", 2, &entries, &tables(&ANY, 2, &entries), &keys);
        }
    }
}

#[test]
fn prefixes_are_linear_search() {
    let mut numbers = Numbers(3);
    for n in [0, 1, 5, 3000] {
        let mut entries: Vec<Entry> = (0..n)
            .map(|_| {
                let len = numbers.one_of(&[0, 1, 7, 8, 9, 15, 16, 17, 20, 23, 24, 25, 31, 32]);
                let mask = if len == 0 { 0 } else { u64::from(u32::MAX << (32 - len)) };
                // Few high bits vary, so that prefixes nest.
                Entry { mask: vec![mask], key: vec![numbers.next() & 0x0303_ffff & mask], ranges: vec![], value: 0 }
            })
            .collect();
        entries.sort_by_key(|e| std::cmp::Reverse(e.mask[0]));
        entries.iter_mut().enumerate().for_each(|(i, e)| e.value = i as u64 | 5 << 32);
        let keys: Vec<Vec<u64>> =
            keys_near(&mut numbers, 1, &entries, 2000).into_iter().map(|key| vec![key[0] & 0xffff_ffff]).collect();
        agree("prefixes", 1, &entries, &tables(&[Kind::Lpm], 1, &entries), &keys);
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
        let words: Vec<u64> = encode(Kind::Ranges, 2, std::slice::from_ref(&entry))
            .chunks_exact(8)
            .map(|w| u64::from_le_bytes(w.try_into().expect("eight bytes")))
            .collect();
        assert_eq!(entry::decode_words(&words), (Kind::Ranges as u64, 2, vec![entry.clone()]));
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
