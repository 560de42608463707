//! Many mutations of the whole corpus through both front ends and all that follows: whatever the text is, it ends with a
//! program or with messages, what is accepted can be compiled to machine code and to Rust, and what can be parsed can be
//! printed and parsed again.
//!
//! `PIPEC_MUTATIONS=100000 cargo test -p pipec-compiler --test fuzzed -- --nocapture` looks at so many instead of a few, and
//! tells how long the slowest took and how much memory all took; `PIPEC_SEED=N` begins at another one. A text that takes
//! longer than a second of a processor then fails, too.

mod mutate;

use mutate::{FLOWS, PIPES, mutated};
use pipec_compiler::diag::{has_errors, render_all};
use pipec_compiler::hir::Program;
use pipec_compiler::source::Sources;
use pipec_compiler::{backend, front, parse, plan, print};

/// Rules up to which an accepted program is compiled to machine code, which takes time.
const COMPILED: usize = 60;

/// One text to its end.
fn hold(name: &str, text: &str) {
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let (program, diagnostics) = front(&mut sources, file, &[1, 2]);
    assert_eq!(program.is_none(), has_errors(&diagnostics));
    for diagnostic in &diagnostics {
        for (span, _) in &diagnostic.labels {
            assert!(text.get(span.range()).is_some(), "{span:?} of {diagnostic:?}");
        }
    }
    let shown = render_all(&diagnostics, &sources, false);
    assert_eq!(shown.is_empty(), diagnostics.is_empty());
    if let Some(program) = program {
        compile(&program);
    }
    if name.ends_with(".pipe") {
        round_trip(text);
    }
}

/// What is accepted is compiled by every back end.
fn compile(program: &Program) {
    let plan = plan::plan(program);
    let rules: usize = program.tables.iter().map(|table| table.rules.len()).sum();
    if rules > COMPILED {
        return;
    }
    let name = backend::rust::type_name("fuzzed");
    let abi = "::pipec_abi".parse().expect("a path");
    assert!(!backend::rust::tokens(&plan, &name, &abi).is_empty());
    #[cfg(feature = "jit")]
    if let Err(error) = backend::jit::compile(&plan) {
        panic!("an accepted program does not compile: {error}");
    }
}

/// What can be parsed can be printed, and says the same when parsed again.
fn round_trip(text: &str) {
    let mut diagnostics = vec![];
    let Some(tree) = parse::pipe(text, 0, &mut diagnostics).filter(|_| diagnostics.is_empty()) else { return };
    let printed = print::pipeline(&tree);
    let again = parse::pipe(&printed, 0, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}\nin what was printed:\n{printed}");
    assert_eq!(again.expect("a pipeline"), tree, "{printed}");
}

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// What this thread has used of a processor, in milliseconds; 0 where the system does not tell.
fn processor_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0) / 1_000_000
}

/// The most memory that this process had, in KiB.
fn peak_kib() -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmHWM"));
    line.map_or("?".into(), |line| line.trim_start_matches("VmHWM:").trim().to_string())
}

/// Runs the mutations from `first` on; panics are told with the text.
fn run(first: u64, count: u64, strict: bool) {
    let mut slowest = (0, 0);
    let mut accepted = 0;
    for seed in first..first + count {
        let (name, corpus) = if seed % 3 == 2 { ("fuzz.flows", &*FLOWS) } else { ("fuzz.pipe", &*PIPES) };
        let text = mutated(corpus, seed);
        let begin = processor_ms();
        let ended = std::panic::catch_unwind(|| hold(name, &text));
        let took = processor_ms() - begin;
        slowest = slowest.max((took, seed));
        accepted += u64::from(ended.is_ok());
        if ended.is_err() || strict && took > 1_000 {
            let path = std::env::temp_dir().join(format!("pipec-mutation-{seed}-{name}"));
            let kept = std::fs::write(&path, &text).map_or_else(|e| e.to_string(), |()| path.display().to_string());
            panic!("mutation {seed} ({name}), {took} ms, kept in {kept}");
        }
    }
    assert_eq!(accepted, count);
    let (took, seed) = slowest;
    println!("{count} mutations from {first} on: the slowest ({seed}) took {took} ms; memory {}", peak_kib());
}

#[test]
fn mutations_end_with_a_program_or_messages() {
    let count = number("PIPEC_MUTATIONS");
    run(number("PIPEC_SEED").unwrap_or(1), count.unwrap_or(3_000), count.is_some());
}
