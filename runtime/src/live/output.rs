//! Output: per worker and port a buffer, flushed when full and at the end of the poll. Only ports with packets waiting are
//! visited; a burst that goes out of one port as a whole is never copied into the buffer.

use std::sync::{Arc, Mutex, PoisonError};

use pipec_abi::{BURST, Burst, DropReason};

use super::cells::WorkerCells;
use crate::env::{Handle, Sink, ones};
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
    /// One place more than is filled: [`gather`] writes there.
    pkts: [Mbuf; BURST + 1],
}

/// A worker's outputs.
pub struct Output {
    /// By the program's number of the port; none where nothing is attached.
    ports: Vec<Option<Box<Waiting>>>,
    /// Ports with packets waiting.
    pending: Vec<u16>,
    cells: Arc<WorkerCells>,
    /// Packets to be freed together, and one place more.
    dropped: [Mbuf; MOST_DROPPED + 1],
    n_dropped: usize,
}

/// Packets that wait to be freed, at the most.
const MOST_DROPPED: usize = 2 * BURST;

impl Output {
    /// Outputs to these ports, each with the longest frame it takes.
    pub fn new(ways: Vec<Option<(Way, u32)>>, cells: Arc<WorkerCells>) -> Output {
        let waiting = |(way, max_frame_len)| {
            Box::new(Waiting { way, max_frame_len, n: 0, copies: 0, bytes: 0, pkts: [Mbuf::NULL; BURST + 1] })
        };
        let ports: Vec<_> = ways.into_iter().map(|way| way.map(waiting)).collect();
        let dropped = [Mbuf::NULL; MOST_DROPPED + 1];
        Output { pending: Vec::with_capacity(ports.len()), ports, cells, dropped, n_dropped: 0 }
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
        if self.n_dropped > 0 {
            self.free_dropped();
        }
    }

    fn free_dropped(&mut self) {
        Mbuf::free_bulk(&self.dropped[..self.n_dropped]);
        self.n_dropped = 0;
    }

    fn flush_port(&mut self, port: u16) {
        if let Some(waiting) = &mut self.ports[usize::from(port)] {
            let (n, bytes, copies) = (waiting.n, waiting.bytes, waiting.copies);
            transmit(&mut waiting.way, &mut waiting.pkts[..n], bytes, copies, port, &self.cells);
            (waiting.n, waiting.bytes, waiting.copies) = (0, 0, 0);
        }
    }

    /// Sends what waits for a port whose buffer is full.
    fn flush_full(&mut self, port: u16) {
        self.flush_port(port);
        self.pending.retain(|pending| *pending != port);
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
        if self.n_dropped == MOST_DROPPED {
            self.free_dropped();
        }
        self.dropped[self.n_dropped] = mbuf;
        self.n_dropped += 1;
    }
}

/// Puts these packets of the burst, a bit for each, behind the `n` that are in `pkts`, where there is room for them and one
/// more; how many there are now, and how many bytes were put there. Every packet is written, and the next one over it unless
/// it was wanted.
#[inline(always)]
fn gather(pkts: &mut [Mbuf], mut n: usize, burst: &Burst, which: u32) -> (usize, u64) {
    let last = pkts.len() - 1;
    let mut bytes = 0;
    for (i, (pkt, len)) in burst.pkts().iter().zip(burst.frame_lens()).enumerate() {
        let wanted = which >> i & 1;
        pkts[n.min(last)] = Mbuf::from_opaque(*pkt);
        n += wanted as usize;
        bytes += len & wanted.wrapping_neg();
    }
    (n, u64::from(bytes))
}

/// The longest frame of the burst.
#[inline(always)]
fn longest(burst: &Burst) -> u32 {
    burst.frame_lens().iter().fold(0, |longest, &len| longest.max(len))
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
            self.flush_full(port);
        }
    }

    #[inline(always)]
    fn drop(&mut self, _buffers: &mut Mbufs, in_port: u16, pkt: Handle, _len: u32, reason: DropReason) {
        self.cells.ports[usize::from(in_port)].drops[reason as usize].add(1);
        self.cells.dropped.add(1);
        self.free_later(Mbuf::from_opaque(pkt));
    }

    #[inline(always)]
    fn send_some(&mut self, buffers: &mut Mbufs, port: u16, burst: &Burst, which: u32, copies: u32) {
        match &mut self.ports[usize::from(port)] {
            Some(waiting) if longest(burst) <= waiting.max_frame_len => {
                if waiting.n + which.count_ones() as usize > BURST {
                    self.flush_port(port);
                } else if waiting.n == 0 {
                    self.pending.push(port);
                }
                let Some(waiting) = &mut self.ports[usize::from(port)] else { return };
                let (n, bytes) = gather(&mut waiting.pkts, waiting.n, burst, which);
                waiting.n = n;
                waiting.bytes += bytes;
                waiting.copies += copies.count_ones() as usize;
                if n == BURST {
                    self.flush_full(port);
                }
            }
            _ => {
                for i in ones(which) {
                    self.send(buffers, port, burst.pkt(i), burst.frame_len(i), copies >> i & 1 == 1);
                }
            }
        }
    }

    /// All packets of a burst came in by one port.
    #[inline(always)]
    fn drop_some(&mut self, _buffers: &mut Mbufs, burst: &Burst, which: u32, reason: DropReason) {
        let (in_port, n) = (burst.in_port(0), which.count_ones() as usize);
        self.cells.ports[usize::from(in_port)].drops[reason as usize].add(n as u64);
        self.cells.dropped.add(n as u64);
        if self.n_dropped + n > MOST_DROPPED {
            self.free_dropped();
        }
        self.n_dropped = gather(&mut self.dropped, self.n_dropped, burst, which).0;
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
            _ => self.send_some(buffers, port, burst, burst.all(), 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_of_a_burst_is_gathered_in_order() {
        let mut frames = [[0u8; 128]; BURST];
        let mut burst = Burst::new();
        burst.begin(0);
        for (i, frame) in frames.iter_mut().enumerate() {
            let pkt = core::ptr::without_provenance_mut(64 * (i + 1));
            // SAFETY: the frames outlive the burst, and nobody reads them.
            unsafe { burst.push(pkt, frame.as_mut_ptr(), 60 + i as u32, 0) };
        }
        for which in [0, 1, 1 << 31, 0xf0f0_3c01, u32::MAX] {
            for before in [0, 5, BURST - which.count_ones() as usize] {
                let n = before + which.count_ones() as usize;
                if n > BURST {
                    continue;
                }
                let mut pkts = [Mbuf::NULL; BURST + 1];
                let (found, bytes) = gather(&mut pkts, before, &burst, which);
                let wanted: Vec<usize> = crate::env::ones(which).collect();
                assert_eq!((found, bytes), (n, wanted.iter().map(|i| 60 + *i as u64).sum()));
                assert!(pkts[..before].iter().all(|pkt| pkt.is_null()), "what waits is left alone");
                let handles = pkts[before..n].iter().map(|pkt| pkt.opaque().addr());
                assert!(handles.eq(wanted.iter().map(|i| 64 * (i + 1))));
            }
        }
    }
}
