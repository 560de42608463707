//! From text to tree. In: a source file. Out: its [`ast`](crate::ast), and every mistake of form in it.
//!
//! [`cut`] finds where statements begin and end, [`grammar`] parses each one by itself, [`build`] and [`expr`] make nodes of
//! it. A statement that fails is left out; the names in it are kept, so that later stages do not complain about them. No
//! name is looked up here.

mod build;
pub(crate) mod cut;
mod expr;
mod grammar;
mod groups;
mod keyed;

use std::ops::Range;

pub use build::UNITS;
pub use cut::ITEM_WORDS;
pub use expr::{MAX_CHAIN, address};
pub use grammar::list;
pub use keyed::Cells;

use crate::ast::{Action, ActionDecl, Const, Extern, Item, Name, Packet, Pipeline, Setting, Spanned, Table, Test};
use crate::diag::Diagnostic;
use crate::source::Span;
use cut::{Block, Cutter, Piece};
use grammar::{Context, Rule};

/// Mistakes after which the rest of a file is not looked at.
pub const MAX_DIAGNOSTICS: usize = 1_000;

/// Words that begin statements of keyed tables.
pub const KEYED_WORDS: &[&str] = &["actions", "default", "entries", "hard", "idle", "key", "learned", "size"];

/// Parses a `.pipe` file. The tree holds what could be parsed; none if there is no `pipeline` at all.
pub fn pipe(text: &str, file: u16, diagnostics: &mut Vec<Diagnostic>) -> Option<Pipeline> {
    let cutter = cut::scan(text, file, diagnostics)?;
    let mut broken: Vec<usize> = diagnostics.iter().map(|d| d.span().start as usize).collect();
    broken.sort_unstable();
    let context = Context { text, file, base: 0, broken, diagnostics };
    let pipeline = Parser { cutter: &cutter, context, items: vec![], damaged: vec![] }.file();
    pipeline.filter(|_| diagnostics.len() < MAX_DIAGNOSTICS)
}

/// Whether a text holds statements without a pipeline around them, for others to use.
pub fn is_part(text: &str) -> bool {
    let start = cut::skip_blank(text.trim_start_matches('\u{feff}'));
    let word = cut::word_at(text.trim_start_matches('\u{feff}'), start);
    ITEM_WORDS.contains(&word)
}

/// Parses a file that another one uses: statements of a pipeline, and the names in those that could not be parsed.
pub fn items(text: &str, file: u16, diagnostics: &mut Vec<Diagnostic>) -> Option<(Vec<Item>, Vec<String>)> {
    let before = diagnostics.len();
    let cutter = cut::scan(text, file, diagnostics)?;
    let mut broken: Vec<usize> = diagnostics[before..].iter().map(|d| d.span().start as usize).collect();
    broken.sort_unstable();
    let context = Context { text, file, base: 0, broken, diagnostics };
    Some(Parser { cutter: &cutter, context, items: vec![], damaged: vec![] }.used())
}

/// Parses `PORT: packet`.
pub fn packet(text: &str, file: u16, diagnostics: &mut Vec<Diagnostic>) -> Option<(Name, Packet)> {
    cut::scan(text, file, diagnostics)?;
    let mut context = Context { text, file, base: 0, broken: vec![], diagnostics };
    let pairs = context.parse(Rule::packet_text, 0..text.len())?;
    context.send(pairs)
}

struct Parser<'a, 'd, 'c> {
    cutter: &'c Cutter<'a>,
    context: Context<'a, 'd>,
    items: Vec<Item>,
    damaged: Vec<String>,
}

impl<'a> Parser<'a, '_, '_> {
    /// A file: one `pipeline`.
    fn file(mut self) -> Option<Pipeline> {
        let mut pipeline: Option<Name> = None;
        for piece in self.pieces(&self.cutter.file(), false) {
            if piece.word != "pipeline" && self.context.is_broken(&piece.range) {
                continue;
            }
            if piece.word != "pipeline" {
                self.error("syntax", "expected `pipeline NAME { … }`", &piece, "this stands outside a pipeline");
                if piece.word == "use"
                    && let Some(diagnostic) = self.context.diagnostics.last_mut()
                {
                    diagnostic.help.push("write it behind `pipeline NAME {`".into());
                }
                continue;
            }
            let (Some(body), Some(name)) = (self.body(&piece, "pipeline"), self.head(Rule::pipeline_head, &piece))
            else {
                continue;
            };
            if let Some(first) = &pipeline {
                let message = "a file has one pipeline";
                let diagnostic = Diagnostic::error("second-pipeline", message, name.span, "a second one")
                    .label(first.span, "the first one");
                self.context.diagnostics.push(diagnostic);
                continue;
            }
            pipeline = Some(name);
            for piece in self.pieces(&body, true) {
                self.item(piece);
            }
        }
        if self.context.diagnostics.iter().any(|d| d.code == "nested-item") {
            // The `}` that is missing there is missed at the end, too.
            self.context.diagnostics.retain(|d| d.code != "unclosed-bracket");
        }
        if pipeline.is_none() && self.context.diagnostics.is_empty() {
            let end = self.context.text.trim_end().len();
            let span = Span::new(self.context.file, 0..end.min(1));
            let diagnostic = Diagnostic::error("syntax", "there is no pipeline in this file", span, "nothing here")
                .help("write `pipeline NAME { … }`");
            self.context.diagnostics.push(diagnostic);
        }
        Some(Pipeline { name: pipeline?, items: self.items, damaged: self.damaged })
    }

