//! `pipec test`: runs the `test` blocks of programs, on every engine.
//!
//! Each test starts without any state. Its packets are sent one by one, at one moment but for its `after`s.

use std::path::PathBuf;

use pipec_compiler::diag::Diagnostic;
use pipec_compiler::hir::{PortId, Program, Step, Test};
use pipec_compiler::source::Span;
use pipec_runtime::Engine;
use pipec_runtime::host::{self, print};
use pipec_runtime::offline::{Offline, Outcome};

use crate::engine::EngineName;
use crate::failure::Failure;
use crate::program::{self, Loaded};

/// Run the `test` blocks of programs
#[derive(clap::Args)]
pub struct Args {
    /// Programs (.pipe); - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Run them on this engine only [default: on all; rust only where rustc is installed]
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
}

/// A moment to begin at; which one does not matter.
const START_NS: u64 = 1_000_000_000_000;

/// Runs the tests of each file; fails with status 1 when any test does.
pub fn test(args: &Args, color: bool) -> Result<(), Failure> {
    let (mut passed, mut failed) = (0, 0);
    for file in &args.files {
        let loaded = program::load(file, &[], color)?;
        let engines = engines(args.engine, &loaded)?;
        let names: Vec<&str> = engines.iter().map(|(name, _)| name.name()).collect();
        for test in &loaded.program.tests {
            let failures: Vec<Diagnostic> =
                engines.iter().filter_map(|(name, engine)| run(&loaded, test, *name, engine).err()).collect();
            let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
            print(&format!("{}: {}: {verdict} ({})\n", file.display(), test.name, names.join(", ")))?;
            failures.iter().for_each(|failure| host::tell(&failure.render(&loaded.sources, color)));
            if failures.is_empty() { passed += 1 } else { failed += 1 }
        }
    }
    print(&format!("{passed} passed, {failed} failed\n"))?;
    if failed > 0 { Err(Failure::Told(1)) } else { Ok(()) }
}

/// The engines to test on.
fn engines(wanted: Option<EngineName>, loaded: &Loaded) -> Result<Vec<(EngineName, Engine)>, Failure> {
    if loaded.program.tests.is_empty() {
        return Ok(vec![]);
    }
    let mut names: Vec<EngineName> = wanted.map_or(EngineName::ALL.to_vec(), |name| vec![name]);
    if wanted.is_none() && !crate::build::library::rustc_is_installed() {
        host::tell("note: rustc is not installed; the engine rust is left out");
        names.retain(|name| *name != EngineName::Rust);
    }
    names.into_iter().map(|name| Ok((name, name.load(loaded)?))).collect()
}

/// Runs one test on one engine, up to the first `expect` that does not hold.
fn run(loaded: &Loaded, test: &Test, name: EngineName, engine: &Engine) -> Result<(), Diagnostic> {
    let mut offline = Offline::new(engine);
    let mut now_ns = START_NS;
    let mut last: Option<(Span, Outcome)> = None;
    for step in &test.steps {
        match step {
            Step::After { ns } => now_ns += ns,
            Step::Send { port, frame, span } => {
                last = offline.send(now_ns, &[(port.0, frame)]).pop().map(|outcome| (*span, outcome));
            }
            Step::Expect { ports, span } => {
                if let Some((sent, outcome)) = &last
                    && !holds(ports, outcome)
                {
                    return Err(unmet(loaded, test, name, (*span, ports), (*sent, outcome)));
                }
            }
        }
    }
    Ok(())
}

fn sorted(ports: impl Iterator<Item = PortId>) -> Vec<PortId> {
    let mut ports: Vec<PortId> = ports.collect();
    ports.sort();
    ports
}

fn holds(ports: &[PortId], outcome: &Outcome) -> bool {
    sorted(ports.iter().copied()) == sorted(outcome.outputs.iter().map(|(port, _)| PortId(*port)))
}

fn unmet(
    loaded: &Loaded,
    test: &Test,
    engine: EngineName,
    (at, ports): (Span, &[PortId]),
    (sent, outcome): (Span, &Outcome),
) -> Diagnostic {
    let program = &loaded.program;
    let came = match (outcome.drop, outcome.outputs.is_empty()) {
        (Some(reason), _) => format!("it was dropped: {} ({})", reason.name(), reason.describe().trim_end_matches('.')),
        (None, true) => "nothing came out".to_string(),
        (None, false) => {
            format!("it came out of {}", names(program, outcome.outputs.iter().map(|(port, _)| PortId(*port))))
        }
    };
    let expected = if ports.is_empty() { "drop".to_string() } else { names(program, ports.iter().copied()) };
    let message = format!("test `{}` failed on engine {}: expected {expected}, but {came}", test.name, engine.name());
    let mut diagnostic =
        Diagnostic::error("test-failed", message, at, format!("expected {expected}")).label(sent, "this packet");
    for (port, frame) in &outcome.outputs {
        let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        diagnostic = diagnostic.help(format!("out of {}: {hex}", names(program, [PortId(*port)].into_iter())));
    }
    diagnostic
}

fn names(program: &Program, ports: impl Iterator<Item = PortId>) -> String {
    let names = sorted(ports).into_iter().map(|port| program.ports[usize::from(port.0)].name.as_str());
    names.collect::<Vec<_>>().join(", ")
}
