//! Measures [`Costs`] on the machine at hand, in about a second.
//!
//! In: a clock, the sizes of the caches. Out: costs. Never: used unless somebody asks for it, since what it finds differs from
//! run to run.
//!
//! | cost | how |
//! |---|---|
//! | loads that wait | a chain of cache lines in a random order, each leading to the next |
//! | overlapped loads | lines at random places, no one waiting for another |
//! | mispredict | calls through a pointer that alternates at random, against those through one that does not |
//! | hash, compare, vector | the loops that structures run, over keys and words in the first cache |
//!
//! Each is the least of several runs: whatever disturbs, adds.

use std::hint::black_box;

use super::costs::Costs;
use crate::hash::{START, step};

/// Words of a cache line.
const LINE: usize = 8;
/// How often each thing is measured.
const RUNS: usize = 5;
/// Loads of a run.
const LOADS: usize = 1 << 16;

/// The sizes of a processor's caches, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Of the first, for data.
    pub l1: usize,
    /// Of the second.
    pub l2: usize,
    /// Of the last.
    pub l3: usize,
}

impl Default for Caches {
    fn default() -> Caches {
        let Costs { l1_bytes, l2_bytes, l3_bytes, .. } = Costs::default();
        Caches { l1: l1_bytes, l2: l2_bytes, l3: l3_bytes }
    }
}

/// Measures. `cycles` is a counter that goes on evenly.
pub fn calibrate(caches: Caches, cycles: &dyn Fn() -> u64) -> Costs {
    let clock = Clock(cycles);
    let [l1, l2, l3] = [caches.l1 / 2, caches.l2 / 2, caches.l3 / 2].map(|bytes| Lines::new(bytes.max(4096)));
    let (waiting, overlapped) = (|lines: &Lines| clock.waiting(lines), |lines: &Lines| clock.overlapped(lines));
    let near = [waiting(&l1), waiting(&l2), waiting(&l3)];
    let together = [overlapped(&l2), overlapped(&l3)];
    drop((l1, l2, l3));
    let memory = Lines::new((caches.l3 * 3).clamp(64 << 20, 256 << 20));
    let (call, mispredict) = clock.calls();
    Costs {
        load_l1: near[0],
        load_l2: near[1],
        load_l3: near[2],
        load_memory: waiting(&memory),
        overlapped_l2: together[0],
        overlapped_l3: together[1],
        overlapped_memory: overlapped(&memory),
        mispredict,
        hash_word: clock.hash_word(),
        compare_word: clock.compare_word(),
        vector_word: clock.vector_word(),
        call,
        l1_bytes: caches.l1,
        l2_bytes: caches.l2,
        l3_bytes: caches.l3,
    }
}

/// Cache lines, each with the number of another: one cycle through all in a random order.
struct Lines(Vec<[u64; LINE]>);

impl Lines {
    fn new(bytes: usize) -> Lines {
        let count = (bytes / size_of::<[u64; LINE]>()).next_power_of_two();
        let mut order: Vec<u32> = (0..count as u32).collect();
        let mut random = START;
        for i in (1..count).rev() {
            random = step(random, i as u64);
            order.swap(i, (random % i as u64) as usize); // below i: a cycle (Sattolo's)
        }
        Lines(order.into_iter().map(|next| [u64::from(next); LINE]).collect())
    }
}

/// What is measured by.
struct Clock<'c>(&'c dyn Fn() -> u64);

