//! A program at a terminal: what `pipec run` and every built program do.
//!
//! In: a program and its options. Out: packets on ports, a live line of rates while it runs, a summary or JSON behind it, an
//! exit status. Never: a packet path; over captures that is `replay`'s, on other ports `live`'s.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Command, FromArgMatches};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::engine::Engine;
use crate::error::Error;
use crate::io::spec::{self, PortKind, PortSpec};
use crate::options::{RunOptions, StatsFormat};
use crate::pcap::Cut;
use crate::replay::{self, Job};
use crate::stats::Stats;
use crate::{ports, summary};

/// The whole of a program that was built ahead of time: reads the command line, runs, says what went wrong.
pub fn main(engine: &Engine) -> ExitCode {
    main_from(engine, std::env::args_os())
}

/// As [`main`], with this command line.
pub fn main_from(engine: &Engine, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options =
        match command(engine).try_get_matches_from(args).and_then(|found| RunOptions::from_arg_matches(&found)) {
            Ok(options) => options,
            Err(error) => {
                let _ = error.print(); // there is nobody else to tell
                return ExitCode::from(error.exit_code() as u8);
            }
        };
    finish(run(engine, &options))
}

/// Says what went wrong, and the exit status for it.
pub fn finish(result: Result<(), Error>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tell(&format!("error: {error}"));
            ExitCode::from(error.status())
        }
    }
}

/// The command line of a program by itself.
fn command(engine: &Engine) -> Command {
    let meta = engine.meta();
    let about = format!("The pipeline `{}`, compiled by pipec", meta.name);
    let mut help = String::from("Ports of this pipeline:\n");
    for port in &meta.ports {
        help += &match ports::is_numbered_only(port) {
            true => format!("  {}\n", port.name),
            false => format!("  {} (number {})\n", port.name, port.number),
        };
    }
    let command = RunOptions::augment_args(Command::new(meta.name.clone()));
    command.about(about).after_help(help).version(env!("CARGO_PKG_VERSION"))
}

/// Runs a program on the ports that the options name. If all are captures, the run is that of [`replay`](crate::replay) and
/// ends when they have been read; else it ends after `--secs`, or by SIGINT or SIGTERM.
///
/// # Errors
/// When ports are wrong or missing, or the environment refuses. Captures that were only read in part are an error too, after
/// the summary.
pub fn run(engine: &Engine, options: &RunOptions) -> Result<(), Error> {
    let specs = spec::parse_all(&options.ports)?;
    let attached = ports::attach(engine.meta(), &specs)?;
    let stop = stop_flag()?;
    match job(&attached) {
        Some(job) => run_captures(engine, &job, options, &stop),
        None => run_live(engine, options, attached, &stop),
    }
}

/// The run over captures, if all ports are captures.
fn job(attached: &[Option<PortSpec>]) -> Option<Job> {
    let mut job = Job::default();
    for (port, spec) in attached.iter().enumerate() {
        let output = match spec.as_ref().map(|spec| &spec.kind) {
            None => None,
            Some(PortKind::Pcap { rx, tx }) => {
                job.inputs.extend(rx.clone().map(|rx| (port as u16, rx)));
                tx.clone()
            }
            Some(_) => return None,
        };
        job.outputs.push(output);
        job.attached.push(spec.is_some());
    }
    Some(job)
}

fn run_captures(engine: &Engine, job: &Job, options: &RunOptions, stop: &AtomicBool) -> Result<(), Error> {
    let report = replay::replay(engine, job, stop, &mut |_| true)?;
    show(&report.stats, options)?;
    for (path, cut) in &report.cut {
        warn_cut(&path.display().to_string(), cut);
    }
    complain(report.broken.into_iter().map(Error::from).collect())
}

/// Says that frames were cut short when they were captured.
pub fn warn_cut(path: &str, cut: &Cut) {
    let Cut { first, have, had, count } = cut;
    let frames = if *count == 1 { "1 frame".to_string() } else { format!("{count} frames") };
    tell(&format!(
        "warning: {path}: {frames} had been cut short when captured (packet {first}: {have} of {had} bytes) and ran as they \
         are; capture with a larger snap length (tcpdump -s 0)"
    ));
}

/// The last of several errors, after telling of the others.
///
/// # Errors
/// When there is any.
pub fn complain(mut errors: Vec<Error>) -> Result<(), Error> {
    let last = errors.pop();
    for error in errors {
        tell(&format!("error: {error}"));
    }
    last.map_or(Ok(()), Err)
}

#[cfg(feature = "dpdk")]
fn run_live(
    engine: &Engine,
    options: &RunOptions,
    ports: Vec<Option<PortSpec>>,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let live = crate::live::LiveOptions {
        ports,
        cpus: options.cpus.clone().unwrap_or_default().0,
        eal: options.eal.clone(),
        secs: options.secs.map(|secs| secs.as_secs_f64()),
        warm: options.warm.unwrap_or_default().as_secs_f64(),
        max_conns: None,
    };
    let mut line = crate::live_line::LiveLine::new(options.quiet);
    let report = crate::live::run_live(engine, &live, stop, &mut |stats| line.update(stats));
    line.clear();
    show(&report?.stats, options)
}

#[cfg(not(feature = "dpdk"))]
fn run_live(
    _engine: &Engine,
    _options: &RunOptions,
    ports: Vec<Option<PortSpec>>,
    _stop: &AtomicBool,
) -> Result<(), Error> {
    let other = ports.iter().flatten().find(|spec| !matches!(spec.kind, PortKind::Pcap { .. }));
    let other = other.map_or(String::new(), ToString::to_string);
    Err(Error::Usage(format!(
        "port {other} needs DPDK, which this build was made without; use pcap: ports only, or a build with DPDK"
    )))
}

/// Prints what was counted.
fn show(stats: &Stats, options: &RunOptions) -> Result<(), Error> {
    match options.stats {
        StatsFormat::Json => print(&(stats.to_json() + "\n")),
        StatsFormat::Text if options.quiet => Ok(()),
        StatsFormat::Text => print(&summary::summary(stats)),
    }
}

/// Writes to standard output; that its reader went away is no error.
///
/// # Errors
/// When it cannot be written for another reason.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::Environment(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a line to standard error; where nobody reads it, there is nobody else to tell.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A flag that SIGINT and SIGTERM set; a second signal ends the process at once.
///
/// # Errors
/// When the system refuses.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for (signal, status) in [(SIGINT, 130), (SIGTERM, 143)] {
        signal_hook::flag::register_conditional_shutdown(signal, status, stop.clone())
            .and_then(|_| signal_hook::flag::register(signal, stop.clone()))
            .map_err(|error| Error::Environment(format!("cannot catch signal {signal}: {error}")))?;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_a_command_line() {
        RunOptions::augment_args(Command::new("firewall")).debug_assert();
    }

    #[test]
    fn captures_alone_make_a_job() {
        let specs = |texts: &[&str]| spec::parse_all(texts).unwrap().into_iter().map(Some).collect::<Vec<_>>();
        let found = job(&specs(&["a=pcap:in,out", "b=pcap:,out2"])).unwrap();
        assert_eq!(found.inputs, [(0, "in".into())]);
        assert_eq!(found.outputs, [Some("out".into()), Some("out2".into())]);
        assert!(job(&specs(&["a=pcap:in", "b=null"])).is_none());
    }
}
