//! Ports: rules that spell a range out as masks become one entry with the range.
//!
//! OpenFlow has no ranges: `1024..=65535` is written as six rules, one for each power of two. Looked up as they are they make
//! tables several times as long. Here consecutive rules that do the same and differ in the masks of ports only are put
//! together where these are all combinations of two ranges; each keeps its counter: which of the rules a packet takes follows
//! from the logarithms of its ports.
//!
//! In: rules spelled out. Out: fewer, and for each that stands for several how its packets are told apart. Never: a change of
//! what packets do, or of which rule they are counted for.

use super::entries::{Spelled, Tests, Want};
use crate::field::Field;
use crate::hir::{Place, Read, Space};

/// A rule that stands for several, numbered one behind the other: that of a packet is so many behind the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Several {
    /// For the source port and the destination port.
    pub of: [Steps; 2],
}

/// What the logarithm of a port says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Steps {
    /// That of the least port.
    pub least: u8,
    /// Rules from one power of two to the next; 0 where the range is one mask.
    pub stride: u16,
}

impl Several {
    /// As a word: the least logarithms in 8 bits each, then the strides in 16 each.
    pub fn word(&self) -> u64 {
        let [source, destination] = self.of;
        u64::from(source.least)
            | u64::from(destination.least) << 8
            | u64::from(source.stride) << 16
            | u64::from(destination.stride) << 32
    }
}

const PORTS: [Field; 2] = [Field::TcpSrc, Field::TcpDst];

/// Puts rules together, of those that do the same. For each rule that stands for several: its number, and how they are told
/// apart.
pub(super) fn merge(spelled: &mut Spelled, same: impl Fn(usize, usize) -> bool) -> Vec<(usize, Several)> {
    let (mut merged, mut several) = (Spelled::new(), Vec::new());
    let mut at = 0;
    while at < spelled.len() {
        let run = if starts_range(&spelled[at].1) { run(&spelled[at..], &same) } else { 1 };
        let end = (2..=run).rev().find_map(|n| Some((n, grid(&spelled[at..at + n])?)));
        let (n, tests, apart) = match end {
            Some((n, (tests, apart))) => (n, vec![tests], Some(apart)),
            None => (1, spelled[at].1.clone(), None),
        };
        let first = spelled[at].0;
        merged.push((first, tests));
        several.extend(apart.map(|apart| (first, apart)));
        at += n;
    }
    *spelled = merged;
    several
}

/// Whether some port of a rule is a mask that a range of several may start with.
fn starts_range(alternatives: &[Tests]) -> bool {
    alternatives.iter().flatten().any(|(read, want)| port(read).is_some() && power(want).is_some())
}

/// The logarithm of a power of two, of a mask for all from there to the next.
fn power(want: &Want) -> Option<u8> {
    match want {
        Want::Masked { value, mask } if value.is_power_of_two() && *mask == 0xffff & !(value - 1) => {
            Some(value.trailing_zeros() as u8)
        }
        _ => None,
    }
}

/// How many rules from the first on do the same and differ in ports at the most.
fn run(spelled: &[(usize, Vec<Tests>)], same: &impl Fn(usize, usize) -> bool) -> usize {
    let (first, alternatives) = &spelled[0];
    let [tests] = &alternatives[..] else { return 1 };
    let rest = rest(tests);
    let alike = |k: usize, (rule, alternatives): &(usize, Vec<Tests>)| {
        let [tests] = &alternatives[..] else { return false };
        *rule == first + k && same(*rule, *first) && self::rest(tests) == rest
    };
    // Two ranges of ports are at most 16 masks each.
    spelled.iter().take(256).enumerate().take_while(|(k, one)| alike(*k, one)).count()
}

/// Tests of other things than ports, in an order.
fn rest(tests: &Tests) -> Tests {
    let mut rest: Tests = tests.iter().filter(|(read, _)| port(read).is_none()).copied().collect();
    rest.sort_by_key(|(read, want)| (format!("{read:?}"), *want));
    rest
}

fn port(read: &Read) -> Option<usize> {
    PORTS.iter().position(|field| read.place == Place::field(*field) && read.place.space == Space::Field(*field))
}

