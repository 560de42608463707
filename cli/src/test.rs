//! `pipec test`: runs the `test` blocks of programs, on every engine, and holds the engines against each other.
//!
//! Each test starts without any state. What one `send` sends comes in at one moment; time passes by `after` only.

use std::path::PathBuf;

use pipec_abi::Counter;
use pipec_compiler::diag::Diagnostic;
use pipec_compiler::expect::{Came, judge};
use pipec_compiler::hir::{PortId, Step, Test};
use pipec_compiler::packet::show;
use pipec_compiler::source::Span;
use pipec_runtime::Engine;
use pipec_runtime::host::{self, print};
use pipec_runtime::offline::Offline;

use crate::coverage;
use crate::engine::EngineName;
use crate::failure::Failure;
use crate::messages;
use crate::probe::Probes;
use crate::program::{self, Loaded};
use crate::rules;

/// Run the `test` blocks of programs
#[derive(clap::Args)]
pub struct Args {
    /// Programs (.pipe); - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Run them on this engine only [default: on all; rust only where rustc is installed]
    #[arg(long, value_enum)]
    engine: Option<EngineName>,

    #[command(flatten)]
    coverage: coverage::CoverageArgs,
}

/// A moment to begin at; which one does not matter.
const START_NS: u64 = 1_000_000_000_000;

/// Runs the tests of each file; fails with status 1 when any test does.
pub fn test(args: &Args, color: bool) -> Result<(), Failure> {
    let (mut passed, mut failed) = (0, 0);
    let mut programs = Vec::new();
    for file in &args.files {
        let loaded = program::load(file, &[], color)?;
        let engines = engines(args.engine, &loaded)?;
        let names: Vec<&str> = engines.iter().map(|(name, _)| name.name()).collect();
        for test in &loaded.program.tests {
            let failures = run_all(&loaded, test, &engines);
            let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
            say(args, &format!("{}: {}: {verdict} ({})\n", file.display(), test.name, names.join(", ")))?;
            messages::show(&failures, &loaded.sources, color);
            if failures.is_empty() { passed += 1 } else { failed += 1 }
        }
        programs.push(loaded);
    }
    say(args, &format!("{passed} passed, {failed} failed\n"))?;
    let short = coverage::report(&args.coverage, &programs)?;
    if failed > 0 || short > 0 { Err(Failure::Told(1)) } else { Ok(()) }
}

/// Says a result, beside coverage if that is for a program.
fn say(args: &Args, text: &str) -> Result<(), Failure> {
    if coverage::takes_output(&args.coverage) {
        host::tell(text.trim_end());
        return Ok(());
    }
    Ok(print(text)?)
}

/// The engines to test on.
fn engines(wanted: Option<EngineName>, loaded: &Loaded) -> Result<Vec<(EngineName, Engine)>, Failure> {
    if loaded.program.tests.is_empty() {
        return Ok(vec![]);
    }
    let mut names: Vec<EngineName> = wanted.map_or(EngineName::ALL.to_vec(), |name| vec![name]);
    if wanted.is_none() && !crate::build::library::rustc_is_installed() {
        messages::note("rustc is not installed; the engine rust is left out");
        names.retain(|name| *name != EngineName::Rust);
    }
    names.into_iter().map(|name| Ok((name, name.load(loaded)?))).collect()
}

/// One `send`, and what became of its packets.
struct Sent {
    span: Span,
    came: Vec<Came>,
    /// Rules that the packets took, and tables that they missed.
    rules: Vec<(usize, usize)>,
}

/// Runs one test on all engines; what is wrong, at most one thing an engine.
fn run_all(loaded: &Loaded, test: &Test, engines: &[(EngineName, Engine)]) -> Vec<Diagnostic> {
    let mut probes = Probes::new(&loaded.program);
    let runs: Vec<Vec<Sent>> = engines.iter().map(|(_, engine)| run(test, engine)).collect();
    let mut failures = vec![];
    for ((name, _), sent) in engines.iter().zip(&runs) {
        let unmet = first_unmet(loaded, test, *name, sent, &mut probes);
        failures.extend(unmet.or_else(|| differs(loaded, test, (engines[0].0, &runs[0]), (*name, sent))));
    }
    failures
}

