//! Packets at the edges of a program's matches: such that each rule is met, and just missed.
//!
//! In: a program. Out: packets as values of fields, each with the port it comes in by; most likely the rule it was made for is
//! the one that it takes. Never: a claim; whoever wants to know what a packet does runs it. Always the same for the same program.

mod packet;

use std::collections::{BTreeSet, VecDeque};

pub use packet::Wanted;

use crate::field::Field;
use crate::hir::{Action, Cond, Match, Place, PortId, Program, Read, Space, TableId, Value};

/// Ways in which one condition is met that are tried.
const MAX_WAYS: usize = 12;
/// How often a table is entered with different packets.
const MAX_ENTERED: usize = 48;
/// Lists of tests that are kept to be mixed.
const MAX_LISTS: usize = 2_000;
/// Values that one test is given.
const MAX_EDGES: usize = 12;

/// A packet and the port it comes in by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probe {
    /// The port.
    pub port: PortId,
    /// The packet.
    pub packet: Wanted,
}

/// A test that is to come out in a certain way.
#[derive(Clone, Debug)]
struct Literal {
    test: Cond,
    holds: bool,
}

/// Packets for every rule that can be reached, at most so many; those of tables near the start come first.
pub fn probes(program: &Program, most: usize) -> Vec<Probe> {
    let mut found =
        Found { seen: BTreeSet::new(), probes: vec![], most, ports: program.ports.len().max(1) as u16, lists: vec![] };
    let mut entered = vec![0usize; program.tables.len()];
    let mut queue: VecDeque<(TableId, Vec<Literal>, Origins)> = VecDeque::from([(program.entry, vec![], vec![])]);
    while let Some((table, before, origins)) = queue.pop_front() {
        if entered[usize::from(table.0)] >= MAX_ENTERED {
            continue;
        }
        entered[usize::from(table.0)] += 1;
        let rules = &program.table(table).rules;
        for (i, rule) in rules.iter().enumerate() {
            for mut way in ways(&rule.cond, true) {
                way.iter_mut().for_each(|literal| literal.from(&origins));
                found.edges(&before, &way);
                // What this rule and one behind it both match shows which comes first.
                for other in rules.iter().skip(i + 1).take(3) {
                    for also in ways(&other.cond, true).into_iter().take(2) {
                        found.one(&[before.as_slice(), &also, &way].concat(), None);
                    }
                }
                let mut targets = vec![];
                let mut origins = origins.clone();
                reached(program, &rule.actions, &mut targets, &mut origins);
                for target in targets {
                    if entered[usize::from(target.0)] < MAX_ENTERED && before.len() < 64 {
                        queue.push_back((target, [before.as_slice(), &way].concat(), origins.clone()));
                    }
                }
            }
            if found.full() {
                return found.probes;
            }
        }
        found.one(&before, None);
    }
    found.mixed();
    found.probes
}

/// Variables, each with the field that was last written to it.
type Origins = Vec<(Place, Place)>;

impl Literal {
    /// A test of a variable is one of the field that it was set from.
    fn from(&mut self, origins: &Origins) {
        if let Cond::Compare(read, _) = &mut self.test
            && let Some((_, from)) = origins.iter().find(|(to, from)| *to == read.place && from.width == to.width)
        {
            read.place = *from;
        }
    }
}

/// Packets made so far.
struct Found {
    seen: BTreeSet<Probe>,
    probes: Vec<Probe>,
    most: usize,
    ports: u16,
    /// What packets were made for, to be mixed.
    lists: Vec<Vec<Literal>>,
}

impl Found {
    fn full(&self) -> bool {
        self.probes.len() >= self.most
    }

    /// The packet that meets all, then for each test of the rule itself those at its edges.
    fn edges(&mut self, before: &[Literal], own: &[Literal]) {
        let all = [before, own].concat();
        self.one(&all, None);
        if self.lists.len() < MAX_LISTS {
            self.lists.push(all.clone());
        }
        for (i, literal) in own.iter().enumerate() {
            for (value, mask) in edges(literal) {
                self.one(&all, Some((before.len() + i, value, mask)));
            }
            let mut missed = all.clone();
            missed[before.len() + i].holds = !literal.holds;
            self.one(&missed, None);
        }
    }

