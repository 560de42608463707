//! A picture of a pipeline: tables as boxes, what leads from one to another as edges, ports where packets leave.
//!
//! In: a program, and what was decided about its tables. Out: SVG, laid out by [`layout`], or the language of Graphviz. Both are
//! the same for the same program, byte by byte. Never: a browser, or a library that draws.

mod dot;
mod layout;
mod svg;

use std::collections::BTreeMap;

use crate::explain::Explanation;
use crate::hir::{Action, Keyed, PortId, Program, TableId, Value};
use crate::words;

pub use dot::dot;
pub use svg::svg;

/// Tables up to which ports have boxes of their own; with more, tables name the ports they send to.
const FEW_TABLES: usize = 14;
/// Ports up to which that is so.
const FEW_PORTS: usize = 12;

/// What a box stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Where packets begin.
    Start,
    /// A table.
    Table,
    /// A port, or all of them, where packets leave.
    Port,
}

/// A box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Lines of text; the first is its name.
    pub lines: Vec<String>,
    /// More about it, for those who point at it.
    pub detail: String,
}

/// How an edge is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The first table.
    Start,
    /// `goto`
    Goto,
    /// `goto` behind a `ct`
    Ct,
    /// `call`: it comes back.
    Call,
    /// It is sent there.
    Output,
}

/// An edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Which box it comes from.
    pub from: usize,
    /// Which box it leads to.
    pub to: usize,
    /// How.
    pub way: Way,
    /// In how many rules it stands.
    pub rules: usize,
}

impl Edge {
    /// What stands at it.
    pub fn label(&self) -> String {
        let name = match self.way {
            Way::Start => return String::new(),
            Way::Goto => "goto",
            Way::Ct => "ct, goto",
            Way::Call => "call",
            Way::Output => "output",
        };
        if self.rules == 1 { name.to_string() } else { format!("{name} \u{d7}{}", self.rules) }
    }
}

/// Boxes and edges of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The pipeline's name.
    pub name: String,
    /// Boxes; the first is where packets begin.
    pub nodes: Vec<Node>,
    /// Edges, in order of their boxes.
    pub edges: Vec<Edge>,
}

/// What one table's rules do, counted in rules.
#[derive(Default)]
struct Ends {
    tables: BTreeMap<(Way, TableId), usize>,
    ports: BTreeMap<PortId, usize>,
    others: BTreeMap<&'static str, usize>,
    drops: usize,
}

impl Ends {
    /// Ports that entries name, where an action sends to a parameter; packets may name any.
    fn given_ports(&mut self, program: &Program, keyed: Option<&Keyed>, rule: usize, actions: &[Action]) {
        let Some(keyed) = keyed.filter(|keyed| !keyed.learned && !keyed.entries.is_empty()) else { return };
        let params: Vec<usize> = actions.iter().filter_map(sent_to_param).collect();
        let computed =
            actions.iter().filter(|action| matches!(action, Action::OutputTo(_) | Action::OutputPart { .. }));
        if params.is_empty() || computed.count() > params.len() {
            return;
        }
        self.others.remove("computed port");
        for entry in keyed.entries.iter().filter(|entry| usize::from(entry.action) == rule) {
            let ports = params.iter().filter_map(|param| program.port_numbered(*entry.args.get(*param)?));
            self.ports.extend(ports.map(|port| (port, 1)));
        }
    }
}

fn sent_to_param(action: &Action) -> Option<usize> {
    match action {
        Action::OutputTo(Value::Param(param, ..)) | Action::OutputPart { port: Value::Param(param, ..), .. } => {
            Some(usize::from(*param))
        }
        _ => None,
    }
}

/// The boxes and edges of a program.
pub fn graph(program: &Program, explanation: &Explanation) -> Graph {
    let all: Vec<Ends> = program.tables.iter().map(|table| ends(program, table)).collect();
    let boxed = program.tables.len() <= FEW_TABLES && program.ports.len() <= FEW_PORTS;
    let ports: Vec<&str> = program.ports.iter().map(|port| port.name.as_str()).collect();
    let mut nodes = vec![Node { kind: Kind::Start, lines: vec![short(&ports.join(", "))], detail: ports.join(", ") }];
    let mut edges = vec![Edge { from: 0, to: 1 + usize::from(program.entry.0), way: Way::Start, rules: 1 }];
    for (i, (table, ends)) in program.tables.iter().zip(&all).enumerate() {
        let mut lines = vec![table.name.clone(), summary(program, explanation, i)];
        lines.extend(said(program, ends, boxed));
        let detail: Vec<&str> = table.rules.iter().take(MAX_DETAIL).map(|rule| rule.text.as_str()).collect();
        nodes.push(Node { kind: Kind::Table, lines, detail: detail.join("\n") });
        for ((way, to), rules) in &ends.tables {
            edges.push(Edge { from: 1 + i, to: 1 + usize::from(to.0), way: *way, rules: *rules });
        }
    }
    if boxed {
        add_ports(program, &all, &mut nodes, &mut edges);
    }
    Graph { name: program.name.clone(), nodes, edges }
}

