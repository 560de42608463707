//! `pipec-bench`: the command line of the side-by-side benchmarks.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use pipec_bench::artifacts::Artifacts;
use pipec_bench::engine::{Kind, Setup};
use pipec_bench::machine::{self, Machine};
use pipec_bench::process::Stop;
use pipec_bench::report::Report;
use pipec_bench::workload::Workload;
use pipec_bench::{Error, rounds};

/// Measure this dataplane beside others, on the same frames over the same ports
///
/// Engines run in alternation, one round after the other, each as a process of its own on one processor. A figure is the
/// median of all rounds, in cycles of the time-stamp counter a packet.
#[derive(Parser)]
#[command(name = "pipec-bench", version)]
struct Args {
    /// What to measure: wire, ports-P, firewall-N, fwtcp-N, classes-N-S, l2-N, l3-N or acl-N
    #[arg(value_name = "WORKLOAD", default_values = ["wire", "firewall-100", "firewall-1000", "fwtcp-1000"])]
    workloads: Vec<Workload>,

    /// What to measure it with: floor, io, macswap, jit, rust, ovs, ovs-smc, or the path of another `pipec` [default: all but
    /// ovs-smc]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    engines: Vec<Kind>,

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

    /// The processor to forward on [default: 1, or 0 where there is only one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..64))]
    cpu: Option<u32>,

    /// Print JSON in place of the table
    #[arg(long)]
    json: bool,
}

/// A number of seconds, with decimals.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| !time.is_zero()).ok_or_else(|| "expected a number of seconds, such as 2 or 0.5".to_string())
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<ExitCode, Error> {
    let stop = Stop::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.0.clone())
            .map_err(|error| Error::Failed(format!("cannot catch signal {signal}: {error}")))?;
    }
    eprintln!("building pipec and the traffic source");
    let artifacts = Artifacts::build()?;
    let load = machine::load();
    let machine = Machine::prepare(args.cpu);
    let setup = Setup { machine, artifacts, warm: args.warm, measured: args.secs, stop };
    let kinds = if args.engines.is_empty() { Kind::all() } else { args.engines.clone() };
    let outcome = rounds::measure(&setup, &args.workloads, args.files.as_deref(), &kinds, args.rounds, &mut |line| {
        eprintln!("{line}")
    })?;
    let Machine { tsc_hz, hugepages, .. } = &setup.machine;
    let report = Report::new(outcome, machine::processor(), *tsc_hz, *hugepages, [load, machine::load()]);
    let text = if args.json { report.json() + "\n" } else { report.text() };
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::Failed(format!("cannot write to standard output: {error}")))?;
    Ok(if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Args::command().debug_assert();
        let args = Args::parse_from(["pipec-bench", "wire", "--engines", "jit,floor", "--secs", "0.5"]);
        assert_eq!(args.engines, [Kind::Jit, Kind::Floor]);
        assert!(Args::try_parse_from(["pipec-bench", "--secs", "0"]).is_err());
        assert!(Args::try_parse_from(["pipec-bench", "nothing"]).is_err());
    }
}
