//! What TCP's options tell a tracker: window scaling, and selective acknowledgements.
//!
//! In go the bytes of options, out come an offer or a sequence number. Options that lie about their length end the reading.

use super::tcp::{Peer, at_least};

/// What an end said when it opened: a shift in the low four bits, and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Scale(pub u8);

impl Scale {
    const SHIFT: u8 = 0x0f;
    /// It allows selective acknowledgements.
    pub const SACK: u8 = 0x20;
    /// Its opening was not seen.
    pub const UNSEEN: u8 = 0x40;
    /// It offered to scale.
    pub const OFFERED: u8 = 0x80;
    /// The opening was not seen: everything is assumed that it could have said (T3).
    pub const UNKNOWN: Scale = Scale(Scale::UNSEEN | Scale::SACK | Scale::MOST);
    /// The largest shift there is (RFC 7323).
    const MOST: u8 = 14;

    /// Whether a flag is set.
    #[inline(always)]
    pub fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    /// The shift it offered; once both ends have sent, the shift in use.
    pub fn shift(self) -> u32 {
        u32::from(self.0 & Scale::SHIFT)
    }
}

/// Whether options are a time stamp behind two fillers, as in most segments with options.
#[inline(always)]
pub fn say_nothing(options: &[u8]) -> bool {
    options.len() == 12 && options.starts_with(&[1, 1, 8, 10])
}

/// Kinds of options.
mod option {
    pub const END: u8 = 0;
    pub const NOTHING: u8 = 1;
    pub const SCALE: u8 = 3;
    pub const SACK_PERMITTED: u8 = 4;
    pub const SACK: u8 = 5;
}

/// Options with their content. A length below 2 counts as 2 (T7), so that it ends.
fn options(mut rest: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    core::iter::from_fn(move || {
        loop {
            match *rest.first()? {
                option::END => return None,
                option::NOTHING => rest = &rest[1..],
                kind => {
                    let len = usize::from(*rest.get(1)?).max(2);
                    let content = rest.get(2..len)?;
                    rest = &rest[len..];
                    return Some((kind, content));
                }
            }
        }
    })
}

/// What a SYN's options offer.
pub fn offered(bytes: &[u8]) -> Scale {
    options(bytes).fold(Scale::default(), |offer, found| match found {
        (option::SCALE, &[shift]) => Scale(offer.0 & !Scale::SHIFT | Scale::OFFERED | shift.min(Scale::MOST)),
        (option::SACK_PERMITTED, &[]) => Scale(offer.0 | Scale::SACK),
        _ => offer,
    })
}

/// The highest number that a segment acknowledges, selectively or not, of what the receiver has sent.
pub fn right_edge(ack: u32, dst: &Peer, bytes: &[u8]) -> u32 {
    if !dst.scale.has(Scale::SACK) {
        return ack;
    }
    let mut edge = ack;
    for (_, blocks) in options(bytes).filter(|&(kind, _)| kind == option::SACK) {
        for [.., a, b, c, d] in blocks.as_chunks::<8>().0 {
            let right = u32::from_be_bytes([*a, *b, *c, *d]);
            if at_least(right, edge) && at_least(dst.lo, right) {
                edge = right;
            }
        }
    }
    edge
}
