//! How long a program takes from its text until packets can be given to it.
//!
//! In: workloads, or files with programs. Out: medians, step by step. Never: DPDK, whose start is not part of it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::compiled::{self, Steps};
use crate::workload::Workload;
use crate::{Error, report};

/// The stateful firewall in the language of pipelines.
const FIREWALL: &str = include_str!("../../pipelines/firewall.pipe");

/// What is aimed at, in milliseconds.
pub const AIMS: &[(&str, u32)] =
    &[("firewall.pipe", 10), ("firewall-100", 10), ("acl-1000", 1000), ("l3-10000", 1000), ("l2-100000", 3000)];

/// How long one program took, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The program.
    pub program: String,
    /// Reading and checking.
    pub front: f64,
    /// Planning.
    pub plan: f64,
    /// Translation to machine code.
    pub code: f64,
    /// Building and publishing tables.
    pub tables: f64,
    /// All of it.
    pub all: f64,
    /// What is aimed at.
    pub aim: Option<u32>,
}

/// Compiles a program so often.
///
/// # Errors
/// When there is none of that name, or it has mistakes.
pub fn measure(name: &str, rounds: u32) -> Result<Row, Error> {
    let (file, text) = text(name)?;
    let steps = (0..rounds).map(|_| Ok(compiled::compile(&file, &text)?.2)).collect::<Result<Vec<Steps>, Error>>()?;
    let median = |step: fn(&Steps) -> Duration| {
        report::median(steps.iter().map(|steps| step(steps).as_secs_f64() * 1e3).collect())
    };
    Ok(Row {
        program: name.to_string(),
        front: median(|steps| steps.front),
        plan: median(|steps| steps.plan),
        code: median(|steps| steps.code),
        tables: median(|steps| steps.tables),
        all: median(Steps::total),
        aim: AIMS.iter().find(|aim| aim.0 == name).map(|aim| aim.1),
    })
}

/// A program by its name: what its file is called, and its text.
///
/// # Errors
/// When there is no such file.
pub fn text(name: &str) -> Result<(String, String), Error> {
    if name == "firewall.pipe" {
        return Ok((name.to_string(), FIREWALL.to_string()));
    }
    if let Ok(workload) = name.parse::<Workload>() {
        return Ok((format!("{name}.flows"), workload.make().rules));
    }
    let path = Path::new(name);
    let text = fs::read_to_string(path).map_err(|error| Error::file(path, &error))?;
    Ok((name.to_string(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_its_name() {
        let row = measure("firewall.pipe", 1).unwrap();
        assert_eq!(row.aim, Some(10));
        assert!(row.all > 0.0);
        assert!(text("l2-10").unwrap().1.contains("dl_dst"));
        assert!(text("/no/such.pipe").unwrap_err().to_string().contains("/no/such.pipe"));
    }
}