    /// Packets in which several tests are at their edges, as often as new ones are found.
    fn mixed(&mut self) {
        let mut number = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = |below: usize| {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (number >> 33) as usize % below.max(1)
        };
        let lists = std::mem::take(&mut self.lists);
        for _ in 0..if lists.is_empty() { 0 } else { 2 * self.most } {
            if self.full() {
                break;
            }
            let mut list = lists[next(lists.len())].clone();
            for literal in &mut list {
                match next(4) {
                    0 => literal.holds = !literal.holds,
                    1 => {
                        let edges = edges(literal);
                        if let (Cond::Compare(_, test), false) = (&mut literal.test, edges.is_empty()) {
                            let (value, mask) = edges[next(edges.len())];
                            *test = Match::Masked { value, mask };
                            literal.holds = true;
                        }
                    }
                    _ => {}
                }
            }
            self.one(&list, None);
        }
    }

    /// The packet in which tests come out as they should, one of them with a value of its own; from each port, or the one that
    /// is asked for.
    fn one(&mut self, literals: &[Literal], instead: Option<(usize, u128, u128)>) {
        let (mut packet, mut port) = (Wanted::default(), None);
        for (i, literal) in literals.iter().enumerate() {
            match &literal.test {
                Cond::Has(header) if literal.holds => packet.have(*header),
                Cond::Has(header) => packet.lack(*header),
                Cond::Compare(read, test) => {
                    let (value, mask) = match instead {
                        Some((at, value, mask)) if at == i => (value, mask),
                        _ => value(read, test, literal.holds),
                    };
                    if read.place.space == Space::Field(Field::InPort) {
                        port = Some(value as u16 % self.ports);
                    } else {
                        packet.set(read.place, value, mask);
                    }
                }
                _ => {}
            }
        }
        let ports = port.map_or(0..self.ports.min(3), |port| port..port + 1);
        for port in ports {
            let probe = Probe { port: PortId(port), packet: packet.clone() };
            if !self.full() && self.seen.insert(probe.clone()) {
                self.probes.push(probe);
            }
        }
    }
}

/// A value with which a test comes out as it should, and the bits of it that matter.
fn value(read: &Read, test: &Match, holds: bool) -> (u128, u128) {
    let ones = ones(read.place.width);
    match (test, holds) {
        (Match::Masked { value, mask }, true) => (*value, *mask),
        (Match::Masked { value, mask }, false) => (value ^ (mask & mask.wrapping_neg()), *mask),
        (Match::Range { low, .. }, true) => (*low, ones),
        (Match::Range { low, high }, false) => (if *high < ones { high + 1 } else { low.saturating_sub(1) }, ones),
        (Match::In(ranges), true) => (ranges.first().map_or(0, |range| range.0), ones),
        (Match::In(ranges), false) => {
            let outside = ranges.last().map_or(0, |range| if range.1 < ones { range.1 + 1 } else { 0 });
            (outside, ones)
        }
    }
}

/// Values at the edges of a test, on either side.
fn edges(literal: &Literal) -> Vec<(u128, u128)> {
    let Cond::Compare(read, test) = &literal.test else { return vec![] };
    let ones = ones(read.place.width);
    let mut values = vec![];
    match test {
        Match::Masked { value, mask } => {
            let (lowest, highest) = (mask & mask.wrapping_neg(), top(*mask));
            values.extend([
                *value,
                value | (ones & !mask),
                value ^ lowest,
                value ^ highest,
                value | mask,
                value & !mask,
            ]);
        }
        Match::Range { low, high } => values.extend(around(*low, *high)),
        Match::In(ranges) => values.extend(ranges.iter().take(MAX_EDGES).flat_map(|(low, high)| around(*low, *high))),
    }
    let mut known = BTreeSet::new();
    values.retain(|value| *value <= ones && known.insert(*value));
    values.truncate(MAX_EDGES * 4);
    values.into_iter().map(|value| (value, ones)).collect()
}

fn around(low: u128, high: u128) -> [u128; 4] {
    [low, high, low.saturating_sub(1), high.saturating_add(1)]
}

/// The highest bit of a mask.
fn top(mask: u128) -> u128 {
    if mask == 0 { 0 } else { 1 << (127 - mask.leading_zeros()) }
}

