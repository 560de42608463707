//! What README.md shows is what the program prints.

mod common;

use std::path::Path;
use std::process::Command;

use common::{FIREWALL, Ran};

/// Commands behind `$ pipec`, and what is shown below each.
fn shown(text: &str) -> Vec<(String, String)> {
    let blocks = text.split("```\n").skip(1).step_by(2);
    let mut found = vec![];
    for block in blocks.filter(|block| block.starts_with("$ ")) {
        for part in format!("\n{block}").split("\n$ ").skip(1) {
            let (command, output) = part.split_once('\n').unwrap_or((part, ""));
            found.push((command.to_string(), output.trim_end().to_string()));
        }
    }
    found
}

#[test]
fn the_readme_tells_the_truth() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let shown = shown(&text);
    assert_eq!(shown.len(), 3);
    for (command, expected) in shown {
        let script = command.replacen("pipec", "\"$PIPEC\"", 1);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(&root).env("PIPEC", env!("CARGO_BIN_EXE_pipec"));
        shell.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        assert_eq!(Ran::from(shell.output().expect("sh")).good().trim_end(), expected, "{command}");
    }
}

#[test]
fn the_readme_shows_the_firewall_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let program = text.split("```\n").nth(1).expect("a program");
    let rules = |text: &str| {
        let code = text.lines().map(|line| line.split(" //").next().unwrap_or("").trim().to_string());
        code.filter(|line| line.contains("=>") || line.starts_with("table")).collect::<Vec<_>>()
    };
    assert_eq!(rules(program), rules(FIREWALL));
}
