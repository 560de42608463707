//! Cycles a packet that the connection tracker takes: `prepare` and `ct` of established connections, in bursts of 32.
//!
//! usage: ct [--workers N] [udp|tcp|tcp1460|udp6|tcp6|new]... [COUNT]...
//!
//! Prints a line for each kind and number of connections. The frames are those of the benchmark's workloads: `firewall-N`
//! (UDP without checksum) and `fwtcp-N` (TCP with six bytes of payload, checksums verified). `new` commits a connection with
//! every packet. Frames are copied into 32 buffers outside the measured time, so what is measured is the tracker alone, and
//! packets come in a random order that does not repeat within a pass. Cycles are those of the time-stamp counter, the mean over
//! all bursts but the slowest 2 %, which are those that were interrupted.

use std::sync::Arc;

use pipec_abi::{BURST, Burst, CtPoint, CtView};
use pipec_runtime::conntrack::{Config, Conntrack, Tracker};

#[cfg(target_arch = "x86_64")]
fn cycles() -> u64 {
    // What was loaded before must have come: the copies into the buffers are not to be measured.
    // SAFETY: every x86-64 processor has this instruction; it touches nothing.
    unsafe { core::arch::x86_64::_mm_lfence() };
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn cycles() -> u64 {
    use std::time::{SystemTime, UNIX_EPOCH};
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Udp,
    Tcp,
    Tcp1460,
    Udp6,
    Tcp6,
    New,
}

fn sum(bytes: &[u8], start: u32) -> [u8; 2] {
    let mut sum = bytes
        .chunks(2)
        .fold(start, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    (!(sum as u16)).to_be_bytes()
}

/// The frame of stream `i`, there or back.
fn frame(kind: Kind, i: u32, back: bool) -> Vec<u8> {
    let (src, dst) = (0x0a00_0001 + i / 1000, 0x0a64_0001 + i % 250);
    let (from, to) = ((1024 + i % 50_000) as u16, 80u16);
    let ((src, from), (dst, to)) = if back { ((dst, to), (src, from)) } else { ((src, from), (dst, to)) };
    let v6 = matches!(kind, Kind::Udp6 | Kind::Tcp6);
    let tcp = matches!(kind, Kind::Tcp | Kind::Tcp1460 | Kind::Tcp6);
    let mut l4 = [from.to_be_bytes(), to.to_be_bytes()].concat();
    if tcp {
        l4.extend([0, 0, 3, 0xe8, 0, 0, 3, 0xe8, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
        l4.resize(if kind == Kind::Tcp1460 { 1480 } else { 26 }, 0);
    } else {
        l4.extend([0, 26, 0, 0]);
        l4.resize(26, 0);
    }
    let len = l4.len() as u16;
    let proto = if tcp { 6u8 } else { 17 };
    let address = |a: u32| if v6 { [&[0xfd; 12][..], &a.to_be_bytes()].concat() } else { a.to_be_bytes().to_vec() };
    let addresses = [address(src), address(dst)].concat();
    if tcp || v6 {
        let checksum = sum(&[&addresses[..], &l4].concat(), u32::from(proto) + u32::from(len));
        let at = if tcp { 16 } else { 6 };
        l4[at..at + 2].copy_from_slice(&checksum);
    }
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend(len.to_be_bytes());
        frame.extend([proto, 64]);
    } else {
        frame.extend([8, 0, 0x45, 0]);
        frame.extend((len + 20).to_be_bytes());
        frame.extend([0, 0, 0, 0, 64, proto, 0, 0]);
    }
    frame.extend(&addresses);
    if !v6 {
        let checksum = sum(&frame[14..34], 0);
        frame[24..26].copy_from_slice(&checksum);
    }
    frame.extend(&l4);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// A worker and its 32 buffers.
struct Bench {
    tracker: Tracker,
    buffers: Vec<Vec<u8>>,
    burst: Burst,
    views: [CtView; BURST],
    now_ns: u64,
}

impl Bench {
    /// Runs one burst; cycles of `prepare` and of all `ct`.
    fn run(&mut self, frames: &[&[u8]], point: &CtPoint) -> (u64, u64) {
        self.now_ns += 3_200; // ten million packets a second
        self.burst.begin(self.now_ns);
        for (buffer, frame) in self.buffers.iter_mut().zip(frames) {
            buffer[..frame.len()].copy_from_slice(frame);
            let data = buffer.as_mut_ptr();
            // SAFETY: the buffers outlive the burst, and nobody touches them while it is used.
            unsafe { self.burst.push(core::ptr::null_mut(), data, frame.len() as u32, 0) };
        }
        let n = self.burst.len();
        let start = cycles();
        self.tracker.begin(self.now_ns);
        self.tracker.prepare(&self.burst, (u64::MAX >> (64 - n)) as u32, 0);
        let middle = cycles();
        for i in 0..n {
            self.tracker.ct(&mut self.views[i], &mut self.burst, i, point, 0);
        }
        (middle - start, cycles() - middle)
    }

    /// Runs all frames in order; cycles of each burst.
    fn all(&mut self, frames: &[Vec<u8>], order: &[usize], point: &CtPoint) -> Vec<(u64, u64)> {
        let run = |chunk: &[usize]| {
            let mut burst: [&[u8]; BURST] = [&[]; BURST];
            for (place, &i) in burst.iter_mut().zip(chunk) {
                *place = &frames[i];
            }
            self.run(&burst[..chunk.len()], point)
        };
        order.chunks(BURST).map(run).collect()
    }
}

fn measure(kind: Kind, n: usize, workers: usize) {
    let config = Config { workers, seed: Some(1), ..Config::default() };
    let ct = Arc::new(Conntrack::new(&config));
    let mut bench = Bench {
        tracker: Tracker::new(ct.clone()),
        buffers: vec![vec![0; 2048]; BURST],
        burst: Burst::new(),
        views: [CtView::CLEAR; BURST],
        now_ns: 1_000_000_000,
    };
    let mut frames: Vec<_> = (0..n as u32).map(|i| frame(kind, i, false)).collect();
    let commit = CtPoint { flags: CtPoint::COMMIT, ..CtPoint::default() };
    let mut random = 1u64;
    let mut shuffled = |n: usize| {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(i, (random >> 33) as usize % (i + 1));
        }
        order
    };
    let order = shuffled(n);
    if kind == Kind::New {
        let costs = bench.all(&frames, &order, &commit);
        return report(kind, n, costs);
    }
    bench.all(&frames, &order, &commit);
    frames.extend((0..n as u32).map(|i| frame(kind, i, true)));
    let look = CtPoint::default();
    let order = shuffled(2 * n);
    bench.all(&frames, &order, &look);
    let passes = (4_000_000 / (2 * n)).clamp(4, 2_000);
    let costs = (0..passes).flat_map(|_| bench.all(&frames, &order, &look)).collect();
    let stats = ct.stats();
    assert_eq!((stats.live, stats.invalid.iter().sum::<u64>()), (n as u64, 0), "{stats:?}");
    report(kind, n, costs);
}

fn report(kind: Kind, n: usize, mut costs: Vec<(u64, u64)>) {
    costs.sort_by_key(|(prepare, ct)| prepare + ct);
    costs.truncate((costs.len() * 98).div_ceil(100));
    let per_packet = |cycles: u64| cycles as f64 / (costs.len() * BURST) as f64;
    let prepare = per_packet(costs.iter().map(|(prepare, _)| prepare).sum());
    let ct = per_packet(costs.iter().map(|(_, ct)| ct).sum());
    let name = format!("{kind:?}").to_lowercase();
    println!("{name:8} {n:8} connections: {:6.1} cycles a packet (prepare {prepare:5.1}, ct {ct:5.1})", prepare + ct);
}

fn main() {
    let (mut kinds, mut counts, mut workers) = (Vec::new(), Vec::new(), 1);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "udp" => kinds.push(Kind::Udp),
            "tcp" => kinds.push(Kind::Tcp),
            "tcp1460" => kinds.push(Kind::Tcp1460),
            "udp6" => kinds.push(Kind::Udp6),
            "tcp6" => kinds.push(Kind::Tcp6),
            "new" => kinds.push(Kind::New),
            "--workers" => workers = args.next().and_then(|n| n.parse().ok()).unwrap_or(1),
            other => match other.parse() {
                Ok(count) => counts.push(count),
                Err(_) => {
                    eprintln!("ct: {other}: neither a kind of traffic nor a number of connections");
                    std::process::exit(2);
                }
            },
        }
    }
    if kinds.is_empty() {
        kinds = vec![Kind::Udp, Kind::Tcp];
    }
    if counts.is_empty() {
        counts = vec![100, 1_000, 10_000, 100_000];
    }
    for &kind in &kinds {
        for &count in &counts {
            measure(kind, count, workers);
        }
    }
}
