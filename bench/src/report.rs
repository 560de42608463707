//! What was measured, as a table for people and as JSON.
//!
//! In: samples. Out: medians with their spread, ratios to the floor and to Open vSwitch of the same run, and the aims beside
//! them. Never: an opinion.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};
use serde::{Deserialize, Serialize};

use crate::rounds::{Measured, Outcome};
use crate::targets::{Target, target};

/// The engines that ratios are of.
const FLOOR: &str = "floor";
const PEER: &str = "ovs";
/// Below this, something else ran on the processor for too long to trust a figure to the last cycle.
const UNDISTURBED: f64 = 0.97;

/// The median of some figures, and between what they lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Half of them are at most this.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of at least one figure.
    fn of(mut figures: Vec<f64>) -> Spread {
        figures.sort_by(f64::total_cmp);
        let at = |i: usize| figures.get(i).copied().unwrap_or(f64::NAN);
        let (low, high) = (figures.len().saturating_sub(1) / 2, figures.len() / 2);
        Spread { median: (at(low) + at(high)) / 2.0, min: at(0), max: at(figures.len().saturating_sub(1)) }
    }
}

/// One engine on one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The workload.
    pub workload: String,
    /// The engine.
    pub engine: String,
    /// Cycles of the time-stamp counter a packet.
    pub cycles: Spread,
    /// Of each round.
    pub rounds: Vec<f64>,
    /// Million packets a second that make the median, with the processor for itself.
    pub mpps: f64,
    /// The least share of the processor that it had in a round.
    pub cpu_share: f64,
    /// Packets sent for each that was received, at least.
    pub sent_share: f64,
    /// Cycles as a multiple of the floor's.
    pub of_floor: Option<f64>,
    /// Open vSwitch's cycles as a multiple of these.
    pub times_ovs: Option<f64>,
    /// What is aimed at, for our own engines.
    pub aim: Target,
}

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The processor's name.
    pub processor: String,
    /// Cycles of its time-stamp counter a second.
    pub tsc_hz: f64,
    /// Whether packets lay in hugepages.
    pub hugepages: bool,
    /// Processes that wanted a processor, before and after, the measured ones among them.
    pub load: [f64; 2],
    /// What was measured.
    pub rows: Vec<Row>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
    /// What failed, and how.
    pub failed: Vec<String>,
}

impl Report {
    /// The rows of what was measured, and what was not.
    pub fn new(outcome: Outcome, processor: String, tsc_hz: f64, hugepages: bool, load: [f64; 2]) -> Report {
        let mut rows: Vec<Row> = outcome.measured.iter().map(|measured| row(measured, tsc_hz)).collect();
        let medians: Vec<(String, String, f64)> =
            rows.iter().map(|row| (row.workload.clone(), row.engine.clone(), row.cycles.median)).collect();
        for row in &mut rows {
            let median = |engine: &str| medians.iter().find(|m| m.0 == row.workload && m.1 == engine).map(|m| m.2);
            row.of_floor = median(FLOOR).map(|floor| row.cycles.median / floor);
            row.times_ovs = median(PEER).map(|ovs| ovs / row.cycles.median);
        }
        Report { processor, tsc_hz, hugepages, load, rows, skipped: outcome.skipped, failed: outcome.failed }
    }

