//! Random programs over random bursts: every engine gives the reference's packets, reasons and counts.

use pipec_tests::engines::{Arrival, assert_same, eval, jit};
use pipec_tests::{frames, programs};
use proptest::prelude::*;

/// Bursts of up to 40 frames, some seconds apart.
fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let burst = (0u64..40, prop::collection::vec((0u16..3, frames::frame()), 1..40));
    prop::collection::vec(burst, 1..4).prop_map(|bursts| {
        let mut now_s = 1000;
        let arrive = |(gap, frames)| {
            now_s += gap;
            (now_s * 1_000_000_000, frames)
        };
        bursts.into_iter().map(arrive).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 3000, ..ProptestConfig::default() })]

    #[test]
    fn jit_is_eval(program in programs::program(false), arrivals in arrivals()) {
        assert_same(&program, &eval(&program), &jit(&program), &arrivals);
    }

    #[test]
    fn jit_is_eval_where_tables_reach_themselves(program in programs::program(true), arrivals in arrivals()) {
        assert_same(&program, &eval(&program), &jit(&program), &arrivals);
    }
}
