//! One statement as a [`Doc`]: which tokens have a space between them, and where a long one may be broken.
//!
//! From loose to tight: `=>`, `;` and `,`, `||`, `&&`, the `/` between headers, brackets. No statement is known by name but
//! those in which `/` stands between headers.

use std::ops::Range;

use super::doc::Doc;
use crate::token::{Kind, Token};

/// Words that `(` does not touch.
const BEFORE_PARENTHESIS: &[&str] = &["if", "in", "where"];
/// Words behind which headers follow each other.
const BEFORE_HEADERS: &[&str] = &["encap", "send"];
/// Operators beside which `|` does not touch its sides.
const COMPUTING: &[&str] = &["<<", ">>", "+", "-", "&", "^"];
/// Units that stand apart from their number.
const UNITS: &[&str] = &["ns", "us", "ms", "s", "min", "h", "pps", "kbps"];

/// The tokens of a text.
pub struct Source<'a> {
    /// The text.
    pub text: &'a str,
    /// Its tokens and comments.
    pub tokens: Vec<Token>,
    /// For each opening bracket, the token that closes it.
    partners: Vec<usize>,
}

impl<'a> Source<'a> {
    /// Reads a text; none if its brackets do not pair.
    pub fn new(text: &'a str) -> Option<Source<'a>> {
        let tokens = crate::token::tokens(text);
        let mut partners = vec![usize::MAX; tokens.len()];
        let mut open = vec![];
        for (i, token) in tokens.iter().enumerate() {
            match (&text[token.range.clone()], token.kind) {
                ("(" | "{", Kind::Symbol) => open.push(i),
                (close @ (")" | "}"), Kind::Symbol) => {
                    let partner: usize = open.pop()?;
                    if (&text[tokens[partner].range.clone()] == "(") != (close == ")") {
                        return None;
                    }
                    partners[partner] = i;
                }
                _ => {}
            }
        }
        open.is_empty().then_some(Source { text, tokens, partners })
    }

    /// The text of a token.
    pub fn of(&self, token: usize) -> &'a str {
        &self.text[self.tokens[token].range.clone()]
    }

    /// The tokens that lie in a range of bytes.
    pub fn within(&self, bytes: &Range<usize>) -> Range<usize> {
        let from = self.tokens.partition_point(|token| token.range.start < bytes.start);
        from..self.tokens.partition_point(|token| token.range.start < bytes.end)
    }

    /// Whether a token is this symbol.
    pub fn is(&self, token: usize, symbol: &str) -> bool {
        self.tokens[token].kind == Kind::Symbol && self.of(token) == symbol
    }

    fn is_comment(&self, token: usize) -> bool {
        self.tokens[token].kind == Kind::Comment
    }

    /// Whether nothing stands before a token on its line.
    pub fn begins_line(&self, token: usize) -> bool {
        let start = self.tokens[token].range.start;
        let before = if token == 0 { 0 } else { self.tokens[token - 1].range.end };
        before == 0 && token == 0 || self.text[before..start].contains('\n')
    }

    /// A comment.
    pub fn comment(&self, token: usize) -> Doc {
        Doc::Comment { text: self.of(token).to_string(), own: self.begins_line(token) }
    }

    /// The place of a symbol among tokens, outside of brackets in them.
    pub fn find(&self, tokens: Range<usize>, symbol: &str) -> Option<usize> {
        let mut at = tokens.start;
        while at < tokens.end {
            if self.is(at, symbol) {
                return Some(at);
            }
            at = self.behind(at);
        }
        None
    }

    /// Whether tokens are a list without comments and semicolons.
    pub fn is_plain(&self, mut tokens: Range<usize>) -> bool {
        self.find(tokens.clone(), ";").is_none() && !tokens.any(|token| self.is_comment(token))
    }

    /// The token behind this one and what it brackets.
    fn behind(&self, token: usize) -> usize {
        match self.partners[token] {
            usize::MAX => token + 1,
            close => close + 1,
        }
    }

