//! `pipec run`: a program on ports, until stopped.

use std::path::PathBuf;

use pipec_runtime::host;
use pipec_runtime::options::RunOptions;

use crate::engine::EngineName;
use crate::failure::Failure;
use crate::program;

/// Run a program on ports; ends by SIGINT or SIGTERM, after --secs, or when all ports are captures and have been read
#[derive(clap::Args)]
pub struct Args {
    /// The program (.pipe, or .flows with rules of ovs-ofctl); - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What runs it
    #[arg(long, value_enum, default_value = "jit")]
    engine: EngineName,

    #[command(flatten)]
    options: RunOptions,
}

/// Compiles and runs.
pub fn run(args: &Args, color: bool) -> Result<(), Failure> {
    let numbers: Vec<u32> = args.options.ports.iter().filter_map(|port| port.split('=').next()?.parse().ok()).collect();
    let loaded = program::load(&args.file, &numbers, color)?;
    let engine = args.engine.load(&loaded)?;
    Ok(host::run(&engine, &args.options)?)
}