    /// A file that another one uses.
    fn used(mut self) -> (Vec<Item>, Vec<String>) {
        for piece in self.pieces(&self.cutter.file(), true) {
            if piece.word == "pipeline" {
                self.error("syntax", "a file that is used has no `pipeline` of its own", &piece, "not expected here");
                if let Some(diagnostic) = self.context.diagnostics.last_mut() {
                    diagnostic.help.push("remove `pipeline NAME {` and its `}`: the statements stand alone".into());
                }
                continue;
            }
            self.item(piece);
        }
        (self.items, self.damaged)
    }

    /// A statement of the pipeline.
    fn item(&mut self, piece: Piece<'a>) {
        let before = self.context.diagnostics.len();
        let item = match piece.word {
            "port" => self.statement(Rule::port_item, &piece, |c, pairs| c.ports(pairs).map(Item::Ports)),
            "const" => self.statement(Rule::const_item, &piece, |c, pairs| {
                c.named_value(pairs).map(|(name, value)| Item::Const(Const { name, value }))
            }),
            "set" => self.statement(Rule::set_item, &piece, |c, pairs| c.set(pairs).map(Item::Set)),
            "option" => self.statement(Rule::option_item, &piece, |c, pairs| {
                c.named_value(pairs).map(|(name, value)| Item::Option(Setting { name, value }))
            }),
            "var" => self.statement(Rule::var_item, &piece, |c, pairs| c.vars(pairs).map(Item::Vars)),
            "extern" => self.statement(Rule::extern_item, &piece, |c, pairs| {
                let name = pairs.clone().find(|p| p.as_rule() == Rule::name)?;
                Some(Item::Extern(Extern { name: c.name(&name), params: c.vars(pairs)? }))
            }),
            "header" => self.statement(Rule::header_item, &piece, |c, pairs| c.header(pairs).map(Item::Header)),
            "action" => self.action(&piece),
            "group" => self.group(&piece),
            "meter" => self.meter(&piece),
            "table" | "start" => self.table(&piece),
            "test" => self.test(&piece),
            "use" => self.statement(Rule::use_item, &piece, |c, pairs| c.test_name(pairs).map(Item::Use)),
            _ => {
                if self.context.diagnostics.len() < MAX_DIAGNOSTICS {
                    let diagnostic = self.unknown_item(&piece);
                    self.context.diagnostics.push(diagnostic);
                }
                None
            }
        };
        match item {
            Some(item) => self.items.push(item),
            None => {
                let said = self.context.diagnostics.len() > before.min(MAX_DIAGNOSTICS - 1)
                    || self.context.is_broken(&piece.range);
                debug_assert!(said, "a statement is lost without a message");
                self.damage(&piece.range);
            }
        }
    }

