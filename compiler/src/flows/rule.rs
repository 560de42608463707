//! One line: a rule as `ovs-ofctl add-flows` reads it, or as `dump-flows` prints it.

use std::borrow::Cow;

use super::actions::{self, Scope};
use super::matches::{self, Match};
use super::ports::Ports;
use super::report::Report;
use super::text::{Item, Items, Piece};
use super::values::number;
use crate::diag::Diagnostic;
use crate::hir::Action;
use crate::source::Span;

/// Priority of a rule that does not say.
const PRIORITY: u32 = 32768;

/// A rule; tables and ports in its actions have provisional ids.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its table's number.
    pub table: u8,
    /// Its priority.
    pub priority: u32,
    /// When it holds.
    pub matches: Match,
    /// What it does.
    pub actions: Vec<Action>,
    /// The line.
    pub span: Span,
}

/// What a dump prints, and what means nothing to us: statistics, and flags about them.
const IGNORED: &[&str] = &[
    "cookie",
    "duration",
    "n_packets",
    "n_bytes",
    "idle_age",
    "hard_age",
    "importance",
    "send_flow_rem",
    "check_overlap",
    "reset_counts",
    "no_packet_counts",
    "no_byte_counts",
    "allow_hidden_fields",
];

/// A line without its comment and blanks around it.
pub fn without_comment(line: Piece) -> Piece {
    line.text.find('#').map_or(line, |at| line.slice(0, at)).trim()
}

/// Reads a line. Nothing comes of blank lines, comments, heads of dumps, and lines with errors.
pub fn parse(line: Piece, ports: &mut Ports, report: &mut Report) -> Option<Rule> {
    let head = |name| line.text.starts_with(name) && line.text.contains(" reply");
    if line.text.is_empty() || head("NXST_FLOW") || head("OFPST_FLOW") {
        return None;
    }
    let mut rule = Rule { table: 0, priority: PRIORITY, matches: Match::default(), actions: vec![], span: line.span() };
    let (items, actions) = report.ok(split(line))?;
    let mut fields = Vec::with_capacity(items.len());
    for item in items {
        let result = rule.attribute(&item, report);
        match report.ok(result) {
            Some(true) | None => {}
            Some(false) => fields.push(item),
        }
    }
    rule.matches = matches::parse(&fields, report);
    let mut scope = Scope { matches: Cow::Borrowed(&rule.matches), table: rule.table, ports, report };
    rule.actions = actions::parse(actions, &mut scope);
    for entry in rule.matches.entries() {
        if entry.key == matches::Key::Field(crate::field::Field::InPort) {
            ports.id(entry.value as u32);
        }
    }
    Some(rule)
}

/// The items before `actions=`, and what stands behind it.
fn split(line: Piece) -> Result<(Vec<Item>, Piece), Diagnostic> {
    let mut fields = Vec::new();
    let mut items = Items::new(line);
    let mut before = items.rest();
    while let Some(item) = items.next() {
        let item = item?;
        if item.value.is_some() && (item.key.is("actions") || item.key.is("action")) {
            // Actions have commas in them: all that is left belongs to them.
            let start = before.text.len() - before.text.trim_start_matches([' ', ',', '\t', '\r']).len();
            return Ok((fields, before.skip(start + item.key.text.len() + 1)));
        }
        before = items.rest();
        let command = fields.is_empty() && item.value.is_none();
        match item.key.text {
            "add" if command => {}
            "delete" | "delete_strict" | "modify" | "modify_strict" if command => {
                let message = format!("`{}` changes rules of a running switch", item.key.text);
                return Err(item.key.error("flow-syntax", message, "a program can only add rules"));
            }
            _ => fields.push(item),
        }
    }
    Err(line
        .error("no-actions", "a rule without actions", "`actions=` expected at its end")
        .help("write `actions=drop` for a rule that drops"))
}

impl Rule {
    /// Takes an item that is not part of the match. False: it is.
    fn attribute(&mut self, item: &Item, report: &mut Report) -> Result<bool, Diagnostic> {
        match item.key.text {
            "table" => self.table = actions::table(item.needs_value("a table")?)?,
            "priority" => self.priority = number(item.needs_value("a number")?, 16)? as u32,
            "idle_timeout" | "hard_timeout" => {
                if number(item.needs_value("seconds")?, 16)? != 0 {
                    let message = format!("`{}` has no effect: rules do not expire yet", item.key.text);
                    report.add(Diagnostic::warning("no-timeout", message, item.all.span(), "the rule stays"));
                }
            }
            name => return Ok(IGNORED.contains(&name)),
        }
        Ok(true)
    }
}
