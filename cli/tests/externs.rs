//! Programs with actions in Rust: `--extern FILE.rs`.

#![allow(clippy::unwrap_used)] // also in what several tests share

mod common;

use common::Scratch;

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("telemetry.pipe", include_str!("../../pipelines/telemetry.pipe"));
    scratch.write("telemetry.rs", include_str!("../../pipelines/telemetry.rs"));
    scratch
}

#[test]
fn all_engines_call_the_actions() {
    let said = scratch("externs").pipec(["test", "telemetry.pipe", "--extern", "telemetry.rs"]).good();
    assert!(said.contains("ok (eval, jit, rust)") && said.contains("1 passed, 0 failed"), "{said}");
}

#[test]
fn a_program_without_its_actions_is_refused() {
    let output = scratch("no-externs").pipec(["test", "telemetry.pipe"]);
    output.bad(2, &["`stamp` of `telemetry` is written in Rust", "--extern FILE.rs"]);
}

#[test]
fn generated_rust_has_the_actions_in_it() {
    let scratch = scratch("externs-rust");
    let args = ["build", "telemetry.pipe", "--extern", "telemetry.rs", "--emit", "rust", "-o", "-"];
    let source = scratch.pipec(args).good();
    assert!(source.contains("mod externs {") && source.contains("pub fn stamp("), "{source}");
}
