//! A port's queues: where bursts come in and go out.
//!
//! In: a started port's queue, held by one thread at a time (`&mut self`). Out: packets in a [`Burst`], packets sent. Never:
//! an allocation, a lock, a system call of its own, or a count: the worker counts.

use std::sync::Arc;

use dpdk_sys::rte_mbuf;
use pipec_abi::{BURST, Burst};

use super::Mbuf;
use super::port::Device;

/// What one poll brought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Packets added to the burst.
    pub packets: u32,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that came, but lay in several segments and could not be put together for want of a buffer. They are freed.
    pub no_mbuf: u32,
}

/// The right to receive from one queue of a port. Dropping it keeps the port open no longer.
#[derive(Debug)]
pub struct RxQueue {
    port: u16,
    queue: u16,
    device: Arc<Device>,
    scratch: Box<[Mbuf; BURST]>,
}

/// The right to send to one queue of a port.
#[derive(Debug)]
pub struct TxQueue {
    port: u16,
    queue: u16,
    device: Arc<Device>,
}

impl RxQueue {
    pub(super) fn new(device: Arc<Device>, queue: u16) -> RxQueue {
        RxQueue { port: device.id(), queue, device, scratch: Box::new([Mbuf::NULL; BURST]) }
    }

    /// The queue's number in its port.
    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// Receives up to 32 packets into the beginning of `pkts`, and returns how many.
    #[inline(always)]
    pub fn rx_burst(&mut self, pkts: &mut [Mbuf; BURST]) -> usize {
        rx_burst(self.port, self.queue, pkts)
    }

    /// Receives as many packets as `burst` has room for, and adds them, each in one piece. `in_port` is the program's number
    /// of this port.
    #[inline]
    pub fn receive(&mut self, burst: &mut Burst, in_port: u16) -> Received {
        let room = BURST - burst.len();
        let n = rx_burst(self.port, self.queue, &mut self.scratch[..room]);
        let mut received = Received::default();
        for mbuf in &mut self.scratch[..n] {
            if !mbuf.make_contiguous(u32::MAX, self.device.pool()) {
                mbuf.free();
                received.no_mbuf += 1;
                continue;
            }
            mbuf.prefetch();
            let len = mbuf.len();
            // SAFETY: the packet was received by us alone, and all its bytes lie at `data`.
            unsafe { burst.push(mbuf.opaque(), mbuf.data(), len, in_port) };
            received.packets += 1;
            received.bytes += u64::from(len);
        }
        received
    }
}

impl TxQueue {
    pub(super) fn new(device: Arc<Device>, queue: u16) -> TxQueue {
        TxQueue { port: device.id(), queue, device }
    }

    /// The queue's number in its port.
    pub fn queue(&self) -> u16 {
        self.queue
    }

    /// The port's name at DPDK.
    pub fn device_name(&self) -> &str {
        self.device.name()
    }

    /// Sends packets and returns how many were taken, from the front. The rest stays with the caller.
    #[inline(always)]
    pub fn tx_burst(&mut self, pkts: &mut [Mbuf]) -> usize {
        let n = pkts.len().min(usize::from(u16::MAX)) as u16;
        let first = pkts.as_mut_ptr().cast::<*mut rte_mbuf>();
        // SAFETY: the port is started while `device` lives, the queue is one of its own and held by this thread alone; an
        // `Mbuf` is laid out as a pointer, and its rule gives the packets away.
        usize::from(unsafe { dpdk_sys::shim_tx_burst(self.port, self.queue, first, n) })
    }

    /// [`tx_burst`](TxQueue::tx_burst) for all packets of a burst.
    #[inline]
    pub fn send_burst(&mut self, burst: &Burst) -> usize {
        let mut pkts = [Mbuf::NULL; BURST]; // a copy, as drivers and callbacks may write the array
        for (mbuf, pkt) in pkts.iter_mut().zip(burst.pkts()) {
            *mbuf = Mbuf::from_opaque(*pkt);
        }
        self.tx_burst(&mut pkts[..burst.len()])
    }
}

#[inline(always)]
fn rx_burst(port: u16, queue: u16, pkts: &mut [Mbuf]) -> usize {
    let first = pkts.as_mut_ptr().cast::<*mut rte_mbuf>();
    // SAFETY: the caller's `device` keeps the port started, the queue is one of its own and held by this thread alone; an
    // `Mbuf` is laid out as a pointer.
    usize::from(unsafe { dpdk_sys::shim_rx_burst(port, queue, first, pkts.len() as u16) })
}
