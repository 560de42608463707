//! The subcommands, one file each: arguments, and what is printed. What they measure is the library's.

pub mod forward;
pub mod instructions;
pub mod latency;
pub mod live;
pub mod results;
mod schedule;
pub mod updates;

use std::io::{self, Write};
use std::time::Duration;

use pipec_bench::Error;

/// Where engines forward.
#[derive(clap::Args)]
pub struct OnCpu {
    /// The processor to forward on [default: 1, or 0 where there is only one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..64))]
    pub cpu: Option<u32>,
}

/// A number of seconds, with decimals.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|time| !time.is_zero()).ok_or_else(|| "expected a number of seconds, such as 2 or 0.5".to_string())
}

/// Writes to standard output.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Error::Failed(format!("cannot write to standard output: {error}")))
}
