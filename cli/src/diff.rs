//! `pipec diff`: how two programs differ, in their rules and in what becomes of packets.
//!
//! In: two programs, each in either language. Out: tables and rules that differ, and a packet, or the shortest sequence of
//! packets found, that they treat differently. That none is found proves nothing: it is said how many were tried.

mod keyed;
mod search;
mod structure;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use pipec_compiler::hir::PortId;
use pipec_compiler::packet::describe;
use pipec_compiler::words;
use pipec_runtime::host::print;
use pipec_runtime::offline::Outcome;

use crate::failure::Failure;
use crate::messages;
use crate::program::{self, Loaded};

/// Show how two programs differ, and a packet that they treat differently
///
/// Ends with status 0 if no packet is found that they treat differently, 1 if one is, 2 if that cannot be told. Rules may differ
/// all the same where the status is 0.
#[derive(clap::Args)]
pub struct Args {
    /// A program (.pipe, or .flows with rules of ovs-ofctl)
    #[arg(value_name = "A")]
    a: PathBuf,

    /// Another
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Packets to try, at the most
    #[arg(long, value_name = "N", default_value = "10000")]
    packets: usize,
}

/// Compares two programs.
pub fn diff(args: &Args, color: bool) -> Result<(), Failure> {
    match compare(args, color) {
        Ok(false) => Ok(()),
        Ok(true) => Err(Failure::Told(1)),
        Err(Failure::Error(error)) => {
            messages::failure(&error);
            Err(Failure::Told(2))
        }
        Err(Failure::Told(_)) => Err(Failure::Told(2)),
    }
}

/// Whether they differ in what they do.
fn compare(args: &Args, color: bool) -> Result<bool, Failure> {
    let (a, b) = load(&args.a, &args.b, color)?;
    let names = (args.a.display().to_string(), args.b.display().to_string());
    let mut text = String::new();
    let rules = structure::structure(&a, &b);
    if rules.is_empty() {
        text += "rules: the same\n";
    } else {
        text += &rules;
    }
    let missing = ports(&names, &a, &b);
    text += &missing;
    let found = search::search(&a, &b, args.packets)?;
    // Writing to a string does not fail.
    let _ = match &found.difference {
        None => writeln!(text, "meaning: no difference found in {} packets", found.tried),
        Some(difference) => {
            let _ = writeln!(text, "meaning: different, found with packet {}", found.tried);
            tell(&names, &a, &b, difference, &mut text)
        }
    };
    print(&text)?;
    Ok(found.difference.is_some() || !missing.is_empty())
}

/// Loads both; each has the ports that the other names by number.
fn load(a: &Path, b: &Path, color: bool) -> Result<(Loaded, Loaded), Failure> {
    let numbers = |loaded: &Loaded| loaded.program.ports.iter().map(|port| port.number).collect::<Vec<u32>>();
    let first = program::load(a, &[], color)?;
    let second = program::load(b, &numbers(&first), color)?;
    if a.extension().is_some_and(|extension| extension == "flows") {
        return Ok((program::load(a, &numbers(&second), false)?, second));
    }
    Ok((first, second))
}

/// Ports that only one of them has.
fn ports(names: &(String, String), a: &Loaded, b: &Loaded) -> String {
    let mut out = String::new();
    for (name, own, other) in [(&names.0, a, b), (&names.1, b, a)] {
        let others = &other.program.ports;
        for port in &own.program.ports {
            if !others.iter().any(|known| known.name == port.name || known.number == port.number) {
                let _ = writeln!(out, "port {}: only in {name}", port.name); // writing to a string does not fail
            }
        }
    }
    out
}

/// The packets, what becomes of the last in both programs, and how to see more.
fn tell(
    names: &(String, String),
    a: &Loaded,
    b: &Loaded,
    difference: &search::Difference,
    text: &mut String,
) -> std::fmt::Result {
    for sent in &difference.packets {
        writeln!(text, "  {}: {}", words::port(&a.program, PortId(sent.ports.0)), sent.text)?;
    }
    for (name, loaded, outcome) in [(&names.0, a, &difference.outcomes.0), (&names.1, b, &difference.outcomes.1)] {
        writeln!(text, "    {name}: {}", became(loaded, outcome))?;
    }
    writeln!(text, "to see why:")?;
    for (name, loaded, first) in [(&names.0, a, true), (&names.1, b, false)] {
        let packets = difference.packets.iter().map(|sent| {
            let port = if first { sent.ports.0 } else { sent.ports.1 };
            format!("'{}: {}'", words::port(&loaded.program, PortId(port)), sent.text)
        });
        writeln!(text, "  pipec trace --why {name} {}", packets.collect::<Vec<_>>().join(" "))?;
    }
    Ok(())
}

fn became(loaded: &Loaded, outcome: &Outcome) -> String {
    let sent = outcome.outputs.iter().map(|(port, frame)| {
        let port = words::port(&loaded.program, PortId(*port));
        format!("{port}: {}", describe(frame))
    });
    let sent: Vec<String> = sent.collect();
    match outcome.drop {
        Some(reason) => format!("drop: {}", reason.name()),
        None if sent.is_empty() => "consumed".to_string(),
        None => format!("out of {}", sent.join(", and out of ")),
    }
}
