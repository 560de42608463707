//! Which rules the tests of programs reach.
//!
//! In: a program with its `test` blocks. Out: for each table, how many of its rules some packet of a test took, and which were
//! never taken; as text, JSON or the format of lcov. The reference interpreter counts. Whether tests hold plays no part.

use std::fmt::Write;

use clap::ValueEnum;
use pipec_compiler::hir::Step;
use pipec_runtime::host::print;
use pipec_runtime::offline::Offline;
use serde_json::{Value, json};

use crate::engine::EngineName;
use crate::failure::Failure;
use crate::messages;
use crate::program::Loaded;

/// Options of `pipec test` about coverage.
#[derive(clap::Args)]
pub struct CoverageArgs {
    /// Show which rules no test reached
    #[arg(long)]
    coverage: bool,

    /// How it is shown; implies --coverage
    #[arg(long = "coverage-format", value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Fail with status 1 if tests reach fewer than this percentage of a program's rules; implies --coverage
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    min_coverage: Option<u8>,
}

/// How coverage is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text
    Text,
    /// JSON
    Json,
    /// A tracefile of lcov, for editors and genhtml
    Lcov,
}

/// A moment to begin at; which one does not matter.
const START_NS: u64 = 1_000_000_000_000;

/// The rules of one program, with how many packets of its tests took each.
struct Coverage<'a> {
    loaded: &'a Loaded,
    /// For each table its rules; misses are not rules.
    taken: Vec<Vec<u64>>,
}

/// Whether standard output is for a program that reads coverage, so that results go to standard error.
pub fn takes_output(args: &CoverageArgs) -> bool {
    matches!(args.format, Some(Format::Json | Format::Lcov))
}

/// Shows the coverage of programs; how many reach less than is asked for.
pub fn report(args: &CoverageArgs, programs: &[Loaded]) -> Result<usize, Failure> {
    if !args.coverage && args.format.is_none() && args.min_coverage.is_none() {
        return Ok(0);
    }
    let covered = programs.iter().map(measure).collect::<Result<Vec<_>, _>>()?;
    let text = match args.format.unwrap_or(Format::Text) {
        Format::Text => covered.iter().map(Coverage::text).collect(),
        Format::Lcov => covered.iter().map(Coverage::lcov).collect(),
        Format::Json => {
            let files: Vec<Value> = covered.iter().map(Coverage::json).collect();
            let json = serde_json::to_string_pretty(&json!({ "files": files }));
            json.map_err(|error| Failure::environment(format!("cannot write JSON: {error}")))? + "\n"
        }
    };
    print(&text)?;
    let least = u64::from(args.min_coverage.unwrap_or(0));
    let short: Vec<&Coverage<'_>> = covered.iter().filter(|coverage| !coverage.reaches(least)).collect();
    for coverage in &short {
        let (taken, all) = coverage.all();
        let name = coverage.name();
        let what = format!("{name}: tests reach {taken} of {all} rules, less than {least} percent");
        messages::failure(&pipec_runtime::Error::Environment(what));
    }
    Ok(short.len())
}

/// Runs the packets of all tests.
fn measure(loaded: &Loaded) -> Result<Coverage<'_>, Failure> {
    let program = &loaded.program;
    let mut taken: Vec<Vec<u64>> = program.tables.iter().map(|table| vec![0; table.rules.len()]).collect();
    let engine = EngineName::Eval.load(loaded)?;
    for test in &program.tests {
        let mut offline = Offline::new(&engine);
        let mut now_ns = START_NS;
        for step in &test.steps {
            match step {
                Step::After { ns } => now_ns += ns,
                Step::Send { port, frame, count, .. } => {
                    let frames: Vec<_> = (0..*count).map(|_| (port.0, frame)).collect();
                    offline.send(now_ns, &frames);
                }
                _ => {}
            }
        }
        let counters = engine.meta().by_rule(&offline.counters());
        for (taken, counted) in taken.iter_mut().zip(&counters) {
            taken.iter_mut().zip(counted).for_each(|(taken, counter)| *taken += counter.packets);
        }
    }
    Ok(Coverage { loaded, taken })
}

