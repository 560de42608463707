//! Latency: a thread of its own sends the frames through ring ports at a fixed rate and takes what comes back.
//!
//! In: frames for one or two of two ports, from [`ask`]. Out: one line on standard error, `latency {…}`, whose times are in
//! nanoseconds. Never: a packet that waits for another's answer.
//!
//! ```text
//! capacity   as many packets as the ports take, for a while, and then counted: what the program takes a second
//! latency    half of that, each packet at its time: packet k is due at start + k / rate. What it shows of the time is written
//!            into its last eight bytes; when it comes back, its latency is counted from the time it was due, whenever it was
//!            sent, so that a program that stands still does not hold back the packets that would have had to wait
//! ```
//!
//! `late` is how long after its time the first packet of those put in together was put into the ring: what this thread adds, and, when the ring is full, what
//! the program does.

use std::ffi::CString;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dpdk_sys::rte_mbuf;
use hdrhistogram::Histogram;

use crate::frames::Frames;
use crate::rings::{self, BURST, Peer, Pool};

/// Where the stamp is, from the end of the frame. On the least frames it lies behind every header that programs read.
const STAMP: usize = 8;
/// How long to wait before looking for ports again.
const PAUSE: Duration = Duration::from_micros(500);
/// How long to send at a time until something comes back, and how long to go on with that where nothing does.
const SLICE: Duration = Duration::from_millis(1);
const REST: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(10);
/// The share of the capacity that latency is measured at.
const LOAD: f64 = 0.5;
/// The longest latency that is told apart, in nanoseconds.
const LONGEST: u64 = 10_000_000_000;

/// What was asked for.
pub struct Ask {
    /// How long to measure, each time.
    time: Duration,
    /// The processor to run on.
    cpu: usize,
}

/// What `REPLAY_LATENCY=SECONDS,CPU` asks for, if it is set.
pub fn ask() -> Option<Result<Ask, String>> {
    let text = std::env::var("REPLAY_LATENCY").ok()?;
    let parsed = text.split_once(',').and_then(|(seconds, cpu)| {
        let time = Duration::try_from_secs_f64(seconds.parse().ok()?).ok()?;
        Some(Ask { time, cpu: cpu.parse().ok()? })
    });
    Some(parsed.ok_or_else(|| format!("REPLAY_LATENCY: expected SECONDS,CPU, found `{text}`")))
}

/// One port.
struct Lane {
    peer: Peer,
    frames: Option<Arc<Frames>>,
    at: usize,
    /// Packets that are due and found no room.
    waiting: Vec<*mut rte_mbuf>,
}

/// Measures over the ports of devices `net_ring0` and `net_ring1`, which receive these frames, if any.
pub fn run(frames: [Option<Arc<Frames>>; 2], ask: &Ask) {
    pin(ask.cpu);
    let mut lanes: Vec<Lane> = Vec::new();
    for (i, frames) in frames.into_iter().enumerate() {
        let device = CString::new(format!("net_ring{i}")).unwrap_or_default();
        let peer = loop {
            match Peer::of(&device) {
                Some(peer) => break peer,
                None => thread::sleep(PAUSE),
            }
        };
        lanes.push(Lane { peer, frames, at: 0, waiting: Vec::new() });
    }
    if lanes.iter().all(|lane| lane.frames.is_none()) {
        return crate::tell("there are no frames to send");
    }
    let Some(pool) = Pool::of_program() else { return crate::tell("the program has no packet buffers") };
    rings::register_thread();
    let mut generator = Generator::new(lanes, pool);
    crate::tell("latency is measured");
    let warm = ask.time / 2;
    let since = Instant::now();
    while generator.flood(SLICE).back == 0 && since.elapsed() < PATIENCE {
        thread::sleep(REST); // the program has to do something here before it forwards
    }
    thread::sleep(10 * REST);
    go_first();
    generator.flood(warm);
    let flood = generator.flood(ask.time);
    generator.drain();
    generator.pace(flood.rate * LOAD, warm);
    generator.drain();
    let paced = generator.pace(flood.rate * LOAD, ask.time);
    generator.drain();
    crate::tell(&format!("latency {}", line(&flood, &paced)));
}

