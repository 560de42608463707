//! Heavy hitters in front of a table.
//!
//! Where a few keys are most of the traffic and a look-up is dear, asking for these first pays: a sixteenth of a line for each,
//! found by one multiplication, compared once. Which keys they are is sampled: of every [`EVERY`]th burst the keys go into a
//! summary of at most [`WATCHED`] counters (Misra, Gries: Finding repeated elements, 1982: a key with a larger share than one
//! in so many is surely in it). After [`ENOUGH`] keys the summary is judged: if asking first is predicted to cost less than
//! [`WORTH`] of what it costs without, the keys are put in front, else the table stands alone; then sampling begins anew, so
//! that traffic that has changed is noticed. The idea is that of Miano et al. (Morpheus, 2022), for tables whose rules stay.
//!
//! This is no cache of flows: packets put nothing in. What it costs where it does not help has a bound: a comparison a packet
//! until the next judgement; one number a burst where nothing is in front. It belongs to one worker, and to a sealed table,
//! whose entries are those of the program and never change: so an answer once right stays right.

use super::{BURST, Costs, Kind, MAX_WORDS, Table};

/// Bursts from one that is sampled to the next.
const EVERY: u32 = 256;
/// Keys after which the sample is judged.
const ENOUGH: u32 = 2048;
/// Keys that the summary holds.
const WATCHED: usize = 32;
/// Places in front: a power of two.
const PLACES: usize = 16;
/// Cycles of asking in front.
const FRONT: f32 = 6.0;
/// What asking first may cost at the most, of what it costs without.
const WORTH: f32 = 0.9;
/// Look-ups that cost fewer cycles are never worth it.
const DEAR: f32 = 25.0;

/// A key and what the table says of it.
#[derive(Clone, Copy)]
struct Place {
    key: [u64; MAX_WORDS],
    found: u64,
}

/// What is sampled of one table's traffic, and what is in front of it.
#[derive(Clone)]
pub struct Hot {
    /// Predicted cycles of a look-up.
    base: f32,
    width: usize,
    bursts: u32,
    /// Keys sampled since the last judgement.
    seen: u32,
    watched: Vec<([u64; MAX_WORDS], u32)>,
    front: Option<Box<[Option<Place>; PLACES]>>,
    /// Keys that are not in front, of the current burst, and which they are.
    rest: Vec<u64>,
    lanes: [u8; BURST],
    found: [u64; BURST],
}

impl core::fmt::Debug for Hot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Hot").field("base", &self.base).field("in_front", &self.in_front()).finish_non_exhaustive()
    }
}

impl Hot {
    /// For a table that [`encode`](super::encode) wrote, if a look-up in it is dear enough.
    pub fn of(bytes: &[u8]) -> Option<Hot> {
        // Others read a few lines, which heavy hitters keep in the caches anyway.
        let dear = [Kind::BitVector as u64, Kind::TupleSpace as u64];
        let kind = bytes.first_chunk().map(|kind| u64::from_le_bytes(*kind));
        let (_, width, entries) = kind.filter(|kind| dear.contains(kind)).map(|_| super::decode(bytes))?;
        let base = super::choose(width, &entries, &Costs::default()).cycles;
        (base >= DEAR).then(|| Hot {
            base,
            width,
            bursts: 0,
            seen: 0,
            watched: Vec::with_capacity(WATCHED),
            front: None,
            rest: vec![0; BURST * width],
            lanes: [0; BURST],
            found: [0; BURST],
        })
    }

    /// How many keys are in front.
    pub fn in_front(&self) -> usize {
        self.front.as_ref().map_or(0, |front| front.iter().flatten().count())
    }

    /// As [`Table::lookup_burst`] of the table that this was made for.
    #[inline]
    pub fn lookup_burst(&mut self, table: &Table, keys: &[u64], found: &mut [u64]) {
        self.bursts = self.bursts.wrapping_add(1);
        if self.bursts.is_multiple_of(EVERY) {
            self.sample(table, keys);
        }
        match self.front.take() {
            None => table.lookup_burst(keys, found),
            Some(front) => {
                self.through(&front, table, keys, found);
                self.front = Some(front);
            }
        }
    }

