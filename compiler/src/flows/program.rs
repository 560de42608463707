//! Rules in, a program out: tables in the order of their numbers, rules by priority and then by line, ports and tables with
//! their final ids. Of rules with equal table, priority and match the last stays; others that overlap are warned of.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::names::metadata_name;
use super::overlap;
use super::ports::{Met, Ports};
use super::report::Report;
use super::rule::Rule;
use crate::diag::Diagnostic;
use crate::hir::{self, Action, Group, Meter, Place, Port, PortId, Program, Space, Table, TableId, Value, Variable};
use crate::source::Span;

/// Groups and meters of a file.
#[derive(Default)]
pub struct Declared {
    /// In the order of the source.
    pub groups: Vec<Group>,
    /// In the order of the source.
    pub meters: Vec<Meter>,
}

/// Places of groups or meters among those that are declared, for the ids that actions have.
fn ids(met: &Met, names: &[&str], what: &str, report: &mut Report) -> Vec<u16> {
    let place = |(number, span): &(u32, Span)| {
        let at = names.iter().rposition(|name| *name == number.to_string());
        if at.is_none() {
            let message = format!("no line declares the {what} {number}");
            let help = if what == "group" {
                "write `group_id=…,type=…,bucket=…` on a line of its own"
            } else {
                "write `meter=… pktps bands=type=drop rate=…` on a line of its own"
            };
            let error = Diagnostic::error("unsupported-action", message, *span, "used here");
            report.add(error.help(help));
        }
        at.unwrap_or_default() as u16
    };
    met.0.iter().map(place).collect()
}

/// Whether buckets lead from each group to groups before it only.
fn check_order(groups: &[Group], report: &mut Report) {
    for (g, group) in groups.iter().enumerate() {
        let later = |action: &Action| matches!(action, Action::Group(other) if usize::from(other.0) >= g);
        if group.buckets.iter().any(|bucket| bucket.actions.iter().any(later)) {
            let message = "a bucket uses a group that does not stand before its own";
            let error = Diagnostic::error("unsupported-action", message, group.span, "uses a later group");
            report.add(error.help("write the group that is used first"));
        }
    }
}

/// Makes a program of the rules of a file.
pub fn build(
    name: &str,
    rules: Vec<Rule>,
    declared: Declared,
    ports: &Ports,
    whole: Span,
    report: &mut Report,
) -> Program {
    let rules = without_replaced(rules, report);
    let mut places = Places::default();
    for action in declared.groups.iter().flat_map(|group| &group.buckets).flat_map(|bucket| &bucket.actions) {
        places.add(action);
    }
    let mut by_table: BTreeMap<u8, Vec<Rule>> = BTreeMap::from([(0, vec![])]);
    for rule in rules {
        rule.actions.iter().for_each(|action| places.add(action));
        rule.matches.entries().iter().for_each(|entry| places.add_match(entry));
        by_table.entry(rule.table).or_default().push(rule);
    }
    for &table in &places.tables {
        by_table.entry(table).or_default();
    }
    let mut headers = vec![];
    if places.labels {
        crate::standard::add(&mut headers, "mpls");
    }
    let (numbers, port_ids) = ports.sorted();
    let mut table_ids = [TableId(0); 256];
    for (id, &number) in by_table.keys().enumerate() {
        table_ids[usize::from(number)] = TableId(id as u16);
    }
    let names: Vec<&str> = declared.groups.iter().map(|group| group.name.as_str()).collect();
    let group_ids = ids(&ports.groups, &names, "group", report);
    let names: Vec<&str> = declared.meters.iter().map(|meter| meter.name.as_str()).collect();
    let meter_ids = ids(&ports.meters, &names, "meter", report);
    let ids = Ids { ports: &port_ids, tables: &table_ids, groups: &group_ids, meters: &meter_ids };
    let mut groups = declared.groups;
    for bucket in groups.iter_mut().flat_map(|group| &mut group.buckets) {
        bucket.watch = bucket.watch.map(|port| port_ids[usize::from(port.0)]);
        bucket.actions.iter_mut().for_each(|action| ids.settle(action));
    }
    check_order(&groups, report);
    let mut budget = overlap::BUDGET;
    let tables = by_table.into_iter().map(|(number, mut rules)| {
        rules.sort_by_key(|rule| Reverse(rule.priority));
        warn_of_overlaps(&rules, &mut budget, report);
        let span = rules.first().map_or(Span { start: 0, end: 0, ..whole }, |rule| rule.span);
        let rules = rules.into_iter().map(|rule| hir_rule(rule, &numbers, &ids)).collect();
        Table { name: number.to_string(), rules, span, keyed: None }
    });
    Program {
        name: name.into(),
        tables: tables.collect(),
        ports: numbers.iter().map(|&number| Port { name: number.to_string(), number }).collect(),
        metadata_words: places.words(),
        variables: places.variables(),
        groups,
        meters: declared.meters,
        headers,
        ..Program::default()
    }
}

