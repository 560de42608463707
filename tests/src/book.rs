//! The book as chapters and code blocks. In: Markdown. Out: what to test. Never: runs anything.

use std::path::PathBuf;

use crate::binary::root;

/// One chapter.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Its file, from the book's `src`.
    pub path: String,
    /// Its text.
    pub text: String,
    /// Its code blocks, in order.
    pub blocks: Vec<Block>,
}

/// One code block.
#[derive(Clone, Debug)]
pub struct Block {
    /// Chapter and line, for people.
    pub place: String,
    /// The words behind its fence: the first is the language.
    pub words: Vec<String>,
    /// What is in it.
    pub text: String,
    /// The block right behind it, if that is a `text` block and nothing stands between.
    pub shows: Option<String>,
}

impl Block {
    /// Whether its language is this.
    pub fn is(&self, language: &str) -> bool {
        self.words.first().is_some_and(|word| word == language)
    }

    /// Whether this word stands behind its language.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().skip(1).any(|found| found == word)
    }

    /// What stands behind `KEY=`.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }
}

/// Where chapters are.
pub fn source() -> PathBuf {
    root().join("book/src")
}

/// The chapters that SUMMARY.md lists, in order.
///
/// # Panics
/// When one cannot be read.
pub fn chapters() -> Vec<Chapter> {
    let summary = std::fs::read_to_string(source().join("SUMMARY.md")).expect("book/src/SUMMARY.md");
    let chapter = |path: String| {
        let text = std::fs::read_to_string(source().join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        Chapter { blocks: blocks(&path, &text), path, text }
    };
    links(&summary).into_iter().map(chapter).collect()
}

/// Where the links of a text lead.
pub fn links(text: &str) -> Vec<String> {
    let ends = text.split("](").skip(1);
    ends.filter_map(|rest| rest.split_once(')').map(|(link, _)| link.to_string())).collect()
}

/// The code blocks of a text.
pub fn blocks(path: &str, text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = vec![];
    let mut open: Option<Block> = None;
    let mut is_behind = false;
    for (n, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(words)) => {
                let words = words.split(',').map(|word| word.trim().to_string()).collect();
                open = Some(Block { place: format!("{path}:{}", n + 1), words, text: String::new(), shows: None });
            }
            (Some(_), Some(_)) => {
                let block = open.take().unwrap_or_else(|| unreachable!("it is open"));
                if let Some(before) = found.last_mut().filter(|_| is_behind && block.is("text")) {
                    before.shows = Some(block.text.clone());
                }
                found.push(block);
                is_behind = true;
            }
            (Some(block), None) => {
                block.text += line;
                block.text.push('\n');
            }
            (None, None) => is_behind &= line.trim().is_empty(),
        }
    }
    assert!(open.is_none(), "{path}: a code block is not closed");
    found
}

/// Whether `found` is what `shown` says, in which a line `…` stands for any lines and `…` in a line for anything.
pub fn matches(shown: &str, found: &str) -> bool {
    let lines = |text: &str| text.trim_end().lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>();
    lines_match(&lines(shown), &lines(found))
}

fn lines_match(shown: &[String], found: &[String]) -> bool {
    match shown.split_first() {
        None => found.is_empty(),
        Some((any, rest)) if any == "…" => (0..=found.len()).any(|n| lines_match(rest, &found[n..])),
        Some((line, rest)) => {
            found.first().is_some_and(|first| line_matches(line, first)) && lines_match(rest, &found[1..])
        }
    }
}

fn line_matches(shown: &str, found: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or("");
    let Some(mut rest) = found.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_with_what_they_show() {
        let text = "# A\n```pipe,bad,name=x\na\nb\n```\n\n```text\nout\n```\nand\n```text\nother\n```\n";
        let blocks = blocks("a.md", text);
        assert_eq!(blocks.len(), 3);
        assert_eq!((blocks[0].place.as_str(), blocks[0].text.as_str()), ("a.md:2", "a\nb\n"));
        assert!(blocks[0].is("pipe") && blocks[0].has("bad") && !blocks[0].has("pipe"));
        assert_eq!((blocks[0].value("name"), blocks[0].shows.as_deref()), (Some("x"), Some("out\n")));
        assert_eq!(blocks[1].shows, None);
    }

    #[test]
    fn dots_stand_for_anything() {
        assert!(matches("a\n…\nd", "a\nb\nc\nd\n") && matches("a\n…\nd", "a\nd"));
        assert!(matches("x … z", "x y z") && matches("x …", "x y") && !matches("x … z", "x y"));
        assert!(!matches("a", "a\nb") && !matches("a\nb", "a") && matches("a…b…c", "a1b2c"));
    }

    #[test]
    fn links_are_found() {
        assert_eq!(links("see [a](b.md) and [c](d/e.md#f)"), ["b.md", "d/e.md#f"]);
    }
}