    /// Asks in front, and the table for what is not there.
    fn through(&mut self, front: &[Option<Place>; PLACES], table: &Table, keys: &[u64], found: &mut [u64]) {
        let width = self.width;
        let mut left = 0;
        for (lane, (key, found)) in keys.chunks_exact(width).zip(found.iter_mut()).enumerate().take(BURST) {
            match &front[place(key)] {
                Some(hot) if hot.key[..width] == *key => *found = hot.found,
                _ => {
                    self.rest[left * width..(left + 1) * width].copy_from_slice(key);
                    self.lanes[left] = lane as u8;
                    left += 1;
                }
            }
        }
        if left > 0 {
            table.lookup_burst(&self.rest[..left * width], &mut self.found[..left]);
            for (lane, value) in self.lanes[..left].iter().zip(&self.found) {
                if let Some(found) = found.get_mut(usize::from(*lane)) {
                    *found = *value;
                }
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn sample(&mut self, table: &Table, keys: &[u64]) {
        for key in keys.chunks_exact(self.width) {
            self.seen += 1;
            if let Some((_, count)) = self.watched.iter_mut().find(|(watched, _)| watched[..self.width] == *key) {
                *count += 1;
            } else if self.watched.len() < WATCHED {
                let mut watched = [0; MAX_WORDS];
                watched[..self.width].copy_from_slice(key);
                self.watched.push((watched, 1));
            } else {
                self.watched.iter_mut().for_each(|(_, count)| *count -= 1);
                self.watched.retain(|(_, count)| *count > 0);
            }
        }
        if self.seen >= ENOUGH {
            self.judge(table);
        }
    }

    /// Puts keys in front, or takes them away.
    fn judge(&mut self, table: &Table) {
        self.watched.sort_unstable_by_key(|(key, count)| (core::cmp::Reverse(*count), *key));
        let mut front = Box::new([None; PLACES]);
        let mut hits = 0;
        let heavy = |count: u32| count * WATCHED as u32 >= self.seen;
        for (key, count) in self.watched.iter().filter(|(_, count)| heavy(*count)) {
            let place = &mut front[place(&key[..self.width])];
            if place.is_none() {
                *place = Some(Place { key: *key, found: table.lookup(&key[..self.width]) });
                hits += count;
            }
        }
        // The counters are of what is surely there; what was taken off them is left out.
        let share = hits as f32 / self.seen as f32;
        let with = FRONT + (1.0 - share) * self.base;
        self.front = (with < WORTH * self.base).then_some(front);
        self.watched.clear();
        self.seen = 0;
    }
}

/// Where a key would be in front.
#[inline(always)]
fn place(key: &[u64]) -> usize {
    let mixed = key.iter().fold(0u64, |mixed, word| (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (mixed >> 60) as usize & (PLACES - 1)
}

#[cfg(test)]
mod tests {
    use super::super::{Entry, MISS, encode};
    use super::*;

    fn table() -> Vec<u8> {
        let rule = |i: u64| {
            let mask = [u64::MAX << (i % 30), if i.is_multiple_of(2) { 0xffff } else { 0 }];
            let key = [i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask[0], i & mask[1]];
            Entry { mask: mask.to_vec(), key: key.to_vec(), ranges: vec![], value: i }
        };
        encode(Kind::BitVector, 2, &(0..600).map(rule).collect::<Vec<_>>())
    }

    /// Bursts of keys of which every `of`th is one of `hot`, and all others differ.
    fn run(hot: &mut Hot, table: &Table, keys: &[[u64; 2]], of: u64, bursts: u64) {
        let mut found = [0; BURST];
        for burst in 0..bursts {
            let key = |lane: u64| match (burst + lane).is_multiple_of(of) {
                true => keys[(lane / of) as usize % keys.len()],
                false => [burst << 20 | lane, lane],
            };
            let keys: Vec<u64> = (0..BURST as u64).flat_map(key).collect();
            hot.lookup_burst(table, &keys, &mut found);
            for (key, found) in keys.chunks_exact(2).zip(found) {
                assert_eq!(found, table.lookup(key));
            }
        }
    }

    #[test]
    fn heavy_hitters_come_in_front_and_go_when_traffic_changes() {
        let bytes = table();
        let table = Table::decode(&bytes, 5);
        let mut hot = Hot::of(&bytes).expect("a dear table");
        let judged = u64::from(EVERY * ENOUGH) / BURST as u64 + u64::from(EVERY);
        let rule = |i: u64| [i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i];
        run(&mut hot, &table, &[rule(7), rule(90), [1, 2]], 2, judged);
        assert!((1..=3).contains(&hot.in_front()), "{hot:?}");
        assert_ne!(table.lookup(&rule(7)), MISS);
        run(&mut hot, &table, &[rule(7)], 1000, judged);
        assert_eq!(hot.in_front(), 0, "uniform traffic");
    }

    #[test]
    fn cheap_tables_stand_alone() {
        let entry = Entry { mask: vec![u64::MAX], key: vec![3], ranges: vec![], value: 0 };
        assert!(Hot::of(&encode(Kind::Hash, 1, &[entry])).is_none());
        assert!(Hot::of(&[]).is_none());
    }
}
