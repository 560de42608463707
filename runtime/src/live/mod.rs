//! A program on DPDK ports: starts the EAL, opens the ports, runs one worker a processor until told to stop.
//!
//! In: an engine and [`LiveOptions`]. Out: what was counted. Never: reads the command line or prints.

mod cells;
mod output;
mod turns;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pipec_abi::Counter;

use self::cells::{Snapshot, WorkerCells, all_drops};
use self::output::{Output, Way};
use self::worker::Worker;
use crate::conntrack::{Config, Conntrack, Tracker};
use crate::engine::Engine;
use crate::env::WorkerEnv;
use crate::fdb::Fdb;
use crate::io::dpdk::clock::{Clock, cycles};
use crate::io::dpdk::{Eal, EalOptions, Error, Mbufs, Pool, Port, PortConfig, data_room};
use crate::io::spec::{self, PortSpec};
use crate::liveness::Liveness;
use crate::meter::Meters;
use crate::stats::{Ledger, NamedCounter, PortStats, Stats, WorkerStats};
use crate::tables::Tables;

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct LiveOptions {
    /// What each port of the program is attached to, in the program's order; nothing for a port that is left out.
    pub ports: Vec<Option<PortSpec>>,
    /// Processors, one worker each; the last one this process may use if empty.
    pub cpus: Vec<u32>,
    /// Arguments for the EAL, as they are.
    pub eal: Vec<String>,
    /// Stops after this many seconds, counted from the end of the warm-up.
    pub secs: Option<f64>,
    /// Discards what was counted before this many seconds.
    pub warm: f64,
    /// Places in the table of connections.
    pub max_conns: Option<usize>,
}

/// What a live run came to.
#[derive(Debug, Default)]
pub struct LiveReport {
    /// Packets per port and worker, drops, ledgers.
    pub stats: Stats,
    /// The program's counters, summed over workers, since the start.
    pub counters: Vec<Counter>,
}

/// Descriptors of a queue: what a buffer pool must be able to hold beside what workers hold.
const DESCRIPTORS: u32 = 1024;
/// How often `report` is called.
const TICK: Duration = Duration::from_millis(200);

/// Runs a program until `stop` is set or its time is over; `report` is told now and then what has been counted.
///
/// # Errors
/// When the EAL does not start or a port cannot be opened. Nothing has run then.
pub fn run_live(
    engine: &Engine,
    options: &LiveOptions,
    stop: &AtomicBool,
    report: &mut dyn FnMut(&Stats),
) -> Result<LiveReport, Error> {
    let cpus = if options.cpus.is_empty() { vec![Eal::last_cpu()] } else { options.cpus.clone() };
    let specs: Vec<PortSpec> = options.ports.iter().flatten().cloned().collect();
    let workers = cpus.len() as u32;
    let queues = specs.len() as u32 * workers;
    let mbufs = (queues * 2 * DESCRIPTORS + workers * 1024 + 4096).next_power_of_two() - 1;
    let room = data_room(&specs);
    let mut eal_options = EalOptions::for_ports(&specs);
    eal_options.memory_mib = Pool::memory_mib(mbufs, room).max(256);
    eal_options.args.clone_from(&options.eal);
    let eal = Eal::start(&eal_options)?;
    let pool = Pool::new(&eal, "packets", mbufs, room)?;
    let ports = open_ports(&eal, &pool, options, &specs, cpus.len() as u16)?;
    let clock = Clock::start(&eal);
    let cells: Vec<_> = cpus.iter().map(|_| Arc::new(WorkerCells::new(engine.meta().ports.len()))).collect();
    let mut ports = ports;
    let liveness = Arc::new(Liveness::new(ports.iter().map(Option::is_some)));
    let tables = Tables::of(engine);
    let workers = make_workers(engine, options, &mut ports, &pool, clock, &cells, &liveness, &tables);
    let watch = || {
        for (p, port) in ports.iter().enumerate() {
            liveness.set(p as u16, port.as_ref().is_some_and(Port::link_up));
        }
    };
    run_workers(engine, options, &tables, &eal, &cpus, workers, &cells, clock, stop, &watch, report)
}

/// Opens the ports, in the program's order.
fn open_ports(
    eal: &Eal,
    pool: &Pool,
    options: &LiveOptions,
    specs: &[PortSpec],
    workers: u16,
) -> Result<Vec<Option<Port>>, Error> {
    let mut numbers = spec::numbers(specs).into_iter();
    let open = |spec: &Option<PortSpec>| -> Result<Option<Port>, Error> {
        let Some(spec) = spec else { return Ok(None) };
        let number = numbers.next().unwrap_or_default();
        Port::open(eal, spec, number, &PortConfig::queues(workers), pool).map(Some)
    };
    options.ports.iter().map(open).collect()
}

