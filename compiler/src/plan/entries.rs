//! Rules as entries of a table that is data: conditions spelled out as tests that must all hold, each test on the bits of a
//! field, and where the fields lie in a key.
//!
//! In: conditions and facts. Out: for each rule its alternatives; the places of fields in the words of a key; entries. Never:
//! a choice of structure.
//!
//! Ports of TCP, UDP and SCTP lie at the same place behind IP, and what tests them tests the protocol beside: so they share a
//! place in the key. Fields that are neighbours in a packet are neighbours in the key, so that one load reads both.

use pipec_abi::header::proto;
use pipec_abi::table::{Entry, MAX_WORDS, Range, prefixes};

use super::facts::{Facts, Known, ones, spell_out};
use super::matching::Open;
use crate::field::{Field, Header};
use crate::hir::{Cond, Match, Place, Read, Space, View};

/// Alternatives that one rule may become.
pub(super) const MAX_ENTRIES: usize = 1024;

/// What a field has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub(super) enum Want {
    /// These bits have this value.
    Masked { value: u128, mask: u128 },
    /// It lies between these, both included, and is no prefix.
    Between { low: u128, high: u128 },
}

/// Tests that must all hold, one a field.
pub(super) type Tests = Vec<(Read, Want)>;

/// Rules by number, each with its alternatives.
pub(super) type Spelled = Vec<(usize, Vec<Tests>)>;

/// Where a field lies in the key: its lowest bit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub read: Read,
    pub word: usize,
    pub shift: u32,
}

/// Rules without what they share.
pub(super) struct Apart {
    /// Conditions that all of them have, up to one that always holds.
    pub shared: Vec<Cond>,
    /// What is known where these hold.
    pub facts: Facts,
    /// What is left of each.
    pub rules: Vec<Open>,
}

/// Takes out of rules what all of them ask for in the same words.
pub(super) fn apart(rules: &[Open], facts: &Facts) -> Apart {
    let mut shared: Option<Vec<Cond>> = None;
    let mut open: Vec<(usize, Vec<Cond>)> = Vec::new();
    for (rule, cond) in rules {
        let own = match facts.simplify(cond) {
            Known::Open(cond) => parts(cond),
            Known::False => continue,
            Known::True => {
                open.push((*rule, vec![]));
                break;
            }
        };
        shared = Some(match shared {
            None => own.clone(),
            Some(shared) => shared.into_iter().filter(|part| own.contains(part)).collect(),
        });
        open.push((*rule, own));
    }
    let shared = shared.unwrap_or_default();
    let mut facts = facts.clone();
    shared.iter().for_each(|cond| facts.learn_all(cond));
    let rest = |(rule, mut own): (usize, Vec<Cond>)| {
        own.retain(|part| !shared.contains(part));
        (rule, if own.is_empty() { Cond::True } else { Cond::All(own) })
    };
    let rules = open.into_iter().map(rest).collect();
    // That there is an IP header needs no test where IPv4 is asked for.
    let (masked, others): (Vec<Cond>, _) = shared.into_iter().partition(|cond| matches!(cond, Cond::Compare(..)));
    let left =
        others.iter().filter_map(|cond| if let Known::Open(cond) = facts.simplify(cond) { Some(cond) } else { None });
    Apart { shared: masked.iter().cloned().chain(left).collect(), facts: facts.clone(), rules }
}

/// Conditions that must all hold for one.
pub(super) fn parts(cond: Cond) -> Vec<Cond> {
    match cond {
        Cond::All(parts) => parts.into_iter().flat_map(self::parts).collect(),
        Cond::Has(header) => parts(spell_out(header)),
        one => vec![one],
    }
}

/// Visits places that a condition surely wants to have one value, with it.
pub(super) fn wholes(cond: &Cond, visit: &mut impl FnMut(&Read, u128)) {
    match cond {
        Cond::All(parts) => parts.iter().for_each(|part| wholes(part, visit)),
        Cond::Has(header) => wholes(&spell_out(*header), visit),
        Cond::Compare(read, Match::Masked { value, mask }) if *mask == ones(read.place.width) => visit(read, *value),
        _ => {}
    }
}

/// The rule that always holds, which other rules stand before.
pub(super) fn always(rules: &[Open], facts: &Facts) -> Option<usize> {
    rules.iter().find(|(_, cond)| matches!(facts.simplify(cond), Known::True)).map(|(rule, _)| *rule)
}

