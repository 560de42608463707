//! The `test` blocks of a program, on an engine.

use pipec_compiler::expect::{Came, judge, probe};
use pipec_compiler::hir::{Cond, PortId, Program, Step, Test};
use pipec_runtime::Engine;

use crate::engines::{eval, offline};

/// A moment to begin at; which one does not matter.
const START_NS: u64 = 1_000_000_000_000;

/// What went wrong in a program's tests, a line each.
pub fn failures(program: &Program, engine: &Engine) -> Vec<String> {
    program.tests.iter().filter_map(|test| run(program, test, engine).err()).collect()
}

fn run(program: &Program, test: &Test, engine: &Engine) -> Result<(), String> {
    let mut offline = offline(engine);
    let mut now_ns = START_NS;
    let mut last: Vec<Came> = vec![];
    for step in &test.steps {
        match step {
            Step::After { ns } => now_ns = now_ns.saturating_add(*ns),
            Step::Send { port, frame, count, .. } => {
                let outcomes = offline.send(now_ns, &vec![(port.0, frame.as_slice()); *count as usize]);
                let outputs = |outputs: Vec<(u16, Vec<u8>)>| outputs.into_iter().map(|(p, f)| (PortId(p), f)).collect();
                last = outcomes.into_iter().map(|o| Came { outputs: outputs(o.outputs), drop: o.drop }).collect();
            }
            Step::Expect { ends, .. } => {
                judge(program, ends, &last, &mut |cond, frame| holds(program, cond, frame)).map_err(|unmet| {
                    let notes = unmet.notes.join("; ");
                    format!("test `{}`: expected {}, but {} came: {notes}", test.name, unmet.expected, unmet.came)
                })?;
            }
        }
    }
    Ok(())
}

/// Whether a condition holds for a frame: whether it matches the only rule of a program.
pub fn holds(program: &Program, cond: &Cond, frame: &[u8]) -> bool {
    let mut offline = offline(&eval(&probe(program, cond)));
    offline.send(START_NS, &[(0, frame)]);
    offline.counters()[0].packets == 1
}
