//! What `pipec-bench results` measures, and about how long that takes.
//!
//! In: whether there is little time, engines that the user named. Out: jobs, in order. Never: a measurement.

use std::fmt;
use std::time::Duration;

use pipec_bench::engine::Kind;
use pipec_bench::targets::target;
use pipec_bench::workload::{self, Size, Workload};
use pipec_bench::{Error, live, lookups, updates};

use super::latency;

/// What is forwarded.
const FORWARDED: &[&str] = &[
    "wire",
    "wire@512",
    "wire@1518",
    "wire@imix",
    "ports-2",
    "ports-16",
    "ports-32",
    "flood-1",
    "flood-4",
    "firewall-1",
    "firewall-100",
    "firewall-1000",
    "firewall-10000",
    "firewall-100000",
    "fwtcp-1000",
    "classes-1000-20",
    "classes-10000-20",
    "classes-100000-1",
    "classes-100000-20",
    "classes-1000000-20",
    "l2-10",
    "l2-1000",
    "l2-100000",
    "l3-1000",
    "l3-10000",
    "acl-1",
    "acl-100",
    "acl-1000",
    "acl-10000",
    "random-1000",
    "attack-1000",
    "strangers-1000",
    "collide-1000",
    "gwlb-100-universal",
    "gwlb-100-goto",
    "access-1000",
];
/// Of what instructions are counted.
const COUNTED: &[&str] = &[
    "wire",
    "ports-2",
    "ports-16",
    "ports-32",
    "firewall-1000",
    "classes-10000-1",
    "classes-10000-5",
    "classes-10000-20",
    "l2-1000",
    "l3-1000",
    "acl-1000",
    "random-1000",
    "attack-1000",
    "strangers-1000",
    "collide-1000",
    "gwlb-100-universal",
    "gwlb-100-goto",
];
/// What is forwarded with two workers, too.
const SHARED: &[&str] = &["wire", "firewall-1000", "acl-1000"];
/// How long an engine is measured and warmed, each time.
const MEASURED: Duration = Duration::from_millis(600);
const WARM: Duration = Duration::from_millis(500);
/// How much longer one is warmed for each frame of the workload: a pass over all of them, and more.
const WARM_A_FRAME: Duration = Duration::from_nanos(400);
/// Rounds of everything.
const ROUNDS: u32 = 3;

/// One thing to measure. As text it is what the user sees, and its name among what was measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    /// Instructions a packet.
    Instructions(Workload),
    /// From source to packets.
    Live(&'static str),
    /// Cycles a packet, of these engines.
    Forward(Workload, Vec<Kind>),
    /// Latency.
    Latency(Workload, Vec<Kind>),
    /// Changes of tables.
    Updates(updates::Kind),
    /// Look-ups alone.
    Lookups(&'static str),
    /// New connections, by the tracker alone.
    Connections,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Job::Instructions(workload) => write!(f, "instructions of {workload}"),
            Job::Live(program) => write!(f, "from source to packets: {program}"),
            Job::Forward(workload, _) => write!(f, "cycles of {workload}"),
            Job::Latency(workload, _) => write!(f, "latency of {workload}"),
            Job::Updates(kind) => write!(f, "changes of a table: {}", kind.name()),
            Job::Lookups(set) => write!(f, "look-ups: {set}"),
            Job::Connections => write!(f, "new connections"),
        }
    }
}

/// All jobs, and the pace that they are done at.
#[derive(Debug)]
pub struct Schedule {
    /// In order.
    pub jobs: Vec<Job>,
    /// How often each is measured.
    pub rounds: u32,
    /// How long, each time.
    pub time: Duration,
    warm: Duration,
}

