//! Every code that a diagnostic can have is explained, and the book has all explanations.
//!
//! `UPDATE_EXPECTED=1 cargo test -p pipec-compiler --test codes` writes the book's page.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use pipec_compiler::codes::{CODES, find};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All Rust files below a folder.
fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("a file").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

/// Text between quotes right behind each `error(` and `warning(`, up to the tests of the file, where it is a code.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    let text = text.split("#[cfg(test)]").next().unwrap_or(text);
    let code = |text: &&str| text.len() > 2 && text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    text.match_indices("error(").chain(text.match_indices("warning(")).filter_map(move |(at, call)| {
        let rest = text[at + call.len()..].trim_start().strip_prefix('"')?;
        Some(&rest[..rest.find('"')?]).filter(code)
    })
}

#[test]
fn every_code_is_explained() {
    let mut files = vec![];
    sources(&root().join("compiler/src"), &mut files);
    let mut said = BTreeSet::new();
    for path in &files {
        let text = fs::read_to_string(path).expect("text");
        said.extend(codes(&text).map(str::to_string));
    }
    assert!(said.len() > 60, "{said:?}");
    let unknown: Vec<&String> = said.iter().filter(|code| find(code).is_none()).collect();
    assert!(unknown.is_empty(), "compiler/src/codes.rs does not explain {unknown:?}");
    let never: Vec<&str> = CODES.iter().map(|code| code.id).filter(|id| !said.contains(*id)).collect();
    assert!(never.is_empty(), "compiler/src/codes.rs explains {never:?}, which nothing says");
}

#[test]
fn the_book_explains_them_too() {
    let mut page = "# Messages\n\nEvery error and every warning has a code, which stands in brackets: `error[unknown-name]`. \
        `pipec check --explain CODE` says what is said here. `--allow CODE` does not show a warning, `--deny CODE` takes it for \
        an error, and `--deny warnings` all of them.\n"
        .to_string();
    for code in CODES {
        let _ = write!(page, "\n## {}\n\n{}\n\n```text\n{}\n```\n", code.id, code.text, code.example.trim_end());
    }
    let path = root().join("book/src/language/messages.md");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        fs::write(&path, &page).expect("to write");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "book/src/language/messages.md is not what compiler/src/codes.rs says: UPDATE_EXPECTED=1");
}
