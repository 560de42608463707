//! A run over captures: repeatable, without DPDK.
//!
//! In: captures for ports, and a program. Out: a capture for each port, counts, and what became of each packet. Never: a look
//! at the machine's clock; the clock is the captures' own.
//!
//! - Packets of all captures are merged by time stamp; equal stamps go by the order of the captures, then of the file. A stamp
//!   that runs backwards counts as the latest before it in its file, and so does a missing one.
//! - The clock starts at the first stamp and follows the stamps, but no gap moves it by more than [`MAX_GAP_NS`].
//! - A burst holds up to 32 packets of one stamp. What a packet sends has the packet's stamp.
//! - A capture that breaks off or is damaged runs up to there, like one that ends; [`Report::broken`] says so.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pipec_abi::meta::Meta;
use pipec_abi::{BURST, CONTROLLER, Counter};

use crate::engine::Engine;
use crate::error::Error;
use crate::offline::{Offline, Outcome};
use crate::pcap::{Capture, CaptureError, Cut, Resolution, Writer};
use crate::stats::{Ledger, NamedCounter, PortStats, Stats};

/// The most that the clock moves between two packets.
pub const MAX_GAP_NS: u64 = 600_000_000_000;

/// What to run over.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Captures to read, each with the program's dense number of its port. Several may be of one port.
    pub inputs: Vec<(u16, PathBuf)>,
    /// The capture to write for each port of the program, if any.
    pub outputs: Vec<Option<PathBuf>>,
    /// Whether each port of the program is attached.
    pub attached: Vec<bool>,
}

/// A packet and what became of it.
pub struct Passed<'a> {
    /// How many packets came before it.
    pub index: u64,
    /// The port it came in by, the program's dense number.
    pub in_port: u16,
    /// Bytes of its frame.
    pub len: usize,
    /// What became of it.
    pub outcome: &'a Outcome,
}

/// What a run came to.
#[derive(Debug, Default)]
pub struct Report {
    /// Packets per port, drops, ledgers.
    pub stats: Stats,
    /// The program's counters.
    pub counters: Vec<Counter>,
    /// Captures that were read only in part, and why.
    pub broken: Vec<CaptureError>,
    /// Captures with frames that had been cut short.
    pub cut: Vec<(PathBuf, Cut)>,
}