/// Runs the steps of a test on one engine.
fn run(test: &Test, engine: &Engine) -> Vec<Sent> {
    let mut offline = Offline::new(engine);
    let mut now_ns = START_NS;
    let mut sent = vec![];
    for step in &test.steps {
        match step {
            Step::After { ns } => now_ns = now_ns.saturating_add(*ns),
            Step::Send { port, frame, count, span } => {
                let before = engine.meta().by_rule(&offline.counters());
                let frames = vec![(port.0, frame.as_slice()); *count as usize];
                let outcomes = offline.send(now_ns, &frames);
                let outputs = |outputs: Vec<(u16, Vec<u8>)>| outputs.into_iter().map(|(p, f)| (PortId(p), f)).collect();
                let came = outcomes.into_iter().map(|o| Came { outputs: outputs(o.outputs), drop: o.drop }).collect();
                let after = engine.meta().by_rule(&offline.counters());
                sent.push(Sent { span: *span, came, rules: taken(&before, &after) });
            }
            Step::Expect { .. } => {}
        }
    }
    sent
}

/// Rules, and misses of tables, that counted something.
fn taken(before: &[Vec<Counter>], after: &[Vec<Counter>]) -> Vec<(usize, usize)> {
    let pairs = before.iter().zip(after).enumerate();
    let rules =
        pairs.flat_map(|(t, (before, after))| before.iter().zip(after).enumerate().map(move |(r, p)| (t, r, p)));
    rules.filter(|(.., (before, after))| after.packets > before.packets).map(|(t, r, _)| (t, r)).collect()
}

/// The first `expect` that does not hold.
fn first_unmet(
    loaded: &Loaded,
    test: &Test,
    engine: EngineName,
    sent: &[Sent],
    probes: &mut Probes<'_>,
) -> Option<Diagnostic> {
    let mut sends = sent.iter();
    let mut last: Option<&Sent> = None;
    for step in &test.steps {
        match step {
            Step::After { .. } => {}
            Step::Send { .. } => last = sends.next(),
            Step::Expect { ends, span } => {
                let Some(last) = last else { continue };
                let judged = judge(&loaded.program, ends, &last.came, &mut |cond, frame| probes.holds(cond, frame));
                let Err(unmet) = judged else { continue };
                let (test, engine) = (&test.name, engine.name());
                let message = if unmet.expected == unmet.came {
                    format!("test `{test}` failed on engine {engine}: {} came, but not as expected", unmet.came)
                } else {
                    format!(
                        "test `{test}` failed on engine {engine}: expected {}, but {} came",
                        unmet.expected, unmet.came
                    )
                };
                let mut diagnostic =
                    Diagnostic::error("test-failed", message, *span, format!("expected {}", unmet.expected));
                for (span, label) in unmet.labels {
                    diagnostic = diagnostic.label(span, label);
                }
                diagnostic =
                    diagnostic.label(last.span, if last.came.len() == 1 { "this packet" } else { "these packets" });
                diagnostic.help.extend(unmet.notes);
                diagnostic.help.extend(way(loaded, &last.rules));
                return Some(diagnostic);
            }
        }
    }
    None
}

/// The rules that packets took, in words.
fn way(loaded: &Loaded, taken: &[(usize, usize)]) -> Option<String> {
    let name = |&(table, rule): &(usize, usize)| {
        let table = &loaded.program.tables[table];
        match table.rules.get(rule) {
            Some(rule) => format!("{}: {}", rules::place(loaded, rule), rule.text),
            None => format!("no rule of `{}`", table.name),
        }
    };
    let names: Vec<String> = taken.iter().take(16).map(name).collect();
    (!names.is_empty()).then(|| format!("took {}", names.join("\n     ")))
}

/// Whether two engines make different things of a test.
fn differs(
    loaded: &Loaded,
    test: &Test,
    (first, expected): (EngineName, &[Sent]),
    (engine, found): (EngineName, &[Sent]),
) -> Option<Diagnostic> {
    let (expected, found) = expected.iter().zip(found).find(|(a, b)| a.came != b.came)?;
    let message = format!(
        "test `{}`: engines {} and {} make different things of this packet, which is a fault of pipec",
        test.name,
        first.name(),
        engine.name()
    );
    let mut diagnostic = Diagnostic::error("engines-differ", message, found.span, "sent here");
    for (name, sent) in [(first, expected), (engine, found)] {
        for came in &sent.came {
            for (port, frame) in &came.outputs {
                let port = pipec_compiler::expect::port_name(&loaded.program, *port);
                diagnostic = diagnostic.help(format!("{}: out of {port}: {}", name.name(), show(frame)));
            }
            if let Some(reason) = came.drop {
                diagnostic = diagnostic.help(format!("{}: dropped: {}", name.name(), reason.name()));
            }
        }
    }
    Some(diagnostic)
}
