//! `explain`, `graph`, `diff`, and what `test` and `trace` tell beyond results, on whole programs.

mod common;

use common::{FIREWALL, Scratch, conversations};
use serde_json::Value;

const RESUBMIT: &str = include_str!("../../pipelines/resubmit.flows");
const ROUTER: &str = include_str!("../../pipelines/router.pipe");

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("fw.pipe", FIREWALL);
    scratch.write("resubmit.flows", RESUBMIT);
    scratch.write("router.pipe", ROUTER);
    scratch.write("router.csv", include_str!("../../pipelines/router.csv"));
    scratch
}

/// A table of many rules of each shape, between two others.
fn many_rules() -> String {
    let mut text = "pipeline many { port a, b;\n  table fib {\n".to_string();
    for i in 0..64 {
        text += &format!("    ipv4.dst == 10.{i}.0.0/16 => goto hosts;\n");
    }
    text += "    ipv4.dst == 10.0.0.0/8 => output(a);\n  }\n  table hosts {\n";
    for i in 0..30 {
        text += &format!("    eth.src == 02:00:00:00:01:{i:02x} => goto acl;\n");
    }
    text += "  }\n  table acl {\n";
    for i in 0..40 {
        text += &format!("    ipv4.src == 10.0.0.0/{} && tcp.dst == {i} => output(b);\n", i % 20 + 8);
    }
    text += "    else => drop;\n  }\n}\n";
    text
}

#[test]
fn explain_says_what_each_table_became() {
    let scratch = scratch("explain");
    insta::assert_snapshot!("explain_firewall", scratch.pipec(["explain", "fw.pipe"]).good());
    insta::assert_snapshot!("explain_resubmit", scratch.pipec(["explain", "resubmit.flows"]).good());
    scratch.write("many.pipe", many_rules());
    insta::assert_snapshot!("explain_many", scratch.pipec(["explain", "many.pipe"]).good());
}

#[test]
fn explain_says_what_keyed_tables_are_and_how_entries_are_found() {
    let scratch = scratch("explain-keyed");
    let program = "pipeline kinds { port a, b; action to(out: port) { output(out); }
        table ranges { key tcp.dst: range, ipv4.src: ternary; actions to, drop; default drop; size 99;
            entries { priority 2: 1..=6, 10.0.0.0/8 => to(a); priority 1: _, 10.1.0.0/16 => to(b); 80, _ => drop; } }
        table timed { key eth.dst: exact; actions to; default flood; hard 60 s;
            entries { 02:00:00:00:00:01 => to(a); } }
        table known { key eth.src: exact; actions to; default goto_timed; learned; size 2000; idle 300 s; hard 1 h; }
        table later { key ip.dscp: exact; actions to; }
        action goto_timed() { goto timed; }
        start { tcp => goto ranges; udp => goto later; else => learn known(eth.src) => to(in_port), goto known; } }";
    scratch.write("kinds.pipe", program);
    insta::assert_snapshot!("explain_keyed", scratch.pipec(["explain", "kinds.pipe"]).good());
    insta::assert_snapshot!("explain_fib", scratch.pipec(["explain", "router.pipe", "--table", "fib"]).good());
    let json: Value =
        serde_json::from_str(&scratch.pipec(["explain", "router.pipe", "--format", "json"]).good()).unwrap();
    let fib = json["tables"].as_array().unwrap().iter().find(|table| table["table"] == "fib").unwrap();
    assert_eq!(fib["keyed"]["key"][0]["kind"], "lpm");
    assert_eq!(fib["places"][0]["classifier"], "lpm");
    insta::assert_snapshot!("graph_keyed", scratch.pipec(["graph", "kinds.pipe", "--format", "dot"]).good());
}

#[test]
fn explain_speaks_json_and_of_one_table() {
    let scratch = scratch("explain-json");
    let out = scratch.pipec(["explain", "fw.pipe", "--table", "stateful", "--format", "json"]).good();
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["tables"].as_array().unwrap().len(), 1);
    assert_eq!(json["tables"][0]["places"][0]["classifier"], "tree");
    assert_eq!(json["prepared_zones"][0], 0);
    assert!(json["prices"]["CT"].as_u64().unwrap() > 0);
    let text = scratch.pipec(["explain", "fw.pipe", "--table", "stateful"]).good();
    assert!(text.starts_with("table stateful: 4 rules\n") && !text.contains("table classify"), "{text}");
    scratch.pipec(["explain", "fw.pipe", "--table", "none"]).bad(2, &["no such table", "`classify`, `stateful`"]);
}

