//! What is around programs: their layout, the stages of the compiler, messages for other programs, what shells and `man` want.

#![allow(clippy::unwrap_used)]

mod common;

use common::{FIREWALL, Ran, Scratch};
use serde_json::Value;

fn piped(args: &[&str], input: &str) -> Ran {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut child = Command::new(env!("CARGO_BIN_EXE_pipec"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Ran::from(child.wait_with_output().unwrap())
}

/// The firewall, laid out badly.
fn squeezed() -> String {
    FIREWALL.replace("    ", "\t").replace(" => ", "=>")
}

#[test]
fn fmt_writes_files_in_place_and_only_those_that_change() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let scratch = Scratch::new("fmt");
    let good = scratch.write("good.pipe", FIREWALL);
    let bad = scratch.write("bad.pipe", squeezed());
    std::fs::set_permissions(&bad, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("bad.pipe", scratch.path("link.pipe")).unwrap();
    let before = std::fs::metadata(&good).unwrap();
    let check = scratch.pipec(["fmt", "--check", "good.pipe", "link.pipe"]);
    assert_eq!((check.status, check.out.as_str(), check.err.as_str()), (1, "link.pipe: not formatted\n", ""));
    assert_eq!(scratch.pipec(["fmt", "good.pipe", "link.pipe"]).good(), "");
    assert_eq!(std::fs::read_to_string(&bad).unwrap(), FIREWALL);
    assert_eq!(std::fs::metadata(&bad).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(std::fs::symlink_metadata(scratch.path("link.pipe")).unwrap().is_symlink());
    let after = std::fs::metadata(&good).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    scratch.pipec(["fmt", "--check", "good.pipe", "bad.pipe"]).good();
    let files = std::fs::read_dir(&scratch.0).unwrap().count();
    assert_eq!(files, 3, "nothing else is left");
}

#[test]
fn fmt_reads_standard_input() {
    assert_eq!(piped(&["fmt", "-"], &squeezed()).good(), FIREWALL);
    let check = piped(&["fmt", "--check", "-"], &squeezed());
    assert_eq!((check.status, check.out.as_str()), (1, "-: not formatted\n"));
    piped(&["fmt", "--check", "-"], FIREWALL).good();
}

#[test]
fn fmt_leaves_what_is_wrong_alone() {
    let scratch = Scratch::new("fmt-wrong");
    let wrong = squeezed().replace("=>drop;", "=>drop");
    let file = scratch.write("wrong.pipe", &wrong);
    let other = scratch.write("other.pipe", squeezed());
    scratch.pipec(["fmt", "wrong.pipe", "other.pipe"]).bad(2, &["error[syntax]", "wrong.pipe:"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), wrong);
    assert_eq!(std::fs::read_to_string(&other).unwrap(), FIREWALL);
    // What only later stages refuse is laid out.
    assert!(piped(&["fmt", "-"], &squeezed().replace("normal", "norml")).good().contains("=> norml;"));
    scratch.write("rules.flows", "ip actions=drop\n");
    scratch.pipec(["fmt", "rules.flows"]).bad(2, &["rules.flows: rules of ovs-ofctl keep their layout"]);
    scratch.pipec(["fmt", "none.pipe"]).bad(1, &["none.pipe: cannot read the program"]);
}

#[test]
fn dump_shows_every_stage() {
    let scratch = Scratch::new("dump");
    scratch.write("fw.pipe", FIREWALL);
    for (stage, parts) in [
        ("ast", &["name: \"firewall\"", "Compare(Eq, Path(\"in_port\"), Path(\"lan\"))"][..]),
        ("hir", &["Program {\n", "space: Field(InPort)"]),
        ("plan", &["Plan {\n", "Verdict("]),
        ("rust", &["impl Program for", "fn run<E: Env>"]),
        ("clif", &["; the entry", "function u0:0(", "block0("]),
        ("asm", &["; the entry", "block0:", "ret"]),
    ] {
        let shown = scratch.pipec(["dump", "fw.pipe", "--stage", stage]).good();
        for part in parts {
            assert!(shown.contains(part), "{stage}: `{part}` in {shown}");
        }
    }
    let table = scratch.pipec(["dump", "fw.pipe", "--stage", "hir", "--table", "stateful"]).good();
    assert!(
        table.starts_with("Table { name: \"stateful\"") || table.starts_with("Table {\n  name: \"stateful\""),
        "{table}"
    );
    let dump = |stage: &str, table: &str| scratch.pipec(["dump", "fw.pipe", "--stage", stage, "--table", table]);
    dump("ast", "states").bad(2, &["--table states: there is no such table", "`classify`, `stateful`"]);
    dump("asm", "stateful").bad(2, &["they are part of the entry"]);
    dump("rust", "stateful").bad(2, &["--table goes with every stage but rust"]);
}

#[test]
fn dump_shows_tables_that_have_code_of_their_own() {
    let scratch = Scratch::new("dump-table");
    let program = "pipeline p { port a, b;
        start { ip.ttl > 1 => dec_ttl, call start, output(b); else => output(b); } }";
    scratch.write("p.pipe", program);
    for (stage, part) in [("plan", "Function {"), ("clif", "; table start"), ("asm", "; table start")] {
        let shown = scratch.pipec(["dump", "p.pipe", "--stage", stage, "--table", "start"]).good();
        assert!(shown.starts_with(part) && !shown.contains("the entry"), "{stage}: {shown}");
    }
}

/// The lines of standard error as objects.
#[track_caller]
fn messages(ran: &Ran) -> Vec<Value> {
    ran.err.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn messages_as_json_have_all_that_people_see() {
    let scratch = Scratch::new("json");
    let bad = "pipeline p {\n    port a;\n    /* ä */ set s = { 1 }; set s = { 2 };\n    table t { ip => norml; }\n}\n";
    scratch.write("bad.pipe", bad);
    for command in ["check", "build", "test", "run"] {
        let ran = scratch.pipec([command, "bad.pipe", "--message-format", "json"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{command}: {ran:?}");
        let messages = messages(&ran);
        assert_eq!(messages.len(), 2, "{ran:?}");
        let [duplicate, unknown] = [&messages[0], &messages[1]];
        assert_eq!(duplicate["level"], "error");
        assert_eq!(duplicate["code"], "duplicate");
        let spans = duplicate["spans"].as_array().unwrap();
        assert_eq!(spans.len(), 2, "both places");
        assert_eq!(spans[0]["primary"], true);
        assert_eq!(spans[1]["primary"], false);
        let span = &spans[0];
        let range = span["byte_start"].as_u64().unwrap() as usize..span["byte_end"].as_u64().unwrap() as usize;
        assert_eq!(&bad[range.clone()], "s");
        assert_eq!(range.start, bad.rfind("s = { 2").unwrap());
        assert_eq!([&span["line"], &span["end_line"]], [3, 3]);
        assert_eq!([&span["column"], &span["end_column"]], [32, 33], "columns count characters");
        assert_eq!(span["file"], "bad.pipe");
        assert_eq!(unknown["help"][0], "did you mean `normal`?");
        assert!(unknown["rendered"].as_str().unwrap().contains("bad.pipe:4:21"));
    }
}

#[test]
fn failures_and_warnings_are_json_too() {
    let scratch = Scratch::new("json-other");
    let ran = scratch.pipec(["--message-format", "json", "check", "none.pipe"]);
    let found = messages(&ran);
    assert_eq!((ran.status, found.len()), (1, 1));
    assert_eq!((&found[0]["level"], &found[0]["code"]), (&Value::from("error"), &Value::Null));
    assert!(found[0]["message"].as_str().unwrap().starts_with("none.pipe: cannot read the program"));
    scratch.write("odd.pipe", FIREWALL.replace("port lan, wan;", "port lan, wan; set unused = { 1 };"));
    let ran = scratch.pipec(["check", "odd.pipe", "--message-format", "json"]);
    assert_eq!(messages(&ran)[0]["level"], "warning");
    assert!(ran.good().starts_with("odd.pipe: good: firewall"));
    scratch.write("fails.pipe", FIREWALL.replace("expect lan;", "expect drop;"));
    let ran = scratch.pipec(["test", "fails.pipe", "--engine", "eval", "--message-format", "json"]);
    assert_eq!(ran.status, 1);
    assert_eq!(messages(&ran)[0]["code"], "test-failed");
}

#[test]
fn short_messages_are_a_line_each() {
    let scratch = Scratch::new("short");
    scratch.write("bad.pipe", FIREWALL.replace("normal", "norml"));
    let ran = scratch.pipec(["check", "bad.pipe", "--message-format", "short"]);
    assert_eq!(ran.err, "bad.pipe:7:26: error[unknown-name]: there is no action `norml`\n");
    assert_eq!(ran.status, 2);
}

#[test]
fn shells_and_man_learn_all_subcommands() {
    let scratch = Scratch::new("shells");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = scratch.pipec(["completions", shell]).good();
        assert!(["check", "fmt", "message-format"].iter().all(|word| script.contains(word)), "{shell}");
    }
    let bash = scratch.write("pipec.bash", scratch.pipec(["completions", "bash"]).good());
    let words = "COMP_WORDS=(pipec ch); COMP_CWORD=1; _pipec pipec ch pipec; echo ${COMPREPLY[@]}";
    let script = format!("source {}; {words}", bash.display());
    let reply = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8(reply.stdout).unwrap(), "check\n");
    scratch.pipec(["completions", "csh"]).bad(2, &["csh", "bash"]);

    assert!(scratch.pipec(["man"]).good().contains(".TH pipec 1"));
    scratch.pipec(["man", "pages"]).good();
    let pages: Vec<String> = ["pipec.1", "pipec-check.1", "pipec-fmt.1"]
        .map(|page| std::fs::read_to_string(scratch.path("pages").join(page)).unwrap())
        .into();
    assert!(pages[1].contains("Check programs"));
    scratch.write("file", "");
    scratch.pipec(["man", "file"]).bad(1, &["file: cannot write manual pages", "choose a folder"]);
}
