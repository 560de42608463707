//! `pipec-bench`: cycles a packet, in alternation with others.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use pipec_bench::artifacts::Artifacts;
use pipec_bench::engine::{Kind, Setup};
use pipec_bench::machine::{self, Machine};
use pipec_bench::process::Stop;
use pipec_bench::report::Report;
use pipec_bench::workload::Workload;
use pipec_bench::{Error, rounds};

use super::{OnCpu, print, seconds};

/// What to measure, and how.
#[derive(clap::Args)]
pub struct Args {
    /// What to measure: wire, ports-P, firewall-N, fwtcp-N, classes-N-S, l2-N, l3-N, acl-N, random-N, attack-N, strangers-N, collide-N, flood-N, gwlb-N-FORM or access-N
    #[arg(value_name = "WORKLOAD", default_values = ["wire", "firewall-100", "firewall-1000", "fwtcp-1000"])]
    workloads: Vec<Workload>,

    /// What to measure it with: floor, io, io-2, macswap, hand, jit, jit-2, rust, ovs, ovs-smc, swx, or the path of another `pipec` [default: all but
    /// ovs-smc]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub engines: Vec<Kind>,

    /// Take rules and frames from this folder, as they are: NAME.flows, NAME.0.pcap (received by port 1) and NAME.1.pcap (by
    /// port 2)
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,

    /// How often
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How long to measure, each time
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    secs: Duration,

    /// How long to run before that
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    warm: Duration,

    #[command(flatten)]
    on: OnCpu,

    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

/// Measures and prints.
pub fn run(args: &Args, stop: Stop) -> Result<ExitCode, Error> {
    eprintln!("building pipec and the traffic source");
    let artifacts = Artifacts::build()?;
    let load = machine::load();
    let machine = Machine::prepare(args.on.cpu, &stop)?;
    let setup = Setup { machine, artifacts, warm: args.warm, measured: args.secs, stop };
    let kinds = if args.engines.is_empty() { Kind::all() } else { args.engines.clone() };
    let tell = &mut |line: &str| eprintln!("{line}");
    let outcome = rounds::measure(&setup, &args.workloads, args.files.as_deref(), &kinds, args.rounds, tell)?;
    let Machine { tsc_hz, hugepages, .. } = &setup.machine;
    let report = Report::new(outcome, machine::processor(), *tsc_hz, *hugepages, [load, machine::load()]);
    print(&if args.json { report.json() + "\n" } else { report.text() })?;
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
