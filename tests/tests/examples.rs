//! The firewall by every way there is, over the same captures: `replay` on each engine, `run`, what `build` makes, and the
//! three examples. All write the same bytes.

#![allow(clippy::unwrap_used)] // also in what several tests share

use std::path::{Path, PathBuf};
use std::process::Command;

use pipec_tests::binary::{binary, pipec, root};

const PORTS: [&str; 2] = ["lan", "wan"];

/// A folder for one test, removed behind it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("examples-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    /// What each port sent.
    fn outputs(&self, way: &str) -> Vec<Vec<u8>> {
        let path = |port| self.0.join(way).join(format!("{port}.pcap"));
        PORTS.iter().map(|port| std::fs::read(path(port)).unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The capture that a port receives.
fn input(port: &str) -> String {
    root().join("tests/captures/mixed").join(format!("{port}.pcap")).display().to_string()
}

/// Runs a program in the folder; what it printed.
fn run(scratch: &Scratch, program: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args).current_dir(&scratch.0);
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{program:?} {args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a program on captures as its ports; what its ports sent.
fn run_on_captures(scratch: &Scratch, way: &str, program: &Path, before: &[&str]) -> Vec<Vec<u8>> {
    std::fs::create_dir(scratch.0.join(way)).unwrap();
    let mut args = before.to_vec();
    let ports = PORTS.map(|port| format!("{port}=pcap:{},{way}/{port}.pcap", input(port)));
    ports.iter().for_each(|port| args.extend(["--port", port]));
    let summary = run(scratch, program, &args);
    assert!(summary.contains("received 190: forwarded"), "{way}: {summary}");
    scratch.outputs(way)
}

#[test]
fn every_way_to_run_the_firewall_writes_the_same_bytes() {
    let scratch = Scratch::new();
    let firewall = root().join("pipelines/firewall.pipe").display().to_string();
    let inputs = PORTS.map(|port| format!("{port}={}", input(port)));
    let replay = |engine: &str| {
        let args = ["replay", &firewall, "--in", &inputs[0], "--in", &inputs[1], "--engine", engine, "--out", engine];
        run(&scratch, &pipec(), &args);
        scratch.outputs(engine)
    };
    let expected = replay("eval");
    assert!(expected.iter().all(|capture| capture.len() > 1000), "both sides send packets");

    let mut ways = vec![("jit", replay("jit")), ("rust", replay("rust"))];
    let on_captures = |way, program: &Path, before: &[&str]| (way, run_on_captures(&scratch, way, program, before));
    ways.push(on_captures("run", &pipec(), &["run", &firewall]));
    run(&scratch, &pipec(), &["build", &firewall, "-o", "built"]);
    ways.push(on_captures("build", &scratch.0.join("built"), &[]));
    for example in ["firewall-aot", "firewall-macro", "firewall-jit"] {
        ways.push(on_captures(example, &binary("pipec-examples", example), &[]));
    }
    for (way, outputs) in ways {
        for (port, (output, expected)) in PORTS.iter().zip(outputs.iter().zip(&expected)) {
            assert!(output == expected, "{way}: what {port} sent is not what `eval` sent");
        }
    }
}
