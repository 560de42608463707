//! Rules over the five-tuple in ClassBench's manner: nested prefixes, port ranges (spelled as masks, as `.flows` has them),
//! two protocols; earlier rules are hit more often.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use super::{Content, SEED, frame_count};
use crate::frames::{self, Frame, put};
use crate::random::{Random, Weights};

/// Lengths of prefixes at the outermost.
const LENGTHS: [u32; 9] = [8, 12, 16, 16, 20, 24, 24, 28, 32];
/// Ports of services; besides, any port above the well-known.
const SERVICES: [u16; 8] = [22, 53, 80, 123, 443, 1521, 3306, 8080];
/// Ranges of ports, and the shares of these and of single ports.
const RANGES: [(u16, u16); 3] = [(0, 65_535), (0, 1023), (1024, 65_535)];
const SHARES: [f64; 4] = [0.35, 0.05, 0.1, 0.5];

/// An address and the length of a prefix.
type Prefix = (u32, u32);
/// The first port and the last.
type Ports = (u16, u16);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Rule {
    prefixes: [Prefix; 2],
    protocol: u8,
    ports: [Ports; 2],
}

/// So many rules, all different.
pub fn make(count: u32) -> Content {
    let mut random = Random::new(SEED);
    let rules = rules(count as usize, &mut random);
    let text = rules.iter().enumerate().map(|(i, rule)| spelled(rule, i, rules.len())).collect::<String>();
    let frames = hits(&rules, frame_count(count), &mut random);
    Content { rules: text + super::LAST, frames: vec![frames] }
}

fn rules(count: usize, random: &mut Random) -> Vec<Rule> {
    let pool = pool(count, random);
    let shares = Weights::shares(SHARES);
    let (mut seen, mut rules) = (HashSet::new(), Vec::with_capacity(count));
    while rules.len() < count {
        let prefixes = [(); 2].map(|()| pool[random.index(pool.len())]);
        let protocol = [6, 17][random.index(2)];
        let ports = [(); 2].map(|()| match RANGES.get(random.weighted(&shares)) {
            Some(range) => *range,
            None => {
                let other = random.within(1024, 65_535) as u16;
                let port = SERVICES.get(random.index(SERVICES.len() + 1)).copied().unwrap_or(other);
                (port, port)
            }
        });
        let rule = Rule { prefixes, protocol, ports };
        if seen.insert(rule) {
            rules.push(rule);
        }
    }
    rules
}

/// Prefixes to choose from: some, two inside each of them, and all addresses.
fn pool(count: usize, random: &mut Random) -> Vec<Prefix> {
    let mask = |length: u32| u32::MAX << (32 - length);
    let lengths: Vec<u32> = (0..(count / 10).max(20)).map(|_| LENGTHS[random.index(LENGTHS.len())]).collect();
    let mut pool: Vec<Prefix> = Vec::with_capacity(3 * lengths.len() + 1);
    pool.extend(lengths.iter().map(|length| (random.below(1 << 32) as u32 & mask(*length), *length)));
    for i in 0..lengths.len() {
        let (address, length) = pool[i];
        for longer in [(length + 4).min(32), (length + 8).min(32)] {
            let inside = random.below(1 << (32 - length)) as u32;
            pool.push((address | inside & mask(longer), longer));
        }
    }
    pool.push((0, 0));
    pool
}

/// The lines of rule `i` of `count`: one for each pair of masks that its ports are spelled with.
fn spelled(rule: &Rule, i: usize, count: usize) -> String {
    let priority = match count {
        0..=64_900 => (count + 100).min(65_000) - i,
        _ => 65_000 - i * 64_900 / count,
    };
    let protocol = if rule.protocol == 6 { "tcp" } else { "udp" };
    let [from, to] = rule.prefixes.map(|(address, length)| format!("{}/{length}", Ipv4Addr::from(address)));
    let action = if i.is_multiple_of(3) { "drop" } else { "output:2" };
    let [from_ports, to_ports] =
        [("tp_src", rule.ports[0]), ("tp_dst", rule.ports[1])].map(|(name, ports)| masks(name, ports));
    let mut lines = String::new();
    for from_port in &from_ports {
        for to_port in &to_ports {
            lines += &format!(
                "priority={priority},{protocol},nw_src={from},nw_dst={to}{from_port}{to_port} actions={action}\n"
            );
        }
    }
    lines
}

/// A range of ports as conditions on bits.
fn masks(name: &str, (low, high): Ports) -> Vec<String> {
    if (low, high) == (0, u16::MAX) {
        return vec![String::new()];
    }
    let (mut low, high) = (u32::from(low), u32::from(high));
    let mut masks = Vec::new();
    while low <= high {
        let mut width = if low == 0 { 0x1_0000 } else { low & low.wrapping_neg() };
        while low + width - 1 > high {
            width >>= 1;
        }
        masks.push(format!(",{name}={low:#x}/{:#x}", 0x1_0000 - width));
        low += width;
    }
    masks
}

/// Frames that match the rules, of which the first are hit most (a Pareto distribution).
fn hits(rules: &[Rule], count: usize, random: &mut Random) -> Vec<Frame> {
    let scale = rules.len() as f64;
    let hit: Vec<&Rule> =
        (0..count).map(|_| &rules[((random.pareto() * scale / 50.0) as usize).min(rules.len() - 1)]).collect();
    let mut frames = vec![frames::plain(); count];
    for (side, at) in [26, 30].into_iter().enumerate() {
        for (frame, rule) in frames.iter_mut().zip(&hit) {
            let (address, length) = rule.prefixes[side];
            put(frame, at, 4, u64::from(address) | random.below(1 << 32) & (0xffff_ffff >> length));
        }
    }
    for (side, at) in [34, 36].into_iter().enumerate() {
        for (frame, rule) in frames.iter_mut().zip(&hit) {
            let (low, high) = rule.ports[side];
            let ports = u64::from(high - low) + 1;
            put(frame, at, 2, u64::from(low) + random.below(1 << 32) % ports);
        }
    }
    for (frame, rule) in frames.iter_mut().zip(&hit) {
        frame[23] = rule.protocol;
        frames::seal(frame);
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_spelled_with_masks() {
        assert_eq!(masks("p", (0, 65_535)), [""]);
        assert_eq!(masks("p", (80, 80)), [",p=0x50/0xffff"]);
        assert_eq!(masks("p", (0, 1023)), [",p=0x0/0xfc00"]);
        assert_eq!(masks("p", (1024, 65_535)).len(), 6);
    }
}
