//! Tables get the classifier that suits their rules.

use pipec_compiler::hir::Program;
use pipec_compiler::plan::Plan;
use pipec_compiler::source::Sources;
use pipec_tests::assert_classifier;
use pipec_tests::classifier::{explanation, table};

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

/// A program of these lines of OpenFlow.
fn flows(lines: &[String]) -> Program {
    let mut sources = Sources::default();
    let file = sources.add("lines.flows", lines.join("\n"));
    let (program, diagnostics) = pipec_compiler::front(&mut sources, file, &[]);
    program.unwrap_or_else(|| panic!("{diagnostics:?}"))
}

/// Services of eight back ends each: in one table, in two with a register between them, or in one for each service.
fn balancer(form: usize, services: usize) -> Vec<String> {
    let mut lines = vec![];
    for service in 0..services {
        let (number, matched) = (service + 1, format!("udp,nw_dst=198.18.0.{service},tp_dst=1{service:03}"));
        match form {
            1 => lines.push(format!("table=0,{matched} actions=load:{number}->NXM_NX_REG0[],goto_table:1")),
            2 => lines.push(format!("table=0,{matched} actions=goto_table:{number}")),
            _ => {}
        }
        for end in 0..8 {
            let client = format!("nw_src={}.0.0.0/3", end << 5);
            let actions = format!("actions=dec_ttl,set_field:02:00:00:00:{service:02x}:{end:02x}->eth_dst,output:2");
            lines.push(match form {
                0 => format!("table=0,{matched},{client} {actions}"),
                1 => format!("table=1,reg0={number},ip,{client} {actions}"),
                _ => format!("table={number},ip,{client} {actions}"),
            });
        }
    }
    lines
}

#[test]
fn tables_that_go_on_to_others_cost_what_one_does() {
    // More tables than a packet may nest calls.
    for services in [10, 100] {
        let plans: Vec<Plan> =
            (0..3).map(|form| pipec_compiler::plan::plan(&flows(&balancer(form, services)))).collect();
        for form in 0..3 {
            let program = flows(&balancer(form, services));
            assert_classifier!(program, "0", "hash");
            let others = explanation(&program).tables;
            assert!(others[1..].iter().all(|table| table.places.is_empty()), "all in one look-up");
            let data = |plan: &Plan| pipec_abi::table::decode(&plan.tables[0]).2.len();
            assert_eq!(data(&plans[form]), 8 * services, "what nothing can miss is no entry");
            assert_eq!(plans[form].prefix.len(), plans[0].prefix.len());
            assert_eq!(plans[form].stages[0].body.len(), plans[0].stages[0].body.len());
        }
    }
}

#[test]
fn what_comes_back_or_may_end_keeps_tables_apart() {
    let of = |actions: &str| {
        let first = (0..12).map(|i| format!("table=0,udp,nw_dst=198.18.0.{i} actions={actions}"));
        let second = (0..12).map(|i| format!("table=1,udp,tp_dst={i} actions=output:{}", i % 3 + 1));
        let explained = explanation(&flows(&first.chain(second).collect::<Vec<_>>()));
        explained.tables[1].places.is_empty()
    };
    assert!(of("load:1->NXM_NX_REG0[],goto_table:1"));
    assert!(of("resubmit(,1)"), "nothing follows what was called");
    assert!(!of("resubmit(,1),output:1"));
    assert!(!of("dec_ttl,goto_table:1"), "a packet whose time is over does not go on");
    assert!(!of("mod_tp_dst:7,goto_table:1"), "what is asked for was written");
}

#[test]
fn rules_for_several_kinds_of_packets_are_taken_apart() {
    let rule = |i: usize| {
        format!(
            "udp && ipv4.dst in 10.{i}.{i}.0/24 && udp.dst == {i} => output(b);
             ipv6.src in 2001:db8:{i:x}::/48 && tcp.dst == {i} => output(a);
             arp && arp.tpa == 10.{i}.0.1 => output(b);"
        )
    };
    let program = table(&rules(100, rule));
    let explained = explanation(&program);
    let places = &explained.tables[0].places;
    let words: Vec<_> = places.iter().map(|place| place.data.as_ref().map_or(0, |data| data.key_words)).collect();
    assert_eq!(words, [1, 1, 3, 0], "{}", explained.text(None));
    assert!(places[0].rejected[0].why.starts_with("by eth.type its parts take"), "{:?}", places[0].rejected);
}

#[test]
fn a_header_that_all_rules_ask_for_is_no_part_of_the_key() {
    // TCP is over IPv4 or over IPv6.
    let program = table(&rules(64, |i| format!("tcp.dst == {} => output(b);", 3 * i)));
    assert_classifier!(program, "t", "index");
    let of_one = table(&rules(64, |i| format!("ipv4.src == 10.0.0.7 && udp.dst == {i} => output(b);")));
    let worst = explanation(&of_one).tables[0].places[0].worst_case.clone();
    assert!(
        worst.starts_with("3 tests that all rules share"),
        "type, protocol and address, and nothing twice: {worst}"
    );
}

#[test]
fn a_table_that_many_rules_do_alike_is_reached_in_one_place() {
    let rules = |t: &str, field: &str, last: &str| {
        let rule = |i: usize| format!("ipv4.{field} in 10.{i}.0.0/{} => {last};", 16 + i % 9);
        format!("table {t} {{ {} else => drop; }}", (0..200).map(rule).collect::<String>())
    };
    let first = rules("first", "src", "dec_ttl, goto second");
    let second = rules("second", "dst", "output(b)");
    let mut sources = Sources::default();
    let file = sources.add("two.pipe", format!("pipeline p {{ port a, b; {first} {second} }}"));
    let (program, diagnostics) = pipec_compiler::front(&mut sources, file, &[]);
    let program = program.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let plan = pipec_compiler::plan::plan(&program);
    assert_eq!((plan.functions.len(), plan.stages.len()), (0, 2), "both look-ups are made for the burst");
}
