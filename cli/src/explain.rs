//! `pipec explain`: what became of a program's tables, and why.
//!
//! In: a program. Out: a text, or JSON: classifiers and what spoke against others, sizes, what is parsed when, where packets
//! wait and are copied, estimates of cycles. It compiles nothing.

use std::path::PathBuf;

use clap::ValueEnum;
use pipec_compiler::explain::{Explanation, explain as explain_plan};
use pipec_runtime::host::print;

use crate::calibrate;
use crate::failure::Failure;
use crate::program;

/// Show which classifier each table gets and why, what is parsed when, and what it may cost
#[derive(clap::Args)]
pub struct Args {
    /// The program (.pipe, or .flows with rules of ovs-ofctl); - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only this table
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,

    /// For people, or for programs
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// How it is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text
    Text,
    /// JSON
    Json,
}

/// Plans the program and tells what was decided.
pub fn explain(args: &Args, color: bool) -> Result<(), Failure> {
    let loaded = program::load(&args.file, &[], color)?;
    let (plan, report) = calibrate::plan(&loaded.program)?;
    let mut explanation = explain_plan(&loaded.program, &plan, &report);
    if let Some(table) = &args.table {
        check_table(&explanation, table)?;
    }
    let text = match args.format {
        Format::Text => explanation.text(args.table.as_deref()),
        Format::Json => {
            explanation.tables.retain(|each| args.table.as_ref().is_none_or(|table| each.table == *table));
            let json = serde_json::to_string_pretty(&explanation);
            json.map_err(|error| Failure::environment(format!("cannot write JSON: {error}")))? + "\n"
        }
    };
    Ok(print(&text)?)
}

fn check_table(explanation: &Explanation, table: &str) -> Result<(), Failure> {
    if explanation.tables.iter().any(|each| each.table == table) {
        return Ok(());
    }
    let names: Vec<String> = explanation.tables.iter().map(|each| format!("`{}`", each.table)).collect();
    let pipeline = &explanation.pipeline;
    Err(Failure::usage(format!("--table {table}: {pipeline} has no such table; it has {}", names.join(", "))))
}
