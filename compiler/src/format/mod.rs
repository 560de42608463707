//! One layout for `.pipe` programs. In: a program that parses. Out: its text with the tokens and comments it had, and other
//! white space. Never: a text that means something else; see [`format`].
//!
//! - Four spaces a level, a statement a line, lines up to [`WIDTH`] characters.
//! - Items with a body have a blank line before and behind them; others keep theirs, as statements of a body do, but never
//!   more than one.
//! - `=>` of rules that follow each other stand below each other, unless that takes more than [`MOST_PADDING`] spaces.
//! - Comments stay behind what they stand behind, or on lines of their own.
//!
//! It works on tokens and on the statements that `parse` cuts, so a new statement needs nothing here.

mod doc;
mod statement;

use std::ops::Range;

pub use doc::WIDTH;
use doc::{Doc, STEP, Writer};
use statement::Source;

use crate::ast::{Item, Name};
use crate::diag::{Diagnostic, has_errors};
use crate::parse;
use crate::parse::cut::{Block, Cutter, Piece, scan};
use crate::token::{Kind, tokens};

/// Spaces before `=>`, at the most.
const MOST_PADDING: usize = 40;

/// Why a text is not formatted.
#[derive(Debug)]
pub enum Error {
    /// It does not parse.
    Wrong(Vec<Diagnostic>),
    /// The result would not be the same program: a fault of ours.
    Different,
}

/// The text in its canonical layout.
///
/// # Errors
/// When the text does not parse, or the result does not parse to the same tree, token by token.
pub fn format(text: &str) -> Result<String, Error> {
    let mut diagnostics = vec![];
    let before = parse(text, &mut diagnostics);
    let Some(before) = before.filter(|_| !has_errors(&diagnostics)) else { return Err(Error::Wrong(diagnostics)) };
    let formatted = layout(text).ok_or(Error::Different)?;
    let same = parse(&formatted, &mut vec![]).is_some_and(|after| after == before);
    if same && essence(text) == essence(&formatted) { Ok(formatted) } else { Err(Error::Different) }
}

/// The pipeline of a text, or the statements of one that others use.
fn parse(text: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<(Option<Name>, Vec<Item>)> {
    if parse::is_part(text) {
        return parse::items(text, 0, diagnostics).map(|(items, _)| (None, items));
    }
    parse::pipe(text, 0, diagnostics).map(|pipeline| (Some(pipeline.name), pipeline.items))
}

/// All that must not change: every token and comment without white space, but for idle commas.
fn essence(text: &str) -> String {
    let tokens = tokens(text);
    let mut essence = String::new();
    for (i, token) in tokens.iter().enumerate() {
        let of = &text[token.range.clone()];
        let next = tokens[i + 1..].iter().find(|next| next.kind != Kind::Comment);
        let idle = of == "," && next.is_some_and(|next| [")", "}", ";"].contains(&&text[next.range.clone()]));
        if token.kind == Kind::Text {
            essence.push_str(of);
        } else if !idle {
            essence.extend(of.chars().filter(|c| !c.is_whitespace()));
        }
    }
    essence
}

/// Lays a text out; none if its brackets do not pair.
pub fn layout(text: &str) -> Option<String> {
    let cutter = scan(text, 0, &mut vec![])?;
    let source = Source::new(text)?;
    let mut layout = Layout { source, cutter: &cutter, writer: Writer::default() };
    layout.block(&cutter.file(), 0, Holds::Items);
    layout.writer.end_line();
    Some(layout.writer.out)
}

/// What a block holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Items,
    Statements,
}

struct Layout<'a, 'c> {
    source: Source<'a>,
    cutter: &'c Cutter<'a>,
    writer: Writer,
}

/// Something with lines of its own.
struct Element<'a> {
    what: What<'a>,
    /// A blank line stands before it.
    blank: bool,
    /// Comments behind it, on its last line.
    trailing: Vec<usize>,
}

enum What<'a> {
    /// A comment.
    Comment(usize),
    /// A statement with a body, and the tokens before it.
    Body(Range<usize>, Piece<'a>),
    /// A statement: all of it, or what stands before `=>`, and the rest.
    Statement(Doc, Option<Doc>),
}

