//! Places as the protocol counts them: lines and UTF-16 units from 0. In: a text, and bytes or a position in it. Out: the other.
//! Never: a place outside of the text; what lies outside is moved to its nearest end.

use std::ops::Range;

use lsp_types::Position;

/// Where lines begin.
#[derive(Debug)]
pub struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Looks for the lines of a text; they end with `\n`, `\r\n` or `\r`.
    pub fn new(text: &'t str) -> Lines<'t> {
        let bytes = text.as_bytes();
        let ends = (0..bytes.len()).filter(|&at| match bytes[at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        });
        Lines { text, starts: std::iter::once(0).chain(ends.map(|at| at + 1)).collect() }
    }

    /// The position of a byte.
    pub fn position(&self, byte: usize) -> Position {
        let byte = byte.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= byte) - 1;
        let before = &self.text.as_bytes()[self.starts[line]..byte];
        // A character has as many units as its first byte says; a place within one counts as behind it.
        let units = before.iter().map(|byte| match byte {
            0x80..=0xbf => 0,
            0xf0..=0xff => 2,
            _ => 1,
        });
        Position { line: line as u32, character: units.sum() }
    }

    /// The byte of a position.
    pub fn byte(&self, position: Position) -> usize {
        let Some(&start) = self.starts.get(position.line as usize) else { return self.text.len() };
        let end = self.starts.get(position.line as usize + 1).copied().unwrap_or(self.text.len());
        let line = self.text[start..end].trim_end_matches(['\n', '\r']);
        let mut left = position.character as usize;
        for (at, c) in line.char_indices() {
            if left < c.len_utf16() {
                return start + at;
            }
            left -= c.len_utf16();
        }
        start + line.len()
    }

    /// The positions of a range of bytes.
    pub fn range(&self, bytes: &Range<usize>) -> lsp_types::Range {
        lsp_types::Range { start: self.position(bytes.start), end: self.position(bytes.end.max(bytes.start)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_utf16_units() {
        let text = "aä\r\n𝕏b\n\nend";
        let lines = Lines::new(text);
        for (byte, line, character) in
            [(0, 0, 0), (1, 0, 1), (3, 0, 2), (5, 1, 0), (9, 1, 2), (10, 1, 3), (11, 2, 0), (12, 3, 0), (15, 3, 3)]
        {
            let position = Position { line, character };
            assert_eq!(lines.position(byte), position, "byte {byte}");
            assert_eq!(lines.byte(position), byte, "{position:?}");
        }
    }

    #[test]
    fn places_outside_are_moved_inside() {
        let lines = Lines::new("ab\ncd");
        let byte = |line, character| lines.byte(Position { line, character });
        assert_eq!([byte(0, 9), byte(1, 9), byte(9, 0)], [2, 5, 5]);
        assert_eq!(lines.position(99), Position { line: 1, character: 2 });
        // Between the halves of a surrogate pair.
        assert_eq!(Lines::new("𝕏").byte(Position { line: 0, character: 1 }), 0);
        assert_eq!(Lines::new("").position(0), Position { line: 0, character: 0 });
    }
}
