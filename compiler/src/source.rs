//! Source files and places in them.

use std::ops::Range;

/// A place in a source file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Which file: an index into [`Sources`].
    pub file: u16,
    /// First byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
}

impl Span {
    /// A place in a file.
    pub fn new(file: u16, range: Range<usize>) -> Span {
        Span { file, start: range.start as u32, end: range.end as u32 }
    }

    /// The bytes as a range.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// From the start of this to the end of `other`, of the same file.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start, end: other.end }
    }
}

/// One file: how people know it, and its text.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path or other name, as the user gave it.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The files of one program.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Adds a file; the number goes into [`Span::file`].
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> u16 {
        self.files.push(Source { name: name.into(), text: text.into() });
        (self.files.len() - 1) as u16
    }

    /// The file with this number.
    pub fn file(&self, file: u16) -> &Source {
        &self.files[usize::from(file)]
    }

    /// The text of a place.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.range()).unwrap_or("")
    }

    /// Line and column of a place's start, both from 1; columns count characters.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let before = self.file(span.file).text.get(..span.start as usize).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}
