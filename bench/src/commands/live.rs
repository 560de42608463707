//! `pipec-bench live`: how long a program takes from its text until packets can be given to it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use comfy_table::Cell;
use pipec_bench::artifacts::Artifacts;
use pipec_bench::live::{self, AIMS};
use pipec_bench::report::{self, number};
use pipec_bench::{Error, process};

use super::print;

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
        let row = live::measure(name, args.rounds)?;
        let built = artifacts.as_ref().map(|artifacts| build(artifacts, name)).transpose()?;
        table.add_row([
            Cell::new(name),
            number(ms(row.front)),
            number(ms(row.plan)),
            number(ms(row.code)),
            number(ms(row.tables)),
            number(ms(row.all)),
            number(row.aim.map_or(String::new(), |aim| format!("{aim} ms"))),
            number(built.map_or(String::new(), ms)),
        ]);
    }
    print(&(table.trim_fmt() + "\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// How many milliseconds `pipec build` takes.
fn build(artifacts: &Artifacts, name: &str) -> Result<f64, Error> {
    let (file, text) = live::text(name)?;
    let name = PathBuf::from(file).file_name().unwrap_or_default().to_owned();
    let (source, program) = (artifacts.folder.join(name), artifacts.folder.join("built"));
    fs::write(&source, text).map_err(|error| Error::file(&source, &error))?;
    let start = Instant::now();
    process::run(Command::new(&artifacts.pipec).arg("build").arg(&source).arg("-o").arg(&program))?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn ms(time: f64) -> String {
    format!("{time:.1} ms")
}
