//! Programs of several files, in every subcommand: beside the program, with `-I`, and with `PIPEC_PATH`.

#![allow(clippy::unwrap_used)] // also in what several tests share

mod common;

use common::{Scratch, conversations};

fn scratch(name: &str) -> Scratch {
    let scratch = Scratch::new(name);
    for folder in ["parts", "lib", "more"] {
        std::fs::create_dir_all(scratch.path(folder)).expect("a folder");
    }
    let main = r#"pipeline p {
    port lan, wan;
    use "parts/way.pipe";
    test "out" { send lan ipv4(src = 10.0.0.1); expect wan; send wan ipv4(src = 10.0.0.1); expect lan; }
}
"#;
    scratch.write("main.pipe", main);
    scratch.write(
        "parts/way.pipe",
        "use \"sides.pipe\";\ntable t { in_port in inside => output(wan); else => output(lan); }\n",
    );
    let (lan, _) = conversations();
    scratch.write("lan.pcap", lan);
    scratch
}

#[test]
fn every_subcommand_reads_what_a_program_uses() {
    let scratch = scratch("uses");
    scratch.write("parts/sides.pipe", "set inside = { lan };\n");
    let out = scratch.pipec(["check", "main.pipe"]).good();
    assert_eq!(out, "main.pipe: good: p, 2 ports, 1 table, 2 rules\n");
    assert!(scratch.pipec(["test", "--engine", "jit", "main.pipe"]).good().ends_with("1 passed, 0 failed\n"));
    assert!(scratch.pipec(["trace", "main.pipe", "lan: ipv4()"]).good().contains("in_port in inside"));
    scratch.pipec(["replay", "main.pipe", "--in", "lan=lan.pcap"]).good();
    let rust = scratch.pipec(["build", "main.pipe", "--emit", "rust", "-o", "-"]).good();
    assert!(rust.contains("in_port in inside"), "{rust}");
    scratch.pipec(["run", "main.pipe", "--port", "lan=pcap:lan.pcap", "--port", "wan=pcap:lan.pcap"]).good();
}

#[test]
fn files_are_searched_along_the_path() {
    let scratch = scratch("search-path");
    scratch
        .pipec(["check", "main.pipe"])
        .bad(2, &["there is no file parts/sides.pipe", "parts/way.pipe:1:5", "-I DIR"]);
    scratch.write("lib/sides.pipe", "set inside = { lan };\n");
    scratch.pipec(["check", "-I", "more", "-I", "lib", "main.pipe"]).good();
    scratch.pipec(["check", "main.pipe", "-I", "more"]).bad(2, &["nor more/sides.pipe"]);
    let with = |path: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pipec"));
        common::Ran::from(
            command.args(["check", "main.pipe"]).env("PIPEC_PATH", path).current_dir(&scratch.0).output().unwrap(),
        )
    };
    with("more:lib").good();
    with("more").bad(2, &["more/sides.pipe"]);
    scratch.write("parts/sides.pipe", [0xff]);
    scratch.pipec(["check", "main.pipe"]).bad(2, &["parts/sides.pipe: this is not text (byte 0"]);
}
