//! This dataplane: `pipec run`, or the program that `pipec build` makes.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use super::{Engine, Sample, Setup};
use crate::Error;
use crate::process::{self, Process};
use crate::workload::Files;

/// How the program is carried.
enum Carrier {
    /// Machine code in memory, by this `pipec` or by the workspace's.
    Jit(Option<PathBuf>),
    /// A program built from generated Rust.
    Rust,
}

/// The engine.
pub struct Pipec {
    carrier: Carrier,
    program: PathBuf,
}

impl Pipec {
    /// Compiled in memory, by this `pipec` or by the workspace's.
    pub fn jit(pipec: Option<PathBuf>) -> Pipec {
        Pipec { carrier: Carrier::Jit(pipec), program: PathBuf::new() }
    }

    /// Compiled ahead of time.
    pub fn rust() -> Pipec {
        Pipec { carrier: Carrier::Rust, program: PathBuf::new() }
    }
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
            Carrier::Jit(None) => "jit".to_string(),
            Carrier::Jit(Some(path)) => path.display().to_string(),
            Carrier::Rust => "rust".to_string(),
        }
    }

    fn prepare(&mut self, setup: &Setup, files: &Files) -> Result<(), Error> {
        match &self.carrier {
            Carrier::Jit(None) => self.program = setup.artifacts.pipec.clone(),
            Carrier::Jit(Some(path)) if !path.is_file() => {
                return Err(Error::Failed(format!("{}: no such file; name a `pipec` that is built", path.display())));
            }
            Carrier::Jit(Some(path)) => self.program = path.clone(),
            Carrier::Rust => {
                self.program = files.folder.join("program");
                let ports = files.workload.ports().to_string();
                let mut command = Command::new(&setup.artifacts.pipec);
                process::run(
                    command.arg("build").arg(&files.rules).arg("-o").arg(&self.program).args(["--ports", &ports]),
                )?;
            }
        }
        Ok(())
    }

    fn measure(&self, setup: &Setup, files: &Files) -> Result<Sample, Error> {
        let mut command = Command::new(&self.program);
        if let Carrier::Jit(_) = self.carrier {
            command.arg("run").arg(&files.rules);
        }
        for (i, device) in files.devices().iter().enumerate() {
            command.args(["--port", &format!("{}={device}", i + 1)]);
        }
        command.args(["--cpus", &setup.machine.cpu.to_string()]);
        command.args(["--eal", "-d", "--eal"]).arg(&setup.artifacts.plugin);
        command.args(["--warm", &setup.warm.as_secs_f64().to_string()]);
        command.args(["--secs", &setup.measured.as_secs_f64().to_string()]);
        command.args(["--stats", "json", "--quiet"]).env("REPLAY_DIR", &files.folder);
        let mut process = Process::start("pipec", &mut command, &files.folder, &setup.stop)?;
        process.wait_for_frames(files.receiving)?;
        let share = setup.share(|| process.busy())?;
        let text = process.finish()?;
        let stats: Stats = serde_json::from_str(&text)
            .map_err(|error| Error::Failed(format!("pipec: its statistics cannot be read: {error}: {text}")))?;
        let sum = |count: fn(&PortStats) -> u64| stats.ports.iter().map(count).sum();
        Ok(Sample {
            received: sum(|port| port.rx_packets),
            sent: sum(|port| port.tx_packets),
            seconds: stats.seconds,
            share,
        })
    }
}
