//! Programs of ten thousand rules, good and full of mistakes, in both languages: they are checked to the end. How long that
//! takes of a processor is printed (`--nocapture`, in a release build); it is not asserted.

use std::fmt::Write;

use pipec_compiler::diag::{has_errors, render_all};
use pipec_compiler::hir::Program;
use pipec_compiler::source::Sources;

const RULES: usize = 10_000;

/// The rule for each number.
type Rules = Box<dyn Fn(usize) -> String>;

/// Checks a program, prints how long it took, and gives what is said about it.
fn check(what: &str, file: &str, text: &str) -> (Option<Program>, Vec<&'static str>) {
    let mut sources = Sources::default();
    let file = sources.add(file, text);
    let begin = processor_ms();
    let (program, diagnostics) = pipec_compiler::front(&mut sources, file, &[]);
    let shown = render_all(&diagnostics, &sources, false);
    println!("{what}: {} KB, {} ms, {} diagnostics", text.len() / 1024, processor_ms() - begin, diagnostics.len());
    assert_eq!(program.is_none(), has_errors(&diagnostics));
    assert!(shown.len() < 1 << 20, "{what}: {} bytes of messages", shown.len());
    (program, diagnostics.iter().map(|d| d.code).collect())
}

/// What this thread has used of a processor, in milliseconds; 0 where the system does not tell.
fn processor_ms() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<u64>().ok()).unwrap_or(0) / 1_000_000
}

/// A program whose table has these rules.
fn pipe(rule: impl Fn(usize) -> String) -> String {
    let mut text =
        "pipeline p {\n    port a, b, c;\n    set web = { 80, 443, 8000..=8080 };\n    var n: u16;\n".to_string();
    text += "    action go(to: port, mark: u16) { n = mark; output(to); }\n    table t {\n";
    for i in 0..RULES {
        let _ = writeln!(text, "        {};", rule(i));
    }
    text + "        else => drop;\n    }\n    table u { n == 3 => output(a); }\n}\n"
}

fn ip(i: usize) -> String {
    format!("{}.{}.{}.{}", 1 + i % 200, i / 200 % 256, i / 7 % 256, i % 251)
}

#[test]
fn pipelines_of_ten_thousand_rules_end() {
    let kinds: Vec<(&str, Rules)> = vec![
        ("exact", Box::new(|i| format!("ipv4.dst == {} && tcp.dst == {} => go(b, {})", ip(i), i % 65_536, i % 100))),
        ("prefixes", Box::new(|i| format!("ipv4.dst in {}/{} => output(b)", ip(i), 8 + i % 25))),
        (
            "priorities",
            Box::new(|i| format!("priority {}: ipv4.src == {} && udp.dst in web => output(c)", i % 7, ip(i))),
        ),
        (
            "one priority",
            Box::new(|i| format!("priority 9: ipv4.src == {} && udp.dst == {} => output(c)", ip(i), i % 9)),
        ),
        (
            "one priority, masks",
            Box::new(|i| format!("priority 9: eth.dst & {:#x} == 0 && udp.dst == {i} => output(c)", 1_u64 << (i % 48))),
        ),
        ("ranges", Box::new(|i| format!("tcp.dst in {}..={} => output(b)", i, i + 3))),
        ("sets", Box::new(|i| format!("tcp.dst in {{ {i}, {}..={} }} || udp.src in web => output(b)", i + 9, i + 70))),
        ("negations", Box::new(|i| format!("!(ipv4.dst == {}) && tcp => output(b)", ip(i)))),
        (
            "many masks",
            Box::new(|i| format!("eth.dst & {:#x} == 0 => output(a)", 0xffff_0000_0000_u64 ^ (i as u64) << 3)),
        ),
        ("never", Box::new(|i| format!("tcp && udp && ipv4.dst == {} => output(b)", ip(i)))),
        ("variables", Box::new(|i| format!("n == {i} => n = {}, call u, output(b)", i + 1))),
        ("clones", Box::new(|i| format!("tcp.dst == {i} => clone {{ ip.ttl = 3, output(a) }}, ct(commit), goto u"))),
    ];
    for (what, rule) in &kinds {
        check(what, "big.pipe", &pipe(rule));
    }
}

