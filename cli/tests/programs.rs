//! `check`, `test` and `trace` on whole programs.

mod common;

use common::{FIREWALL, Scratch, conversations};

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("fw.pipe", FIREWALL);
    scratch
}

#[test]
fn a_good_program_is_called_good() {
    let scratch = scratch("good");
    let out = scratch.pipec(["check", "fw.pipe"]).good();
    assert_eq!(out, "fw.pipe: good: firewall, 2 ports, 2 tables, 7 rules\n");
}

#[test]
fn one_bad_program_among_several_fails_the_check() {
    let scratch = scratch("several");
    scratch.write("bad.pipe", "pipeline");
    let ran = scratch.pipec(["check", "bad.pipe", "fw.pipe", "none.pipe"]);
    assert!(ran.out.contains("fw.pipe: good"), "{ran:?}");
    ran.bad(2, &["bad.pipe:1:", "none.pipe: cannot read"]);
}

#[test]
fn programs_come_from_standard_input_too() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_pipec"))
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(FIREWALL.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "-: good: firewall, 2 ports, 2 tables, 7 rules\n");
}

#[test]
fn tests_run_on_every_engine() {
    let scratch = scratch("tests");
    let out = scratch.pipec(["test", "fw.pipe"]).good();
    assert_eq!(out, "fw.pipe: wan may answer, not ask: ok (eval, jit, rust)\n1 passed, 0 failed\n");
    let out = scratch.pipec(["test", "fw.pipe", "--engine", "eval"]).good();
    assert!(out.contains("ok (eval)"), "{out}");
}

#[test]
fn a_failing_test_shows_place_packet_and_what_came_out() {
    let scratch = scratch("failing");
    scratch.write(
        "fw.pipe",
        FIREWALL.replacen("expect wan;", "expect lan, wan;", 1).replacen("expect drop;", "expect lan;", 1),
    );
    let ran = scratch.pipec(["test", "fw.pipe", "--engine", "jit"]);
    assert!(ran.out.contains("FAILED (jit)") && ran.out.contains("0 passed, 1 failed"), "{ran:?}");
    ran.bad(
        1,
        &[
            "fw.pipe:20:",
            "failed on engine jit: expected lan, wan, but wan came",
            "this packet",
            "send lan",
            "took fw.pipe:6: ip && !ct.trk",
        ],
    );
    scratch.write("fw.pipe", FIREWALL.replacen("expect drop;", "expect lan;", 1));
    scratch.pipec(["test", "fw.pipe"]).bad(1, &["expected lan, but drop(policy) came", "engine eval", "engine rust"]);
}

#[test]
fn a_trace_tells_rules_actions_and_outputs() {
    let scratch = scratch("trace");
    let out = scratch
        .pipec([
            "trace",
            "fw.pipe",
            "lan: ipv4(src = 10.0.0.1, dst = 8.8.8.8) / udp(src = 1000, dst = 53)",
            "wan: ipv4(src = 8.8.8.8, dst = 10.0.0.1) / udp(src = 53, dst = 1000)",
            "wan: ipv4(src = 9.9.9.9, dst = 10.0.0.1) / udp(src = 53, dst = 1000)",
        ])
        .good();
    let expected = "\
lan: 60 bytes
  table classify
    fw.pipe:6: ip && !ct.trk => ct(), goto stateful
      ct(zone = 0): new trk
  table stateful
    fw.pipe:12: ct.new && in_port == lan => ct(commit), output(wan)
      ct(commit, zone = 0): new trk
      output(wan)
  -> wan: as it came
wan: 60 bytes
  table classify
    fw.pipe:6: ip && !ct.trk => ct(), goto stateful
      ct(zone = 0): est rpl trk
  table stateful
    fw.pipe:15: ct.est && in_port == wan => output(lan)
      output(lan)
  -> lan: as it came
wan: 60 bytes
  table classify
    fw.pipe:6: ip && !ct.trk => ct(), goto stateful
      ct(zone = 0): new trk
  table stateful
    fw.pipe:13: ct.new && in_port == wan => drop
      dropped unless sent: policy
  -> drop: policy (A rule said drop, or had no actions)
";
    assert_eq!(out, expected);
}

#[test]
fn a_trace_shows_what_actions_change() {
    let scratch = Scratch::new("changes");
    let program =
        "pipeline p { port a, b; table t { ipv4 => dec_ttl, eth.src = 02:00:00:00:00:77, output(b), output(a); } }";
    scratch.write("p.pipe", program);
    let frame: String = common::udp(1, 2, 3, 4).iter().map(|byte| format!("{byte:02x}")).collect();
    let out = scratch.pipec(["trace", "p.pipe", &format!("a: {frame}"), "2: arp()"]).good();
    for part in [
        "dec_ttl: 63 left",
        "eth.src = 02:00:00:00:00:77 (was 02:00:00:00:00:01)",
        "output(a) is left out: the packet came in by it",
        "-> b: 60 bytes: 020000000002020000000077",
        "no rule matches",
        "-> drop: no_match",
    ] {
        assert!(out.contains(part), "{part} in\n{out}");
    }
}

#[test]
fn a_trace_shows_what_is_called_and_what_comes_back() {
    let scratch = Scratch::new("calls");
    let rules = [
        "table=0 in_port=1 actions=resubmit(,1),output:2",
        "table=1 ip actions=ct(table=2),resubmit(,3)",
        "table=2 actions=output:3",
    ];
    scratch.write("p.flows", rules.join("\n"));
    let out = scratch.pipec(["trace", "p.flows", "1: ipv4() / udp()"]).good();
    let expected = "\
1: 60 bytes
  table 0
    p.flows:1: table=0 in_port=1 actions=resubmit(,1),output:2
      table 1
        p.flows:2: table=1 ip actions=ct(table=2),resubmit(,3)
          ct(zone = 0): new trk
          clone
            table 2
              p.flows:3: table=2 actions=output:3
                output(3)
          ct_clear
          table 3
            no rule matches
              dropped unless sent: no_match
      output(2)
  -> 3: as it came
  -> 2: as it came
";
    assert_eq!(out, expected);
}

#[test]
fn the_summary_stands_beside_lines_on_standard_error() {
    let scratch = scratch("summary");
    scratch.write("lan.pcap", conversations().0);
    let ran = scratch.pipec(["replay", "fw.pipe", "--in", "lan=lan.pcap", "--lines", "--summary"]);
    assert!(ran.err.contains("received 21"), "{ran:?}");
    assert!(ran.good().lines().all(|line| line.contains(" -> ")));
}
