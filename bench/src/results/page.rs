//! The page of results, in Markdown, for the folder of results and for the book.
//!
//! In: results, and which plots there are. Out: text. Never: a figure that is not in the results.

use std::fmt::Write;

use super::aims::{Aim, aims};
use super::plot::Picture;
use super::{Moved, Results, tables};

/// Rounds, or medians of two runs, that lie further apart are named.
const APART: f64 = 0.05;

const INTRODUCTION: &str = "# Benchmarks

This page is written by `make bench`, which measures this dataplane beside others: the same frames, the same ports, one after the other \
in each round. To repeat it, on Debian, as root, on a machine that does nothing else:

```sh
make bench
```

It takes less than half an hour and says how much is left. A run that was interrupted leaves nothing behind and goes on where it was when \
it is started again. `bench/README.md` describes every workload and engine, and how to measure a part of it.
";

const PORTS: &str = "Ports are two DPDK `net_null` ports. They have no wire and no limit, so what is measured is the processor's work. A plug-in for \
DPDK's EAL copies the workload's frames into what they receive; that copy is in every figure, and the same for every engine. Cycles a \
packet are those of the time-stamp counter while the engine's thread had its processor, divided by packets received. Each round starts \
every engine once, waits until its ports have their frames, warms it, measures it and stops it.

Aims were set on a machine whose time-stamp counter runs at 2 GHz. What is not installed, or cannot say a workload, is left out.
";

/// The whole page; files of plots begin with `prefix`.
pub fn page(results: &Results, plots: &[Picture], prefix: &str) -> String {
    let Results { forward, .. } = results;
    let pages = if forward.hugepages { "with" } else { "without" };
    let mut page = INTRODUCTION.to_string();
    let _ = write!(
        page,
        "\nMeasured at commit `{}` on {}, a time-stamp counter of {:.0} MHz, {pages} hugepages; {:.1} processes wanted a processor \
         before, {:.1} after. {} All figures are in `bench/results/results.json`.\n\n## Aims\n\n",
        results.commit,
        forward.processor,
        forward.tsc_hz / 1e6,
        forward.load[0],
        forward.load[1],
        spread(results),
    ); // writing to a string does not fail
    page += &aimed(&aims(results));
    let _ = write!(page, "\n## How figures are made\n\n{PORTS}\n");
    page += &tables::forwarding(&forward.rows);
    for plot in plots.iter().filter(|plot| plot.name != "latency") {
        page += &picture(plot, prefix);
    }
    page += &tables::workers(forward);
    page += &tables::by_hand(forward);
    page += &tables::latencies(&results.others.latency);
    for plot in plots.iter().filter(|plot| plot.name == "latency") {
        page += &picture(plot, prefix);
    }
    page += &tables::lookups(&results.others.lookups);
    page += &tables::instructions(&results.others.instructions);
    page += &tables::from_source(&results.others.live);
    page += &tables::changes(&results.others.updates);
    for (what, lines) in [("Left out", &forward.skipped), ("Failed", &forward.failed)] {
        if !lines.is_empty() {
            let lines: Vec<String> = lines.iter().map(|line| format!("- {}\n", line.replace('\n', " "))).collect();
            let _ = write!(page, "\n## {what}\n\n{}", lines.concat());
        }
    }
    page
}

fn picture(plot: &Picture, prefix: &str) -> String {
    format!("\n![{}]({prefix}{}.svg)\n", plot.title, plot.name)
}

/// The table of aims, and what is not reached.
fn aimed(aims: &[Aim]) -> String {
    let known = aims.iter().filter_map(Aim::reached).count();
    let reached = aims.iter().filter(|aim| aim.reached() == Some(true)).count();
    let mut text = format!("Of {} aims, {known} were measured and {reached} reached.", aims.len());
    let missed: Vec<&str> =
        aims.iter().filter(|aim| aim.reached() == Some(false)).map(|aim| aim.what.as_str()).collect();
    if !missed.is_empty() {
        let _ = write!(text, " Not reached: {}.", missed.join("; "));
    }
    text += "\n\n| what | aim, at most | measured | of the aim | reached |\n|---|--:|--:|--:|---|\n";
    for aim in aims {
        let Aim { what, unit, most, measured } = aim;
        let _ = match measured {
            Ok(measured) => {
                let reached = if *measured <= *most { "yes" } else { "**no**" };
                writeln!(
                    text,
                    "| {what} | {} {unit} | {} | {:.2} | {reached} |",
                    plain(*most),
                    plain(*measured),
                    measured / most
                )
            }
            Err(why) => writeln!(text, "| {what} | {} {unit} | | | {why} |", plain(*most)),
        };
    }
    text
}

/// A number with as many decimals as say something.
fn plain(number: f64) -> String {
    match number.abs() {
        0.0..10.0 => format!("{:.2}", number).trim_end_matches('0').trim_end_matches('.').to_string(),
        10.0..100.0 => format!("{:.1}", number).trim_end_matches('0').trim_end_matches('.').to_string(),
        _ => format!("{number:.0}"),
    }
}

/// How far rounds lie apart, and how far medians have moved since the run before.
pub fn spread(results: &Results) -> String {
    let rows = &results.forward.rows;
    if rows.is_empty() {
        return String::new();
    }
    let near = rows.iter().filter(|row| row.cycles.max - row.cycles.min <= APART * row.cycles.median).count();
    let mut text = format!("All rounds of {near} of {} forwarding rows lie within {:.0} %.", rows.len(), APART * 100.0);
    let busy = rows.iter().filter(|row| row.cpu_share < 0.97).count();
    if busy > 0 {
        let _ = write!(text, " In {busy} rows something else ran on the processor, so the machine was not quiet.");
    }
    if let Some(before) = &results.before {
        let mut far: Vec<&Moved> = before.moved.iter().filter(|moved| moved.share().abs() > APART).collect();
        far.sort_by(|a, b| b.share().abs().total_cmp(&a.share().abs()));
        let _ = write!(
            text,
            " Since the run before, at `{}`, {} of {} medians moved by more than {:.0} %",
            before.commit,
            far.len(),
            before.moved.len(),
            APART * 100.0
        );
        let named: Vec<String> = far
            .iter()
            .take(10)
            .map(|moved| format!("{} on {} {:+.0} %", moved.engine, moved.workload, moved.share() * 100.0))
            .collect();
        let _ = if named.is_empty() { write!(text, ".") } else { write!(text, ": {}.", named.join(", ")) };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::results;

    #[test]
    fn the_page_says_what_was_reached() {
        let page = page(&results(), &[], "");
        assert!(page.contains("| `wire`, jit | 60 cycles | 60 | 1.00 | yes |"), "{page}");
        assert!(page.contains("| `wire`, rust | 60 cycles | | | not measured |"), "{page}");
        assert!(!page.contains(" 5 % since"), "{page}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.4, 1.0, 14.26, 140.4, -0.5].map(plain), ["0.4", "1", "14.3", "140", "-0.5"]);
    }
}
