//! The counts that were stored, so that a change that makes packets dearer is seen.
//!
//! In: `bench/instructions.toml`, new counts. Out: what differs. Never: a comparison across compilers or releases of DPDK,
//! which say nothing of a change.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::{Error, process};

/// How much more, or less, than stored is a difference.
pub const TOLERANCE: f64 = 0.03;

/// Counts, and what they were made with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stored {
    /// The tools whose releases decide them.
    pub made_with: MadeWith,
    /// Instructions a packet by workload and engine, without driver and traffic source.
    pub counts: BTreeMap<String, BTreeMap<String, f64>>,
}

/// Releases and processor features.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeWith {
    /// Of rustc.
    pub rustc: String,
    /// Of DPDK.
    pub dpdk: String,
    /// Architecture and the vector unit that programs are compiled for.
    pub processor: String,
}

impl MadeWith {
    /// What is installed here.
    ///
    /// # Errors
    /// When rustc or pkg-config cannot be asked.
    pub fn here() -> Result<MadeWith, Error> {
        let say = |program: &str, args: &[&str]| {
            process::run(Command::new(program).args(args)).map(|text| text.trim().to_string())
        };
        Ok(MadeWith {
            rustc: say("rustc", &["--version"])?,
            dpdk: say("pkg-config", &["--modversion", "libdpdk"])?,
            processor: processor(),
        })
    }
}

/// Valgrind offers AVX2 at the most.
fn processor() -> String {
    #[cfg(target_arch = "x86_64")]
    if !std::arch::is_x86_feature_detected!("avx2") {
        return "x86_64 without AVX2".to_string();
    }
    std::env::consts::ARCH.to_string()
}

/// Where counts are stored.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.toml")
}

impl Stored {
    /// Reads what is stored.
    ///
    /// # Errors
    /// When that is missing or malformed.
    pub fn read(path: &Path) -> Result<Stored, Error> {
        let text = fs::read_to_string(path).map_err(|error| Error::file(path, &error))?;
        toml::from_str(&text).map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
    }

    /// Stores it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let head = format!(
            "# Instructions a packet of the worker's loop, without driver and traffic source: what `{CHECK}` compares with.\n\
             # Made by `{UPDATE}`.\n\n"
        );
        let text = toml::to_string(self).map_err(|error| Error::Failed(format!("{}: {error}", path.display())))?;
        fs::write(path, head + &text).map_err(|error| Error::file(path, &error))
    }

    /// What is stored for a workload and an engine.
    pub fn of(&self, workload: &str, engine: &str) -> Option<f64> {
        self.counts.get(workload)?.get(engine).copied()
    }

    /// Takes a new count in, to a tenth.
    pub fn set(&mut self, workload: &str, engine: &str, count: f64) {
        let counts = self.counts.entry(workload.to_string()).or_default();
        counts.insert(engine.to_string(), (count * 10.0).round() / 10.0);
    }
}

/// The commands that compare with what is stored, and that store anew.
pub const CHECK: &str = "make instructions";
/// See [`CHECK`].
pub const UPDATE: &str = "cargo run --release -p pipec-bench -- instructions --update";

/// How far a count is from the stored one, as a share of it: 0.05 is five in a hundred more.
pub fn change(count: f64, stored: f64) -> f64 {
    count / stored - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_back() {
        let mut stored = Stored { made_with: MadeWith::here().unwrap(), ..Stored::default() };
        stored.set("wire", "jit", 50.04);
        stored.set("wire", "rust", 49.96);
        stored.set("l2-10", "jit", 99.0);
        let path = std::env::temp_dir().join(format!("pipec-bench-stored-{}.toml", std::process::id()));
        stored.write(&path).unwrap();
        assert_eq!(Stored::read(&path).unwrap(), stored);
        assert_eq!((stored.of("wire", "jit"), stored.of("wire", "eval")), (Some(50.0), None));
        fs::write(&path, "counts = 1\n").unwrap();
        assert!(Stored::read(&path).unwrap_err().to_string().contains("counts"));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn the_stored_counts_can_be_read() {
        let stored = Stored::read(&path()).unwrap();
        for (workload, engines) in &stored.counts {
            assert!(workload.parse::<crate::workload::Workload>().is_ok(), "{workload}");
            assert!(engines.values().all(|count| *count > 10.0), "{workload}");
        }
        assert!(!stored.counts.is_empty());
    }
}