/// The rules as one with ranges, if they are all combinations of these in order.
fn grid(rules: &[(usize, Vec<Tests>)]) -> Option<(Tests, Several)> {
    let wants =
        |tests: &Tests| PORTS.map(|field| tests.iter().find(|(read, _)| read.place == Place::field(field)).copied());
    let cells: Vec<[Option<(Read, Want)>; 2]> = rules.iter().map(|(_, tests)| wants(&tests[0])).collect();
    // The destination runs fastest: until the source changes.
    let columns = cells.iter().take_while(|cell| cell[0] == cells[0][0]).count();
    let complete = cells.len().is_multiple_of(columns)
        && cells.iter().enumerate().all(|(k, cell)| *cell == [cells[k - k % columns][0], cells[k % columns][1]]);
    if !complete {
        return None;
    }
    let source: Vec<_> = cells.iter().step_by(columns).map(|cell| cell[0]).collect();
    let destination: Vec<_> = cells[..columns].iter().map(|cell| cell[1]).collect();
    let mut tests = rest(&rules[0].1[0]);
    let mut several = Several::default();
    for (k, (of, stride)) in [(source, columns), (destination, 1)].into_iter().enumerate() {
        if let [one] = of[..] {
            tests.extend(one);
            continue;
        }
        let of: Vec<(Read, Want)> = of.into_iter().collect::<Option<_>>()?;
        let (low, high, least) = powers(&of)?;
        tests.push((of[0].0, Want::Between { low, high }));
        several.of[k] = Steps { least, stride: stride as u16 };
    }
    Some((tests, several))
}

/// Masks that are the powers of two from one on, each with all above it to the next: the ends of the range, and the logarithm
/// of its start.
fn powers(masks: &[(Read, Want)]) -> Option<(u128, u128, u8)> {
    let first = power(&masks[0].1)?;
    let rising = masks.iter().zip(first..).all(|((_, want), wanted)| power(want) == Some(wanted));
    rising.then(|| (1 << first, (1u128 << (usize::from(first) + masks.len())) - 1, first))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hir::View;

    fn read(field: Field) -> Read {
        Read { place: Place::field(field), view: View::Table }
    }

    fn masked(field: Field, value: u128, mask: u128) -> (Read, Want) {
        (read(field), Want::Masked { value, mask })
    }

    fn high_ports(field: Field) -> Vec<(Read, Want)> {
        (10..16).map(|log| masked(field, 1 << log, 0xffff & !((1 << log) - 1))).collect()
    }

    #[test]
    fn combinations_of_ranges_are_one_entry() {
        let address = masked(Field::Ipv4Src, 7, 0xff);
        let mut spelled: Spelled = Vec::new();
        for source in high_ports(Field::TcpSrc) {
            for destination in high_ports(Field::TcpDst) {
                spelled.push((spelled.len(), vec![vec![source, address, destination]]));
            }
        }
        spelled.push((36, vec![vec![address]]));
        let several = merge(&mut spelled, |_, _| true);
        assert_eq!(spelled.iter().map(|(rule, _)| *rule).collect::<Vec<_>>(), [0, 36]);
        let range = Want::Between { low: 1024, high: 65_535 };
        assert_eq!(spelled[0].1[0], [address, (read(Field::TcpSrc), range), (read(Field::TcpDst), range)]);
        let of = [Steps { least: 10, stride: 6 }, Steps { least: 10, stride: 1 }];
        assert_eq!(several, [(0, Several { of })]);
    }

    #[test]
    fn what_is_no_range_of_powers_stays() {
        let wants = [(80, 0xffff), (81, 0xffff), (0x400, 0xfc00), (0x1000, 0xf000)];
        let mut spelled: Spelled =
            wants.iter().enumerate().map(|(k, (v, m))| (k, vec![vec![masked(Field::TcpDst, *v, *m)]])).collect();
        let before = spelled.clone();
        assert_eq!(merge(&mut spelled, |_, _| true), []);
        assert_eq!(spelled, before);
    }
}
