//! `pipec-bench instructions`: instructions a packet, beside what is stored.

use std::process::ExitCode;
use std::time::Duration;

use comfy_table::{Cell, Table};
use pipec_bench::Error;
use pipec_bench::artifacts::Artifacts;
use pipec_bench::engine::Kind;
use pipec_bench::instructions::series::{self, Series};
use pipec_bench::instructions::stored::{CHECK, MadeWith, Stored, TOLERANCE, UPDATE, change, path};
use pipec_bench::instructions::{Count, available, count};
use pipec_bench::process::Stop;
use pipec_bench::report::{self, number};
use pipec_bench::workload::{Files, Workload};

use super::{print, seconds};

/// Count instructions a packet under callgrind, which other programs on the machine do not disturb
#[derive(clap::Args)]
pub struct Args {
    /// What to count [default: what is stored]
    #[arg(value_name = "WORKLOAD")]
    workloads: Vec<Workload>,

    /// Which of our engines: jit, rust, or the path of another `pipec` [default: those stored, or jit and rust]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    engines: Vec<Kind>,

    /// Fail where a count is more than three in a hundred away from what is stored
    #[arg(long, conflicts_with_all = ["update", "growth"])]
    check: bool,

    /// Store the counts
    #[arg(long, conflicts_with = "growth")]
    update: bool,

    /// Count the workloads of which one thing grows, and show how far each series is from flat
    #[arg(long, conflicts_with = "workloads")]
    growth: bool,

    /// For how long, each time, in callgrind's slow pace
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    secs: Duration,
}

/// What counting needs.
struct Counter<'a> {
    artifacts: Artifacts,
    args: &'a Args,
    stop: &'a Stop,
}

impl Counter<'_> {
    fn count(&self, workload: Workload, kind: &Kind) -> Result<Count, Error> {
        let name = kind.engine().name();
        let files = Files::write(workload, &self.artifacts.folder)?;
        let count = count(&self.artifacts, &files, kind, self.args.secs, self.stop).map_err(|error| match error {
            Error::NotApplicable => {
                Error::Failed(format!("{name}: only our own engines are counted: jit, rust, a path"))
            }
            error => error,
        })?;
        eprintln!("{workload}: {name} {:.1} over {} packets", count.ours, count.packets);
        Ok(count)
    }

    fn engines(&self) -> Vec<Kind> {
        if self.args.engines.is_empty() { vec![Kind::Jit, Kind::Rust] } else { self.args.engines.clone() }
    }
}

/// Counts and prints, compares or stores.
pub fn run(args: &Args, stop: &Stop) -> Result<ExitCode, Error> {
    if let Err(error) = available() {
        if args.check {
            eprintln!("skipped: instructions are not counted: {error}");
            return Ok(ExitCode::SUCCESS);
        }
        return Err(error);
    }
    eprintln!("building pipec and the traffic source");
    let counter = Counter { artifacts: Artifacts::build()?, args, stop };
    if args.growth { growth(&counter) } else { beside_stored(&counter) }
}

/// One table of counts and what was stored before.
fn beside_stored(counter: &Counter) -> Result<ExitCode, Error> {
    let (args, here) = (counter.args, MadeWith::here()?);
    let stored = Stored::read(&path())?;
    let same_tools = stored.made_with == here;
    if args.check && !same_tools {
        let Stored { made_with, .. } = &stored;
        eprintln!("skipped: counts were stored with {made_with:?}, here is {here:?}; `{UPDATE}` stores them anew");
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = report::table(&["workload", "engine", "instructions/packet ", "driver ", "stored ", "change "]);
    let (mut new, mut far) = (stored.clone(), Vec::new());
    for (workload, kind) in asked(counter, &stored)? {
        let (name, engine) = (workload.to_string(), kind.engine().name());
        let count = counter.count(workload, &kind)?;
        let before = stored.of(&name, &engine);
        let changed = before.map(|before| change(count.ours, before));
        if changed.is_some_and(|changed| changed.abs() > TOLERANCE) {
            far.push(format!("{engine} on {name}: {:.1}, stored {:.1}", count.ours, before.unwrap_or(0.0)));
        }
        new.set(&name, &engine, count.ours);
        table.add_row([
            Cell::new(name),
            Cell::new(engine),
            number(format!("{:.1}", count.ours)),
            number(format!("{:.1}", count.driver)),
            number(before.map_or(String::new(), |before| format!("{before:.1}"))),
            number(changed.map_or(String::new(), percent)),
        ]);
    }
    print(&(table.trim_fmt() + "\n"))?;
    if args.update {
        new.made_with = here;
        new.write(&path())?;
    } else if !same_tools {
        eprintln!("what is stored was made with {:?}, so that changes say little", stored.made_with);
    } else if args.check && !far.is_empty() {
        eprintln!("error: more than {:.0} % away from what is stored:", TOLERANCE * 100.0);
        far.iter().for_each(|line| eprintln!("    {line}"));
        eprintln!(
            "Find out why; where the change is meant, store it by `{UPDATE}` and commit it. `{CHECK}` compares again."
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Which workloads on which engines: what the user said, or all that is stored.
fn asked(counter: &Counter, stored: &Stored) -> Result<Vec<(Workload, Kind)>, Error> {
    let args = counter.args;
    let engines = counter.engines();
    if !args.workloads.is_empty() {
        return Ok(args.workloads.iter().flat_map(|w| engines.iter().map(|kind| (*w, kind.clone()))).collect());
    }
    let mut asked = Vec::new();
    for (name, counts) in &stored.counts {
        let workload: Workload = name.parse().map_err(Error::Failed)?;
        for engine in counts.keys() {
            let kind: Kind = engine.parse().map_err(Error::Failed)?;
            if args.engines.is_empty() || args.engines.contains(&kind) {
                asked.push((workload, kind));
            }
        }
    }
    Ok(asked)
}

/// A table of every series.
fn growth(counter: &Counter) -> Result<ExitCode, Error> {
    let mut table = report::table(&["growing", "engine", "instructions/packet", "spread ", "at most "]);
    for kind in counter.engines() {
        for series in series::ALL {
            row(counter, &kind, series, &mut table)?;
        }
    }
    print(&(table.trim_fmt() + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn row(counter: &Counter, kind: &Kind, series: &Series, table: &mut Table) -> Result<(), Error> {
    let mut counts = Vec::new();
    let mut shown = Vec::new();
    for name in series.workloads {
        let count = counter.count(name.parse().map_err(Error::Failed)?, kind)?;
        counts.push(count.ours);
        shown.push(format!("{name} {:.1}", count.ours));
    }
    table.add_row([
        Cell::new(series.what),
        Cell::new(kind.engine().name()),
        Cell::new(shown.join(", ")),
        number(percent(series::spread(&counts))),
        number(series.aim.map_or(String::new(), percent)),
    ]);
    Ok(())
}

/// A share in hundredths.
fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}
