//! What callgrind writes, summed up by whose instructions they are.
//!
//! In: a profile (the format is chapter "Callgrind Format Specification" of Valgrind's manual). Out: instructions of our own
//! and of others. Never: who called whom.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use crate::Error;

/// Instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Of everything but the driver and the traffic source.
    pub ours: u64,
    /// Of DPDK's libraries and the traffic source, with what they call.
    pub driver: u64,
}

/// Reads a profile.
///
/// # Errors
/// When it cannot be read, or counts nothing.
pub fn read(path: &Path) -> Result<Spent, Error> {
    let file = File::open(path).map_err(|error| Error::file(path, &error))?;
    let mut lines = Vec::new();
    for line in BufReader::new(file).lines() {
        lines.push(line.map_err(|error| Error::file(path, &error))?);
    }
    match sum(lines.iter().map(String::as_str)) {
        Spent { ours: 0, .. } => Err(Error::Failed(format!(
            "{}: callgrind has counted nothing; is the program's symbol table stripped?",
            path.display()
        ))),
        spent => Ok(spent),
    }
}

/// Sums costs up. A line of costs is a position and a number; the one behind `calls=` is what the callee spent, with all that
/// it called in turn. What the driver spends is so known where our code calls it.
fn sum<'a>(lines: impl Iterator<Item = &'a str>) -> Spent {
    let mut spent = Spent::default();
    let mut names: HashMap<&str, &str> = HashMap::new();
    let (mut ours, mut callee_ours, mut of_callee) = (true, None, false);
    let mut total = 0;
    for line in lines {
        if let Some(object) = line.strip_prefix("ob=") {
            ours = is_ours(named(object, &mut names));
        } else if let Some(object) = line.strip_prefix("cob=") {
            callee_ours = Some(is_ours(named(object, &mut names)));
        } else if line.starts_with("calls=") {
            of_callee = true;
        } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let cost: u64 = line.split(' ').nth(1).and_then(|cost| cost.parse().ok()).unwrap_or(0);
            let callee_ours = callee_ours.take().unwrap_or(ours);
            match (of_callee, ours, callee_ours) {
                (false, ..) => total += cost,
                (true, true, false) => spent.driver += cost,
                (true, ..) => {}
            }
            of_callee = false;
        }
    }
    spent.ours = total - spent.driver.min(total);
    spent
}

/// The name behind `(number) name`, or behind the number alone when it was told before.
fn named<'a>(text: &'a str, names: &mut HashMap<&'a str, &'a str>) -> &'a str {
    match text.split_once(' ') {
        Some((number, name)) => {
            names.insert(number, name);
            name
        }
        None => names.get(text).copied().unwrap_or(text),
    }
}

fn is_ours(object: &str) -> bool {
    let name = object.rsplit('/').next().unwrap_or(object);
    !["librte_", "libpipec_bench_replay"].iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_summed_by_object() {
        let profile = "version: 1
events: Ir
summary: 100

ob=(1) /usr/bin/pipec
fl=(1) ???
fn=(1) run
0 10
+3 5
cob=(2) /usr/lib/librte_net_null.so.23
cfn=(2) rx
calls=4 0
* 47
cfn=(4)
calls=1 0
0 1

ob=(2)
fn=(2)
0 30
cob=(3) /tmp/libpipec_bench_replay.so
cfn=(3) on_rx
calls=4 0
+2 17
ob=(3)
fn=(3)
0 7
cob=(4) /lib/libc.so.6
cfn=(5) memcpy
calls=4 0
0 10
ob=(4)
fn=(5)
0 10
ob=(1)
fn=(4) other
-1 1
";
        assert_eq!(sum(profile.lines()), Spent { ours: 16, driver: 47 });
    }
}
