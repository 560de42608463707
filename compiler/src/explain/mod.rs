//! What became of a program: which classifier each table got and why, what is parsed when, where packets wait and where they
//! are copied, and what it may cost.
//!
//! In: a program, its plan and the plan's report. Out: an [`Explanation`], as data and as text. Never: a decision; those are
//! the plan's, and what stands here is read from it.

mod cost;
mod data;
mod keyed;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;

pub use cost::PRICES;

use crate::hir::{Program, TableId};
use crate::plan::Plan;
use crate::plan::code::{Expr, Stmt};
use crate::plan::report::{Body, Classifier, Decision, Report};
use crate::plan::visit;
use crate::words;
use cost::{Costs, Exit, Range};
use keyed::KeyedTable;

/// What became of a program.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// The pipeline's name.
    pub pipeline: String,
    /// Its tables, in the order of the program.
    pub tables: Vec<Table>,
    /// What code there is, and what each part parses.
    pub bodies: Vec<Part>,
    /// Where packets wait for their turn.
    pub points: Vec<Point>,
    /// Zones that connections are looked up in ahead, for the burst.
    pub prepared_zones: Vec<u16>,
    /// Where packets are copied.
    pub copies: Vec<Copy>,
    /// Why nothing runs ahead for the burst, if nothing does.
    pub in_order: Option<String>,
    /// Ways of a packet through the program, with estimates of their cycles.
    pub paths: Vec<Path>,
    /// The prices that estimates are made of.
    pub prices: BTreeMap<&'static str, u64>,
}

/// A table.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Its name.
    pub table: String,
    /// Rules that it has.
    pub rules: usize,
    /// If it is a keyed one: its key and what its entries may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyed: Option<KeyedTable>,
    /// If it is one with tables that its rules go on to: these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<Merged>,
    /// Everywhere that code was made for it; nowhere, if no packet reaches it, or if it is part of others only.
    pub places: Vec<Place>,
}

/// Tables that are one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// The others.
    pub with: Vec<String>,
    /// Rules of all together.
    pub rules: usize,
    /// Predicted cycles a packet.
    pub cycles: u64,
    /// The same, had they stayed apart.
    pub apart: u64,
}

/// A table at one place of the code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// In which code.
    pub body: String,
    /// In how many places there, all alike.
    pub times: usize,
    /// Rules that may still be taken there.
    pub open_rules: usize,
    /// `direct`, `tree`, `chain`, `tuple-space`, `lpm`, `bit-vector`, `call`; of a keyed table also `learned`, or `empty` before
    /// there are entries.
    pub classifier: &'static str,
    /// Why, in a few words.
    pub why: String,
    /// What was not taken, and why not.
    pub rejected: Vec<Rejected>,
    /// What is looked at for one packet, at the most.
    pub worst_case: String,
    /// If it is data: its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Data>,
    /// Estimated cycles of telling its rules apart.
    pub estimated_cycles: Cycles,
}

/// A classifier that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejected {
    /// Which.
    pub classifier: &'static str,
    /// Why not.
    pub why: String,
}

/// The size of a table that is data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Data {
    /// Entries that its rules became.
    pub entries: usize,
    /// Distinct masks among them.
    pub masks: usize,
    /// Words of 64 bits in the key.
    pub key_words: usize,
    /// Bytes.
    pub memory: usize,
}

/// Cycles, estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cycles {
    /// On the cheapest path.
    pub least: u64,
    /// On the dearest.
    pub most: u64,
}

impl From<Range> for Cycles {
    fn from(range: Range) -> Cycles {
        Cycles { least: range.least, most: range.most }
    }
}

/// A piece of code that packets run.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Its name.
    pub body: String,
    /// When it runs.
    pub runs: &'static str,
    /// Headers that it finds.
    pub headers: Vec<&'static str>,
    /// Fields and variables that it reads.
    pub reads: Vec<String>,
}

/// A place where packets wait for their turn.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Its number.
    pub point: usize,
    /// In which table's rules.
    pub table: String,
    /// What has to happen in the order of packets.
    pub waits_for: &'static str,
    /// The zone that packets are prepared in for the burst.
    pub prepared_zone: Option<u16>,
}

/// A copy of a packet.
#[derive(Clone, Debug, Serialize)]
pub struct Copy {
    /// In which code.
    pub body: String,
    /// In which table's rules.
    pub table: String,
    /// Why.
    pub why: &'static str,
}

/// A way of a packet.
#[derive(Clone, Debug, Serialize)]
pub struct Path {
    /// The code it goes through.
    pub through: Vec<String>,
    /// Estimated cycles, with receiving and sending.
    pub estimated_cycles: Cycles,
}

