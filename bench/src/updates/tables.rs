//! The programs with an open table, the entries that frames hit, and those that come and go.
//!
//! In: a kind of table, how many entries. Out: text, entries, frames. Never: an entry of one set in the other.

use std::collections::HashSet;
use std::str::FromStr;

use pipec_abi::table::KeyMatch;
use pipec_runtime::tables::Entry;

use crate::frames::{self, Frame, put};
use crate::random::Random;
use crate::workload::{self, SEED, Traffic, Workload, acl, l2, l3};

/// The seed of entries that come and go.
const OTHER_SEED: u32 = 99;

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ethernet addresses.
    Exact,
    /// IPv4 prefixes.
    Lpm,
    /// Addresses under masks and ranges of ports.
    Acl,
}

/// What a table holds and what it is asked.
pub struct Content {
    /// Entries that stay.
    pub entries: Vec<Entry>,
    /// Entries that come and go.
    pub others: Vec<Entry>,
    /// Frames, all of which find an entry.
    pub frames: Vec<Frame>,
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Kind, String> {
        let kinds = [Kind::Exact, Kind::Lpm, Kind::Acl];
        let found = kinds.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("expected exact, lpm or acl, found `{name}`"))
    }
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Exact => "exact",
            Kind::Lpm => "lpm",
            Kind::Acl => "acl",
        }
    }

    /// A program with one table `t` of this kind, which sends to a port that the entry names.
    pub fn program(self) -> String {
        let key = match self {
            Kind::Exact => "eth.dst: exact",
            Kind::Lpm => "ipv4.dst: lpm",
            Kind::Acl => "ipv4.src: ternary, ipv4.dst: ternary, udp.src: range, udp.dst: range",
        };
        format!(
            "pipeline updates {{
    port a = 1, b = 2;
    action to(out: port) {{ output(out); }}
    table t {{ key {key}; actions to; size 2_000_000; }}
    start {{ else => goto t; }}
}}
"
        )
    }

    /// Its entries, others, and frames.
    pub fn content(self, count: u32) -> Content {
        let sets = [SEED, OTHER_SEED].map(|seed| self.keys(count, &mut Random::new(seed)));
        let mut seen: HashSet<(u32, Vec<(u128, u128)>)> = HashSet::new();
        let mut entries = |keys: Vec<(u32, Vec<KeyMatch>)>| {
            let new =
                keys.into_iter().filter(|(priority, key)| seen.insert((*priority, key.iter().map(plain).collect())));
            new.map(|(priority, key)| Entry::new(key, "to", vec![2]).priority(priority)).collect::<Vec<_>>()
        };
        let [own, others] = sets;
        let (own, others) = (entries(own), entries(others));
        Content { entries: own, others, frames: self.frames(count) }
    }

    fn frames(self, count: u32) -> Vec<Frame> {
        let kind = match self {
            Kind::Exact => workload::Kind::L2 { entries: count },
            Kind::Lpm => workload::Kind::L3 { prefixes: count },
            Kind::Acl => workload::Kind::Acl { rules: count, traffic: Traffic::Hits },
        };
        let mut frames = Workload::from(kind).make().frames.swap_remove(0);
        if self == Kind::Acl {
            for frame in &mut frames {
                put(frame, 23, 1, 17);
                frames::seal(frame);
            }
        }
        frames
    }

    /// Priorities and keys.
    fn keys(self, count: u32, random: &mut Random) -> Vec<(u32, Vec<KeyMatch>)> {
        let prefix = |(address, length): (u32, u32)| KeyMatch::Masked {
            value: u128::from(address),
            mask: u128::from(u32::MAX) << (32 - length) & u128::from(u32::MAX),
        };
        match self {
            Kind::Exact => {
                let key = |mac: u64| KeyMatch::Masked { value: u128::from(mac) | 2 << 40, mask: (1 << 48) - 1 };
                l2::addresses(count, random).into_iter().map(|mac| (0, vec![key(mac)])).collect()
            }
            Kind::Lpm => l3::routes(count, random).into_iter().map(|route| (0, vec![prefix(route)])).collect(),
            Kind::Acl => {
                let ports = |(low, high): (u16, u16)| KeyMatch::Range { low: low.into(), high: high.into() };
                let rules = acl::rules(count as usize, random).into_iter().enumerate();
                let key = |rule: acl::Rule| {
                    rule.prefixes.map(prefix).into_iter().chain(rule.ports.map(ports)).collect::<Vec<_>>()
                };
                rules.map(|(i, rule)| (count - i as u32, key(rule))).collect()
            }
        }
    }
}

/// A part of a key as numbers that can be compared.
fn plain(part: &KeyMatch) -> (u128, u128) {
    match part {
        KeyMatch::Masked { value, mask } => (*value, *mask),
        KeyMatch::Range { low, high } => (*low, *high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled;

    #[test]
    fn entries_fit_the_tables_and_frames_find_them() {
        for kind in [Kind::Exact, Kind::Lpm, Kind::Acl] {
            assert_eq!(kind.name().parse(), Ok(kind));
            let content = kind.content(50);
            let (engine, tables, _) = compiled::compile("updates.pipe", &kind.program()).unwrap();
            let mut batch = tables.batch();
            batch.load("t", content.entries).unwrap();
            batch.load("t", content.others).unwrap();
            batch.commit();
            let mut offline = pipec_runtime::offline::Offline::new(&engine);
            let frames: Vec<(u16, &[u8])> = content.frames[..320].iter().map(|frame| (0, &frame[..])).collect();
            for outcome in offline.send(0, &frames) {
                assert_eq!(outcome.outputs.len(), 1, "{}", kind.name());
            }
        }
        assert!("ternary".parse::<Kind>().is_err());
    }
}
