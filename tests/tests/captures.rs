//! The firewall over recorded and made captures gives what Open vSwitch gave, but for listed differences; in both of its
//! languages and on every engine.

#![allow(clippy::unwrap_used)] // what is missing here is a broken checkout

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pipec_compiler::hir::Program;
use pipec_compiler::source::Sources;
use pipec_compiler::{diag, front};
use pipec_runtime::Engine;
use pipec_runtime::replay::{Job, replay};
use pipec_tests::engines::{eval, hex, jit};

/// Scenarios of `tests/captures` with what Open vSwitch made of them.
const SCENARIOS: &[&str] = &["web", "dns", "icmp", "ssh", "outside", "mixed", "odd"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn load(name: &str) -> Program {
    let text = std::fs::read_to_string(root().join("pipelines").join(name)).unwrap();
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let (program, diagnostics) = front(&mut sources, file, &[]);
    program.unwrap_or_else(|| panic!("{}", diag::render_all(&diagnostics, &sources, false)))
}

/// What `pipec replay --lines` prints.
fn lines(engine: &Engine, scenario: &str) -> Vec<String> {
    let folder = root().join("tests/captures").join(scenario);
    let job = Job {
        inputs: vec![(0, folder.join("lan.pcap")), (1, folder.join("wan.pcap"))],
        outputs: vec![None, None],
        attached: vec![true, true],
    };
    let mut lines = Vec::new();
    let report = replay(engine, &job, &AtomicBool::new(false), &mut |passed| {
        let mut outputs: Vec<_> = passed.outcome.outputs.iter().map(|(port, frame)| (port + 1, hex(frame))).collect();
        outputs.sort_by_key(|(port, _)| *port);
        let outputs: Vec<_> = outputs.iter().map(|(port, hex)| format!("{port}:{hex}")).collect();
        let outputs = if outputs.is_empty() { "drop".to_owned() } else { outputs.join(" ") };
        lines.push(format!("{} {} {} -> {outputs}", passed.index, passed.in_port + 1, passed.len));
        true
    });
    assert!(report.unwrap().stats.ledger.balances());
    lines
}

/// What Open vSwitch made of a scenario.
fn open_vswitch(scenario: &str) -> Vec<String> {
    let path = root().join("tests/captures").join(scenario).join("firewall.ovs.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Listed differences of a scenario: indices and reasons.
fn listed(scenario: &str) -> Vec<(usize, String)> {
    let text = std::fs::read_to_string(root().join("tests/captures/differences.txt")).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let rows = rows.map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row[0] == scenario).map(|row| (row[1].parse().unwrap(), row[2].to_owned())).collect()
}

#[test]
fn the_firewall_does_what_open_vswitch_does() {
    let (pipe, flows) = (load("firewall.pipe"), load("firewall.flows"));
    let mut wrong = Vec::new();
    for scenario in SCENARIOS {
        let ours = lines(&eval(&pipe), scenario);
        for (what, engine) in [("pipe jit", jit(&pipe)), ("flows eval", eval(&flows)), ("flows jit", jit(&flows))] {
            assert_eq!(lines(&engine, scenario), ours, "{scenario}: {what} is not pipe eval");
        }
        let theirs = open_vswitch(scenario);
        assert_eq!(ours.len(), theirs.len(), "{scenario}: as many packets");
        let listed = listed(scenario);
        for (index, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let is_listed = listed.iter().any(|(i, _)| *i == index);
            if (ours != theirs) != is_listed {
                let cut = |line: &str| line.chars().take(160).collect::<String>();
                let listed = if is_listed { "listed" } else { "not listed" };
                wrong.push(format!("{scenario} {index} ({listed})\n  ours   {}\n  theirs {}", cut(ours), cut(theirs)));
            }
        }
    }
    assert!(wrong.is_empty(), "differences from Open vSwitch:\n{}", wrong.join("\n"));
}
