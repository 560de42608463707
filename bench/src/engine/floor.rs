//! The hand-written C program, `bench/c/floor.c`.

use std::path::PathBuf;
use std::process::Command;

use serde::Deserialize;

use super::{Engine, Sample, Setup};
use crate::Error;
use crate::process::Process;
use crate::workload::{Files, Kind};

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

impl Engine for Floor {
    fn name(&self) -> String {
        "floor".to_string()
    }

    fn prepare(&mut self, setup: &Setup, _files: &Files) -> Result<(), Error> {
        self.program = setup.artifacts.floor()?;
        Ok(())
    }

    fn measure(&self, setup: &Setup, files: &Files) -> Result<Sample, Error> {
        let what = match files.workload.kind {
            Kind::Firewall { .. } => "firewall",
            _ => "wire", // what it costs to look at nothing
        };
        let mut command = Command::new(&self.program);
        command.args(["-l", &setup.machine.cpu.to_string(), "--no-pci", "--no-telemetry"]).args(setup.machine.memory());
        command.arg("-d").arg(&setup.artifacts.plugin);
        files.devices().iter().take(2).for_each(|device| {
            command.args(["--vdev", device]);
        });
        command.args(["--", what]);
        command.args([setup.warm, setup.measured].map(|time| time.as_secs_f64().to_string()));
        let mut process =
            Process::start("floor", command.env("REPLAY_DIR", &files.folder), &files.folder, &setup.stop)?;
        process.wait_for_frames(files.receiving)?;
        let share = setup.share(|| process.busy())?;
        let Counts { received, sent, seconds } = Counts::of("floor", &process.finish()?)?;
        Ok(Sample { received, sent, seconds, share })
    }
}
