//! Updates of open tables while packets are looked up in them: how long one takes, how many a second there can be, and what
//! they cost the packets.
//!
//! In: which kind of table, how many entries. Out: latencies, rates, cycles a packet with and without updates. Never: more than
//! one kind in a process, since DPDK starts only once in one.
//!
//! ```text
//! tables    the programs, the entries that frames hit, and others that come and go
//! driver    the writer's loop: put in, change, take out; at a pace or as fast as it goes
//! ```
//!
//! A worker forwards on its own processor over the same ports and traffic source as everywhere; the writer is another thread
//! on another processor.

mod driver;
mod tables;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fs, process, thread};

use pipec_runtime::io::dpdk::Eal;
use pipec_runtime::io::spec;
use pipec_runtime::live::{LiveOptions, run_live};
use pipec_runtime::stats::Stats;
use serde::{Deserialize, Serialize};

use crate::artifacts::Artifacts;
use crate::compiled;
use crate::machine::Machine;
use crate::process::{busy, share};
use crate::workload::Size;
use crate::workload::files::write_capture;
use crate::{Error, report};

pub use driver::Latency;
pub use tables::Kind;

/// Updates a second that look-ups should hardly feel.
pub const PACE: f64 = 100_000.0;
/// Entries of a batch.
pub const BATCH: usize = 1000;
/// How often a live run tells what it has counted, and a little more.
const TICK: Duration = Duration::from_millis(250);

/// What was measured of one kind of table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    /// The kind.
    pub kind: String,
    /// Entries that are there all the time.
    pub entries: usize,
    /// Seconds that all of them took to be put in, in one batch.
    pub load_s: f64,
    /// Cycles a packet without updates.
    pub quiet: f64,
    /// The same with [`PACE`] updates a second, or as many as there can be.
    pub paced: f64,
    /// How many there were.
    pub paced_rate: f64,
    /// Cycles a packet with as many updates as there can be.
    pub full: f64,
    /// How many there were.
    pub full_rate: f64,
    /// How many there were in batches of [`BATCH`].
    pub batched_rate: f64,
    /// How long single updates took, at the pace: put in, changed, taken out.
    pub latency: [Latency; 3],
}

/// Where the frames of a kind lie: what the traffic source wants in `REPLAY_DIR`.
pub fn folder(artifacts: &Artifacts, kind: Kind) -> PathBuf {
    artifacts.folder.join(format!("updates-{}", kind.name()))
}