    /// The row of an engine on a workload.
    pub fn find(&self, workload: &str, engine: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.workload == workload && row.engine == engine)
    }

    /// The median of an engine's cycles on a workload.
    pub fn cycles(&self, workload: &str, engine: &str) -> Option<f64> {
        self.find(workload, engine).map(|row| row.cycles.median)
    }

    /// As one line of JSON.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() // numbers, strings and lists always become JSON
    }

    /// As a table.
    pub fn text(&self) -> String {
        let pages = if self.hugepages { "hugepages" } else { "no hugepages" };
        let mut text = format!(
            "{}, time-stamp counter {:.0} MHz, {pages}, load {:.1} before and {:.1} after\n\n",
            self.processor,
            self.tsc_hz / 1e6,
            self.load[0],
            self.load[1]
        );
        text += &self.table();
        text.push('\n');
        if self.rows.iter().any(|row| row.cpu_share < UNDISTURBED) {
            text += "\nWhere `cpu` is below 100 %, something else ran on the processor too: times are the engine's own, but it\n\
                     had to fill its caches anew. Measure on a quiet machine.\n";
        }
        for (what, lines) in [("skipped", &self.skipped), ("failed", &self.failed)] {
            for line in lines {
                text += &format!("\n{what}: {line}\n");
            }
        }
        text
    }

    fn table(&self) -> String {
        let heads = [
            "workload",
            "engine",
            "cycles/packet ",
            "least..most ",
            "Mpps ",
            "of floor ",
            "times ovs ",
            "sent ",
            "cpu ",
            "first ",
            "target ",
            "mark ",
        ];
        let mut table = table(&heads);
        let mut last = "";
        for row in &self.rows {
            let name = if row.workload == last { "" } else { &row.workload };
            last = &row.workload;
            let ratio = |ratio: Option<f64>| number(ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")));
            let aim = |aim: Option<u32>| number(aim.map_or(String::new(), |cycles| cycles.to_string()));
            table.add_row([
                Cell::new(name),
                Cell::new(&row.engine),
                number(format!("{:.1}", row.cycles.median)),
                number(format!("{:.1}..{:.1}", row.cycles.min, row.cycles.max)),
                number(format!("{:.2}", row.mpps)),
                ratio(row.of_floor),
                ratio(row.times_ovs),
                number(format!("{:.0} %", row.sent_share * 100.0)),
                number(format!("{:.0} %", row.cpu_share * 100.0)),
                aim(row.aim.first),
                aim(row.aim.target),
                aim(row.aim.mark),
            ]);
        }
        table.trim_fmt()
    }
}

fn row(measured: &Measured, tsc_hz: f64) -> Row {
    let rounds: Vec<f64> = measured.samples.iter().map(|sample| sample.cycles(tsc_hz)).collect();
    let cycles = Spread::of(rounds.clone());
    let least = |figures: &mut dyn Iterator<Item = f64>| figures.fold(f64::INFINITY, f64::min);
    let ours = ["jit", "rust"].contains(&measured.engine.as_str());
    Row {
        workload: measured.workload.to_string(),
        engine: measured.engine.clone(),
        cycles,
        rounds,
        mpps: tsc_hz / cycles.median / 1e6,
        cpu_share: least(&mut measured.samples.iter().map(|sample| sample.share)),
        sent_share: least(&mut measured.samples.iter().map(|sample| sample.sent_share())),
        of_floor: None,
        times_ovs: None,
        aim: if ours { target(measured.workload) } else { Target::default() },
    }
}

/// The median of some figures.
pub fn median(figures: Vec<f64>) -> f64 {
    Spread::of(figures).median
}

/// A table with these heads; those that end with a space stand above numbers.
pub fn table(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─')));
    table.set_header(heads.iter().map(|head| match head.strip_suffix(' ') {
        Some(head) => number(head.to_string()),
        None => Cell::new(head),
    }));
    table
}

/// A cell of a number, at the right.
pub fn number(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Sample;
    use crate::workload::Kind;

    fn measured(engine: &str, cycles: &[u64]) -> Measured {
        let sample = |cycles: &u64| Sample { received: 1000, sent: 1000, seconds: *cycles as f64 / 1e6, share: 1.0 };
        Measured { workload: Kind::Wire.into(), engine: engine.into(), samples: cycles.iter().map(sample).collect() }
    }

    fn report() -> Report {
        let measured = vec![measured("floor", &[50, 40, 45]), measured("jit", &[60, 90]), measured("ovs", &[300])];
        let outcome = Outcome { measured, skipped: vec!["io: not there".into()], failed: Vec::new() };
        Report::new(outcome, "cpu".into(), 1e9, true, [0.0, 1.0])
    }

    #[test]
    fn medians_and_ratios_are_of_the_same_workload() {
        let rows = report().rows;
        assert_eq!(rows[0].cycles, Spread { median: 45.0, min: 40.0, max: 50.0 });
        assert_eq!(rows[1].cycles.median, 75.0);
        assert!((rows[1].of_floor.unwrap() - 75.0 / 45.0).abs() < 1e-9);
        assert!((rows[1].times_ovs.unwrap() - 4.0).abs() < 1e-9);
        assert_eq!((rows[1].aim.first, rows[2].aim.first), (Some(90), None));
    }

    #[test]
    fn the_report_shows_every_engine_and_what_was_left_out() {
        let (text, json) = (report().text(), report().json());
        for word in ["wire", "floor", "jit", "ovs", "40.0..50.0", "skipped: io: not there"] {
            assert!(text.contains(word), "{word} in\n{text}");
        }
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["rows"][1]["engine"], "jit");
        assert_eq!(json["rows"][1]["cycles"]["min"], 60.0);
    }
}
