//! `pipec-bench live`: how long a program takes from its text until packets can be given to it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use comfy_table::Cell;
use pipec_bench::artifacts::Artifacts;
use pipec_bench::compiled::{self, Steps};
use pipec_bench::report::{self, number};
use pipec_bench::workload::Workload;
use pipec_bench::{Error, process};

use super::print;

/// The stateful firewall in the language of pipelines.
const FIREWALL: &str = include_str!("../../../pipelines/firewall.pipe");

/// What is aimed at, in milliseconds.
const AIMS: &[(&str, u32)] =
    &[("firewall.pipe", 10), ("firewall-100", 10), ("acl-1000", 1000), ("l3-10000", 1000), ("l2-100000", 3000)];

/// Measure the time from a program's text to a program that packets can be given to: compiled in memory, tables built and
/// published. Starting DPDK is not part of it
#[derive(clap::Args)]
pub struct Args {
    /// Workloads, or files with programs [default: firewall.pipe, firewall-100, acl-1000, l3-10000 and l2-100000]
    #[arg(value_name = "WORKLOAD|FILE")]
    programs: Vec<String>,

    /// How often; medians are shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// Measure `pipec build` too, once
    #[arg(long)]
    build: bool,
}

/// Measures and prints.
pub fn run(args: &Args) -> Result<ExitCode, Error> {
    let default = || AIMS.iter().map(|aim| aim.0.to_string()).collect();
    let names: Vec<String> = if args.programs.is_empty() { default() } else { args.programs.clone() };
    let artifacts = args.build.then(Artifacts::build).transpose()?;
    let mut table = report::table(&["program", "front ", "plan ", "code ", "tables ", "all ", "aim ", "build "]);
    for name in &names {
        let (file, text) = text(name)?;
        let mut rounds = Vec::new();
        for _ in 0..args.rounds {
            rounds.push(compiled::compile(&file, &text)?.2);
        }
        let aim = AIMS.iter().find(|aim| aim.0 == name.as_str());
        let built = artifacts.as_ref().map(|artifacts| build(artifacts, &file, &text)).transpose()?;
        let median = |step: fn(&Steps) -> Duration| number(ms(median(rounds.iter().map(step).collect())));
        table.add_row([
            Cell::new(name),
            median(|steps| steps.front),
            median(|steps| steps.plan),
            median(|steps| steps.code),
            median(|steps| steps.tables),
            median(Steps::total),
            number(aim.map_or(String::new(), |aim| format!("{} ms", aim.1))),
            number(built.map_or(String::new(), ms)),
        ]);
    }
    print(&(table.trim_fmt() + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// A program by its name: what its file is called, and its text.
fn text(name: &str) -> Result<(String, String), Error> {
    if name == "firewall.pipe" {
        return Ok((name.to_string(), FIREWALL.to_string()));
    }
    if let Ok(workload) = name.parse::<Workload>() {
        return Ok((format!("{name}.flows"), workload.make().rules));
    }
    let path = PathBuf::from(name);
    let text = fs::read_to_string(&path).map_err(|error| Error::file(&path, &error))?;
    Ok((name.to_string(), text))
}

/// How long `pipec build` takes.
fn build(artifacts: &Artifacts, file: &str, text: &str) -> Result<Duration, Error> {
    let name = PathBuf::from(file).file_name().unwrap_or_default().to_owned();
    let (source, program) = (artifacts.folder.join(name), artifacts.folder.join("built"));
    fs::write(&source, text).map_err(|error| Error::file(&source, &error))?;
    let start = Instant::now();
    process::run(Command::new(&artifacts.pipec).arg("build").arg(&source).arg("-o").arg(&program))?;
    Ok(start.elapsed())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
