//! The Internet checksum (RFC 1071), for verifying: wide, in native byte order, over any slice.
//!
//! A ones' complement sum is right when it is all ones, and it is so in either byte order, so nothing is swapped: constants
//! that go into a pseudo header are brought to the order of the frame instead.

/// A sum that still has to be folded: equal to that of the bytes modulo 2^16 - 1, and 0 only if they all are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds a word; what is carried out of the top comes in at the bottom.
    #[inline(always)]
    fn word(self, word: u64) -> Sum {
        let (sum, carry) = self.0.overflowing_add(word);
        Sum(sum + u64::from(carry))
    }

    /// Adds a number, as the frame would hold it.
    #[inline(always)]
    pub fn number(self, value: u32) -> Sum {
        self.word(u64::from(value.to_be()))
    }

    /// Adds eight bytes.
    #[inline(always)]
    pub fn eight(self, bytes: [u8; 8]) -> Sum {
        self.word(u64::from_ne_bytes(bytes))
    }

    /// Adds four bytes.
    #[inline(always)]
    pub fn four(self, bytes: [u8; 4]) -> Sum {
        self.word(u64::from(u32::from_ne_bytes(bytes)))
    }

    /// Adds a slice, which begins at an even place.
    #[inline(always)]
    pub fn slice(self, bytes: &[u8]) -> Sum {
        if bytes.len() >= 128 {
            return self.long(bytes);
        }
        let (words, tail) = bytes.as_chunks::<8>();
        let sum = words.iter().fold(self, |sum, word| sum.eight(*word));
        match bytes.last_chunk::<8>() {
            _ if tail.is_empty() => sum,
            // The last eight bytes, without those that were summed already.
            Some(last) => sum.word((u64::from_le_bytes(*last) >> (64 - 8 * tail.len())).to_le()),
            None => sum.short(tail),
        }
    }

    #[inline(never)]
    fn long(self, bytes: &[u8]) -> Sum {
        let (wide, rest) = bytes.split_at(bytes.len() & !31);
        self.word(wide_sum(wide)).slice(rest)
    }

    /// Adds fewer than eight bytes.
    #[cold]
    fn short(self, bytes: &[u8]) -> Sum {
        let word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        self.word(word.to_le())
    }

    /// Whether the checksum that is part of the sum is right.
    #[inline(always)]
    pub fn is_right(self) -> bool {
        self.fold() == 0xffff
    }

    /// The folded sum, in native order.
    #[inline(always)]
    pub fn fold(self) -> u16 {
        // Adding the halves the other way round carries what comes out of the top back in.
        let sum = (self.0.wrapping_add(self.0.rotate_left(32)) >> 32) as u32;
        (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16
    }
}

/// Sums whole blocks of 32 bytes.
fn wide_sum(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2")]
        fn wider_sum(bytes: &[u8]) -> u64 {
            sum_lanes(bytes)
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it.
            return unsafe { wider_sum(bytes) };
        }
    }
    sum_lanes(bytes)
}

/// Independent lanes, which the compiler turns into vectors.
#[inline(always)]
fn sum_lanes(bytes: &[u8]) -> u64 {
    let mut lanes = [0u64; 8];
    for block in bytes.as_chunks::<32>().0 {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<4>().0) {
            *lane += u64::from(u32::from_ne_bytes(*word));
        }
    }
    lanes.iter().sum()
}

/// CRC32c of SCTP (RFC 9260, appendix A), over a packet whose own checksum field counts as zero.
#[cold]
pub fn crc32c_is_right(packet: &[u8]) -> bool {
    let Some((head, rest)) = packet.split_first_chunk::<12>() else {
        return false;
    };
    let [.., a, b, c, d] = *head;
    let crc = head[..8]
        .iter()
        .chain(&[0; 4])
        .chain(rest)
        .fold(!0u32, |crc, &byte| CRC[usize::from(crc as u8 ^ byte)] ^ crc >> 8);
    !crc == u32::from_le_bytes([a, b, c, d])
}

const CRC: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { 0x82f6_3b78 ^ crc >> 1 } else { crc >> 1 };
            bit += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        sum as u16
    }

    #[test]
    fn every_length_equals_the_slow_sum() {
        let mut state = 1u32;
        let bytes: Vec<u8> = (0..2000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        for len in 0..bytes.len() {
            let sum = Sum::default().slice(&bytes[..len]);
            assert_eq!(sum.fold(), slow(&bytes[..len]).to_be(), "{len} bytes");
            if len % 2 == 0 {
                let with_checksum = [&bytes[..len], &(!sum.fold()).to_ne_bytes()].concat();
                assert!(Sum::default().slice(&with_checksum).is_right(), "{len} bytes");
            }
        }
        assert_eq!(Sum::default().slice(&[0xff; 1999]).fold(), slow(&[0xff; 1999]).to_be());
    }

    #[test]
    fn numbers_count_as_the_frame_would_hold_them() {
        let sum = Sum::default().number(0x0001_0203).four([4, 5, 6, 7]).eight([8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(sum.fold(), slow(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]).to_be());
    }

    #[test]
    fn crc32c_of_the_rfc() {
        assert_eq!(!b"123456789".iter().fold(!0u32, |crc, &b| CRC[usize::from(crc as u8 ^ b)] ^ crc >> 8), 0xe306_9283);
        assert!(!crc32c_is_right(&[0; 11]));
    }
}
