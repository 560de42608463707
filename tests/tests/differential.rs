//! Random programs over random bursts: every engine gives the reference's packets, reasons and counts.

use pipec_compiler::hir::Program;
use pipec_tests::engines::{Arrival, assert_same, describe, eval, hex, jit};
use pipec_tests::{frames, programs};
use proptest::prelude::*;

/// A program that prints as its rules.
#[derive(Clone)]
struct Shown<T>(T);

impl std::fmt::Debug for Shown<Program> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&describe(&self.0))
    }
}

impl std::fmt::Debug for Shown<Vec<Arrival>> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (now_ns, frames) in &self.0 {
            writeln!(f, "at {now_ns}")?;
            frames.iter().try_for_each(|(port, frame)| writeln!(f, "  {port}: {}", hex(frame)))?;
        }
        Ok(())
    }
}

fn program(cyclic: bool) -> impl Strategy<Value = Shown<Program>> {
    programs::program(cyclic).prop_map(Shown)
}

/// Bursts of up to 40 frames, some seconds apart.
fn arrivals() -> impl Strategy<Value = Shown<Vec<Arrival>>> {
    let burst = (0u64..40, prop::collection::vec((0u16..3, frames::frame()), 1..40));
    prop::collection::vec(burst, 1..4).prop_map(|bursts| {
        let mut now_s = 1000;
        let arrive = |(gap, frames)| {
            now_s += gap;
            (now_s * 1_000_000_000, frames)
        };
        Shown(bursts.into_iter().map(arrive).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn jit_is_eval(program in program(false), arrivals in arrivals()) {
        assert_same(&program.0, &eval(&program.0), &jit(&program.0), &arrivals.0);
    }

    #[test]
    fn headers_come_and_go_alike(program in programs::shaping().prop_map(Shown), arrivals in arrivals()) {
        assert_same(&program.0, &eval(&program.0), &jit(&program.0), &arrivals.0);
    }

    #[test]
    fn tables_that_are_one_do_the_same(program in programs::connected().prop_map(Shown), arrivals in arrivals()) {
        assert_same(&program.0, &eval(&program.0), &jit(&program.0), &arrivals.0);
    }

    #[test]
    fn jit_is_eval_where_tables_reach_themselves(program in program(true), arrivals in arrivals()) {
        assert_same(&program.0, &eval(&program.0), &jit(&program.0), &arrivals.0);
    }
}
