//! A table of Ethernet addresses, all asked for equally often.

use super::{Content, SEED, frame_count};
use crate::frames::{self, put};
use crate::random::Random;

/// So many addresses.
pub fn make(entries: u32) -> Content {
    let mut random = Random::new(SEED);
    let macs = addresses(entries, &mut random);
    let frames = (0..frame_count(entries)).map(|_| {
        let mut frame = frames::plain();
        put(&mut frame, 1, 5, macs[random.index(macs.len())]);
        frame
    });
    let frames = vec![frames.collect()];
    Content { rules: rules(&macs), frames }
}

/// A rule for each address.
pub(super) fn rules(macs: &[u64]) -> String {
    let rules = macs.iter().map(|mac| {
        let [_, _, _, a, b, c, d, e] = mac.to_be_bytes();
        format!("table=0,priority=10,dl_dst=02:{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x} actions=output:2\n")
    });
    rules.collect::<String>() + super::LAST
}

/// So many addresses, all different, without their first byte.
pub(crate) fn addresses(count: u32, random: &mut Random) -> Vec<u64> {
    let mut macs: Vec<u64> = (0..count + count / 8).map(|_| random.below(1 << 40)).collect();
    macs.sort_unstable();
    macs.dedup();
    random.shuffle(&mut macs);
    macs.truncate(count as usize);
    macs
}
