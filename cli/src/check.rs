//! `pipec check`: the diagnostics of programs.

use std::path::PathBuf;

use pipec_compiler::codes;
use pipec_runtime::host::print;

use crate::failure::Failure;
use crate::messages;
use crate::program::{self, Lints};

/// Check programs and show what is wrong
#[derive(clap::Args)]
pub struct Args {
    /// Programs (.pipe, or .flows with rules of ovs-ofctl); - for standard input
    #[arg(required_unless_present = "explain", value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Take warnings with this code for errors; `warnings` for all
    #[arg(long, value_name = "CODE", value_parser = code)]
    deny: Vec<String>,

    /// Do not show warnings with this code; `warnings` for all
    #[arg(long, value_name = "CODE", value_parser = code)]
    allow: Vec<String>,

    /// Explain what a message with this code means, with an example
    #[arg(long, value_name = "CODE", value_parser = code)]
    explain: Option<String>,
}

/// A code of a diagnostic, or `warnings`.
fn code(text: &str) -> Result<String, String> {
    if text == "warnings" || codes::find(text).is_some() {
        return Ok(text.to_string());
    }
    let near: Vec<&str> = codes::CODES.iter().map(|code| code.id).filter(|id| id.contains(text)).take(5).collect();
    Err(match near.is_empty() {
        true => "no message has this code; codes stand in brackets behind `error` and `warning`".to_string(),
        false => format!("no message has this code; there is {}", near.join(", ")),
    })
}

/// An example, set apart from what is said about it.
fn indented(example: &str) -> String {
    example.trim_end().lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// Checks each file; fails when any has errors.
pub fn check(args: &Args, color: bool) -> Result<(), Failure> {
    if let Some(code) = args.explain.as_deref().and_then(codes::find) {
        print(&format!("{}\n\n{}\n\n{}\n", code.id, code.text, indented(code.example)))?;
    }
    let lints = Lints { allow: args.allow.clone(), deny: args.deny.clone() };
    let mut failed = None;
    for file in &args.files {
        match program::load_with(file, &[], color, &lints) {
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