/// Leaves out rules that a later line replaces.
fn without_replaced(rules: Vec<Rule>, report: &mut Report) -> Vec<Rule> {
    let mut last = HashMap::with_capacity(rules.len());
    let mut replaced = vec![false; rules.len()];
    for (i, rule) in rules.iter().enumerate() {
        if let Some(before) = last.insert((rule.table, rule.priority, &rule.matches), i) {
            replaced[before] = true;
            let message = "a later rule with the same table, priority and match replaces this one";
            let warning = Diagnostic::warning("replaced-rule", message, rules[before].span, "never used");
            report.add(warning.label(rule.span, "replaces it").help("leave out the first of the two"));
        }
    }
    let kept = rules.into_iter().zip(replaced).filter(|(_, replaced)| !replaced);
    kept.map(|(rule, _)| rule).collect()
}

/// Warns where which rule a packet takes depends on their order. The rules of one table, by priority.
fn warn_of_overlaps(rules: &[Rule], budget: &mut usize, report: &mut Report) {
    for group in rules.chunk_by(|a, b| a.priority == b.priority) {
        let matches: Vec<_> = group.iter().map(|rule| &rule.matches).collect();
        let mut pairs = Vec::new();
        overlap::find(&matches, budget, |first, second| {
            if group[first].actions != group[second].actions {
                pairs.push((first, second));
            }
        });
        pairs.sort_unstable();
        for (first, second) in pairs {
            let message = "two rules of the same priority match some of the same packets";
            let warning =
                Diagnostic::warning("overlapping-rules", message, group[second].span, "used for the others only");
            let help = "give one of them a higher priority; in Open vSwitch either may be used";
            report.add(warning.label(group[first].span, "used for packets that match both").help(help));
        }
    }
}

fn hir_rule(rule: Rule, numbers: &[u32], ids: &Ids) -> hir::Rule {
    let Rule { priority, matches, mut actions, span, .. } = rule;
    actions.iter_mut().for_each(|action| ids.settle(action));
    let cond = matches.cond(|number| numbers.partition_point(|&other| other < number) as u16);
    hir::Rule { priority, cond, actions, text: String::new(), span }
}

/// Final ids for provisional ones.
struct Ids<'a> {
    ports: &'a [PortId],
    tables: &'a [TableId; 256],
    groups: &'a [u16],
    meters: &'a [u16],
}

impl Ids<'_> {
    fn settle(&self, action: &mut Action) {
        let table = |id: TableId| self.tables[usize::from(id.0)];
        let port = |id: PortId| self.ports[usize::from(id.0)];
        match action {
            Action::Output(id) => *id = port(*id),
            Action::Call { table: id, in_port } => {
                *id = table(*id);
                *in_port = in_port.map(port);
            }
            Action::Goto(id) => *id = table(*id),
            Action::Group(id) => id.0 = self.groups[usize::from(id.0)],
            Action::Meter(id) => id.0 = self.meters[usize::from(id.0)],
            Action::Clone(actions) => actions.iter_mut().for_each(|action| self.settle(action)),
            _ => {}
        }
    }
}

/// What tables and which metadata the rules speak of.
#[derive(Default)]
struct Places {
    tables: BTreeSet<u8>,
    meta: BTreeSet<(u16, u8)>,
    /// Labels of MPLS are read or written.
    labels: bool,
}

impl Places {
    fn add(&mut self, action: &Action) {
        match action {
            Action::Call { table, .. } | Action::Goto(table) => {
                self.tables.insert(table.0 as u8);
            }
            Action::Clone(actions) => actions.iter().for_each(|action| self.add(action)),
            Action::Set { place, value } => {
                self.add_place(*place);
                self.add_value(value);
            }
            Action::Ct(ct) => self.add_value(&ct.zone),
            Action::OutputTo(value) => self.add_value(value),
            Action::SetVlan { value, .. } => self.add_value(value),
            Action::DecMplsTtl { .. } => self.labels = true,
            _ => {}
        }
    }

    fn add_value(&mut self, value: &Value) {
        match value {
            Value::Const(_) | Value::Param(_) => {}
            Value::Read(place) => self.add_place(*place),
            Value::Arith(_, left, right) => {
                self.add_value(left);
                self.add_value(right);
            }
            Value::Hash(values) => values.iter().for_each(|value| self.add_value(value)),
        }
    }

    fn add_place(&mut self, place: Place) {
        match place.space {
            Space::Meta => self.add_bits(place.offset, u16::from(place.width)),
            Space::Header(_) => self.labels = true,
            Space::Field(_) => {}
        }
    }

    fn add_match(&mut self, entry: &super::matches::Entry) {
        self.labels |= entry.key == super::matches::Key::Mpls;
        if let super::matches::Key::Word(word) = entry.key {
            let first = entry.mask.leading_zeros() as u16 - 64;
            let last = 63 - entry.mask.trailing_zeros() as u16;
            self.add_bits(word * 64 + first, last - first + 1);
        }
    }

    /// Adds the registers, or the metadata, that these bits lie in.
    fn add_bits(&mut self, offset: u16, width: u16) {
        let unit = |offset: u16| if offset < 512 { (offset / 32 * 32, 32) } else { (512, 64) };
        for bit in offset..offset + width {
            self.meta.insert(unit(bit));
        }
    }

    fn words(&self) -> u16 {
        self.meta.last().map_or(0, |(offset, _)| offset / 64 + 1)
    }

    fn variables(&self) -> Vec<Variable> {
        let variable = |&(offset, width): &(u16, u8)| Variable {
            name: metadata_name(offset, width),
            place: Place { space: Space::Meta, offset, width },
        };
        self.meta.iter().map(variable).collect()
    }
}
