//! A dataplane without ports: frames in, frames out, on heap memory and a clock that the caller turns. Repeatable; needs
//! no DPDK. `replay`, `test`, `trace`, `run` on captures alone, and the tests of every engine stand on it.

use std::sync::Arc;

use pipec_abi::{BURST, Burst, CONTROLLER, DropReason};

use crate::conntrack::{Config, Conntrack, Tracker};
use crate::engine::{Engine, Kind, Runner};
use crate::env::{Buffers, Handle, Sink, WorkerEnv};
use crate::fdb::Fdb;
use crate::liveness::Liveness;
use crate::meter::Meters;
use crate::tables::Tables;

/// Packets on the heap. A handle is the number of a slot, counted from 1.
#[derive(Default)]
pub struct Heap {
    slots: Vec<HeapPacket>,
    unused: Vec<usize>,
}

/// Bytes free in front of a frame, as DPDK has it.
const HEADROOM: usize = 128;

/// A packet on the heap: its bytes with those that are free before them, and how many these are.
#[derive(Default)]
struct HeapPacket {
    data: Vec<u8>,
    start: usize,
    holders: usize,
}

impl HeapPacket {
    fn frame(&self) -> &[u8] {
        &self.data[self.start..]
    }
}

impl Heap {
    fn make(&mut self, frame: &[u8]) -> Handle {
        let data = [&[0; HEADROOM], frame].concat();
        let packet = HeapPacket { data, start: HEADROOM, holders: 1 };
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
        Some(self.make(burst.bytes(i)))
    }
    fn share(&mut self, pkt: Handle, more: u16) {
        self.get_mut(pkt).holders += usize::from(more);
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
        self.get(pkt).frame().len() as u32
    }
    fn prepend(&mut self, pkt: Handle, n: usize) -> Option<*mut u8> {
        let packet = self.get_mut(pkt);
        packet.start = packet.start.checked_sub(n)?;
        Some(packet.data[packet.start..].as_mut_ptr())
    }
    fn strip(&mut self, pkt: Handle, n: usize) -> *mut u8 {
        let packet = self.get_mut(pkt);
        packet.start += n;
        packet.data[packet.start..].as_mut_ptr()
    }
    fn cut(&mut self, pkt: Handle, len: u32) {
        let packet = self.get_mut(pkt);
        packet.data.truncate(packet.start + len as usize);
    }
}

/// What became of one packet: it came out of ports, or it was dropped, or (neither) the program consumed it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Program port and frame of each output, in the order they were sent; the controller is the port
    /// [`CONTROLLER`](pipec_abi::CONTROLLER).
    pub outputs: Vec<(u16, Vec<u8>)>,
    /// Why it was dropped, if it was: then it has no outputs.
    pub drop: Option<DropReason>,
    /// Program port and reason of each further output, beyond those of `outputs` and the one dropped packet, that was lost.
    pub lost: Vec<(u16, DropReason)>,
}

impl Outcome {
    /// An output of the packet could not be sent.
    fn lose(&mut self, port: u16, reason: DropReason) {
        self.lost.push((port, reason));
    }

    /// All is known: a packet of which every output was lost is dropped, its outputs' last reason is its own.
    fn close(&mut self) {
        if self.outputs.is_empty() && self.drop.is_none() {
            self.drop = self.lost.pop().map(|(_, reason)| reason);
        }
    }
}

/// A program with its state and no ports.
pub struct Offline {
    runner: Runner,
    env: Box<WorkerEnv<Heap>>,
    burst: Box<Burst>,
    conntrack: Arc<Conntrack>,
    fdb: Arc<Fdb>,
    tables: Arc<Tables>,
    /// Whether each port of the program is attached.
    attached: Vec<bool>,
    liveness: Arc<Liveness>,
}

impl Offline {
    /// Loads a program with all its ports attached and no state.
    pub fn new(engine: &Engine) -> Offline {
        Offline::with_ports(engine, &vec![true; engine.meta().ports.len()])
    }

    /// Loads a program with no state and those of its ports attached for which `attached` says so: what it sends to the
    /// others is dropped under [`DropReason::NoPort`], and flooding leaves them out.
    ///
    /// # Panics
    /// When `attached` is not as long as the program has ports.
    pub fn with_ports(engine: &Engine, attached: &[bool]) -> Offline {
        Offline::with_config(engine, attached, Config::default())
    }