/// Measures one kind. This process has not started DPDK before, and its `REPLAY_DIR` is [`folder`].
///
/// # Errors
/// When the program cannot be run.
pub fn measure(
    kind: Kind,
    entries: u32,
    machine: &Machine,
    artifacts: &Artifacts,
    time: Duration,
    rounds: u32,
) -> Result<Figures, Error> {
    let content = kind.content(entries);
    let folder = folder(artifacts, kind);
    fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, &error))?;
    write_capture(&folder, 0, &content.frames, Size::Least)?;
    let (engine, tables, _) = compiled::compile("updates.pipe", &kind.program())?;
    let start = Instant::now();
    let mut batch = tables.batch();
    batch.load("t", content.entries.iter().cloned()).map_err(|error| Error::Failed(error.to_string()))?;
    batch.commit();
    let load_s = start.elapsed().as_secs_f64();
    let options = live_options(machine, artifacts)?;
    let (stop, watched) = (AtomicBool::new(false), Watched::default());
    thread::scope(|scope| {
        let run = scope.spawn(|| run_live(&engine, &options, &stop, &mut |stats| watched.tell(stats)));
        let measured = || {
            watched.wait(&|| run.is_finished())?;
            thread::sleep(time.max(Duration::from_millis(500))); // frames come, caches fill
            Eal::pin_thread(machine.other_cpu).map_err(|error| Error::Failed(error.to_string()))?;
            let writer = driver::Writer::new(&tables, kind, content.others);
            let figures = Phases { watched: &watched, writer, machine, time }.run(rounds)?;
            Ok(Figures { kind: kind.name().to_string(), entries: content.entries.len(), load_s, ..figures })
        };
        let figures = measured();
        stop.store(true, Ordering::Relaxed);
        match run.join() {
            Ok(Ok(_)) => figures,
            Ok(Err(error)) => Err(Error::Failed(error.to_string())),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Port 1 receives what was written into the folder, port 2 sends only.
fn live_options(machine: &Machine, artifacts: &Artifacts) -> Result<LiveOptions, Error> {
    let specs = spec::parse_all(&["a=net_null0", "b=net_null1,no-rx=1"]);
    let specs = specs.map_err(|error| Error::Failed(error.to_string()))?;
    let plugin = artifacts.plugin.display().to_string();
    Ok(LiveOptions {
        ports: specs.into_iter().map(Some).collect(),
        cpus: vec![machine.cpu],
        eal: vec!["-d".to_string(), plugin],
        ..LiveOptions::default()
    })
}

/// What the run has told: packets received, by when.
#[derive(Default)]
struct Watched(Mutex<Option<(u64, Instant)>>);

impl Watched {
    fn tell(&self, stats: &Stats) {
        let packets = stats.ports.iter().map(|port| port.rx_packets).sum();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((packets, Instant::now()));
    }

    fn now(&self) -> Option<(u64, Instant)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the run tells something for the first time.
    fn wait(&self, over: &dyn Fn() -> bool) -> Result<(), Error> {
        while self.now().is_none() {
            if over() {
                return Err(Error::Failed("the program ended before it was measured".to_string()));
            }
            thread::sleep(TICK / 10);
        }
        Ok(())
    }
}

/// Measurements in alternation.
struct Phases<'a> {
    watched: &'a Watched,
    writer: driver::Writer<'a>,
    machine: &'a Machine,
    time: Duration,
}

impl Phases<'_> {
    fn run(mut self, rounds: u32) -> Result<Figures, Error> {
        let mut all: [Vec<f64>; 6] = Default::default();
        let mut latencies: [Vec<u64>; 3] = Default::default();
        for _ in 0..rounds {
            let (quiet, ()) = self.cycles(|_, time| {
                thread::sleep(time);
                Ok(())
            })?;
            let (paced, paced_rate) =
                self.cycles(|writer, time| writer.one_by_one(time, Some(PACE), &mut latencies))?;
            let (full, full_rate) =
                self.cycles(|writer, time| writer.one_by_one(time, None, &mut Default::default()))?;
            let (_, batched_rate) = self.cycles(|writer, time| writer.batched(time, BATCH))?;
            let new = [quiet, paced, paced_rate, full, full_rate, batched_rate];
            all.iter_mut().zip(new).for_each(|(figures, new)| figures.push(new));
        }
        let [quiet, paced, paced_rate, full, full_rate, batched_rate] = all.map(report::median);
        let latency = latencies.map(Latency::of);
        let unknown = Figures {
            kind: String::new(),
            entries: 0,
            load_s: 0.0,
            quiet,
            paced,
            paced_rate,
            full,
            full_rate,
            batched_rate,
            latency,
        };
        Ok(unknown)
    }

    /// Cycles a packet while something is done, and what came of that.
    fn cycles<T>(
        &mut self,
        what: impl FnOnce(&mut driver::Writer, Duration) -> Result<T, Error>,
    ) -> Result<(f64, T), Error> {
        thread::sleep(TICK);
        let (before, own) = (self.watched.now(), busy(process::id()));
        let done = what(&mut self.writer, self.time)?;
        let (after, looks) = (self.watched.now(), [busy(process::id())]);
        let (Some((from, start)), Some((to, end))) = (before, after) else {
            return Err(Error::Failed("the program counted nothing".to_string()));
        };
        let worker = share(&own, &looks);
        let cycles = self.machine.tsc_hz * (end - start).as_secs_f64() * worker / (to - from).max(1) as f64;
        Ok((cycles, done))
    }
}
