//! DPDK's own forwarder: what a packet costs that nobody looks at (`io`), and one whose addresses are swapped (`macswap`).

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use super::{Engine, Sample, Setup, number_after};
use crate::artifacts::{find, missing};
use crate::process::Process;
use crate::workload::{Files, Kind};
use crate::{Error, latency};

/// The line above the counts of all ports.
const ALL_PORTS: &str = "Accumulated forward statistics for all ports";

/// The engine.
pub struct Testpmd {
    mode: &'static str,
    workers: u32,
    program: PathBuf,
}

impl Testpmd {
    /// Forwarding by this mode with so many threads.
    pub fn new(mode: &'static str, workers: u32) -> Testpmd {
        Testpmd { mode, workers, program: PathBuf::new() }
    }
}

impl Engine for Testpmd {
    fn name(&self) -> String {
        if self.workers > 1 { format!("{}-{}", self.mode, self.workers) } else { self.mode.to_string() }
    }

    fn prepare(&mut self, setup: &Setup, files: &Files) -> Result<(), Error> {
        let looks_at_nothing =
            self.mode == "io" && matches!(files.workload.kind, Kind::Firewall { .. } | Kind::Acl { .. });
        if files.workload.kind != Kind::Wire && !looks_at_nothing {
            return Err(Error::NotApplicable); // it forwards whatever comes
        }
        if setup.machine.cpu == setup.machine.other_cpu {
            return Err(Error::Missing("a second processor, for its command line".to_string()));
        }
        self.program = find("dpdk-testpmd").ok_or_else(|| missing("dpdk-testpmd", "dpdk-dev"))?;
        Ok(())
    }

    fn measure(&self, setup: &Setup, files: &Files) -> Result<Sample, Error> {
        let mut process = Process::start("testpmd", &mut self.command(setup, files), &files.folder, &setup.stop)?;
        say(&mut process, "start")?;
        process.wait_for_frames(files.receiving)?;
        setup.stop.wait(setup.warm)?;
        say(&mut process, "clear fwd stats all")?;
        let start = Instant::now();
        let share = setup.share_from_now(|| process.busy())?;
        say(&mut process, "show fwd stats all")?;
        let seconds = start.elapsed().as_secs_f64();
        say(&mut process, "quit")?;
        let text = process.finish()?; // only now it writes out what it has to say
        let (received, sent) =
            counts(&text).ok_or_else(|| Error::Failed(format!("testpmd: its counts cannot be read: {text}")))?;
        Ok(Sample { received, sent, seconds, share })
    }

    fn latency(&self, setup: &Setup, files: &Files) -> Result<latency::Figures, Error> {
        let mut command = self.command(setup, &files.through_rings());
        latency::ask(&mut command, setup);
        let mut process = Process::start("testpmd", &mut command, &files.folder, &setup.stop)?;
        say(&mut process, "start")?;
        latency::wait(&mut process)
    }
}

impl Testpmd {
    /// What to start.
    fn command(&self, setup: &Setup, files: &Files) -> Command {
        let machine = &setup.machine;
        let mut command = Command::new(&self.program);
        let second = if self.workers > 1 { format!(",2@{}", machine.other_cpu) } else { String::new() };
        command.args(["--lcores", &format!("0@{},1@{}{second}", machine.other_cpu, machine.cpu)]);
        command.args(["--main-lcore", "0", "--no-pci", "--no-telemetry"]).args(machine.memory());
        command.arg("-d").arg(&setup.artifacts.plugin);
        command.args(files.devices().iter().flat_map(|device| ["--vdev", device]));
        command.args(["--", "-i", "--total-num-mbufs=16384"]);
        command.args(["--nb-cores", "--rxq", "--txq"].map(|option| format!("{option}={}", self.workers)));
        command.arg(format!("--forward-mode={}", self.mode)).env("REPLAY_DIR", &files.folder);
        command
    }
}

/// Types a command.
fn say(process: &mut Process, command: &str) -> Result<(), Error> {
    let stdin = process.stdin().ok_or_else(|| Error::Failed("testpmd has no standard input".to_string()))?;
    writeln!(stdin, "{command}").map_err(|error| Error::Failed(format!("testpmd does not listen: {error}")))
}

/// Packets received and sent by all ports together, of what `show fwd stats all` prints.
fn counts(text: &str) -> Option<(u64, u64)> {
    let all = &text[text.find(ALL_PORTS)?..];
    Some((number_after(all, "RX-packets")? as u64, number_after(all, "TX-packets")? as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_all_ports() {
        let text = "  ---- Forward statistics for port 0  ----
  RX-packets: 33         RX-dropped: 0             RX-total: 33
  TX-packets: 34         TX-dropped: 0             TX-total: 34
  +++++++++++++++ Accumulated forward statistics for all ports+++++++++++++++
  RX-packets: 66953600       RX-dropped: 0             RX-total: 66953600
  TX-packets: 66953632       TX-dropped: 0             TX-total: 66953632
";
        assert_eq!(counts(text), Some((66_953_600, 66_953_632)));
        assert_eq!(counts("testpmd>"), None);
    }
}
