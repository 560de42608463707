//! One meaning: `replay` on each engine, `run`, and what `build` makes give the same bytes.

#![allow(clippy::unwrap_used)] // also in what several tests share

mod common;

use common::{FIREWALL, Scratch, conversations};

const PORTS: [&str; 2] = ["lan.pcap", "wan.pcap"];

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("fw.pipe", FIREWALL);
    let (lan, wan) = conversations();
    scratch.write("lan.pcap", lan);
    scratch.write("wan.pcap", wan);
    scratch
}

fn replay<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["replay", "fw.pipe", "--in", "lan=lan.pcap", "--in", "wan=wan.pcap"];
    args.extend(more);
    args
}

fn outputs(scratch: &Scratch, folder: &str) -> Vec<Vec<u8>> {
    PORTS.iter().map(|port| std::fs::read(scratch.path(folder).join(port)).unwrap()).collect()
}

#[test]
fn replay_gives_the_same_on_every_engine() {
    let scratch = scratch("replay");
    let run = |engine| {
        let lines = scratch.pipec(replay(&["--engine", engine, "--out", engine, "--lines"])).good();
        let summary = scratch.pipec(replay(&["--engine", engine, "--summary"])).good();
        (lines, summary, outputs(&scratch, engine))
    };
    let expected = run("eval");
    assert_eq!(expected.0.lines().count(), 63);
    assert!(expected.0.starts_with("0 1 60 -> 2:0200000000c8"), "{}", expected.0);
    assert!(expected.0.lines().any(|line| line.ends_with("60 -> drop")), "{}", expected.0);
    for part in ["forwarded 42", "dropped 21", "ct.new && in_port == wan => drop"] {
        assert!(expected.1.contains(part), "{part} in {}", expected.1);
    }
    for engine in ["jit", "rust"] {
        assert_eq!(run(engine), expected, "{engine}");
    }
}

#[test]
fn run_and_what_build_makes_give_what_replay_gives() {
    let scratch = scratch("run");
    scratch.pipec(replay(&["--out", "replay"])).good();
    let expected = outputs(&scratch, "replay");
    std::fs::create_dir(scratch.path("run")).unwrap();
    let ports = ["--port", "lan=pcap:lan.pcap,run/lan.pcap", "--port", "wan=pcap:wan.pcap,run/wan.pcap"];
    for engine in ["eval", "jit"] {
        let summary = scratch.pipec(["run", "fw.pipe", "--engine", engine].iter().chain(&ports)).good();
        assert!(summary.contains("received 63: forwarded 42, dropped 21"), "{summary}");
        assert_eq!(outputs(&scratch, "run"), expected);
    }
    std::fs::remove_dir_all(scratch.path("run")).unwrap();
    std::fs::create_dir(scratch.path("run")).unwrap();
    scratch.pipec(["build", "fw.pipe", "-o", "fw"]).good();
    let json = scratch.run(&scratch.path("fw"), ports.iter().chain(&["--stats", "json"])).good();
    assert!(json.contains(r#""name":"lan","number":1,"rx_packets":21"#), "{json}");
    assert_eq!(outputs(&scratch, "run"), expected);
}

#[test]
fn a_built_program_is_that_pipeline_and_nothing_else() {
    let scratch = scratch("built");
    scratch.pipec(["build", "fw.pipe"]).good();
    let program = scratch.path("firewall");
    let help = scratch.run(&program, ["--help"]).good();
    for part in ["pipeline `firewall`", "--port <NAME=KIND>", "lan (number 1)", "wan (number 2)"] {
        assert!(help.contains(part), "{part} in {help}");
    }
    scratch.run(&program, ["--port", "lan=pcap:lan.pcap"]).bad(2, &["port `wan` is not given"]);
    scratch.run(&program, ["check", "fw.pipe"]).bad(2, &["check"]);
    let mut bytes = std::fs::read(&program).unwrap();
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    std::fs::write(&program, bytes).unwrap();
    scratch.run(&program, ["--help"]).bad(1, &["this program is damaged (its bytes have changed); build it again"]);
}

#[test]
fn the_other_forms_of_build_are_written() {
    let scratch = scratch("forms");
    let rust = scratch.pipec(["build", "fw.pipe", "--emit", "rust", "-o", "-"]).good();
    assert!(rust.contains("pub struct Firewall") && !rust.contains("unsafe"), "{rust}");
    scratch.pipec(["build", "fw.pipe", "--emit", "rust"]).good();
    assert_eq!(std::fs::read_to_string(scratch.path("firewall.rs")).unwrap(), rust);
    scratch.pipec(["build", "fw.pipe", "--emit", "lib"]).good();
    assert!(std::fs::read(scratch.path("firewall.so")).unwrap().starts_with(b"\x7fELF"));
}

#[test]
fn a_library_of_another_version_is_refused() {
    let scratch = scratch("versions");
    scratch.pipec(["build", "fw.pipe", "--emit", "lib", "-o", "fw.so"]).good();
    let engine = pipec_runtime::library::load(&scratch.path("fw.so")).unwrap();
    assert_eq!(engine.meta().name, "firewall");
    let mut bytes = std::fs::read(scratch.path("fw.so")).unwrap();
    let hash = pipec_abi::ABI_HASH.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == hash).unwrap();
    bytes[at] ^= 1;
    let error = pipec_runtime::library::load_bytes("fw", &bytes).err().unwrap();
    assert_eq!(error.to_string(), "fw: the library was built by another version of pipec; build it again");
    scratch.write("empty.so", "");
    let error = pipec_runtime::library::load(&scratch.path("empty.so")).err().unwrap();
    assert!(error.to_string().contains("empty.so: cannot load the library"), "{error}");
}

#[test]
fn without_rustc_the_message_says_what_else_works() {
    use std::process::Command;
    let scratch = scratch("no-rustc");
    let pipec = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pipec"));
        command.args(args).current_dir(&scratch.0).env("PATH", "").env("RUSTC", "no-such-rustc");
        common::Ran::from(command.env("XDG_CACHE_HOME", scratch.path("cache")).output().unwrap())
    };
    pipec(&["build", "fw.pipe"]).bad(1, &["cannot run the Rust compiler `no-such-rustc`", "--engine jit"]);
    assert!(!scratch.path("firewall").exists());
    let ran = pipec(&["test", "fw.pipe"]);
    assert!(ran.err.contains("the engine rust is left out"), "{ran:?}");
    assert!(ran.good().contains("ok (eval, jit)"));
}

