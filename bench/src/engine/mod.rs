//! Engines: the dataplanes that are measured. One file each.
//!
//! In: a workload on disk, how long to warm and to measure. Out: a [`Sample`] of a process that was started for it and is gone
//! again. All run on two `net_null` ports that receive the workload's frames, with one thread on one processor.

mod floor;
mod ovs;
mod pipec;
mod swx;
mod testpmd;

pub use pipec::{Pipec, counts};

use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use crate::artifacts::Artifacts;
use crate::machine::Machine;
use crate::process::{self, Busy, Stop};
use crate::workload::Files;
use crate::{Error, latency};

/// How often to look whether an engine has the processor.
const LOOK: Duration = Duration::from_millis(50);

/// What engines are run with.
#[derive(Debug)]
pub struct Setup {
    /// The machine.
    pub machine: Machine,
    /// What was built.
    pub artifacts: Artifacts,
    /// How long an engine runs before it is measured, once its ports have their frames.
    pub warm: Duration,
    /// How long it is measured.
    pub measured: Duration,
    /// Whether the user wants to stop.
    pub stop: Stop,
}

impl Setup {
    /// Waits for the end of the warm-up and of the measurement; the share of the processor that the engine had in between.
    fn share(&self, busy: impl Fn() -> Busy) -> Result<f64, Error> {
        self.stop.wait(self.warm)?;
        self.share_from_now(busy)
    }

    /// Waits for the end of a measurement that begins now; the share of the processor that the engine had.
    fn share_from_now(&self, busy: impl Fn() -> Busy) -> Result<f64, Error> {
        let (start, before) = (Instant::now(), busy());
        let mut looks = Vec::new();
        while start.elapsed() < self.measured {
            self.stop.wait(LOOK.min(self.measured.saturating_sub(start.elapsed())))?;
            looks.push(busy()); // it may be gone before the end
        }
        Ok(process::share(&before, &looks))
    }
}

/// What one run of an engine measured.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sample {
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// How long that took.
    pub seconds: f64,
    /// The share of that time in which the engine had the processor.
    pub share: f64,
}

/// A dataplane.
pub trait Engine {
    /// Its name, as users say it and the report shows it.
    fn name(&self) -> String;

    /// Builds what it needs for a workload, so that a run does not wait for it.
    ///
    /// # Errors
    /// When it does not apply, is not installed, or cannot be built.
    fn prepare(&mut self, setup: &Setup, files: &Files) -> Result<(), Error>;

    /// Starts, warms, measures and stops it.
    ///
    /// # Errors
    /// When it fails.
    fn measure(&self, setup: &Setup, files: &Files) -> Result<Sample, Error>;

    /// Starts it on ring ports, measures how long packets take, and stops it.
    ///
    /// # Errors
    /// When it cannot, or fails.
    fn latency(&self, _setup: &Setup, _files: &Files) -> Result<latency::Figures, Error> {
        Err(Error::NotApplicable)
    }
}

/// Which engines there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ours, compiled in memory.
    Jit,
    /// The same with two workers.
    JitTwo,
    /// Ours, compiled ahead of time.
    Rust,
    /// Ours, compiled in memory by the `pipec` of this path: another version, to compare with.
    Other(PathBuf),
    /// DPDK's testpmd, forwarding by this mode.
    Testpmd(&'static str),
    /// The same with two forwarding threads.
    TestpmdTwo(&'static str),
    /// Open vSwitch with DPDK, with its signature-match cache or without.
    Ovs(Smc),
    /// The firewall written by hand, on our runtime.
    Hand,
    /// DPDK's SWX pipeline.
    Swx,
    /// The hand-written C program.
    Floor,
}

/// Whether Open vSwitch uses its signature-match cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smc {
    /// Yes.
    On,
    /// No, as it comes.
    Off,
}

impl Kind {
    /// Those measured unless the user says otherwise.
    pub fn all() -> Vec<Kind> {
        vec![
            Kind::Floor,
            Kind::Testpmd("io"),
            Kind::Testpmd("macswap"),
            Kind::Jit,
            Kind::Rust,
            Kind::Ovs(Smc::Off),
            Kind::Swx,
        ]
    }

    /// The engine.
    pub fn engine(&self) -> Box<dyn Engine> {
        if let Some(ours) = Pipec::of(self) {
            return Box::new(ours);
        }
        match self {
            Kind::Testpmd(mode) => Box::new(testpmd::Testpmd::new(mode, 1)),
            Kind::TestpmdTwo(mode) => Box::new(testpmd::Testpmd::new(mode, 2)),
            Kind::Ovs(smc) => Box::new(ovs::Ovs::new(*smc)),
            Kind::Swx => Box::new(swx::Swx::default()),
            _ => Box::new(floor::Floor::default()),
        }
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Kind, String> {
        Ok(match name {
            "jit" => Kind::Jit,
            "jit-2" => Kind::JitTwo,
            "io-2" => Kind::TestpmdTwo("io"),
            "rust" => Kind::Rust,
            "io" => Kind::Testpmd("io"),
            "macswap" => Kind::Testpmd("macswap"),
            "ovs" => Kind::Ovs(Smc::Off),
            "ovs-smc" => Kind::Ovs(Smc::On),
            "floor" => Kind::Floor,
            "swx" => Kind::Swx,
            "hand" => Kind::Hand,
            path if path.contains('/') => Kind::Other(PathBuf::from(path)),
            _ => {
                return Err(format!(
                    "expected floor, io, io-2, macswap, hand, jit, jit-2, rust, ovs, ovs-smc, swx or the path of another `pipec`, found `{name}`"
                ));
            }
        })
    }
}

/// The number behind the first `key` in a text, past spaces, equals signs and colons.
fn number_after(text: &str, key: &str) -> Option<f64> {
    let rest = text[text.find(key)? + key.len()..].trim_start_matches([' ', '\t', ':', '=']);
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_named_as_they_are_shown() {
        for kind in Kind::all().into_iter().chain([
            Kind::JitTwo,
            Kind::TestpmdTwo("io"),
            Kind::Ovs(Smc::On),
            Kind::Other("./pipec".into()),
        ]) {
            assert_eq!(kind.engine().name().parse::<Kind>(), Ok(kind));
        }
        assert!("vpp".parse::<Kind>().unwrap_err().contains("ovs-smc"));
    }

    #[test]
    fn numbers_are_found() {
        assert_eq!(number_after("  RX-packets: 334      RX-dropped: 0", "RX-packets"), Some(334.0));
        assert_eq!(number_after("duration:  1.5 s", "duration"), Some(1.5));
        assert_eq!(number_after("none", "RX-packets"), None);
        assert_eq!(number_after("RX-packets: many", "RX-packets"), None);
    }
}
