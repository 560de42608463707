//! `hash(…)`: 32 bits that depend on all words, the same on every engine and in every run. Keyless, so not against an
//! adversary. Compiled code spells these steps out; the constants are digits of pi and of the root of 2, made odd.

/// What a hash begins with.
pub const START: u64 = 0x243f_6a88_85a3_08d3;
/// Spreads a word.
pub const SPREAD: u64 = 0x6a09_e667_f3bc_c909;

/// Takes one more word.
#[inline(always)]
pub const fn step(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(SPREAD);
    mixed ^ (mixed >> 32)
}

/// The hash of some words.
pub fn hash(words: &[u64]) -> u32 {
    finish(words.iter().fold(START, |hash, word| step(hash, *word)))
}

/// The upper bits of one more step.
const fn finish(hash: u64) -> u32 {
    (hash.wrapping_mul(SPREAD) >> 32) as u32
}

/// Another hash from a hash.
pub const fn again(hash: u32) -> u32 {
    finish(step(START, hash as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_every_word_counts() {
        let words = [7, 0x0a00_0001, u64::MAX];
        let whole = hash(&words);
        for k in 0..words.len() {
            for bit in 0..64 {
                let mut other = words;
                other[k] ^= 1 << bit;
                assert_ne!(hash(&other), whole, "word {k}, bit {bit}");
            }
        }
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_ne!(hash(&[0]), hash(&[0, 0]));
    }

    #[test]
    fn neighbours_are_spread_evenly() {
        let mut counts = [0u32; 16];
        for n in 0..16_000u64 {
            counts[(hash(&[0x0a00_0000 + n, 80]) >> 28) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        let mut counts = [0u32; 16];
        for n in 0..16_000u32 {
            counts[(again(n) >> 28) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
