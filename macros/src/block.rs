//! `pipeline! { … }`: the program's text from the macro's tokens, every token where it stood, so that the compiler's one
//! grammar reads it and its places lead back to tokens.

use std::ops::Range;

use proc_macro2::{Delimiter, LineColumn, Span, TokenStream, TokenTree};

/// A program's text, and which token each part of it is.
#[derive(Default)]
pub struct Block {
    /// The text: comments are lost, lines and columns are kept.
    pub text: String,
    /// Each token with its bytes, in order.
    pub tokens: Vec<(Range<usize>, Span)>,
    /// Where the text ends, in the source file; nothing yet at first.
    at: Option<LineColumn>,
}

impl Block {
    /// The text of these tokens.
    pub fn of(tokens: TokenStream) -> Block {
        let mut block = Block::default();
        block.stream(tokens);
        block.text.push('\n');
        block
    }

    fn stream(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    self.token(open, group.span_open());
                    self.stream(group.stream());
                    self.token(close, group.span_close());
                }
                token => {
                    let text = token.span().source_text().unwrap_or_else(|| token.to_string());
                    self.token(&text, token.span());
                }
            }
        }
    }

    /// Adds a token where it stands; tokens without a place of their own (made by other macros) follow behind a blank.
    fn token(&mut self, text: &str, span: Span) {
        let (start, end) = (span.start(), span.end());
        let behind = |at: LineColumn| (start.line, start.column) >= (at.line, at.column);
        match self.at {
            None => {}
            Some(at) if behind(at) => {
                let lines = start.line - at.line;
                self.text.extend(std::iter::repeat_n('\n', lines));
                let columns = if lines == 0 { start.column - at.column } else { start.column };
                self.text.extend(std::iter::repeat_n(' ', columns));
            }
            // A doc comment is several tokens in one place, of which the first has all its text.
            Some(_) if self.tokens.last().is_some_and(|(_, last)| last.start() == start && last.end() == end) => return,
            Some(_) => self.text.push(' '),
        }
        let from = self.text.len();
        self.text.push_str(text);
        self.tokens.push((from..self.text.len(), span));
        self.at = Some(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn block(text: &str) -> Block {
        Block::of(text.parse().expect("Rust's lexer takes it"))
    }

    #[test]
    fn text_is_kept_with_lines_and_columns() {
        let text = "pipeline p {\n    port a, b;\n  table t { ip && ipv4.src in 10.0.0.0/8 => output(b); }\n}";
        assert_eq!(block(text).text.trim_end(), text);
    }

    #[test]
    fn values_that_are_several_tokens_of_rust_stay_together() {
        for value in
            ["02:00:00:00:00:01", "10.0.0.1/24", "2001:db8::1", "8000..=8080", "::1", "0x8100", "61 s", "a.b.c"]
        {
            assert_eq!(block(value).text.trim_end(), value);
        }
    }

    #[test]
    fn comments_become_blank() {
        let block = block("port a; // one\n/* two */ port b;");
        assert_eq!(block.text.trim_end(), "port a;\n          port b;");
    }

    #[test]
    fn tokens_know_their_bytes() {
        let block = block("drop ; éa => x");
        for (range, span) in &block.tokens {
            assert_eq!(block.text.get(range.clone()).map(str::to_owned), span.source_text());
        }
    }
}
