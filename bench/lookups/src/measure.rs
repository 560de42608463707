//! Times of look-ups: every structure looks the same trace up, in bursts of 32, one structure after the other, round by round;
//! the median of the rounds counts, so that what else the machine does meets all alike.

use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use pipec_abi::table::{BURST, Hot, Kind, MISS, Table, encode};

use crate::sets::Set;

/// What was measured of a structure.
pub struct Row {
    /// Its name.
    pub name: String,
    /// Nanoseconds a key: median of the rounds, and the least.
    pub ns: (f64, f64),
    /// Bytes.
    pub memory: u64,
    /// Milliseconds from entries to a structure that answers.
    pub build_ms: f64,
    /// Microseconds to take one entry out and to put it back, where it can.
    pub change_us: Option<f64>,
    /// Lines of a cache that a look-up reads at the most, where that is known.
    pub worst: Option<u32>,
    /// Keys for which it found another entry than the first structure did.
    pub differ: usize,
}

/// Look-ups in a round after which heavy hitters have been noticed.
const MANY: usize = 4_000_000;
/// Of the hashes of tables.
const SEED: u64 = 0x5eed_5eed_5eed;

/// How to measure.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Rounds.
    pub rounds: usize,
    /// Look-ups of a structure in a round, about.
    pub lookups: usize,
}

/// One of the structures that are measured.
struct Contender<'a> {
    row: Row,
    run: Run<'a>,
}

/// Looks the trace up; gives places of entries plus one.
type Run<'a> = Box<dyn FnMut(&mut [u32]) + 'a>;

/// Measures our structures of these kinds, and all peers.
pub fn measure(set: &Set, kinds: &[Kind], plan: Plan, #[cfg(peers)] dpdk: Option<crate::peers::Dpdk>) -> Vec<Row> {
    let mut contenders: Vec<Contender> = Vec::new();
    #[cfg(peers)]
    if let Some(dpdk) = dpdk {
        contenders.extend(crate::peers::names(&set.peers).iter().filter_map(|name| peer(dpdk, name, set)));
    }
    for kind in kinds {
        let (plain, table) = ours(set, *kind);
        contenders.push(plain);
        if plan.lookups >= MANY {
            contenders.extend(hot(set, *kind, table));
        }
    }
    let n = set.keys.len() / set.width;
    let passes = plan.lookups.div_ceil(n).max(1);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    let mut first: Vec<u32> = Vec::new();
    for round in 0..plan.rounds {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let mut found = vec![0u32; n];
            (contender.run)(&mut found); // warms
            if first.is_empty() {
                first.clone_from(&found);
            }
            if round == 0 {
                contender.row.differ = found.iter().zip(&first).filter(|(a, b)| a != b).count();
            }
            let start = Instant::now();
            for _ in 0..passes {
                (contender.run)(black_box(&mut found));
            }
            times.push(start.elapsed().as_nanos() as f64 / (passes * n) as f64);
        }
    }
    let with_times = |(contender, mut times): (Contender, Vec<f64>)| {
        times.sort_by(f64::total_cmp);
        Row { ns: (times[times.len() / 2], times[0]), ..contender.row }
    };
    contenders.into_iter().zip(times).map(with_times).collect()
}

fn ours(set: &Set, kind: Kind) -> (Contender<'_>, Rc<Table>) {
    let start = Instant::now();
    let table = Rc::new(Table::new(kind as u64, set.width, &set.entries, SEED));
    let build_ms = start.elapsed().as_secs_f64() * 1e3;
    let lookup = |table: &Table, keys: &[u64], found: &mut [u64]| table.lookup_burst(keys, found);
    (contender(set, format!("{kind:?}"), table.clone(), build_ms, lookup), table)
}

/// The same table with heavy hitters in front, where look-ups are dear.
fn hot(set: &Set, kind: Kind, table: Rc<Table>) -> Option<Contender<'_>> {
    let mut hot = Hot::of(&encode(kind, set.width, &set.entries))?;
    let name = format!("{kind:?}, hot");
    Some(contender(set, name, table, 0.0, move |table, keys, found| hot.lookup_burst(table, keys, found)))
}

fn contender<'a>(
    set: &'a Set,
    name: String,
    table: Rc<Table>,
    build_ms: f64,
    mut lookup: impl FnMut(&Table, &[u64], &mut [u64]) + 'a,
) -> Contender<'a> {
    let row = Row {
        name,
        ns: (0.0, 0.0),
        memory: table.memory() as u64,
        build_ms,
        change_us: None,
        worst: Some(table.worst_probes()),
        differ: 0,
    };
    let run = move |out: &mut [u32]| {
        let mut found = [0; BURST];
        for (keys, out) in set.keys.chunks_exact(BURST * set.width).zip(out.chunks_exact_mut(BURST)) {
            lookup(&table, keys, &mut found);
            for (out, found) in out.iter_mut().zip(&found) {
                *out = if *found == MISS { 0 } else { *found as u32 + 1 };
            }
        }
    };
    Contender { row, run: Box::new(run) }
}

#[cfg(peers)]
fn peer<'a>(dpdk: crate::peers::Dpdk, name: &'static str, set: &'a Set) -> Option<Contender<'a>> {
    let start = Instant::now();
    let Some(peer) = crate::peers::Peer::new(dpdk, name, &set.peers) else {
        eprintln!("{name} cannot be built of this set; it is left out");
        return None;
    };
    let build_ms = start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let n = set.entries.len();
    let changes = n.min(32);
    let can = (0..changes).all(|i| peer.change(&set.peers, i * n / changes));
    let change_us = can.then(|| start.elapsed().as_secs_f64() * 1e6 / changes as f64);
    let row = Row {
        name: name.to_string(),
        ns: (0.0, 0.0),
        memory: peer.memory,
        build_ms,
        change_us,
        worst: None,
        differ: 0,
    };
    Some(Contender { row, run: Box::new(move |found| peer.run(&set.peers, found)) })
}
