//! Statements of keyed tables: from what the grammar found to the nodes of the tree.

use std::ops::Range;

use pest::iterators::{Pair, Pairs};

use super::build::UNITS;
use super::cut::Piece;
use super::grammar::{Context, Rule, list};
use super::{KEYED_WORDS, Parser};
use crate::ast::{ActionKind, Entry, EntryAction, Expr, KeyPart, KeyedStmt, Name, Spanned};
use crate::diag::Diagnostic;
use crate::source::Span;

impl<'a> Parser<'a, '_, '_> {
    /// Whether a statement of a table is one of a keyed table.
    pub(super) fn is_keyed(&self, piece: &Piece<'a>) -> bool {
        KEYED_WORDS.contains(&piece.word) && !self.context.text[piece.range.clone()].contains("=>")
    }

    /// A statement of a keyed table.
    pub(super) fn keyed(&mut self, piece: &Piece<'a>) -> Option<Spanned<KeyedStmt>> {
        let text = self.context.text[piece.range.clone()].trim_end();
        let span = Span::new(self.context.file, piece.range.start..piece.range.start + text.len());
        let stmt = match (piece.word, &piece.body) {
            ("entries", Some(body)) => {
                let head = self.statement(Rule::entries_head, piece, |_, _| Some(()));
                let mut entries = vec![];
                for inner in self.pieces(body, false) {
                    let span = Span::new(self.context.file, inner.range.clone());
                    let entry = self.statement(Rule::entry_stmt, &inner, |c, pairs| c.entry(pairs));
                    entries.extend(entry.map(|entry| Spanned::new(entry, span)));
                }
                head.map(|()| KeyedStmt::Entries(entries))
            }
            ("entries", None) => {
                self.statement(Rule::from_stmt, piece, |c, pairs| c.test_name(pairs)).map(KeyedStmt::From)
            }
            ("key", _) => self.statement(Rule::key_stmt, piece, |c, pairs| Some(KeyedStmt::Key(c.key_parts(pairs)))),
            ("actions", _) => self.statement(Rule::actions_stmt, piece, |c, pairs| {
                let names = pairs.filter(|p| p.as_rule() == Rule::name).map(|p| c.name(&p));
                Some(KeyedStmt::Actions(names.collect()))
            }),
            ("default", _) => self.statement(Rule::default_stmt, piece, |c, mut pairs| {
                let act = pairs.find(|p| p.as_rule() == Rule::entry_act)?;
                Some(KeyedStmt::Default(c.entry_action(act)?))
            }),
            ("size", _) => self.statement(Rule::size_stmt, piece, |c, mut pairs| {
                let number = pairs.find(|p| p.as_rule() == Rule::number)?;
                Some(KeyedStmt::Size(c.number(number.as_str(), c.span(&number))?))
            }),
            ("learned", _) => self.statement(Rule::learned_stmt, piece, |_, _| Some(KeyedStmt::Learned)),
            _ => self.statement(Rule::time_stmt, piece, |c, mut pairs| {
                let time = pairs.find(|p| p.as_rule() == Rule::time)?;
                let (idle, ns) = c.time(time)?;
                Some(if idle { KeyedStmt::Idle(ns) } else { KeyedStmt::Hard(ns) })
            }),
        };
        stmt.map(|stmt| Spanned::new(stmt, span))
    }
}

impl Context<'_, '_> {
    /// `ipv4.dst: lpm, vrf: exact`
    fn key_parts(&mut self, pairs: Pairs<'_, Rule>) -> Vec<KeyPart> {
        let parts = pairs.filter(|p| p.as_rule() == Rule::key_part).filter_map(|part| {
            let mut inner = part.into_inner();
            let name = inner.find(|p| p.as_rule() == Rule::path)?;
            let kind = inner.find(|p| p.as_rule() == Rule::match_kind)?;
            Some(KeyPart { name: self.name(&name), kind: self.name(&kind) })
        });
        parts.collect()
    }

    /// An entry.
    fn entry(&mut self, pairs: Pairs<'_, Rule>) -> Option<Entry> {
        let (mut priority, mut action, mut idle, mut hard) = (None, None, None, None);
        let mut key = vec![];
        for pair in pairs {
            match pair.as_rule() {
                Rule::priority => {
                    let number = pair.into_inner().find(|p| p.as_rule() == Rule::number)?;
                    priority = Some(self.number(number.as_str(), self.span(&number))?);
                }
                Rule::entry_part => {
                    let span = self.span(&pair);
                    let value = match pair.into_inner().next().filter(|p| p.as_rule() == Rule::expr) {
                        Some(expr) => Some(self.expr(expr)?),
                        None => None,
                    };
                    key.push(Spanned::new(value, span));
                }
                Rule::entry_act => action = Some(self.entry_action(pair)?),
                Rule::time => {
                    let (is_idle, ns) = self.time(pair)?;
                    *(if is_idle { &mut idle } else { &mut hard }) = Some(ns);
                }
                _ => {}
            }
        }
        Some(Entry { priority, key, action: action?, idle, hard })
    }