impl<'a> Layout<'a, '_> {
    /// The statements and comments of a block.
    fn block(&mut self, block: &Block, level: usize, holds: Holds) {
        let (first, elements) = self.elements(block, holds);
        for token in first {
            self.writer.comment(self.source.of(token), false, level * STEP);
        }
        let columns = columns(&elements, level * STEP);
        for (i, (element, column)) in elements.into_iter().zip(columns).enumerate() {
            if i > 0 && element.blank {
                self.writer.blank_line();
            } else {
                self.writer.end_line();
            }
            self.element(&element, level, column);
        }
    }

    fn element(&mut self, element: &Element<'a>, level: usize, column: usize) {
        let indent = level * STEP;
        match &element.what {
            What::Comment(token) => self.writer.comment(self.source.of(*token), true, indent),
            What::Body(head, piece) => self.body(head, piece, level),
            What::Statement(doc, None) => self.writer.write(doc, indent),
            What::Statement(head, Some(rest)) => {
                let line = match (head.flat(), rest.flat()) {
                    (Some(head), Some(rest)) if indent + head + 1 + rest <= WIDTH => {
                        Doc::text(" ".repeat(1 + column.saturating_sub(head)))
                    }
                    _ => Doc::Line,
                };
                let doc = Doc::group(vec![head.clone(), Doc::nest(vec![line, rest.clone()])]);
                self.writer.write(&doc, indent);
            }
        }
        for &token in &element.trailing {
            self.writer.comment(self.source.of(token), false, indent);
        }
    }

    /// A statement with a body, each statement of it on lines of its own; a bucket of a group has but a list of actions.
    fn body(&mut self, head: &Range<usize>, piece: &Piece<'a>, level: usize) {
        let Some(body) = &piece.body else { return };
        let indent = level * STEP;
        let (head, _) = self.source.statement(head.clone());
        self.writer.write(&head, indent);
        let inner = self.source.within(&body.bytes());
        if inner.is_empty() {
            return self.writer.text(" { }", indent);
        }
        if piece.word == "bucket" && self.source.is_plain(inner.clone()) {
            let inline = self.source.brackets(inner.start - 1, inner.end);
            self.writer.text(" ", indent);
            return self.writer.write(&inline, indent);
        }
        self.writer.text(" {", indent);
        let holds = if piece.word == "pipeline" { Holds::Items } else { Holds::Statements };
        self.block(body, level + 1, holds);
        self.writer.end_line();
        self.writer.text("}", indent);
    }

    /// Comments behind the bracket that opens a block, and its elements.
    fn elements(&self, block: &Block, holds: Holds) -> (Vec<usize>, Vec<Element<'a>>) {
        let mut first = vec![];
        let mut elements: Vec<Element<'a>> = vec![];
        let inside = self.source.within(&block.bytes());
        let mut next = inside.start;
        for piece in self.cutter.pieces(block, holds == Holds::Items) {
            let tokens = self.source.within(&piece.range);
            self.comments(next..tokens.start, &mut first, &mut elements);
            next = match &piece.body {
                Some(body) => self.source.within(&body.bytes()).end + 1,
                None => tokens.end,
            };
            let blank = self.blank_before(tokens.start);
            let what = match &piece.body {
                Some(_) => What::Body(tokens, piece),
                None => {
                    let (head, rest) = self.source.statement(tokens);
                    What::Statement(head, rest)
                }
            };
            elements.push(Element { what, blank, trailing: vec![] });
        }
        self.comments(next..inside.end, &mut first, &mut elements);
        if holds == Holds::Items {
            set_apart(&mut elements);
        }
        (first, elements)
    }

    /// Comments between statements.
    fn comments(&self, tokens: Range<usize>, first: &mut Vec<usize>, elements: &mut Vec<Element<'a>>) {
        for token in tokens {
            let trails = !self.source.begins_line(token);
            match elements.last_mut() {
                Some(Element { trailing, what: What::Body(..) | What::Statement(..), .. }) if trails => {
                    trailing.push(token);
                }
                None if trails && token > 0 => first.push(token),
                _ => {
                    let blank = self.blank_before(token);
                    elements.push(Element { what: What::Comment(token), blank, trailing: vec![] });
                }
            }
        }
    }

    /// Whether a blank line stands before a token.
    fn blank_before(&self, token: usize) -> bool {
        let tokens = &self.source.tokens;
        let before = if token == 0 { 0 } else { tokens[token - 1].range.end };
        self.source.text[before..tokens[token].range.start].matches('\n').count() > 1
    }
}

/// Blank lines around statements with bodies, above the comments that belong to them.
fn set_apart(elements: &mut [Element<'_>]) {
    for i in 1..elements.len() {
        let behind_body = matches!(elements[i - 1].what, What::Body(..));
        elements[i].blank |= behind_body;
        if matches!(elements[i].what, What::Body(..)) {
            let mut top = i;
            while top > 0 && !elements[top].blank && matches!(elements[top - 1].what, What::Comment(_)) {
                top -= 1;
            }
            elements[top].blank = true;
        }
    }
}

/// For each element, how wide what stands before its `=>` is to be: as the widest of the rules that it is set below.
fn columns(elements: &[Element<'_>], indent: usize) -> Vec<usize> {
    let mut columns = vec![0; elements.len()];
    let mut run: Vec<(usize, usize, usize)> = vec![]; // element, width before `=>`, width from there on
    let end = |run: &mut Vec<(usize, usize, usize)>, columns: &mut Vec<usize>| {
        let widest = run.iter().map(|(_, head, _)| *head).max().unwrap_or(0);
        run.drain(..).for_each(|(element, ..)| columns[element] = widest);
    };
    for (i, element) in elements.iter().enumerate() {
        let widths = match &element.what {
            What::Statement(head, Some(rest)) => head.flat().zip(rest.flat()),
            _ => None,
        };
        let widths = widths.filter(|(head, rest)| indent + head + 1 + rest <= WIDTH);
        let Some((head, rest)) = widths else {
            end(&mut run, &mut columns);
            continue;
        };
        let all = run.iter().map(|(_, head, rest)| (*head, *rest)).chain([(head, rest)]);
        let (mut least, mut most, mut longest) = (usize::MAX, 0, 0);
        for (head, rest) in all {
            (least, most, longest) = (least.min(head), most.max(head), longest.max(rest));
        }
        if element.blank || most - least > MOST_PADDING || indent + most + 1 + longest > WIDTH {
            end(&mut run, &mut columns);
        }
        run.push((i, head, rest));
    }
    end(&mut run, &mut columns);
    columns
}
