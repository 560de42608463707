//! Every program of `pipelines/`: its tests pass on every engine, and all engines give the same for 10,000 packets of all
//! kinds (valid, truncated, fragmented, malformed).

use std::path::Path;

use pipec_runtime::Engine;
use pipec_tests::corpus::{Entry, programs, traffic};
use pipec_tests::engines::{assert_same, eval, jit};
use pipec_tests::program_tests::failures;
use pipec_tests::rust::{compile_abi, rust};

/// Packets through each program.
const PACKETS: usize = 10_000;

fn same_as_eval(entry: &Entry, engine: &Engine) {
    let reference = eval(&entry.program).with_externs(entry.externs);
    let failed = failures(&entry.program, engine);
    assert!(failed.is_empty(), "{}: {}", entry.name, failed.join("\n"));
    assert_same(&entry.program, &reference, engine, &traffic(&entry.program, PACKETS));
}

#[test]
fn machine_code_is_eval() {
    for entry in programs() {
        same_as_eval(&entry, &jit(&entry.program).with_externs(entry.externs));
    }
}

#[test]
fn generated_rust_is_eval() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    compile_abi(&folder);
    // What has actions in Rust is compiled with its file by `pipec build`; the CLI's tests do that.
    for (k, entry) in programs().iter().enumerate().filter(|(_, entry)| entry.externs.is_empty()) {
        same_as_eval(entry, &rust(&entry.program, &folder, &format!("corpus_{k}")));
    }
}

#[test]
fn every_program_has_tests_that_pass() {
    for entry in programs() {
        let failed = failures(&entry.program, &eval(&entry.program).with_externs(entry.externs));
        assert!(failed.is_empty(), "{}: {}", entry.name, failed.join("\n"));
        let flows = entry.name.ends_with(".flows"); // OpenFlow has no words for tests.
        assert!(flows || !entry.program.tests.is_empty(), "{} has no `test` block", entry.name);
    }
}
