//! What `check` claims is true: on random programs and packets, the reference never runs a rule or table that was called
//! unreachable, never leaves a loop that was called endless, and never sees `ct()` before a read that was called too early.

use std::collections::BTreeMap;
use std::sync::Arc;

use pipec_abi::ct::state::{EST, INV, NEW, REL, RPL, TRK};
use pipec_abi::{Burst, CtPoint, CtView, Ctx, DropReason, Emit, Env, Verdict};
use pipec_compiler::check::{Language, check};
use pipec_compiler::diag::{Diagnostic, render_all};
use pipec_compiler::eval::{Eval, Event};
use pipec_compiler::hir::{Program, TableId};
use pipec_compiler::source::Sources;
use pipec_compiler::{packet, parse, resolve};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// An `Env` that sends nothing, and answers `ct` with one state after the other.
#[derive(Default)]
struct Quiet {
    asked: usize,
    saved: Vec<Vec<u8>>,
}

impl Env for Quiet {
    fn ct_prepare(&mut self, _: &mut Ctx, _: &Burst, _: u32, _: u16) {}
    fn ct(&mut self, ctx: &mut Ctx, _: &mut Burst, i: usize, _: &CtPoint, zone: u16) -> u32 {
        let states = [NEW, EST, EST | RPL, NEW | REL, INV];
        let state = TRK | states[self.asked % states.len()];
        self.asked += 1;
        *ctx.ct(i) = CtView { state, zone: zone.into(), mark: 5, ..CtView::CLEAR };
        state
    }
    fn emit(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, _: u16, _: Emit) {
        burst.set_verdict(i, Verdict::LISTED);
    }
    fn flood(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, _: u16, _: Emit) {
        burst.set_verdict(i, Verdict::LISTED);
    }
    fn normal(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, _: u16, _: Emit) {
        burst.set_verdict(i, Verdict::LISTED);
    }
    fn save(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize) {
        self.saved.push(burst.bytes(i).to_vec());
    }
    fn restore(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize) {
        let bytes = self.saved.pop().expect("restore follows save");
        burst.bytes_mut(i).copy_from_slice(&bytes);
    }
    fn emit_part(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, _: u16, _: u16) {
        burst.set_verdict(i, Verdict::LISTED);
    }
    fn controller(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, _: u8, _: u16) {
        burst.set_verdict(i, Verdict::LISTED);
    }
    fn meter(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16) -> bool {
        self.asked += 1;
        !self.asked.is_multiple_of(4)
    }
    fn live(&mut self, _: &mut Ctx, port: u16) -> bool {
        port != 1
    }
    fn fail(&mut self, _: &mut Ctx, burst: &mut Burst, i: usize, reason: DropReason) {
        burst.set_verdict(i, Verdict::drop(reason));
    }
}

const ATOMS: &[&str] = &[
    "eth",
    "ip",
    "ipv6",
    "arp",
    "rarp",
    "vlan",
    "tcp",
    "udp",
    "icmp",
    "icmpv6",
    "tcp.dst == 80",
    "tcp.dst in 80..=443",
    "tcp.dst != 80",
    "udp.dst == 53",
    "udp.dst in { 53, 67..=68 }",
    "ipv4.src in 10.0.0.0/8",
    "ipv4.src == 10.0.0.1",
    "ipv4.src & 255.0.0.255 == 10.0.0.1",
    "ipv4.ttl < 10",
    "ip.ttl == 64",
    "ip.ttl > 64",
    "ip.ttl <= 9",
    "ipv6.dst == ::1",
    "ct.new",
    "ct.est",
    "ct.trk",
    "ct.inv",
    "ct.rpl",
    "ct.mark == 5",
    "ct.state == trk|new",
    "in_port == a",
    "in_port in { a, b }",
    "vlan.vid == 5",
    "vlan.vid in 5..=9",
    "vlan.pcp == 2",
    "vlan.tci == 0",
    "vlan.tci & 0x1000 == 0x1000",
    "v == 3",
    "v & 1 == 1",
    "v != 0",
    "tcp.syn",
    "tcp.flags & 0x12 == 0x02",
    "eth.type == 0x0806",
    "eth.type in { 0x0800, 0x86dd }",
    "ip.proto == 6",
    "ip.proto in { 6, 17 }",
    "ip.frag == 0",
    "arp.op == 1",
    "icmp.type == 8",
];

