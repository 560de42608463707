//! Latency: how long packets take through ring ports at half of what the engine takes.
//!
//! In: engines, workloads. Out: for each the capacity over ring ports, and quantiles at half of it. Never: a figure that waits
//! for the one before; the traffic source (`replay/src/latency.rs`) counts from the time a packet was due.

use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::engine::{Kind, Setup};
use crate::process::Process;
use crate::workload::{Files, Workload};

/// How long an engine is left running at the most, for the traffic source to say what it measured.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// What the traffic source says before its figures.
const SAID: &str = "replay: latency {";
/// Where a smaller share of the attempts found the ring full, the traffic source was the bottleneck.
const FULL: f64 = 0.2;

/// Nanoseconds that so many packets of a hundred, or of a thousand, took at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "a field's name says which")]
pub struct Quantiles {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p999: u64,
    pub max: u64,
}

/// What one run measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Packets a second that the engine took as fast as it could.
    pub capacity: f64,
    /// The share of attempts at which there was no room then.
    pub full: f64,
    /// Packets a second at which latency was measured.
    pub rate: f64,
    /// Packets that were sent at that rate.
    pub sent: u64,
    /// Packets that came back.
    pub back: u64,
    /// How long they took from when they were due.
    pub latency: Quantiles,
    /// How long after that they were put into the ring.
    pub late: Quantiles,
}

impl Figures {
    /// Whether the traffic source could not send as much as the engine takes.
    pub fn source_bound(&self) -> bool {
        self.full < FULL
    }
}

/// One engine on one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload.
    pub workload: String,
    /// The engine.
    pub engine: String,
    /// Each round.
    pub rounds: Vec<Figures>,
}

impl Row {
    /// The round whose 99th percentile is in the middle.
    pub fn median(&self) -> Option<&Figures> {
        let mut rounds: Vec<&Figures> = self.rounds.iter().collect();
        rounds.sort_by_key(|figures| figures.latency.p99);
        rounds.get(rounds.len().saturating_sub(1) / 2).copied()
    }
}

/// Has the plug-in of a command measure latency, from the processor that does not forward.
pub(crate) fn ask(command: &mut Command, setup: &Setup) {
    let asked = format!("{},{}", setup.measured.as_secs_f64(), setup.machine.other_cpu);
    command.env("REPLAY_LATENCY", asked);
}

/// Waits for what the plug-in of a process says.
pub(crate) fn wait(process: &mut Process) -> Result<Figures, Error> {
    process.wait_for("its latency was measured", |_, log| figures(log))
}

/// The figures of a log, once their line is whole.
fn figures(log: &str) -> Option<Figures> {
    let from = log.find(SAID)? + SAID.len() - 1;
    let line = log[from..].split_once('\n')?.0;
    serde_json::from_str(line).ok()
}

/// Measures each of these engines on each workload, in alternation; `tell` hears of each step. What cannot be measured is
/// left out, with a word in the second result.
///
/// # Errors
/// When a workload cannot be written, or the user wants to stop.
pub fn measure(
    setup: &Setup,
    workloads: &[Workload],
    kinds: &[Kind],
    rounds: u32,
    tell: &mut dyn FnMut(&str),
) -> Result<(Vec<Row>, Vec<String>), Error> {
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    if setup.machine.cpu == setup.machine.other_cpu {
        return Ok((rows, vec!["latency: a second processor, for the traffic source, is missing".to_string()]));
    }
    for workload in workloads {
        let files = Files::write(*workload, &setup.artifacts.folder)?;
        let mut engines = Vec::new();
        for kind in kinds {
            let mut engine = kind.engine();
            match engine.prepare(setup, &files) {
                Ok(()) => engines.push((engine, Vec::new())),
                Err(Error::NotApplicable) => {}
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => left_out.push(format!("latency of {} on {workload}: {error}", engine.name())),
            }
        }
        for round in 1..=rounds {
            for (engine, figures) in &mut engines {
                match engine.latency(setup, &files) {
                    Ok(found) => {
                        let Quantiles { p50, p99, .. } = found.latency;
                        let name = engine.name();
                        tell(&format!(
                            "latency on {workload}, round {round} of {rounds}: {name} {p50} ns, 99 %: {p99} ns"
                        ));
                        figures.push(found);
                    }
                    Err(Error::NotApplicable) => {}
                    Err(_) if setup.stop.asked() => return Err(Error::Interrupted),
                    Err(error) => left_out.push(format!("latency of {} on {workload}: {error}", engine.name())),
                }
            }
        }
        let measured = engines.into_iter().filter(|(_, figures)| !figures.is_empty());
        rows.extend(measured.map(|(engine, rounds)| Row {
            workload: workload.to_string(),
            engine: engine.name(),
            rounds,
        }));
    }
    Ok((rows, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"replay: latency is measured
replay: latency {"capacity": 10, "full": 0.9, "rate": 5, "sent": 3, "back": 2, "latency": {"p50": 1, "p90": 2, "p99": 3, "p999": 4, "max": 5}, "late": {"p50": 0, "p90": 0, "p99": 0, "p999": 0, "max": 1}}"#;

    #[test]
    fn figures_are_read_when_their_line_is_whole() {
        assert_eq!(figures(LINE), None);
        let found = figures(&format!("{LINE}\n")).unwrap();
        assert_eq!((found.back, found.latency.p999, found.late.max), (2, 4, 1));
        assert!(!found.source_bound());
    }

    #[test]
    fn the_median_round_is_one_of_them() {
        let figures = figures(&format!("{LINE}\n")).unwrap();
        let round = |p99| Figures { latency: Quantiles { p99, ..figures.latency }, ..figures };
        let row = Row { workload: "wire".into(), engine: "jit".into(), rounds: vec![round(9), round(2), round(5)] };
        assert_eq!(row.median().unwrap().latency.p99, 5);
        assert!(Row { rounds: vec![], ..row }.median().is_none());
    }
}
