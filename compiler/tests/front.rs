//! The front end on whole programs: the corpus resolves, and the firewall to exactly this.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pipec_compiler::diag::{Diagnostic, render_all};
use pipec_compiler::field::{CT_FLAGS, Field, Header};
use pipec_compiler::hir::{Action, Cond, Ct, Match, Place, PortId, Program, Read, Step, TableId, Value, View};
use pipec_compiler::source::{Loader, Sources, search};

/// The corpus.
fn pipelines() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipelines")
}

/// Reads files that programs name.
struct Beside;

impl Loader for Beside {
    fn find(&self, from: &str, path: &str) -> Result<String, String> {
        search(from, path, &[], Path::is_file)
    }
    fn read(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(name).map_err(|error| error.to_string())
    }
}

fn front(name: &str, text: &str) -> (Option<Program>, Vec<Diagnostic>, Sources) {
    let mut sources = Sources::with_loader(Arc::new(Beside));
    let file = sources.add(name, text);
    let (program, diagnostics) = pipec_compiler::front_pipe(&mut sources, file);
    (program, diagnostics, sources)
}

fn compare(field: Field, value: u128, mask: u128) -> Cond {
    Cond::Compare(Read { place: Place::field(field), view: View::Table }, Match::Masked { value, mask })
}

fn ct(flag: &str) -> Cond {
    let bit = CT_FLAGS.iter().find(|(name, _)| *name == flag).expect("a flag").1;
    compare(Field::CtState, bit.into(), bit.into())
}

#[test]
fn every_program_of_the_corpus_is_without_a_fault() {
    let mut programs = 0;
    for entry in fs::read_dir(pipelines()).expect("the corpus") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|extension| extension != "pipe") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        let (program, diagnostics, sources) = front(&path.display().to_string(), &text);
        assert!(diagnostics.is_empty(), "{}", render_all(&diagnostics, &sources, false));
        assert!(!program.expect("a program").tests.is_empty(), "{} has no tests", path.display());
        programs += 1;
    }
    assert!(programs >= 1);
}

#[test]
fn the_firewall_resolves_to_this() {
    let text = fs::read_to_string(pipelines().join("firewall.pipe")).expect("the firewall");
    let (program, ..) = front("firewall.pipe", &text);
    let program = program.expect("a program");
    let (lan, wan) = (PortId(0), PortId(1));
    let names: Vec<(&str, u32)> = program.ports.iter().map(|p| (p.name.as_str(), p.number)).collect();
    assert_eq!((names, program.entry), (vec![("lan", 1), ("wan", 2)], TableId(0)));

    let track = |commit| Action::Ct(Ct { zone: Value::Const(0), commit, force: false, mark: None, label: None });
    let from = |flag, port: PortId| Cond::All(vec![ct(flag), compare(Field::InPort, port.0.into(), 0xffff)]);
    let untracked = Cond::All(vec![Cond::Has(Header::Ipv4), Cond::Not(Box::new(ct("trk")))]);
    let expected = [
        vec![
            (2, untracked, vec![track(false), Action::Goto(TableId(1))]),
            (1, Cond::Has(Header::Arp), vec![Action::Normal]),
            (0, Cond::True, vec![Action::Drop]),
        ],
        vec![
            (4, from("new", lan), vec![track(true), Action::Output(wan)]),
            (3, from("new", wan), vec![Action::Drop]),
            (2, from("est", lan), vec![Action::Output(wan)]),
            (1, from("est", wan), vec![Action::Output(lan)]),
        ],
    ];
    for (table, expected) in program.tables.iter().zip(expected) {
        let rules = table.rules.iter().map(|r| (r.priority, r.cond.clone(), r.actions.clone())).collect::<Vec<_>>();
        assert_eq!(rules, expected, "{}", table.name);
    }
    let [test] = &program.tests[..] else { panic!("one test") };
    let steps: Vec<String> = test
        .steps
        .iter()
        .map(|step| match step {
            Step::Send { port, frame, count, .. } => format!("send {count} {} {}", port.0, frame.len()),
            Step::Expect { ends, .. } => format!("expect {:?}", ends.iter().map(|end| end.end).collect::<Vec<_>>()),
            Step::After { ns } => format!("after {ns}"),
        })
        .collect();
    let expected = [
        "send 1 0 60",
        "expect [Port(PortId(1))]",
        "send 1 1 60",
        "expect [Port(PortId(0))]",
        "send 1 1 60",
        "expect [Drop(None)]",
    ];
    assert_eq!(steps, expected);
}
