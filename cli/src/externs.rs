//! The Rust source of a program's `extern` actions, from `--extern FILE`. In: the path, once. Out: its text, for the crate
//! that the program becomes.

use std::path::PathBuf;
use std::sync::OnceLock;

use pipec_compiler::hir::Program;
use pipec_runtime::error::system;

use crate::failure::Failure;

/// The file: set once, from the command line.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// Says which file has the actions.
pub fn set(file: PathBuf) {
    let _ = FILE.set(file); // The command line is read once.
}

/// The text of the actions, for a program that has some.
pub fn text(program: &Program) -> Result<Option<String>, Failure> {
    let Some(first) = program.externs.first() else { return Ok(None) };
    let Some(path) = FILE.get() else {
        return Err(Failure::usage(format!(
            "the action `{}` of `{}` is written in Rust; name the file it stands in: --extern FILE.rs",
            first.name, program.name
        )));
    };
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::environment(format!("{}: cannot read the actions in Rust: {}", path.display(), system(&error)))
    })?;
    Ok(Some(text))
}
