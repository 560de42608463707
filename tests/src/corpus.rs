//! The programs of `pipelines/`, and traffic for each: frames that its own tests send, and frames of many kinds, most of them
//! changed somehow: other values, fragments, tags, cut short, damaged.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pipec_abi::external::Extern;
use pipec_compiler::diag::render_all;
use pipec_compiler::front;
use pipec_compiler::hir::{Program, Step};
use pipec_compiler::source::{Loader, Sources, search};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::binary::root;
use crate::engines::Arrival;
use crate::frames;

/// A program of the corpus.
pub struct Entry {
    /// Its file's name.
    pub name: String,
    /// What it is.
    pub program: Program,
    /// Its actions in Rust.
    pub externs: &'static [Extern],
}

/// Reads what programs use from the file system.
struct Files;

impl Loader for Files {
    fn find(&self, from: &str, path: &str) -> Result<String, String> {
        search(from, path, &[], Path::is_file)
    }
    fn read(&self, name: &str) -> Result<String, String> {
        std::fs::read_to_string(name).map_err(|error| format!("{name}: {error}"))
    }
    fn identity(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// A program from a file.
///
/// # Panics
/// When it is wrong.
pub fn load(path: &Path) -> Program {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut sources = Sources::with_loader(Arc::new(Files));
    let file = sources.add(path.display().to_string(), text);
    let (program, diagnostics) = front(&mut sources, file, &[]);
    program.unwrap_or_else(|| panic!("{}", render_all(&diagnostics, &sources, false)))
}

/// All programs, in the order of their names.
pub fn programs() -> Vec<Entry> {
    let folder = std::fs::read_dir(root().join("pipelines")).unwrap_or_else(|error| panic!("pipelines: {error}"));
    let mut paths: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "pipe" || ending == "flows"));
    paths.sort();
    let entry = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let program = load(path);
        let externs = if program.externs.is_empty() { &[][..] } else { in_rust::of(&name) };
        assert_eq!(externs.len(), program.externs.len(), "{name}: its actions in Rust");
        Entry { name, program, externs }
    };
    paths.iter().map(entry).collect()
}

#[path = "../../pipelines/telemetry.rs"]
mod telemetry;

/// The programs with actions in Rust, compiled with this crate.
mod in_rust {
    use pipec_abi::Program as _;
    use pipec_abi::external::Extern;
    use pipec_runtime::pipeline;

    use super::telemetry::stamp;

    #[pipeline(file = "../pipelines/telemetry.pipe")]
    struct Telemetry;

    pub fn of(name: &str) -> &'static [Extern] {
        match name {
            "telemetry.pipe" => Telemetry::EXTERNS,
            _ => &[],
        }
    }
}

/// So many frames for a program, in bursts some time apart; always the same.
pub fn traffic(program: &Program, frames: usize) -> Vec<Arrival> {
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let own: Vec<(u16, Vec<u8>)> = program.tests.iter().flat_map(|test| &test.steps).filter_map(sent).collect();
    let ports = program.ports.len().max(1);
    let mut arrivals = vec![];
    let (mut now_ns, mut left) = (1_000_000_000_000, frames);
    while left > 0 {
        let n = pick(&mut runner, 40) + 1;
        let burst: Vec<_> = (0..n.min(left)).map(|_| frame(&own, ports, &mut runner)).collect();
        left -= burst.len();
        arrivals.push((now_ns, burst));
        now_ns += match pick(&mut runner, 20) {
            0 => 61_000_000_000, // connections and entries expire
            1..5 => 1_000_000_000,
            _ => 1_000,
        };
    }
    arrivals
}

fn sent(step: &Step) -> Option<(u16, Vec<u8>)> {
    if let Step::Send { port, frame, .. } = step { Some((port.0, frame.clone())) } else { None }
}

/// A number below `n`.
fn pick(runner: &mut TestRunner, n: usize) -> usize {
    runner.rng().next_u32() as usize % n.max(1)
}

fn frame(own: &[(u16, Vec<u8>)], ports: usize, runner: &mut TestRunner) -> (u16, Vec<u8>) {
    let of_any_kind = own.is_empty() || pick(runner, 4) == 0;
    if of_any_kind {
        let frame = frames::frame().new_tree(runner).map(|tree| tree.current()).unwrap_or_default();
        return (pick(runner, ports) as u16, frame);
    }
    let (port, mut frame) = own[pick(runner, own.len())].clone();
    for _ in 0..pick(runner, 3) {
        change(&mut frame, own, runner);
    }
    (if pick(runner, 8) == 0 { pick(runner, ports) as u16 } else { port }, frame)
}

/// One change: what a careless or hostile sender would do.
fn change(frame: &mut Vec<u8>, own: &[(u16, Vec<u8>)], runner: &mut TestRunner) {
    let len = frame.len();
    let at = pick(runner, len.min(96)).min(len.saturating_sub(1));
    match pick(runner, 9) {
        0 => frame.truncate(pick(runner, len + 1)),
        1 => frame.extend(std::iter::repeat_n(0, pick(runner, 64))),
        // Fragments of IPv4: the first, or a later one.
        2 if frame.len() > 22 => frame[20..22].copy_from_slice(&[[0x20, 0], [0x20, 1], [0, 7]][pick(runner, 3)]),
        // Another tag in front.
        3 if len > 14 => drop(frame.splice(12..12, [0x81, 0, 0x20 * pick(runner, 8) as u8, pick(runner, 6) as u8])),
        // Lengths and header lengths that are not so.
        4 if len > 18 => frame[[14, 16, 17][pick(runner, 3)]] = pick(runner, 256) as u8,
        // The way back: addresses and ports of IPv4 change places.
        5 if len > 38 => {
            for k in 0..6 {
                frame.swap(k, 6 + k);
            }
            for k in 0..4 {
                frame.swap(26 + k, 30 + k);
            }
            (34..36).for_each(|k| frame.swap(k, k + 2));
        }
        // A part of another frame of this program.
        6 => {
            let (_, other) = &own[pick(runner, own.len())];
            let n = pick(runner, 8).min(len.saturating_sub(at)).min(other.len().saturating_sub(at));
            if n > 0 {
                frame[at..at + n].copy_from_slice(&other[at..at + n]);
            }
        }
        7 if len > 0 => frame[at] = frame[at].wrapping_add(1),
        _ if len > 0 => frame[at] = pick(runner, 256) as u8,
        _ => {}
    }
}
