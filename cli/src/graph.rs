//! `pipec graph`: a picture of a pipeline. In: a program. Out: SVG, or the language of Graphviz, on standard output.

use std::path::PathBuf;

use clap::ValueEnum;
use pipec_compiler::explain::explain;
use pipec_compiler::graph::{dot, graph as graph_of, svg};
use pipec_runtime::host::print;

use crate::calibrate;
use crate::failure::Failure;
use crate::program;

/// Draw a program: tables with their rules and classifiers, what leads where, and ports
#[derive(clap::Args)]
pub struct Args {
    /// The program (.pipe, or .flows with rules of ovs-ofctl); - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What is written to standard output
    #[arg(long, value_enum, default_value = "svg")]
    format: Format,
}

/// How the picture is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A picture, laid out
    Svg,
    /// For Graphviz, which lays it out itself
    Dot,
}

/// Draws the program.
pub fn graph(args: &Args, color: bool) -> Result<(), Failure> {
    let loaded = program::load(&args.file, &[], color)?;
    let (plan, report) = calibrate::plan(&loaded.program)?;
    let explanation = explain(&loaded.program, &plan, &report);
    let graph = graph_of(&loaded.program, &explanation);
    let text = match args.format {
        Format::Svg => svg(&graph),
        Format::Dot => dot(&graph),
    };
    Ok(print(&text)?)
}
