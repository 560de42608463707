//! Tables of the page of results, in Markdown, each with a line or two on how its figures are made.
//!
//! In: results. Out: text; nothing where nothing was measured. Never: a figure that is not in the results.

use std::fmt::Write;

use super::Counted;
use crate::report::{Report, Row};
use crate::updates::{BATCH, Figures, PACE};
use crate::{latency, live, lookups};

/// Cycles a packet, a line for each workload and engine.
pub fn forwarding(rows: &[Row]) -> String {
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

pub fn instructions(counts: &[Counted]) -> String {
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

pub fn from_source(rows: &[live::Row]) -> String {
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

pub fn changes(all: &[Figures]) -> String {
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

/// What a second worker gains, beside what bare forwarding gains by it.
pub fn workers(forward: &Report) -> String {
    let mut lines = String::new();
    for row in forward.rows.iter().filter(|row| row.engine == "jit-2") {
        let gain =
            |one: &str, two: &str| Some(forward.cycles(&row.workload, one)? / forward.cycles(&row.workload, two)?);
        let (Some(ours), bare) = (gain("jit", "jit-2"), gain("io", "io-2")) else { continue };
        let times = |gain: Option<f64>| gain.map_or(String::new(), |gain| format!("{gain:.2}"));
        let share = bare.map_or(String::new(), |bare| format!("{:.0} %", ours / bare * 100.0));
        let _ = writeln!(lines, "| {} | {ours:.2} | {} | {share} |", row.workload, times(bare));
    }
    table(
        "Two workers",
        "Throughput with a second worker on another processor, as a multiple of that with one: ours (`jit-2` to `jit`) and that of \
         bare forwarding (`io-2` to `io`) of the same frames in the same run. `share` is the first as a share of the second. Frames \
         are shared out by a hash of addresses and ports; `wire` has one flow, so there one worker gets blank frames.",
        "| workload | jit | bare | share |\n|---|--:|--:|--:|\n",
        &lines,
    )
}

/// The firewall beside one written by hand.
pub fn by_hand(forward: &Report) -> String {
    let mut lines = String::new();
    for row in forward.rows.iter().filter(|row| row.engine == "hand") {
        let cycles = |engine: &str| forward.cycles(&row.workload, engine);
        let shown = |cycles: Option<f64>| cycles.map_or(String::new(), |cycles| format!("{cycles:.1}"));
        let ratio =
            |of: Option<f64>, to: Option<f64>| of.zip(to).map_or(String::new(), |(of, to)| format!("{:.2}", of / to));
        let (floor, rust, jit) = (cycles("floor"), cycles("rust"), cycles("jit"));
        let hand = Some(row.cycles.median);
        let _ = writeln!(
            lines,
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.workload,
            shown(floor),
            shown(hand),
            shown(rust),
            shown(jit),
            ratio(rust, hand),
            ratio(jit, rust)
        );
    }
    table(
        "Beside a firewall written by hand",
        "`hand` is written in Rust on the same runtime and gives the same verdicts, without counters of rules \
         (`bench/src/bin/pipec-bench-hand.rs`); `floor` is C and verifies nothing (`bench/c/floor.c`). Generated Rust should be within \
         10 % of the first, and code compiled in memory within 10 % of generated Rust.",
        "| workload | floor | hand | rust | jit | rust to hand | jit to rust |\n|---|--:|--:|--:|--:|--:|--:|\n",
        &lines,
    )
}

/// Latencies of the median round.
pub fn latencies(rows: &[latency::Row]) -> String {
    let mut lines = String::new();
    for row in rows {
        let Some(figures) = row.median() else { continue };
        let us = |ns: u64| format!("{:.2}", ns as f64 / 1e3);
        let (of, at_least) = (figures.latency, if figures.source_bound() { "≥ " } else { "" });
        let p99 = row.rounds.iter().map(|round| round.latency.p99);
        let (least, most) = (p99.clone().min().unwrap_or(0), p99.max().unwrap_or(0));
        let _ = writeln!(
            lines,
            "| {} | {} | {at_least}{:.2} | {:.2} | {} | {} | {} | {}–{} | {} | {} |",
            row.workload,
            row.engine,
            figures.capacity / 1e6,
            figures.rate / 1e6,
            us(of.p50),
            us(of.p90),
            us(of.p99),
            us(least),
            us(most),
            us(of.p999),
            us(figures.late.p99),
        );
    }
    table(
        "Latency",
        "Through two `net_ring` ports, in µs. A thread on another processor finds out how many packets a second the engine takes, and then \
         sends half as many, each when it is due, and takes what comes back. A packet's latency counts from the time it was due, so \
         nothing is hidden when the engine stands still. The round whose 99th percentile is in the middle, and between which those of all \
         rounds lie. `late` is how long after its time a packet was put into the ring, by 99 of 100: that much is not the engine's, unless \
         the ring was full. Where the capacity is `≥`, the sending thread could not send more.",
        "| workload | engine | capacity, Mpps | rate, Mpps | p50 | p90 | p99 | of rounds | p99.9 | late |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        &lines,
    )
}

/// Look-ups alone.
pub fn lookups(sets: &[lookups::Set]) -> String {
    let mut lines = String::new();
    for set in sets {
        for row in &set.rows {
            let ratio = set.peer().map_or(String::new(), |peer| format!("{:.2}", row.ns / peer.ns));
            let _ = writeln!(
                lines,
                "| {} | {} | {:.1} | {:.1} | {ratio} | {:.1} | {:.0} | {} | {} | {} |",
                set.set,
                row.structure,
                row.ns,
                row.least,
                row.memory as f64 / f64::from(1 << 20),
                row.build_ms,
                row.change_us.map_or(String::new(), |us| format!("{us:.1}")),
                row.worst.map_or(String::new(), |worst| worst.to_string()),
                row.differ,
            );
        }
    }
    table(
        "Look-ups alone",
        "`pipec-bench-lookups`: our structures and DPDK's in one process, in bursts of 32 keys that all hit, one structure after the other \
         in each round; ns a key, the median of the rounds and the least; as a ratio to DPDK's first; MiB; ms to load all; µs to take an \
         entry out and put it back, of DPDK's; cache lines that a look-up reads at the most; keys for which another entry was found \
         than by the first. `acl`, `fw` and `ipc` are rules of ClassBench's kinds from a seed. `hot` is the same structure with heavy \
         hitters in front; behind `@` stands how often keys are met, `elephants` being four flows with nine of ten packets.",
        "| set | structure | ns | least | ratio | MiB | load ms | change µs | worst | differ |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        &lines,
    )
}

/// A section with a table; nothing without lines.
fn table(title: &str, text: &str, head: &str, lines: &str) -> String {
    if lines.is_empty() { String::new() } else { format!("\n## {title}\n\n{text}\n\n{head}{lines}") }
}
