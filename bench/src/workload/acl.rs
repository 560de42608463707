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
pub(crate) type Prefix = (u32, u32);
/// The first port and the last.
pub(crate) type Ports = (u16, u16);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Rule {
    pub prefixes: [Prefix; 2],
    pub protocol: u8,
    pub ports: [Ports; 2],
}

/// What the frames are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// They match rules, the first of which are hit most.
    Hits,
    /// Their fields are random.
    Random,
    /// Each field agrees with a rule's in its first bits, differs in the next and is random in the rest: what makes a cache of
    /// masks learn a new mask for each (Csikor et al.: Tuple Space Explosion, CoNEXT 2019).
    Attack,
}

/// So many rules, all different, and traffic for them.
pub fn make(count: u32, traffic: Traffic) -> Content {
    let mut random = Random::new(SEED);
    let rules = rules(count as usize, &mut random);
    let text = rules.iter().enumerate().map(|(i, rule)| spelled(rule, i, rules.len())).collect::<String>();
    let frames = match traffic {
        Traffic::Hits => hits(&rules, frame_count(count), &mut random),
        Traffic::Random => (0..frame_count(count)).map(|_| anything(&mut random)).collect(),
        Traffic::Attack => (0..frame_count(count)).map(|_| near_miss(&rules, &mut random)).collect(),
    };
    Content { rules: text + super::LAST, frames: vec![frames] }
}

pub(crate) fn rules(count: usize, random: &mut Random) -> Vec<Rule> {
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

/// A frame of random addresses, ports and protocol.
fn anything(random: &mut Random) -> Frame {
    let [addresses, ports] = [32, 16].map(|width| [(); 2].map(|()| random.below(1 << width)));
    let protocol = [6, 17][random.index(2)];
    frame_of(addresses, ports, protocol)
}

/// A frame that misses a rule in each field by a bit, or not at all.
fn near_miss(rules: &[Rule], random: &mut Random) -> Frame {
    let rule = rules[random.index(rules.len())];
    let addresses = rule.prefixes.map(|(address, length)| beside(u64::from(address), length, 32, random));
    let ports = rule.ports.map(|(low, high)| match low == high {
        true => beside(u64::from(low), 16, 16, random),
        false => random.below(1 << 16),
    });
    frame_of(addresses, ports, rule.protocol)
}

/// A number of `width` bits that agrees with the first bits of `value`, fewer than `length`, and not with the next; or with
/// all of `length`.
fn beside(value: u64, length: u32, width: u32, random: &mut Random) -> u64 {
    let agreeing = random.below(u64::from(length) + 1) as u32;
    let rest = width - agreeing;
    let other = if agreeing < length { value ^ 1 << (rest - 1) } else { value };
    let kept = if agreeing < length { rest - 1 } else { rest };
    other >> kept << kept | random.below(1 << kept)
}

fn frame_of(addresses: [u64; 2], ports: [u64; 2], protocol: u8) -> Frame {
    let mut frame = frames::plain();
    for side in 0..2 {
        put(&mut frame, 26 + 4 * side, 4, addresses[side]);
        put(&mut frame, 34 + 2 * side, 2, ports[side]);
    }
    frame[23] = protocol;
    frames::seal(&mut frame);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_agrees_as_far_as_it_should() {
        let mut random = Random::new(1);
        let mut agreed = [false; 25];
        for _ in 0..1000 {
            let found = beside(0x0a01_0200, 24, 32, &mut random);
            assert!(found <= u64::from(u32::MAX));
            agreed[((found ^ 0x0a01_0200) as u32).leading_zeros().min(24) as usize] = true;
        }
        assert_eq!(agreed, [true; 25]);
    }

    #[test]
    fn ranges_are_spelled_with_masks() {
        assert_eq!(masks("p", (0, 65_535)), [""]);
        assert_eq!(masks("p", (80, 80)), [",p=0x50/0xffff"]);
        assert_eq!(masks("p", (0, 1023)), [",p=0x0/0xfc00"]);
        assert_eq!(masks("p", (1024, 65_535)).len(), 6);
    }
}
