//! Every mistake ends with one clear message that names the thing and the remedy, and the status for its kind: 2 for a wrong
//! request or program, 1 for what the machine refuses. Never a panic.

mod common;

use common::{FIREWALL, Scratch, conversations, pcap, pcap_of, udp};

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    scratch.write("fw.pipe", FIREWALL);
    let (lan, wan) = conversations();
    scratch.write("lan.pcap", lan);
    scratch.write("wan.pcap", wan);
    scratch
}

#[test]
fn a_wrong_program_shows_every_place_in_every_subcommand() {
    let scratch = scratch("wrong-program");
    scratch.write("bad.pipe", FIREWALL.replace("normal", "norml").replace("ct.new", "ct.nw"));
    for args in [
        &["check", "bad.pipe"][..],
        &["run", "bad.pipe", "--port", "lan=pcap:lan.pcap"],
        &["replay", "bad.pipe", "--in", "lan=lan.pcap"],
        &["build", "bad.pipe"],
        &["test", "bad.pipe"],
        &["trace", "bad.pipe", "lan: arp()"],
    ] {
        scratch.pipec(args).bad(2, &["bad.pipe:7:", "norml", "did you mean `normal`", "ct.nw", "errors"]);
    }
}

#[test]
fn colour_is_there_when_asked_for() {
    let scratch = scratch("colour");
    scratch.write("bad.pipe", FIREWALL.replace("normal", "norml"));
    assert!(scratch.pipec(["check", "bad.pipe", "--color", "always"]).err.contains("\x1b["));
    assert!(!scratch.pipec(["check", "bad.pipe"]).err.contains("\x1b["));
}

#[test]
fn files_that_are_not_there_or_no_programs_are_named() {
    let scratch = scratch("no-program");
    scratch.pipec(["check", "none.pipe"]).bad(1, &["none.pipe: cannot read the program", "see that the path is right"]);
    scratch.pipec(["check", "."]).bad(1, &[".: cannot read the program: is a directory; name a file with a program"]);
    scratch.write("fw.txt", FIREWALL);
    scratch.pipec(["check", "fw.txt"]).bad(2, &["fw.txt: cannot tell the language of the program", "NAME.flows"]);
    scratch.write("binary.pipe", [b'a', 0xff, 0xfe]);
    scratch.pipec(["check", "binary.pipe"]).bad(2, &["binary.pipe: this is not text (byte 1"]);
}

#[test]
fn ports_that_do_not_fit_the_program_are_named() {
    let scratch = scratch("ports");
    let (lan, wan) = ("lan=pcap:lan.pcap", "wan=pcap:wan.pcap");
    let run =
        |ports: &[&str]| scratch.pipec(["run", "fw.pipe"].into_iter().chain(ports.iter().flat_map(|p| ["--port", p])));
    run(&[lan, "wam=pcap:wan.pcap"]).bad(2, &["there is no port `wam` in firewall", "`lan`, `wan`"]);
    run(&[lan]).bad(2, &["port `wan` is not given", "--port wan=tap:wan"]);
    run(&[]).bad(2, &["no port is given", "--port lan=tap:lan --port wan=tap:wan"]);
    run(&[lan, wan, lan]).bad(2, &["port `lan` is given twice"]);
    run(&[wan, "1=pcap:lan.pcap", lan]).bad(2, &["port `1` is given twice, also as `lan`"]);
    run(&["lan"]).bad(2, &["port `lan`: expected NAME=KIND"]);
    run(&["lan=tup:x", wan]).bad(2, &["port `lan`: unknown kind `tup`", "did you mean `tap`?"]);
    run(&["lan=pcap:", wan]).bad(2, &["expected pcap:RX[,TX]"]);
    let replay = |input: &str| scratch.pipec(["replay", "fw.pipe", "--in", input]);
    replay("wam=wan.pcap").bad(2, &["there is no port `wam` in firewall"]);
    replay("wan.pcap").bad(2, &["--in wan.pcap: expected PORT=CAPTURE", "--in lan=a.pcap"]);
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let scratch = scratch("options");
    scratch
        .pipec(["replay", "fw.pipe", "--in", "lan=lan.pcap", "--engine", "fast"])
        .bad(2, &["fast", "eval, rust, jit"]);
    scratch.pipec(["run", "fw.pipe", "--cpus", "3-1"]).bad(2, &["expected processors such as `1` or `1,3-5`"]);
    scratch.pipec(["run", "fw.pipe", "--secs=-1"]).bad(2, &["--secs"]);
    scratch.pipec(["run", "fw.pipe", "--secs", "x"]).bad(2, &["expected a number of seconds"]);
    scratch.pipec(["frobnicate"]).bad(2, &["frobnicate"]);
}

