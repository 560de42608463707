//! What may stand at a place. In: the tokens before it. Out: names with what they are, those that fit the place only.

use std::collections::BTreeMap;
use std::ops::Range;

use super::words::{self, Word};
use super::{Document, Kind, about_field, about_header, fields_of};
use crate::field::{CT_FLAGS, Field, Header, TCP_FLAGS};
use crate::token;

/// Names that may stand at a place.
#[derive(Debug, PartialEq, Eq)]
pub struct Completion {
    /// What is written already, and would be replaced.
    pub replaces: Range<usize>,
    /// What may stand there instead, without repetitions.
    pub offers: Vec<Offer>,
}

/// A name that may stand at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The name, whole.
    pub name: String,
    /// What it is.
    pub kind: OfferKind,
    /// A line about it.
    pub detail: String,
    /// More, in Markdown.
    pub doc: String,
}

/// What an offered name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferKind {
    /// A name that the program declares.
    Declared(Kind),
    /// A field of a packet.
    Field,
    /// A header.
    Header,
    /// A word of the language.
    Word,
    /// An action of the language.
    Action,
    /// A type.
    Type,
}

/// Where in a program a place is.
struct Place<'d> {
    /// Code tokens before the place, without the word that is being written, back to the beginning of the statement.
    statement: Vec<&'d str>,
    /// The first word of the item around it; empty at the level of items, none outside of a pipeline.
    item: Option<&'d str>,
    /// The name that stands before the parenthesis around it, if there is one.
    call: Option<&'d str>,
}

impl Document {
    /// What may stand at a place.
    pub fn complete(&self, at: usize) -> Option<Completion> {
        let at = (0..=at.min(self.text.len())).rev().find(|&at| self.text.is_char_boundary(at))?;
        let mut count = self.tokens.partition_point(|token| token.range.start < at);
        let mut replaces = at..at;
        if let Some(last) = count.checked_sub(1).map(|i| &self.tokens[i])
            && last.range.end >= at
        {
            match last.kind {
                token::Kind::Comment if last.range.end > at || self.text[last.range.clone()].starts_with("//") => {
                    return None;
                }
                token::Kind::Text if last.range.end > at || !self.text[last.range.clone()].ends_with('"') => {
                    return None;
                }
                token::Kind::Number => return None,
                token::Kind::Word => {
                    count -= 1;
                    replaces = last.range.start..at;
                }
                _ => {}
            }
        }
        let written = &self.text[replaces.clone()];
        let mut offers = match written.rsplit_once('.') {
            Some((space, _)) => self.fields(space),
            None => self.names(&self.place(count), at),
        };
        let mut seen = std::collections::HashSet::new();
        offers.retain(|offer| seen.insert(offer.name.clone()));
        Some(Completion { replaces, offers })
    }

    /// Fields and flags behind a header and a dot.
    fn fields(&self, space: &str) -> Vec<Offer> {
        let mut offers: Vec<Offer> = fields_of(space).map(|name| field(name.to_string())).collect();
        let flags = match space {
            "ct" => CT_FLAGS,
            "tcp" => TCP_FLAGS,
            _ => &[],
        };
        offers.extend(flags.iter().map(|(flag, _)| field(format!("{space}.{flag}"))));
        let prefix = format!("{space}.");
        offers.extend(self.declared(&[Kind::HeaderField], 0).into_iter().filter(|o| o.name.starts_with(&prefix)));
        offers
    }

    /// Declared names of some kinds, those of parameters only where they are known.
    fn declared(&self, kinds: &[Kind], at: usize) -> Vec<Offer> {
        let known = |symbol: &&super::Symbol| {
            let inside = symbol.item.start <= at && at <= symbol.item.end;
            kinds.contains(&symbol.kind) && (symbol.kind != Kind::Param || inside)
        };
        let offer = |symbol: &super::Symbol| Offer {
            name: symbol.name.clone(),
            kind: OfferKind::Declared(symbol.kind),
            detail: symbol.detail.clone(),
            doc: symbol.comment.clone(),
        };
        self.symbols.iter().filter(known).map(offer).collect()
    }

