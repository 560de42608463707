//! The hand-written C program, `bench/c/floor.c`.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::{Engine, Sample, Setup};
use crate::process::Process;
use crate::workload::{Files, Kind};
use crate::{Error, latency};

/// The engine.
#[derive(Default)]
pub struct Floor {
    program: PathBuf,
}

/// What it prints.
#[derive(Deserialize)]
pub(super) struct Counts {
    pub received: u64,
    pub sent: u64,
    pub seconds: f64,
}

impl Counts {
    /// What a program of `bench/c` printed.
    pub fn of(name: &str, text: &str) -> Result<Counts, Error> {
        let counts = text.lines().find_map(|line| serde_json::from_str(line).ok());
        counts.ok_or_else(|| Error::Failed(format!("{name}: printed no counts: {text}")))
    }
}

impl Floor {
    /// What to start it with, to warm for the first time and count for the second.
    fn command(&self, setup: &Setup, files: &Files, times: [Duration; 2]) -> Command {
        let what = match files.workload.kind {
            Kind::Firewall { .. } => "firewall",
            _ => "wire", // what it costs to look at nothing
        };
        let mut command = Command::new(&self.program);
        command.args(["-l", &setup.machine.cpu.to_string(), "--no-pci", "--no-telemetry"]).args(setup.machine.memory());
        command.arg("-d").arg(&setup.artifacts.plugin);
        command.args(files.devices().iter().take(2).flat_map(|device| ["--vdev", device]));
        command.args(["--", what]).args(times.map(|time| time.as_secs_f64().to_string()));
        command.env("REPLAY_DIR", &files.folder);
        command
    }
}

impl Engine for Floor {
    fn name(&self) -> String {
        "floor".to_string()
    }

    fn prepare(&mut self, setup: &Setup, _files: &Files) -> Result<(), Error> {
        self.program = setup.artifacts.floor()?;
        Ok(())
    }

    fn measure(&self, setup: &Setup, files: &Files) -> Result<Sample, Error> {
        let mut command = self.command(setup, files, [setup.warm, setup.measured]);
        let mut process = Process::start("floor", &mut command, &files.folder, &setup.stop)?;
        process.wait_for_frames(files.receiving)?;
        let share = setup.share(|| process.busy())?;
        let Counts { received, sent, seconds } = Counts::of("floor", &process.finish()?)?;
        Ok(Sample { received, sent, seconds, share })
    }

    fn latency(&self, setup: &Setup, files: &Files) -> Result<latency::Figures, Error> {
        let mut command = self.command(setup, &files.through_rings(), [setup.warm, latency::PATIENCE]);
        latency::ask(&mut command, setup);
        latency::wait(&mut Process::start("floor", &mut command, &files.folder, &setup.stop)?)
    }
}
