//! The three engines. In: a program. Out: a runtime's `Engine`. Never: a choice of meaning; all three give the same packets.

use std::sync::Arc;

use clap::ValueEnum;
use pipec_abi::{Burst, Ctx, Env};
use pipec_compiler::eval::Eval;
use pipec_compiler::hir::Program;
use pipec_runtime::Engine;
use pipec_runtime::engine::Interpret;

use crate::build::library;
use crate::calibrate;
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
        let program = &loaded.program;
        match self {
            EngineName::Eval => {
                let eval = Eval::new(program.clone());
                let tables = eval.tables();
                with_externs(Engine::interpreter(eval.meta(), &tables, Arc::new(Interpreter(eval))), program)
            }
            EngineName::Rust => rust(program),
            EngineName::Jit => with_externs(jit(program)?, program),
        }
    }
}

fn rust(program: &Program) -> Result<Engine, Failure> {
    let library = library::compile(program, library::NATIVE)?;
    Ok(pipec_runtime::library::load(&library)?)
}

/// The engine with the program's actions in Rust, which only a library of the program has.
pub fn with_externs(engine: Engine, program: &Program) -> Result<Engine, Failure> {
    if program.externs.is_empty() { Ok(engine) } else { Ok(engine.with_externs_of(&rust(program)?)) }
}

fn jit(program: &Program) -> Result<Engine, Failure> {
    let (plan, _) = calibrate::plan(program)?;
    let jit = pipec_compiler::backend::jit::compile(&plan).map_err(|what| Failure::environment(format!("{what}")))?;
    let run = jit.run();
    Ok(Engine::function(plan.meta, &plan.tables, run, Some(Arc::new(jit))))
}

/// The reference interpreter as the runtime calls it.
pub struct Interpreter(pub Eval);

impl Interpret for Interpreter {
    fn run(&self, env: &mut dyn Env, ctx: &mut Ctx, burst: &mut Burst) {
        self.0.run(env, ctx, burst);
    }
}