/// Spreads the ports' queues over workers: each its own of every port, where the port has as many.
#[allow(clippy::too_many_arguments)]
fn make_workers(
    engine: &Engine,
    options: &LiveOptions,
    ports: &mut [Option<Port>],
    pool: &Pool,
    clock: Clock,
    cells: &[Arc<WorkerCells>],
    liveness: &Arc<Liveness>,
    tables: &Arc<Tables>,
) -> Vec<Worker> {
    let n = cells.len();
    let max_conns = options.max_conns;
    let mut config = Config { workers: n, vlan_limit: engine.meta().vlan_limit, ..Config::default() };
    if let Some(max) = max_conns {
        config.max_conns = max;
    }
    let conntrack = Arc::new(Conntrack::new(&config));
    let fdb = Arc::new(Fdb::new(8192, 300));
    let meters = Arc::new(Meters::new(&engine.meta().meters));
    let flood: Vec<u16> = (0..ports.len() as u16).filter(|p| ports[usize::from(*p)].is_some()).collect();
    let mut ways: Vec<Vec<Option<(Way, u32)>>> = (0..n).map(|_| Vec::new()).collect();
    let mut queues: Vec<Vec<_>> = (0..n).map(|_| Vec::new()).collect();
    for (p, port) in ports.iter_mut().enumerate() {
        let Some(port) = port else {
            ways.iter_mut().for_each(|ways| ways.push(None));
            continue;
        };
        for q in 0..port.rx_queues() {
            // Ports with few queues are spread too: not all of them fall to the first worker.
            let worker = (usize::from(q) + if usize::from(port.rx_queues()) < n { p } else { 0 }) % n;
            queues[worker].extend(port.take_rx_queue(q).map(|queue| (p as u16, queue)));
        }
        let max = port.max_frame_len();
        let tx: Vec<_> = (0..port.tx_queues()).filter_map(|q| port.take_tx_queue(q)).collect();
        if tx.len() >= n {
            for (ways, queue) in ways.iter_mut().zip(tx) {
                ways.push(Some((Way::Own(queue), max)));
            }
        } else {
            let tx: Vec<_> = tx.into_iter().map(|queue| Arc::new(Mutex::new(queue))).collect();
            for (w, ways) in ways.iter_mut().enumerate() {
                ways.push(Some((Way::Shared(tx[w % tx.len()].clone()), max)));
            }
        }
    }
    let parts = ways.into_iter().zip(queues).zip(cells);
    parts
        .map(|((ways, queues), cells)| {
            let tracker = Tracker::new(conntrack.clone());
            let (buffers, flood) = (Mbufs::new(pool.clone()), flood.clone());
            let env = WorkerEnv::new(buffers, tracker, fdb.clone(), flood, tables.clone());
            let env = env.with(meters.clone(), liveness.clone());
            Worker::new(engine, queues, Output::new(ways, cells.clone()), env, clock, cells.clone())
        })
        .collect()
}

/// Starts the workers' threads, waits, and stops them.
#[allow(clippy::too_many_arguments)]
fn run_workers(
    engine: &Engine,
    options: &LiveOptions,
    tables: &Tables,
    eal: &Eal,
    cpus: &[u32],
    workers: Vec<Worker>,
    cells: &[Arc<WorkerCells>],
    clock: Clock,
    stop: &AtomicBool,
    watch: &dyn Fn(),
    report: &mut dyn FnMut(&Stats),
) -> Result<LiveReport, Error> {
    let halt = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (worker, cpu) in workers.into_iter().zip(cpus) {
            let halt = &halt;
            let start = move || -> Result<Vec<Counter>, Error> {
                Eal::pin_thread(*cpu)?;
                let _registered = eal.register_thread()?;
                Ok(worker.run(halt))
            };
            let thread = std::thread::Builder::new().name(format!("worker-{cpu}"));
            threads.push(thread.spawn_scoped(scope, start).map_err(|e| Error::Thread { reason: e.to_string() }));
        }
        let failed = |threads: &[Result<std::thread::ScopedJoinHandle<'_, _>, Error>]| {
            threads.iter().any(|t| t.as_ref().map_or(true, |t| t.is_finished()))
        };
        let begin = Instant::now();
        let wait_until = |deadline: Option<f64>, report: &mut dyn FnMut(&Stats), base: Option<&(Stats, f64)>| {
            while !stop.load(Ordering::Relaxed) && !failed(&threads) {
                let passed = begin.elapsed().as_secs_f64();
                let left = deadline.map_or(TICK, |at| Duration::from_secs_f64((at - passed).max(0.0)));
                if left.is_zero() {
                    break;
                }
                std::thread::sleep(left.min(TICK));
                watch();
                tables.sweep(clock.ns(cycles()));
                let now = collect(engine, cpus, cells, clock, begin.elapsed().as_secs_f64());
                report(&since(now, base));
            }
        };
        if options.warm > 0.0 {
            wait_until(Some(options.warm), report, None);
        }
        let base = (options.warm > 0.0).then(|| snapshot(engine, cpus, cells, begin));
        wait_until(options.secs.map(|secs| options.warm + secs), report, base.as_ref());
        let end = begin.elapsed().as_secs_f64();
        halt.store(true, Ordering::Relaxed);
        let mut counters = vec![Counter::default(); engine.meta().counters.len()];
        for thread in threads {
            let own = match thread?.join() {
                Ok(own) => own?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            for (sum, own) in counters.iter_mut().zip(own) {
                sum.packets += own.packets;
                sum.bytes += own.bytes;
            }
        }
        let mut stats = collect(engine, cpus, cells, clock, end);
        stats.counters = NamedCounter::of(engine.meta(), &counters);
        Ok(LiveReport { stats: since(stats, base.as_ref()), counters })
    })
}