/// `83 percent`, rounded down; of nothing, all is there.
fn percent(taken: usize, all: usize) -> usize {
    (100 * taken).checked_div(all).unwrap_or(100)
}

impl Coverage<'_> {
    fn name(&self) -> &str {
        self.loaded.name()
    }

    /// Rules taken, and all.
    fn all(&self) -> (usize, usize) {
        let rules = self.taken.iter().flatten();
        (rules.clone().filter(|packets| **packets > 0).count(), rules.count())
    }

    fn reaches(&self, percent: u64) -> bool {
        let (taken, all) = self.all();
        100 * taken as u64 >= percent * all as u64
    }

    /// File and line of a rule, and its text.
    fn rule(&self, table: usize, rule: usize) -> (String, usize, &str) {
        let rule = &self.loaded.program.tables[table].rules[rule];
        let (line, _) = self.loaded.sources.line_column(rule.span);
        let file = self.loaded.sources.file(rule.span.file).name.clone();
        (file, line, rule.text.trim_end_matches(';'))
    }

    fn text(&self) -> String {
        let (taken, all) = self.all();
        let mut out = format!("{}: {}% of rules are reached ({taken} of {all})\n", self.name(), percent(taken, all));
        // Writing to a string does not fail.
        for (i, (table, rules)) in self.loaded.program.tables.iter().zip(&self.taken).enumerate() {
            let taken = rules.iter().filter(|packets| **packets > 0).count();
            let share = percent(taken, rules.len());
            let never = if taken == 0 && !rules.is_empty() { ", never reached" } else { "" };
            let _ = writeln!(out, "  table {}: {share}% ({taken} of {}){never}", table.name, rules.len());
            for (rule, _) in rules.iter().enumerate().filter(|(_, packets)| **packets == 0) {
                let (file, line, text) = self.rule(i, rule);
                let _ = writeln!(out, "    not reached: {file}:{line}: {text}");
            }
        }
        out
    }

    fn json(&self) -> Value {
        let tables = self.loaded.program.tables.iter().zip(&self.taken).enumerate().map(|(i, (table, rules))| {
            let rules = rules.iter().enumerate().map(|(rule, packets)| {
                let (file, line, text) = self.rule(i, rule);
                json!({ "file": file, "line": line, "rule": text, "packets": packets })
            });
            json!({ "table": table.name, "rules": rules.collect::<Vec<_>>() })
        });
        let (taken, all) = self.all();
        json!({
            "file": self.name(),
            "rules": all,
            "reached": taken,
            "percent": percent(taken, all),
            "tables": tables.collect::<Vec<_>>(),
        })
    }

    /// Lines of rules, and tables as functions; rules on the same line are one, with the count of the least used.
    fn lcov(&self) -> String {
        let mut files: std::collections::BTreeMap<String, (String, std::collections::BTreeMap<usize, u64>)> =
            std::collections::BTreeMap::new();
        for (i, rules) in self.taken.iter().enumerate() {
            for (rule, packets) in rules.iter().enumerate() {
                let (file, line, _) = self.rule(i, rule);
                let (_, lines) = files.entry(file).or_default();
                lines.entry(line).and_modify(|known| *known = (*known).min(*packets)).or_insert(*packets);
            }
            let table = &self.loaded.program.tables[i];
            let (line, _) = self.loaded.sources.line_column(table.span);
            let file = self.loaded.sources.file(table.span.file).name.clone();
            let sum: u64 = rules.iter().sum();
            let (functions, _) = files.entry(file).or_default();
            let _ = write!(functions, "FN:{line},{}\nFNDA:{sum},{}\n", table.name, table.name); // cannot fail
        }
        let mut out = String::new();
        for (file, (functions, lines)) in files {
            // Writing to a string does not fail.
            let _ = write!(out, "TN:\nSF:{file}\n{functions}");
            for (line, packets) in &lines {
                let _ = writeln!(out, "DA:{line},{packets}");
            }
            let hit = lines.values().filter(|packets| **packets > 0).count();
            let _ = writeln!(out, "LF:{}\nLH:{hit}\nend_of_record", lines.len());
        }
        out
    }
}