/// 50 tables that lead to each other.
fn fifty() -> String {
    let mut text = "pipeline fifty { port a, b, c;\n".to_string();
    for i in 0..50 {
        text += &format!("  table t{i} {{\n");
        for (k, step) in [1, 3, 7].into_iter().enumerate() {
            if i + step < 50 && (k == 0 || i % step == 0) {
                text += &format!("    ipv4.dst == 10.{i}.{k}.0/24 || udp.dst == {k} => goto t{};\n", i + step);
            }
        }
        text += if i % 10 == 4 { "    arp => normal;\n" } else { "" };
        text += "    tcp => output(b);\n    else => drop;\n  }\n";
    }
    text + "}\n"
}

#[test]
fn graphs_are_pictures_and_the_same_every_time() {
    let scratch = scratch("graph");
    scratch.write("fifty.pipe", fifty());
    insta::assert_snapshot!("graph_firewall_dot", scratch.pipec(["graph", "fw.pipe", "--format", "dot"]).good());
    insta::assert_snapshot!("graph_resubmit", scratch.pipec(["graph", "resubmit.flows"]).good());
    for file in ["fw.pipe", "resubmit.flows", "router.pipe", "fifty.pipe"] {
        let svg = scratch.pipec(["graph", file]).good();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg, scratch.pipec(["graph", file, "--format", "svg"]).good());
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    let svg = scratch.pipec(["graph", "fifty.pipe"]).good();
    assert_eq!(svg.matches("<rect class=\"table\"").count(), 50);
}

#[test]
fn what_stands_in_a_picture_is_escaped() {
    let scratch = Scratch::new("escape");
    scratch.write("p.pipe", "pipeline p { port a, b; table t { tcp.dst < 9 && ip => output(b); else => drop; } }");
    let svg = scratch.pipec(["graph", "p.pipe"]).good();
    assert!(svg.contains("tcp.dst &lt; 9 &amp;&amp; ip") && !svg.contains("< 9"), "{svg}");
}

#[test]
fn coverage_shows_rules_that_no_test_reached() {
    let scratch = scratch("coverage");
    let args = ["test", "fw.pipe", "--engine", "eval", "--coverage"];
    insta::assert_snapshot!("coverage_text", scratch.pipec(args).good());
    let out = scratch.pipec(["test", "fw.pipe", "--engine", "eval", "--coverage-format", "lcov"]).good();
    insta::assert_snapshot!("coverage_lcov", out);
    let out = scratch.pipec(["test", "fw.pipe", "--engine", "eval", "--coverage-format", "json"]).good();
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["files"][0]["rules"], 7);
    scratch.pipec(["test", "fw.pipe", "--engine", "eval", "--min-coverage", "10"]).good();
    scratch.pipec(["test", "fw.pipe", "--engine", "eval", "--min-coverage", "100"]).bad(1, &["less than 100 percent"]);
    scratch.pipec(["test", "fw.pipe", "--min-coverage", "101"]).bad(2, &["101"]);
}

#[test]
fn coverage_has_the_name_of_the_program_not_of_what_it_uses() {
    let scratch = Scratch::new("coverage-uses");
    scratch.write("lib.pipe", "table used { arp => drop; else => count(seen); }");
    let program = "pipeline p { port a, b; use \"lib.pipe\"; start { else => call used, output(b); } \
                   test \"t\" { send a ipv4(); expect b; } }";
    scratch.write("main.pipe", program);
    let out = scratch.pipec(["test", "main.pipe", "--engine", "eval", "--coverage"]).good();
    assert!(out.contains("main.pipe: 66% of rules are reached (2 of 3)\n"), "{out}");
}

#[test]
fn two_forms_of_one_program_do_the_same() {
    let scratch = scratch("diff-same");
    scratch.write("fw.flows", include_str!("../../pipelines/firewall.flows"));
    let out = scratch.pipec(["diff", "fw.pipe", "fw.flows"]).good();
    assert!(out.contains("meaning: no difference found in "), "{out}");
    let out = scratch.pipec(["diff", "fw.pipe", "fw.pipe"]).good();
    assert!(out.starts_with("rules: the same\nmeaning: no difference found in "), "{out}");
}

