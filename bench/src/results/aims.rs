//! Everything that is aimed at, beside what was measured.
//!
//! In: results. Out: a row for each aim, whether its parts were measured or not. Never: a failure for an aim that is not
//! reached.

use super::Results;
use crate::instructions::series;
use crate::lookups::Set;
use crate::targets::{names, target};
use crate::workload::{MOST_PORTS, Workload};
use crate::{live, updates};

/// What is aimed at: at most so much of something.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// Of what.
    pub what: String,
    /// What it is counted in.
    pub unit: &'static str,
    /// The most that is aimed at.
    pub most: f64,
    /// What was measured; if nothing was, why.
    pub measured: Result<f64, String>,
}

impl Aim {
    fn new(what: impl Into<String>, unit: &'static str, most: f64, measured: Option<f64>) -> Aim {
        let measured = measured.ok_or_else(|| "not measured".to_string());
        Aim { what: what.into(), unit, most, measured }
    }

    /// Whether it was reached, if that is known.
    pub fn reached(&self) -> Option<bool> {
        self.measured.as_ref().ok().map(|measured| *measured <= self.most)
    }
}

/// All aims.
pub fn aims(results: &Results) -> Vec<Aim> {
    let mut aims = forwarding(results);
    aims.extend(beside_others(results));
    aims.extend(lookups(results));
    aims.extend(changes(results));
    aims.extend(flatness(results));
    aims.extend(live::AIMS.iter().map(|(program, most)| {
        let row = results.others.live.iter().find(|row| row.program == *program);
        Aim::new(format!("from source to packets, `{program}`"), "ms", f64::from(*most), row.map(|row| row.all))
    }));
    aims
}

/// Cycles a packet of our two engines.
fn forwarding(results: &Results) -> Vec<Aim> {
    let mut aims = Vec::new();
    for name in names() {
        let Ok(workload) = name.parse::<Workload>() else { continue };
        let Some(most) = target(workload).target else { continue };
        for engine in ["jit", "rust"] {
            let mut aim =
                Aim::new(format!("`{name}`, {engine}"), "cycles", most.into(), results.forward.cycles(name, engine));
            if workload.ports() > MOST_PORTS {
                aim.measured = Err(format!("DPDK as it is built here takes {MOST_PORTS} ports"));
            }
            aims.push(aim);
        }
    }
    let (forward, engine) = (&results.forward, "jit");
    let beside =
        |name: &str, base: &str, per: f64| Some((forward.cycles(name, engine)? - forward.cycles(base, engine)?) / per);
    aims.push(Aim::new(
        "checksums: `fwtcp-1000` less `firewall-1000`, jit",
        "cycles",
        40.0,
        beside("fwtcp-1000", "firewall-1000", 1.0),
    ));
    aims.push(Aim::new(
        "a copy: `flood-4` less `wire`, a quarter, jit",
        "cycles",
        25.0,
        beside("flood-4", "wire", 4.0),
    ));
    aims.push(Aim::new("a new connection, the tracker alone", "cycles", 800.0, results.others.connections));
    aims
}

/// Ratios to programs written by hand, and of our engines to each other.
fn beside_others(results: &Results) -> Vec<Aim> {
    let forward = &results.forward;
    let ratio = |name: &str, of: &str, to: &str| Some(forward.cycles(name, of)? / forward.cycles(name, to)?);
    let mut aims = Vec::new();
    for name in ["firewall-100", "firewall-1000", "firewall-10000", "firewall-100000", "fwtcp-1000"] {
        aims.push(Aim::new(format!("`{name}`, rust to hand"), "times", 1.1, ratio(name, "rust", "hand")));
        aims.push(Aim::new(format!("`{name}`, jit to rust"), "times", 1.1, ratio(name, "jit", "rust")));
    }
    aims
}