impl Clock<'_> {
    /// The least cycles of some runs, for each of `count` things.
    fn least(&self, count: usize, mut run: impl FnMut()) -> f32 {
        let once = |run: &mut dyn FnMut()| {
            let start = (self.0)();
            run();
            (self.0)().wrapping_sub(start) as f32 / count as f32
        };
        (0..RUNS).map(|_| once(&mut run)).fold(f32::INFINITY, f32::min)
    }

    fn waiting(&self, lines: &Lines) -> f32 {
        let mut at = 0;
        self.least(LOADS, || {
            for _ in 0..LOADS {
                at = lines.0[at][0] as usize;
            }
            at = black_box(at);
        })
    }

    fn overlapped(&self, lines: &Lines) -> f32 {
        let mask = lines.0.len() - 1;
        let mut random = START;
        self.least(LOADS, || {
            let mut sum = 0u64;
            for _ in 0..LOADS {
                random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                sum = sum.wrapping_add(lines.0[(random >> 33) as usize & mask][0]);
            }
            black_box(sum);
        })
    }

    /// What a call through a pointer costs, and one through a pointer that was not foreseen on top.
    fn calls(&self) -> (f32, f32) {
        #[inline(never)]
        fn add(x: u64) -> u64 {
            x.wrapping_add(3)
        }
        #[inline(never)]
        fn mix(x: u64) -> u64 {
            x ^ 0x55
        }
        let mut random = START;
        let mixed: Vec<usize> = (0..LOADS as u64)
            .map(|i| {
                random = step(random, i);
                (random & 1) as usize
            })
            .collect();
        let functions: [fn(u64) -> u64; 2] = black_box([add, mix]);
        let calls = |targets: &[usize]| {
            self.least(LOADS, || {
                black_box(targets.iter().fold(0, |x, target| functions[*target](x)));
            })
        };
        let (foreseen, random) = (calls(&vec![0; LOADS]), calls(&mixed));
        (foreseen, ((random - foreseen) * 2.0).max(0.0)) // every second one is foreseen by chance
    }

    fn hash_word(&self) -> f32 {
        let keys: Vec<[u64; 2]> = (0..1024).map(|i| [i, i << 7]).collect();
        self.least(2 * keys.len(), || {
            let hashes = black_box(&keys).iter().map(|key| key.iter().fold(START, |hash, word| step(hash, *word)));
            black_box(hashes.fold(0, |sum: u64, hash| sum.wrapping_add(hash)));
        })
    }

    fn compare_word(&self) -> f32 {
        let entries: Vec<[u64; 4]> = (0..512).map(|i| [i, i << 3, u64::MAX, u64::MAX >> 8]).collect();
        let key = black_box([7u64, 9]);
        self.least(2 * entries.len(), || {
            let differs = |entry: &[u64; 4]| (key[0] & entry[2] ^ entry[0]) | (key[1] & entry[3] ^ entry[1]);
            let equal = black_box(&entries).iter().filter(|entry| differs(entry) == 0).count();
            black_box(equal);
        })
    }

    fn vector_word(&self) -> f32 {
        let (a, b) = (vec![0x5555u64; 1024], vec![0xaaaa_0000u64; 1024]);
        self.least(a.len(), || {
            let (a, b) = (black_box(&a), black_box(&b));
            black_box(a.iter().zip(b).position(|(a, b)| a & b != 0));
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lead_once_through_all() {
        let lines = Lines::new(4096);
        let (mut at, mut seen) = (0, vec![false; lines.0.len()]);
        for _ in 0..lines.0.len() {
            assert!(!std::mem::replace(&mut seen[at], true), "{at} comes twice");
            at = lines.0[at][0] as usize;
        }
        assert_eq!(at, 0);
    }

    #[test]
    fn costs_are_numbers_of_the_clock() {
        let start = std::time::Instant::now();
        let caches = Caches { l1: 8 << 10, l2: 16 << 10, l3: 32 << 10 };
        let costs = calibrate(caches, &|| start.elapsed().as_nanos() as u64);
        let all = [costs.load_l1, costs.load_memory, costs.overlapped_memory, costs.hash_word, costs.vector_word];
        assert!(all.iter().all(|cost| cost.is_finite() && *cost > 0.0), "{costs:?}");
        assert!(costs.mispredict >= 0.0 && costs.l2_bytes == caches.l2);
    }
}
