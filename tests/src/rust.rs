//! Programs as generated Rust: compiled by rustc to libraries beside the tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use pipec_compiler::backend::rust::{emit, type_name};
use pipec_compiler::hir::Program;
use pipec_compiler::plan::plan;
use pipec_runtime::Engine;

/// Compiles the abi into a folder; programs compiled later into the same one use it.
pub fn compile_abi(folder: &Path) {
    std::fs::create_dir_all(folder).expect("a folder for compiled programs");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtime/abi/src/lib.rs");
    rustc(&source, "rlib", "pipec_abi", folder, &folder.join("libpipec_abi.rlib"));
}

/// A program as generated Rust, compiled and loaded.
pub fn rust(program: &Program, folder: &Path, name: &str) -> Engine {
    let program = Program { name: name.to_owned(), ..program.clone() };
    let plan = plan(&program);
    let text = format!("{}\npipec_abi::export_program!({});\n", emit(&plan), type_name(name));
    let source = folder.join(format!("{name}.rs"));
    std::fs::write(&source, text).expect("a source file");
    let library: PathBuf = folder.join(format!("lib{name}.so"));
    rustc(&source, "cdylib", name, folder, &library);
    pipec_runtime::library::load(&library).unwrap_or_else(|error| panic!("{error}"))
}

fn rustc(source: &Path, kind: &str, name: &str, folder: &Path, out: &Path) {
    let mut command = Command::new("rustc");
    command.args(["--edition", "2024", "-C", "opt-level=1", "-C", "debug-assertions=on", "--crate-type", kind]);
    command.args(["--crate-name", name, "--cap-lints", "allow"]).arg(source);
    command.arg("-L").arg(folder).arg("-o").arg(out);
    if kind == "cdylib" {
        command.arg("--extern").arg(format!("pipec_abi={}", folder.join("libpipec_abi.rlib").display()));
    }
    let output = command.output().expect("rustc runs");
    assert!(output.status.success(), "{}:\n{}", source.display(), String::from_utf8_lossy(&output.stderr));
}