#[test]
fn mistakes_in_ten_thousand_rules_end() {
    let kinds: Vec<(&str, &str, Rules)> = vec![
        ("unknown names", "unknown-name", Box::new(|i| format!("ipv4.dst == {} => outputt(b{i})", ip(i)))),
        ("unknown fields", "unknown-name", Box::new(|i| format!("ipv4.dts == {} => output(b)", ip(i)))),
        ("unknown constants", "unknown-name", Box::new(|i| format!("ipv4.dst == HOST{i} => output(b)"))),
        ("wrong kinds", "wrong-kind", Box::new(|i| format!("ipv4.dst == {i} => output(b)"))),
        ("syntax", "syntax", Box::new(|i| format!("ipv4.dst = {} => output(b)", ip(i)))),
        ("no rules", "syntax", Box::new(|i| format!("what is this {i}"))),
        (
            "equal priorities",
            "ambiguous-priority",
            Box::new(|i| {
                format!(
                    "priority 9: ipv4.dst in {}.0.0.0/8 && tcp.dst == {} => output({})",
                    1 + i % 9,
                    i % 50,
                    ["a", "b"][i / 450 % 2]
                )
            }),
        ),
        (
            "overlaps",
            "ambiguous-priority",
            Box::new(|i| format!("priority 9: tcp.dst in {i}..={} => output({})", i + 5_000, ["a", "b"][i % 2])),
        ),
        ("shadowed", "shadowed-rule", Box::new(|i| format!("ipv4.dst == {} => output(b)", ip(i % 100)))),
        ("actions behind", "unreachable-action", Box::new(|i| format!("tcp.dst == {i} => goto u, output(b)"))),
        ("too wide", "value-too-big", Box::new(|i| format!("tcp.dst == {} => output(b)", 65_536 + i))),
        ("arguments", "arguments", Box::new(|i| format!("tcp.dst == {i} => go(b)"))),
        ("circle", "endless-loop", Box::new(|i| format!("tcp.dst == {i} => output(b), goto t"))),
        ("absent", "write-absent", Box::new(|i| format!("udp.dst == {i} => tcp.src = 3, output(b)"))),
    ];
    for (what, code, rule) in &kinds {
        let (_, codes) = check(what, "big.pipe", &pipe(rule));
        assert!(codes.contains(code), "{what}: {codes:?}");
        assert!(codes.len() <= 102, "{what}: {}", codes.len());
    }
    let names: String = (0..RULES).map(|i| format!("const name_{i} = {i};\n")).collect();
    let text =
        format!("pipeline p {{ port a;\n{names} table t {{ {} }} }}", "tcp.dst == nane_1 => drop;\n".repeat(RULES));
    check("many names", "big.pipe", &text);
    let text = format!("pipeline p {{ port a;\n{} else => drop; }}", "table t { else => drop; }\n".repeat(RULES));
    check("many tables", "big.pipe", &text);
    let tables: String =
        (0..RULES).map(|i| format!("table t{i} {{ tcp => call t{}; else => drop; }}\n", (i * 7 + 1) % RULES)).collect();
    check("tables that call", "big.pipe", &format!("pipeline p {{ port a;\n{tables} }}"));
}

#[test]
fn rules_of_ovs_ofctl_end() {
    let kinds: Vec<(&str, Rules)> = vec![
        (
            "exact",
            Box::new(|i| {
                format!("table={},priority=5,tcp,nw_dst={},tp_dst={} actions=output:2", i % 3, ip(i), i % 65_536)
            }),
        ),
        ("prefixes", Box::new(|i| format!("priority={},ip,nw_dst={}/{} actions=output:1", i % 500, ip(i), 8 + i % 25))),
        (
            "masks",
            Box::new(|i| {
                format!(
                    "priority=7,dl_dst=00:00:00:00:00:00/{:012x} actions=resubmit(,{})",
                    1_u64 << (i % 48),
                    1 + i % 200
                )
                .replace(&format!("{:012x}", 1_u64 << (i % 48)), &{
                    let hex = format!("{:012x}", 1_u64 << (i % 48));
                    (0..6).map(|b| hex[2 * b..2 * b + 2].to_string()).collect::<Vec<_>>().join(":")
                })
            }),
        ),
        ("connections", Box::new(|i| format!("ct_state=+trk+est,tcp,tp_src={i} actions=ct(commit),output:2"))),
        ("unknown fields", Box::new(|i| format!("nw_dts={} actions=output:1", ip(i)))),
        ("unknown actions", Box::new(|i| format!("tcp,tp_dst={i} actions=putout:1"))),
        ("values", Box::new(|i| format!("tcp,tp_dst={} actions=output:1", 65_536 + i))),
        ("junk", Box::new(|i| format!("what is this {i}"))),
        ("the same", Box::new(|_| "tcp actions=output:1".to_string())),
    ];
    for (what, rule) in &kinds {
        let text: String = (0..RULES).map(|i| rule(i) + "\n").collect();
        check(what, "big.flows", &text);
    }
}