fn lookups(results: &Results) -> Vec<Aim> {
    let set = |name: &str| results.others.lookups.iter().find(|set| set.set == name);
    let of = |name: &str, value: fn(&Set) -> Option<f64>| set(name).and_then(value);
    let ns = |set: &Set| set.ours().map(|row| row.ns);
    let ratio = |set: &Set| Some(set.ours()?.ns / set.peer()?.ns);
    let an_entry = |set: &Set| set.ours().map(|row| row.memory as f64 / set.entries().max(1) as f64);
    let build = |set: &Set| set.ours().map(|row| row.build_ms / 1e3);
    let mib = |set: &Set| set.ours().map(|row| row.memory as f64 / f64::from(1 << 20));
    let mut aims = vec![
        Aim::new("a million keys of 8 bytes", "ns", 20.0, of("hash8-1000000", ns)),
        Aim::new("a million keys of 8 bytes, an entry", "bytes", 40.0, of("hash8-1000000", an_entry)),
        Aim::new("a million keys of 8 bytes, to load", "s", 0.3, of("hash8-1000000", build)),
        Aim::new("a million keys of 16 bytes", "ns", 28.0, of("hash16-1000000", ns)),
        Aim::new("a million keys of 16 bytes, an entry", "bytes", 40.0, of("hash16-1000000", an_entry)),
        Aim::new("a million IPv4 prefixes", "ns", 12.0, of("lpm-1000000", ns)),
        Aim::new("a million IPv4 prefixes", "MiB", 16.0, of("lpm-1000000", mib)),
        Aim::new("200,000 IPv6 prefixes", "ns", 25.0, of("lpm6-200000", ns)),
    ];
    for (rules, most) in [(100, 0.4), (1000, 0.8), (10_000, 1.0)] {
        for kind in ["acl", "fw", "ipc"] {
            let name = format!("{kind}-{rules}");
            aims.push(Aim::new(format!("`{name}` alone, to rte_acl"), "times", most, of(&name, ratio)));
        }
    }
    // A throughput of 0.97 where there are no heavy hitters; where there are, a gain.
    for (name, most) in [("acl-1000@uniform", 1.0 / 0.97), ("acl-1000@elephants", 1.0), ("acl-10000@elephants", 1.0)] {
        let what = format!("`{name}`, heavy hitters in front, to without");
        aims.push(Aim::new(what, "times", most, of(name, Set::hot)));
    }
    aims
}

fn changes(results: &Results) -> Vec<Aim> {
    let mut aims = Vec::new();
    for (kind, median, p99) in [
        (updates::Kind::Exact, 2.0, Some(20.0)),
        (updates::Kind::Lpm, 2.0, Some(20.0)),
        (updates::Kind::Acl, 50.0, None),
    ] {
        let name = kind.name();
        let figures = results.others.updates.iter().find(|figures| figures.kind == name);
        let slowest = |value: fn(&updates::Latency) -> u64| {
            figures.and_then(|figures| figures.latency.iter().map(value).max()).map(|ns| ns as f64 / 1e3)
        };
        aims.push(Aim::new(format!("a change of `{name}`, median"), "µs", median, slowest(|latency| latency.median)));
        if let Some(p99) = p99 {
            aims.push(Aim::new(format!("a change of `{name}`, 99 of 100"), "µs", p99, slowest(|latency| latency.p99)));
        }
        let cost = figures.map(|figures| (figures.paced / figures.quiet - 1.0) * 100.0);
        let mut aim = Aim::new(format!("what 100,000 changes of `{name}` a second add to a packet"), "%", 5.0, cost);
        if let Some(figures) = figures
            && figures.paced_rate < 0.9 * updates::PACE
        {
            aim.measured = Err(format!("only {:.0} changes a second", figures.paced_rate));
        }
        aims.push(aim);
    }
    aims
}

/// Costs that must not grow, by instructions; that of an attack by cycles, too.
fn flatness(results: &Results) -> Vec<Aim> {
    let count = |name: &str| {
        let counts = &results.others.instructions;
        counts.iter().find(|count| count.workload == name && count.engine == "jit").map(|count| count.ours)
    };
    let mut aims = Vec::new();
    for series in series::ALL {
        let Some(most) = series.aim else { continue };
        let measured: Vec<f64> = series.workloads.iter().filter_map(|name| count(name)).collect();
        let is_attack = most > 0.03; // the second may be cheaper than the first
        let grown = match &measured[..] {
            [random, attack] if is_attack => Some(attack / random - 1.0),
            [_, _, ..] => Some(series::spread(&measured)),
            _ => None,
        };
        let what = format!("{}, instructions", series.what);
        aims.push(Aim::new(what, "%", most * 100.0, grown.map(|grown| grown * 100.0)));
        if let (true, [random, attack]) = (is_attack, series.workloads) {
            let cycles = |name: &str| results.forward.cycles(name, "jit");
            let grown = cycles(attack).zip(cycles(random)).map(|(attack, random)| (attack / random - 1.0) * 100.0);
            aims.push(Aim::new(format!("{}, cycles", series.what), "%", most * 100.0, grown));
        }
    }
    aims
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::results;

    #[test]
    fn aims_are_there_whether_measured_or_not() {
        let aims = aims(&results());
        let find = |what: &str| aims.iter().find(|aim| aim.what == what).unwrap_or_else(|| panic!("{what}"));
        let wire = find("`wire`, jit");
        assert_eq!((wire.most, wire.reached()), (60.0, Some(true)));
        assert_eq!(find("`wire`, rust").reached(), None);
        assert!(find("`ports-256`, jit").measured.as_ref().unwrap_err().contains("ports"));
        for what in ["`acl-100` alone, to rte_acl", "a change of `lpm`, 99 of 100", "ports, instructions"] {
            assert_eq!(find(what).reached(), None);
        }
    }
}
