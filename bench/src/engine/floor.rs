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
struct Counts {
    received: u64,
    sent: u64,
    seconds: f64,
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
        let text = process.finish()?;
        let counts = text.lines().find_map(|line| serde_json::from_str::<Counts>(line).ok());
        let Counts { received, sent, seconds } =
            counts.ok_or_else(|| Error::Failed(format!("floor: printed no counts: {text}")))?;
        Ok(Sample { received, sent, seconds, share })
    }
}
