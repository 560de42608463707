//! IPv4 prefixes with the Internet's mix of lengths, all asked for equally often.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use super::{Content, SEED, frame_count};
use crate::frames::{self, put};
use crate::random::{Random, Weights};

/// Lengths of prefixes, and their shares.
const LENGTHS: [(u32, f64); 10] = [
    (8, 0.005),
    (12, 0.01),
    (16, 0.06),
    (18, 0.05),
    (20, 0.1),
    (22, 0.13),
    (23, 0.1),
    (24, 0.495),
    (28, 0.03),
    (32, 0.02),
];

/// So many prefixes, less those that come twice.
pub fn make(prefixes: u32) -> Content {
    let mut random = Random::new(SEED);
    let routes = routes(prefixes, &mut random);
    let rules = routes.iter().map(|(address, length)| {
        let (prefix, hop) = (Ipv4Addr::from(*address), address & 0xff);
        format!(
            "table=0,priority={length},ip,nw_dst={prefix}/{length} \
             actions=dec_ttl,set_field:02:00:00:00:01:{hop:02x}->eth_dst,output:2\n"
        )
    });
    let rules = rules.collect::<String>() + super::LAST;
    let hits: Vec<usize> = (0..frame_count(prefixes)).map(|_| random.index(routes.len())).collect();
    let frames = hits.into_iter().map(|hit| {
        let (address, length) = routes[hit];
        let host = random.below(1 << 32) & (0xffff_ffff >> length);
        let mut frame = frames::plain();
        put(&mut frame, 30, 4, u64::from(address) | host);
        frames::seal(&mut frame);
        frame
    });
    Content { rules, frames: vec![frames.collect()] }
}

/// Addresses and lengths of so many prefixes, less those that come twice.
pub(crate) fn routes(prefixes: u32, random: &mut Random) -> Vec<(u32, u32)> {
    let weights = Weights::shares(LENGTHS.map(|length| length.1));
    let lengths: Vec<u32> = (0..prefixes).map(|_| LENGTHS[random.weighted(&weights)].0).collect();
    let mut seen = HashSet::new();
    let mut routes: Vec<(u32, u32)> = Vec::with_capacity(lengths.len());
    for length in lengths {
        let address = random.within(0x0100_0000, 0xdf00_0000) as u32 & (u32::MAX << (32 - length));
        if seen.insert((address, length)) {
            routes.push((address, length));
        }
    }
    routes
}
