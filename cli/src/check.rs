//! `pipec check`: the diagnostics of programs.

use std::path::PathBuf;

use pipec_runtime::host::print;

use crate::failure::Failure;
use crate::messages;
use crate::program;

/// Check programs and show what is wrong
#[derive(clap::Args)]
pub struct Args {
    /// Programs (.pipe, or .flows with rules of ovs-ofctl); - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Checks each file; fails when any has errors.
pub fn check(args: &Args, color: bool) -> Result<(), Failure> {
    let mut failed = None;
    for file in &args.files {
        match program::load(file, &[], color) {
            Ok(loaded) => {
                let program = &loaded.program;
                let rules: usize = program.tables.iter().map(|table| table.rules.len()).sum();
                let (ports, tables) = (program.ports.len(), program.tables.len());
                let counts = [count(ports, "port"), count(tables, "table"), count(rules, "rule")].join(", ");
                print(&format!("{}: good: {}, {counts}\n", file.display(), program.name))?;
            }
            Err(Failure::Error(error)) if args.files.len() > 1 => {
                messages::failure(&error);
                failed = failed.max(Some(error.status()));
            }
            Err(Failure::Told(status)) => failed = failed.max(Some(status)),
            Err(error) => return Err(error),
        }
    }
    failed.map_or(Ok(()), |status| Err(Failure::Told(status)))
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