/// Runs a program over captures until they have been read, `stop` is set, or `each` says to end by `false`; `each` is told
/// of every packet in order.
///
/// # Errors
/// When a capture cannot be opened or is none, or an output cannot be written. Whatever has been sent by then is in the
/// outputs.
pub fn replay(
    engine: &Engine,
    job: &Job,
    stop: &AtomicBool,
    each: &mut dyn FnMut(&Passed<'_>) -> bool,
) -> Result<Report, Error> {
    refuse_overwriting(job)?;
    let mut merge = Merge::open(&job.inputs)?;
    let mut outputs = Outputs::create(&job.outputs, merge.resolution())?;
    let mut offline = Offline::with_ports(engine, &job.attached);
    let mut report = Report { stats: empty_stats(engine.meta()), ..Report::default() };
    let mut clock = Clock::default();
    let mut index = 0;
    let mut burst: Vec<(u16, Vec<u8>)> = Vec::with_capacity(BURST);
    'run: while let Some(stamp_ns) = merge.next_burst(&mut burst, &mut report.broken) {
        let now_ns = clock.advance(stamp_ns);
        let outcomes = offline.send(now_ns, &burst);
        for ((in_port, frame), outcome) in burst.iter().zip(&outcomes) {
            account(&mut report.stats, *in_port, frame.len(), outcome);
            outputs.write(stamp_ns, outcome)?;
            if !each(&Passed { index, in_port: *in_port, len: frame.len(), outcome }) {
                break 'run;
            }
            index += 1;
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    outputs.finish()?;
    report.stats.seconds = clock.seconds();
    report.counters = offline.counters();
    report.stats.counters = NamedCounter::of(engine.meta(), &report.counters);
    report.cut = merge.cut();
    assert!(report.stats.ledger.balances(), "every packet and copy is accounted for: {:?}", report.stats.ledger);
    Ok(report)
}

fn empty_stats(meta: &Meta) -> Stats {
    let port = |port: &pipec_abi::meta::PortMeta| PortStats {
        name: port.name.clone(),
        number: port.number,
        ..PortStats::default()
    };
    Stats { ports: meta.ports.iter().map(port).collect(), ..Stats::default() }
}

/// Counts one packet.
fn account(stats: &mut Stats, in_port: u16, len: usize, outcome: &Outcome) {
    let Stats { ports, drops, ledger, punted, .. } = stats;
    let port = &mut ports[usize::from(in_port)];
    port.rx_packets += 1;
    port.rx_bytes += len as u64;
    if let Some(reason) = outcome.drop {
        port.drops.add(reason, 1);
        drops.add(reason, 1);
    }
    for (port, reason) in &outcome.lost {
        // A copy for the controller is lost where the packet came in.
        let port = if *port == CONTROLLER { in_port } else { *port };
        ports[usize::from(port)].drops.add(*reason, 1);
        drops.add(*reason, 1);
    }
    for (port, frame) in &outcome.outputs {
        if *port == CONTROLLER {
            *punted += 1;
            continue;
        }
        let port = &mut ports[usize::from(*port)];
        port.tx_packets += 1;
        port.tx_bytes += frame.len() as u64;
    }
    ledger.add(outcome);
}

impl Ledger {
    fn add(&mut self, outcome: &Outcome) {
        let (sent, lost) = (outcome.outputs.len() as u64, outcome.lost.len() as u64);
        self.received += 1;
        match outcome.drop {
            Some(_) => self.dropped += 1,
            None if sent > 0 => self.forwarded += 1,
            None => self.consumed += 1,
        }
        let copies = sent.saturating_sub(1);
        self.copies_made += copies + lost;
        self.copies_sent += copies;
        self.copies_dropped += lost;
    }
}

/// The captures' clock.
#[derive(Default)]
struct Clock {
    /// The stamp before, and the time it made.
    last: Option<(u64, u64)>,
    passed_ns: u64,
}

impl Clock {
    /// The time at a stamp, which is not before the last one.
    fn advance(&mut self, stamp_ns: u64) -> u64 {
        let now_ns = match self.last {
            None => stamp_ns,
            Some((stamp, now)) => {
                let gap = (stamp_ns - stamp).min(MAX_GAP_NS);
                self.passed_ns += gap;
                now + gap
            }
        };
        self.last = Some((stamp_ns, now_ns));
        now_ns
    }

    fn seconds(&self) -> f64 {
        self.passed_ns as f64 / 1e9
    }
}

/// One capture on its way through the merge.
struct Stream {
    port: u16,
    capture: Capture,
    /// The next packet: its stamp, made to never run backwards, and its frame.
    next: Option<(u64, Vec<u8>)>,
    latest_ns: u64,
}

impl Stream {
    fn advance(&mut self, broken: &mut Vec<CaptureError>) {
        self.next = match self.capture.next() {
            None => None,
            Some(Ok(packet)) => {
                self.latest_ns = self.latest_ns.max(packet.stamp_ns.unwrap_or(0));
                Some((self.latest_ns, packet.frame))
            }
            Some(Err(error)) => {
                broken.push(error);
                None
            }
        };
    }
}

/// Several captures as one sequence.
struct Merge {
    streams: Vec<Stream>,
    /// What was found while the first packets were read.
    broken: Vec<CaptureError>,
}

impl Merge {
    fn open(inputs: &[(u16, PathBuf)]) -> Result<Merge, Error> {
        let mut merge = Merge { streams: Vec::with_capacity(inputs.len()), broken: Vec::new() };
        for (port, path) in inputs {
            let capture = Capture::open(path)?;
            merge.streams.push(Stream { port: *port, capture, next: None, latest_ns: 0 });
        }
        for stream in &mut merge.streams {
            stream.advance(&mut merge.broken);
        }
        Ok(merge)
    }

    /// The finest stamps of any capture.
    fn resolution(&self) -> Resolution {
        self.streams.iter().map(|s| s.capture.resolution()).max().unwrap_or(Resolution::Micro)
    }

    /// The stream whose packet comes next, and that packet's stamp.
    fn first(&self) -> Option<(usize, u64)> {
        let stamps = self.streams.iter().enumerate().filter_map(|(i, s)| s.next.as_ref().map(|(stamp, _)| (i, *stamp)));
        stamps.min_by_key(|&(i, stamp)| (stamp, i))
    }

    /// Fills `burst` with packets of one stamp, which it returns; nothing when all have been read.
    fn next_burst(&mut self, burst: &mut Vec<(u16, Vec<u8>)>, broken: &mut Vec<CaptureError>) -> Option<u64> {
        burst.clear();
        broken.append(&mut self.broken);
        let (_, stamp_ns) = self.first()?;
        while burst.len() < BURST
            && let Some((i, stamp)) = self.first()
            && stamp == stamp_ns
        {
            let stream = &mut self.streams[i];
            if let Some((_, frame)) = stream.next.take() {
                burst.push((stream.port, frame));
            }
            stream.advance(broken);
        }
        Some(stamp_ns)
    }

    fn cut(&self) -> Vec<(PathBuf, Cut)> {
        let cut = |s: &Stream| s.capture.cut().map(|cut| (s.capture.path().to_path_buf(), cut));
        self.streams.iter().filter_map(cut).collect()
    }
}

/// The captures that are written.
struct Outputs(Vec<Option<Writer>>);

impl Outputs {
    fn create(paths: &[Option<PathBuf>], resolution: Resolution) -> Result<Outputs, CaptureError> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(|path| Writer::create(path, resolution)).transpose();
        Ok(Outputs(paths.iter().map(create).collect::<Result<_, _>>()?))
    }

    fn write(&mut self, stamp_ns: u64, outcome: &Outcome) -> Result<(), CaptureError> {
        for (port, frame) in &outcome.outputs {
            if let Some(Some(writer)) = self.0.get_mut(usize::from(*port)) {
                writer.write(stamp_ns, frame)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<(), CaptureError> {
        self.0.into_iter().flatten().try_for_each(Writer::finish)
    }
}

/// Refuses to write a capture that is read, or one file for two ports.
fn refuse_overwriting(job: &Job) -> Result<(), Error> {
    let outputs: Vec<&Path> = job.outputs.iter().flatten().map(PathBuf::as_path).collect();
    for (i, output) in outputs.iter().enumerate() {
        if job.inputs.iter().any(|(_, input)| same_file(input, output)) {
            let output = output.display();
            return Err(Error::Usage(format!(
                "{output}: writing this capture would destroy the one that is read; write to another file"
            )));
        }
        if outputs[..i].iter().any(|other| other == output || same_file(other, output)) {
            let output = output.display();
            return Err(Error::Usage(format!(
                "{output}: two ports would write this capture; give each port its own file"
            )));
        }
    }
    Ok(())
}

/// Whether both are there and one regular file.
fn same_file(a: &Path, b: &Path) -> bool {
    let id = |path: &Path| {
        let found = std::fs::metadata(path).ok().filter(|found| found.is_file())?;
        Some((found.dev(), found.ino()))
    };
    id(a).is_some_and(|a| Some(a) == id(b))
}

#[cfg(test)]
mod tests;
