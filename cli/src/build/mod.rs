//! `pipec build`: a program ahead of time, as an executable, a library, or Rust.

pub mod cache;
pub mod hash;
pub mod library;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use pipec_runtime::error::system;
use pipec_runtime::host::print;

use crate::failure::Failure;
use crate::{bundle, program};

/// Compile a program ahead of time
#[derive(clap::Args)]
pub struct Args {
    /// The program (.pipe, or .flows with rules of ovs-ofctl); - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where to put it; - for standard output with --emit rust [default: the pipeline's name in this folder]
    #[arg(short, long = "output", value_name = "OUT")]
    output: Option<PathBuf>,

    /// What to make
    #[arg(long, value_enum, default_value_t)]
    emit: Emit,

    /// The processor to compile for, as rustc names it
    #[arg(long, value_name = "CPU", default_value = library::NATIVE)]
    target_cpu: String,

    /// Ports 1 to N exist, whether or not a .flows program names them
    #[arg(long, value_name = "N", default_value_t = 0)]
    ports: u32,
}

/// What to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// An executable with the options of `pipec run`
    #[default]
    Bin,
    /// A library that the runtime loads
    Lib,
    /// Rust source, for a crate that depends on pipec-abi
    Rust,
}

/// Compiles, and writes the result.
pub fn build(args: &Args, color: bool) -> Result<(), Failure> {
    let numbers: Vec<u32> = (1..=args.ports).collect();
    let loaded = program::load(&args.file, &numbers, color)?;
    let program = &loaded.program;
    let output = args.output.clone().unwrap_or_else(|| default_output(&program.name, args.emit));
    if args.emit == Emit::Rust {
        let source = library::source(program)?;
        if output == Path::new("-") {
            return Ok(print(&source)?);
        }
        return write(&output, 0o644, |file| file.write_all(source.as_bytes()));
    }
    let library = library::compile(program, &args.target_cpu)?;
    let bytes = std::fs::read(&library).map_err(|error| {
        Failure::environment(format!("{}: cannot read what was built: {}", library.display(), system(&error)))
    })?;
    match args.emit {
        Emit::Bin => write(&output, 0o755, |file| bundle::write(file, &bytes)),
        Emit::Lib | Emit::Rust => write(&output, 0o755, |file| file.write_all(&bytes)),
    }
}

fn default_output(name: &str, emit: Emit) -> PathBuf {
    PathBuf::from(match emit {
        Emit::Bin => name.to_string(),
        Emit::Lib => format!("{name}.so"),
        Emit::Rust => format!("{name}.rs"),
    })
}

fn write(
    path: &Path,
    mode: u32,
    content: impl FnOnce(&mut std::io::BufWriter<&std::fs::File>) -> std::io::Result<()>,
) -> Result<(), Failure> {
    bundle::write_whole(path, mode, content).map_err(|error| {
        Failure::environment(format!(
            "{}: cannot write: {}; choose another place with -o",
            path.display(),
            system(&error)
        ))
    })
}
