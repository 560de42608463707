//! Tables get the classifier that suits their rules.

use pipec_compiler::source::Sources;
use pipec_tests::assert_classifier;
use pipec_tests::classifier::table;

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
    assert_classifier!(program, "t", "hash");
}

#[test]
fn keys_of_few_bits_are_an_array() {
    assert_classifier!(table(&rules(200, |i| format!("vlan.vid == {i} => output(b);"))), "t", "index");
}

#[test]
fn prefixes_with_longer_ones_first_are_a_trie() {
    let mut prefixes = rules(100, |i| format!("ipv4.dst == 10.{i}.7.0/24 => output(b);"));
    prefixes.push("ipv4.dst == 10.0.0.0/8 => output(a);".to_string());
    assert_classifier!(table(&prefixes), "t", "lpm");
}

#[test]
fn prefixes_of_ipv6_with_longer_ones_first_are_a_trie_of_their_own() {
    let mut prefixes = rules(100, |i| format!("ipv6.dst in 2001:db8:{i:x}:0:7::/80 => output(b);"));
    prefixes.push("ipv6.dst in 2001:db8::/32 => output(a);".to_string());
    assert_classifier!(table(&prefixes), "t", "lpm6");
}

#[test]
fn intervals_of_one_field_are_ranges() {
    let of_few_bits = |i: usize| format!("vlan.vid in {}..={} => output(b);", i * 50 + 1, i * 50 + 40);
    assert_classifier!(table(&rules(60, of_few_bits)), "t", "index");
    let address = |i: usize| format!("ipv4.dst in 10.0.{i}.7..=10.0.{i}.200 => output(b);");
    assert_classifier!(table(&rules(60, address)), "t", "ranges");
}

#[test]
fn few_masks_of_many_entries_are_tuples() {
    let exact = |i: usize| format!("ipv4.src == 10.{}.{}.1 && tcp.dst == {} => output(b);", i / 256, i % 256, i % 7000);
    let wide = |i: usize| format!("ipv4.src == 11.{}.{}.1 => output(a);", i / 256, i % 256);
    let both = [rules(9000, exact), rules(9000, wide)].concat();
    assert_classifier!(table(&both), "t", "tuple-space");
}

#[test]
fn ranges_spelled_as_masks_are_one_entry_again() {
    let masks = ["0x400/0xfc00", "0x800/0xf800", "0x1000/0xf000", "0x2000/0xe000", "0x4000/0xc000", "0x8000/0x8000"];
    let rule =
        |i: usize, mask: &str| format!("priority={},udp,nw_src=10.0.{i}.0/24,tp_dst={mask} actions=output:2", 900 - i);
    let text: Vec<String> = (0..50).flat_map(|i| masks.iter().map(move |mask| rule(i, mask))).collect();
    let mut sources = Sources::default();
    let file = sources.add("ranges.flows", text.join("\n"));
    let program = pipec_compiler::front(&mut sources, file, &[]).0.expect("a program");
    let (plan, _) = pipec_compiler::plan::plan_reported(&program);
    let (_, _, entries) = pipec_abi::table::decode(&plan.tables[0]);
    assert_eq!((program.tables[0].rules.len(), entries.len()), (300, 50));
}

#[test]
fn rules_of_many_shapes_are_bit_vectors() {
    let shape = |i: usize| {
        format!("ipv4.src == 10.{i}.0.0/{} && ipv4.dst == 10.0.0.0/{} => output(b);", 16 + i % 16, 8 + i % 9)
    };
    assert_classifier!(table(&rules(100, shape)), "t", "bit-vector");
}

#[test]
fn some_rules_that_no_tree_takes_are_a_chain() {
    let rule = |i: usize| {
        let bit = 1u32 << i;
        format!("ipv4.src & {} == 0.0.0.0 && udp.src & {bit} == 0 => output(b);", std::net::Ipv4Addr::from(bit))
    };
    assert_classifier!(table(&rules(8, rule)), "t", "chain");
}
