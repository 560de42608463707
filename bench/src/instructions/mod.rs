//! Instructions a packet: exact where cycles are not, and the same on a busy machine as on a quiet one.
//!
//! In: a workload, one of our engines. Out: how many instructions its worker's loop ran for each packet, by callgrind. Never: a
//! time.
//!
//! The program runs under callgrind on the same ports and frames as when its cycles are measured, and callgrind counts what
//! lies below `Worker::run`: polling, the program, counters, sending. What DPDK's driver and the traffic source spend on a
//! packet is counted apart, since it is not ours.

mod callgrind;
pub mod series;
pub mod stored;

use std::process::Command;
use std::time::Duration;

use crate::Error;
use crate::artifacts::{Artifacts, find, missing};
use crate::engine::{Kind, Pipec, counts};
use crate::process::{Process, Stop};
use crate::workload::Files;

/// The function below which instructions are counted.
const LOOP: &str = "--toggle-collect=pipec_runtime::live::worker::Worker::run*";
/// What valgrind can run at most; its processors have no AVX-512.
const PROCESSOR: Option<&str> = if cfg!(target_arch = "x86_64") { Some("x86-64-v3") } else { None };
/// Compiling a hundred thousand rules takes long here.
const PATIENCE: Duration = Duration::from_secs(900);

/// What was counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Count {
    /// Instructions a packet, without the driver and the traffic source.
    pub ours: f64,
    /// Instructions a packet that these two took.
    pub driver: f64,
    /// Packets that were counted.
    pub packets: u64,
}

/// Whether there is what counts.
///
/// # Errors
/// When valgrind is not installed.
pub fn available() -> Result<(), Error> {
    find("valgrind").map(|_| ()).ok_or_else(|| missing("valgrind", "valgrind"))
}

/// Packets, at least: on a busy machine what happens once, such as new connections, would be too large a share of fewer.
const ENOUGH: u64 = 200_000;
/// How often a count is made again, for longer, because of too few packets.
const AGAIN: u32 = 3;

/// Counts a workload on one of our engines, for a time of callgrind's or as long as enough packets take.
///
/// # Errors
/// When the program cannot be built or run.
pub fn count(artifacts: &Artifacts, files: &Files, kind: &Kind, time: Duration, stop: &Stop) -> Result<Count, Error> {
    let mut engine = Pipec::of(kind).ok_or(Error::NotApplicable)?.compiled_for(PROCESSOR);
    engine.build(artifacts, files)?;
    let mut time = time;
    for _ in 0..AGAIN {
        let count = count_for(&engine, artifacts, files, time, stop)?;
        if count.packets >= ENOUGH {
            return Ok(count);
        }
        time = time.mul_f64((1.3 * ENOUGH as f64 / count.packets.max(1) as f64).min(20.0));
    }
    count_for(&engine, artifacts, files, time, stop)
}

/// One count.
fn count_for(
    engine: &Pipec,
    artifacts: &Artifacts,
    files: &Files,
    time: Duration,
    stop: &Stop,
) -> Result<Count, Error> {
    let profile = files.folder.join("profile");
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", LOOP]).arg(format!("--callgrind-out-file={}", profile.display()));
    command.arg(engine.program());
    command.args(engine.arguments(artifacts, files, "0", time)).args(["--eal", "--no-huge"]);
    command.env("REPLAY_DIR", &files.folder);
    let mut process = Process::start("callgrind", &mut command, &files.folder, stop)?.patiently(PATIENCE);
    process.wait_for_frames(files.receiving)?;
    let (packets, _, _) = counts(&process.finish()?)?;
    let spent = callgrind::read(&profile)?;
    let a_packet = |instructions: u64| instructions as f64 / packets.max(1) as f64;
    Ok(Count { ours: a_packet(spent.ours), driver: a_packet(spent.driver), packets })
}
