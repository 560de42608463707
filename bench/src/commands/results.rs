//! `pipec-bench results`: everything in one run, written to a folder.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use pipec_bench::artifacts::Artifacts;
use pipec_bench::engine::{Kind, Setup};
use pipec_bench::instructions::{available, count};
use pipec_bench::machine::{self, Machine};
use pipec_bench::process::{self, Stop};
use pipec_bench::report::Report;
use pipec_bench::results::{Counted, Results};
use pipec_bench::updates::Figures;
use pipec_bench::workload::{Files, Workload};
use pipec_bench::{Error, live, rounds, updates};

/// What is forwarded.
const FORWARDED: &[&str] = &[
    "wire",
    "wire@512",
    "wire@1518",
    "wire@imix",
    "ports-2",
    "ports-16",
    "ports-32",
    "flood-1",
    "flood-4",
    "firewall-100",
    "firewall-1000",
    "firewall-10000",
    "firewall-100000",
    "fwtcp-1000",
    "classes-1000-20",
    "classes-10000-20",
    "classes-100000-1",
    "classes-100000-5",
    "classes-100000-20",
    "classes-1000000-20",
    "l2-10",
    "l2-1000",
    "l2-100000",
    "l3-1000",
    "l3-10000",
    "acl-100",
    "acl-1000",
    "random-1000",
    "attack-1000",
    "gwlb-100-universal",
    "gwlb-100-metadata",
    "gwlb-100-goto",
    "access-1000",
];
/// Of what instructions are counted.
const COUNTED: &[&str] = &[
    "wire",
    "ports-16",
    "ports-32",
    "firewall-1000",
    "fwtcp-1000",
    "classes-10000-1",
    "classes-10000-20",
    "l2-1000",
    "l3-1000",
    "acl-100",
    "acl-1000",
    "random-1000",
    "attack-1000",
    "gwlb-100-universal",
    "gwlb-100-metadata",
    "gwlb-100-goto",
    "access-1000",
];

/// Measure everything in one run, and write figures, a page and plots to a folder
#[derive(clap::Args)]
pub struct Args {
    /// Where to write them
    #[arg(long, value_name = "FOLDER", default_value = default_folder())]
    out: PathBuf,

    /// Only a few workloads, for a moment each: to see that everything works
    #[arg(long)]
    quick: bool,

    /// What to measure with [default: floor, io, macswap, hand, jit, rust, ovs, ovs-smc, swx, io-2, jit-2]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    engines: Vec<Kind>,

    /// Measure nothing; write page and plots anew from the figures that are there
    #[arg(long, conflicts_with_all = ["quick", "engines"])]
    again: bool,

    /// The processor to forward on [default: 1, or 0 where there is only one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..64))]
    cpu: Option<u32>,
}

fn default_folder() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/results")
}

/// How long each part takes.
struct Pace {
    forwarded: Vec<Workload>,
    counted: Vec<Workload>,
    live: Vec<&'static str>,
    rounds: u32,
    time: Duration,
}

impl Pace {
    fn new(args: &Args) -> Result<Pace, Error> {
        let workloads = |names: &[&str]| -> Result<Vec<Workload>, Error> {
            names.iter().map(|name| name.parse().map_err(Error::Failed)).collect()
        };
        let live = live::AIMS.iter().map(|aim| aim.0);
        Ok(match args.quick {
            true => Pace {
                forwarded: workloads(&["wire", "l2-10", "l2-1000", "firewall-100"])?,
                counted: workloads(&["wire"])?,
                live: live.take(2).collect(),
                rounds: 1,
                time: Duration::from_millis(300),
            },
            false => Pace {
                forwarded: workloads(FORWARDED)?,
                counted: workloads(COUNTED)?,
                live: live.collect(),
                rounds: 3,
                time: Duration::from_secs(2),
            },
        })
    }
}

/// Measures and writes.
pub fn run(args: &Args, stop: Stop) -> Result<ExitCode, Error> {
    if args.again {
        Results::read(&args.out)?.write(&args.out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let pace = Pace::new(args)?;
    eprintln!("building pipec and the traffic source");
    let artifacts = Artifacts::build()?;
    let instructions = instructions(&artifacts, &pace, &stop)?;
    let live = pace.live.iter().map(|name| live::measure(name, 5)).collect::<Result<Vec<_>, _>>()?;
    let load = machine::load();
    let machine = Machine::prepare(args.cpu, &stop)?;
    let (cpu, tsc_hz, hugepages) = (machine.cpu, machine.tsc_hz, machine.hugepages);
    let setup = Setup { machine, artifacts, warm: pace.time, measured: pace.time, stop };
    let mut kinds = Kind::all();
    for name in ["ovs-smc", "io-2", "jit-2"] {
        kinds.push(name.parse().map_err(Error::Failed)?);
    }
    let kinds = if args.engines.is_empty() { kinds } else { args.engines.clone() };
    let tell = &mut |line: &str| eprintln!("{line}");
    let outcome = rounds::measure(&setup, &pace.forwarded, None, &kinds, pace.rounds, tell)?;
    let forward = Report::new(outcome, machine::processor(), tsc_hz, hugepages, [load, machine::load()]);
    let updates = changes(&setup.artifacts, &pace, cpu)?;
    let failed = !forward.failed.is_empty();
    let results = Results { commit: commit(), forward, live, updates, instructions };
    results.write(&args.out)?;
    eprintln!("written to {}", args.out.display());
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn instructions(artifacts: &Artifacts, pace: &Pace, stop: &Stop) -> Result<Vec<Counted>, Error> {
    let mut counts = Vec::new();
    if let Err(error) = available() {
        eprintln!("skipped: instructions are not counted: {error}");
        return Ok(counts);
    }
    for workload in &pace.counted {
        let files = Files::write(*workload, &artifacts.folder)?;
        for kind in [Kind::Jit, Kind::Rust] {
            let engine = kind.engine().name();
            let count = count(artifacts, &files, &kind, Duration::from_secs(1), stop)?;
            eprintln!("{workload}: {engine} {:.1} instructions", count.ours);
            counts.push(Counted { workload: workload.to_string(), engine, ours: count.ours, driver: count.driver });
        }
    }
    Ok(counts)
}

fn changes(artifacts: &Artifacts, pace: &Pace, cpu: u32) -> Result<Vec<Figures>, Error> {
    let mut all = Vec::new();
    for kind in [updates::Kind::Exact, updates::Kind::Lpm, updates::Kind::Acl] {
        eprintln!("changes of a table: {}", kind.name());
        all.push(super::updates::elsewhere(artifacts, kind, None, pace.rounds, pace.time, Some(cpu))?);
    }
    Ok(all)
}

/// The commit of this workspace, with `+` where the work tree differs from it.
fn commit() -> String {
    let git = |args: &[&str]| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        process::run(Command::new("git").args(args).current_dir(folder)).map(|text| text.trim().to_string()).ok()
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".to_string() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    if changed { commit + "+" } else { commit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_workload() {
        for name in FORWARDED.iter().chain(COUNTED) {
            assert!(name.parse::<Workload>().is_ok(), "{name}");
        }
    }
}
