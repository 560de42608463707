//! Names that a program declares, found without its being right. In: tokens. Out: [`Symbol`]s with their places.
//!
//! A statement begins with its word where the one before has ended, or at the beginning of a line; so a statement that is
//! half written hides nothing behind it.

use std::ops::Range;

use crate::parse::ITEM_WORDS;
use crate::token::{Kind as Token, Token as Place};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Pipeline,
    Port,
    Const,
    Set,
    Var,
    Action,
    Extern,
    Param,
    Table,
    Test,
    Header,
    HeaderField,
    Group,
    Meter,
    Option,
}

impl Kind {
    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pipeline => "pipeline",
            Kind::Port => "port",
            Kind::Const => "constant",
            Kind::Set => "set",
            Kind::Var => "variable",
            Kind::Action => "action",
            Kind::Extern => "action in Rust",
            Kind::Param => "parameter",
            Kind::Table => "table",
            Kind::Test => "test",
            Kind::Header => "header",
            Kind::HeaderField => "field",
            Kind::Group => "group",
            Kind::Meter => "meter",
            Kind::Option => "option",
        }
    }
}

/// A name and where it is declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The name; of a field of a header, with the header's name and a dot before it.
    pub name: String,
    /// What it stands for.
    pub kind: Kind,
    /// Where the name stands.
    pub at: Range<usize>,
    /// The whole statement.
    pub item: Range<usize>,
    /// Its declaration on one line.
    pub detail: String,
    /// The comment above its statement.
    pub comment: String,
}

/// The names of a text, in order.
pub fn symbols(text: &str, tokens: &[Place]) -> Vec<Symbol> {
    let code: Vec<usize> = (0..tokens.len()).filter(|&i| tokens[i].kind != Token::Comment).collect();
    let mut finder = Finder { text, tokens, code: &code, found: vec![] };
    for at in 0..code.len() {
        finder.statement(at);
    }
    finder.found
}

struct Finder<'a> {
    text: &'a str,
    tokens: &'a [Place],
    /// Tokens that are no comments.
    code: &'a [usize],
    found: Vec<Symbol>,
}