    /// As [`Offline::with_ports`], with connection tracking of one's own kind. How many workers there are, and how many tags
    /// are looked behind, is not its choice.
    ///
    /// # Panics
    /// When `attached` is not as long as the program has ports.
    pub fn with_config(engine: &Engine, attached: &[bool], config: Config) -> Offline {
        let meta = engine.meta();
        assert_eq!(attached.len(), meta.ports.len(), "each port is attached or not");
        let conntrack = Arc::new(Conntrack::new(&Config { workers: 1, vlan_limit: meta.vlan_limit, ..config }));
        let fdb = Arc::new(Fdb::new(8192, 300));
        let ports = (0..attached.len() as u16).filter(|port| attached[usize::from(*port)]).collect();
        let tracker = Tracker::new(conntrack.clone());
        let liveness = Arc::new(Liveness::new(attached.iter().copied()));
        let tables = Tables::of(engine);
        let env = WorkerEnv::new(Heap::default(), tracker, fdb.clone(), ports, tables.clone());
        let mut env = Box::new(env.with(Arc::new(Meters::new(&meta.meters)), liveness.clone()));
        // SAFETY: the `Env` is boxed and lives as long as the runner, beside it; only `run` below uses it meanwhile.
        let runner = unsafe { engine.runner(&raw mut *env) };
        let (burst, attached) = (Box::new(Burst::new()), attached.to_vec());
        Offline { runner, env, burst, conntrack, fdb, tables, attached, liveness }
    }

    /// Which ports are alive: at first those that are attached.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Runs frames that arrive at one moment through the program, at most 32 a burst; what became of each, in order.
    pub fn send<F: AsRef<[u8]>>(&mut self, now_ns: u64, frames: &[(u16, F)]) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(frames.len());
        self.tables.sweep(now_ns);
        for chunk in frames.chunks(BURST) {
            self.burst.begin(now_ns);
            self.env.begin(now_ns);
            for (port, frame) in chunk {
                let pkt = self.env.buffers.make(frame.as_ref());
                let data = &mut self.env.buffers.get_mut(pkt).data[HEADROOM..];
                let (data, len) = (data.as_mut_ptr(), data.len() as u32);
                // SAFETY: the packet is on the heap until the sink frees it, and its bytes are `len` long.
                unsafe { self.burst.push(pkt, data, len, *port) };
            }
            self.runner.run(&mut self.burst, 0);
            let mut sink = Collect { attached: &self.attached, outcomes: vec![Outcome::default(); chunk.len()], at: 0 };
            // One packet at a time, so that each output is known to be of that packet.
            for i in 0..chunk.len() {
                sink.at = i;
                self.env.commit_one(&self.burst, i, &mut sink);
            }
            self.env.end_commit(&mut sink);
            sink.outcomes.iter_mut().for_each(Outcome::close);
            outcomes.append(&mut sink.outcomes);
        }
        self.runner.rest();
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

    /// The tables whose entries are not the program's: to list and to change them.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// The learned addresses.
    pub fn fdb(&self) -> &Arc<Fdb> {
        &self.fdb
    }
}

/// Collects what becomes of each packet.
struct Collect<'a> {
    attached: &'a [bool],
    outcomes: Vec<Outcome>,
    /// The packet being committed.
    at: usize,
}

impl Sink<Heap> for Collect<'_> {
    fn send(&mut self, buffers: &mut Heap, port: u16, pkt: Handle, _len: u32, _copy: bool) {
        if self.attached.get(usize::from(port)) == Some(&true) {
            let frame = buffers.get(pkt).frame().to_vec();
            self.outcomes[self.at].outputs.push((port, frame));
        } else {
            self.outcomes[self.at].lose(port, DropReason::NoPort);
        }
        buffers.free(pkt);
    }
    fn drop(&mut self, buffers: &mut Heap, _in_port: u16, pkt: Handle, _len: u32, reason: DropReason) {
        self.outcomes[self.at].drop = Some(reason);
        buffers.free(pkt);
    }
    fn lost(&mut self, port: u16, reason: DropReason) {
        self.outcomes[self.at].lose(port, reason);
    }
    fn punt(&mut self, buffers: &mut Heap, _in_port: u16, pkt: Handle, _len: u32, _reason: u8) {
        let frame = buffers.get(pkt).data.clone();
        self.outcomes[self.at].outputs.push((CONTROLLER, frame));
        buffers.free(pkt);
    }
}