    /// `route(a, 1)`
    pub fn entry_action(&mut self, pair: Pair<'_, Rule>) -> Option<EntryAction> {
        let (mut name, mut args) = (None, None);
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::name => name = Some(self.name(&part)),
                Rule::args => args = Some(self.args(part)?),
                _ => {}
            }
        }
        Some(EntryAction { name: name?, args })
    }

    /// `learn table(keys) => action(args)`
    pub fn learn(&mut self, pairs: Pairs<'_, Rule>) -> Option<ActionKind> {
        let (mut name, mut key, mut action) = (None, None, None);
        for part in pairs {
            match part.as_rule() {
                Rule::name => name = Some(self.name(&part)),
                Rule::args => key = Some(self.args(part)?),
                Rule::entry_act => action = Some(self.entry_action(part)?),
                _ => {}
            }
        }
        Some(ActionKind::Learn(name?, key?, action?))
    }

    /// `idle 60 s`: whether it is that, and how long.
    fn time(&mut self, pair: Pair<'_, Rule>) -> Option<(bool, u64)> {
        let (mut idle, mut count) = (false, 0u64);
        for part in pair.into_inner() {
            let (text, span) = (part.as_str(), self.span(&part));
            match part.as_rule() {
                Rule::kw_time => idle = text == "idle",
                Rule::digits => count = text.replace('_', "").parse().unwrap_or(u64::MAX),
                Rule::unit => {
                    let Some((_, unit)) = UNITS.iter().find(|(name, _)| *name == text) else {
                        let names: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
                        let message = format!("no unit of time `{text}`");
                        let help = format!("units are {}", list(&names));
                        self.diagnostics.push(Diagnostic::error("unknown-unit", message, span, "unknown").help(help));
                        return None;
                    };
                    let Some(ns) = count.checked_mul(*unit).filter(|ns| *ns > 0) else {
                        let message = "a time-out is at least 1 ns and at most 584 years";
                        self.diagnostics.push(Diagnostic::error("value-too-big", message, span, "out of range"));
                        return None;
                    };
                    return Some((idle, ns));
                }
                _ => {}
            }
        }
        None
    }
}

/// Parses values that stand in another file, each by itself.
pub struct Cells<'a, 'd> {
    context: Context<'a, 'd>,
}

impl<'a, 'd> Cells<'a, 'd> {
    /// Values of a file.
    pub fn new(text: &'a str, file: u16, diagnostics: &'d mut Vec<Diagnostic>) -> Cells<'a, 'd> {
        Cells { context: Context { text, file, base: 0, broken: vec![], diagnostics } }
    }

    /// What an entry wants of a part of the key.
    pub fn part(&mut self, range: Range<usize>) -> Option<Spanned<Option<Expr>>> {
        let span = Span::new(self.context.file, range.clone());
        let part = self.context.parse(Rule::cell_part, range)?.find(|p| p.as_rule() == Rule::entry_part)?;
        match part.into_inner().next().filter(|p| p.as_rule() == Rule::expr) {
            Some(expr) => Some(Spanned::new(Some(self.context.expr(expr)?), span)),
            None => Some(Spanned::new(None, span)),
        }
    }

    /// A value.
    pub fn value(&mut self, range: Range<usize>) -> Option<Expr> {
        let expr = self.context.parse(Rule::cell_value, range)?.find(|p| p.as_rule() == Rule::expr)?;
        self.context.expr(expr)
    }

    /// A time in nanoseconds.
    pub fn time(&mut self, range: Range<usize>) -> Option<u64> {
        let pairs = self.context.parse(Rule::cell_time, range)?;
        match self.context.after(pairs)? {
            crate::ast::Step::After { ns } => Some(ns),
            _ => None,
        }
    }

    /// A name, whatever it is.
    pub fn name(&self, range: Range<usize>) -> Name {
        let text = self.context.text[range.clone()].trim();
        Spanned::new(text.to_string(), Span::new(self.context.file, range))
    }
}
