//! A keyed hash of a few words: in goes a canonical key, out come 64 bits of which the table uses both ends.
//!
//! Each pair of words is multiplied after each was mixed with a secret word, and the halves of the product are folded
//! together; a last round evens out what one product of sequential keys leaves uneven. Whoever does not know the secret
//! cannot choose keys that collide; it is drawn anew at every start.

use std::hash::{BuildHasher, RandomState};

/// Secret words of one start.
#[derive(Clone, Copy)]
pub struct Secret([u64; 6]);

impl Secret {
    /// Drawn from the system's randomness, or from `seed` for tests that must repeat.
    pub fn new(seed: Option<u64>) -> Secret {
        let random = RandomState::new();
        let mut state = seed.unwrap_or_else(|| random.hash_one(0u64));
        Secret(core::array::from_fn(|i| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = fold(state ^ 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f ^ i as u64);
            if seed.is_some() { mixed } else { mixed ^ random.hash_one(i as u64 + 1) }
        }))
    }

    /// Hashes a key.
    #[inline(always)]
    pub fn hash<const K: usize>(&self, key: &[u64; K]) -> u64 {
        let [mut state, last, other, secrets @ ..] = self.0;
        for (pair, secret) in key.chunks(2).zip(secrets) {
            state = fold(state ^ pair[0], secret ^ pair.get(1).copied().unwrap_or(0));
        }
        fold(state ^ last, other)
    }

    /// Hashes a key of any number of words.
    pub fn hash_words(&self, key: &[u64]) -> u64 {
        let [mut state, last, other, secrets @ ..] = self.0;
        for (pair, at) in key.chunks(2).zip(0u64..) {
            // The same pair at another place is another one.
            let secret = secrets[at as usize % secrets.len()].rotate_left(at as u32 * 7);
            state = fold(state ^ pair[0], secret ^ pair.get(1).copied().unwrap_or(0)) ^ at;
        }
        fold(state ^ last, other)
    }
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-square over `cells` equally likely cells, as a multiple of its standard deviation from its mean.
    fn deviation(counts: &[u32], n: u32) -> f64 {
        let expected = f64::from(n) / counts.len() as f64;
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        let freedom = counts.len() as f64 - 1.0;
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    #[test]
    fn sequential_tuples_spread_over_buckets_and_tags() {
        for seed in 0..20 {
            let secret = Secret::new(Some(seed));
            let n = 1 << 17;
            let (mut low, mut high) = (vec![0u32; 1024], vec![0u32; 1024]);
            for i in 0..n {
                let key = [
                    0x0a00_0001_0400 + (u64::from(i) & 0xffff),
                    (0x0a64_0001_0050 + (u64::from(i) >> 16 << 16)) | 17 << 48,
                ];
                let hash = secret.hash(&key);
                low[hash as usize & 1023] += 1;
                high[(hash >> 54) as usize] += 1;
            }
            assert!(deviation(&low, n) < 6.0, "low bits, seed {seed}: {}", deviation(&low, n));
            assert!(deviation(&high, n) < 6.0, "high bits, seed {seed}: {}", deviation(&high, n));
        }
    }

    #[test]
    fn every_bit_of_a_key_matters() {
        let secret = Secret::new(Some(1));
        let key = [1u64, 2, 3, 4, 5];
        let hash = secret.hash(&key);
        for bit in 0..320 {
            let mut other = key;
            other[bit / 64] ^= 1 << (bit % 64);
            assert_ne!(secret.hash(&other), hash, "bit {bit}");
        }
    }

    #[test]
    fn secrets_differ_between_starts_and_repeat_with_a_seed() {
        assert_ne!(Secret::new(None).0, Secret::new(None).0);
        assert_eq!(Secret::new(Some(3)).0, Secret::new(Some(3)).0);
        assert_ne!(Secret::new(Some(3)).0, Secret::new(Some(4)).0);
    }
}
