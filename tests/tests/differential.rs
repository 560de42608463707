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

/// A table that tracks some packets is called twice; what an earlier burst left of connections is no packet's.
#[test]
fn connections_of_an_earlier_burst_are_forgotten() {
    for variable in ["", "var unused: u32;"] {
        let text = format!(
            "pipeline p {{ port a, b, c; {variable}
               table first {{ else => call second, call second; }}
               table second {{ ipv4 => ct(commit); ct.trk => output(b); else => output(c); }} }}"
        );
        let mut sources = pipec_compiler::source::Sources::default();
        let file = sources.add("p.pipe", text);
        let (program, diagnostics) = pipec_compiler::front(&mut sources, file, &[]);
        let program = program.unwrap_or_else(|| panic!("{diagnostics:?}"));
        let addresses = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
        let of = |rest: &[u8]| (0, [&addresses[..], rest].concat());
        let ip =
            [8, 0, 0x45, 0, 0, 32, 0, 7, 0, 0, 1, 17, 0xa5, 0xc5, 10, 0, 0, 1, 10, 0, 0, 1, 0, 2, 0, 1, 0, 12, 0, 0];
        let arp = [8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
        let arrivals = [(1_000_000_000, vec![of(&ip); 4]), (2_000_000_000, vec![of(&arp); 4])];
        assert_same(&program, &eval(&program), &jit(&program), &arrivals);
    }
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
