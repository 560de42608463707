//! Finds where statements begin and end, so that a mistake in one spoils no other.
//!
//! In: the text of a file. Out: its brackets and semicolons, paired, without those in comments and strings, and the
//! statements of any block as ranges of bytes. Linear in the text; looks at no grammar but brackets, `;` and the first
//! word of a line. Never recursive: nesting beyond [`MAX_DEPTH`] is refused here, so that what comes after may be.

use std::ops::Range;

use crate::diag::Diagnostic;
use crate::source::Span;

/// Brackets in brackets, at the most.
pub const MAX_DEPTH: usize = 128;

/// Words that begin a statement of a pipeline; names must differ from them.
pub const ITEM_WORDS: &[&str] = &[
    "action", "const", "extern", "group", "header", "meter", "option", "port", "set", "start", "table", "test", "use",
    "var",
];

/// Words whose statement ends with the body that follows.
const BODY_WORDS: &[&str] = &["action", "bucket", "entries", "group", "meter", "pipeline", "start", "table", "test"];

/// A place that matters for cutting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    /// An opening bracket, with the index of the mark that closes it.
    Open(u8, usize),
    Close,
    Semicolon,
    /// A word of [`ITEM_WORDS`] that begins a line.
    Word,
}

/// The brackets and semicolons of a file.
#[derive(Debug)]
pub struct Cutter<'a> {
    text: &'a str,
    marks: Vec<(usize, Mark)>,
}

/// What lies between two brackets, or a whole file: bytes and marks.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Range<usize>,
    marks: Range<usize>,
}

impl Block {
    /// Its bytes.
    pub fn range(&self) -> Range<usize> {
        self.bytes.clone()
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Piece<'a> {
    /// Its first word; empty if it does not begin with one.
    pub word: &'a str,
    /// Its bytes: all of it, or what stands before its body.
    pub range: Range<usize>,
    /// Its body.
    pub body: Option<Block>,
}

/// Pairs the brackets of a file. Those that do not pair are reported, and the rest is as if they were not there.
pub fn scan<'a>(text: &'a str, file: u16, diagnostics: &mut Vec<Diagnostic>) -> Option<Cutter<'a>> {
    let mut scanner = Scanner { text, file, at: 0, line_start: true, marks: vec![], open: vec![], diagnostics };
    scanner.run().then(|| {
        scanner.close_all();
        Cutter { text, marks: scanner.marks }
    })
}

struct Scanner<'a, 'd> {
    text: &'a str,
    file: u16,
    at: usize,
    line_start: bool,
    marks: Vec<(usize, Mark)>,
    /// Marks of the brackets that are open.
    open: Vec<usize>,
    diagnostics: &'d mut Vec<Diagnostic>,
}

