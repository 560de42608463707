//! Sets of values of one field, exact enough to say which are empty and which lie in which: bits that are fixed, and ranges.

use std::cmp::Ordering;

/// A set of values: those with `x & mask == value`, in one of the ranges if there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// How many bits.
    pub width: u8,
    /// The bits that are fixed.
    pub mask: u128,
    /// What they are.
    pub value: u128,
    /// Sorted and disjoint; none: all values.
    pub ranges: Vec<(u128, u128)>,
}

/// The greatest value of a width.
fn max(width: u8) -> u128 {
    u128::MAX >> (128 - u32::from(width.clamp(1, 128)))
}

impl Values {
    /// Values with fixed bits.
    pub fn masked(width: u8, value: u128, mask: u128) -> Values {
        Values { width, mask, value, ranges: vec![] }
    }

    /// Values in sorted, disjoint ranges; none if there are no ranges.
    pub fn ranges(width: u8, ranges: Vec<(u128, u128)>) -> Option<Values> {
        if ranges.is_empty() {
            return None;
        }
        Values { width, mask: 0, value: 0, ranges }.normal()
    }

    /// The one form of a set; none if it is empty.
    fn normal(mut self) -> Option<Values> {
        if self.ranges.is_empty() {
            return Some(self);
        }
        if self.mask != 0 {
            let free = max(self.width) & !self.mask;
            if free & free.wrapping_add(1) == 0 {
                // Fixed from the top down: a range.
                self.ranges = common(&self.ranges, &[(self.value, self.value | free)]);
                (self.mask, self.value) = (0, 0);
            } else {
                let (mask, value) = (self.mask, self.value);
                self.ranges.retain(|&(low, high)| {
                    first_at_least(low, mask, value, self.width).is_some_and(|first| first <= high)
                });
            }
        }
        match self.ranges[..] {
            [] => return None,
            [(low, high)] if self.mask == 0 => {
                let size = high - low;
                if size & size.wrapping_add(1) == 0 && low & size == 0 {
                    return Some(Values::masked(self.width, low, max(self.width) & !size));
                }
            }
            _ => {}
        }
        Some(self)
    }

    /// What is in both; none if nothing is.
    pub fn and(&self, other: &Values) -> Option<Values> {
        if (self.value ^ other.value) & self.mask & other.mask != 0 {
            return None;
        }
        let ranges = match (self.ranges.is_empty(), other.ranges.is_empty()) {
            (true, _) => other.ranges.clone(),
            (_, true) => self.ranges.clone(),
            _ => {
                let both = common(&self.ranges, &other.ranges);
                if both.is_empty() {
                    return None;
                }
                both
            }
        };
        let (mask, value) = (self.mask | other.mask, self.value | other.value);
        Values { width: self.width, mask, value, ranges }.normal()
    }

    /// Whether all of this is certainly in `other`.
    pub fn within(&self, other: &Values) -> bool {
        if other.mask & !self.mask != 0 || self.value & other.mask != other.value {
            // A single range may have fixed bits all the same.
            let Some((low, high)) = self.bounds() else { return false };
            let free = max(self.width) & !other.mask;
            let aligned = free & free.wrapping_add(1) == 0;
            if !aligned || low & !free != other.value || high & !free != other.value {
                return false;
            }
        }
        if other.ranges.is_empty() {
            return true;
        }
        let inside = |low: u128, high: u128| {
            let at = other.ranges.partition_point(|&(_, last)| last < low);
            other.ranges.get(at).is_some_and(|&(first, last)| first <= low && high <= last)
        };
        if self.ranges.is_empty() {
            let free = max(self.width) & !self.mask;
            return inside(self.value, self.value | free);
        }
        self.ranges.iter().all(|&(low, high)| inside(low, high))
    }

    /// The least and the greatest range bound.
    fn bounds(&self) -> Option<(u128, u128)> {
        Some((self.ranges.first()?.0, self.ranges.last()?.1))
    }

    /// Everything else, as sets that cover it.
    pub fn complement(&self) -> Vec<Values> {
        let top = max(self.width);
        let mut out = vec![];
        let mut fixed = self.mask;
        while fixed != 0 {
            let bit = 1_u128 << (127 - fixed.leading_zeros());
            fixed &= !bit;
            out.push(Values::masked(self.width, !self.value & bit, bit));
        }
        if self.ranges.is_empty() {
            return out;
        }
        let mut next = Some(0);
        let mut gaps = vec![];
        for &(low, high) in &self.ranges {
            if let Some(start) = next
                && start < low
            {
                gaps.push((start, low - 1));
            }
            next = (high < top).then(|| high + 1);
        }
        gaps.extend(next.map(|start| (start, top)));
        out.extend(Values::ranges(self.width, gaps));
        out
    }

    /// How many numbers describe it.
    pub fn size(&self) -> usize {
        self.ranges.len()
    }
}

/// Ranges that are in both lists.
fn common(a: &[(u128, u128)], b: &[(u128, u128)]) -> Vec<(u128, u128)> {
    let (mut i, mut j) = (0, 0);
    let mut out = vec![];
    while i < a.len() && j < b.len() {
        let (low, high) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if low <= high {
            out.push((low, high));
        }
        match a[i].1.cmp(&b[j].1) {
            Ordering::Less => i += 1,
            _ => j += 1,
        }
    }
    out
}

/// The least value from `low` on with `x & mask == value`.
fn first_at_least(low: u128, mask: u128, value: u128, width: u8) -> Option<u128> {
    if low & mask == value {
        return Some(low);
    }
    // Keep the bits above one that is 0 in `low` and may be 1, set it, and make all below as small as they can be.
    for i in 0..width {
        let bit = 1_u128 << i;
        let above = !(bit | (bit - 1));
        let may_set = low & bit == 0 && (mask & bit == 0 || value & bit != 0);
        if may_set && low & above & mask == value & above {
            return Some(low & above | bit | value & (bit - 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sets of 6 bits, so that all values can be tried.
    fn values() -> impl Strategy<Value = Values> {
        let masked = (0_u128..64, 0_u128..64).prop_map(|(value, mask)| Values::masked(6, value & mask, mask));
        let ranges = proptest::collection::vec(0_u128..64, 2..6).prop_filter_map("empty", |mut ends| {
            ends.sort_unstable();
            ends.dedup();
            let pairs = ends.chunks_exact(2).map(|pair| (pair[0], pair[1]));
            Values::ranges(6, pairs.collect())
        });
        let both = (masked.clone(), ranges.clone()).prop_filter_map("empty", |(a, b)| a.and(&b));
        prop_oneof![masked, ranges, both]
    }

    fn list(values: &Values) -> Vec<u128> {
        let inside = |x: &u128| {
            let ranged = values.ranges.iter().any(|(low, high)| (low..=high).contains(&x));
            x & values.mask == values.value && (values.ranges.is_empty() || ranged)
        };
        (0..64).filter(inside).collect()
    }

    proptest! {
        #[test]
        fn sets_are_what_their_lists_are(a in values(), b in values()) {
            let (in_a, in_b) = (list(&a), list(&b));
            let both: Vec<u128> = in_a.iter().copied().filter(|x| in_b.contains(x)).collect();
            prop_assert_eq!(a.and(&b).map_or(vec![], |c| list(&c)), both.clone());
            prop_assert!(!a.within(&b) || both == in_a);
            let outside: Vec<u128> = (0..64).filter(|x| !in_a.contains(x)).collect();
            let complement = a.complement();
            let covered: Vec<u128> = (0..64).filter(|x| complement.iter().any(|c| list(c).contains(x))).collect();
            prop_assert_eq!(covered, outside);
        }
    }
}
