//! Keyed tables: what their entries look like, and the bodies of their actions. Entries themselves are next door.
//!
//! What a table's entries look like is found out before any table is resolved, since `learn` may name a table that stands
//! further down.

use std::rc::Rc;

use pipec_abi::table::{MAX_ARGS, MAX_WORDS, Part, Shape};

use super::Resolver;
use super::action::{Actions, Bound, Scope};
use super::built_in::simple;
use super::marks::{ActionMark, ReadMark, RuleMarks};
use super::names::duplicate;
use crate::ast::{self, ExprKind, KeyedStmt, Name, Spanned};
use crate::constant::max;
use crate::diag::Diagnostic;
use crate::field::{Header, Kind};
use crate::hir::{self, Action, Cond, KeyPart, KeyedAction, MatchKind, Param, Read, View};
use crate::source::Span;

/// Entries of a table that does not say how many.
const DEFAULT_SIZE: u32 = 1024;
/// Entries of a table, at the most.
const MAX_SIZE: u128 = 1 << 24;

/// What entries of a keyed table look like.
#[derive(Debug)]
pub struct Signature<'a> {
    /// The parts of the key, and where they stand.
    pub key: Vec<(KeyPart, Span)>,
    /// The actions that entries may name, with their declarations and places.
    pub actions: Vec<TableAction<'a>>,
    /// How many entries, and where that stands.
    pub size: (u32, Option<Span>),
    /// Idle and hard time.
    pub times: (u64, u64),
    /// Packets make the entries.
    pub learned: Option<Span>,
}

/// An action of a keyed table.
#[derive(Clone, Debug)]
pub struct TableAction<'a> {
    /// What entries see.
    pub action: KeyedAction,
    /// The declaration; none for a built-in action.
    pub decl: Option<&'a ast::ActionDecl>,
    /// Where the table names it.
    pub span: Span,
}

impl Signature<'_> {
    /// Whether entries may have priorities.
    pub fn has_priorities(&self) -> bool {
        self.key.iter().any(|(part, _)| part.kind.has_priority())
    }

    fn shape(&self) -> Shape {
        let parts = self.key.iter().map(|(part, _)| Part { width: part.read.place.width, kind: part.kind }).collect();
        let (size, args) = (self.size.0, 0);
        Shape { parts, args, size, idle_ns: 0, hard_ns: 0, timed_entries: false, learned: false }
    }
}

impl<'a> Resolver<'a> {
    /// Finds out what the entries of every keyed table look like.
    pub fn signatures(&mut self, ast: &'a ast::Pipeline) {
        for item in &ast.items {
            if let ast::Item::Table(table) = item
                && !table.keyed.is_empty()
            {
                match self.signature(table) {
                    Some(signature) => drop(self.keyed.insert(&table.name.node, Rc::new(signature))),
                    None => drop(self.broken_tables.insert(&table.name.node)),
                }
            }
        }
    }

