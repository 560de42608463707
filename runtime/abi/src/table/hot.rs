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
const EVERY: u32 = 1024;
/// Keys after which the sample is judged.
const ENOUGH: u32 = 2048;
/// Keys that the summary holds.
const WATCHED: usize = 32;
/// Places in front: a power of two.
const PLACES: usize = 16;
/// Cycles of asking in front.
const FRONT: f32 = 14.0;
/// Keys that are left are looked up so many at a time, places that stay empty with them, and that much dearer than in a burst.
const TOGETHER: f32 = 8.0;
const DEARER: f32 = 1.25;
/// What asking first may cost at the most, of what it costs without.
const WORTH: f32 = 0.85;
/// Look-ups that cost fewer cycles are never worth it.
const DEAR: f32 = 25.0;

/// A key and what the table says of it.
#[derive(Clone, Copy, Default)]
struct Place {
    key: [u64; MAX_WORDS],
    found: u64,
    used: bool,
}

/// What is in front of a table.
#[derive(Clone)]
struct Front {
    /// Chosen such that few keys want one place.
    seed: u64,
    places: [Place; PLACES],
}

/// Seeds that are tried.
const SEEDS: u64 = 16;

/// What is sampled of one table's traffic, and what is in front of it.
#[derive(Clone)]
pub struct Hot {
    /// Predicted cycles of a look-up.
    base: f32,
    width: usize,
    bursts: u32,
    /// Keys sampled since the last judgement.
    seen: u32,
    watched: Vec<Watched>,
    front: Option<Box<Front>>,
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
        self.front.as_ref().map_or(0, |front| front.places.iter().filter(|place| place.used).count())
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

    /// Asks in front, and the table for what is not there. No branch depends on a key.
    fn through(&mut self, front: &Front, table: &Table, keys: &[u64], found: &mut [u64]) {
        let left = match self.width {
            1 => self.ask::<1>(front, keys, found),
            2 => self.ask::<2>(front, keys, found),
            3 => self.ask::<3>(front, keys, found),
            4 => self.ask::<4>(front, keys, found),
            _ => self.ask_any(front, keys, found),
        };
        if left > 0 {
            table.lookup_burst(&self.rest[..left * self.width], &mut self.found[..left]);
            for (lane, value) in self.lanes[..left].iter().zip(&self.found) {
                if let Some(found) = found.get_mut(usize::from(*lane)) {
                    *found = *value;
                }
            }
        }
    }

    /// What is in front is found, the other keys are put together: how many they are.
    #[inline(always)]
    fn ask<const W: usize>(&mut self, front: &Front, keys: &[u64], found: &mut [u64]) -> usize {
        let (keys, _) = keys.as_chunks::<W>();
        let (rest, _) = self.rest.as_chunks_mut::<W>();
        let mut left = 0;
        for (lane, (key, found)) in keys.iter().zip(found).enumerate().take(BURST) {
            let place = &front.places[place(front.seed, key)];
            let differs = key.iter().zip(&place.key).fold(0, |differs, (a, b)| differs | (a ^ b));
            *found = place.found;
            if let (Some(rest), Some(lanes)) = (rest.get_mut(left), self.lanes.get_mut(left)) {
                (*rest, *lanes) = (*key, lane as u8);
            }
            left += usize::from(differs != 0 || !place.used);
        }
        left
    }

    fn ask_any(&mut self, front: &Front, keys: &[u64], found: &mut [u64]) -> usize {
        let (width, mut left) = (self.width, 0);
        for (lane, (key, found)) in keys.chunks_exact(width).zip(found).enumerate().take(BURST) {
            let place = &front.places[place(front.seed, key)];
            *found = place.found;
            self.rest[left * width..(left + 1) * width].copy_from_slice(key);
            self.lanes[left] = lane as u8;
            left += usize::from(!place.used || place.key[..width] != *key);
        }
        left
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
        let heavy = self.watched.iter().take_while(|(_, count)| count * WATCHED as u32 >= self.seen).count();
        let (heavy, width) = (&self.watched[..heavy], self.width);
        let share_of = |seed: u64| placed(heavy, width, seed).map(|(_, count)| *count).sum::<u32>();
        let seed = (0..SEEDS).max_by_key(|seed| (share_of(*seed), core::cmp::Reverse(*seed))).unwrap_or(0);
        let hits = share_of(seed);
        let mut front = Box::new(Front { seed, places: [Place::default(); PLACES] });
        for (key, _) in placed(heavy, width, seed) {
            let found = table.lookup(&key[..width]);
            front.places[place(seed, &key[..width])] = Place { key: *key, found, used: true };
        }
        // The counters are of what is surely there; what was taken off them is left out.
        let share = hits as f32 / self.seen as f32;
        let left = ((1.0 - share) * BURST as f32 / TOGETHER).ceil() * TOGETHER / BURST as f32;
        let with = FRONT + left * DEARER * self.base;
        self.front = (with < WORTH * self.base).then_some(front);
        self.watched.clear();
        self.seen = 0;
    }
}

/// A key that was sampled, and how often.
type Watched = ([u64; MAX_WORDS], u32);

/// Those whose place nobody before them wants.
fn placed(heavy: &[Watched], width: usize, seed: u64) -> impl Iterator<Item = &Watched> {
    let mut taken = 0u32;
    heavy.iter().filter(move |(key, _)| {
        let bit = 1 << place(seed, &key[..width]);
        let is_free = taken & bit == 0;
        taken |= bit;
        is_free
    })
}

/// Where a key would be in front.
#[inline(always)]
fn place(seed: u64, key: &[u64]) -> usize {
    let mixed = key.iter().fold(seed, |mixed, word| (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
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

    /// Bursts of keys of which every `of`th differs from all others, and the rest are some of `keys`.
    fn run(hot: &mut Hot, table: &Table, keys: &[[u64; 2]], of: u64, bursts: u64) {
        let mut found = [0; BURST];
        for burst in 0..bursts {
            let key = |lane: u64| match (burst + lane).is_multiple_of(of) {
                true => [burst << 20 | lane, lane],
                false => keys[lane as usize % keys.len()],
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
        run(&mut hot, &table, &[rule(7), rule(90), [1, 2]], 10, judged);
        assert!((1..=3).contains(&hot.in_front()), "{hot:?}");
        assert_ne!(table.lookup(&rule(7)), MISS);
        run(&mut hot, &table, &[rule(7)], 1, judged);
        assert_eq!(hot.in_front(), 0, "uniform traffic");
    }

    #[test]
    fn cheap_tables_stand_alone() {
        let entry = Entry { mask: vec![u64::MAX], key: vec![3], ranges: vec![], value: 0 };
        assert!(Hot::of(&encode(Kind::Hash, 1, &[entry])).is_none());
        assert!(Hot::of(&[]).is_none());
    }
}
