//! What tests expect: outputs with what holds for them, whole packets, drops with their reasons, several packets at once.

mod common;

use common::Scratch;

/// A program with one test.
fn program(steps: &str) -> String {
    format!(
        r#"pipeline p {{
    port lan, wan, dmz;
    table t {{
        !ip                                 => drop;
        ip && in_port == dmz                => output(wan), output(wan), output(lan);
        ip && ipv4.dst == 10.0.0.1          => dec_ttl, eth.dst = 02:00:00:00:00:99, output(wan);
        ip && ipv4.dst == 10.0.0.2          => ip.ttl = 7, output(wan), ip.ttl = 6, output(wan);
    }}
    test "this" {{
        {steps}
    }}
}}
"#
    )
}

#[test]
fn what_holds_passes() {
    let scratch = Scratch::new("expects");
    for steps in [
        "send lan arp(); expect drop; expect drop(policy);",
        "send lan ipv4(dst = 10.9.9.9); expect drop(no_match);",
        "send lan ipv4(dst = 10.0.0.1, ttl = 1); expect drop(ttl);",
        "send lan ipv4(dst = 10.0.0.1); expect wan where ip.ttl == 63 && eth.dst == 02:00:00:00:00:99;",
        "send lan ipv4(dst = 10.0.0.1) / udp(dst = 53) / \"hello\"; \
         expect wan == eth(dst = 02:00:00:00:00:99) / ipv4(dst = 10.0.0.1, ttl = 63) / udp(dst = 53) / \"hello\";",
        "send dmz ipv4(); expect lan, 2 wan; expect wan, lan, wan where ip.ttl == 64; after 5 ms; expect wan, lan, wan;",
        // Which of the two is meant is found, in any order.
        "send lan ipv4(dst = 10.0.0.2); expect wan where ip.ttl >= 6, wan where ip.ttl == 6;
         expect wan where ip.ttl < 7, wan;",
        "send 40 lan ipv4(dst = 10.0.0.1); expect 40 wan; send 2 lan arp(); expect drop, drop(policy);",
        "send lan ipv4(dst = 10.0.0.1, ihl = 4); expect drop(no_match);",
        "send lan hex(\"0102\"); expect drop(malformed);",
        "after 1 h; after 2 min; after 3 us; send lan arp(); expect drop;",
    ] {
        scratch.write("a.pipe", program(steps));
        let ran = scratch.pipec(["test", "a.pipe", "--engine", "jit"]);
        assert!(ran.out.contains("1 passed"), "{steps}\n{}{}", ran.out, ran.err);
        let ran = scratch.pipec(["test", "a.pipe", "--engine", "eval"]);
        assert!(ran.out.contains("1 passed"), "{steps}\n{}{}", ran.out, ran.err);
    }
}

#[test]
fn what_does_not_hold_is_explained() {
    let scratch = Scratch::new("unmet");
    for (steps, parts) in [
        (
            "send lan arp(); expect drop(ttl);",
            &["expected drop(ttl), but drop(policy) came", "took a.pipe:4: !ip => drop"][..],
        ),
        ("send lan arp(); expect wan;", &["expected wan, but drop(policy) came"]),
        (
            "send lan ipv4(dst = 10.0.0.1); expect drop;",
            &["but wan came", "out of wan: eth(src = 02:00:00:00:00:01, dst = 02:00:00:00:00:99) / ipv4("],
        ),
        (
            "send lan ipv4(dst = 10.0.0.1); expect wan where ip.ttl == 62 && ipv4;",
            &[
                "wan came, but not as expected",
                "does not hold for what came out of wan",
                "ttl = 63, proto = 253)",
                "^",
                "ip.ttl == 62",
            ],
        ),
        (
            "send lan ipv4(dst = 10.0.0.1); expect wan == ipv4(dst = 10.0.0.1, ttl = 63);",
            &["first different byte: 5", "expected eth(src = 02:00:00:00:00:01, dst = 02:00:00:00:00:02)"],
        ),
        ("send dmz ipv4(); expect wan, lan;", &["expected wan, lan, but 2 wan, lan came"]),
        ("send 3 dmz ipv4(); expect 5 wan, 3 lan;", &["expected 5 wan, 3 lan, but 6 wan, 3 lan came", "these packets"]),
        ("send lan ipv4(dst = 10.0.0.2); expect wan where ip.ttl == 6, wan where ip.ttl == 6;", &["ttl = 7"]),
        ("send lan ipv4(dst = 10.0.0.1); expect controller;", &["expected controller, but wan came"]),
        ("send lan ipv4(dst = 10.9.9.9); expect wan;", &["drop(no_match)", "took no rule of `t`"]),
    ] {
        scratch.write("a.pipe", program(steps));
        let ran = scratch.pipec(["test", "a.pipe", "--engine", "jit"]);
        assert!(ran.out.contains("0 passed, 1 failed"), "{steps}\n{}{}", ran.out, ran.err);
        ran.bad(1, parts);
    }
}
