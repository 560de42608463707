//! Output: per worker and port a buffer, flushed when full and at the end of the poll. Only ports with packets waiting are
//! visited; a burst that goes out of one port as a whole is never copied into the buffer.

use std::sync::{Arc, Mutex, PoisonError};

use pipec_abi::{BURST, Burst, DropReason};

use super::cells::WorkerCells;
use crate::env::{Handle, Sink};
use crate::io::dpdk::Mbufs;
use crate::io::dpdk::{Mbuf, TxQueue};

/// How often a full transmit queue is tried again before packets are dropped.
const RETRIES: usize = 8;

/// A worker's way to a transmit queue.
pub enum Way {
    /// The queue is this worker's.
    Own(TxQueue),
    /// The port has fewer queues than there are workers.
    Shared(Arc<Mutex<TxQueue>>),
}

impl Way {
    #[inline(always)]
    fn tx_burst(&mut self, pkts: &mut [Mbuf]) -> usize {
        match self {
            Way::Own(queue) => queue.tx_burst(pkts),
            Way::Shared(queue) => queue.lock().unwrap_or_else(PoisonError::into_inner).tx_burst(pkts),
        }
    }
}

/// One port's buffer.
struct Waiting {
    way: Way,
    max_frame_len: u32,
    n: usize,
    /// How many of those are copies, for the ledger.
    copies: usize,
    bytes: u64,
    pkts: [Mbuf; BURST],
}

/// A worker's outputs.
pub struct Output {
    /// By the program's number of the port; none where nothing is attached.
    ports: Vec<Option<Box<Waiting>>>,
    /// Ports with packets waiting.
    pending: Vec<u16>,
    cells: Arc<WorkerCells>,
    /// Packets to be freed together.
    dropped: Vec<Mbuf>,
}

impl Output {
    /// Outputs to these ports, each with the longest frame it takes.
    pub fn new(ways: Vec<Option<(Way, u32)>>, cells: Arc<WorkerCells>) -> Output {
        let waiting = |(way, max_frame_len)| {
            Box::new(Waiting { way, max_frame_len, n: 0, copies: 0, bytes: 0, pkts: [Mbuf::NULL; BURST] })
        };
        let ports: Vec<_> = ways.into_iter().map(|way| way.map(waiting)).collect();
        Output { pending: Vec::with_capacity(ports.len()), ports, cells, dropped: Vec::with_capacity(2 * BURST) }
    }

    /// Sends all that waits, and frees what was dropped.
    #[inline(always)]
    pub fn flush(&mut self) {
        if !self.pending.is_empty() {
            for k in 0..self.pending.len() {
                self.flush_port(self.pending[k]);
            }
            self.pending.clear();
        }
        if !self.dropped.is_empty() {
            Mbuf::free_bulk(&self.dropped);
            self.dropped.clear();
        }
    }

    fn flush_port(&mut self, port: u16) {
        if let Some(waiting) = &mut self.ports[usize::from(port)] {
            let (n, bytes, copies) = (waiting.n, waiting.bytes, waiting.copies);
            transmit(&mut waiting.way, &mut waiting.pkts[..n], bytes, copies, port, &self.cells);
            (waiting.n, waiting.bytes, waiting.copies) = (0, 0, 0);
        }
    }

    #[inline]
    fn refuse(&mut self, port: u16, mbuf: Mbuf, reason: DropReason, copy: bool) {
        self.cells.ports[usize::from(port)].drops[reason as usize].add(1);
        if copy {
            self.cells.copies_dropped.add(1);
        } else {
            self.cells.dropped.add(1);
        }
        self.free_later(mbuf);
    }

    #[inline]
    fn free_later(&mut self, mbuf: Mbuf) {
        if self.dropped.len() == self.dropped.capacity() {
            Mbuf::free_bulk(&self.dropped);
            self.dropped.clear();
        }
        self.dropped.push(mbuf);
    }
}

