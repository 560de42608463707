//! `pipec-bench updates`: changes of open tables while packets are looked up in them.

use std::process::{Command, ExitCode};
use std::time::Duration;

use comfy_table::Cell;
use pipec_bench::Error;
use pipec_bench::artifacts::Artifacts;
use pipec_bench::machine::Machine;
use pipec_bench::process::{Process, Stop};
use pipec_bench::report::{self, number};
use pipec_bench::updates::{self, Figures, Kind, Latency};

use super::{OnCpu, print, seconds};

/// Measure changes of tables while packets are looked up in them: how long each takes, how many a second there can be, and what
/// 100,000 a second cost look-ups
#[derive(clap::Args)]
pub struct Args {
    /// Kinds of tables: exact, lpm, acl
    #[arg(value_name = "KIND", default_values = ["exact", "lpm", "acl"])]
    kinds: Vec<Kind>,

    /// Entries [default: 100000, of acl 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=500_000))]
    entries: Option<u32>,

    /// How often; medians are shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// How long to measure, each time
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    secs: Duration,

    #[command(flatten)]
    on: OnCpu,

    /// Print JSON, a line a kind, in place of the table
    #[arg(long)]
    json: bool,

    /// Measure the one kind in this process
    #[arg(long, hide = true)]
    here: bool,
}

/// Measures and prints. Each kind is measured by a process of its own, which is this program with one kind and `--here`.
pub fn run(args: &Args, stop: &Stop) -> Result<ExitCode, Error> {
    let artifacts = Artifacts::build()?;
    if args.here {
        let machine = Machine::beside_others(args.on.cpu);
        let kind = args.kinds[0];
        let entries = args.entries.unwrap_or(if kind == Kind::Acl { 10_000 } else { 100_000 });
        let figures = updates::measure(kind, entries, &machine, &artifacts, args.secs, args.rounds)?;
        print(&line(&figures)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let _machine = Machine::prepare(args.on.cpu, stop)?;
    let mut all = Vec::new();
    for kind in &args.kinds {
        let figures = elsewhere(&artifacts, *kind, args.entries, args.rounds, args.secs, args.on.cpu, stop)?;
        if args.json {
            print(&line(&figures)?)?;
        }
        all.push(figures);
    }
    if !args.json {
        print(&table(&all))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How long a kind may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Measures one kind in a process of its own.
pub fn elsewhere(
    artifacts: &Artifacts,
    kind: Kind,
    entries: Option<u32>,
    rounds: u32,
    time: Duration,
    cpu: Option<u32>,
    stop: &Stop,
) -> Result<Figures, Error> {
    let mut command = Command::new(&artifacts.bench);
    command.env("REPLAY_DIR", updates::folder(artifacts, kind));
    command.args(["updates", kind.name(), "--here", "--rounds", &rounds.to_string()]);
    command.args(["--secs", &time.as_secs_f64().to_string()]);
    command.args(entries.iter().flat_map(|entries| ["--entries".to_string(), entries.to_string()]));
    command.args(cpu.iter().flat_map(|cpu| ["--cpu".to_string(), cpu.to_string()]));
    let process = Process::start("updates", &mut command, &artifacts.folder, stop)?.patiently(PATIENCE);
    let text = process.finish()?;
    serde_json::from_str(text.trim())
        .map_err(|error| Error::Failed(format!("figures of {} cannot be read: {error}: {text}", kind.name())))
}

/// Figures on one line.
fn line(figures: &Figures) -> Result<String, Error> {
    serde_json::to_string(figures).map(|line| line + "\n").map_err(|error| Error::Failed(error.to_string()))
}

fn table(all: &[Figures]) -> String {
    let heads = [
        "table",
        "entries ",
        "load ",
        "put in ",
        "changed ",
        "taken out ",
        "a second ",
        "in batches ",
        "cycles/packet ",
        "with updates ",
        "as many ",
    ];
    let mut table = report::table(&heads);
    for figures in all {
        let latency = |Latency { median, p99, .. }: Latency| number(format!("{} / {}", us(median), us(p99)));
        let with = |cycles: f64, rate: f64| {
            number(format!("{cycles:.1} ({:+.1} % at {})", (cycles / figures.quiet - 1.0) * 100.0, thousands(rate)))
        };
        table.add_row([
            Cell::new(&figures.kind),
            number(figures.entries.to_string()),
            number(format!("{:.3} s", figures.load_s)),
            latency(figures.latency[0]),
            latency(figures.latency[1]),
            latency(figures.latency[2]),
            number(thousands(figures.full_rate)),
            number(thousands(figures.batched_rate)),
            number(format!("{:.1}", figures.quiet)),
            with(figures.paced, figures.paced_rate),
            with(figures.full, figures.full_rate),
        ]);
    }
    format!(
        "{}\n\nLatencies in µs: median / 99th percentile, of single changes at {} a second at the most. `in batches`: changes a\n\
         second in batches of {}.\n",
        table.trim_fmt(),
        thousands(updates::PACE),
        updates::BATCH
    )
}

fn us(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e3)
}

fn thousands(rate: f64) -> String {
    if rate < 10_000.0 { format!("{rate:.0}") } else { format!("{:.0} k", rate / 1e3) }
}
