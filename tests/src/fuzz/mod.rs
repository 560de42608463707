//! What is fuzzed, as functions of bytes: `fuzz/` runs them under libFuzzer for as long as one likes, `tests/tests/fuzz.rs` on
//! a few thousand inputs in every test. Each panics where something does not hold that should, whatever the bytes are.
//!
//! ```text
//! text          both front ends, and what comes behind them
//! headers       the parser of compiled code, against that of the reference
//! differential  programs on machine code, against the reference
//! conntrack     conversations through connection tracking
//! input         bytes as numbers and frames; replies and checksums, so that bytes get far
//! ```

mod conntrack;
mod differential;
mod headers;
mod input;
mod text;

pub use conntrack::conntrack;
pub use differential::differential;
pub use headers::headers;
pub use text::{parse_flows, parse_pipe};

use std::path::{Path, PathBuf};

use pipec_compiler::hir::Program;
use pipec_compiler::source::Sources;
use pipec_compiler::{diag, front};

/// Something that is fuzzed.
pub type Target = fn(&[u8]);

/// Everything that is fuzzed, by the names under `fuzz/fuzz_targets`.
pub const TARGETS: &[(&str, Target)] = &[
    ("parse_pipe", parse_pipe),
    ("parse_flows", parse_flows),
    ("headers", headers),
    ("differential", differential),
    ("conntrack", conntrack),
];

/// The programs of `pipelines/`, in the order of their names.
fn corpus() -> Vec<Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipelines");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "pipe" || e == "flows"));
    paths.sort();
    paths.iter().map(|path| load(path)).collect()
}

fn load(path: &Path) -> Program {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut sources = Sources::with_loader(std::sync::Arc::new(crate::beside::Beside));
    let file = sources.add(path.display().to_string(), text);
    let (program, diagnostics) = front(&mut sources, file, &[]);
    program.unwrap_or_else(|| panic!("{}", diag::render_all(&diagnostics, &sources, false)))
}