    /// Remembers the names in a statement that could not be parsed.
    fn damage(&mut self, range: &Range<usize>) {
        let text = &self.context.text[range.clone()];
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|w| !w.is_empty());
        self.damaged.extend(words.map(String::from));
    }

    /// The statements of a block; none if there are too many mistakes already.
    fn pieces(&self, block: &Block, items: bool) -> Vec<Piece<'a>> {
        if self.context.diagnostics.len() >= MAX_DIAGNOSTICS { vec![] } else { self.cutter.pieces(block, items) }
    }

    fn statement<T>(
        &mut self,
        rule: Rule,
        piece: &Piece<'a>,
        build: impl FnOnce(&mut Context<'a, '_>, pest::iterators::Pairs<'a, Rule>) -> Option<T>,
    ) -> Option<T> {
        if self.context.diagnostics.len() >= MAX_DIAGNOSTICS {
            return None;
        }
        let pairs = self.context.parse(rule, piece.range.clone())?;
        build(&mut self.context, pairs)
    }

    /// The name in what stands before a body.
    fn head(&mut self, rule: Rule, piece: &Piece<'a>) -> Option<Name> {
        self.statement(rule, piece, |c, mut pairs| {
            let name = pairs.find(|p| p.as_rule() == Rule::name)?;
            Some(c.name(&name))
        })
    }

    /// The body of a statement that needs one.
    fn body(&mut self, piece: &Piece<'a>, what: &str) -> Option<Block> {
        if piece.body.is_none() {
            let message = format!("expected `{{` and the body of this {what}");
            self.error("syntax", message, piece, "it has no body");
        }
        piece.body.clone()
    }

    fn action(&mut self, piece: &Piece<'a>) -> Option<Item> {
        let body = self.body(piece, "action")?;
        let head = self.statement(Rule::action_head, piece, |c, pairs| {
            let name = pairs.clone().find(|p| p.as_rule() == Rule::name)?;
            Some((c.name(&name), c.vars(pairs)?))
        });
        let mut actions: Vec<Action> = vec![];
        for piece in self.pieces(&body, false) {
            let rule = if piece.word == "clone" { Rule::clone_stmt } else { Rule::action_stmt };
            actions.extend(self.statement(rule, &piece, |c, pairs| c.first_action(pairs)));
        }
        let (name, params) = head?;
        Some(Item::Action(ActionDecl { name, params, body: actions }))
    }

    fn table(&mut self, piece: &Piece<'a>) -> Option<Item> {
        let body = self.body(piece, piece.word)?;
        let name = if piece.word == "start" {
            let span = Span::new(self.context.file, piece.range.start..piece.range.start + piece.word.len());
            self.statement(Rule::start_head, piece, |_, _| Some(Spanned::new("start".into(), span)))
        } else {
            self.head(Rule::table_head, piece)
        };
        let mut rules = vec![];
        let mut keyed = vec![];
        for inner in self.pieces(&body, false) {
            if inner.body.is_some() && ["table", "start", "test", "action"].contains(&inner.word) {
                self.nested(&inner, piece);
                self.item(inner);
                continue;
            }
            if self.is_keyed(&inner) {
                keyed.extend(self.keyed(&inner));
                continue;
            }
            let span = Span::new(self.context.file, inner.range.clone());
            let rule = self.statement(Rule::rule_stmt, &inner, |c, pairs| c.rule(pairs));
            rules.extend(rule.map(|rule| Spanned::new(rule, span)));
        }
        Some(Item::Table(Table { name: name?, rules, keyed }))
    }

    fn test(&mut self, piece: &Piece<'a>) -> Option<Item> {
        let body = self.body(piece, "test")?;
        let name = self.statement(Rule::test_head, piece, |c, pairs| c.test_name(pairs));
        let mut steps = vec![];
        for inner in self.pieces(&body, false) {
            let span = Span::new(self.context.file, inner.range.clone());
            let step = match inner.word {
                "send" => self.statement(Rule::send_stmt, &inner, |c, pairs| c.send_step(pairs)),
                "expect" => self.statement(Rule::expect_stmt, &inner, |c, pairs| c.expect(pairs)),
                "after" => self.statement(Rule::after_stmt, &inner, |c, pairs| c.after(pairs)),
                _ => {
                    self.error("syntax", "expected `send`, `expect` or `after`", &inner, "not a step of a test");
                    None
                }
            };
            steps.extend(step.map(|step| Spanned::new(step, span)));
        }
        Some(Item::Test(Test { name: name?, steps }))
    }

    /// An item inside a table: most likely a `}` is missing before it.
    fn nested(&mut self, inner: &Piece<'a>, outer: &Piece<'a>) {
        let message = format!("`{}` cannot stand inside a table", inner.word);
        let span = Span::new(self.context.file, inner.range.start..inner.range.start + inner.word.len());
        let text = self.context.text[outer.range.clone()].trim_end();
        let outer = Span::new(self.context.file, outer.range.start..outer.range.start + text.len());
        let diagnostic = Diagnostic::error("nested-item", message, span, "begins here")
            .label(outer, "inside this table")
            .help("close the table with `}` before it");
        self.context.diagnostics.push(diagnostic);
    }

    fn unknown_item(&self, piece: &Piece<'a>) -> Diagnostic {
        let known =
            "`port`, `const`, `set`, `option`, `var`, `action`, `group`, `meter`, `table`, `start`, `test` or `use`";
        let text = &self.context.text[piece.range.clone()];
        let length = match piece.word.len() {
            0 => text.chars().next().map_or(0, char::len_utf8),
            length => length,
        };
        let span = Span::new(self.context.file, piece.range.start..piece.range.start + length);
        let label = "not a statement of a pipeline";
        let diagnostic = Diagnostic::error("syntax", format!("expected {known}"), span, label);
        match crate::suggest::closest(piece.word, ITEM_WORDS.iter().copied()) {
            Some(word) => diagnostic.help(format!("did you mean `{word}`?")),
            None if text.contains("=>") => diagnostic.help("rules stand in a `table NAME { … }`"),
            None => diagnostic,
        }
    }

    /// An error about a statement; the label goes to its first line.
    fn error(&mut self, code: &'static str, message: impl Into<String>, piece: &Piece<'a>, label: &str) {
        let text = &self.context.text[piece.range.clone()];
        let line = text.lines().next().unwrap_or("").trim_end();
        let span = Span::new(self.context.file, piece.range.start..piece.range.start + line.len());
        if self.context.diagnostics.len() < MAX_DIAGNOSTICS {
            self.context.diagnostics.push(Diagnostic::error(code, message, span, label));
        }
    }
}
