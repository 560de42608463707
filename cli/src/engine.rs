//! The three engines. In: a program. Out: a runtime's `Engine`. Never: a choice of meaning; all three give the same packets.

use std::sync::Arc;

use clap::ValueEnum;
use pipec_abi::{Burst, Ctx, Env};
use pipec_compiler::eval::Eval;
use pipec_compiler::hir::Program;
use pipec_compiler::plan::plan;
use pipec_runtime::Engine;
use pipec_runtime::engine::Interpret;

use crate::build::library;
use crate::failure::Failure;
use crate::program::Loaded;

/// Which engine runs a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The reference interpreter
    Eval,
    /// Generated Rust, compiled by rustc and loaded
    Rust,
    /// Machine code made in memory
    Jit,
}

impl EngineName {
    /// All of them, the reference first.
    pub const ALL: [EngineName; 3] = [EngineName::Eval, EngineName::Jit, EngineName::Rust];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            EngineName::Eval => "eval",
            EngineName::Rust => "rust",
            EngineName::Jit => "jit",
        }
    }

    /// Compiles a program for this engine.
    pub fn load(self, loaded: &Loaded) -> Result<Engine, Failure> {
        match self {
            EngineName::Eval => {
                let eval = Eval::new(loaded.program.clone());
                Ok(Engine::interpreter(eval.meta(), Arc::new(Interpreter(eval))))
            }
            EngineName::Rust => {
                let library = library::compile(&loaded.program, library::NATIVE)?;
                Ok(pipec_runtime::library::load(&library)?)
            }
            EngineName::Jit => jit(&loaded.program),
        }
    }
}

fn jit(program: &Program) -> Result<Engine, Failure> {
    let plan = plan(program);
    let jit = pipec_compiler::backend::jit::compile(&plan).map_err(|what| Failure::environment(format!("{what}")))?;
    let run = jit.run();
    Ok(Engine::function(plan.meta, &plan.tables, run, Some(Arc::new(jit))))
}

/// The reference interpreter as the runtime calls it.
struct Interpreter(Eval);

impl Interpret for Interpreter {
    fn run(&self, env: &mut dyn Env, ctx: &mut Ctx, burst: &mut Burst) {
        self.0.run(env, ctx, burst);
    }
}
