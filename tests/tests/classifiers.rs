//! Tables get the classifier that suits their rules.

use pipec_compiler::hir::Program;
use pipec_compiler::source::Sources;
use pipec_tests::assert_classifier;

/// A program with one table of these rules.
fn table(rules: &[String]) -> Program {
    let text = format!("pipeline p {{ port a, b; table t {{ {} else => drop; }} }}", rules.concat());
    let mut sources = Sources::default();
    let file = sources.add("p.pipe", text);
    let (program, diagnostics) = pipec_compiler::front(&mut sources, file, &[]);
    program.unwrap_or_else(|| panic!("{diagnostics:?}"))
}

fn rules(n: usize, rule: impl Fn(usize) -> String) -> Vec<String> {
    (0..n).map(rule).collect()
}

#[test]
fn one_rule_that_always_holds_is_direct() {
    assert_classifier!(table(&[]), "t", "direct");
}

#[test]
fn few_rules_are_a_tree() {
    assert_classifier!(table(&rules(8, |i| format!("tcp.dst == {i} => output(b);"))), "t", "tree");
}

#[test]
fn many_keys_of_one_shape_are_a_hash_table() {
    let program = table(&rules(200, |i| format!("eth.dst == 02:00:00:00:00:{i:02x} => output(b);")));
    assert_classifier!(program, "t", "tuple-space");
}

#[test]
fn prefixes_with_longer_ones_first_are_a_trie() {
    let mut prefixes = rules(100, |i| format!("ipv4.dst == 10.{i}.0.0/16 => output(b);"));
    prefixes.push("ipv4.dst == 10.0.0.0/8 => output(a);".to_string());
    assert_classifier!(table(&prefixes), "t", "lpm");
}

#[test]
fn rules_of_many_shapes_are_bit_vectors() {
    let shape = |i: usize| format!("ipv4.src == 10.{i}.0.0/{} && tcp.dst == {i} => output(b);", 16 + i % 16);
    assert_classifier!(table(&rules(100, shape)), "t", "bit-vector");
}

#[test]
fn some_rules_that_no_tree_takes_are_a_chain() {
    let rule = |i: usize| {
        let bit = 1u32 << i;
        format!("ipv4.src & {} == 0.0.0.0 && udp.src & {bit} == 0 => output(b);", std::net::Ipv4Addr::from(bit))
    };
    assert_classifier!(table(&rules(14, rule)), "t", "chain");
}
