//! A program compiled in this process, step by step.
//!
//! In: a program's text. Out: an engine, and how long each step took. Never: DPDK.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pipec_compiler::diag::render_all;
use pipec_compiler::source::Sources;
use pipec_compiler::{backend, front, plan};
use pipec_runtime::{Engine, Tables};

use crate::Error;

/// How long the steps from source to a published program took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// Read, resolved and checked.
    pub front: Duration,
    /// Planned: look-ups chosen.
    pub plan: Duration,
    /// Translated to machine code.
    pub code: Duration,
    /// Tables built and published.
    pub tables: Duration,
}

impl Steps {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.front + self.plan + self.code + self.tables
    }
}

/// Compiles a program, whose language its name says; ports 1 and 2 exist whatever its rules name.
///
/// # Errors
/// When it has mistakes, or the processor is one that there is no back end for.
pub fn compile(name: &str, text: &str) -> Result<(Engine, Arc<Tables>, Steps), Error> {
    let mut lap = Lap(Instant::now());
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let (program, diagnostics) = front(&mut sources, file, &[1, 2]);
    let told = || Error::Failed(render_all(&diagnostics, &sources, false));
    let program = program.ok_or_else(told)?;
    let front = lap.end();
    let plan = plan::plan(&program);
    let planned = lap.end();
    let jit = backend::jit::compile(&plan).map_err(|error| Error::Failed(format!("{name}: {error}")))?;
    let code = lap.end();
    let run = jit.run();
    let engine = Engine::function(plan.meta, &plan.tables, run, Some(Arc::new(jit)));
    let tables = Tables::new(&engine);
    let steps = Steps { front, plan: planned, code, tables: lap.end() };
    Ok((engine.with_tables(&tables), tables, steps))
}

/// Time since the last look.
struct Lap(Instant);

impl Lap {
    fn end(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.0, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_compiled_and_mistakes_are_told() {
        let (engine, ..) = compile("wire.flows", "in_port=1 actions=output:2\n").unwrap();
        assert_eq!(engine.meta().ports.len(), 2);
        let message = compile("a.pipe", "pipeline a { nonsense }").err().unwrap().to_string();
        assert!(message.contains("a.pipe") && message.contains("nonsense"), "{message}");
    }
}
