//! A hash that is the same everywhere and always: names of cached files, and the check of a built program.

/// FNV-1a over the parts (<http://www.isthe.com/chongo/tech/comp/fnv/>), 128 bits; where one part ends matters.
pub fn hash(parts: &[&[u8]]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut hash = BASIS;
    let mut byte = |b: u8| hash = (hash ^ u128::from(b)).wrapping_mul(PRIME);
    for part in parts {
        part.iter().copied().for_each(&mut byte);
        if parts.len() > 1 {
            (part.len() as u64).to_le_bytes().into_iter().for_each(&mut byte);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn hashes_are_those_of_fnv() {
        assert_eq!(hash(&[b""]), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(hash(&[b"a"]), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_ne!(hash(&[b"ab", b"c"]), hash(&[b"a", b"bc"]));
    }
}