    fn signature(&mut self, table: &'a ast::Table) -> Option<Signature<'a>> {
        let known = self.diagnostics.len();
        let mut signature =
            Signature { key: vec![], actions: vec![], size: (DEFAULT_SIZE, None), times: (0, 0), learned: None };
        let mut seen: Vec<(&str, Span)> = vec![];
        for stmt in &table.keyed {
            if let Some(word) = once(&stmt.node) {
                if let Some((_, first)) = seen.iter().find(|(name, _)| *name == word) {
                    let message = format!("`{word}` stands twice in this table");
                    self.push(
                        Diagnostic::error("duplicate", message, stmt.span, "again here").label(*first, "first here"),
                    );
                }
                seen.push((word, stmt.span));
            }
            self.signature_stmt(stmt, &mut signature);
        }
        for (word, what) in [("key", "what packets are looked up by"), ("actions", "what entries may do")] {
            if !seen.iter().any(|(name, _)| *name == word) {
                let message = format!("the keyed table `{}` does not say {what}", table.name.node);
                self.push(Diagnostic::error("keyed-table", message, table.name.span, format!("no `{word}`")).help(
                    match word {
                        "key" => "write `key ipv4.dst: lpm;`, with the fields and kinds that are meant",
                        _ => "write `actions NAME, drop;`, with actions of the program",
                    },
                ));
            }
        }
        if let Some(rule) = table.rules.first() {
            let first = table.keyed.first().map_or(table.name.span, |stmt| stmt.span);
            let message = "a table has either rules or a key and entries";
            self.push(
                Diagnostic::error("keyed-table", message, rule.span, "a rule")
                    .label(first, "makes it a keyed table")
                    .help(
                        "put the rules into a table of their own; what happens without an entry is said by `default`",
                    ),
            );
        }
        self.check_learned(&signature);
        if signature.shape().words() > MAX_WORDS {
            let message = format!("this key is too wide: at most {} bits", MAX_WORDS * 64);
            self.error("too-many", message, table.name.span, "the key of this table");
        }
        let errors = self.diagnostics[known..].iter().any(|d| d.severity == crate::diag::Severity::Error);
        (!errors).then_some(signature)
    }

    fn signature_stmt(&mut self, stmt: &'a Spanned<KeyedStmt>, signature: &mut Signature<'a>) {
        match &stmt.node {
            KeyedStmt::Key(parts) => {
                signature.key = parts.iter().filter_map(|part| self.key_part(part)).collect();
                let lpm: Vec<Span> =
                    signature.key.iter().filter(|(p, _)| p.kind == MatchKind::Lpm).map(|(_, span)| *span).collect();
                if let [first, second, ..] = lpm[..] {
                    let message = "a key has at most one part that is matched by the longest prefix";
                    self.push(
                        Diagnostic::error("keyed-table", message, second, "a second one")
                            .label(first, "the first one")
                            .help("match it as `ternary`, with priorities"),
                    );
                }
            }
            KeyedStmt::Actions(names) => {
                for name in names {
                    if let Some(first) = signature.actions.iter().find(|a| a.action.name == name.node) {
                        let first = first.span;
                        self.push(duplicate("action", name, first));
                    } else if let Some(action) = self.table_action(name) {
                        signature.actions.push(action);
                    }
                }
            }
            KeyedStmt::Size(size) => match size.node {
                ExprKind::Number { value, .. } if (1..=MAX_SIZE).contains(&value) => {
                    signature.size = (value as u32, Some(stmt.span));
                }
                _ => {
                    let message = format!("a table holds 1 to {MAX_SIZE} entries");
                    self.error("value-too-big", message, size.span, "out of range");
                }
            },
            KeyedStmt::Idle(ns) => signature.times.0 = *ns,
            KeyedStmt::Hard(ns) => signature.times.1 = *ns,
            KeyedStmt::Learned => signature.learned = Some(stmt.span),
            KeyedStmt::Default(_) | KeyedStmt::Entries(_) | KeyedStmt::From(_) => {}
        }
    }

    fn check_learned(&mut self, signature: &Signature<'a>) {
        let Some(learned) = signature.learned else { return };
        if let Some((part, span)) = signature.key.iter().find(|(part, _)| part.kind != MatchKind::Exact) {
            let message = format!("packets make entries of exact keys, but `{}` is matched otherwise", part.name);
            self.push(
                Diagnostic::error("keyed-table", message, *span, part.kind.name())
                    .label(learned, "packets make the entries")
                    .help(format!("write `{}: exact`", part.name)),
            );
        }
    }

    fn key_part(&mut self, part: &ast::KeyPart) -> Option<(KeyPart, Span)> {
        let name = part.name.node.as_str();
        let Some((place, kind, _, header)) = self.readable(name) else {
            match self.names.symbol(name) {
                Some(symbol) => {
                    let what = symbol.map_or("name", |symbol| symbol.what());
                    let message = format!("the {what} `{name}` cannot be part of a key");
                    self.error("not-a-field", message, part.name.span, "not a field or variable");
                }
                None => self.names.unknown("field", &part.name, &mut self.diagnostics),
            }
            return None;
        };
        let Some(how) = MatchKind::by_name(&part.kind.node) else {
            let message = format!("there is no kind of match `{}`", part.kind.node);
            let names: Vec<&str> = MatchKind::NAMES.iter().map(|(name, _)| *name).collect();
            let help = match crate::suggest::closest(&part.kind.node, names.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("kinds are {}", names.join(", ")),
            };
            self.push(Diagnostic::error("unknown-name", message, part.kind.span, "not known").help(help));
            return None;
        };
        if kind == Kind::Port && matches!(how, MatchKind::Lpm | MatchKind::Range | MatchKind::Ternary) {
            let message = format!("`{name}` has neither order nor bits to mask");
            self.push(
                Diagnostic::error("wrong-kind", message, part.name.span, "a port")
                    .label(part.kind.span, "needs a number")
                    .help("match ports as `exact` or `optional`"),
            );
            return None;
        }
        let read = Read { place, view: View::Table };
        let span = part.name.span.to(part.kind.span);
        let header = header.filter(|header| *header != Header::Eth);
        Some((KeyPart { name: name.into(), read, header, kind: how, value: kind }, span))
    }

    /// An action that a keyed table names.
    pub fn table_action(&mut self, name: &'a Name) -> Option<TableAction<'a>> {
        let keyed = |params| KeyedAction { name: name.node.clone(), params, entries: true };
        if simple(&name.node).is_some() {
            return Some(TableAction { action: keyed(vec![]), decl: None, span: name.span });
        }
        let Some(decl) = self.names.action(&name.node) else {
            self.unknown_action(name);
            return None;
        };
        let mut params = vec![];
        for param in &decl.params {
            let known = self.diagnostics.len();
            let ty = self.type_of(&param.ty);
            self.diagnostics.truncate(known); // said where the action is declared
            let (kind, width) = ty?;
            params.push(Param { name: param.name.node.clone(), kind, width });
        }
        let words: usize = params.iter().map(|param| if param.width > 64 { 2 } else { 1 }).sum();
        if words > MAX_ARGS {
            let message =
                format!("an action of a table has at most {MAX_ARGS} parameters, those beyond 64 bits count twice");
            self.push(
                Diagnostic::error("too-many", message, name.span, "too many").label(decl.name.span, "declared here"),
            );
            return None;
        }
        Some(TableAction { action: keyed(params), decl: Some(decl), span: name.span })
    }

    /// A keyed table: its actions as rules, its entries, with marks.
    pub fn keyed_table(&mut self, table: &'a ast::Table) -> Option<(hir::Table, Vec<RuleMarks>)> {
        let signature = self.keyed.get(table.name.node.as_str())?.clone();
        let mut actions = signature.actions.clone();
        let default = table.keyed.iter().find_map(|stmt| match &stmt.node {
            KeyedStmt::Default(action) => Some(action),
            _ => None,
        });
        let mut whole = true;
        let default = match default {
            None => None,
            Some(default) => {
                let found = self.default_action(default, &mut actions);
                whole &= found.is_some();
                found
            }
        };
        let entries = self.entries(table, &signature);
        let headers = signature.key.iter().filter_map(|(part, _)| part.header);
        let present = super::cond::all(headers.map(Cond::Has));
        let (mut rules, mut marks) = (vec![], vec![]);
        for (k, action) in actions.iter().enumerate() {
            let cond =
                if default.as_ref().is_some_and(|(d, _)| usize::from(*d) == k) { Cond::True } else { present.clone() };
            let Some((actions, action_marks)) = self.keyed_body(action) else {
                whole = false;
                continue;
            };
            let params: Vec<&str> = action.action.params.iter().map(|param| param.name.as_str()).collect();
            let text = match params[..] {
                [] => action.action.name.clone(),
                _ => format!("{}({})", action.action.name, params.join(", ")),
            };
            let reads = if k == 0 { reads(&signature) } else { vec![] };
            let priority = (signature.actions.len() + 1 - k.min(signature.actions.len())) as u32;
            rules.push(hir::Rule { priority, cond, actions, text, span: action.span });
            marks.push(RuleMarks { cond: action.span, reads, negated: vec![], actions: action_marks });
        }
        let keyed = hir::Keyed {
            key: signature.key.iter().map(|(part, _)| part.clone()).collect(),
            actions: actions.into_iter().map(|action| action.action).collect(),
            default,
            size: signature.size.0,
            idle_ns: signature.times.0,
            hard_ns: signature.times.1,
            learned: signature.learned.is_some(),
            entries: entries?,
        };
        let name = table.name.node.clone();
        whole.then_some((hir::Table { name, rules, span: table.name.span, keyed: Some(keyed) }, marks))
    }

    /// What packets without an entry do; an action that entries may not name comes behind those they may.
    fn default_action(
        &mut self,
        default: &'a ast::EntryAction,
        actions: &mut Vec<TableAction<'a>>,
    ) -> Option<(u16, Vec<u128>)> {
        let name = &default.name;
        let known = actions.iter().position(|action| action.action.name == name.node);
        let index = match known {
            Some(index) => index,
            None => {
                let mut action = self.table_action(name)?;
                action.action.entries = false;
                actions.push(action);
                actions.len() - 1
            }
        };
        let action = actions[index].clone();
        let args = self.entry_args(default, &action)?;
        Some((index as u16, args))
    }

    /// What an action of a keyed table does with its parameters.
    fn keyed_body(&mut self, action: &TableAction<'a>) -> Option<(Vec<Action>, Vec<ActionMark>)> {
        let Some(decl) = action.decl else {
            let simple = simple(&action.action.name)?;
            if matches!(simple, Action::Flood | Action::All | Action::Normal | Action::InPort) {
                self.names.use_all_ports();
            }
            return Some((vec![simple], vec![ActionMark { span: action.span, via: None }]));
        };
        if self.broken.contains(decl.name.node.as_str()) {
            return None; // reported already
        }
        if action.action.params.iter().any(|param| param.kind == Kind::Port) {
            self.names.use_all_ports(); // entries may name any
        }
        let bound = |k: usize, param: &Param| Bound::Value(hir::Value::Param(k as u16), param.kind, param.width);
        let params = decl.params.iter().zip(&action.action.params).enumerate();
        let params = params.map(|(k, (name, param))| (name.name.node.as_str(), bound(k, param))).collect();
        let scope = Scope::of_params(params);
        let mut into = Actions::default();
        // Mistakes in the body are reported where the body is checked by itself, once.
        let known = self.diagnostics.len();
        let list = self.body(&decl.body, &scope, &mut into);
        if list.is_some() || crate::diag::has_errors(&self.diagnostics[..known]) {
            self.diagnostics.truncate(known);
        }
        Some((list?, into.marks))
    }
}

/// Statements that a table has once.
fn once(stmt: &KeyedStmt) -> Option<&'static str> {
    match stmt {
        KeyedStmt::Key(_) => Some("key"),
        KeyedStmt::Actions(_) => Some("actions"),
        KeyedStmt::Default(_) => Some("default"),
        KeyedStmt::Size(_) => Some("size"),
        KeyedStmt::Idle(_) => Some("idle"),
        KeyedStmt::Hard(_) => Some("hard"),
        KeyedStmt::Learned => Some("learned"),
        KeyedStmt::Entries(_) | KeyedStmt::From(_) => None,
    }
}

/// What the key reads, for checks of reads.
fn reads(signature: &Signature) -> Vec<ReadMark> {
    let reads = signature.key.iter().map(|(part, span)| ReadMark {
        name: part.name.clone(),
        field: match part.read.place.space {
            hir::Space::Field(field) => Some(field),
            hir::Space::Meta | hir::Space::Header(_) => None,
        },
        header: part.header,
        mask: max(part.read.place.width),
        span: *span,
    });
    reads.collect()
}
