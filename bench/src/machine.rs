//! The machine: which processor to measure on, hugepages, the rate of its time-stamp counter, how busy it is.
//!
//! In: what the system says of itself. Out: a machine that is ready, and that is as it was when this is dropped.

use std::fs::{self, File, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use pipec_runtime::io::dpdk::clock;

use crate::Error;
use crate::process::Stop;

/// Hugepages of 2 MiB that the neediest engine takes (Open vSwitch, with its buffers).
const PAGES: u64 = 512;
/// The file in the system's temporary folder whose lock is held by who measures.
const LOCK: &str = "pipec-bench.lock";
/// Where the system says how many there are, and how many of them are free.
const ALL_PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
const FREE_PAGES: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";

/// A machine ready to measure on.
#[derive(Debug)]
pub struct Machine {
    /// The processor that forwards.
    pub cpu: u32,
    /// Another one, for what does not forward; the same where there is only one.
    pub other_cpu: u32,
    /// Cycles of the time-stamp counter a second.
    pub tsc_hz: f64,
    /// Whether there are hugepages enough for every engine.
    pub hugepages: bool,
    /// How many hugepages to go back to.
    restore: Option<u64>,
    /// What keeps others from measuring at the same time.
    _alone: Option<File>,
}

impl Machine {
    /// Waits until nobody else measures here, looks at the machine, and reserves hugepages where that is allowed.
    ///
    /// # Errors
    /// When the user wants to stop.
    pub fn prepare(cpu: Option<u32>, stop: &Stop) -> Result<Machine, Error> {
        let alone = alone(stop)?;
        Ok(Machine { _alone: alone, ..Machine::beside_others(cpu) })
    }

    /// The same for a process that one which measures has started.
    pub fn beside_others(cpu: Option<u32>) -> Machine {
        let cpus = thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let cpu = cpu.unwrap_or(u32::from(cpus > 1));
        let (all, free) = (number(ALL_PAGES), number(FREE_PAGES));
        let short = PAGES.saturating_sub(free);
        let restore = (short > 0 && fs::write(ALL_PAGES, (all + short).to_string()).is_ok()).then_some(all);
        let hugepages = number(FREE_PAGES) >= PAGES;
        Machine { cpu, other_cpu: u32::from(cpu == 0 && cpus > 1), tsc_hz: tsc_hz(), hugepages, restore, _alone: None }
    }

    /// Arguments for DPDK's EAL that say where memory comes from.
    pub fn memory(&self) -> &'static [&'static str] {
        match self.hugepages {
            true => &["--in-memory"],
            false => &["--no-huge", "--no-shconf", "-m", "512"],
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(pages) = self.restore {
            let _ = fs::write(ALL_PAGES, pages.to_string()); // it could be written before
        }
    }
}

/// Takes the lock that says that somebody measures; it ends with the process. None where there can be no lock.
fn alone(stop: &Stop) -> Result<Option<File>, Error> {
    let path = std::env::temp_dir().join(LOCK);
    let Ok(file) = File::options().create(true).truncate(false).write(true).open(&path) else { return Ok(None) };
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if !told => {
                eprintln!("another pipec-bench measures on this machine; waiting for its end (Ctrl-C ends this one)");
                told = true;
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(_)) => return Ok(None),
        }
        stop.wait(Duration::from_millis(500))?;
    }
}

/// The number in a file; 0 where there is none.
fn number(path: &str) -> u64 {
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Cycles of the time-stamp counter a second, to about 1 in 10,000.
fn tsc_hz() -> f64 {
    let (start, from) = (Instant::now(), clock::cycles());
    thread::sleep(Duration::from_millis(200));
    let (elapsed, to) = (start.elapsed(), clock::cycles());
    to.wrapping_sub(from) as f64 / elapsed.as_secs_f64()
}

/// Processes that want a processor: the mean of the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// The processor's name.
pub fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    line.trim_start_matches([' ', '\t', ':']).to_string()
}
