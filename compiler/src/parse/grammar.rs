//! Runs one rule of the grammar over one statement, and says what was expected where it fails.

#![allow(missing_docs)] // The derive makes undocumented items.

use std::collections::BTreeSet;
use std::ops::Range;

use pest::Parser;
use pest::error::{ErrorVariant, InputLocation};
use pest::iterators::{Pair, Pairs};

use super::cut::{skip_blank, word_at};
use crate::diag::Diagnostic;
use crate::source::Span;

#[derive(pest_derive::Parser)]
#[grammar = "parse/pipe.pest"]
struct Grammar;

/// A statement's text with its place, and where messages go.
pub struct Context<'a, 'd> {
    pub text: &'a str,
    pub file: u16,
    /// First byte of the statement that is being parsed.
    pub base: usize,
    /// Where brackets do not pair, in order, which is reported already.
    pub broken: Vec<usize>,
    pub diagnostics: &'d mut Vec<Diagnostic>,
}

impl<'a> Context<'a, '_> {
    /// Whether a bracket of a statement does not pair.
    pub fn is_broken(&self, range: &Range<usize>) -> bool {
        let first = self.broken.partition_point(|&at| at < range.start);
        self.broken.get(first).is_some_and(|at| range.contains(at))
    }

    /// Parses a statement as `rule`.
    pub fn parse(&mut self, rule: Rule, range: Range<usize>) -> Option<Pairs<'a, Rule>> {
        self.base = range.start;
        let text = &self.text[range.clone()];
        match Grammar::parse(rule, text) {
            Ok(mut pairs) => pairs.next().map(Pair::into_inner),
            Err(_) if self.is_broken(&range) => None,
            Err(error) => {
                let at = match error.location {
                    InputLocation::Pos(at) | InputLocation::Span((at, _)) => at,
                };
                let expected = match error.variant {
                    ErrorVariant::ParsingError { positives, .. } => positives,
                    ErrorVariant::CustomError { .. } => vec![],
                };
                let diagnostic = self.unexpected(text, at, &expected);
                self.diagnostics.push(diagnostic);
                None
            }
        }
    }

    /// The place of a part of the statement.
    pub fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let span = pair.as_span();
        Span::new(self.file, self.base + span.start()..self.base + span.end())
    }

    /// The message for what stands at byte `at` of a statement.
    fn unexpected(&self, text: &str, at: usize, expected: &[Rule]) -> Diagnostic {
        let names: BTreeSet<&str> = expected.iter().map(|&rule| describe(rule)).collect();
        let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let expected = list(&names);
        let at = at + skip_blank(&text[at..]);
        let found = token(text, at);
        let before = text[..at].trim_end();
        if let Some(nat) = inside_nat(before) {
            let span = Span::new(self.file, self.base + nat..self.base + nat + "nat".len());
            let message = "address translation is not available yet: it waits for connection tracking";
            return Diagnostic::error("not-yet", message, span, "not available yet");
        }
        let next_line = names.contains(&"`;`") && text[before.len()..at].contains('\n');
        if found.is_empty() || next_line {
            // At the end of the statement, or of what was meant to be one: show its last character.
            let end = self.base + before.len();
            let start = self.text[..end].char_indices().next_back().map_or(end, |(i, _)| i);
            let span = Span::new(self.file, start..end);
            let expected = if next_line { "`;`" } else { &expected };
            return Diagnostic::error("syntax", format!("expected {expected} behind this"), span, "ends here");
        }
        let span = Span::new(self.file, self.base + at..self.base + at + found.len());
        let message = format!("expected {expected}, found `{}`", found.escape_default());
        let diagnostic = Diagnostic::error("syntax", message, span, format!("expected {expected}"));
        match advice(found, &text[at..]) {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

/// Where `nat` stands, if the text ends inside of its parentheses: its arguments have a form of their own.
fn inside_nat(text: &str) -> Option<usize> {
    let open = text.rfind('(')?;
    let word = text[..open].trim_end();
    let inside = !text[open..].contains(')') && word.ends_with("nat");
    let start = word.len() - "nat".len().min(word.len());
    let alone = !word[..start].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (inside && alone).then_some(start)
}

/// The token at a byte of a text; empty at its end.
fn token(text: &str, at: usize) -> &str {
    let word = word_at(text, at);
    if !word.is_empty() {
        return word;
    }
    for operator in ["=>", "==", "&&", "||", "..=", "..", "<=", ">=", "!="] {
        if text[at..].starts_with(operator) {
            return &text[at..at + operator.len()];
        }
    }
    &text[at..at + text[at..].chars().next().map_or(0, char::len_utf8)]
}

/// What to do about a token that people write for another.
fn advice(found: &str, rest: &str) -> Option<&'static str> {
    match found {
        "=" => Some("`==` compares"),
        ".." => Some("a range is written `first..=last`"),
        "and" => Some("write `&&`"),
        "or" => Some("write `||`"),
        "not" => Some("write `!`"),
        ":" if rest.starts_with("::") => Some("is the IPv6 address complete?"),
        "'" => Some("strings stand in double quotes"),
        _ => None,
    }
}

/// "a, b or c".
pub fn list(names: &[&str]) -> String {
    match names {
        [] => "something else".into(),
        [one] => (*one).into(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// What people call a rule; rules with the same name are one for them.
fn describe(rule: Rule) -> &'static str {
    match rule {
        Rule::comma => "`,`",
        Rule::semi => "`;`",
        Rule::colon => "`:`",
        Rule::slash => "`/`",
        Rule::assign => "`=`",
        Rule::equal => "`==`",
        Rule::kw_where => "`where`",
        Rule::reason => "`(`",
        Rule::expected => "a port or `drop`",
        Rule::arrow => "`=>`",
        Rule::open_paren | Rule::args => "`(`",
        Rule::close_paren => "`)`",
        Rule::open_brace => "`{`",
        Rule::close_brace => "`}`",
        Rule::elements => "`{`",
        Rule::infix => "an operator",
        Rule::weight | Rule::kw_weight => "`weight`",
        Rule::watch | Rule::kw_watch => "`watch`",
        Rule::rate_unit => "`pps` or `kbps`",
        Rule::function | Rule::call_open => "",
        Rule::expr | Rule::operand | Rule::paren | Rule::not | Rule::mac | Rule::ipv6 | Rule::ipv4 => "a value",
        Rule::otherwise | Rule::priority => "",
        Rule::act_push | Rule::act_pop | Rule::act_encap | Rule::act_decap => "an action",
        Rule::kw_push | Rule::kw_pop | Rule::kw_encap | Rule::kw_decap => "an action",
        Rule::kw_after => "`after`",
        Rule::kw_if => "`if`",
        Rule::parent => "a header",
        Rule::act | Rule::act_path | Rule::act_call | Rule::act_clone | Rule::act_goto => "an action",
        Rule::kw_priority => "",
        Rule::kw_call | Rule::kw_clone | Rule::kw_goto => "an action",
        Rule::number | Rule::digits => "a number",
        Rule::string => "a string",
        Rule::unit => "`s` or another unit of time",
        Rule::type_name => "a type",
        Rule::layer | Rule::packet => "a header such as `ipv4(...)`",
        Rule::name | Rule::path | Rule::port_decl | Rule::var_decl => "a name",
        Rule::arg => "an argument",
        Rule::entry_part | Rule::any => "a value",
        Rule::entry_act => "an action",
        Rule::match_kind => "a kind of match",
        Rule::kw_learn | Rule::kw_time | Rule::time => "",
        Rule::kw_from => "`from`",
        Rule::EOI => "nothing more",
        _ => "something else",
    }
}
