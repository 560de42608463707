//! Tokens and comments with their places. In: any text at all. Out: its tokens, of which nothing but white space lies
//! between two. Never: an error, so that tools may look at text that is half written; what is right, only `parse` says.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word, or a path of words with dots; the last dot may have nothing behind it.
    Word,
    /// A number, a number with its unit, or an address.
    Number,
    /// A string with its quotes.
    Text,
    /// An operator or a bracket.
    Symbol,
    /// `// …` without the end of the line, or `/* … */`.
    Comment,
}

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Its bytes.
    pub range: Range<usize>,
}

/// Operators of several characters, the longest first.
const OPERATORS: &[&str] = &["..=", "=>", "==", "&&", "||", "<=", ">=", "!=", "<<", ">>"];

/// The tokens of a text, in order.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut found = vec![];
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() || c == '\u{feff}' {
            at += c.len_utf8();
            continue;
        }
        let (kind, length) = token(&text[at..], c);
        found.push(Token { kind, range: at..at + length });
        at += length;
    }
    found
}

/// The token that a text begins with, and its length.
fn token(rest: &str, first: char) -> (Kind, usize) {
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if let Some(comment) = rest.strip_prefix("/*") {
        return (Kind::Comment, comment.find("*/").map_or(rest.len(), |end| end + 4));
    }
    if first == '"' {
        return (Kind::Text, string(rest));
    }
    if let Some(length) = address(rest.as_bytes()) {
        return (Kind::Number, length);
    }
    if first.is_ascii_digit() {
        return (Kind::Number, dotted(rest, |c| c.is_ascii_digit()));
    }
    if is_word(first) {
        let length = dotted(rest, |c| c.is_ascii_alphabetic() || c == '_');
        let dot = rest[length..].starts_with('.') && !rest[length..].starts_with("..");
        return (Kind::Word, length + usize::from(dot));
    }
    let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
    (Kind::Symbol, operator.map_or(first.len_utf8(), |operator| operator.len()))
}

/// Whether a character may be part of a word.
pub fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Words joined by dots, those behind a dot beginning with what `begins` says.
fn dotted(rest: &str, begins: impl Fn(char) -> bool) -> usize {
    let word = |rest: &str| rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let mut at = word(rest);
    while let Some(next) = rest[at..].strip_prefix('.')
        && next.starts_with(&begins)
    {
        at += 1 + word(next);
    }
    at
}

/// A string, up to its quote or the end of the line.
fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '\n' => return at,
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    rest.len()
}

/// A MAC or IPv6 address.
fn address(bytes: &[u8]) -> Option<usize> {
    let hex = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let colon = |at: usize| bytes.get(at) == Some(&b':');
    let first = hex(0);
    if first > 4 || !colon(first) {
        return None;
    }
    let second = first + 1 + hex(first + 1);
    if second - first > 5 || !colon(second) {
        return None;
    }
    let mut at = bytes.iter().take_while(|b| b.is_ascii_hexdigit() || **b == b':').count();
    while bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
        at += 1 + bytes[at + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
    }
    bytes.get(at).is_none_or(|b| !is_word(*b as char)).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| &text[token.range]).collect()
    }

    #[test]
    fn tokens_are_those_of_the_grammar() {
        let text =
            "ip.src in 10.0.0.0/8=>a = fe80::1, 02:00:00:00:00:01..=x;// c\n\"a\\\"b // c\"/* d */ 60s 1_0..=0x2f";
        let expected = [
            "ip.src",
            "in",
            "10.0.0.0",
            "/",
            "8",
            "=>",
            "a",
            "=",
            "fe80::1",
            ",",
            "02:00:00:00:00:01",
            "..=",
            "x",
            ";",
            "// c",
            "\"a\\\"b // c\"",
            "/* d */",
            "60s",
            "1_0",
            "..=",
            "0x2f",
        ];
        assert_eq!(cut(text), expected);
        assert_eq!(cut("a: u16 ipv4. LOW..=HIGH é"), ["a", ":", "u16", "ipv4.", "LOW", "..=", "HIGH", "é"]);
    }

    #[test]
    fn half_written_text_has_tokens_too() {
        assert_eq!(cut("\"ab\n\"\" \"\\"), ["\"ab", "\"\"", "\"\\"]);
        assert_eq!(cut("/* x"), ["/* x"]);
        assert_eq!(cut("/*/"), ["/*/"]);
    }
}