/// What all workers have counted at one moment each, between two polls, and when that was in seconds.
fn snapshot(engine: &Engine, cpus: &[u32], cells: &[Arc<WorkerCells>], begin: Instant) -> (Stats, f64) {
    cells.iter().for_each(|cells| cells.ask());
    let deadline = Instant::now() + Duration::from_secs(1); // a worker that does not answer has stopped
    while cells.iter().any(|cells| cells.snapshot().is_none()) && Instant::now() < deadline {
        std::thread::yield_now();
    }
    let seconds = begin.elapsed().as_secs_f64();
    let snapshots: Vec<_> = cells.iter().map(|cells| cells.snapshot().unwrap_or_else(|| cells.read())).collect();
    let mut stats = Stats { seconds, ..Stats::default() };
    for p in 0..engine.meta().ports.len() {
        let mut port = PortStats::default();
        for of_worker in snapshots.iter().filter_map(|snapshot| snapshot.ports.get(p)) {
            port.rx_packets += of_worker.rx_packets;
            port.rx_bytes += of_worker.rx_bytes;
            port.tx_packets += of_worker.tx_packets;
            port.tx_bytes += of_worker.tx_bytes;
            port.drops.merge(&of_worker.drops);
        }
        stats.ports.push(port);
    }
    stats.workers = snapshots.iter().zip(cpus).map(|(s, cpu)| WorkerStats { cpu: *cpu, ..s.worker.clone() }).collect();
    for Snapshot { ledger, .. } in snapshots {
        stats.ledger.received += ledger.received;
        stats.ledger.forwarded += ledger.forwarded;
        stats.ledger.dropped += ledger.dropped;
        stats.ledger.copies_made += ledger.copies_made;
        stats.ledger.copies_sent += ledger.copies_sent;
        stats.ledger.copies_dropped += ledger.copies_dropped;
    }
    (stats, seconds)
}

/// What all workers have counted.
fn collect(engine: &Engine, cpus: &[u32], cells: &[Arc<WorkerCells>], clock: Clock, seconds: f64) -> Stats {
    let mut ledger = Ledger::default();
    cells.iter().for_each(|cells| cells.add_ledger(&mut ledger));
    let port = |(p, meta): (usize, &pipec_abi::meta::PortMeta)| {
        let mut stats = PortStats { name: meta.name.clone(), number: meta.number, ..PortStats::default() };
        cells.iter().for_each(|cells| cells.add_port(p, &mut stats));
        stats
    };
    let ports: Vec<_> = engine.meta().ports.iter().enumerate().map(port).collect();
    Stats {
        tsc_hz: clock.hz(),
        seconds,
        drops: all_drops(&ports),
        ports,
        workers: cpus.iter().zip(cells).map(|(cpu, cells)| cells.worker(*cpu)).collect(),
        ledger,
        ..Stats::default()
    }
}

/// What was counted since the base, which was taken at a number of seconds.
fn since(mut stats: Stats, base: Option<&(Stats, f64)>) -> Stats {
    let Some((base, seconds)) = base else { return stats };
    stats.seconds -= seconds;
    for (port, before) in stats.ports.iter_mut().zip(&base.ports) {
        port.rx_packets -= before.rx_packets;
        port.rx_bytes -= before.rx_bytes;
        port.tx_packets -= before.tx_packets;
        port.tx_bytes -= before.tx_bytes;
        port.drops = port.drops.since(&before.drops);
    }
    for (worker, before) in stats.workers.iter_mut().zip(&base.workers) {
        let WorkerStats { cpu: _, packets, busy_cycles, idle_cycles, polls, busy_polls } = worker;
        *packets -= before.packets;
        *busy_cycles -= before.busy_cycles;
        *idle_cycles -= before.idle_cycles;
        *polls -= before.polls;
        *busy_polls -= before.busy_polls;
    }
    stats.ledger.received -= base.ledger.received;
    stats.ledger.forwarded -= base.ledger.forwarded;
    stats.ledger.dropped -= base.ledger.dropped;
    stats.ledger.copies_made -= base.ledger.copies_made;
    stats.ledger.copies_sent -= base.ledger.copies_sent;
    stats.ledger.copies_dropped -= base.ledger.copies_dropped;
    stats.drops = all_drops(&stats.ports);
    stats
}