#[test]
fn a_difference_is_shown_by_the_fewest_packets() {
    let scratch = scratch("diff");
    let changed = FIREWALL.replacen("in_port == wan => output(lan)", "in_port == wan => drop", 1);
    assert_ne!(changed, FIREWALL);
    scratch.write("other.pipe", changed);
    let ran = scratch.pipec(["diff", "fw.pipe", "other.pipe"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    insta::assert_snapshot!("diff_firewall", ran.out);
}

#[test]
fn rules_that_moved_are_told_from_rules_that_changed() {
    let scratch = Scratch::new("diff-rules");
    let program = |rules: &str| format!("pipeline p {{ port a, b;\n  table t {{\n{rules}  }}\n}}\n");
    let (tcp, port, udp) = ("ip && tcp => output(b);\n", "tcp.dst == 80 => drop;\n", "udp => output(a);\n");
    scratch.write("a.pipe", program(&[tcp, udp, "arp => drop;\n", "else => drop;\n"].concat()));
    scratch.write("b.pipe", program(&[port, tcp, "arp => flood;\n", udp, "else => drop;\n"].concat()));
    let ran = scratch.pipec(["diff", "a.pipe", "b.pipe"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    for part in
        ["1 changed, 1 added", "changed  a.pipe:5: arp => drop", "to  b.pipe:5: arp => flood", "added    b.pipe:3"]
    {
        assert!(ran.out.contains(part), "{part} in {}", ran.out);
    }
    scratch.write("c.pipe", program(&[udp, tcp, "arp => drop;\n", "else => drop;\n"].concat()));
    let out = scratch.pipec(["diff", "a.pipe", "c.pipe"]).good();
    assert!(out.contains("1 moved") && out.contains("no difference found"), "{out}");
    scratch.pipec(["diff", "a.pipe", "none.pipe"]).bad(2, &["none.pipe"]);
}

#[test]
fn a_trace_says_why_rules_do_not_hold() {
    let scratch = scratch("why");
    let out = scratch.pipec(["trace", "--why", "fw.pipe", "wan: ipv4() / udp()", "lan: arp()"]).good();
    insta::assert_snapshot!("trace_why", out);
}

#[test]
fn a_trace_shows_fields_before_and_after() {
    let scratch = scratch("before");
    let program = "pipeline p { port a, b; table t { ipv4 => dec_ttl, eth.src = 02:00:00:00:00:77, output(b); } }";
    scratch.write("p.pipe", program);
    let out = scratch.pipec(["trace", "p.pipe", "a: ipv4() / udp()"]).good();
    assert!(out.contains("     ip.ttl: 64 -> 63\n"), "{out}");
    assert!(out.contains("     eth.src: 02:00:00:00:00:01 -> 02:00:00:00:00:77\n"), "{out}");
}

#[test]
fn a_trace_shows_keys_and_entries() {
    let scratch = scratch("trace-keyed");
    scratch.write("learning.pipe", include_str!("../../pipelines/learning.pipe"));
    let to = |address: &str| format!("a: eth(dst = 02:00:00:00:00:0a) / ipv4(dst = {address}) / udp()");
    let packets = [to("10.1.2.3"), to("10.1.9.9"), to("10.66.0.1"), to("8.8.8.8")];
    let args = ["trace", "--why", "router.pipe"].into_iter().chain(packets.iter().map(String::as_str));
    insta::assert_snapshot!("trace_router", scratch.pipec(args).good());
    let (there, back) = (
        "eth(src = 02:00:00:00:00:01, dst = 02:00:00:00:00:02) / vlan(vid = 5) / arp()",
        "p2: eth(src = 02:00:00:00:00:02, dst = 02:00:00:00:00:01) / vlan(vid = 5) / arp()",
    );
    insta::assert_snapshot!(
        "trace_learning",
        scratch.pipec(["trace", "learning.pipe", &format!("p1: {there}"), back]).good()
    );
    let json: Value =
        serde_json::from_str(&scratch.pipec(["trace", "--json", "router.pipe", &packets[0]]).good()).unwrap();
    let events = json["packets"][0]["events"].as_array().unwrap();
    let event = |name: &str| events.iter().find(|event| event["event"] == name).unwrap();
    assert_eq!(event("key")["key"]["ipv4.dst"], "10.1.2.3");
    assert_eq!((&event("entry")["key"], &event("entry")["place"]), (&"10.1.2.0/24".into(), &"router.csv:3".into()));
    scratch.write("p.pipe", "pipeline p { port a, b; table t { key tcp.dst: exact; actions drop; default drop; } }");
    let out = scratch.pipec(["trace", "p.pipe", "a: ipv4() / udp()"]).good();
    assert!(out.contains("not looked up: the packet has no tcp\n    no entry; default drop\n"), "{out}");
}

/// A program whose key is in a header of its own, which it also puts on and takes off.
const PATHS: &str = "pipeline p { port a, b;
    header path { id: u16, hop: ipv4 } after udp if udp.dst == 4790;
    action on() { path.hop = 10.0.0.2; output(b); }
    action off() { pop path; udp.dst = 53; output(b); }
    table paths { key path.id: exact; actions on, off; default drop; entries { 7 => on(); 8 => off(); } }
    start {
        path && path.hop == 10.0.0.9 => drop;
        path => goto paths;
        ipv4 && udp.dst == 99 => encap eth(dst = 02:00:00:00:00:99) / ipv4(src = 1.1.1.1, dst = 2.2.2.2) / udp(src = 9)
            / vxlan(vni = 77), output(b);
        udp => push path(id = 7, hop = 10.0.0.1), udp.dst = 4790, goto paths;
        else => drop;
    }
    test \"headers\" {
        send a ipv4() / udp(dst = 53);
        expect b where path.id == 7 && path.hop == 10.0.0.2;
        send a ipv4() / udp(dst = 4790) / path(id = 8);
        expect b where udp.dst == 53;
        send a ipv4() / udp(dst = 4790) / path(id = 9);
        expect drop(policy);
    }
}";

#[test]
fn headers_that_are_declared_have_their_names_everywhere() {
    let scratch = Scratch::new("declared-names");
    scratch.write("paths.pipe", PATHS);
    scratch.pipec(["test", "paths.pipe"]).good();
    let out = scratch.pipec(["trace", "--why", "paths.pipe", "a: ipv4() / udp()", "a: ipv4() / udp(dst = 99)"]).good();
    insta::assert_snapshot!("trace_declared", out);
    let changed = PATHS.replace("path.hop == 10.0.0.9", "path.hop == 10.0.0.8");
    scratch.write("other.pipe", &changed);
    insta::assert_snapshot!("diff_declared", scratch.pipec(["diff", "paths.pipe", "other.pipe"]).out);
}

#[test]
fn entries_that_differ_are_shown() {
    let scratch = scratch("diff-entries");
    scratch.pipec(["diff", "router.pipe", "router.pipe"]).good();
    let other = ROUTER.replace("10.0.0.0/8  => route(a, MAC_A", "10.0.0.0/8  => route(b, MAC_A");
    let other = other.replace("            10.1.0.0/16 => route(b, MAC_B, 02:00:00:00:0b:01);\n", "");
    scratch.write("other.pipe", other.replace("size 1_000_000", "size 9"));
    let out = scratch.pipec(["diff", "router.pipe", "other.pipe"]).out;
    let (rules, _) = out.split_once("meaning:").unwrap();
    insta::assert_snapshot!("diff_entries", rules);
}

#[test]
fn a_trace_speaks_json_and_reads_captures() {
    let scratch = scratch("trace-json");
    scratch.write("lan.pcap", conversations().0);
    let args = ["trace", "fw.pipe", "--pcap", "lan.pcap", "--packet", "21", "--packet", "1", "--port", "lan"];
    let out = scratch.pipec(args).good();
    assert!(out.contains("/ arp(spa = 10.0.0.1") && out.contains("-> wan: as it came"), "{out}");
    let out = scratch.pipec(args.iter().chain(&["--json", "--why"])).good();
    let json: Value = serde_json::from_str(&out).unwrap();
    let packets = json["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 2);
    assert_eq!(packets[1]["outputs"][0]["port"], "wan");
    let events = packets[0]["events"].as_array().unwrap();
    assert!(events.iter().any(|event| event["event"] == "tried" && event["why"] == "ipv4: the packet has none"));
    scratch
        .pipec(["trace", "fw.pipe", "--pcap", "lan.pcap", "--packet", "99", "--port", "lan"])
        .bad(2, &["has 21 packets"]);
    scratch.pipec(["trace", "fw.pipe", "--pcap", "lan.pcap"]).bad(2, &["--port"]);
}