/// Explains a plan. `report` is of the same run of `plan`.
pub fn explain(program: &Program, plan: &Plan, report: &Report) -> Explanation {
    let costs = Costs::new(plan);
    let table = |id: usize| Table {
        table: program.tables[id].name.clone(),
        rules: program.tables[id].rules.len(),
        keyed: program.tables[id].keyed.as_ref().map(|keyed| KeyedTable::of(program, keyed)),
        merged: report.merged.iter().find(|merged| merged.table == TableId(id as u16)).map(|merged| Merged {
            with: merged.with.iter().map(|table| words::table(program, *table).to_string()).collect(),
            rules: merged.rules,
            cycles: merged.cycles.round() as u64,
            apart: merged.apart.round() as u64,
        }),
        places: alike(report.of(TableId(id as u16)).map(|decision| place(program, &costs, decision))),
    };
    let waits_for = plan.points.iter().map(|body| why_it_waits(body).unwrap_or("what other packets change"));
    let points = report.points.iter().zip(waits_for).enumerate().map(|(i, (point, waits_for))| Point {
        point: i,
        table: words::table(program, point.table).to_string(),
        waits_for,
        prepared_zone: point.zone,
    });
    let copies = report.copies.iter().map(|copied| Copy {
        body: body_name(program, copied.body),
        table: words::table(program, copied.table).to_string(),
        why: copied.why,
    });
    Explanation {
        pipeline: program.name.clone(),
        tables: (0..program.tables.len()).map(table).collect(),
        bodies: parts(program, plan, report),
        points: points.collect(),
        prepared_zones: plan.prepares.clone(),
        copies: copies.collect(),
        in_order: report.in_order.clone(),
        paths: paths(plan, &costs),
        prices: PRICES.iter().copied().collect(),
    }
}

impl Explanation {
    /// The names of a table's classifiers, each once, in order.
    pub fn classifiers(&self, table: &str) -> Vec<&'static str> {
        let mut names: Vec<&'static str> = Vec::new();
        for place in self.tables.iter().filter(|t| t.table == table).flat_map(|t| &t.places) {
            if !names.contains(&place.classifier) && place.classifier != "call" {
                names.push(place.classifier);
            }
        }
        names
    }
}

/// Places, those that are alike counted.
fn alike(places: impl Iterator<Item = Place>) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for place in places {
        match found.iter_mut().find(|known| Place { times: 1, ..(**known).clone() } == place) {
            Some(known) => known.times += 1,
            None => found.push(place),
        }
    }
    found
}

fn body_name(program: &Program, body: Body) -> String {
    match body {
        Body::Prefix => "prefix".to_string(),
        Body::Point(point) => format!("point {point}"),
        Body::Function(table) => format!("function {}", words::table(program, table)),
    }
}

fn place(program: &Program, costs: &Costs<'_>, decision: &Decision) -> Place {
    let name = words::table(program, decision.table);
    let mut data = None;
    let flat = |cycles| Range { least: cycles, most: cycles };
    let (classifier, why, worst_case, range) = match decision.classifier {
        Classifier::Direct => {
            let why = "what is known of the packet there says which rule it takes".to_string();
            ("direct", why, "no test".to_string(), flat(0))
        }
        Classifier::Tree { depth, ends } => {
            let why = format!("its rules are told apart by a small tree: {ends} ends");
            let most = u64::from(depth) * (cost::OP + cost::BRANCH);
            ("tree", why, count(depth as usize, "test"), Range { least: cost::OP + cost::BRANCH, most })
        }
        Classifier::Chain { tests } => {
            let why = "its rules are tried one after another".to_string();
            let most = u64::from(tests) * (cost::OP + cost::BRANCH);
            ("chain", why, count(tests as usize, "test"), Range { least: cost::OP + cost::BRANCH, most })
        }
        Classifier::Lookup { table, guard, cycles } => {
            let shape = &costs.shapes()[usize::from(table)];
            let why = match shape.classifier {
                "lpm" | "lpm6" => "its rules are prefixes of one field, longer ones first".to_string(),
                "index" => "its key has so few bits that an array holds all of them".to_string(),
                "hash" => "all its entries have one mask: a hash table".to_string(),
                "ranges" => "its entries are intervals of one field".to_string(),
                "bit-vector" => format!("its entries have many masks: {}", shape.masks),
                _ => format!("its entries have few masks: {}", shape.masks),
            };
            let why = format!("{why}; predicted {cycles:.0} cycles a packet");
            let (entries, masks, key_words, memory) = (shape.entries, shape.masks, shape.key_words, shape.memory);
            data = Some(Data { entries, masks, key_words, memory });
            let before = u64::from(guard) * (cost::OP + cost::BRANCH);
            let worst = match guard {
                0 => shape.probes.clone(),
                guard => format!("{} that all rules share, {}", count(guard as usize, "test"), shape.probes),
            };
            let range = Range { least: shape.least + before, most: shape.most + before };
            (shape.classifier, why, worst, range.and(flat(cost::SWITCH)))
        }
        Classifier::Keyed { table, ordered } => {
            let shape = &costs.shapes()[usize::from(table)];
            let (entries, masks, key_words, memory) = (shape.entries, shape.masks, shape.key_words, shape.memory);
            data = Some(Data { entries, masks, key_words, memory });
            let range = Range { least: shape.least, most: shape.most };
            let range = if ordered { range.and(flat(cost::OTHER)) } else { range };
            (shape.classifier, keyed::why(shape, ordered), shape.probes.clone(), range.and(flat(cost::SWITCH)))
        }
        Classifier::Call => {
            let why = "it is a function of its own, called from here".to_string();
            (
                "call",
                why,
                "what the function looks at".to_string(),
                costs.function(name).unwrap_or(flat(0)).and(flat(cost::CALL)),
            )
        }
    };
    let rejected = decision.rejected.iter().map(|(classifier, why)| Rejected { classifier, why: why.clone() });
    Place {
        body: body_name(program, decision.body),
        times: 1,
        open_rules: decision.open,
        classifier,
        why,
        rejected: rejected.collect(),
        worst_case,
        data,
        estimated_cycles: range.into(),
    }
}

