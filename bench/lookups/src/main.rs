//! `pipec-bench-lookups [SET]... [--kinds bit-vector,tuple-space] [--order uniform|pareto|zipf|elephants] [--trace KEYS] [--rounds N] [--seed N] [--json]`
//!
//! Prints a table a set, or with `--json` a line a set: nanoseconds and cycles of the time-stamp counter a key, as a ratio to
//! DPDK's first structure, memory, times to build and to change one entry, and the bound of probes. Without sets, those of the
//! targets.

use std::process::ExitCode;

use pipec_abi::table::{BURST, Kind};
use pipec_bench_lookups::classbench::Order;
use pipec_bench_lookups::json;
use pipec_bench_lookups::measure::{Plan, Row, measure};
use pipec_bench_lookups::sets;
use pipec_bench_lookups::targets::SETS;

const KINDS: &[(&str, Kind)] = &[
    ("tuple-space", Kind::TupleSpace),
    ("lpm", Kind::Lpm),
    ("bit-vector", Kind::BitVector),
    ("hash", Kind::Hash),
    ("index", Kind::Index),
    ("ranges", Kind::Ranges),
    ("lpm6", Kind::Lpm6),
];

struct Options {
    sets: Vec<String>,
    kinds: Option<Vec<Kind>>,
    order: Order,
    trace: usize,
    plan: Plan,
    seed: u64,
    json: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("pipec-bench-lookups: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let options = options()?;
    #[cfg(peers)]
    let dpdk = match pipec_bench_lookups::peers::Dpdk::start() {
        Ok(dpdk) => Some(dpdk),
        Err(why) => {
            eprintln!("{why}; its structures are left out");
            None
        }
    };
    #[cfg(peers)]
    let hz = dpdk.map(|dpdk| dpdk.tsc_hz() as f64);
    #[cfg(not(peers))]
    let hz: Option<f64> = None;
    #[cfg(not(peers))]
    eprintln!("built without DPDK: its structures are left out");
    for name in &options.sets {
        let set = sets::set(name, options.trace, options.order, options.seed)?;
        let kinds = options.kinds.as_deref().unwrap_or(set.kinds);
        let rows = measure(
            &set,
            kinds,
            options.plan,
            #[cfg(peers)]
            dpdk,
        );
        match options.json {
            true => println!("{}", json::line(name, &rows)),
            false => print(name, &rows, hz),
        }
    }
    Ok(())
}

fn print(name: &str, rows: &[Row], hz: Option<f64>) {
    println!("{name}");
    println!("  structure         ns  least  cycles  ratio     memory  build ms  change µs  worst  differ");
    let base = rows.first().map_or(1.0, |row| row.ns.0);
    for row in rows {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
        println!(
            "  {:<13} {:>6.1} {:>6.1} {:>7} {:>6.2} {:>7} KiB {:>9.1} {:>10} {:>6} {:>7}",
            row.name,
            row.ns.0,
            row.ns.1,
            or_dash(hz.map(|hz| format!("{:.0}", row.ns.0 * hz / 1e9))),
            row.ns.0 / base,
            row.memory / 1024,
            row.build_ms,
            or_dash(row.change_us.map(|us| format!("{us:.1}"))),
            or_dash(row.worst.map(|worst| worst.to_string())),
            row.differ,
        );
    }
}

fn options() -> Result<Options, String> {
    let mut options = Options {
        sets: vec![],
        kinds: None,
        order: Order::Uniform,
        trace: 8192,
        plan: Plan { rounds: 15, lookups: 100_000 },
        seed: 1,
        json: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        if arg == "--json" {
            options.json = true;
            continue;
        }
        if !arg.starts_with("--") {
            options.sets.push(arg);
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{arg} wants a value"))?;
        let number = || value.parse::<usize>().map_err(|_| format!("{arg} wants a number, not `{value}`"));
        match arg.as_str() {
            "--kinds" if value == "none" => options.kinds = Some(vec![]),
            "--kinds" => options.kinds = Some(value.split(',').map(kind).collect::<Result<_, _>>()?),
            "--order" => {
                options.order = Order::by_name(&value)
                    .ok_or_else(|| format!("--order is uniform, pareto, zipf or elephants, not `{value}`"))?;
            }
            "--trace" => options.trace = number()?.max(BURST) / BURST * BURST,
            "--rounds" => options.plan.rounds = number()?.max(1),
            "--lookups" => options.plan.lookups = number()?,
            "--seed" => options.seed = number()? as u64,
            _ => {
                return Err(format!(
                    "no option {arg}; options are --kinds, --order, --trace, --rounds, --lookups, --seed"
                ));
            }
        }
    }
    if options.sets.is_empty() {
        options.sets = SETS.iter().map(ToString::to_string).collect();
    }
    Ok(options)
}

fn kind(name: &str) -> Result<Kind, String> {
    let known = KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    known.ok_or_else(|| {
        let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        format!("no structure `{name}`; structures are {}", names.join(", "))
    })
}