const ACTIONS: &[&str] = &[
    "output(b)",
    "output(a)",
    "goto t1",
    "goto t2",
    "goto t3",
    "goto t0",
    "call t1",
    "call t2",
    "call t3",
    "ct()",
    "ct(commit)",
    "ct_clear",
    "v = 3",
    "v = 1",
    "dec_ttl",
    "drop",
    "exit",
    "clone { goto t3 }",
    "clone { ct(), call t2 }",
    "ip.ttl = 9",
    "vlan.vid = 5",
    "tcp.dst = 80",
    "normal",
];

const PACKETS: &[&str] = &[
    "ipv4(src = 10.0.0.1) / tcp(dst = 80)",
    "ipv4(src = 10.1.2.1, ttl = 9) / tcp(dst = 443, flags = ack)",
    "ipv4() / udp(dst = 53)",
    "ipv4(src = 10.9.9.9, ttl = 65) / udp(dst = 68)",
    "ipv4() / icmp()",
    "ipv6(dst = ::1) / tcp(dst = 80)",
    "ipv6(hop_limit = 1) / udp()",
    "ipv6() / icmpv6()",
    "arp()",
    "arp(op = 2)",
    "vlan(vid = 5) / ipv4() / tcp()",
    "vlan(vid = 7, pcp = 2) / arp()",
    "vlan(vid = 5) / ipv6() / udp(dst = 53)",
    "eth(type = 0x8035)",
    "eth(type = 0x88cc)",
    "ipv4(proto = 6)",
    "ipv4(proto = 58) / icmp()",
    "ipv4(mf = 1) / tcp(dst = 80)",
    "ipv4(offset = 10, proto = 17) / \"x\"",
    "ipv6(proto = 1) / icmpv6()",
    "hex(\"020000000001 020000000002 0800 45\")",
    "vlan() / vlan() / ipv4() / tcp()",
];

/// A condition of up to three atoms.
fn cond() -> impl Strategy<Value = String> {
    let atom =
        (select(ATOMS), 0..5).prop_map(|(atom, not)| if not == 0 { format!("!({atom})") } else { atom.to_string() });
    let operator = select(&["&&", "&&", "&&", "||"][..]);
    prop_oneof![
        1 => Just("else".to_string()),
        6 => atom.clone(),
        6 => (atom.clone(), operator.clone(), atom.clone()).prop_map(|(a, op, b)| format!("{a} {op} {b}")),
        3 => (atom.clone(), operator, atom.clone(), atom).prop_map(|(a, op, b, c)| format!("({a} {op} {b}) && {c}")),
    ]
}

fn program() -> impl Strategy<Value = String> {
    let actions = prop::collection::vec(select(ACTIONS), 1..4).prop_map(|list| list.join(", "));
    let rule = (cond(), actions).prop_map(|(cond, actions)| format!("        {cond} => {actions};\n"));
    let table = prop::collection::vec(rule, 1..7);
    prop::collection::vec(table, 4).prop_map(|tables| {
        let mut text = String::from("pipeline p {\n    port a, b;\n    var v: u16;\n");
        for (i, rules) in tables.iter().enumerate() {
            // One `else` a table.
            let mut otherwise = false;
            let rules: String = rules
                .iter()
                .filter(|rule| !rule.contains("else") || !std::mem::replace(&mut otherwise, true))
                .map(String::as_str)
                .collect();
            text += &format!("    table t{i} {{\n{rules}    }}\n");
        }
        text + "}\n"
    })
}

/// What happened: how often each table was entered, and each rule taken, and in which runs packets were given up.
#[derive(Default)]
struct Seen {
    tables: BTreeMap<usize, usize>,
    rules: BTreeMap<(usize, usize), usize>,
    /// Entered or taken in a run that ended otherwise than by being given up.
    left_tables: BTreeMap<usize, usize>,
    left_rules: BTreeMap<(usize, usize), usize>,
}

