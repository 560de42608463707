//! The page of results, in Markdown.
//!
//! In: results, and which plots there are. Out: text. Never: a figure that is not in the results.

use std::fmt::Write;

use super::plot::Family;
use super::{Counted, Results};
use crate::live;
use crate::report::Row;
use crate::updates::{BATCH, Figures, PACE};

/// The whole page.
pub fn page(results: &Results, plots: &[&Family]) -> String {
    let Results { forward, .. } = results;
    let pages = if forward.hugepages { "with" } else { "without" };
    let mut page = format!(
        "# Results\n\nMade by `make bench` at commit `{}` on {}, a time-stamp counter of {:.0} MHz, {pages} hugepages; {:.1} \
         processes wanted a processor before, {:.1} after. [How each figure is made](../README.md); all of them are in \
         [results.json](results.json).\n\n",
        results.commit,
        forward.processor,
        forward.tsc_hz / 1e6,
        forward.load[0],
        forward.load[1],
    );
    page += &forwarding(&forward.rows);
    for family in plots {
        let _ = write!(page, "\n![{}]({}.svg)\n", family.title, family.name); // writing to a string does not fail
    }
    page += &instructions(&results.instructions);
    page += &from_source(&results.live);
    page += &changes(&results.updates);
    for (what, lines) in [("Left out", &forward.skipped), ("Failed", &forward.failed)] {
        if !lines.is_empty() {
            let lines: Vec<String> = lines.iter().map(|line| format!("- {}\n", line.replace('\n', " "))).collect();
            let _ = write!(page, "\n## {what}\n\n{}", lines.concat());
        }
    }
    page
}

/// Cycles a packet, a line for each workload and engine.
fn forwarding(rows: &[Row]) -> String {
    let mut text = "## Cycles a packet\n\nThe median of the rounds, the least and the most; `of floor` and `times ovs` are ratios \
                    within this run; `sent` is packets sent for each received.\n\n\
                    | workload | engine | cycles | least–most | Mpps | of floor | times ovs | sent | target |\n\
                    |---|---|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_string();
    for row in rows {
        let ratio = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {:.1}–{:.1} | {:.2} | {} | {} | {:.0} % | {} |",
            row.workload,
            row.engine,
            row.cycles.median,
            row.cycles.min,
            row.cycles.max,
            row.mpps,
            ratio(row.of_floor),
            ratio(row.times_ovs),
            row.sent_share * 100.0,
            row.aim.target.map_or(String::new(), |target| target.to_string()),
        );
    }
    text
}

fn instructions(counts: &[Counted]) -> String {
    if counts.is_empty() {
        return String::new();
    }
    let mut text = "\n## Instructions a packet\n\nOf the worker's loop, by callgrind; the driver's and the traffic source's apart.\n\n\
                    | workload | engine | instructions | driver |\n|---|---|--:|--:|\n"
        .to_string();
    for Counted { workload, engine, ours, driver } in counts {
        let _ = writeln!(text, "| {workload} | {engine} | {ours:.1} | {driver:.1} |");
    }
    text
}

fn from_source(rows: &[live::Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = "\n## From source to packets\n\nMilliseconds from a program's text to a published program, compiled in memory.\n\n\
                    | program | front | plan | code | tables | all | target |\n|---|--:|--:|--:|--:|--:|--:|\n"
        .to_string();
    for row in rows {
        let aim = row.aim.map_or(String::new(), |aim| aim.to_string());
        let live::Row { program, front, plan, code, tables, all, .. } = row;
        let _ = writeln!(text, "| {program} | {front:.1} | {plan:.1} | {code:.1} | {tables:.1} | {all:.1} | {aim} |");
    }
    text
}

fn changes(all: &[Figures]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n## Changes of tables while packets are looked up\n\nLatencies in µs, median / 99th percentile, of single changes at \
         {PACE} a second or as many as there can be; changes a second one by one and in batches of {BATCH}; cycles a packet \
         without changes, and what those at that pace add.\n\n\
         | table | entries | load s | put in | changed | taken out | a second | in batches | cycles | with changes |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    );
    for figures in all {
        let [put, changed, taken] =
            figures.latency.map(|l| format!("{:.1} / {:.1}", l.median as f64 / 1e3, l.p99 as f64 / 1e3));
        let _ = writeln!(
            text,
            "| {} | {} | {:.3} | {put} | {changed} | {taken} | {:.0} | {:.0} | {:.1} | {:+.1} % at {:.0} |",
            figures.kind,
            figures.entries,
            figures.load_s,
            figures.full_rate,
            figures.batched_rate,
            figures.quiet,
            (figures.paced / figures.quiet - 1.0) * 100.0,
            figures.paced_rate,
        );
    }
    text
}
