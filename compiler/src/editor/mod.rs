//! What editors ask about a program while it is written. In: its text, however wrong, and a place in it. Out: names, what
//! stands there, what may stand there. Never: reads files, or looks at meaning beyond names; mistakes are told by
//! [`front`](crate::front).

mod complete;
mod symbols;
pub mod words;

use std::ops::Range;

pub use complete::{Completion, Offer, OfferKind};
pub use symbols::{Kind, Symbol};

use crate::field::{self, CT_FLAGS, Field, Header, TCP_FLAGS};
use crate::token::{self, Token, tokens};

/// A text that is being written.
#[derive(Debug)]
pub struct Document {
    text: String,
    tokens: Vec<Token>,
    symbols: Vec<Symbol>,
}

impl Document {
    /// Reads a text.
    pub fn new(text: impl Into<String>) -> Document {
        let text = text.into();
        let tokens = tokens(&text);
        let symbols = symbols::symbols(&text, &tokens);
        Document { text, tokens, symbols }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The names it declares, in order.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The token that a place touches, a word rather than what stands before it.
    fn token_at(&self, at: usize) -> Option<usize> {
        let next = self.tokens.partition_point(|token| token.range.end <= at);
        let touches = |i: usize| self.tokens.get(i).is_some_and(|t| t.range.start <= at && at <= t.range.end);
        let is_word = |i: usize| self.tokens.get(i).is_some_and(|t| t.kind == token::Kind::Word);
        let before = next.checked_sub(1).filter(|&i| touches(i) && is_word(i));
        if touches(next) && (is_word(next) || before.is_none()) { Some(next) } else { before }
    }

    fn token_text(&self, token: usize) -> &str {
        self.tokens.get(token).map_or("", |token| &self.text[token.range.clone()])
    }

    /// The text of the token before this one that is no comment.
    fn before(&self, token: usize) -> &str {
        let found = self.tokens[..token].iter().rev().find(|token| token.kind != token::Kind::Comment);
        found.map_or("", |token| &self.text[token.range.clone()])
    }

    /// The text of the token behind this one that is no comment.
    fn behind(&self, token: usize) -> &str {
        let found = self.tokens[token + 1..].iter().find(|token| token.kind != token::Kind::Comment);
        found.map_or("", |token| &self.text[token.range.clone()])
    }

    /// What a name at a place stands for.
    fn symbol_at(&self, token: usize) -> Option<&Symbol> {
        let place = &self.tokens[token];
        let name = if place.kind == token::Kind::Word { self.token_text(token) } else { return None };
        if let Some(symbol) = self.symbols.iter().find(|symbol| symbol.at == place.range) {
            return Some(symbol);
        }
        let inside = |symbol: &Symbol| symbol.kind != Kind::Param || symbol.item.contains(&place.range.start);
        let named = |wanted: &[Kind]| {
            let mut found = self.symbols.iter().filter(|symbol| symbol.name == name && inside(symbol));
            found.find(|symbol| wanted.contains(&symbol.kind))
        };
        let values = [Kind::Port, Kind::Const, Kind::Set, Kind::Var, Kind::HeaderField, Kind::Option];
        let actions = [Kind::Action, Kind::Extern];
        let rest = [Kind::Table, Kind::Group, Kind::Meter, Kind::Header];
        let by_context = match (self.before(token), self.behind(token)) {
            ("goto" | "call" | "learn", _) => named(&[Kind::Table]),
            ("push" | "pop" | "decap" | "after", _) => named(&[Kind::Header]),
            (_, "(") => named(&actions).or_else(|| named(&[Kind::Table, Kind::Header])),
            _ => None,
        };
        by_context
            .or_else(|| named(&[Kind::Param]))
            .or_else(|| named(&values))
            .or_else(|| named(&actions))
            .or_else(|| named(&rest))
            .or_else(|| {
                // A field of a header that is declared by another name leads to the header.
                let header = name.split('.').next()?;
                self.symbols.iter().find(|symbol| symbol.kind == Kind::Header && symbol.name == header)
            })
    }

    /// Where the name at a place is declared.
    pub fn definition(&self, at: usize) -> Option<&Symbol> {
        self.symbol_at(self.token_at(at)?)
    }

    /// What to say about a place, in Markdown, and the bytes it is about.
    pub fn hover(&self, at: usize) -> Option<(Range<usize>, String)> {
        let token = self.token_at(at)?;
        let range = self.tokens[token].range.clone();
        if self.tokens[token].kind != token::Kind::Word {
            return None;
        }
        let name = self.token_text(token);
        if let Some(symbol) = self.symbol_at(token) {
            let comment = if symbol.comment.is_empty() { String::new() } else { format!("\n\n{}", symbol.comment) };
            return Some((range, format!("```pipe\n{}\n```{comment}", symbol.detail)));
        }
        let is_argument = self.behind(token) == "=" && ["(", ","].contains(&self.before(token));
        if is_argument {
            return None;
        }
        // A port is an action by itself, and a value where it is compared.
        let compared = ["==", "!=", "in"].contains(&self.behind(token)) || self.before(token) == "=";
        let word = words::all().find(|(word, ..)| *word == name).filter(|_| !(name == "in_port" && compared));
        let text = match word {
            Some((_, usage, doc)) => format!("```pipe\n{usage}\n```\n\n{doc}"),
            None => about_field(name).or_else(|| about_header(name))?,
        };
        Some((range, text))
    }
}

/// What to say about a field or a flag.
fn about_field(name: &str) -> Option<String> {
    if let Some((field, header)) = Field::by_name(name) {
        let width = match field.width() {
            1 => "1 bit".to_string(),
            width => format!("{width} bits"),
        };
        let kind = match field.kind() {
            field::Kind::Number => "a number",
            field::Kind::Mac => "a MAC address",
            field::Kind::Ipv4 => "an IPv4 address",
            field::Kind::Ipv6 => "an IPv6 address",
            field::Kind::Port => "a port",
            field::Kind::Flags => "flags",
        };
        let mut text = format!("`{}`: {kind}, {width}\n\n{}", field.name(), field.doc());
        if let Some(header) = header {
            text += &format!("\n\nIn packets with {}.", header.name());
        }
        text += if field.target().is_some() { " Can be written." } else { " Cannot be written." };
        return Some(text);
    }
    let (space, flag) = name.split_once('.')?;
    let (field, flags) = match space {
        "ct" => ("ct.state", CT_FLAGS),
        "tcp" => ("tcp.flags", TCP_FLAGS),
        _ => return None,
    };
    let (_, bit) = flags.iter().find(|(known, _)| *known == flag)?;
    Some(format!("`{name}`: a flag\n\nBit {bit:#x} of `{field}`."))
}

/// What to say about a header.
fn about_header(name: &str) -> Option<String> {
    let header = Header::by_name(name)?;
    let fields: Vec<String> = fields_of(name).map(|field| format!("`{field}`")).collect();
    let below = header.below().map_or(String::new(), |below| format!(", on {}", below.name()));
    Some(format!("`{name}`: a header{below}\n\nHolds for packets that have it. Fields: {}.", fields.join(", ")))
}

/// Names of a header's fields with dots, those of flags not among them.
fn fields_of(header: &str) -> impl Iterator<Item = &'static str> {
    Field::names().filter(move |name| name.split_once('.').is_some_and(|(first, _)| first == header))
}