    /// Where the place before token `count` is.
    fn place(&self, count: usize) -> Place<'_> {
        let code = self.tokens[..count].iter().filter(|token| token.kind != token::Kind::Comment);
        let code: Vec<&str> = code.map(|token| &self.text[token.range.clone()]).collect();
        // Brackets that are open, with the first word of the statement they stand in.
        let mut open: Vec<(usize, &str)> = vec![];
        let mut start = 0;
        let mut starts = vec![];
        for (i, word) in code.iter().enumerate() {
            match *word {
                "{" | "(" => {
                    open.push((i, code[start]));
                    starts.push(start);
                    if *word == "{" {
                        start = i + 1;
                    }
                }
                "}" | ")" => {
                    let before = starts.pop().unwrap_or(0);
                    if let Some((at, head)) = open.pop() {
                        let ends = *word == "}" && code[at] == "{" && !["clone", "set", "send"].contains(&head);
                        let inside_rule = *word == "}" && code[before..at].contains(&"=>");
                        let list = at > 0 && ["=", "in", "clone"].contains(&code[at - 1]);
                        start = if ends && !inside_rule && !list { i + 1 } else { before };
                    }
                }
                ";" => start = i + 1,
                _ => {}
            }
        }
        let blocks: Vec<&str> = open.iter().filter(|(at, _)| code[*at] == "{").map(|(_, head)| *head).collect();
        let item = match blocks.as_slice() {
            [] => None,
            ["pipeline"] => Some(""),
            ["pipeline", item, ..] => Some(*item),
            // A file without a pipeline holds items.
            [item, ..] => Some(*item),
        };
        let call = open.last().filter(|(at, _)| code[*at] == "(" && *at > 0).map(|(at, _)| code[at - 1]);
        Place { statement: code[start.min(code.len())..].to_vec(), item, call }
    }

    fn names(&self, place: &Place<'_>, at: usize) -> Vec<Offer> {
        let last = place.statement.last().copied().unwrap_or("");
        let first = place.statement.first().copied().unwrap_or("");
        match (last, place.call) {
            ("goto" | "call" | "learn", _) => return self.declared(&[Kind::Table], at),
            ("(" | ",", Some("output" | "mirror")) => {
                return self.declared(&[Kind::Port, Kind::Var, Kind::Param], at);
            }
            ("(", Some("group")) => return self.declared(&[Kind::Group], at),
            ("(", Some("meter")) => return self.declared(&[Kind::Meter], at),
            ("push" | "pop" | "decap", _) => return self.headers(at),
            _ => {}
        }
        match place.item {
            None if place.statement.is_empty() => {
                words(&[words::OTHERS], OfferKind::Word).into_iter().filter(|offer| offer.name == "pipeline").collect()
            }
            None => vec![],
            Some("") => match (place.statement.is_empty(), last, first) {
                (true, ..) => words(&[words::ITEMS], OfferKind::Word),
                (_, ":", "var" | "action" | "extern") => types(),
                (_, "after", "header") => self.headers(at),
                (_, _, "const" | "set" | "option" | "header") => self.values(at),
                _ => vec![],
            },
            Some("test") => self.test(place, at),
            Some("action") => self.action(place, at),
            Some("table" | "start" | "entries") => self.rule(place, at),
            Some("group") => self.action(place, at),
            Some(_) => self.values(at),
        }
    }

    fn rule(&self, place: &Place<'_>, at: usize) -> Vec<Offer> {
        let Some(arrow) = place.statement.iter().position(|word| *word == "=>") else {
            let mut offers = vec![];
            match place.statement.as_slice() {
                [] => offers.extend(words(&[words::RULES, words::KEYED], OfferKind::Word)),
                ["actions", ..] | ["default"] => return self.actions(at),
                _ => {}
            }
            offers.extend(self.values(at));
            return offers;
        };
        self.list(&place.statement[arrow + 1..], place, at)
    }

    fn action(&self, place: &Place<'_>, at: usize) -> Vec<Offer> {
        self.list(&place.statement, place, at)
    }

    /// In a list of actions, after what is written of it.
    fn list(&self, list: &[&str], place: &Place<'_>, at: usize) -> Vec<Offer> {
        let begins = matches!(list.last(), None | Some(&"," | &";" | &"{"));
        if place.call.is_none() && begins { self.actions(at) } else { self.values(at) }
    }

    fn test(&self, place: &Place<'_>, at: usize) -> Vec<Offer> {
        let ports = || self.declared(&[Kind::Port], at);
        match (place.statement.as_slice(), place.call) {
            ([], _) => words(&[words::STEPS], OfferKind::Word),
            (["send", ..], Some(header)) => parts(header, self),
            (["send"], _) => ports(),
            (["send", _] | ["send", .., "/"], _) => self.headers(at),
            (["expect"] | ["expect", .., ","], _) => {
                let mut offers = ports();
                let ends = words(&[words::ACTIONS], OfferKind::Action);
                offers.extend(ends.into_iter().filter(|offer| ["drop", "controller"].contains(&offer.name.as_str())));
                offers
            }
            _ => self.values(at),
        }
    }

    fn headers(&self, at: usize) -> Vec<Offer> {
        let mut offers: Vec<Offer> = Header::NAMES
            .iter()
            .map(|(name, _)| Offer {
                name: name.to_string(),
                kind: OfferKind::Header,
                detail: "header".into(),
                doc: about_header(name).unwrap_or_default(),
            })
            .collect();
        offers.extend(self.declared(&[Kind::Header], at));
        offers
    }

    /// What a condition or a value is made of.
    fn values(&self, at: usize) -> Vec<Offer> {
        let kinds = [Kind::Param, Kind::Var, Kind::Port, Kind::Const, Kind::Set];
        let mut offers = self.declared(&kinds, at);
        offers.extend(self.headers(at));
        let names: BTreeMap<&str, ()> = Field::ALL.iter().map(|field| (field.name(), ())).collect();
        offers.extend(names.into_keys().map(|name| field(name.to_string())));
        offers.extend(self.declared(&[Kind::HeaderField], at));
        offers
    }

    fn actions(&self, at: usize) -> Vec<Offer> {
        let mut offers = self.declared(&[Kind::Action, Kind::Extern], at);
        offers.extend(words(&[words::ACTIONS], OfferKind::Action));
        offers.extend(self.declared(&[Kind::Var], at));
        let written = Field::ALL.iter().filter(|field| field.target().is_some());
        offers.extend(written.map(|written| field(written.name().to_string())));
        offers.extend(self.declared(&[Kind::HeaderField], at));
        offers
    }
}