impl Scanner<'_, '_> {
    /// Walks the text; false if what follows cannot be cut.
    fn run(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            let start = self.at;
            let first_of_line = std::mem::replace(&mut self.line_start, false);
            match byte {
                b'\n' => self.line_start = true,
                b' ' | b'\t' | b'\r' => self.line_start = first_of_line,
                b'/' if matches!(bytes.get(start + 1), Some(b'/' | b'*')) => {
                    if !self.comment() {
                        return false;
                    }
                    self.line_start = first_of_line;
                    continue;
                }
                b'"' => {
                    if !self.string() {
                        return false;
                    }
                    continue;
                }
                b'{' | b'(' => {
                    if self.open.len() == MAX_DEPTH {
                        self.error("too-deep", format!("brackets nest deeper than {MAX_DEPTH}"), start, "one too many");
                        return false;
                    }
                    self.open.push(self.marks.len());
                    self.marks.push((start, Mark::Open(byte, usize::MAX)));
                }
                b'}' | b')' => self.close(byte),
                b';' => self.marks.push((start, Mark::Semicolon)),
                _ if is_word(byte) => {
                    let word = word_at(self.text, start);
                    if first_of_line && ITEM_WORDS.contains(&word) {
                        self.marks.push((start, Mark::Word));
                    }
                    self.at += word.len();
                    continue;
                }
                _ => {}
            }
            self.at += 1;
        }
        true
    }

    /// Skips a comment.
    fn comment(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.at..];
        let length = if rest[1] == b'/' {
            rest.iter().position(|&b| b == b'\n').or(Some(rest.len()))
        } else {
            rest[2..].windows(2).position(|w| w == b"*/").map(|at| at + 4)
        };
        match length {
            Some(length) => self.at += length,
            None => self.error("unclosed-comment", "this comment never ends", self.at, "`*/` is missing"),
        }
        length.is_some()
    }

    /// Skips a string.
    fn string(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let start = self.at;
        loop {
            self.at += 1;
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.at += 1,
                Some(b'\n') | None => {
                    self.error("unclosed-string", "this string never ends", start, "`\"` is missing on this line");
                    return false;
                }
                Some(_) => {}
            }
        }
        self.at += 1;
        true
    }

    /// Pairs a closing bracket.
    fn close(&mut self, byte: u8) {
        let wanted = if byte == b'}' { b'{' } else { b'(' };
        let pairs = |mark: usize, marks: &[(usize, Mark)]| matches!(marks[mark].1, Mark::Open(b, _) if b == wanted);
        let Some(depth) = self.open.iter().rposition(|&mark| pairs(mark, &self.marks)) else {
            let text = format!("this `{}` closes nothing", byte as char);
            return self.error("stray-bracket", text, self.at, format!("no `{}` before it", wanted as char));
        };
        if wanted == b'(' && depth + 1 < self.open.len() {
            // A `)` does not reach out of a `{`.
            let inner = self.marks[self.open[self.open.len() - 1]].0;
            let text = "this `)` closes nothing in its block";
            self.error("stray-bracket", text, self.at, "closed here");
            if let Some(d) = self.diagnostics.last_mut() {
                d.labels.push((Span::new(self.file, inner..inner + 1), "the block begins here".into()));
            }
            return;
        }
        while self.open.len() > depth + 1 {
            self.unclosed();
        }
        if let Some(mark) = self.open.pop() {
            self.pair(mark);
        }
        self.marks.push((self.at, Mark::Close));
    }

    /// Makes the next mark the partner of this one.
    fn pair(&mut self, mark: usize) {
        let next = self.marks.len();
        if let Mark::Open(_, partner) = &mut self.marks[mark].1 {
            *partner = next;
        }
    }

    /// Reports the innermost open bracket and closes it here.
    fn unclosed(&mut self) {
        let Some(mark) = self.open.pop() else { return };
        let at = self.marks[mark].0;
        let byte = self.text.as_bytes()[at] as char;
        self.error("unclosed-bracket", format!("this `{byte}` is never closed"), at, "opened here");
        self.pair(mark);
        self.marks.push((self.at, Mark::Close));
    }

    /// Closes what is still open at the end.
    fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.unclosed();
        }
    }

    fn error(&mut self, code: &'static str, message: impl Into<String>, at: usize, label: impl Into<String>) {
        if self.diagnostics.len() < super::MAX_DIAGNOSTICS {
            self.diagnostics.push(Diagnostic::error(code, message, Span::new(self.file, at..at + 1), label));
        }
    }
}

impl Block {
    /// Its bytes, without the brackets around them.
    pub fn bytes(&self) -> Range<usize> {
        self.bytes.clone()
    }
}

impl<'a> Cutter<'a> {
    /// The whole file, without a byte order mark.
    pub fn file(&self) -> Block {
        let start = if self.text.starts_with('\u{feff}') { 3 } else { 0 };
        Block { bytes: start..self.text.len(), marks: 0..self.marks.len() }
    }

