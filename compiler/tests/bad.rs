//! Programs that are wrong, each with what is said about it: `pipelines/bad/NAME.pipe` beside `NAME.expected`.
//!
//! `UPDATE_EXPECTED=1 cargo test -p pipec-compiler --test bad` writes what is said now. Look at the difference.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pipec_compiler::diag::{Diagnostic, render_all};
use pipec_compiler::source::{Loader, Sources, search};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All programs of the folder, by name.
fn programs() -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join("pipelines/bad")).expect("the folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pipe"));
    paths.sort();
    paths
}

/// Reads what programs use, from the folder on.
struct Folder;

impl Folder {
    fn path(name: &str) -> PathBuf {
        root().join("pipelines/bad").join(name)
    }
}

impl Loader for Folder {
    fn find(&self, from: &str, path: &str) -> Result<String, String> {
        search(from, path, &[], |place: &Path| Folder::path(&place.to_string_lossy()).is_file())
    }
    fn read(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(Folder::path(name)).map_err(|error| error.to_string())
    }
    fn identity(&self, name: &str) -> String {
        let path = Folder::path(name);
        path.canonicalize().unwrap_or(path).to_string_lossy().into_owned()
    }
}

fn diagnose(path: &Path) -> (Vec<Diagnostic>, Sources) {
    let mut sources = Sources::with_loader(Arc::new(Folder));
    let name = path.file_name().expect("a name").to_string_lossy();
    let file = sources.add(name, fs::read_to_string(path).expect("text"));
    let (program, diagnostics) = pipec_compiler::front_pipe(&mut sources, file);
    assert_eq!(program.is_none(), pipec_compiler::diag::has_errors(&diagnostics), "{}", path.display());
    (diagnostics, sources)
}

#[test]
fn every_bad_program_gets_its_message() {
    let mut different = vec![];
    for path in programs() {
        let (diagnostics, sources) = diagnose(&path);
        let found = render_all(&diagnostics, &sources, false);
        let expected = path.with_extension("expected");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&expected, &found).expect("to write");
        }
        if fs::read_to_string(&expected).unwrap_or_default() != found {
            different.push(format!("{}:\n{found}", path.display()));
        }
        let code = path.file_stem().expect("a name").to_string_lossy().to_string();
        let named = diagnostics.iter().any(|d| code.starts_with(d.code));
        if !named && !["several-errors", "no-pipeline"].contains(&&*code) {
            different.push(format!("{code} is about something else"));
        }
    }
    assert!(different.is_empty(), "not as expected:\n{}", different.join("\n"));
}

/// Text between quotes right behind each `error(` and `warning(` of a source file.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("error(").chain(text.match_indices("warning(")).filter_map(|(at, call)| {
        let rest = text[at + call.len()..].trim_start().strip_prefix('"')?;
        Some(&rest[..rest.find('"')?])
    })
}

#[test]
fn every_diagnostic_has_a_bad_program() {
    let said: BTreeSet<&str> = programs().iter().flat_map(|path| diagnose(path).0).map(|d| d.code).collect();
    let mut files = 0;
    for folder in ["parse", "resolve", "check", "."] {
        for entry in fs::read_dir(root().join("compiler/src").join(folder)).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.extension().is_none_or(|e| e != "rs")
                || ["flows", "diag"].iter().any(|n| path.file_stem().is_some_and(|s| s == *n))
            {
                continue;
            }
            files += 1;
            let text = fs::read_to_string(&path).expect("text");
            for code in codes(&text) {
                assert!(said.contains(code), "no program in pipelines/bad shows `{code}` of {}", path.display());
            }
        }
    }
    assert!(files > 20);
}