fn words(lists: &[&[Word]], kind: OfferKind) -> Vec<Offer> {
    let offer = |(name, usage, doc): &Word| Offer {
        name: name.to_string(),
        kind,
        detail: usage.to_string(),
        doc: doc.to_string(),
    };
    lists.iter().copied().flatten().map(offer).collect()
}

fn types() -> Vec<Offer> {
    let offer = |name: &&str| Offer {
        name: name.to_string(),
        kind: OfferKind::Type,
        detail: "type".into(),
        doc: String::new(),
    };
    words::TYPES.iter().map(offer).collect()
}

fn field(name: String) -> Offer {
    let doc = about_field(&name).unwrap_or_default();
    Offer { name, kind: OfferKind::Field, detail: "field".into(), doc }
}

/// Parts of a header that a packet is built with.
fn parts(header: &str, document: &Document) -> Vec<Offer> {
    let mut offers: Vec<Offer> = crate::packet::parts(header)
        .map(|part| Offer {
            name: part.to_string(),
            kind: OfferKind::Field,
            detail: format!("of {header}"),
            doc: about_field(&format!("{header}.{part}")).unwrap_or_default(),
        })
        .collect();
    let prefix = format!("{header}.");
    for mut offer in document.declared(&[Kind::HeaderField], 0) {
        if let Some(name) = offer.name.strip_prefix(&prefix) {
            offer.name = name.to_string();
            offers.push(offer);
        }
    }
    offers
}
