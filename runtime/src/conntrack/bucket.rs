//! Buckets: eight places in one cache line, each a tag of 16 bits and the number of an entry.
//!
//! A look-up compares all eight tags at once and goes on to the entries whose tag matches; their keys decide. Tag 0 is an
//! empty place. A bucket that overflows has a next one. Only workers write, under the bucket's lock if there are several;
//! readers never lock. A reader that finds nothing must make sure, by [`Bucket::version`], that nothing was moved under it.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, spin_loop};

use super::memory::AllZero;

/// Places in a bucket.
pub const PLACES: usize = 8;

/// Eight places.
#[repr(C, align(64))]
pub struct Bucket {
    tags: [AtomicU64; 2],
    entries: [AtomicU32; PLACES],
    /// Odd while locked; rises by two with every locked section.
    version: AtomicU32,
    /// One more than the number of the overflow bucket that goes on with this one, or 0.
    next: AtomicU32,
}

const _: () = assert!(size_of::<Bucket>() == 64);

// SAFETY: made of atomic integers only.
unsafe impl AllZero for Bucket {}

/// The tag of a hash.
#[inline(always)]
pub fn tag(hash: u64) -> u16 {
    (hash >> 48) as u16 | 1
}

/// Which of eight lanes of 16 bits equal `tag`: bit `i` for lane `i`.
#[inline(always)]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn equal_lanes(lanes: [u64; 2], tag: u16) -> u32 {
    use core::arch::x86_64::*;

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal([low, high]: [u64; 2], tag: u16) -> u32 {
        let lanes = _mm_set_epi64x(high as i64, low as i64);
        let equal = _mm_cmpeq_epi16(lanes, _mm_set1_epi16(tag as i16));
        _mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())) as u32
    }
    // SAFETY: SSE2 is part of x86-64.
    unsafe { equal(lanes, tag) }
}

/// Which of eight lanes of 16 bits equal `tag`: bit `i` for lane `i`.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn equal_lanes(lanes: [u64; 2], tag: u16) -> u32 {
    (0..PLACES).filter(|lane| (lanes[lane / 4] >> (lane % 4 * 16)) as u16 == tag).fold(0, |set, lane| set | 1 << lane)
}

impl Bucket {
    #[inline(always)]
    fn places(&self, tag: u16) -> u32 {
        equal_lanes(self.tags.each_ref().map(|tags| tags.load(Ordering::Acquire)), tag)
    }

    /// The first entry with this tag, without looking at more.
    #[inline(always)]
    pub fn first(&self, tag: u16) -> Option<u32> {
        let places = self.places(tag);
        let entry = self.entries[places.trailing_zeros() as usize % PLACES].load(Ordering::Relaxed);
        (places != 0).then_some(entry)
    }

    /// The first entry with this tag that `wanted` accepts.
    #[inline(always)]
    pub fn find(&self, tag: u16, mut wanted: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut places = self.places(tag);
        while places != 0 {
            let entry = self.entries[places.trailing_zeros() as usize % PLACES].load(Ordering::Relaxed);
            if wanted(entry) {
                return Some(entry);
            }
            places &= places - 1;
        }
        None
    }

    /// What is in a place.
    #[inline]
    pub fn get(&self, place: usize) -> Option<(u16, u32)> {
        let tag = (self.tags[place / 4].load(Ordering::Acquire) >> (place % 4 * 16)) as u16;
        (tag != 0).then(|| (tag, self.entries[place].load(Ordering::Relaxed)))
    }

    /// An empty place.
    #[inline]
    pub fn empty(&self) -> Option<usize> {
        let places = self.places(0);
        (places != 0).then_some(places.trailing_zeros() as usize)
    }

    /// Fills a place.
    pub fn put(&self, place: usize, tag: u16, entry: u32) {
        self.entries[place].store(entry, Ordering::Relaxed);
        self.set_tag(place, tag);
    }

    /// Empties a place.
    pub fn clear(&self, place: usize) {
        self.set_tag(place, 0);
    }

    fn set_tag(&self, place: usize, tag: u16) {
        let shift = place % 4 * 16;
        let lanes = self.tags[place / 4].load(Ordering::Relaxed) & !(0xffff << shift) | u64::from(tag) << shift;
        self.tags[place / 4].store(lanes, Ordering::Release);
    }

    /// Number of the overflow bucket that goes on with this one.
    #[inline(always)]
    pub fn next(&self) -> Option<u32> {
        self.next.load(Ordering::Acquire).checked_sub(1)
    }

    /// Sets the overflow bucket that goes on with this one.
    pub fn set_next(&self, next: Option<u32>) {
        self.next.store(next.map_or(0, |number| number + 1), Ordering::Release);
    }

    /// The version, to be compared after reading.
    #[inline(always)]
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::Acquire)
    }

    /// Whether nothing was moved since `version`.
    #[inline(always)]
    pub fn is_unmoved(&self, version: u32) -> bool {
        fence(Ordering::Acquire);
        version & 1 == 0 && self.version.load(Ordering::Relaxed) == version
    }

    /// Locks the bucket and what goes on with it.
    pub fn lock(&self) {
        loop {
            let version = self.version.load(Ordering::Relaxed) & !1;
            if self.version.compare_exchange_weak(version, version | 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                fence(Ordering::Release);
                return;
            }
            spin_loop();
        }
    }

    /// Unlocks it.
    pub fn unlock(&self) {
        self.version.store(self.version.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conntrack::memory::Zeroed;

    #[test]
    fn lanes_are_compared_exactly() {
        for lane in 0..8 {
            for tag in [1u16, 2, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let others = [tag.wrapping_add(1), tag ^ 0x8000, 0, tag.wrapping_sub(1)];
                let mut lanes = [0; 2];
                for i in 0..8 {
                    lanes[i / 4] |= u64::from(if i == lane { tag } else { others[i % 4] }) << (i % 4 * 16);
                }
                assert_eq!(equal_lanes(lanes, tag), 1 << lane, "{tag:#x} in lane {lane}");
            }
        }
    }

    #[test]
    fn places_fill_and_empty() {
        let buckets: Zeroed<Bucket> = Zeroed::new(1);
        let bucket = &buckets[0];
        for n in 0..8 {
            let place = bucket.empty().unwrap();
            bucket.put(place, 5 + (n as u16 & 1), n);
        }
        assert_eq!(bucket.empty(), None);
        let mut seen = Vec::new();
        assert_eq!(
            bucket.find(6, |entry| {
                seen.push(entry);
                false
            }),
            None
        );
        assert_eq!(seen, [1, 3, 5, 7]);
        bucket.clear(3);
        assert_eq!((bucket.empty(), bucket.get(3), bucket.get(4)), (Some(3), None, Some((5, 4))));
        assert_eq!(bucket.find(6, |entry| entry > 1), Some(5));
        assert_eq!((bucket.first(6), bucket.first(5), bucket.first(7)), (Some(1), Some(0), None));
    }

    #[test]
    fn a_locked_section_shows_in_the_version() {
        let buckets: Zeroed<Bucket> = Zeroed::new(1);
        let version = buckets[0].version();
        assert!(buckets[0].is_unmoved(version));
        buckets[0].lock();
        assert!(!buckets[0].is_unmoved(version) && !buckets[0].is_unmoved(buckets[0].version()));
        buckets[0].unlock();
        assert!(!buckets[0].is_unmoved(version) && buckets[0].is_unmoved(buckets[0].version()));
    }
}
