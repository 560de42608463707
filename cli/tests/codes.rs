//! `pipec check`: warnings that are errors, warnings that are not shown, and what codes mean.

mod common;

use common::Scratch;

const PROGRAM: &str = "pipeline p { port a, b; const LIMIT = 3; table t { ip => output(b); udp => drop; } }\n";

#[test]
fn warnings_are_denied_and_allowed_by_their_codes() {
    let scratch = Scratch::new("codes");
    scratch.write("a.pipe", PROGRAM);
    let ran = scratch.pipec(["check", "a.pipe"]);
    assert!(ran.err.contains("warning[unused-name]") && ran.err.contains("warning["), "{}", ran.err);
    assert!(ran.good().contains("a.pipe: good"));
    scratch.pipec(["check", "a.pipe", "--deny", "warnings"]).bad(2, &["error[unused-name]"]);
    scratch.pipec(["check", "a.pipe", "--deny", "unused-name"]).bad(2, &["error[unused-name]"]);
    scratch.pipec(["check", "a.pipe", "--deny", "no-expect"]).good();
    let ran = scratch.pipec(["check", "a.pipe", "--allow", "unused-name"]);
    assert!(!ran.err.contains("unused-name"), "{}", ran.err);
    assert_eq!(scratch.pipec(["check", "a.pipe", "--allow", "warnings", "--deny", "warnings"]).err, "");
    scratch.pipec(["check", "a.pipe", "--deny", "unused"]).bad(2, &["there is unused-name"]);
}

#[test]
fn codes_are_explained() {
    let scratch = Scratch::new("explained");
    let out = scratch.pipec(["check", "--explain", "shadowed-rule"]).good();
    assert!(out.starts_with("shadowed-rule\n") && out.contains("    pipeline p"), "{out}");
    scratch.pipec(["check", "--explain", "nothing-such"]).bad(2, &["no message has this code"]);
    scratch.pipec(["check"]).bad(2, &["FILE"]);
}

#[test]
fn rules_of_ovs_ofctl_are_checked_too() {
    let scratch = Scratch::new("flows-checked");
    scratch.write("a.flows", "priority=9,ip actions=output:2\npriority=5,tcp actions=output:1\ntable=7 actions=drop\n");
    let ran = scratch.pipec(["check", "a.flows"]);
    assert!(
        ran.err.contains("warning[shadowed-rule]") && ran.err.contains("warning[unreachable-table]"),
        "{}",
        ran.err
    );
    ran.good();
}