    /// A statement: what stands before `=>` and from there on, or all in the first.
    pub fn statement(&self, tokens: Range<usize>) -> (Doc, Option<Doc>) {
        let Some(arrow) = self.find(tokens.clone(), "=>") else { return (self.list(tokens), None) };
        let head = self.list(tokens.start..arrow);
        let mut rest = vec![Doc::text("=>")];
        let body = arrow + 1..tokens.end;
        if !body.is_empty() {
            let empty = body.len() == 1 && self.is(body.start, ";");
            rest.extend((!empty).then(|| Doc::text(" ")));
            rest.push(self.list(body));
        }
        (head, Some(Doc::group(rest)))
    }

    /// A comma that nothing follows is left out.
    fn is_idle(&self, token: usize, end: usize) -> bool {
        self.is(token, ",") && {
            let next = (token + 1..end).find(|&next| !self.is_comment(next));
            next.is_none_or(|next| self.is(next, ";") && self.is_last(next, end))
        }
    }

    fn is_last(&self, token: usize, end: usize) -> bool {
        (token + 1..end).all(|next| self.is_comment(next))
    }

    /// Items one behind the other, the second line a level deeper.
    fn list(&self, tokens: Range<usize>) -> Doc {
        let mut items = self.items(tokens);
        match items.len() {
            1 => items.remove(0),
            _ => Doc::nest(vec![Doc::fill(items)]),
        }
    }

    /// Items with `,` or `;` behind them.
    fn items(&self, tokens: Range<usize>) -> Vec<Doc> {
        let mut items = vec![];
        let mut at = tokens.start;
        while at < tokens.end {
            let start = at;
            while at < tokens.end && !self.is(at, ",") && !self.is(at, ";") {
                at = self.behind(at);
            }
            let mut item = vec![];
            if start < at {
                let headers = self.begins_with(&tokens, &["expect"]) && self.is_packet(start..at);
                item.push(if headers { self.headers(start..at) } else { self.condition(start..at) });
            }
            if at < tokens.end {
                if !self.is_idle(at, tokens.end) {
                    item.push(Doc::text(self.of(at)));
                }
                at += 1;
                // A semicolon that a comma stood before.
                if at < tokens.end && self.is(at, ";") && self.is_last(at, tokens.end) {
                    item.push(Doc::text(";"));
                    at += 1;
                }
            }
            while at < tokens.end && self.is_comment(at) && !self.begins_line(at) {
                item.push(self.comment(at));
                at += 1;
            }
            items.push(Doc::group(item));
        }
        items
    }

    /// What `||` joins, each with what `&&` joins, or headers that `/` joins.
    fn condition(&self, tokens: Range<usize>) -> Doc {
        for operator in ["||", "&&"] {
            if self.find(tokens.clone(), operator).is_some() {
                let parts = self.split(tokens, operator);
                let parts = parts.into_iter().map(|(operator, part)| (operator, self.condition(part)));
                return Doc::group(self.joined(parts.collect(), false));
            }
        }
        if self.begins_with(&tokens, BEFORE_HEADERS) { self.headers(tokens) } else { self.words(tokens) }
    }

    /// Headers that `/` joins.
    fn headers(&self, tokens: Range<usize>) -> Doc {
        let parts = self.split(tokens, "/");
        let parts = parts.into_iter().map(|(operator, part)| (operator, self.words(part)));
        Doc::group(self.joined(parts.collect(), true))
    }

    fn begins_with(&self, tokens: &Range<usize>, words: &[&str]) -> bool {
        let first = tokens.clone().find(|&token| !self.is_comment(token));
        first.is_some_and(|first| words.contains(&self.of(first)))
    }

    /// Whether `==` and a packet stand in what is expected of a port.
    fn is_packet(&self, tokens: Range<usize>) -> bool {
        let condition = tokens.clone().any(|token| self.of(token) == "where");
        !condition && self.find(tokens, "==").is_some()
    }

