//! What the steps of a look-up cost on a machine: what [`choose`](super) weighs structures by.
//!
//! In: nothing, or what [`calibrate`](super::calibrate) measured. Out: numbers. Never: a clock.
//!
//! Cycles are those of the time-stamp counter. A load *waits* when the next step needs what it brings (a chain, a tree); loads
//! are *overlapped* when a burst's packets do not wait for one another: then a look-up pays a share of the way to memory.

/// The costs. The default is of one server processor, so that a program is the same wherever it is compiled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A load from the first cache that waits, in cycles.
    pub load_l1: f32,
    /// One from the second cache.
    pub load_l2: f32,
    /// One from the last cache.
    pub load_l3: f32,
    /// One from memory.
    pub load_memory: f32,
    /// An overlapped load from the second cache.
    pub overlapped_l2: f32,
    /// One from the last cache.
    pub overlapped_l3: f32,
    /// One from memory.
    pub overlapped_memory: f32,
    /// A jump that was not foreseen.
    pub mispredict: f32,
    /// Hashing a word of a key.
    pub hash_word: f32,
    /// Masking and comparing a word of a key.
    pub compare_word: f32,
    /// Joining a word of two bit vectors.
    pub vector_word: f32,
    /// A call through a pointer, there and back.
    pub call: f32,
    /// Bytes of the first cache.
    pub l1_bytes: usize,
    /// Bytes of the second cache.
    pub l2_bytes: usize,
    /// Bytes of the last cache that one may count on.
    pub l3_bytes: usize,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs {
            load_l1: 5.0,
            load_l2: 15.0,
            load_l3: 50.0,
            load_memory: 250.0,
            overlapped_l2: 3.0,
            overlapped_l3: 8.0,
            overlapped_memory: 35.0,
            mispredict: 16.0,
            hash_word: 3.0,
            compare_word: 1.0,
            vector_word: 0.5,
            call: 3.0,
            l1_bytes: 32 << 10,
            l2_bytes: 512 << 10,
            l3_bytes: 16 << 20,
        }
    }
}

impl Costs {
    /// What one overlapped load from a structure of this many bytes costs: those that fit a cache come from it, the rest from
    /// where they lie.
    pub fn overlapped(&self, bytes: usize) -> f32 {
        let share = |cache: usize| (cache as f32 / bytes.max(1) as f32).min(1.0);
        let (l1, l2, l3) = (share(self.l1_bytes), share(self.l2_bytes), share(self.l3_bytes));
        l1 + (l2 - l1).max(0.0) * self.overlapped_l2
            + (l3 - l2.max(l1)).max(0.0) * self.overlapped_l3
            + (1.0 - l3.max(l2).max(l1)) * self.overlapped_memory
    }

    /// What one load that waits costs from a structure of this many bytes.
    pub fn waiting(&self, bytes: usize) -> f32 {
        let share = |cache: usize| (cache as f32 / bytes.max(1) as f32).min(1.0);
        let (l1, l2, l3) = (share(self.l1_bytes), share(self.l2_bytes), share(self.l3_bytes));
        l1 * self.load_l1
            + (l2 - l1).max(0.0) * self.load_l2
            + (l3 - l2.max(l1)).max(0.0) * self.load_l3
            + (1.0 - l3.max(l2).max(l1)) * self.load_memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_costs_what_its_level_does() {
        let costs = Costs::default();
        assert_eq!(costs.waiting(1 << 10), costs.load_l1);
        assert_eq!(costs.overlapped(1 << 10), 1.0);
        let mut last = (0.0, 0.0);
        for shift in 10..32 {
            let (waits, overlaps) = (costs.waiting(1 << shift), costs.overlapped(1 << shift));
            assert!(waits >= last.0 && overlaps >= last.1, "more bytes never cost less: {shift}");
            assert!(waits <= costs.load_memory && overlaps <= costs.overlapped_memory);
            last = (waits, overlaps);
        }
        assert!(last.0 > 0.95 * costs.load_memory);
    }
}