fn ones(width: u8) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// Ways in which a condition comes out as it should, each a list of tests; not all of them, if there are many.
fn ways(cond: &Cond, holds: bool) -> Vec<Vec<Literal>> {
    match cond {
        Cond::True => {
            if holds {
                vec![vec![]]
            } else {
                vec![]
            }
        }
        Cond::Not(inner) => ways(inner, !holds),
        Cond::All(parts) | Cond::Any(parts) => {
            let every = matches!(cond, Cond::All(_)) == holds;
            if !every {
                let mut all: Vec<_> = parts.iter().flat_map(|part| ways(part, holds)).collect();
                all.truncate(MAX_WAYS);
                return all;
            }
            let mut all: Vec<Vec<Literal>> = vec![vec![]];
            for part in parts {
                let own = ways(part, holds);
                all = all.iter().flat_map(|before| own.iter().map(|own| [before.as_slice(), own].concat())).collect();
                all.truncate(MAX_WAYS);
            }
            all
        }
        test => vec![vec![Literal { test: test.clone(), holds }]],
    }
}

/// Tables that a list of actions leads to, and what it sets variables to.
fn reached(program: &Program, actions: &[Action], targets: &mut Vec<TableId>, origins: &mut Origins) {
    for action in actions {
        match action {
            Action::Goto(table) | Action::Call { table, .. } => targets.push(*table),
            Action::Clone(body) => reached(program, body, targets, &mut origins.clone()),
            Action::Group(group) => {
                let buckets = &program.group(*group).buckets;
                buckets.iter().for_each(|bucket| reached(program, &bucket.actions, targets, &mut origins.clone()));
            }
            Action::Set { place, value } if place.space == Space::Meta => {
                origins.retain(|(to, _)| to != place);
                if let Value::Read(from) = value {
                    origins.push((*place, *from));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;

    fn texts(program: &str) -> Vec<String> {
        let mut sources = Sources::default();
        let file = sources.add("p.pipe", program);
        let (program, diagnostics) = crate::front_pipe(&mut sources, file);
        let program = program.unwrap_or_else(|| panic!("{}", crate::diag::render_all(&diagnostics, &sources, false)));
        let probes = probes(&program, 1_000);
        probes
            .iter()
            .map(|probe| format!("{}: {}", crate::words::port(&program, probe.port), probe.packet.text()))
            .collect()
    }

    #[test]
    fn rules_are_met_and_just_missed() {
        let texts = texts(
            "pipeline p { port a, b; table t { in_port == a && ipv4.dst == 10.0.0.0/8 => goto u; else => drop; } \
             table u { tcp.dst in 80..=90 => output(b); arp => drop; } }",
        );
        for wanted in [
            "a: ipv4(dst = 10.0.0.0) / udp()",
            "a: ipv4(dst = 10.255.255.255) / udp()",
            "a: ipv4(dst = 11.0.0.0) / udp()",
            "b: ipv4(dst = 10.0.0.0) / udp()",
            "a: ipv4(dst = 10.0.2.2) / tcp(dst = 80)",
            "a: ipv4(dst = 10.0.2.2) / tcp(dst = 90)",
            "a: ipv4(dst = 10.0.2.2) / tcp(dst = 79)",
            "a: ipv4(dst = 10.0.2.2) / tcp(dst = 91)",
        ] {
            let ip = wanted.replace(" / udp()", "");
            assert!(texts.iter().any(|text| text.starts_with(&ip)), "{wanted} in {texts:#?}");
        }
    }

    #[test]
    fn all_texts_are_packets() {
        let texts = texts(
            "pipeline p { port a; table t { vlan.vid == 5 && ipv6.dst == 2001:db8::/32 => drop; arp.op == 2 => drop; \
             eth.type == 0x88cc => drop; icmp.type == 3 => drop; ip.proto == 47 => drop; tcp.flags == syn|ack => drop; \
             ip.frag == 1 => drop; vlan.tci == 0 => drop; sctp => drop; icmpv6 => drop; !ip => drop; } }",
        );
        for text in texts {
            let parsed = crate::packet::parse_packet(&mut Sources::default(), &text);
            assert!(parsed.is_ok(), "{text}: {parsed:?}");
        }
    }

    #[test]
    fn a_reply_is_the_other_way_round() {
        let mut packet = Wanted::default();
        packet.set(crate::hir::Place::field(Field::Ipv4Src), 0x0a00_0001, 0xffff_ffff);
        packet.set(crate::hir::Place::field(Field::UdpDst), 7, 0xffff);
        let reply = packet.reply().text();
        assert!(reply.contains("dst = 10.0.0.1") && reply.contains("udp(src = 7, dst = 40000)"), "{reply}");
    }
}
