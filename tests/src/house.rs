//! The repository as text, for tests of house rules: its files, and the words of a Rust file without comments and tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use crate::binary::root;

/// One file of the repository.
#[derive(Clone, Debug)]
pub struct File {
    /// Its path from the repository's root.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// The text files of the repository, in order of their paths: those that git knows, or, outside of a checkout, all that are
/// not built.
///
/// # Panics
/// When they cannot be read.
pub fn files() -> Vec<File> {
    let git = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let mut paths = match git {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            let text = String::from_utf8(output.stdout).expect("paths are text");
            text.split_terminator('\0').map(str::to_string).collect()
        }
        _ => walk(&root()),
    };
    paths.sort();
    let read = |path: String| Some(File { text: std::fs::read_to_string(root().join(&path)).ok()?, path });
    paths.into_iter().filter_map(read).collect()
}

/// Files below a folder, without what is built and what is hidden.
fn walk(root: &Path) -> Vec<String> {
    let mut found = vec![];
    let mut folders: Vec<PathBuf> = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && name != "target" && !name.starts_with(".git") {
                folders.push(path);
            } else if path.is_file() {
                found.extend(path.strip_prefix(root).ok().map(|path| path.display().to_string()));
            }
        }
    }
    found
}

impl File {
    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether all of it is a test, or what tests share.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// The words of a Rust file, without comments and what is only there in tests. A brace is a word of its own; `::` is one.
    ///
    /// # Panics
    /// When it is not Rust.
    pub fn words(&self) -> Vec<String> {
        let tokens: TokenStream = self.text.parse().unwrap_or_else(|error| panic!("{}: {error}", self.path));
        let mut words = vec![];
        collect(tokens, &mut words);
        words
    }
}

fn collect(tokens: TokenStream, words: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(hash) if hash.as_char() == '#' => match tokens.peek() {
                Some(TokenTree::Group(group)) if group.stream().to_string().replace(' ', "") == "cfg(test)" => {
                    // The item behind it ends with its braces or a semicolon.
                    let ends = |token: &TokenTree| match token {
                        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                        token => token.to_string() == ";",
                    };
                    let _ = tokens.by_ref().find(ends);
                }
                _ => words.push("#".to_string()),
            },
            TokenTree::Punct(first) if first.as_char() == ':' && first.spacing() == Spacing::Joint => {
                let double = matches!(tokens.peek(), Some(TokenTree::Punct(second)) if second.as_char() == ':');
                if double {
                    tokens.next();
                }
                words.push(if double { "::" } else { ":" }.to_string());
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                words.push(open.to_string());
                collect(group.stream(), words);
                words.push(close.to_string());
            }
            other => words.push(other.to_string()),
        }
    }
}

/// The first names behind `crate::`, also of lists: modules and items of the crate's root that these words use.
pub fn of_crate(words: &[String]) -> Vec<String> {
    let mut names = vec![];
    for at in 0..words.len().saturating_sub(2) {
        if words[at] != "crate" || words[at + 1] != "::" {
            continue;
        }
        if words[at + 2] != "{" {
            names.push(words[at + 2].clone());
            continue;
        }
        let (mut depth, mut is_first) = (0, true);
        for word in &words[at + 2..] {
            match word.as_str() {
                "{" => depth += 1,
                "}" => depth -= 1,
                "," if depth == 1 => is_first = true,
                name if depth == 1 && is_first => {
                    names.push(name.to_string());
                    is_first = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    names
}

/// What stands in backticks in a text, with `{a,b}` spelled out.
pub fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).flat_map(spell_out).collect()
}

/// `a/{b,c}.rs` as `a/b.rs` and `a/c.rs`.
fn spell_out(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (list, after))) => list.split(',').map(|name| format!("{before}{name}{after}")).collect(),
        None => vec![path.to_string()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        File { path: "x.rs".into(), text: text.into() }.words()
    }

    #[test]
    fn comments_strings_and_tests_are_no_words() {
        let text =
            "//! unsafe\n/* unsafe */ fn a() { b(\"unsafe\") }\n#[cfg(test)]\nmod tests { fn c() { unsafe {} } }";
        assert!(!words(text).contains(&"unsafe".to_string()));
        assert!(words("#[cfg(test)] mod tests; fn d() { unsafe { e() } }").contains(&"unsafe".to_string()));
        assert!(words("#[unsafe(no_mangle)] fn a() {}").contains(&"unsafe".to_string()));
    }

    #[test]
    fn names_of_the_crate_are_found_in_lists_too() {
        let text = "use crate::a::b; use crate::{c::{d, e}, f}; fn g() { crate::h::i() } use other::{crate_x};";
        assert_eq!(of_crate(&words(text)), ["a", "c", "f", "h"]);
    }

    #[test]
    fn lists_of_paths_are_spelled_out() {
        assert_eq!(quoted("in `a/{b,c}.rs`, `d`"), ["a/b.rs", "a/c.rs", "d"]);
    }
}
