//! `run` on ports of DPDK, as far as no interface and no rights are needed.
#![cfg(feature = "dpdk")]
#![allow(clippy::unwrap_used)] // also in what several tests share

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{FIREWALL, Ran, Scratch};

/// The firewall on a port that receives without end and one that receives nothing.
const PORTS: [&str; 6] = ["run", "fw.pipe", "--port", "lan=null", "--port", "wan=ring"];

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("fw.pipe", FIREWALL);
    scratch
}

#[test]
fn a_live_run_counts_every_packet_once() {
    let scratch = scratch("live");
    let more = ["--secs", "0.2", "--stats", "json"];
    let json = scratch.pipec(PORTS.iter().chain(&more)).good();
    let stats: serde_json::Value = serde_json::from_str(&json).unwrap();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&stats), ["drops", "ports", "seconds", "tsc_hz", "workers"]);
    let port = ["drops", "name", "number", "rx_bytes", "rx_packets", "tx_bytes", "tx_packets"];
    assert_eq!(keys(&stats["ports"][0]), port);
    let worker = ["busy_cycles", "busy_polls", "cpu", "idle_cycles", "packets", "polls"];
    assert_eq!(keys(&stats["workers"][0]), worker);
    let received = stats["ports"][0]["rx_packets"].as_u64().unwrap();
    assert!(received > 0 && stats["tsc_hz"].as_u64().unwrap() > 0, "{json}");
    assert_eq!(stats["ports"][0]["drops"], serde_json::json!({ "policy": received })); // frames of zeroes are not IP
    assert_eq!(stats["workers"][0]["packets"], stats["ports"][0]["rx_packets"]);
}

#[test]
fn a_signal_ends_a_run_with_its_summary() {
    let scratch = scratch("signals");
    for (signal, name) in [(2, "INT"), (15, "TERM")] {
        let child = Command::new(env!("CARGO_BIN_EXE_pipec"))
            .args(PORTS)
            .current_dir(&scratch.0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until_caught(child.id(), signal);
        let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let out = Ran::from(child.wait_with_output().unwrap()).good();
        assert!(out.contains("received") && out.contains("lan (1)"), "{out}");
    }
}

/// Waits until the process has a handler for the signal.
fn wait_until_caught(pid: u32, signal: u32) {
    let began = Instant::now();
    loop {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        if u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (signal - 1) != 0 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "no handler for signal {signal}");
        std::thread::yield_now();
    }
}

#[test]
fn ports_that_are_not_there_are_named() {
    let scratch = scratch("no-port");
    let run = |port: &str| scratch.pipec(["run", "fw.pipe", "--port", port, "--port", "wan=null", "--secs", "1"]);
    run("lan=af_packet:nonesuch0").bad(1, &["port `lan=af_packet:nonesuch0`", "no network interface `nonesuch0`"]);
    run("lan=pci:0000:ff:1f.7").bad(1, &["no PCI device `0000:ff:1f.7`"]);
}