fn run(program: &Program, packets: &[(u16, Index)]) -> Seen {
    let eval = Eval::new(Arc::new(program.clone()));
    let (mut env, mut ctx, mut seen) = (Quiet::default(), eval.ctx(), Seen::default());
    for (port, index) in packets {
        let text = format!("a: {}", PACKETS[index.index(PACKETS.len())]);
        let (_, mut frame) = packet::parse_packet(&mut Sources::default(), &text).expect("a packet");
        let mut burst = Burst::new();
        burst.begin(0);
        // SAFETY: `frame` outlives the run and is touched by nobody else meanwhile.
        unsafe { burst.push(std::ptr::null_mut(), frame.as_mut_ptr(), frame.len() as u32, *port) };
        let mut events = vec![];
        eval.run_traced(&mut env, &mut ctx, &mut burst, &mut |event| events.push(event));
        let given_up = matches!(burst.verdict(0).reason(), Some(DropReason::Depth | DropReason::Resubmits));
        for event in events {
            match event {
                Event::Table { table: TableId(table), .. } => {
                    *seen.tables.entry(table.into()).or_default() += 1;
                    *seen.left_tables.entry(table.into()).or_default() += usize::from(!given_up);
                }
                Event::Rule(TableId(table), rule) => {
                    *seen.rules.entry((table.into(), rule)).or_default() += 1;
                    *seen.left_rules.entry((table.into(), rule)).or_default() += usize::from(!given_up);
                }
                _ => {}
            }
        }
        env.saved.clear();
    }
    seen
}

/// The rule, or table, that a message is about.
fn subject(program: &Program, diagnostic: &Diagnostic) -> Result<(usize, usize), Option<usize>> {
    let at = diagnostic.span().start;
    for (index, table) in program.tables.iter().enumerate() {
        if let Some(rule) = table.rules.iter().position(|rule| (rule.span.start..rule.span.end).contains(&at)) {
            return Ok((index, rule));
        }
    }
    Err(program.tables.iter().position(|table| table.span.start == at))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn claims_hold(text in program(), packets in prop::collection::vec((0_u16..2, any::<Index>()), 12)) {
        let mut sources = Sources::default();
        let file = sources.add("claims.pipe", text.as_str());
        let mut diagnostics = vec![];
        let tree = parse::pipe(&text, file, &mut diagnostics).expect("a tree");
        let resolved = resolve::pipe(&tree, &mut diagnostics);
        let Some(resolved) = resolved else {
            panic!("{}", render_all(&diagnostics, &sources, false));
        };
        let program = resolved.program;
        diagnostics.extend(check(&program, &resolved.marks, Language::Pipe));
        let seen = run(&program, &packets);
        for diagnostic in &diagnostics {
            let shown = || diagnostic.render(&sources, false);
            let count = |rule| seen.rules.get(&rule).copied().unwrap_or(0);
            match (diagnostic.code, subject(&program, diagnostic)) {
                ("shadowed-rule" | "never-matches" | "unreachable-rule", Ok(rule)) => {
                    // A comparison that never holds need not be the whole condition.
                    if diagnostic.message.contains("comparison") {
                        continue;
                    }
                    prop_assert_eq!(count(rule), 0, "{}\n{}", shown(), text);
                }
                ("unreachable-table", Err(Some(table))) => {
                    prop_assert_eq!(seen.tables.get(&table).copied().unwrap_or(0), 0, "{}\n{}", shown(), text);
                }
                ("endless-loop", Ok(rule)) => {
                    let left = if diagnostic.message.contains("a packet that matches") {
                        seen.left_rules.get(&rule)
                    } else {
                        seen.left_tables.get(&rule.0)
                    };
                    prop_assert_eq!(left.copied().unwrap_or(0), 0, "{}\n{}", shown(), text);
                }
                _ => {}
            }
        }
    }
}
