//! A worker: one thread on one processor, that polls its queues and runs every burst to completion.
//!
//! ```text
//! poll: for each receive queue in turn   receive → run the program → commit
//!       flush                            what waits for a port goes out
//! ```
//!
//! Which queues are in turn, `turns` decides: an idle port costs the others next to nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pipec_abi::{Burst, Counter, DropReason};

use super::cells::WorkerCells;
use super::output::Output;
use super::turns::Turns;
use crate::engine::{Engine, Runner};
use crate::env::WorkerEnv;
use crate::io::dpdk::Mbufs;
use crate::io::dpdk::RxQueue;
use crate::io::dpdk::clock::{Clock, cycles};

/// Idle polls between two looks for connections that have ended.
const IDLE_SWEEP: u32 = 1024;

/// One worker, before its thread starts.
pub struct Worker {
    /// Queues to poll, each with the program's number of its port.
    queues: Vec<(u16, RxQueue)>,
    turns: Turns,
    output: Output,
    /// Boxed: the runner has its address. Dropped after it.
    runner: Runner,
    env: Box<WorkerEnv<Mbufs>>,
    burst: Box<Burst>,
    clock: Clock,
    cells: Arc<WorkerCells>,
}

impl Worker {
    /// A worker for these queues.
    pub fn new(
        engine: &Engine,
        queues: Vec<(u16, RxQueue)>,
        output: Output,
        env: WorkerEnv<Mbufs>,
        clock: Clock,
        cells: Arc<WorkerCells>,
    ) -> Worker {
        let mut env = Box::new(env);
        // SAFETY: the `Env` is boxed and lives as long as the runner, beside it; only `poll` uses either.
        let runner = unsafe { engine.runner(&raw mut *env) };
        let turns = Turns::new(queues.len());
        Worker { queues, turns, output, runner, env, burst: Box::new(Burst::new()), clock, cells }
    }

    /// Polls until told to stop; returns the program's counters.
    pub fn run(mut self, stop: &AtomicBool) -> Vec<Counter> {
        let mut before = cycles();
        let mut idle = 0u32;
        while !stop.load(Ordering::Relaxed) {
            let packets = self.poll(before);
            let after = cycles();
            let cells = &*self.cells;
            cells.polls.add(1);
            if packets > 0 {
                cells.busy_polls.add(1);
                cells.packets.add(packets);
                cells.busy_cycles.add(after - before);
            } else {
                cells.idle_cycles.add(after - before);
                idle = idle.wrapping_add(1);
                if idle.is_multiple_of(IDLE_SWEEP) {
                    self.env.begin(self.clock.ns(after)); // connections end although nothing comes
                    self.runner.rest();
                }
                std::hint::spin_loop();
            }
            cells.answer();
            before = after;
        }
        self.output.flush();
        self.runner.ctx().counters().to_vec()
    }

    /// Polls the queues that are in turn once each; how many packets came.
    #[inline(always)]
    fn poll(&mut self, now: u64) -> u64 {
        let now_ns = self.clock.ns(now);
        let mut packets = 0;
        self.turns.begin();
        while let Some(place) = self.turns.next() {
            let (port, queue) = &mut self.queues[place];
            let burst = &mut *self.burst;
            burst.begin(now_ns);
            let received = queue.receive(burst, *port);
            if received.packets == 0 && received.no_mbuf == 0 {
                self.turns.was_empty();
                continue;
            }
            self.turns.was_busy();
            let cells = &self.cells.ports[usize::from(*port)];
            let all = u64::from(received.packets) + u64::from(received.no_mbuf);
            cells.rx_packets.add(all);
            cells.rx_bytes.add(received.bytes);
            packets += all;
            if received.no_mbuf > 0 {
                cells.drops[DropReason::NoMbuf as usize].add(u64::from(received.no_mbuf));
                self.cells.dropped.add(u64::from(received.no_mbuf));
            }
            self.env.begin(now_ns);
            self.runner.run(burst, 0);
            self.env.commit(burst, &mut self.output);
        }
        self.output.flush();
        packets
    }
}
