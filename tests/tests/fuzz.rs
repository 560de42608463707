//! What `fuzz/` fuzzes, on some thousand inputs, always the same: programs of the repository with damage, random bytes.

#![allow(clippy::unwrap_used)] // also in what several tests share

use std::path::Path;

use pipec_tests::binary::root;
use pipec_tests::fuzz::{TARGETS, Target};

/// A small generator (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * below as u128) >> 64) as usize
    }
}

fn target(name: &str) -> Target {
    TARGETS.iter().find(|(found, _)| *found == name).unwrap().1
}

/// Runs a target; says which input it was where it panics.
fn run(name: &str, target: Target, input: &[u8]) {
    let result = std::panic::catch_unwind(|| target(input));
    if let Err(panic) = result {
        let shown: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{name} failed for {shown}\nas text: {}", String::from_utf8_lossy(input));
        std::panic::resume_unwind(panic);
    }
}

fn on_bytes(name: &str, seed: u64, inputs: usize) {
    let mut random = Random(seed);
    for _ in 0..inputs {
        let len = random.next(600);
        let input: Vec<u8> = (0..len).map(|_| random.next(256) as u8).collect();
        run(name, target(name), &input);
    }
}

/// Texts of the repository with one of these endings, some bytes of them changed, moved, doubled or cut off.
fn on_texts(name: &str, ending: &str, seed: u64, each: usize) {
    let mut random = Random(seed);
    let folders = ["pipelines", "pipelines/bad"].map(|folder| root().join(folder));
    let mut paths: Vec<_> = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten()).collect();
    paths.sort_by_key(|entry| entry.path());
    let texts = paths.iter().filter(|entry| entry.path().extension().is_some_and(|found| found == ending));
    let mut count = 0;
    for text in texts.map(|entry| std::fs::read(entry.path()).unwrap()) {
        run(name, target(name), &text);
        for _ in 0..each {
            let mut text = text.clone();
            for _ in 0..1 + random.next(4) {
                damage(&mut text, &mut random);
            }
            run(name, target(name), &text);
        }
        count += 1;
    }
    assert!(count > 0, "texts were found");
}

/// What a change may put in.
const CHARACTERS: &[u8] = b" \n;,{}()=!&|.:/\"0x9aif";

fn damage(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.next(text.len() + 1);
    let end = (at + random.next(20)).min(text.len());
    let piece = text[at..end].to_vec();
    match random.next(5) {
        0 => drop(text.splice(at..at, piece)),
        1 => drop(text.drain(at..end)),
        2 => {
            let to = random.next(text.len() + 1);
            drop(text.splice(to..to, piece));
        }
        3 => text.insert(at, CHARACTERS[random.next(CHARACTERS.len())]),
        _ => text.truncate(at.max(text.len() / 2)),
    }
}

#[test]
fn damaged_pipelines() {
    on_texts("parse_pipe", "pipe", 1, 12);
}

#[test]
fn damaged_rules() {
    on_texts("parse_flows", "flows", 2, 150);
}

#[test]
fn any_bytes_as_programs() {
    on_bytes("parse_pipe", 3, 300);
    on_bytes("parse_flows", 4, 300);
}

#[test]
fn headers_of_any_frames() {
    on_bytes("headers", 5, 300);
}

#[test]
fn any_frames_and_programs_on_both_engines() {
    on_bytes("differential", 6, 300);
}

#[test]
fn conversations() {
    on_bytes("conntrack", 7, 1000);
}

#[test]
fn every_target_can_be_fuzzed() {
    let folder = Path::new(&root()).join("fuzz/fuzz_targets");
    let mut found: Vec<String> =
        std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.file_name().into_string().unwrap()).collect();
    found.sort();
    let mut expected: Vec<String> = TARGETS.iter().map(|(name, _)| format!("{name}.rs")).collect();
    expected.sort();
    assert_eq!(found, expected);
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} in fuzz/Cargo.toml");
        let text = std::fs::read_to_string(root().join(format!("fuzz/fuzz_targets/{name}.rs"))).unwrap();
        assert!(text.contains(&format!("fuzz::{name}(data)")), "{name}.rs calls its function");
    }
}