/// The rules before one that always holds with their alternatives, under the facts; nothing if one has too many.
pub(super) fn spell_rules(rules: &[Open], facts: &Facts) -> Option<Spelled> {
    let mut spelled = Vec::with_capacity(rules.len());
    for (rule, cond) in rules {
        match facts.simplify(cond) {
            Known::False => {}
            Known::True => break,
            Known::Open(cond) => spelled.push((*rule, alternatives(&cond, true)?)),
        }
    }
    share_ports(&mut spelled, facts);
    Some(spelled)
}

/// A condition, or its opposite, as alternatives of conjunctions.
fn alternatives(cond: &Cond, holds: bool) -> Option<Vec<Tests>> {
    match cond {
        Cond::True => Some(if holds { vec![Vec::new()] } else { Vec::new() }),
        Cond::Has(header) => alternatives(&spell_out(*header), holds),
        Cond::Not(inner) => alternatives(inner, !holds),
        Cond::Compare(read, test) => compare(read, test, holds),
        Cond::CompareTo(..) => None,
        Cond::All(parts) if holds => all_of(parts, holds),
        Cond::Any(parts) if !holds => all_of(parts, holds),
        Cond::All(parts) | Cond::Any(parts) => {
            let mut any = Vec::new();
            for part in parts {
                any.extend(alternatives(part, holds)?);
            }
            (any.len() <= MAX_ENTRIES).then_some(any)
        }
    }
}

fn all_of(parts: &[Cond], holds: bool) -> Option<Vec<Tests>> {
    let mut all: Vec<Tests> = vec![Vec::new()];
    for part in parts {
        let part = alternatives(part, holds)?;
        if all.len() * part.len() > MAX_ENTRIES {
            return None;
        }
        let both = |a: &Tests| part.iter().flat_map(|b| both(a, b)).collect::<Vec<_>>();
        all = all.iter().flat_map(both).collect();
    }
    (all.len() <= MAX_ENTRIES).then_some(all)
}