impl Schedule {
    /// Everything, or with `quick` a little of it, with these engines or, if there are none, all that apply.
    ///
    /// # Errors
    /// When a name is none.
    pub fn new(quick: bool, given: &[Kind]) -> Result<Schedule, Error> {
        let mut jobs = Vec::new();
        let some = |names: &'static [&'static str], few: &'static [&'static str]| if quick { few } else { names };
        for name in some(COUNTED, &["wire"]) {
            jobs.push(Job::Instructions(workload(name)?));
        }
        for (program, _) in live::AIMS.iter().take(if quick { 2 } else { usize::MAX }) {
            jobs.push(Job::Live(program));
        }
        for name in some(FORWARDED, &["wire", "l2-10", "l2-1000", "firewall-100"]) {
            let workload = workload(name)?;
            let engines = if given.is_empty() { engines(workload)? } else { given.to_vec() };
            jobs.push(Job::Forward(workload, engines));
        }
        for name in some(&latency::WORKLOADS, &["wire"]) {
            let engines = if given.is_empty() { latency::engines() } else { given.to_vec() };
            jobs.push(Job::Latency(workload(name)?, engines));
        }
        let kinds = [updates::Kind::Exact, updates::Kind::Lpm, updates::Kind::Acl];
        jobs.extend(kinds.into_iter().take(if quick { 1 } else { 3 }).map(Job::Updates));
        jobs.extend(some(lookups::SETS, &["acl-100"]).iter().map(|set| Job::Lookups(set)));
        jobs.push(Job::Connections);
        Ok(match quick {
            true => Schedule { jobs, rounds: 1, time: Duration::from_millis(200), warm: Duration::from_millis(200) },
            false => Schedule { jobs, rounds: ROUNDS, time: MEASURED, warm: WARM },
        })
    }

    /// How long an engine is warmed on a workload.
    pub fn warm(&self, workload: Workload) -> Duration {
        let grown = match workload.kind {
            workload::Kind::Firewall { streams: n, .. }
            | workload::Kind::Classes { flows: n, .. }
            | workload::Kind::L2 { entries: n }
            | workload::Kind::L3 { prefixes: n }
            | workload::Kind::Acl { rules: n, .. } => n,
            _ => 0,
        };
        self.warm + WARM_A_FRAME * (4 * grown).min(1 << 22)
    }

    /// About how long a job takes.
    pub fn estimate(&self, job: &Job) -> Duration {
        let rounds = self.rounds;
        match job {
            Job::Instructions(_) => Duration::from_secs(12),
            Job::Live(_) => Duration::from_secs(1),
            Job::Forward(workload, engines) => {
                let applying = engines.iter().filter(|kind| applies(kind, *workload));
                let start = |kind: &Kind| match kind {
                    Kind::Ovs(_) => Duration::from_millis(2500),
                    _ => Duration::from_millis(700),
                };
                let run = |kind: &Kind| (start(kind) + self.warm(*workload) + self.time) * rounds;
                let built = if engines.contains(&Kind::Rust) { Duration::from_secs(8) } else { Duration::ZERO };
                applying.map(run).sum::<Duration>() + built
            }
            Job::Latency(_, engines) => (self.time * 4 + Duration::from_secs(1)) * engines.len() as u32 * rounds,
            Job::Updates(_) => Duration::from_secs(4) + (self.time + Duration::from_millis(250)) * 4 * rounds,
            Job::Lookups("lpm-1000000") => Duration::from_secs(110), // DPDK's is built so slowly
            Job::Lookups(set) if set.contains('@') => Duration::from_secs(8),
            Job::Lookups(_) => Duration::from_secs(4),
            Job::Connections => Duration::from_secs(1),
        }
    }
}

fn workload(name: &str) -> Result<Workload, Error> {
    name.parse().map_err(Error::Failed)
}

/// The engines for a workload: ours, Open vSwitch and the floor on all, and those that say something about it.
fn engines(workload: Workload) -> Result<Vec<Kind>, Error> {
    let least = workload.size == Size::Least;
    let mut names = vec!["floor", "jit"];
    if target(workload).target.is_some() || matches!(workload.kind, workload::Kind::Firewall { .. }) {
        names.push("rust");
    }
    names.push("ovs");
    match workload.kind {
        workload::Kind::Wire if least => names.extend(["io", "macswap", "swx"]),
        workload::Kind::Firewall { .. } => names.push("hand"),
        workload::Kind::Classes { .. } => names.push("ovs-smc"),
        workload::Kind::L2 { .. } => names.push("swx"),
        // Of more rules its tables cannot be built.
        workload::Kind::Acl { traffic: workload::Traffic::Hits, rules: ..=1000 } => names.push("swx"),
        _ => {}
    }
    if SHARED.contains(&workload.to_string().as_str()) {
        names.extend(["io", "io-2", "jit-2"]);
    }
    let mut engines: Vec<Kind> = Vec::new();
    for name in names {
        let kind: Kind = name.parse().map_err(Error::Failed)?;
        if !engines.contains(&kind) {
            engines.push(kind);
        }
    }
    Ok(engines)
}

/// Whether a kind of engine is one for a workload, as far as that decides how long a job takes.
fn applies(kind: &Kind, workload: Workload) -> bool {
    let io = matches!(kind, Kind::Testpmd(_) | Kind::TestpmdTwo(_));
    !io || SHARED.contains(&workload.to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_takes_half_an_hour_at_most() {
        let time = |quick| {
            let schedule = Schedule::new(quick, &[]).unwrap();
            schedule.jobs.iter().map(|job| schedule.estimate(job)).sum::<Duration>()
        };
        assert!(time(false) <= Duration::from_secs(30 * 60), "{:?}", time(false));
        assert!(time(true) <= Duration::from_secs(3 * 60), "{:?}", time(true));
    }

    #[test]
    fn jobs_have_names_of_their_own() {
        let jobs = Schedule::new(false, &[]).unwrap().jobs;
        let names: std::collections::BTreeSet<String> = jobs.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), jobs.len());
    }

    #[test]
    fn what_has_an_aim_is_measured() {
        let forwarded: Vec<Workload> = FORWARDED.iter().map(|name| name.parse().unwrap()).collect();
        for name in pipec_bench::targets::names() {
            let workload: Workload = name.parse().unwrap();
            let is_too_many = workload.ports() > workload::MOST_PORTS;
            assert!(forwarded.contains(&workload) || is_too_many, "{name}");
        }
    }
}
