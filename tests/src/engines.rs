//! One program on several engines, packet by packet and burst by burst.

use std::sync::Arc;

use pipec_abi::{Burst, Ctx, Env};
use pipec_compiler::eval::Eval;
use pipec_compiler::hir::Program;
use pipec_compiler::plan::plan;
use pipec_runtime::conntrack::Config;
use pipec_runtime::engine::{Engine, Interpret};
use pipec_runtime::offline::{Offline, Outcome};
use pipec_runtime::tables::{Entry, Listed};

struct Interpreter(Eval);

impl Interpret for Interpreter {
    fn run(&self, env: &mut dyn Env, ctx: &mut Ctx, burst: &mut Burst) {
        self.0.run(env, ctx, burst);
    }
}

/// The reference interpreter.
pub fn eval(program: &Program) -> Engine {
    let eval = Eval::new(Arc::new(program.clone()));
    let (meta, tables) = (eval.meta(), eval.tables());
    Engine::interpreter(meta, &tables, Arc::new(Interpreter(eval)))
}

/// Machine code.
pub fn jit(program: &Program) -> Engine {
    let plan = plan(program);
    match pipec_compiler::backend::jit::compile(&plan) {
        Ok(jit) => Engine::function(plan.meta, &plan.tables, jit.run(), Some(Arc::new(jit))),
        Err(error) => panic!("{error}"),
    }
}

/// A program with no state and room for few connections, so that there can be many of it one after the other.
pub fn offline(engine: &Engine) -> Offline {
    let attached = vec![true; engine.meta().ports.len()];
    Offline::with_config(engine, &attached, Config { max_conns: 10_000, ..Config::default() })
}

/// Frames that arrive together: the time in nanoseconds, and port and frame of each.
pub type Arrival = (u64, Vec<(u16, Vec<u8>)>);

/// Packets and bytes, table by table.
pub type Counts = Vec<Vec<(u64, u64)>>;

/// What an engine makes of a sequence of arrivals: what became of each packet, packets and bytes of each rule and
/// of the program's own counters, and what there is in tables. In between, entries come and go.
pub fn run(engine: &Engine, arrivals: &[Arrival]) -> (Vec<Outcome>, Counts, Vec<Vec<Listed>>) {
    let mut offline = offline(engine);
    // One port's link is down, so that groups have to choose.
    offline.liveness().set(1, false);
    let mut outcomes = vec![];
    for (k, (now_ns, frames)) in arrivals.iter().enumerate() {
        outcomes.extend(offline.send(*now_ns, frames));
        change(&offline, k);
    }
    let keyed = engine.meta().tables.iter().filter(|table| table.keyed.is_some());
    let lists = keyed.map(|table| offline.tables().list(&table.name).expect("a keyed table")).collect();
    let counters = engine.meta().by_rule(&offline.counters());
    let mut counts: Vec<Vec<_>> = counters.iter().map(|t| t.iter().map(|c| (c.packets, c.bytes)).collect()).collect();
    counts.push(engine.meta().by_name(&offline.counters()).map(|(_, c)| (c.packets, c.bytes)).collect());
    (outcomes, counts, lists)
}

/// Takes an entry out of every table, or puts what another one does into it, or puts it back.
fn change(offline: &Offline, k: usize) {
    let tables = offline.tables();
    let mut batch = vec![];
    for table in &tables.meta().tables {
        let listed = if table.keyed.is_some() { tables.list(&table.name).expect("a keyed table") } else { vec![] };
        let Some(one) = listed.get(k % listed.len().max(1)) else { continue };
        let other = &listed[(k + 1) % listed.len()].entry;
        batch.push((table.name.clone(), one.entry.clone(), other.clone()));
    }
    let mut changes = tables.batch();
    for (table, one, other) in batch {
        if k.is_multiple_of(2) {
            let changed = Entry { action: other.action, args: other.args, idle: None, hard: None, ..one };
            // Ports that do not exist are refused.
            let _ = changes.set(&table, changed);
        } else {
            assert!(changes.remove(&table, one.priority, &one.key).expect("a keyed table"));
        }
    }
    changes.commit();
}

/// Panics unless both engines agree on every packet and every count; says which program and which packet.
pub fn assert_same(program: &Program, reference: &Engine, engine: &Engine, arrivals: &[Arrival]) {
    let (expected, expected_counts, expected_lists) = run(reference, arrivals);
    let (found, counts, lists) = run(engine, arrivals);
    let frames: Vec<_> = arrivals.iter().flat_map(|(t, frames)| frames.iter().map(move |f| (t, f))).collect();
    for (i, (expected, found)) in expected.iter().zip(&found).enumerate() {
        let (now_ns, (port, frame)) = frames[i];
        assert_eq!(
            expected,
            found,
            "(expected, found) packet {i} at {now_ns}, port {port}: {}\n{}",
            hex(frame),
            describe(program)
        );
    }
    assert_eq!(expected_counts, counts, "counts of rules (expected, found)\n{}", describe(program));
    assert_eq!(expected_lists, lists, "entries (expected, found)\n{}", describe(program));
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A program's tables, a line a rule.
pub fn describe(program: &Program) -> String {
    let mut text = format!("vlan_limit {}\n", program.options.vlan_limit);
    for group in &program.groups {
        text += &format!("group {} {:?} {:?}\n", group.name, group.kind, group.hash);
        group.buckets.iter().for_each(|bucket| text += &format!("  {bucket:?}\n"));
    }
    for meter in &program.meters {
        text += &format!("meter {} {:?} {} {}\n", meter.name, meter.unit, meter.rate, meter.burst);
    }
    for table in &program.tables {
        text += &format!("table {}\n", table.name);
        for rule in &table.rules {
            text += &format!("  {:?} => {:?}\n", rule.cond, rule.actions);
        }
        if let Some(keyed) = &table.keyed {
            text += &format!("  {keyed:?}\n");
        }
    }
    text
}
