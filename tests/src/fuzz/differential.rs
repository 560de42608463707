//! Programs of the repository, and random ones, over frames: machine code does what the reference does.

use std::cell::LazyCell;

use pipec_compiler::hir::Program;
use pipec_runtime::Engine;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::input::Input;
use crate::engines::{assert_same, eval, jit};
use crate::programs;

thread_local! {
    static ENGINES: LazyCell<Vec<(Program, Engine, Engine)>> = LazyCell::new(|| {
        let engines = |program: Program| {
            let (reference, engine) = (eval(&program), jit(&program));
            (program, reference, engine)
        };
        super::corpus().into_iter().map(engines).collect()
    });
}

/// The first byte chooses the program; where it chooses none of the repository's, the next 32 are the seed of a random one.
/// The rest are frames.
pub fn differential(data: &[u8]) {
    let mut input = Input(data);
    let choice = usize::from(input.byte());
    ENGINES.with(|engines| match engines.get(choice % (2 * engines.len())) {
        Some((program, reference, engine)) => {
            let arrivals = input.arrivals(program.ports.len() as u16);
            assert_same(program, reference, engine, &arrivals);
        }
        None => {
            let Some(program) = random(input.take(32), choice & 1 == 1) else { return };
            let arrivals = input.arrivals(program.ports.len() as u16);
            assert_same(&program, &eval(&program), &jit(&program), &arrivals);
        }
    });
}

/// The random program of this seed.
fn random(seed: &[u8], cyclic: bool) -> Option<Program> {
    let mut bytes = [0; 32];
    bytes[..seed.len()].copy_from_slice(seed);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config { failure_persistence: None, ..Config::default() }, rng);
    programs::program(cyclic).new_tree(&mut runner).ok().map(|tree| tree.current())
}
