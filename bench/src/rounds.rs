//! Engines in alternation: every round runs each once, so that what disturbs the machine for a while disturbs all.
//!
//! In: workloads, engines, how many rounds. Out: samples, and what could not be measured and why. Never: a verdict.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::engine::{Engine, Kind, Sample, Setup};
use crate::workload::{Files, MOST_PORTS, Workload};

/// What one engine measured on one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The workload.
    pub workload: Workload,
    /// The engine.
    pub engine: String,
    /// One for each round, at least one.
    pub samples: Vec<Sample>,
}

/// What became of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// What was measured, in the order asked for.
    pub measured: Vec<Measured>,
    /// Engines left out, and why; each reason once.
    pub skipped: Vec<String>,
    /// Engines that failed, and how.
    pub failed: Vec<String>,
}

/// Measures every engine on every workload, which is made now or lies `elsewhere`; `tell` hears of each step.
///
/// # Errors
/// When workloads cannot be written or are not there, or the user wants to stop.
pub fn measure(
    setup: &Setup,
    workloads: &[Workload],
    elsewhere: Option<&Path>,
    kinds: &[Kind],
    rounds: u32,
    tell: &mut dyn FnMut(&str),
) -> Result<Outcome, Error> {
    let mut outcome = Outcome::default();
    for workload in workloads {
        if workload.ports() > MOST_PORTS {
            let message = format!("ports of {workload} past {MOST_PORTS}, which is all that DPDK takes here");
            tell(&format!("skipped: {message}"));
            outcome.skipped.push(message);
        }
        let files = match elsewhere {
            Some(folder) => Files::found(*workload, folder, &setup.artifacts.folder)?,
            None => Files::write(*workload, &setup.artifacts.folder)?,
        };
        let mut runs = prepare(setup, &files, kinds, &mut outcome, tell)?;
        for round in 1..=rounds {
            let mut left = Vec::new();
            for (engine, mut samples) in runs {
                match engine.measure(setup, &files) {
                    Ok(sample) => {
                        let cycles = sample.cycles(setup.machine.tsc_hz);
                        tell(&format!("{workload}, round {round} of {rounds}: {} {cycles:.1}", engine.name()));
                        samples.push(sample);
                        left.push((engine, samples));
                    }
                    Err(Error::Interrupted) => return Err(Error::Interrupted),
                    Err(_) if setup.stop.asked() => return Err(Error::Interrupted), // it heard of it first
                    Err(error) => outcome.failed.push(format!("{} on {workload}: {error}", engine.name())),
                }
            }
            runs = left;
        }
        let measured = runs.into_iter().filter(|(_, samples)| !samples.is_empty());
        outcome.measured.extend(measured.map(|(engine, samples)| Measured {
            workload: *workload,
            engine: engine.name(),
            samples,
        }));
    }
    Ok(outcome)
}

/// An engine, and what it has measured.
type Run = (Box<dyn Engine>, Vec<Sample>);

/// The engines that apply to a workload and are there.
fn prepare(
    setup: &Setup,
    files: &Files,
    kinds: &[Kind],
    outcome: &mut Outcome,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Run>, Error> {
    let mut runs = Vec::new();
    for kind in kinds {
        setup.stop.wait(std::time::Duration::ZERO)?;
        let mut engine = kind.engine();
        match engine.prepare(setup, files) {
            Ok(()) => runs.push((engine, Vec::new())),
            Err(Error::NotApplicable) => {}
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(Error::Missing(why)) => {
                let message = format!("{}: {why}", engine.name());
                if !outcome.skipped.contains(&message) {
                    tell(&format!("skipped: {message}"));
                    outcome.skipped.push(message);
                }
            }
            Err(error) => outcome.failed.push(format!("{} on {}: {error}", engine.name(), files.workload)),
        }
    }
    Ok(runs)
}

impl Outcome {
    /// Takes in what became of another workload.
    pub fn add(&mut self, other: Outcome) {
        self.measured.extend(other.measured);
        self.failed.extend(other.failed);
        for line in other.skipped {
            if !self.skipped.contains(&line) {
                self.skipped.push(line);
            }
        }
    }
}

impl Sample {
    /// Cycles of the time-stamp counter that a packet took.
    pub fn cycles(&self, tsc_hz: f64) -> f64 {
        tsc_hz * self.seconds * self.share / self.received.max(1) as f64
    }

    /// Packets sent for each that was received.
    pub fn sent_share(&self) -> f64 {
        self.sent as f64 / self.received.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_those_the_engine_had() {
        let sample = Sample { received: 1_000_000, sent: 500_000, seconds: 0.1, share: 0.5 };
        assert!((sample.cycles(2e9) - 100.0).abs() < 1e-9);
        assert!((sample.sent_share() - 0.5).abs() < 1e-9);
    }
}