impl<'a> Finder<'a> {
    fn word(&self, at: usize) -> &'a str {
        self.code.get(at).map_or("", |&token| &self.text[self.tokens[token].range.clone()])
    }

    fn range(&self, at: usize) -> Range<usize> {
        self.code.get(at).map_or(self.text.len()..self.text.len(), |&token| self.tokens[token].range.clone())
    }

    fn is_name(&self, at: usize) -> bool {
        self.code.get(at).is_some_and(|&token| self.tokens[token].kind == Token::Word)
    }

    /// Whether a statement may begin here.
    fn begins(&self, at: usize) -> bool {
        at == 0 || ["{", "}", ";"].contains(&self.word(at - 1)) || self.begins_line(at)
    }

    fn begins_line(&self, at: usize) -> bool {
        at == 0 || self.text[self.range(at - 1).end..self.range(at).start].contains('\n')
    }

    /// Whether a statement of a pipeline begins here.
    fn is_item(&self, at: usize) -> bool {
        let word = self.word(at);
        let known = ITEM_WORDS.contains(&word) || ["pipeline", "group", "meter"].contains(&word);
        known && self.begins(at) && self.word(at + 1) != "("
    }

    fn statement(&mut self, at: usize) {
        if !self.is_item(at) {
            return;
        }
        let item = self.range(at).start..self.end(at);
        match self.word(at) {
            "pipeline" => self.declare(at + 1, Kind::Pipeline, &item),
            "const" => self.declare(at + 1, Kind::Const, &item),
            "set" => self.declare(at + 1, Kind::Set, &item),
            "option" => self.declare(at + 1, Kind::Option, &item),
            "table" => self.declare(at + 1, Kind::Table, &item),
            "group" => self.declare(at + 1, Kind::Group, &item),
            "meter" => self.declare(at + 1, Kind::Meter, &item),
            "start" => self.push("start".into(), Kind::Table, self.range(at), &item),
            "test" => {
                let name = self.word(at + 1).trim_matches('"').to_string();
                self.push(name, Kind::Test, self.range(at + 1), &item);
            }
            "port" => self.ports(at + 1, &item),
            "var" => self.typed(at + 1, Kind::Var, "", &item),
            "action" => {
                self.declare(at + 1, Kind::Action, &item);
                self.typed(at + 3, Kind::Param, "", &item);
            }
            "extern" => self.declare(at + 2, Kind::Extern, &item),
            "header" => {
                self.declare(at + 1, Kind::Header, &item);
                let prefix = format!("{}.", self.word(at + 1));
                self.typed(at + 3, Kind::HeaderField, &prefix, &item);
            }
            _ => {}
        }
    }

    /// `a, b = 2`.
    fn ports(&mut self, mut at: usize, item: &Range<usize>) {
        while self.is_name(at) && !self.is_item(at) {
            self.declare(at, Kind::Port, item);
            at += if self.word(at + 1) == "=" { 3 } else { 1 };
            if self.word(at) != "," {
                return;
            }
            at += 1;
        }
    }

    /// `a: u8, b: port`.
    fn typed(&mut self, mut at: usize, kind: Kind, prefix: &str, item: &Range<usize>) {
        while self.is_name(at) && !self.is_item(at) && self.word(at + 1) == ":" {
            let name = format!("{prefix}{}", self.word(at));
            self.push(name, kind, self.range(at), item);
            if let Some(symbol) = self.found.last_mut() {
                symbol.detail = format!("{} {}", kind.name(), symbol.name);
            }
            let ty = if self.is_name(at + 2) { self.word(at + 2) } else { "?" };
            if let Some(symbol) = self.found.last_mut() {
                symbol.detail += &format!(": {ty}");
            }
            at += 3;
            if self.word(at) != "," {
                return;
            }
            at += 1;
        }
    }

    fn declare(&mut self, at: usize, kind: Kind, item: &Range<usize>) {
        if self.is_name(at) {
            self.push(self.word(at).to_string(), kind, self.range(at), item);
        }
    }

    fn push(&mut self, name: String, kind: Kind, at: Range<usize>, item: &Range<usize>) {
        let whole = &self.text[item.clone()];
        let body = matches!(kind, Kind::Pipeline | Kind::Table | Kind::Action | Kind::Test | Kind::Group | Kind::Meter);
        let head = if body { whole.split('{').next().unwrap_or(whole) } else { whole };
        let mut detail = head.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some((end, _)) = detail.char_indices().nth(200) {
            detail.truncate(end);
            detail.push('…');
        }
        let comment = self.comment(item.start);
        self.found.push(Symbol { name, kind, at, item: item.clone(), detail, comment });
    }

    /// The comments right above a place.
    fn comment(&self, start: usize) -> String {
        let mut above = self.tokens.partition_point(|token| token.range.end <= start);
        let mut lines = vec![];
        let mut next = start;
        while above > 0 && self.tokens[above - 1].kind == Token::Comment {
            let range = self.tokens[above - 1].range.clone();
            let behind_code = above > 1 && !self.text[self.tokens[above - 2].range.end..range.start].contains('\n');
            if behind_code || self.text[range.end..next].matches('\n').count() > 1 {
                break;
            }
            let text = self.text[range.clone()].trim_start_matches(['/', '*']).trim_end_matches(['/', '*']);
            lines.push(text.trim());
            next = range.start;
            above -= 1;
        }
        lines.reverse();
        lines.join("\n")
    }

    /// Where a statement ends: at its semicolon or the end of its body, or before the next one.
    fn end(&self, start: usize) -> usize {
        let mut depth = 0_usize;
        let pipeline = self.word(start) == "pipeline";
        for at in start..self.code.len() {
            if at > start && !pipeline && self.begins_line(at) && self.is_item(at) {
                return self.range(at - 1).end;
            }
            match self.word(at) {
                "{" | "(" => depth += 1,
                ")" => depth = depth.saturating_sub(1),
                "}" => {
                    depth = depth.saturating_sub(1);
                    let goes_on = ["after", ";", "="].contains(&self.word(at + 1));
                    if depth == 0 && !goes_on {
                        return self.range(at).end;
                    }
                }
                ";" if depth == 0 => return self.range(at).end,
                _ => {}
            }
        }
        self.text.len()
    }
}
