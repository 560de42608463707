//! The three examples start, know their ports, and say what is missing. That they do the same to packets is tested in
//! `tests/tests/examples.rs`, which finds them built because of this.

use std::process::{Command, Output};

const EXAMPLES: [&str; 3] =
    [env!("CARGO_BIN_EXE_firewall-aot"), env!("CARGO_BIN_EXE_firewall-macro"), env!("CARGO_BIN_EXE_firewall-jit")];

fn run(example: &str, args: &[&str]) -> Output {
    Command::new(example).args(args).output().unwrap_or_else(|error| panic!("{example}: {error}"))
}

#[test]
fn each_is_the_pipeline_firewall() {
    for example in EXAMPLES {
        let output = run(example, &["--help"]);
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{example}: {output:?}");
        for part in ["pipeline `firewall`", "lan (number 1)", "wan (number 2)"] {
            assert!(help.contains(part), "{example}: {part} in {help}");
        }
    }
}

#[test]
fn each_says_which_port_is_missing() {
    for example in EXAMPLES {
        let output = run(example, &["--port", "lan=pcap:lan.pcap"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{example}: {message}");
        assert!(message.contains("port `wan` is not given"), "{example}: {message}");
    }
}

#[test]
fn the_router_shows_which_routes_were_taken() {
    let output = run(env!("CARGO_BIN_EXE_router"), &[]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for line in ["10.1.2.0/24", "10.7.0.0/16 Route(Route { out: B", "10.1.0.0/16 Drop: 1 packets", "10.0.0.0/8"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let taken = text.lines().find(|line| line.starts_with("10.7.0.0/16")).unwrap_or_default();
    assert!(taken.ends_with(": 2 packets"), "{text}");
}
