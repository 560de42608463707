//! `pipec replay`: a program over captures, repeatable, without ports.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use pipec_abi::CONTROLLER;
use pipec_abi::meta::Meta;
use pipec_runtime::error::system;
use pipec_runtime::replay::{Job, Passed, Report};
use pipec_runtime::{Engine, Error, host, ports, summary};

use crate::engine::EngineName;
use crate::failure::Failure;
use crate::program;

/// Run a program over captures, in the order of their time stamps and by their clock
#[derive(clap::Args)]
pub struct Args {
    /// The program (.pipe, or .flows with rules of ovs-ofctl); - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// A capture that a port receives (repeatable, also for one port)
    #[arg(long = "in", required = true, value_name = "PORT=CAPTURE")]
    inputs: Vec<String>,

    /// Write what each port sends to DIR/PORT.pcap
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// What runs the program
    #[arg(long, value_enum, default_value = "jit")]
    engine: EngineName,

    /// Print a line a packet: INDEX IN_PORT LENGTH -> PORT:HEX … or drop, ports by OpenFlow number or CONTROLLER
    #[arg(long)]
    lines: bool,

    /// Print what each port received and sent, what was dropped and why, and what each rule matched; on standard error
    /// beside --lines [default without --lines and --out]
    #[arg(long)]
    summary: bool,

    /// Ports 1 to N exist, whether or not a .flows program names them, and no others but those of --in
    #[arg(long, value_name = "N")]
    ports: Option<u32>,
}

/// Compiles and runs.
pub fn replay(args: &Args, color: bool) -> Result<(), Failure> {
    let inputs = args.inputs.iter().map(|text| input(text)).collect::<Result<Vec<_>, _>>()?;
    let mut numbers: Vec<u32> = (1..=args.ports.unwrap_or(0)).collect();
    numbers.extend(inputs.iter().filter_map(|(name, _)| name.parse::<u32>().ok()));
    let loaded = program::load(&args.file, &numbers, color)?;
    let engine = args.engine.load(&loaded)?;
    let job = job(engine.meta(), &inputs, args)?;
    let report = run(&engine, &job, args.lines)?;
    show(&engine, &report, args)?;
    for (path, cut) in &report.cut {
        host::warn_cut(&path.display().to_string(), cut);
    }
    Ok(host::complain(report.broken.into_iter().map(Error::from).collect())?)
}

/// `PORT=CAPTURE`.
fn input(text: &str) -> Result<(String, PathBuf), Failure> {
    match text.split_once('=') {
        Some((port, path)) if !port.is_empty() && !path.is_empty() => Ok((port.to_string(), PathBuf::from(path))),
        _ => Err(Failure::usage(format!("--in {text}: expected PORT=CAPTURE, such as --in lan=a.pcap"))),
    }
}

fn job(meta: &Meta, inputs: &[(String, PathBuf)], args: &Args) -> Result<Job, Error> {
    let mut job = Job { outputs: vec![None; meta.ports.len()], ..Job::default() };
    for (name, path) in inputs {
        job.inputs.push((ports::find(meta, name)? as u16, path.clone()));
    }
    let is_input = |port: usize| job.inputs.iter().any(|(input, _)| usize::from(*input) == port);
    job.attached = (0..meta.ports.len())
        .map(|port| match args.ports {
            Some(n) if ports::is_numbered_only(&meta.ports[port]) => meta.ports[port].number <= n || is_input(port),
            _ => true,
        })
        .collect();
    if let Some(folder) = &args.out {
        make_folder(folder)?;
        job.outputs = meta.ports.iter().map(|port| Some(folder.join(format!("{}.pcap", port.name)))).collect();
    }
    Ok(job)
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|error| {
        Error::Environment(format!(
            "{}: cannot make the folder: {}; choose one that you may write",
            folder.display(),
            system(&error)
        ))
    })
}

fn run(engine: &Engine, job: &Job, lines: bool) -> Result<Report, Error> {
    let stop = host::stop_flag()?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut failed = None;
    let report = pipec_runtime::replay::replay(engine, job, &stop, &mut |passed| {
        if lines && let Err(error) = out.write_all(line(engine.meta(), passed).as_bytes()) {
            failed = Some(error);
        }
        failed.is_none()
    })?;
    if let Err(error) = out.flush() {
        failed = failed.or(Some(error));
    }
    match failed {
        Some(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::Environment(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(report),
    }
}

/// What became of a packet, on one line: outputs by port, those of one port in the order they were sent.
fn line(meta: &Meta, passed: &Passed<'_>) -> String {
    let number = |port: u16| meta.ports[usize::from(port)].number;
    let mut by_port: BTreeMap<Option<Reverse<u32>>, Vec<&[u8]>> = BTreeMap::new();
    for (port, frame) in &passed.outcome.outputs {
        let number = (*port != CONTROLLER).then(|| Reverse(number(*port)));
        by_port.entry(number).or_default().push(frame);
    }
    let mut line = format!("{} {} {} ->", passed.index, number(passed.in_port), passed.len);
    for (port, frames) in by_port.into_iter().rev() {
        let port = port.map_or("CONTROLLER".into(), |Reverse(number)| number.to_string());
        for frame in frames {
            let _ = write!(line, " {port}:"); // writing to a string does not fail
            line.extend(
                frame
                    .iter()
                    .flat_map(|byte| [byte >> 4, byte & 15])
                    .map(|digit| char::from_digit(digit.into(), 16).unwrap_or('?')),
            );
        }
    }
    if passed.outcome.outputs.is_empty() {
        line += " drop";
    }
    line + "\n"
}

fn show(engine: &Engine, report: &Report, args: &Args) -> Result<(), Error> {
    if !args.summary && (args.lines || args.out.is_some()) {
        return Ok(());
    }
    let text = summary::summary(&report.stats) + "\n" + &summary::rules(engine.meta(), &report.counters);
    if args.lines {
        host::tell(text.trim_end());
        return Ok(());
    }
    host::print(&text)
}

#[cfg(test)]
mod tests {
    use pipec_abi::meta::PortMeta;
    use pipec_runtime::offline::Outcome;

    use super::*;

    #[test]
    fn a_line_has_outputs_by_port_and_keeps_the_order_on_one() {
        let port = |number| PortMeta { name: format!("p{number}"), number };
        let meta = Meta { name: "t".into(), ports: vec![port(9), port(2)], vlan_limit: 1, ..Meta::default() };
        let outputs = vec![(CONTROLLER, vec![0x07]), (0, vec![0xab]), (1, vec![0x02]), (1, vec![0x01, 0xff])];
        let outcome = Outcome { outputs, ..Outcome::default() };
        let passed = Passed { index: 3, in_port: 1, len: 60, outcome: &outcome };
        assert_eq!(line(&meta, &passed), "3 2 60 -> 2:02 2:01ff 9:ab CONTROLLER:07\n");
        let passed = Passed { outcome: &Outcome::default(), ..passed };
        assert_eq!(line(&meta, &passed), "3 2 60 -> drop\n");
    }

    #[test]
    fn inputs_name_a_port_and_a_capture() {
        assert_eq!(input("lan=a=b.pcap").ok(), Some(("lan".into(), "a=b.pcap".into())));
        for bad in ["lan", "=a", "lan=", ""] {
            assert!(input(bad).is_err(), "{bad}");
        }
    }
}
