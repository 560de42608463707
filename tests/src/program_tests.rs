//! The `test` blocks of a program, on an engine.

use std::collections::BTreeMap;

use pipec_compiler::hir::{Program, Step, Test};
use pipec_runtime::Engine;

use crate::engines::offline;

/// A moment to begin at; which one does not matter.
const START_NS: u64 = 1_000_000_000_000;

/// What went wrong in a program's tests, a line each.
pub fn failures(program: &Program, engine: &Engine) -> Vec<String> {
    program.tests.iter().filter_map(|test| run(program, test, engine).err()).collect()
}

fn run(program: &Program, test: &Test, engine: &Engine) -> Result<(), String> {
    let mut offline = offline(engine);
    let mut now_ns = START_NS;
    let mut outputs: Vec<u16> = vec![];
    for step in &test.steps {
        match step {
            Step::After { ns } => now_ns += ns,
            Step::Send { port, frame, .. } => {
                let outcomes = offline.send(now_ns, &[(port.0, frame)]);
                outputs = outcomes.iter().flat_map(|outcome| outcome.outputs.iter().map(|(port, _)| *port)).collect();
            }
            Step::Expect { ports, .. } => {
                let expected: Vec<u16> = ports.iter().map(|port| port.0).collect();
                if count(&expected) != count(&outputs) {
                    let names = |ports: &[u16]| {
                        let names = ports.iter().map(|port| program.ports[usize::from(*port)].name.as_str());
                        names.collect::<Vec<_>>().join(", ")
                    };
                    let (expected, found) = (names(&expected), names(&outputs));
                    return Err(format!("test `{}`: expected [{expected}], but [{found}] came out", test.name));
                }
            }
        }
    }
    Ok(())
}

/// How often each port is there.
fn count(ports: &[u16]) -> BTreeMap<u16, usize> {
    let mut counts = BTreeMap::new();
    ports.iter().for_each(|port| *counts.entry(*port).or_default() += 1);
    counts
}
