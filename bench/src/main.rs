//! `pipec-bench`: the command line of the benchmarks.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use pipec_bench::Error;
use pipec_bench::process::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::commands::{forward, instructions, latency, live, results, updates};

/// Measure this dataplane beside others, on the same frames over the same ports
///
/// Engines run in alternation, one round after the other, each as a process of its own on one processor. A figure is the
/// median of all rounds, in cycles of the time-stamp counter a packet.
#[derive(Parser)]
#[command(name = "pipec-bench", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    forward: forward::Args,
}

#[derive(Subcommand)]
enum Command {
    Instructions(instructions::Args),
    Latency(latency::Args),
    Live(live::Args),
    Updates(updates::Args),
    Results(results::Args),
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Cli) -> Result<ExitCode, Error> {
    let stop = Stop::default();
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.0.clone())
            .map_err(|error| Error::Failed(format!("cannot catch signal {signal}: {error}")))?;
    }
    match &args.command {
        None => forward::run(&args.forward, stop),
        Some(Command::Instructions(args)) => instructions::run(args, &stop),
        Some(Command::Latency(args)) => latency::run(args, stop),
        Some(Command::Live(args)) => live::run(args),
        Some(Command::Updates(args)) => updates::run(args, &stop),
        Some(Command::Results(args)) => results::run(args, stop),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use pipec_bench::engine::Kind;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
        let args = Cli::parse_from(["pipec-bench", "wire", "--engines", "jit,floor", "--secs", "0.5"]);
        assert_eq!(args.forward.engines, [Kind::Jit, Kind::Floor]);
        assert!(matches!(
            Cli::parse_from(["pipec-bench", "instructions", "wire", "--update"]).command,
            Some(Command::Instructions(_))
        ));
        for bad in
            [&["--secs", "0"][..], &["nothing"], &["wire", "instructions"], &["instructions", "--check", "--update"]]
        {
            assert!(Cli::try_parse_from([&["pipec-bench"], bad].concat()).is_err(), "{bad:?}");
        }
    }
}