/// Runs this thread on one processor.
fn pin(cpu: usize) {
    // SAFETY: a set of bits, of which all zeros is a value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is large enough for any number that is checked here.
    unsafe { libc::CPU_SET(cpu.min(libc::CPU_SETSIZE as usize - 1), &mut set) };
    // SAFETY: this thread's set; where it is refused, the thread runs where it may.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}

/// Lets this thread go before others that run on its processor now and then.
fn go_first() {
    // SAFETY: this thread's priority; where it is refused, it stays.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
}

/// What was counted with as many packets as the ports take.
struct Flood {
    /// Packets a second that the ports took.
    rate: f64,
    /// The share of the attempts at which a ring was full: where it is small, the program was not the bottleneck.
    full: f64,
    /// Packets that came back.
    back: u64,
}

/// What was counted at a fixed rate.
struct Paced {
    rate: f64,
    sent: u64,
    latency: Histogram<u64>,
    late: Histogram<u64>,
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LONGEST, 2).unwrap_or_else(|_| unreachable!("bounds that can be"))
}

/// Sends and receives.
struct Generator {
    lanes: Vec<Lane>,
    pool: Pool,
    /// Nanoseconds a cycle.
    ns: f64,
    hz: f64,
}

impl Generator {
    fn new(lanes: Vec<Lane>, pool: Pool) -> Generator {
        let hz = rings::hz();
        Generator { lanes, pool, ns: 1e9 / hz, hz }
    }

    /// Puts in whatever there is room for, for a time; all else is done as at a rate, so that half of this can be kept.
    fn flood(&mut self, time: Duration) -> Flood {
        let (start, length) = (rings::now(), time.as_secs_f64() * self.hz);
        let (mut put, mut tried, mut full, mut passed) = (0, 0_u64, 0_u64, 0.0);
        let (mut latency, mut late) = (histogram(), histogram());
        let mut pkts = [std::ptr::null_mut(); BURST];
        while passed < length {
            for i in 0..self.lanes.len() {
                while self.receive(i, Some(&mut latency)) == BURST {}
                let lane = &mut self.lanes[i];
                let room = BURST - lane.waiting.len();
                if lane.frames.is_none() || (room > 0 && !self.pool.take(&mut pkts[..room])) {
                    continue;
                }
                for pkt in &pkts[..room] {
                    lane.fill(*pkt, rings::now());
                    lane.waiting.push(*pkt);
                }
                put += lane.send(self.ns, &mut late);
                tried += 1;
                full += u64::from(!lane.waiting.is_empty());
            }
            passed = rings::now().wrapping_sub(start) as f64;
        }
        Flood { rate: put as f64 / (passed / self.hz), full: full as f64 / tried.max(1) as f64, back: latency.len() }
    }

    /// Puts packets in at a rate, for a time.
    fn pace(&mut self, rate: f64, time: Duration) -> Paced {
        let mut paced = Paced { rate, sent: 0, latency: histogram(), late: histogram() };
        let (start, period) = (rings::now(), self.hz / rate.max(1.0));
        let sending: Vec<usize> = (0..self.lanes.len()).filter(|i| self.lanes[*i].frames.is_some()).collect();
        let (mut due, end) = (0_u64, (time.as_secs_f64() * rate) as u64);
        while due < end || self.lanes.iter().any(|lane| !lane.waiting.is_empty()) {
            for i in 0..self.lanes.len() {
                self.receive(i, Some(&mut paced.latency));
            }
            let now = rings::now();
            let due_now = ((now.wrapping_sub(start) as f64 / period) as u64).min(end);
            let waiting = self.lanes.iter().map(|lane| lane.waiting.len()).max().unwrap_or(0);
            let count = due_now.saturating_sub(due).min(BURST.saturating_sub(waiting) as u64);
            let mut pkts = [std::ptr::null_mut(); BURST];
            let pkts = &mut pkts[..count as usize];
            if !pkts.is_empty() && self.pool.take(pkts) {
                for pkt in pkts {
                    let lane = &mut self.lanes[sending[due as usize % sending.len()]];
                    lane.fill(*pkt, start.wrapping_add((due as f64 * period) as u64));
                    lane.waiting.push(*pkt);
                    due += 1;
                }
            } // those that there is no buffer for stay due
            for i in &sending {
                paced.sent += self.lanes[*i].send(self.ns, &mut paced.late);
            }
        }
        for _ in 0..1000 {
            for i in 0..self.lanes.len() {
                self.receive(i, Some(&mut paced.latency));
            }
            thread::sleep(Duration::from_micros(10));
        }
        paced
    }