/// Sends packets of which `copies` are copies; what the queue does not take after some tries is dropped.
#[inline(always)]
fn transmit(way: &mut Way, pkts: &mut [Mbuf], bytes: u64, copies: usize, port: u16, cells: &WorkerCells) {
    let sent = way.tx_burst(pkts);
    let cells_of_port = &cells.ports[usize::from(port)];
    cells.copies_sent.add(copies as u64);
    if sent == pkts.len() {
        cells_of_port.tx_packets.add(sent as u64);
        cells_of_port.tx_bytes.add(bytes);
        return;
    }
    transmit_rest(way, pkts, sent, bytes, port, cells);
}

#[cold]
fn transmit_rest(way: &mut Way, pkts: &mut [Mbuf], mut sent: usize, bytes: u64, port: u16, cells: &WorkerCells) {
    for _ in 0..RETRIES {
        if sent == pkts.len() {
            break;
        }
        sent += way.tx_burst(&mut pkts[sent..]);
    }
    let left = &pkts[sent..];
    let lost: u64 = left.iter().map(|mbuf| u64::from(mbuf.len())).sum();
    let port = &cells.ports[usize::from(port)];
    port.tx_packets.add(sent as u64);
    port.tx_bytes.add(bytes.saturating_sub(lost));
    port.drops[DropReason::TxQueueFull as usize].add(left.len() as u64);
    cells.dropped.add(left.len() as u64);
    Mbuf::free_bulk(left);
}

impl Sink<Mbufs> for Output {
    #[inline(always)]
    fn send(&mut self, _buffers: &mut Mbufs, port: u16, pkt: Handle, len: u32, copy: bool) {
        let mbuf = Mbuf::from_opaque(pkt);
        let Some(waiting) = &mut self.ports[usize::from(port)] else {
            return self.refuse(port, mbuf, DropReason::NoPort, copy);
        };
        if len > waiting.max_frame_len {
            return self.refuse(port, mbuf, DropReason::TxTooBig, copy);
        }
        if waiting.n == 0 {
            self.pending.push(port);
        }
        waiting.pkts[waiting.n] = mbuf;
        waiting.n += 1;
        waiting.bytes += u64::from(len);
        waiting.copies += usize::from(copy);
        if waiting.n == BURST {
            self.flush_port(port);
            self.pending.retain(|pending| *pending != port);
        }
    }

    #[inline(always)]
    fn drop(&mut self, _buffers: &mut Mbufs, in_port: u16, pkt: Handle, _len: u32, reason: DropReason) {
        self.cells.ports[usize::from(in_port)].drops[reason as usize].add(1);
        self.cells.dropped.add(1);
        self.free_later(Mbuf::from_opaque(pkt));
    }

    fn lost(&mut self, port: u16, reason: DropReason) {
        self.cells.ports[usize::from(port)].drops[reason as usize].add(1);
        self.cells.copies_dropped.add(1);
    }

    /// Nobody reads what is for the controller yet.
    fn punt(&mut self, _buffers: &mut Mbufs, in_port: u16, pkt: Handle, _len: u32, _reason: u8) {
        self.cells.ports[usize::from(in_port)].drops[DropReason::NoReader as usize].add(1);
        self.cells.copies_dropped.add(1);
        self.free_later(Mbuf::from_opaque(pkt));
    }

    #[inline(always)]
    fn send_all(&mut self, buffers: &mut Mbufs, port: u16, burst: &Burst) {
        let n = burst.len();
        let lens = burst.frame_lens();
        let (bytes, longest) = lens.iter().fold((0u32, 0u32), |(sum, max), &len| (sum + len, max.max(len)));
        match &mut self.ports[usize::from(port)] {
            Some(waiting) if waiting.n == 0 && longest <= waiting.max_frame_len => {
                let mut pkts = [Mbuf::NULL; BURST];
                for (mbuf, pkt) in pkts.iter_mut().zip(burst.pkts()) {
                    *mbuf = Mbuf::from_opaque(*pkt);
                }
                transmit(&mut waiting.way, &mut pkts[..n], u64::from(bytes), 0, port, &self.cells);
            }
            _ => {
                for i in 0..n {
                    self.send(buffers, port, burst.pkt(i), burst.frame_len(i), false);
                }
            }
        }
    }
}
