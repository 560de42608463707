//! What Open vSwitch 3.1 did in its own tests, held against every engine, where the rules are those that we have.

use std::collections::BTreeMap;

use pipec_tests::engines::{eval, jit};
use pipec_tests::ovs::replay::{Summary, replay};
use pipec_tests::ovs::{for_each, path};

/// Where we differ on purpose: the case, and why.
const DIVERGENCES: &[(&str, &str)] = &[];

/// Stimuli compared and cases that have one, at the least.
const AT_LEAST: (usize, usize) = (190, 57);

#[test]
fn what_ovs_did_is_what_we_do() {
    let Some(path) = path() else {
        eprintln!("left out: the recorded cases are not beside the repository");
        return;
    };
    let mut summary = Summary::default();
    for_each(&path, |case| replay(case, &[("eval", &eval), ("jit", &jit)], &mut summary));
    println!("{} stimuli of {} cases compared", summary.compared, summary.cases);
    for (reason, count) in &summary.left_out {
        println!("{count:5} left out, {reason}");
    }
    let known: BTreeMap<_, _> = DIVERGENCES.iter().copied().collect();
    let unexplained: Vec<_> =
        summary.differences.iter().filter(|(place, ..)| !known.contains_key(place.as_str())).collect();
    for (place, event, difference) in &unexplained {
        println!("{place}, event {event}: {difference}");
    }
    assert!(unexplained.is_empty(), "{} differences", unexplained.len());
    let enough = summary.compared >= AT_LEAST.0 && summary.cases >= AT_LEAST.1;
    assert!(enough, "{} stimuli of {} cases compared", summary.compared, summary.cases);
}