/// Both conjunctions, as alternatives: none if they exclude each other.
fn both(a: &Tests, b: &Tests) -> Vec<Tests> {
    let mut all = vec![a.clone()];
    for (read, want) in b {
        let with = |tests: &Tests| match tests.iter().position(|(r, _)| r == read) {
            None => vec![tests.iter().copied().chain([(*read, *want)]).collect()],
            Some(at) => {
                let ways = meet(tests[at].1, *want, read.place.width);
                let with = |want| {
                    let mut tests = tests.clone();
                    tests[at].1 = want;
                    tests
                };
                ways.into_iter().map(with).collect::<Vec<Tests>>()
            }
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

/// What both want, as alternatives.
fn meet(a: Want, b: Want, width: u8) -> Vec<Want> {
    match (a, b) {
        (Want::Masked { value: v, mask: m }, Want::Masked { value, mask }) => {
            if (v ^ value) & m & mask != 0 {
                vec![]
            } else {
                vec![Want::Masked { value: v | value, mask: m | mask }]
            }
        }
        (Want::Between { low: l, high: h }, Want::Between { low, high }) => {
            let (low, high) = (l.max(low), h.min(high));
            if low > high { vec![] } else { vec![between(low, high, width)] }
        }
        (range @ Want::Between { .. }, masked) => meet(masked, range, width),
        (masked, Want::Between { low, high }) => {
            let prefixes = prefixes(low, high, width).into_iter();
            prefixes.flat_map(|(value, mask)| meet(masked, Want::Masked { value, mask }, width)).collect()
        }
    }
}

/// A range, as a prefix if it is one.
fn between(low: u128, high: u128, width: u8) -> Want {
    match prefixes(low, high, width)[..] {
        [(value, mask)] => Want::Masked { value, mask },
        _ => Want::Between { low, high },
    }
}

/// One test, or its opposite, as alternatives.
fn compare(read: &Read, test: &Match, holds: bool) -> Option<Vec<Tests>> {
    let width = read.place.width;
    let masked = |(value, mask): (u128, u128)| vec![(*read, Want::Masked { value, mask })];
    let ranges = |ranges: Vec<(u128, u128)>| -> Option<Vec<Tests>> {
        let all: Vec<Tests> = if width > 64 {
            ranges.into_iter().flat_map(|(low, high)| prefixes(low, high, width)).map(masked).collect()
        } else {
            ranges.into_iter().map(|(low, high)| vec![(*read, between(low, high, width))]).collect()
        };
        (all.len() <= MAX_ENTRIES).then_some(all)
    };
    match (test, holds) {
        (Match::Masked { value, mask }, true) => Some(vec![masked((*value, *mask))]),
        (Match::Masked { value, mask }, false) => {
            // Some bit differs; the bits above it do not, so that alternatives exclude each other.
            let mut masks = Vec::new();
            let mut above = 0u128;
            for bit in (0..width).rev().map(|bit| 1u128 << bit).filter(|bit| mask & bit != 0) {
                masks.push(masked(((value & above) | (!value & bit), above | bit)));
                above |= bit;
            }
            Some(masks)
        }
        (Match::Range { low, high }, true) => ranges(vec![(*low, *high)]),
        (Match::In(list), true) => ranges(list.clone()),
        (Match::Range { low, high }, false) => ranges(gaps(&[(*low, *high)], ones(width))),
        (Match::In(list), false) => ranges(gaps(list, ones(width))),
    }
}

/// What lies between sorted ranges.
fn gaps(ranges: &[(u128, u128)], most: u128) -> Vec<(u128, u128)> {
    let (mut gaps, mut from) = (Vec::new(), Some(0u128));
    for (low, high) in ranges {
        if let Some(start) = from.filter(|start| start < low) {
            gaps.push((start, low - 1));
        }
        from = high.checked_add(1).filter(|next| *next <= most);
    }
    gaps.extend(from.map(|start| (start, most)));
    gaps
}

// ---- the key ------------------------------------------------------------------------------------------------------------

/// Ports of all transports are those of TCP, if whatever tests one tests the protocol too, or it is known.
fn share_ports(spelled: &mut Spelled, facts: &Facts) {
    let all = || spelled.iter().flat_map(|(_, alternatives)| alternatives);
    let apart =
        all().any(|tests| tests.iter().any(|(read, _)| shared(read).is_some_and(|_| !sure(read, tests, facts))));
    if apart {
        return;
    }
    for (read, _) in spelled.iter_mut().flat_map(|(_, alternatives)| alternatives).flatten() {
        if let Some(field) = shared(read) {
            *read = Read { place: Place { space: Space::Field(field), ..read.place }, ..*read };
        }
    }
}

/// The port of TCP that lies where this one does.
fn shared(read: &Read) -> Option<Field> {
    match read.place.space {
        _ if read.view != View::Table => None,
        Space::Field(Field::TcpSrc | Field::UdpSrc | Field::SctpSrc) => Some(Field::TcpSrc),
        Space::Field(Field::TcpDst | Field::UdpDst | Field::SctpDst) => Some(Field::TcpDst),
        _ => None,
    }
}

/// Whether the protocol of a port is tested beside it, or known.
fn sure(read: &Read, tests: &Tests, facts: &Facts) -> bool {
    let Space::Field(field) = read.place.space else { return false };
    let number = match field.header() {
        Some(Header::Tcp) => proto::TCP,
        Some(Header::Udp) => proto::UDP,
        _ => proto::SCTP,
    };
    let protocol = Read { place: Place::field(Field::IpProto), view: View::Table };
    let tested = |(read, want): &(Read, Want)| {
        read.place == protocol.place && *want == Want::Masked { value: u128::from(number), mask: 0xff }
    };
    facts.constant(&protocol) == Some(u128::from(number)) || tests.iter().any(tested)
}

/// Words of a key that a read takes.
pub(super) fn words(read: &Read) -> usize {
    if read.place.width > 64 { 2 } else { 1 }
}

/// Fields that one load reads, the first above the second.
pub(super) const PAIRS: [(Field, Field); 2] = [(Field::Ipv4Src, Field::Ipv4Dst), (Field::TcpSrc, Field::TcpDst)];

/// The field right behind this one in a packet and in the key, and the bits of it.
pub(super) fn second(read: &Read) -> Option<Read> {
    let (_, field) = PAIRS.iter().find(|(first, _)| read.place == Place::field(*first))?;
    Some(Read { place: Place::field(*field), ..*read })
}

/// Where each read lies in the key; nothing if there are too many.
pub(super) fn layout(spelled: &Spelled) -> Option<Vec<Slot>> {
    let mut reads: Vec<Read> = Vec::new();
    for (read, _) in spelled.iter().flat_map(|(_, alternatives)| alternatives).flatten() {
        if !reads.contains(read) {
            reads.push(*read);
        }
    }
    // Pieces of the key: one field, or two that are neighbours.
    let mut pieces: Vec<(Read, Option<Read>)> = Vec::new();
    let seconds: Vec<Read> = reads.iter().filter_map(second).filter(|read| reads.contains(read)).collect();
    for read in reads.iter().filter(|read| !seconds.contains(read)) {
        pieces.push((*read, second(read).filter(|second| seconds.contains(second))));
    }
    let width = |(first, second): &(Read, Option<Read>)| {
        u32::from(first.place.width) + second.map_or(0, |read| u32::from(read.place.width))
    };
    pieces.sort_by_key(|piece| std::cmp::Reverse(width(piece)));
    let mut free: Vec<u32> = Vec::new(); // bits taken of each word
    let mut slots = Vec::new();
    for (first, second) in pieces {
        let width = width(&(first, second));
        let fits = free.iter().position(|used| used + width <= 64);
        let word = fits.unwrap_or_else(|| {
            free.extend(std::iter::repeat_n(0, words(&first)));
            free.len() - words(&first)
        });
        let below = second.map_or(0, |read| u32::from(read.place.width));
        slots.push(Slot { read: first, word, shift: free[word] + below });
        slots.extend(second.map(|read| Slot { read, word, shift: free[word] }));
        free[word] += width.min(64);
        if width > 64 {
            free[word + 1] = 64;
        }
    }
    (free.len() <= MAX_WORDS).then_some(slots)
}

/// Words of a key with these places.
pub(super) fn key_width(slots: &[Slot]) -> usize {
    slots.iter().map(|slot| slot.word + words(&slot.read)).max().unwrap_or(1)
}

/// All alternatives as entries; `value` is that of a rule.
pub(super) fn entries(spelled: &Spelled, slots: &[Slot], value: impl Fn(usize) -> u64) -> Vec<Entry> {
    let width = key_width(slots);
    let all = spelled.iter().flat_map(|(rule, alternatives)| alternatives.iter().map(|tests| (*rule, tests)));
    all.map(|(rule, tests)| entry(tests, slots, width, value(rule))).collect()
}

/// One alternative as an entry.
fn entry(tests: &Tests, slots: &[Slot], width: usize, value: u64) -> Entry {
    let mut entry = Entry { mask: vec![0; width], key: vec![0; width], ranges: vec![], value };
    for (read, want) in tests {
        let Some(slot) = slots.iter().find(|slot| slot.read == *read) else { continue };
        match want {
            Want::Masked { value, mask } => {
                entry.mask[slot.word] |= (*mask as u64) << slot.shift;
                entry.key[slot.word] |= (*value as u64) << slot.shift;
                if words(read) == 2 {
                    entry.mask[slot.word + 1] |= (mask >> 64) as u64;
                    entry.key[slot.word + 1] |= (value >> 64) as u64;
                }
            }
            Want::Between { low, high } => entry.ranges.push(Range {
                word: slot.word as u8,
                shift: slot.shift as u8,
                width: read.place.width,
                low: *low as u64,
                high: *high as u64,
            }),
        }
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_what_is_left() {
        assert_eq!(gaps(&[(0, 3), (5, 255)], 255), [(4, 4)]);
        assert_eq!(gaps(&[(1, 1)], 3), [(0, 0), (2, 3)]);
        assert_eq!(gaps(&[(0, 3)], 3), []);
    }

    #[test]
    fn two_wants_meet_in_what_both_allow() {
        let wants = [
            Want::Masked { value: 0x40, mask: 0xc0 },
            Want::Masked { value: 3, mask: 0x0f },
            between(5, 200, 8),
            between(64, 127, 8),
            between(90, 91, 8),
            between(7, 7, 8),
        ];
        let holds = |want: &Want, x: u128| match *want {
            Want::Masked { value, mask } => x & mask == value,
            Want::Between { low, high } => (low..=high).contains(&x),
        };
        for a in wants {
            for b in wants {
                let ways = meet(a, b, 8);
                for x in 0..256 {
                    let times = ways.iter().filter(|way| holds(way, x)).count();
                    assert_eq!(times, usize::from(holds(&a, x) && holds(&b, x)), "{a:?} {b:?} {x}");
                }
            }
        }
    }
}
