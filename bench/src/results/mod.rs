//! The results of a whole run, as files: `results.json`, `README.md`, plots, and the book's page with the same plots.
//!
//! In: what was measured. Out: a folder. Never: a measurement.

mod aims;
mod page;
mod parts;
mod plot;
mod tables;

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use parts::{Part, Parts};

use crate::report::Report;
use crate::rounds::Outcome;
use crate::updates::Figures;
use crate::{Error, latency, live, lookups};

/// All that is measured in one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The commit that was measured, with `+` where the work tree differs.
    pub commit: String,
    /// Cycles a packet.
    pub forward: Report,
    /// All else.
    #[serde(flatten)]
    pub others: Others,
    /// The run before, on a processor of the same name.
    pub before: Option<Before>,
}

/// What is measured beside cycles a packet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Others {
    /// How long packets take.
    pub latency: Vec<latency::Row>,
    /// Times from source to a published program.
    pub live: Vec<live::Row>,
    /// Changes of tables.
    pub updates: Vec<Figures>,
    /// Instructions a packet.
    pub instructions: Vec<Counted>,
    /// Look-ups alone.
    pub lookups: Vec<lookups::Set>,
    /// Cycles that the tracker alone takes for a packet that opens a connection.
    pub connections: Option<f64>,
}

/// Parts that become results.
#[derive(Default)]
pub struct Run {
    /// The commit that is measured.
    pub commit: String,
    /// What became of forwarding rows.
    pub outcome: Outcome,
    /// All else.
    pub others: Others,
}

impl Run {
    /// Takes a part in.
    pub fn add(&mut self, part: Part) {
        match part {
            Part::Instructions(counts) => self.others.instructions.extend(counts),
            Part::Live(row) => self.others.live.push(row),
            Part::Forward(outcome) => self.outcome.add(outcome),
            Part::Latency(rows, left_out) => {
                self.others.latency.extend(rows);
                self.outcome.skipped.extend(left_out);
            }
            Part::Updates(figures) => self.others.updates.push(figures),
            Part::Lookups(set) => self.others.lookups.push(set),
            Part::Connections(cycles) => self.others.connections = Some(cycles),
        }
    }

    /// All of it, with the report that its outcome has become.
    pub fn results(self, forward: Report) -> Results {
        Results { commit: self.commit, forward, others: self.others, before: None }
    }
}

/// What another run measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Before {
    /// The commit that was measured.
    pub commit: String,
    /// Medians of cycles a packet, of rows that were measured in both runs.
    pub moved: Vec<Moved>,
}

/// The median of a row in two runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "a field's name says what it is")]
pub struct Moved {
    pub workload: String,
    pub engine: String,
    pub before: f64,
    pub now: f64,
}

impl Moved {
    /// By what share it moved.
    pub fn share(&self) -> f64 {
        self.now / self.before - 1.0
    }
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

/// The book's page, and the folder of its pictures.
const CHAPTER: &str = "benchmarks.md";
const PICTURES: &str = "benchmarks";
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

    /// The same with what an earlier run on a processor of the same name measured.
    #[must_use]
    pub fn beside(self, before: Option<&Results>) -> Results {
        let same = before.filter(|before| before.forward.processor == self.forward.processor);
        let before = same.map(|before| {
            let moved = self.forward.rows.iter().filter_map(|row| {
                let then = before.forward.find(&row.workload, &row.engine)?;
                let (before, now) = (then.cycles.median, row.cycles.median);
                Some(Moved { workload: row.workload.clone(), engine: row.engine.clone(), before, now })
            });
            Before { commit: before.commit.clone(), moved: moved.collect() }
        });
        Results { before, ..self }
    }

    /// How far rounds lie apart and how far medians have moved, as a sentence or two.
    pub fn spread(&self) -> String {
        page::spread(self)
    }

    /// Writes figures, page and plots.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(self).map_err(|error| Error::Failed(error.to_string()))?;
        put(folder, FIGURES, &(json + "\n"))?;
        self.write_page(folder, "README.md", folder, "")
    }

    /// Writes the page of the book, whose source is in this folder, and its pictures.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write_book(&self, source: &Path) -> Result<(), Error> {
        self.write_page(source, CHAPTER, &source.join(PICTURES), &format!("{PICTURES}/"))
    }

    fn write_page(&self, folder: &Path, name: &str, pictures: &Path, prefix: &str) -> Result<(), Error> {
        let mut plots = Vec::new();
        for picture in plot::draw_all(self)? {
            put(pictures, &format!("{}.svg", picture.name), &picture.svg)?;
            plots.push(picture);
        }
        put(folder, name, &page::page(self, &plots, prefix))
    }
}

fn put(folder: &Path, name: &str, text: &str) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|error| Error::file(folder, &error))?;
    let path = folder.join(name);
    fs::write(&path, text).map_err(|error| Error::file(&path, &error))
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
            others: Others {
                live: vec![live::measure("firewall.pipe", 1).unwrap()],
                instructions: vec![Counted {
                    workload: "wire".into(),
                    engine: "jit".into(),
                    ours: 59.3,
                    driver: 171.0,
                }],
                ..Others::default()
            },
            before: None,
        }
    }

    #[test]
    fn a_run_is_put_beside_the_one_before() {
        let mut then = results();
        then.forward.rows[0].cycles.median *= 0.5;
        let before = results().beside(Some(&then)).before.unwrap();
        assert_eq!(before.moved.len(), then.forward.rows.len());
        assert!((before.moved[0].share() - 1.0).abs() < 1e-9);
        then.forward.processor = "another".into();
        assert!(results().beside(Some(&then)).before.is_none());
    }

    #[test]
    fn the_book_has_page_and_pictures() {
        let source = std::env::temp_dir().join(format!("pipec-bench-book-{}", std::process::id()));
        results().write_book(&source).unwrap();
        let page = fs::read_to_string(source.join(CHAPTER)).unwrap();
        assert!(page.contains("](benchmarks/l2.svg)"), "{page}");
        assert!(source.join("benchmarks/l2.svg").is_file());
        fs::remove_dir_all(&source).unwrap();
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
