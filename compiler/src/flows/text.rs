//! Pieces of a source line that know where they stand, and the `key`, `key=value`, `key:value`, `key(value)` items that rules
//! and actions are made of. Items are separated by commas or blanks; parentheses nest.

use crate::diag::Diagnostic;
use crate::source::Span;

/// A piece of the source.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Its text.
    pub text: &'a str,
    file: u16,
    start: usize,
}

impl<'a> Piece<'a> {
    /// A piece that begins at byte `start` of a file.
    pub fn new(file: u16, start: usize, text: &'a str) -> Piece<'a> {
        Piece { text, file, start }
    }

    /// Where it stands.
    pub fn span(self) -> Span {
        Span::new(self.file, self.start..self.start + self.text.len())
    }

    /// A part of it.
    pub fn slice(self, from: usize, to: usize) -> Piece<'a> {
        Piece { text: &self.text[from..to], start: self.start + from, ..self }
    }

    /// What is left from byte `from` on.
    pub fn skip(self, from: usize) -> Piece<'a> {
        self.slice(from, self.text.len())
    }

    /// What stands before and behind the first `separator`.
    pub fn split_once(self, separator: &str) -> Option<(Piece<'a>, Piece<'a>)> {
        let at = self.text.find(separator)?;
        Some((self.slice(0, at), self.skip(at + separator.len())))
    }

    /// Without blanks around it.
    pub fn trim(self) -> Piece<'a> {
        let start = self.text.len() - self.text.trim_start().len();
        let end = self.text.trim_end().len().max(start);
        self.slice(start, end)
    }

    /// Whether it is this word, upper case or lower.
    pub fn is(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    /// An error here.
    pub fn error(self, code: &'static str, message: impl Into<String>, label: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message, self.span(), label)
    }
}

/// One item of a rule or of an action list.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// What stands before `=`, `:` or `(`.
    pub key: Piece<'a>,
    /// What stands behind it.
    pub value: Option<Piece<'a>>,
    /// The value stands in parentheses.
    pub parentheses: bool,
    /// All of it.
    pub all: Piece<'a>,
}

impl<'a> Item<'a> {
    /// The value, or an error that says what is missing.
    pub fn needs_value(self, what: &str) -> Result<Piece<'a>, Diagnostic> {
        let value = self.value.filter(|value| !value.text.is_empty());
        value.ok_or_else(|| {
            let key = self.key.text;
            self.all.error("flow-syntax", format!("`{key}` needs {what}"), format!("{what} expected behind this"))
        })
    }
}

/// The items of a piece, in order.
pub struct Items<'a> {
    rest: Piece<'a>,
}

impl<'a> Items<'a> {
    /// The items of `piece`.
    pub fn new(piece: Piece<'a>) -> Items<'a> {
        Items { rest: piece }
    }

    /// What has not been taken yet.
    pub fn rest(&self) -> Piece<'a> {
        self.rest
    }
}

const BETWEEN: &[u8] = b", \t\r";

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, Diagnostic>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.rest.text.as_bytes();
        let start = bytes.iter().position(|byte| !BETWEEN.contains(byte))?;
        let all = self.rest.skip(start);
        let bytes = &bytes[start..];
        let key_end = bytes.iter().position(|byte| b":=(, \t\r".contains(byte)).unwrap_or(bytes.len());
        let key = all.slice(0, key_end);
        let (end, value, parentheses) = match bytes.get(key_end) {
            Some(b':' | b'=') => {
                let Some(end) = value_end(bytes, key_end + 1, BETWEEN) else {
                    return Some(Err(self.unclosed(all)));
                };
                (end, Some(all.slice(key_end + 1, end)), false)
            }
            Some(b'(') => {
                let Some(end) = value_end(bytes, key_end + 1, b")").filter(|&end| end < bytes.len()) else {
                    return Some(Err(self.unclosed(all)));
                };
                // `name(argument)->field` is one item, though no action of ours is written so.
                let behind = &bytes[end + 1..];
                let arrow = if behind.starts_with(b"->") { value_end(behind, 0, BETWEEN).unwrap_or(0) } else { 0 };
                (end + 1 + arrow, Some(all.slice(key_end + 1, end)), true)
            }
            _ => (key_end, None, false),
        };
        self.rest = all.skip(end);
        Some(Ok(Item { key, value, parentheses, all: all.slice(0, end) }))
    }
}

impl<'a> Items<'a> {
    /// The error for a parenthesis that is not closed; nothing is left after it.
    fn unclosed(&mut self, all: Piece<'a>) -> Diagnostic {
        self.rest = all.skip(all.text.len());
        all.error("flow-syntax", "a `(` is never closed", "no `)` on this line")
    }
}

/// Where a value that begins at `from` ends: at one of `delimiters` outside parentheses, or at the end. `None` if a
/// parenthesis is not closed.
fn value_end(bytes: &[u8], from: usize, delimiters: &[u8]) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'(' => depth += 1,
            b')' if depth > 0 => depth -= 1,
            _ if depth == 0 && delimiters.contains(byte) => return Some(at),
            _ => {}
        }
    }
    (depth == 0).then_some(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(text: &str) -> Vec<(&str, Option<&str>)> {
        let items = Items::new(Piece::new(0, 0, text)).map(|item| item.expect("items"));
        items.map(|item| (item.key.text, item.value.map(|value| value.text))).collect()
    }

    #[test]
    fn items_are_split_as_ovs_ofctl_does() {
        assert_eq!(
            items(" a, b=1 c:2,d(e,f(g)),h"),
            [("a", None), ("b", Some("1")), ("c", Some("2")), ("d", Some("e,f(g)")), ("h", None)]
        );
        assert_eq!(
            items("set_field:02:00:00:00:00:01->eth_src,1"),
            [("set_field", Some("02:00:00:00:00:01->eth_src")), ("1", None)]
        );
        assert_eq!(items("check_pkt_larger(9)->reg0[0],1"), [("check_pkt_larger", Some("9")), ("1", None)]);
        assert_eq!(items("learn:a(b,c),d="), [("learn", Some("a(b,c)")), ("d", Some(""))]);
    }

    #[test]
    fn spans_are_those_of_the_file() {
        let item = Items::new(Piece::new(3, 100, "x, ct(zone=5)")).nth(1).expect("two items").expect("an item");
        assert_eq!(item.all.span(), Span::new(3, 103..113));
        assert_eq!(item.value.expect("a value").span(), Span::new(3, 106..112));
    }

    #[test]
    fn an_open_parenthesis_is_an_error() {
        for text in ["ct(zone=5", "a:b(", "clone(ct(1)"] {
            assert!(Items::new(Piece::new(0, 0, text)).any(|item| item.is_err()), "{text}");
        }
    }
}
