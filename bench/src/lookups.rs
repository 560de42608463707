//! Look-ups alone: `pipec-bench-lookups`, and the connection tracker with a new connection in every packet.
//!
//! In: names of sets. Out: times, memory and ratios of our structures and of DPDK's. Never: more than one set in a process.

use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::targets::SETS;
use crate::Error;
use crate::artifacts::Artifacts;
use crate::process::{Process, Stop};

#[path = "../lookups/src/targets.rs"]
mod targets;

/// How long a set may take: one of DPDK's structures takes minutes to be built.
const PATIENCE: Duration = Duration::from_secs(600);

/// Of a set with an order: keys enough for heavy hitters to be noticed, which must not all lie in the caches.
const ORDERED: [&str; 6] = ["--kinds", "bit-vector", "--trace", "262144", "--lookups", "4000000"];

/// What was measured of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Set {
    /// Its name, which ends with how many entries it has.
    pub set: String,
    /// DPDK's structures first, ours behind them.
    pub rows: Vec<Row>,
}

/// What was measured of a structure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub structure: String,
    /// Nanoseconds a key: the median of the rounds.
    pub ns: f64,
    /// The least of the rounds.
    pub least: f64,
    /// Bytes.
    pub memory: u64,
    /// Milliseconds from entries to a structure that answers.
    pub build_ms: f64,
    /// Microseconds to take one entry out and put it back, where it can.
    pub change_us: Option<f64>,
    /// Cache lines that a look-up reads at the most, where that is known.
    pub worst: Option<u32>,
    /// Keys for which it found another entry than the first structure.
    pub differ: u64,
}

impl Row {
    /// Whether it is one of DPDK's.
    pub fn is_dpdk(&self) -> bool {
        self.structure.starts_with("rte_")
    }
}

impl Set {
    /// How many entries it has.
    pub fn entries(&self) -> u64 {
        let plain = self.set.split('@').next().unwrap_or_default();
        plain.rsplit_once('-').and_then(|(_, n)| n.parse().ok()).unwrap_or(0)
    }

    /// Our fastest structure.
    pub fn ours(&self) -> Option<&Row> {
        self.rows.iter().filter(|row| !row.is_dpdk()).min_by(|a, b| a.ns.total_cmp(&b.ns))
    }

    /// Our fastest structure with heavy hitters in front, as a ratio to the same without.
    pub fn hot(&self) -> Option<f64> {
        let times = |row: &Row| {
            let plain = self.rows.iter().find(|plain| row.structure.strip_suffix(", hot") == Some(&plain.structure))?;
            Some(row.ns / plain.ns)
        };
        self.rows.iter().find_map(times)
    }

    /// DPDK's structure that ratios are of: the first, where it was built.
    pub fn peer(&self) -> Option<&Row> {
        self.rows.first().filter(|row| row.is_dpdk())
    }
}

/// Measures a set in a process of its own.
///
/// # Errors
/// When that fails.
pub fn measure(artifacts: &Artifacts, set: &str, rounds: u32, stop: &Stop) -> Result<Set, Error> {
    let mut command = Command::new(&artifacts.lookups);
    command.args([set, "--json", "--rounds", &rounds.to_string()]);
    if set.contains('@') {
        command.args(ORDERED);
    }
    let text = Process::start("lookups", &mut command, &artifacts.folder, stop)?.patiently(PATIENCE).finish()?;
    let line = text.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    serde_json::from_str(line)
        .map_err(|error| Error::Failed(format!("figures of {set} cannot be read: {error}: {text}")))
}

/// Cycles that the connection tracker takes for a packet that opens a connection.
///
/// # Errors
/// When it cannot be measured.
pub fn new_connections(artifacts: &Artifacts, stop: &Stop) -> Result<f64, Error> {
    let mut command = Command::new(&artifacts.tracker);
    command.args(["new", "100000"]);
    let text = Process::start("tracker", &mut command, &artifacts.folder, stop)?.finish()?;
    cycles(&text).ok_or_else(|| Error::Failed(format!("the tracker's cycles cannot be read: {text}")))
}

fn cycles(text: &str) -> Option<f64> {
    text.split_once("connections:")?.1.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_compared_with_the_first_of_dpdks() {
        let row = |structure: &str, ns| Row {
            structure: structure.into(),
            ns,
            least: ns,
            memory: 1,
            build_ms: 1.0,
            change_us: None,
            worst: None,
            differ: 0,
        };
        let rows = vec![row("Hash", 4.0), row("BitVector", 10.0), row("BitVector, hot", 8.0)];
        let set = Set { set: "acl-1000@zipf".into(), rows };
        assert_eq!((set.entries(), set.hot()), (1000, Some(0.8)));
        let rows = vec![row("rte_lpm", 4.0), row("rte_fib", 3.0), row("Lpm", 9.0), row("TupleSpace", 20.0)];
        let set = Set { set: "lpm-1000".into(), rows };
        assert_eq!((set.ours().unwrap().ns, set.peer().unwrap().ns, set.entries()), (9.0, 4.0, 1000));
        let alone = Set { set: "x".into(), rows: vec![row("Lpm", 9.0)] };
        assert!(alone.peer().is_none());
    }

    #[test]
    fn the_trackers_cycles_are_read() {
        let text = "new        100000 connections: 2498.0 cycles a packet (prepare  60.5, ct 2437.5)\n";
        assert_eq!(cycles(text), Some(2498.0));
        assert_eq!(cycles("nothing"), None);
    }
}
