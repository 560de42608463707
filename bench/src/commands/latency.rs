//! `pipec-bench latency`: how long packets take at half of what an engine takes.

use std::process::ExitCode;
use std::time::Duration;

use comfy_table::Cell;
use pipec_bench::Error;
use pipec_bench::artifacts::Artifacts;
use pipec_bench::engine::{Kind, Setup};
use pipec_bench::latency::{self, Row};
use pipec_bench::machine::Machine;
use pipec_bench::process::Stop;
use pipec_bench::report::{self, number};
use pipec_bench::workload::Workload;

use super::{OnCpu, print, seconds};

/// Workloads that latency is measured on unless the user says otherwise.
pub const WORKLOADS: [&str; 3] = ["wire", "firewall-1000", "acl-1000"];

/// Measure how long packets take through ring ports, at half of what each engine takes over them
///
/// A thread on another processor sends each packet when it is due and takes what comes back; a packet's latency counts from
/// the time it was due.
#[derive(clap::Args)]
pub struct Args {
    /// What to measure
    #[arg(value_name = "WORKLOAD", default_values = WORKLOADS)]
    workloads: Vec<Workload>,

    /// What to measure it with: floor, io, macswap, hand, jit, rust, ovs, ovs-smc [default: floor, io, jit, ovs]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    engines: Vec<Kind>,

    /// How often; the round whose 99th percentile is in the middle is shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How long to measure, each time: the capacity, and the latency
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    secs: Duration,

    #[command(flatten)]
    on: OnCpu,

    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

/// The engines that latency is measured of unless the user says otherwise.
pub fn engines() -> Vec<Kind> {
    ["floor", "io", "jit", "ovs"].iter().filter_map(|name| name.parse().ok()).collect()
}

/// Measures and prints.
pub fn run(args: &Args, stop: Stop) -> Result<ExitCode, Error> {
    eprintln!("building pipec and the traffic source");
    let artifacts = Artifacts::build()?;
    let machine = Machine::prepare(args.on.cpu, &stop)?;
    let setup = Setup { machine, artifacts, warm: args.secs, measured: args.secs, stop };
    let kinds = if args.engines.is_empty() { engines() } else { args.engines.clone() };
    let tell = &mut |line: &str| eprintln!("{line}");
    let (rows, left_out) = latency::measure(&setup, &args.workloads, &kinds, args.rounds, tell)?;
    if args.json {
        let text = serde_json::to_string(&rows).map_err(|error| Error::Failed(error.to_string()))?;
        print(&(text + "\n"))?;
    } else {
        print(&table(&rows))?;
    }
    left_out.iter().for_each(|line| eprintln!("left out: {line}"));
    Ok(ExitCode::SUCCESS)
}

fn table(rows: &[Row]) -> String {
    let heads =
        ["workload", "engine", "capacity Mpps ", "rate Mpps ", "p50 ", "p90 ", "p99 ", "p99.9 ", "max ", "late p99 "];
    let mut table = report::table(&heads);
    for row in rows {
        let Some(figures) = row.median() else { continue };
        let at_least = if figures.source_bound() { "≥ " } else { "" };
        let us = |ns: u64| number(format!("{:.2}", ns as f64 / 1e3));
        let of = figures.latency;
        table.add_row([
            Cell::new(&row.workload),
            Cell::new(&row.engine),
            number(format!("{at_least}{:.2}", figures.capacity / 1e6)),
            number(format!("{:.2}", figures.rate / 1e6)),
            us(of.p50),
            us(of.p90),
            us(of.p99),
            us(of.p999),
            us(of.max),
            us(figures.late.p99),
        ]);
    }
    format!(
        "{}\n\nTimes in µs from when a packet was due; `late p99`: of a hundred packets, 99 were sent within this time. Where the\n\
         capacity is `≥`, the traffic source could not send more.\n",
        table.trim_fmt()
    )
}