    /// Takes what a port has sent; how many packets. Their latencies are recorded.
    fn receive(&mut self, lane: usize, latency: Option<&mut Histogram<u64>>) -> usize {
        let mut pkts = [std::ptr::null_mut(); BURST];
        let taken = self.lanes[lane].peer.take(&mut pkts);
        if let Some(latency) = latency
            && !taken.is_empty()
        {
            let now = rings::now();
            for pkt in taken {
                latency.saturating_record((now.wrapping_sub(stamp(*pkt)) as f64 * self.ns) as u64);
            }
        }
        rings::free(taken);
        taken.len()
    }

    /// Takes out what is on its way.
    fn drain(&mut self) {
        let mut quiet = 0;
        while quiet < 100 {
            let taken: usize = (0..self.lanes.len()).map(|i| self.receive(i, None)).sum();
            quiet = if taken == 0 { quiet + 1 } else { 0 };
            thread::sleep(Duration::from_micros(100));
        }
    }
}

impl Lane {
    /// Makes an empty packet the next frame, with a stamp.
    fn fill(&mut self, pkt: *mut rte_mbuf, stamp: u64) {
        let Some(frames) = &self.frames else { return };
        let frame = frames.frame(self.at);
        self.at = if self.at + 1 == frames.count() { 0 } else { self.at + 1 };
        // SAFETY: a packet from the pool, this thread's alone.
        let pkt = unsafe { &mut *pkt };
        if frame.len() < STAMP || frame.len() + usize::from(pkt.data_off) > usize::from(pkt.buf_len) {
            return;
        }
        let data = pkt.buf_addr.cast::<u8>().wrapping_add(usize::from(pkt.data_off));
        // SAFETY: the buffer has room for the frame, as was just asked.
        unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), data, frame.len()) };
        // SAFETY: the frame's last bytes.
        unsafe { data.wrapping_add(frame.len() - STAMP).cast::<u64>().write_unaligned(stamp) };
        pkt.data_len = frame.len() as u16;
        pkt.pkt_len = frame.len() as u32;
    }

    /// Puts in the packets that are due, as far as there is room; how many.
    fn send(&mut self, ns: f64, late: &mut Histogram<u64>) -> u64 {
        if self.waiting.is_empty() {
            return 0;
        }
        let first = stamp(self.waiting[0]); // a packet that was put in is not ours any more
        let n = self.peer.put(&self.waiting);
        let wait = rings::now().wrapping_sub(first) as f64 * ns;
        if n > 0 {
            late.saturating_record_n(wait as u64, n as u64);
        }
        self.waiting.drain(..n);
        n as u64
    }
}

/// The stamp of a packet that was filled by this thread, and so is long enough to have one.
fn stamp(pkt: *mut rte_mbuf) -> u64 {
    // SAFETY: a packet that came out of a ring, or was not yet put in, is this thread's alone.
    let pkt = unsafe { &*pkt };
    let end = usize::from(pkt.data_off) + usize::from(pkt.data_len).max(STAMP);
    // SAFETY: the frame's last bytes.
    unsafe { pkt.buf_addr.cast::<u8>().wrapping_add(end - STAMP).cast::<u64>().read_unaligned() }
}

/// What was counted, as JSON.
fn line(flood: &Flood, paced: &Paced) -> String {
    let shares = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];
    let times = |name: &str, times: &Histogram<u64>| {
        let times: Vec<String> =
            shares.iter().map(|(share, q)| format!("\"{share}\": {}", times.value_at_quantile(*q))).collect();
        format!("\"{name}\": {{{}}}", times.join(", "))
    };
    format!(
        "{{\"capacity\": {:.0}, \"full\": {:.3}, \"rate\": {:.0}, \"sent\": {}, \"back\": {}, {}, {}}}",
        flood.rate,
        flood.full,
        paced.rate,
        paced.sent,
        paced.latency.len(),
        times("latency", &paced.latency),
        times("late", &paced.late),
    )
}
