//! The results of a whole run, as files: `results.json`, `README.md` and a plot for each thing that grows.
//!
//! In: what was measured. Out: a folder. Never: a measurement.

mod page;
mod plot;

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::report::Report;
use crate::updates::Figures;
use crate::{Error, live};

/// All that is measured in one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The commit that was measured, with `+` where the work tree differs.
    pub commit: String,
    /// Cycles a packet.
    pub forward: Report,
    /// Times from source to a published program.
    pub live: Vec<live::Row>,
    /// Changes of tables.
    pub updates: Vec<Figures>,
    /// Instructions a packet.
    pub instructions: Vec<Counted>,
}

/// Instructions a packet of one workload.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Counted {
    /// The workload.
    pub workload: String,
    /// The engine.
    pub engine: String,
    /// Without the driver and the traffic source.
    pub ours: f64,
    /// Of these two.
    pub driver: f64,
}

/// The name of the file that holds all figures.
const FIGURES: &str = "results.json";

impl Results {
    /// Reads the figures of a folder.
    ///
    /// # Errors
    /// When there are none, or they are of another version.
    pub fn read(folder: &Path) -> Result<Results, Error> {
        let path = folder.join(FIGURES);
        let text = fs::read_to_string(&path).map_err(|error| Error::file(&path, &error))?;
        serde_json::from_str(&text).map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
    }

    /// Writes figures, page and plots.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        fs::create_dir_all(folder).map_err(|error| Error::file(folder, &error))?;
        let put = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| Error::file(&path, &error))
        };
        let json = serde_json::to_string_pretty(self).map_err(|error| Error::Failed(error.to_string()))?;
        put(FIGURES, &(json + "\n"))?;
        let mut plots = Vec::new();
        for family in plot::FAMILIES {
            if let Some(svg) = plot::draw(family, &self.forward.rows)? {
                put(&format!("{}.svg", family.name), &svg)?;
                plots.push(family);
            }
        }
        put("README.md", &page::page(self, &plots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Sample;
    use crate::rounds::{Measured, Outcome};

    pub(super) fn results() -> Results {
        let measured = |workload: &str, engine: &str, seconds: f64| Measured {
            workload: workload.parse().unwrap(),
            engine: engine.into(),
            samples: vec![Sample { received: 1_000_000, sent: 1_000_000, seconds, share: 1.0 }],
        };
        let mut all = Vec::new();
        for (engine, step) in [("floor", 0.02), ("jit", 0.03), ("ovs", 0.2)] {
            all.extend(
                [("l2-10", 1.0), ("l2-1000", 1.5), ("wire", 1.0)].map(|(name, n)| measured(name, engine, step * n)),
            );
        }
        let outcome = Outcome { measured: all, skipped: vec!["io: missing".into()], failed: vec![] };
        Results {
            commit: "abc".into(),
            forward: Report::new(outcome, "a processor".into(), 2e9, true, [0.0, 1.0]),
            live: vec![live::measure("firewall.pipe", 1).unwrap()],
            updates: vec![],
            instructions: vec![Counted { workload: "wire".into(), engine: "jit".into(), ours: 59.3, driver: 171.0 }],
        }
    }

    #[test]
    fn results_are_written_and_read_back() {
        let folder = std::env::temp_dir().join(format!("pipec-bench-results-{}", std::process::id()));
        results().write(&folder).unwrap();
        let read = Results::read(&folder).unwrap();
        assert_eq!(read.forward.rows, results().forward.rows);
        let page = fs::read_to_string(folder.join("README.md")).unwrap();
        for part in ["l2.svg", "| wire", "| 59.3 |", "firewall.pipe", "io: missing", "`abc`", "a processor"] {
            assert!(page.contains(part), "{part} in {page}");
        }
        assert!(!page.contains("acl.svg"), "one point is no line");
        let svg = fs::read_to_string(folder.join("l2.svg")).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("jit") && svg.contains("polyline"), "{svg}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