    /// The statements of a block. At the level of items, a line that begins with a word of [`ITEM_WORDS`] begins a new
    /// statement even if the one before has not ended.
    pub fn pieces(&self, block: &Block, items: bool) -> Vec<Piece<'a>> {
        let mut pieces = vec![];
        let (mut at, mut mark) = (block.bytes.start, block.marks.start);
        loop {
            at += skip_blank(&self.text[at..block.bytes.end]);
            if at >= block.bytes.end {
                return pieces;
            }
            let (piece, next) = self.piece(at, mark, block, items);
            at = next.0;
            mark = next.1;
            pieces.push(piece);
        }
    }

    /// The statement that begins here, and where to go on: byte and mark.
    fn piece(&self, start: usize, mut mark: usize, block: &Block, items: bool) -> (Piece<'a>, (usize, usize)) {
        let word = word_at(self.text, start);
        let piece = |end: usize, body| Piece { word, range: start..end, body };
        while mark < block.marks.end {
            let (at, kind) = self.marks[mark];
            match kind {
                Mark::Open(b'{', partner) if BODY_WORDS.contains(&word) => {
                    let close = self.marks[partner].0;
                    let body = Block { bytes: at + 1..close, marks: mark + 1..partner };
                    return (piece(at, Some(body)), ((close + 1).min(block.bytes.end), partner + 1));
                }
                Mark::Open(b'{', partner) if word == "clone" => {
                    // Ends with the bracket, unless the statement goes on.
                    let end = self.marks[partner].0 + 1;
                    let rest = &self.text[end.min(block.bytes.end)..block.bytes.end];
                    if !rest[skip_blank(rest)..].starts_with(';') {
                        return (piece(end.min(block.bytes.end), None), (end.min(block.bytes.end), partner + 1));
                    }
                    mark = partner + 1;
                }
                Mark::Open(_, partner) => mark = partner + 1,
                Mark::Semicolon => return (piece(at + 1, None), (at + 1, mark + 1)),
                Mark::Word if items && at > start => {
                    return (piece(start + self.text[start..at].trim_end().len(), None), (at, mark));
                }
                Mark::Word | Mark::Close => mark += 1,
            }
        }
        let end = block.bytes.end;
        (piece(start + self.text[start..end].trim_end().len(), None), (end, mark))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The word at this byte; empty if there is none.
pub fn word_at(text: &str, at: usize) -> &str {
    let length = text.as_bytes()[at..].iter().position(|&b| !is_word(b)).unwrap_or(text.len() - at);
    &text[at..at + length]
}

/// How many bytes of white space and comments a text begins with.
pub fn skip_blank(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        at += blank;
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(comment) = rest.strip_prefix("/*") {
            at += comment.find("*/").map_or(rest.len(), |end| end + 4);
        } else {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> (Vec<String>, Vec<Diagnostic>) {
        let mut diagnostics = vec![];
        let pieces = scan(text, 0, &mut diagnostics).map_or(vec![], |cutter| {
            cutter.pieces(&cutter.file(), true).iter().map(|p| text[p.range.clone()].to_string()).collect()
        });
        (pieces, diagnostics)
    }

    #[test]
    fn statements_end_at_semicolons_bodies_and_lines_that_begin_an_item() {
        let (pieces, diagnostics) = cut("port a; /* ; */ set s = { 1, 2 }; table t { x => y; }\nport b\ntable u { }");
        assert_eq!(pieces, ["port a;", "set s = { 1, 2 };", "table t ", "port b", "table u "]);
        assert_eq!(diagnostics, []);
    }

    #[test]
    fn brackets_that_do_not_pair_are_reported_and_left_out() {
        for (text, code) in [
            ("a ( b; } c", "stray-bracket"),
            ("table t { a ( b; }", "unclosed-bracket"),
            ("table t { a => b;", "unclosed-bracket"),
            ("a { b ) }", "stray-bracket"),
            ("a \"b", "unclosed-string"),
            ("a /* b", "unclosed-comment"),
            ("a \"\\", "unclosed-string"),
        ] {
            assert!(cut(text).1.iter().any(|d| d.code == code), "{text}: {:?}", cut(text).1);
        }
        let deep = "(".repeat(MAX_DEPTH + 1);
        assert_eq!(cut(&deep).1[0].code, "too-deep");
    }
}
