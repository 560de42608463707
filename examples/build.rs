//! Compiles `pipelines/firewall.pipe` to Rust for `firewall-aot`.

use std::path::Path;
use std::process::ExitCode;

use pipec_compiler::source::Sources;
use pipec_compiler::{backend, diag, front, plan};

fn main() -> ExitCode {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipelines/firewall.pipe");
    println!("cargo::rerun-if-changed={}", file.display());
    match compile(&file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn compile(file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut sources = Sources::default();
    let id = sources.add(file.to_string_lossy(), text);
    let (program, diagnostics) = front(&mut sources, id, &[]);
    let program = program.ok_or_else(|| diag::render_all(&diagnostics, &sources, false))?;
    let rust = backend::rust::emit(&plan::plan(&program));
    let out = std::env::var("OUT_DIR").map_err(|_| "OUT_DIR is not set: run by cargo".to_owned())?;
    std::fs::write(Path::new(&out).join("firewall.rs"), rust).map_err(|error| format!("{out}: {error}"))
}