/// Rules that the detail of a table shows.
const MAX_DETAIL: usize = 30;

/// `12 rules, lpm`.
fn summary(program: &Program, explanation: &Explanation, table: usize) -> String {
    let rules = program.tables[table].rules.len();
    let name = &program.tables[table].name;
    let mut classifiers = explanation.classifiers(name).join("/");
    if explanation.tables.iter().any(|t| t.table == *name && t.places.is_empty()) {
        classifiers = "not reached".to_string();
    }
    let rules = match &program.tables[table].keyed {
        Some(keyed) if keyed.learned => "learned".to_string(),
        Some(keyed) if keyed.entries.len() == 1 => "1 entry".to_string(),
        Some(keyed) => format!("{} entries", keyed.entries.len()),
        None if rules == 1 => "1 rule".to_string(),
        None => format!("{rules} rules"),
    };
    classifiers = if classifiers == rules { String::new() } else { classifiers };
    if classifiers.is_empty() { rules } else { format!("{rules}, {classifiers}") }
}

/// What a table's box says of where packets end.
fn said(program: &Program, ends: &Ends, boxed: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let counted = |name: &str, n: usize| if n == 1 { name.to_string() } else { format!("{name} \u{d7}{n}") };
    let mut sent: Vec<String> = ends.others.iter().map(|(name, n)| counted(name, *n)).collect();
    if !boxed {
        sent.extend(ends.ports.iter().map(|(port, n)| counted(&words::port(program, *port), *n)));
    }
    if !sent.is_empty() {
        lines.push(short(&format!("\u{2192} {}", sent.join(", "))));
    }
    if ends.drops > 0 {
        lines.push(counted("drop", ends.drops));
    }
    lines
}

/// A text that fits into a box.
fn short(text: &str) -> String {
    const MOST: usize = 30;
    if text.chars().count() <= MOST {
        return text.to_string();
    }
    text.chars().take(MOST - 1).chain(['\u{2026}']).collect()
}

/// Boxes for the ports that packets are sent to.
fn add_ports(program: &Program, all: &[Ends], nodes: &mut Vec<Node>, edges: &mut Vec<Edge>) {
    for (i, port) in program.ports.iter().enumerate() {
        let id = PortId(i as u16);
        if !all.iter().any(|ends| ends.ports.contains_key(&id)) {
            continue;
        }
        let detail = format!("port {}", port.number);
        nodes.push(Node { kind: Kind::Port, lines: vec![port.name.clone()], detail });
        for (table, ends) in all.iter().enumerate() {
            if let Some(rules) = ends.ports.get(&id) {
                edges.push(Edge { from: 1 + table, to: nodes.len() - 1, way: Way::Output, rules: *rules });
            }
        }
    }
}

fn ends(program: &Program, table: &crate::hir::Table) -> Ends {
    let mut ends = Ends::default();
    for (number, rule) in table.rules.iter().enumerate() {
        // What one rule does twice is counted once.
        let mut own = Ends::default();
        follow(program, &rule.actions, false, &mut own);
        own.given_ports(program, table.keyed.as_ref(), number, &rule.actions);
        own.tables.into_keys().for_each(|key| *ends.tables.entry(key).or_default() += 1);
        own.ports.into_keys().for_each(|key| *ends.ports.entry(key).or_default() += 1);
        own.others.into_keys().for_each(|key| *ends.others.entry(key).or_default() += 1);
        ends.drops += usize::from(rule.actions.is_empty() || own.drops > 0);
    }
    ends
}

fn follow(program: &Program, actions: &[Action], mut tracked: bool, ends: &mut Ends) {
    for action in actions {
        match action {
            Action::Ct(_) => tracked = true,
            Action::CtClear => tracked = false,
            Action::Goto(to) => {
                ends.tables.insert((if tracked { Way::Ct } else { Way::Goto }, *to), 1);
            }
            Action::Call { table, .. } => {
                ends.tables.insert((Way::Call, *table), 1);
            }
            Action::Clone(body) => follow(program, body, tracked, ends),
            Action::Group(group) => {
                program.group(*group).buckets.iter().for_each(|bucket| follow(program, &bucket.actions, tracked, ends));
            }
            Action::OutputTo(_) | Action::OutputPart { .. } => {
                ends.others.insert("computed port", 1);
            }
            Action::Controller { .. } => {
                ends.others.insert("controller", 1);
            }
            Action::Output(port) | Action::Mirror(port) => {
                ends.ports.insert(*port, 1);
            }
            Action::InPort => {
                ends.others.insert("in_port", 1);
            }
            Action::Flood => {
                ends.others.insert("flood", 1);
            }
            Action::All => {
                ends.others.insert("all", 1);
            }
            Action::Normal => {
                ends.others.insert("normal", 1);
            }
            Action::Drop => ends.drops = 1,
            _ => {}
        }
    }
}
