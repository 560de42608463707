//! A dataplane without ports: frames in, frames out, on heap memory and a clock that the caller turns. Repeatable; needs
//! no DPDK. `replay`, `test`, `trace`, `run` on captures alone, and the tests of every engine stand on it.

use std::sync::Arc;

use pipec_abi::{BURST, Burst, DropReason};

use crate::conntrack::{Config, Conntrack, Tracker};
use crate::engine::{Engine, Kind, Runner};
use crate::env::{Buffers, Handle, Sink, WorkerEnv};
use crate::fdb::Fdb;

/// Packets on the heap. A handle is the number of a slot, counted from 1.
#[derive(Default)]
pub struct Heap {
    slots: Vec<HeapPacket>,
    unused: Vec<usize>,
}

/// A packet on the heap.
#[derive(Default)]
struct HeapPacket {
    data: Vec<u8>,
    holders: usize,
}

impl Heap {
    fn make(&mut self, data: Vec<u8>) -> Handle {
        let packet = HeapPacket { data, holders: 1 };
        let slot = match self.unused.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(HeapPacket::default());
                self.slots.len() - 1
            }
        };
        self.slots[slot] = packet;
        core::ptr::without_provenance_mut(slot + 1)
    }

    fn get(&self, pkt: Handle) -> &HeapPacket {
        &self.slots[pkt.addr() - 1]
    }

    fn get_mut(&mut self, pkt: Handle) -> &mut HeapPacket {
        &mut self.slots[pkt.addr() - 1]
    }

    /// Packets made and not yet freed.
    fn alive(&self) -> usize {
        self.slots.len() - self.unused.len()
    }
}

impl Kind for Heap {
    const MBUF: bool = false;
}

impl Buffers for Heap {
    fn copy(&mut self, burst: &Burst, i: usize) -> Option<Handle> {
        Some(self.make(burst.bytes(i).to_vec()))
    }
    fn share(&mut self, pkt: Handle) -> Option<Handle> {
        self.get_mut(pkt).holders += 1;
        Some(pkt)
    }
    fn strip_tag(&mut self, pkt: Handle) {
        self.get_mut(pkt).data.drain(12..16);
    }
    fn free(&mut self, pkt: Handle) {
        let packet = self.get_mut(pkt);
        assert!(packet.holders > 0, "a packet is freed once by each holder");
        packet.holders -= 1;
        if packet.holders == 0 {
            packet.data = Vec::new();
            self.unused.push(pkt.addr() - 1);
        }
    }
    fn frame_len(&self, pkt: Handle) -> u32 {
        self.get(pkt).data.len() as u32
    }
}

/// What became of one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Program port and frame of each output, in the order they were sent.
    pub outputs: Vec<(u16, Vec<u8>)>,
    /// Why it was dropped, if it was.
    pub drop: Option<DropReason>,
}

/// A program with its state and no ports.
pub struct Offline {
    runner: Runner,
    env: Box<WorkerEnv<Heap>>,
    burst: Box<Burst>,
    conntrack: Arc<Conntrack>,
    fdb: Arc<Fdb>,
}

impl Offline {
    /// Loads a program with all its ports attached and no state.
    pub fn new(engine: &Engine) -> Offline {
        let conntrack = Arc::new(Conntrack::new(&Config { workers: 1 }));
        let fdb = Arc::new(Fdb::new(8192, 300));
        let ports = (0..engine.meta().ports.len() as u16).collect();
        let tracker = Tracker::new(conntrack.clone());
        let mut env = Box::new(WorkerEnv::new(Heap::default(), tracker, fdb.clone(), ports));
        // SAFETY: the `Env` is boxed and lives as long as the runner, beside it; only `run` below uses it meanwhile.
        let runner = unsafe { engine.runner(&raw mut *env) };
        Offline { runner, env, burst: Box::new(Burst::new()), conntrack, fdb }
    }

    /// Runs frames that arrive at one moment through the program, at most 32 a burst; what became of each, in order.
    pub fn send<F: AsRef<[u8]>>(&mut self, now_ns: u64, frames: &[(u16, F)]) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(frames.len());
        for chunk in frames.chunks(BURST) {
            self.burst.begin(now_ns);
            self.env.begin(now_ns);
            for (port, frame) in chunk {
                let pkt = self.env.buffers.make(frame.as_ref().to_vec());
                let data = &mut self.env.buffers.get_mut(pkt).data;
                let (data, len) = (data.as_mut_ptr(), data.len() as u32);
                // SAFETY: the packet is on the heap until the sink frees it, and its bytes are `len` long.
                unsafe { self.burst.push(pkt, data, len, *port) };
            }
            self.runner.run(&mut self.burst, 0);
            let mut sink =
                Collect { handles: self.burst.pkts().to_vec(), outcomes: vec![Outcome::default(); chunk.len()], at: 0 };
            // One packet at a time, so that each output is known to be of that packet.
            for i in 0..chunk.len() {
                sink.at = i;
                self.env.commit_one(&self.burst, i, &mut sink);
            }
            self.env.end_commit(&mut sink);
            outcomes.append(&mut sink.outcomes);
        }
        assert_eq!(self.env.buffers.alive(), 0, "every packet is sent or dropped");
        outcomes
    }

    /// The program's counters.
    pub fn counters(&mut self) -> Vec<pipec_abi::Counter> {
        self.runner.ctx().counters().to_vec()
    }

    /// The connections.
    pub fn conntrack(&self) -> &Arc<Conntrack> {
        &self.conntrack
    }

    /// The learned addresses.
    pub fn fdb(&self) -> &Arc<Fdb> {
        &self.fdb
    }
}

/// Collects what becomes of each packet.
struct Collect {
    handles: Vec<Handle>,
    outcomes: Vec<Outcome>,
    at: usize,
}

impl Sink<Heap> for Collect {
    fn send(&mut self, buffers: &mut Heap, port: u16, pkt: Handle, _len: u32, _copy: bool) {
        let frame = buffers.get(pkt).data.clone();
        self.outcomes[self.at].outputs.push((port, frame));
        buffers.free(pkt);
    }
    fn drop(&mut self, buffers: &mut Heap, _in_port: u16, pkt: Handle, _len: u32, reason: DropReason) {
        debug_assert_eq!(self.handles[self.at], pkt);
        self.outcomes[self.at].drop = Some(reason);
        buffers.free(pkt);
    }
    fn lost(&mut self, _port: u16, _reason: DropReason) {}
}
