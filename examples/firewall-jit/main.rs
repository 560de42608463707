//! The firewall, compiled to machine code at start: the program's text is data here and could come from anywhere.
//!
//! `cargo run --release --bin firewall-jit -- --port lan=tap:lan0 --port wan=tap:wan0`

use std::process::ExitCode;
use std::sync::Arc;

use pipec_compiler::backend::jit;
use pipec_compiler::source::Sources;
use pipec_compiler::{diag, front, plan};
use pipec_runtime::Engine;

const SOURCE: &str = include_str!("../../pipelines/firewall.pipe");

fn compile() -> Result<Engine, String> {
    let mut sources = Sources::default();
    let file = sources.add("firewall.pipe", SOURCE);
    let (program, diagnostics) = front(&mut sources, file, &[]);
    let program = program.ok_or_else(|| diag::render_all(&diagnostics, &sources, true))?;
    let plan = plan::plan(&program);
    let code = jit::compile(&plan).map_err(|error| error.to_string())?;
    Ok(Engine::function(plan.meta, &plan.tables, code.run(), Some(Arc::new(code))))
}

fn main() -> ExitCode {
    match compile() {
        Ok(engine) => pipec_runtime::host::main(&engine),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