/// `1 test`, `2 tests`.
fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn parts(program: &Program, plan: &Plan, report: &Report) -> Vec<Part> {
    let part = |body: Body, runs, code: &[Stmt]| {
        let reads = report.reads.get(&body).map_or(&[][..], Vec::as_slice);
        let reads = reads.iter().map(|place| words::place(program, *place)).collect();
        Part { body: body_name(program, body), runs, headers: headers(code), reads }
    };
    let ahead: Vec<Stmt> =
        plan.prefix.iter().chain(plan.stages.iter().flat_map(|stage| &stage.body)).cloned().collect();
    let mut parts = vec![part(Body::Prefix, "for the whole burst, ahead", &ahead)];
    for (i, code) in plan.points.iter().enumerate() {
        parts.push(part(Body::Point(i.min(254) as u8), "packet by packet, in order", code));
    }
    for function in &plan.functions {
        let table = program.tables.iter().position(|table| table.name == function.name).unwrap_or(0);
        parts.push(part(Body::Function(TableId(table as u16)), "where it is called", &function.body));
    }
    parts
}

/// The headers that code finds, outermost first.
fn headers(code: &[Stmt]) -> Vec<&'static str> {
    let mut found = [false; 4];
    visit::each_in(code, &mut |expr| match expr {
        Expr::L2 => found[0] = true,
        Expr::Arp(_) => found[1] = true,
        Expr::L3 { .. } => found[2] = true,
        Expr::L4 { .. } => found[3] = true,
        _ => {}
    });
    let names = ["Ethernet and tags", "ARP", "IP", "transport"];
    names.into_iter().zip(found).filter(|(_, found)| *found).map(|(name, _)| name).collect()
}

/// The first thing in a point's code that has to happen in order.
fn why_it_waits(code: &[Stmt]) -> Option<&'static str> {
    code.iter().find_map(|stmt| match stmt {
        Stmt::Ct { .. } => Some("connection tracking"),
        Stmt::Normal { .. } => Some("learning addresses"),
        Stmt::Meter { .. } => Some("a meter"),
        Stmt::Find { ordered: true, .. } => Some("entries that come and go with packets or time"),
        Stmt::Learn { .. } => Some("entries that packets make"),
        Stmt::Call { .. } => Some("a table that tracks connections or learns"),
        Stmt::If { then, otherwise, .. } => why_it_waits(then).or_else(|| why_it_waits(otherwise)),
        Stmt::Block(_, body) => why_it_waits(body),
        Stmt::Switch { cases, .. } => cases.iter().find_map(|case| why_it_waits(case)),
        _ => None,
    })
}

/// Ways of packets: those that end in the prefix, and those through each point.
fn paths(plan: &Plan, costs: &Costs<'_>) -> Vec<Path> {
    let io = Range { least: cost::IO, most: cost::IO };
    let mut paths = Vec::new();
    let mut open: Vec<(Vec<String>, Range, Exit)> = Vec::new();
    for (exit, range) in costs.body(&plan.prefix) {
        open.push((vec!["prefix".to_string()], io.and(range), exit));
    }
    open.reverse();
    while let Some((through, range, exit)) = open.pop() {
        match exit {
            // A point may lead to a later one, never to itself.
            Exit::Gathers(stage) if through.len() < 8 => {
                let code = plan.stages.get(usize::from(stage)).map_or(&[][..], |stage| &stage.body);
                for (exit, own) in costs.body(code) {
                    let mut through = through.clone();
                    through.push(format!("look-up {stage}"));
                    open.push((through, range.and(costs.stage(stage)).and(own), exit));
                }
            }
            Exit::Waits(point) if through.len() < 8 => {
                let code = plan.points.get(usize::from(point)).map_or(&[][..], Vec::as_slice);
                for (exit, own) in costs.body(code) {
                    let mut through = through.clone();
                    through.push(format!("point {point}"));
                    open.push((through, range.and(own), exit));
                }
            }
            _ => paths.push(Path { through, estimated_cycles: range.into() }),
        }
    }
    paths
}
