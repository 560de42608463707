//! What was measured so far, kept in a file, so that an interrupted run goes on where it was.
//!
//! In: parts, as they are measured. Out: the same, another time, for the same commit and the same options. Never: a part of
//! another.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Counted;
use crate::rounds::Outcome;
use crate::updates::Figures;
use crate::{Error, latency, live, lookups};

/// One part.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Instructions a packet.
    Instructions(Vec<Counted>),
    /// From source to packets.
    Live(live::Row),
    /// Cycles a packet.
    Forward(Outcome),
    /// Latency, and what was left out of it.
    Latency(Vec<latency::Row>, Vec<String>),
    /// Changes of a table.
    Updates(Figures),
    /// Look-ups alone.
    Lookups(lookups::Set),
    /// Cycles for a new connection.
    Connections(f64),
}

/// All parts so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Parts {
    /// Of what: the commit and the options.
    pub of: String,
    /// Processes that wanted a processor, at the start.
    pub load: f64,
    /// By name.
    pub parts: BTreeMap<String, Part>,
}

impl Parts {
    /// The parts that a file keeps, if they are of this; else none.
    pub fn read(path: &Path, of: &str) -> Option<Parts> {
        let parts: Parts = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
        (parts.of == of && !parts.parts.is_empty()).then_some(parts)
    }

    /// Keeps them in a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let text = serde_json::to_string(self).map_err(|error| Error::Failed(error.to_string()))?;
        let new = path.with_extension("new");
        fs::write(&new, text).map_err(|error| Error::file(&new, &error))?;
        fs::rename(&new, path).map_err(|error| Error::file(path, &error)) // one or the other, never half
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_same_run() {
        let path = std::env::temp_dir().join(format!("pipec-bench-parts-{}", std::process::id()));
        let mut parts = Parts { of: "abc".into(), ..Parts::default() };
        parts.write(&path).unwrap();
        assert!(Parts::read(&path, "abc").is_none(), "nothing was measured");
        parts.parts.insert("new connections".into(), Part::Connections(900.0));
        parts.parts.insert("cycles of wire".into(), Part::Forward(Outcome::default()));
        parts.write(&path).unwrap();
        let read = Parts::read(&path, "abc").unwrap();
        assert!(matches!(read.parts["new connections"], Part::Connections(cycles) if cycles == 900.0));
        assert!(Parts::read(&path, "abd").is_none());
        fs::remove_file(&path).unwrap();
    }
}
