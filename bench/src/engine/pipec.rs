//! This dataplane: `pipec run`, or the program that `pipec build` makes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::{Engine, Kind, Sample, Setup};
use crate::artifacts::Artifacts;
use crate::machine::Machine;
use crate::process::{self, Process};
use crate::workload::{self, Files};
use crate::{Error, latency};

/// How the program is carried.
enum Carrier {
    /// Machine code in memory, by this `pipec` or by the workspace's.
    Jit(Option<PathBuf>),
    /// A program built from generated Rust.
    Rust,
    /// The firewall written by hand.
    Hand,
}

/// The engine.
pub struct Pipec {
    carrier: Carrier,
    /// What is compiled ahead of time is compiled for this processor, or else for the one at hand.
    target_cpu: Option<&'static str>,
    /// Processors to forward on.
    workers: u32,
    program: PathBuf,
}

impl Pipec {
    /// The engine of this kind, if it is one of ours.
    pub fn of(kind: &Kind) -> Option<Pipec> {
        let carrier = match kind {
            Kind::Jit | Kind::JitTwo => Carrier::Jit(None),
            Kind::Other(path) => Carrier::Jit(Some(path.clone())),
            Kind::Rust => Carrier::Rust,
            Kind::Hand => Carrier::Hand,
            _ => return None,
        };
        let workers = if *kind == Kind::JitTwo { 2 } else { 1 };
        Some(Pipec { carrier, target_cpu: None, workers, program: PathBuf::new() })
    }

    /// The engine, compiled for this processor where it is compiled ahead of time.
    #[must_use]
    pub fn compiled_for(self, processor: Option<&'static str>) -> Pipec {
        Pipec { target_cpu: processor, ..self }
    }

    /// Builds what is carried ahead of time.
    ///
    /// # Errors
    /// When it cannot be built, or is not there.
    pub fn build(&mut self, artifacts: &Artifacts, files: &Files) -> Result<(), Error> {
        match &self.carrier {
            Carrier::Jit(None) => self.program = artifacts.pipec.clone(),
            Carrier::Jit(Some(path)) if !path.is_file() => {
                return Err(Error::Failed(format!("{}: no such file; name a `pipec` that is built", path.display())));
            }
            Carrier::Jit(Some(path)) => self.program = path.clone(),
            Carrier::Hand => match files.workload.kind {
                workload::Kind::Firewall { .. } => self.program = artifacts.hand.clone(),
                _ => return Err(Error::NotApplicable),
            },
            Carrier::Rust => {
                self.program = files.folder.join("program");
                let ports = files.workload.ports().to_string();
                let mut command = Command::new(&artifacts.pipec);
                command.arg("build").arg(&files.rules).arg("-o").arg(&self.program).args(["--ports", &ports]);
                command.args(self.target_cpu.into_iter().flat_map(|processor| ["--target-cpu", processor]));
                process::run(&mut command)?;
            }
        }
        Ok(())
    }

    /// The program to start, once it is built.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// What to start it with, to run a workload for a time.
    pub fn arguments(&self, artifacts: &Artifacts, files: &Files, cpus: &str, time: Duration) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        if let Carrier::Jit(_) = self.carrier {
            args.extend(["run".into(), files.rules.clone().into()]);
        }
        for (i, device) in files.devices().iter().enumerate() {
            args.extend(["--port".into(), format!("{}={}", i + 1, port(device)).into()]);
        }
        args.extend(["--eal", "-d", "--eal"].map(Into::into));
        args.push(artifacts.plugin.clone().into());
        let time = time.as_secs_f64().to_string();
        args.extend(["--cpus", cpus, "--secs", &time, "--stats", "json", "--quiet"].map(Into::into));
        args
    }
}

/// A device as `--port` has it. A ring is said to be one, since each of its queues is polled where it was sent on.
fn port(device: &str) -> &str {
    if device.starts_with("net_ring") { "ring" } else { device }
}

/// Packets received and sent, and the seconds, of what a run printed.
///
/// # Errors
/// When it is not what `--stats json` prints.
pub fn counts(text: &str) -> Result<(u64, u64, f64), Error> {
    let stats: Stats = serde_json::from_str(text)
        .map_err(|error| Error::Failed(format!("pipec: its statistics cannot be read: {error}: {text}")))?;
    let sum = |count: fn(&PortStats) -> u64| stats.ports.iter().map(count).sum();
    Ok((sum(|port| port.rx_packets), sum(|port| port.tx_packets), stats.seconds))
}

/// What `--stats json` prints, as far as it is read here.
#[derive(Deserialize)]
struct Stats {
    seconds: f64,
    ports: Vec<PortStats>,
}

#[derive(Deserialize)]
struct PortStats {
    rx_packets: u64,
    tx_packets: u64,
}

impl Engine for Pipec {
    fn name(&self) -> String {
        match &self.carrier {
            Carrier::Jit(None) if self.workers > 1 => format!("jit-{}", self.workers),
            Carrier::Jit(None) => "jit".to_string(),
            Carrier::Jit(Some(path)) => path.display().to_string(),
            Carrier::Rust => "rust".to_string(),
            Carrier::Hand => "hand".to_string(),
        }
    }

    fn prepare(&mut self, setup: &Setup, files: &Files) -> Result<(), Error> {
        if self.workers > 1 && setup.machine.cpu == setup.machine.other_cpu {
            return Err(Error::Missing("a second processor".to_string()));
        }
        self.build(&setup.artifacts, files)
    }

    fn measure(&self, setup: &Setup, files: &Files) -> Result<Sample, Error> {
        let mut command = self.command(setup, files, setup.measured);
        command.args(["--warm", &setup.warm.as_secs_f64().to_string()]);
        let mut process = Process::start("pipec", &mut command, &files.folder, &setup.stop)?;
        process.wait_for_frames(files.receiving)?;
        let share = setup.share(|| process.busy())?;
        let (received, sent, seconds) = counts(&process.finish()?)?;
        Ok(Sample { received, sent, seconds, share })
    }

    fn latency(&self, setup: &Setup, files: &Files) -> Result<latency::Figures, Error> {
        let mut command = self.command(setup, &files.through_rings(), latency::PATIENCE);
        latency::ask(&mut command, setup);
        latency::wait(&mut Process::start("pipec", &mut command, &files.folder, &setup.stop)?)
    }
}

impl Pipec {
    /// What to start, to run a workload for a time.
    fn command(&self, setup: &Setup, files: &Files, time: Duration) -> Command {
        let Machine { cpu, other_cpu, .. } = setup.machine;
        let cpus = if self.workers > 1 { format!("{cpu},{other_cpu}") } else { cpu.to_string() };
        let mut command = Command::new(&self.program);
        command.args(self.arguments(&setup.artifacts, files, &cpus, time)).env("REPLAY_DIR", &files.folder);
        command
    }
}