    /// Parts between operators, each with the one before it.
    fn split(&self, tokens: Range<usize>, operator: &str) -> Vec<(Option<usize>, Range<usize>)> {
        let mut parts = vec![];
        let (mut before, mut start) = (None, tokens.start);
        while let Some(at) = self.find(start..tokens.end, operator) {
            parts.push((before, start..at));
            (before, start) = (Some(at), at + 1);
        }
        parts.push((before, start..tokens.end));
        parts
    }

    /// The first part, and the others a level deeper with their operators before them.
    fn joined(&self, parts: Vec<(Option<usize>, Doc)>, fill: bool) -> Vec<Doc> {
        let mut docs = vec![];
        let mut rest = vec![];
        for (operator, part) in parts {
            match operator {
                None => docs.push(part),
                Some(operator) => {
                    rest.push(Doc::group(vec![Doc::text(self.of(operator)), Doc::text(" "), part]));
                }
            }
        }
        if fill {
            let mut items = vec![Doc::group(docs)];
            items.extend(rest);
            return vec![Doc::nest(vec![Doc::fill(items)])];
        }
        docs.push(Doc::nest(rest.into_iter().flat_map(|part| [Doc::Line, part]).collect()));
        docs
    }

    /// Tokens one behind the other.
    fn words(&self, tokens: Range<usize>) -> Doc {
        let mut docs = vec![];
        let mut at = tokens.start;
        let mut before: Option<usize> = None;
        // `syn|ack`, but `n << 2 | 1`: tight is what binds tight.
        let computed = COMPUTING.iter().any(|operator| self.find(tokens.clone(), operator).is_some());
        while at < tokens.end {
            if self.is_comment(at) {
                docs.push(self.comment(at));
                at += 1;
                if before.is_none() && at < tokens.end {
                    docs.push(Doc::text(" "));
                }
                continue;
            }
            let around_bar = before.is_some_and(|before| self.is(before, "|") || self.is(at, "|"));
            if around_bar && computed || before.is_some_and(|before| self.apart(before, at)) {
                docs.push(Doc::text(" "));
            }
            let next = self.behind(at);
            if next > at + 1 {
                docs.push(self.brackets(at, next - 1));
            } else {
                docs.push(Doc::text(self.with_unit(at)));
            }
            before = Some(next - 1);
            at = next;
        }
        Doc::group(docs)
    }

    /// Brackets and what they hold.
    pub fn brackets(&self, open: usize, close: usize) -> Doc {
        let inner = open + 1..close;
        let (line, empty) = if self.is(open, "{") { (Doc::Line, "{ }") } else { (Doc::Soft, "()") };
        if inner.is_empty() {
            return Doc::text(empty);
        }
        let list = Doc::fill(self.items(inner));
        let (open, close) = (Doc::text(self.of(open)), Doc::text(self.of(close)));
        Doc::group(vec![open, Doc::nest(vec![line.clone(), list]), line, close])
    }

    /// A token; a unit stands apart from its number.
    fn with_unit(&self, token: usize) -> String {
        let text = self.of(token);
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if !number.is_empty() && UNITS.contains(&unit) { format!("{number} {unit}") } else { text.to_string() }
    }

    /// Whether a space stands between two tokens.
    fn apart(&self, before: usize, next: usize) -> bool {
        let (kind, text) = (self.tokens[before].kind, self.of(before));
        let follows = self.of(next);
        if self.tokens[next].kind == Kind::Symbol && [":", "/", "|", "..=", ",", ";"].contains(&follows) {
            return false;
        }
        match kind {
            Kind::Symbol => !["!", "/", "|", "..="].contains(&text),
            Kind::Word if follows == "(" => BEFORE_PARENTHESIS.contains(&text),
            _ => true,
        }
    }
}
