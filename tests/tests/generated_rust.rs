//! Random programs as generated Rust give the reference's packets, reasons and counts. Few, since each is a run of rustc.

use std::path::Path;

use pipec_tests::engines::{assert_same, eval};
use pipec_tests::rust::{compile_abi, rust};
use pipec_tests::{frames, programs};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Programs of each kind.
const PROGRAMS: usize = 6;
/// Bursts through each.
const BURSTS: usize = 40;

#[test]
fn generated_rust_is_eval() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated_rust");
    compile_abi(&folder);
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let bursts = prop::collection::vec(prop::collection::vec((0u16..3, frames::frame()), 1..40), BURSTS);
    for k in 0..3 * PROGRAMS {
        // Of any kind, with tables that reach themselves, and such as change the shape of frames.
        let program = match k % 3 {
            2 => programs::shaping().new_tree(&mut runner).expect("a program").current(),
            kind => programs::program(kind == 1).new_tree(&mut runner).expect("a program").current(),
        };
        let bursts = bursts.new_tree(&mut runner).expect("bursts").current();
        let arrivals: Vec<_> = bursts.into_iter().zip(1u64..).map(|(b, s)| (s * 7_000_000_000, b)).collect();
        let engine = rust(&program, &folder, &format!("program_{k}"));
        assert_same(&program, &eval(&program), &engine, &arrivals);
    }
}
