//! Recorded cases of Open vSwitch: what its own tests set up and inject, and what came out. They lie outside of the repository,
//! as facts to be held against; nothing of them is copied here.
//!
//! ```text
//! compose   frames and keys from the descriptions that Open vSwitch takes in place of bytes
//! switch    bridges, ports and rules, as the events of a case set them up
//! replay    the stimuli of a case on our engines
//! ```

pub mod compose;
pub mod replay;
pub mod switch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// One test of Open vSwitch.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// Its number.
    pub id: u32,
    /// File and line.
    #[serde(rename = "where")]
    pub place: String,
    /// What it is about.
    pub name: String,
    /// What was run, in order.
    pub events: Vec<Event>,
}

/// One command.
#[derive(Debug, Deserialize)]
pub struct Event {
    /// Its program.
    pub tool: String,
    /// Its arguments.
    pub argv: Vec<String>,
    /// Files that it read, by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// What it was given on standard input.
    pub stdin: Option<String>,
    /// How it ended.
    pub rc: i32,
    /// What it printed.
    pub out: Option<String>,
    /// Frames in hex that left each port after it, by the name of a capture.
    pub tx: Option<BTreeMap<String, Vec<String>>>,
}

impl Event {
    /// The arguments behind `word`, if it is among them.
    pub fn after(&self, word: &str) -> Option<&[String]> {
        let at = self.argv.iter().position(|argument| argument == word)?;
        Some(&self.argv[at + 1..])
    }
}

/// Where the cases are: in the folder that `PIPEC_SHARED` names, or beside the repository.
pub fn path() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared");
    let folder = std::env::var_os("PIPEC_SHARED").map_or(beside, PathBuf::from);
    Some(folder.join("data/ovs31_cases.jsonl.gz")).filter(|path| path.exists())
}

/// Calls `each` with every case of a file.
///
/// # Panics
/// When the file cannot be read.
pub fn for_each(path: &Path, mut each: impl FnMut(&Case)) {
    let output = Command::new("gzip").arg("-dc").arg(path).output().expect("gzip runs");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    for line in output.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        each(&serde_json::from_slice(line).expect("a case"));
    }
}