#[test]
fn an_unknown_processor_is_refused_and_leaves_nothing() {
    let scratch = scratch("target-cpu");
    scratch.pipec(["build", "fw.pipe", "--target-cpu", "abacus"]).bad(1, &["abacus", "rustc --print target-cpus"]);
    assert!(!scratch.path("firewall").exists());
}

#[test]
fn rules_of_ovs_give_the_same_packets() {
    let scratch = scratch("flows");
    scratch.write("fw.flows", include_str!("../../pipelines/firewall.flows"));
    let expected = scratch.pipec(replay(&["--lines"])).good();
    for engine in ["eval", "jit", "rust"] {
        let args = ["replay", "fw.flows", "--in", "1=lan.pcap", "--in", "2=wan.pcap", "--lines", "--engine", engine];
        assert_eq!(scratch.pipec(args).good(), expected, "{engine}");
    }
}

#[test]
fn ports_that_rules_do_not_name_can_be_added_and_others_left_out() {
    let scratch = scratch("numbers");
    scratch.write("hub.flows", "arp actions=flood\nip actions=output:9");
    let lines = |more: &[&str]| {
        let args = ["replay", "hub.flows", "--in", "1=lan.pcap", "--lines"];
        let out = scratch.pipec(args.iter().chain(more)).good();
        let last = out.lines().last().unwrap_or_default().to_string();
        let outputs = |line: &str| line.split(' ').skip(4).map(|o| o.split(':').next().unwrap().to_string()).collect();
        (outputs(out.lines().next().unwrap_or_default()), outputs(&last))
    };
    let text = |ports: &[&str]| ports.iter().map(|port| port.to_string()).collect::<Vec<_>>();
    assert_eq!(lines(&[]), (text(&["9"]), text(&["9"])));
    assert_eq!(lines(&["--ports", "3"]), (text(&["drop"]), text(&["2", "3"])));
    scratch.pipec(["build", "hub.flows", "--ports", "2"]).good();
    let hub = scratch.path("hub");
    let summary = scratch.run(&hub, ["--port", "1=pcap:lan.pcap", "--port", "2=pcap:,2.pcap"]).good();
    assert!(summary.contains("received 21: forwarded 1, dropped 20") && summary.contains("no_port"), "{summary}");
    scratch.run(&hub, ["--port", "4=null"]).bad(2, &["there is no port `4` in hub"]);
}
