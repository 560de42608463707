//! What workers count, readable while they run: plain words of one worker, each written by it alone. A reader sums them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use pipec_abi::DropReason;

use crate::stats::{Drops, Ledger, PortStats, WorkerStats};

/// A count that one thread adds to and others read: no locked instruction.
#[derive(Default, Debug)]
pub struct Cell(AtomicU64);

impl Cell {
    /// Adds `n`. For the one thread that writes it.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What one worker counts of one port of the program.
#[derive(Default, Debug)]
#[repr(align(64))]
pub struct PortCells {
    pub rx_packets: Cell,
    pub rx_bytes: Cell,
    pub tx_packets: Cell,
    pub tx_bytes: Cell,
    /// By the reason's code.
    pub drops: [Cell; DropReason::ALL.len()],
}

/// What one worker counts.
#[derive(Default, Debug)]
#[repr(align(64))]
pub struct WorkerCells {
    pub busy_cycles: Cell,
    pub idle_cycles: Cell,
    pub polls: Cell,
    pub busy_polls: Cell,
    pub packets: Cell,
    pub dropped: Cell,
    pub copies_sent: Cell,
    pub copies_dropped: Cell,
    pub ports: Vec<PortCells>,
    /// Set to have the worker take a snapshot.
    asked: AtomicBool,
    /// The snapshot, as a worker takes it between two polls, when nothing is on its way.
    snapshot: Mutex<Option<Snapshot>>,
}

/// What a worker had counted at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub worker: WorkerStats,
    pub ports: Vec<PortStats>,
    pub ledger: Ledger,
}

impl WorkerCells {
    /// Cells for a program with this many ports.
    pub fn new(ports: usize) -> WorkerCells {
        WorkerCells { ports: (0..ports).map(|_| PortCells::default()).collect(), ..WorkerCells::default() }
    }

    /// Asks the worker for a snapshot.
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// Takes a snapshot if one is asked for. The worker calls it between two polls.
    #[inline(always)]
    pub fn answer(&self) {
        if self.asked.load(Ordering::Relaxed) {
            self.take_snapshot();
        }
    }

    #[cold]
    fn take_snapshot(&self) {
        self.asked.store(false, Ordering::Relaxed);
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.read());
    }

    /// The snapshot that was asked for, once the worker has taken it.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What has been counted by now.
    pub fn read(&self) -> Snapshot {
        let mut snapshot = Snapshot { worker: self.worker(0), ..Snapshot::default() };
        for port in 0..self.ports.len() {
            let mut stats = PortStats::default();
            self.add_port(port, &mut stats);
            snapshot.ports.push(stats);
        }
        self.add_ledger(&mut snapshot.ledger);
        snapshot
    }

    /// Adds this worker's counts to a port's.
    pub fn add_port(&self, port: usize, stats: &mut PortStats) {
        let cells = &self.ports[port];
        stats.rx_packets += cells.rx_packets.get();
        stats.rx_bytes += cells.rx_bytes.get();
        stats.tx_packets += cells.tx_packets.get();
        stats.tx_bytes += cells.tx_bytes.get();
        for (reason, cell) in DropReason::ALL.iter().zip(&cells.drops) {
            stats.drops.add(*reason, cell.get());
        }
    }

    /// The worker's own counts.
    pub fn worker(&self, cpu: u32) -> WorkerStats {
        WorkerStats {
            cpu,
            packets: self.packets.get(),
            busy_cycles: self.busy_cycles.get(),
            idle_cycles: self.idle_cycles.get(),
            polls: self.polls.get(),
            busy_polls: self.busy_polls.get(),
        }
    }

    /// Adds this worker's packets and copies to the ledger. Exact once the worker has stopped.
    pub fn add_ledger(&self, ledger: &mut Ledger) {
        let (received, dropped) = (self.packets.get(), self.dropped.get());
        let (sent, lost) = (self.copies_sent.get(), self.copies_dropped.get());
        ledger.received += received;
        ledger.dropped += dropped;
        ledger.forwarded += received.saturating_sub(dropped);
        ledger.copies_sent += sent;
        ledger.copies_dropped += lost;
        ledger.copies_made += sent + lost;
    }
}

/// All drops of some ports.
pub fn all_drops(ports: &[PortStats]) -> Drops {
    let mut all = Drops::default();
    ports.iter().for_each(|port| all.merge(&port.drops));
    all
}
