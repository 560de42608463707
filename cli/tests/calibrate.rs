//! `pipec calibrate`: what it keeps, and what it says where it cannot.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::Command;

use common::{Ran, Scratch};

/// Runs `pipec calibrate` with this folder for what users configure.
fn calibrate(config: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pipec"));
    command.arg("calibrate").args(args).env("XDG_CONFIG_HOME", config);
    Ran::from(command.output().unwrap())
}

#[test]
fn what_is_measured_is_kept_shown_and_forgotten() {
    let scratch = Scratch::new("calibrate");
    let file = scratch.path("pipec/costs.toml");
    let shown = calibrate(&scratch.0, &["--show"]);
    assert!(shown.out.contains("load_memory") && shown.out.contains("defaults"), "{}", shown.out);
    let measured = calibrate(&scratch.0, &[]);
    assert_eq!(measured.status, 0, "{}", measured.err);
    assert!(measured.out.contains(" cycles (default ") && measured.out.contains("costs.toml"), "{}", measured.out);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("mispredict = "), "{kept}");
    let shown = calibrate(&scratch.0, &["--show"]);
    assert_eq!(shown.status, 0, "{}", shown.err);
    assert!(shown.out.contains(&format!("from {}", file.display())), "{}", shown.out);
    assert_eq!(calibrate(&scratch.0, &["--reset"]).status, 0);
    assert!(!file.exists());
    assert!(calibrate(&scratch.0, &["--reset"]).out.contains("nothing was measured"));
}

#[test]
fn what_is_broken_is_told_and_can_be_forgotten() {
    let scratch = Scratch::new("calibrate-broken");
    std::fs::create_dir_all(scratch.path("pipec")).unwrap();
    scratch.write("pipec/costs.toml", "[cycles]\nload_l1 = fast\n");
    let shown = calibrate(&scratch.0, &["--show"]);
    assert_ne!(shown.status, 0);
    for word in ["costs.toml", "line 2", "pipec calibrate --reset"] {
        assert!(shown.err.contains(word), "{word} in {}", shown.err);
    }
    assert_eq!(calibrate(&scratch.0, &["--reset"]).status, 0);
    assert_eq!(calibrate(&scratch.0, &["--show"]).status, 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_told() {
    let scratch = Scratch::new("calibrate-folder");
    let file = scratch.write("file", "");
    let ran = calibrate(&file, &[]);
    assert_ne!(ran.status, 0);
    assert!(ran.err.contains("cannot keep what was measured") && ran.err.contains("XDG_CONFIG_HOME"), "{}", ran.err);
}
