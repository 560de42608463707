//! Longer frames, of the same headers.
//!
//! In: a frame of 60 bytes. Out: one as long as a size says, filled with zeros, whose lengths and checksums are right. Never: a
//! fragment.

use std::borrow::Cow;

use crate::frames::{self, Frame};

/// How long frames are made; sizes are said with the four bytes of FCS, which frames here do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 64 bytes.
    Least,
    /// 512 bytes.
    Middle,
    /// 1,518 bytes.
    Most,
    /// Seven of 64, four of 594 and one of 1,518 bytes: the simple mix of the Internet.
    Imix,
}

/// The lengths of a mix's frames without FCS, in an order that spreads them.
const MIX: [usize; 12] = [60, 590, 60, 60, 590, 60, 1514, 60, 590, 60, 590, 60];

impl Size {
    /// The size that stands behind `@`.
    pub fn named(name: &str) -> Option<Size> {
        [Size::Middle, Size::Most, Size::Imix].into_iter().find(|size| size.suffix().strip_prefix('@') == Some(name))
    }

    /// What stands behind a workload's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Size::Least => "",
            Size::Middle => "@512",
            Size::Most => "@1518",
            Size::Imix => "@imix",
        }
    }

    /// Makes frame number `i` as long as it shall be.
    pub fn stretch(self, frame: &Frame, i: usize) -> Cow<'_, [u8]> {
        let length = match self {
            Size::Least => return Cow::Borrowed(frame),
            Size::Middle => 508,
            Size::Most => 1514,
            Size::Imix => MIX[i % MIX.len()],
        };
        Cow::Owned(frames::stretch(frame, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_its_shares() {
        let count = |length| MIX.iter().filter(|found| **found == length).count();
        assert_eq!([60, 590, 1514].map(count), [7, 4, 1]);
        let frame = frames::plain();
        assert_eq!((0..24).map(|i| Size::Imix.stretch(&frame, i).len()).sum::<usize>(), 2 * MIX.iter().sum::<usize>());
        assert_eq!(*Size::Least.stretch(&frame, 3), frame[..]);
        assert_eq!(Size::named("1518"), Some(Size::Most));
        assert_eq!(Size::named(""), None);
    }
}