#[test]
fn captures_that_cannot_be_read_are_named() {
    let scratch = scratch("captures");
    scratch.write("cooked.pcap", pcap_of(113, &[(1, 0, udp(1, 2, 3, 4))]));
    scratch.write("text.pcap", "hello");
    scratch.write("empty.pcap", "");
    for (name, parts) in [
        ("none.pcap", &["none.pcap: cannot open the capture: no such file or directory"][..]),
        ("cooked.pcap", &["cooked.pcap: packet 1 is not an Ethernet frame", "tcpdump -i eth0"]),
        ("text.pcap", &["text.pcap: this is not a capture"]),
        ("empty.pcap", &["empty.pcap: the file is empty"]),
    ] {
        scratch.pipec(["replay", "fw.pipe", "--in", &format!("lan={name}")]).bad(1, parts);
        let lan = format!("lan=pcap:{name}");
        scratch.pipec(["run", "fw.pipe", "--port", &lan, "--port", "wan=pcap:wan.pcap"]).bad(1, parts);
    }
}

#[test]
fn a_capture_that_breaks_off_runs_up_to_there_and_says_so() {
    let scratch = scratch("truncated");
    let whole = pcap(&[(1, 0, udp(1, 2, 3, 4)), (2, 0, udp(1, 2, 3, 4)), (3, 0, udp(1, 2, 3, 4))]);
    scratch.write("cut.pcap", &whole[..whole.len() - 1]);
    let ran = scratch.pipec(["replay", "fw.pipe", "--in", "lan=cut.pcap", "--lines"]);
    assert_eq!(ran.out.lines().count(), 2);
    ran.bad(1, &["cut.pcap: the capture breaks off in the middle of packet 3, after 2 packets"]);
}

#[test]
fn frames_that_had_been_cut_short_run_with_a_warning() {
    let scratch = scratch("snap");
    let mut file = pcap(&[(1, 0, udp(1, 2, 3, 4))]);
    file[36..40].copy_from_slice(&1500u32.to_le_bytes());
    scratch.write("short.pcap", file);
    let ran = scratch.pipec(["replay", "fw.pipe", "--in", "lan=short.pcap", "--lines"]);
    let warning = "warning: short.pcap: 1 frame had been cut short when captured (packet 1: 60 of 1500 bytes)";
    assert!(ran.err.starts_with(warning), "{ran:?}");
    assert!(ran.good().starts_with("0 1 60 -> "));
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let scratch = scratch("unwritable");
    scratch.write("file", "");
    let replay = |out: &str| scratch.pipec(["replay", "fw.pipe", "--in", "lan=lan.pcap", "--out", out]);
    replay("file").bad(1, &["file: cannot make the folder", "choose one that you may write"]);
    replay("/proc/none").bad(1, &["/proc/none: cannot make the folder"]);
    std::fs::create_dir_all(scratch.path("out/lan.pcap")).unwrap();
    replay("out").bad(1, &["out/lan.pcap: cannot write the capture"]);
    scratch
        .pipec(["run", "fw.pipe", "--port", "lan=pcap:lan.pcap,none/x", "--port", "wan=pcap:wan.pcap"])
        .bad(1, &["none/x: cannot write the capture", "make its folder first"]);
    scratch
        .pipec(["run", "fw.pipe", "--port", "lan=pcap:lan.pcap,wan.pcap", "--port", "wan=pcap:wan.pcap"])
        .bad(2, &["wan.pcap: writing this capture would destroy the one that is read"]);
    scratch.pipec(["build", "fw.pipe", "--emit", "rust", "-o", "none/fw.rs"]).bad(1, &["none/fw.rs: cannot write"]);
}

#[test]
fn packets_to_trace_are_checked() {
    let scratch = scratch("packets");
    scratch
        .pipec(["trace", "fw.pipe", "lam: arp()"])
        .bad(2, &["there is no port `lam` in firewall; it has `lan`, `wan`"]);
    scratch.pipec(["trace", "fw.pipe", "arp"]).bad(2, &["arp: expected PORT: PACKET, such as"]);
    scratch.pipec(["trace", "fw.pipe", "lan: ipv4(src = 10.0.0)"]).bad(2, &["packet:1:", "10.0.0"]);
}

#[test]
fn nobody_reading_is_no_error() {
    use std::process::{Command, Stdio};
    let scratch = scratch("broken-pipe");
    let packets: Vec<_> = (0..5000).map(|i| (1, i, udp(1, 2, 3, 4))).collect();
    scratch.write("many.pcap", pcap(&packets));
    let mut child = Command::new(env!("CARGO_BIN_EXE_pipec"))
        .args(["replay", "fw.pipe", "--in", "lan=many.pcap", "--lines", "--engine", "eval"])
        .current_dir(&scratch.0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}
