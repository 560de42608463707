//! `use "file";`: puts the statements of that file in its place. In: a tree and the sources, which load files. Out: a tree
//! without `use`, whose parts point into their own files. Looks up no name.
//!
//! A file that was used already is not used again: its names are there. A file that uses itself, by whatever way, is
//! refused with the chain.

use std::collections::HashSet;

use crate::ast::{Item, Pipeline, Spanned};
use crate::diag::Diagnostic;
use crate::parse;
use crate::source::{Sources, Span};

/// Files that use each other in a row, at the most.
const MAX_NESTED: usize = 64;

/// The pipeline of `file` with the statements of all files it uses; none if one of them cannot be read or cut.
pub fn expand(
    pipeline: Pipeline,
    sources: &mut Sources,
    file: u16,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Pipeline> {
    if !pipeline.items.iter().any(|item| matches!(item, Item::Use(_))) {
        return Some(pipeline);
    }
    let Pipeline { name, items, damaged } = pipeline;
    let mut uses =
        Uses { sources, diagnostics, items: vec![], damaged, done: HashSet::new(), chain: vec![], whole: true };
    uses.file(file, items);
    let Uses { items, damaged, whole, .. } = uses;
    whole.then_some(Pipeline { name, items, damaged })
}

struct Uses<'s> {
    sources: &'s mut Sources,
    diagnostics: &'s mut Vec<Diagnostic>,
    items: Vec<Item>,
    damaged: Vec<String>,
    /// Files whose statements are in `items`, or will be.
    done: HashSet<u16>,
    /// The files that are being read, each but the first with the `use` that named it.
    chain: Vec<(u16, Option<Span>)>,
    whole: bool,
}

impl Uses<'_> {
    fn file(&mut self, file: u16, items: Vec<Item>) {
        self.done.insert(file);
        if self.chain.is_empty() {
            self.chain.push((file, None));
        }
        for item in items {
            match item {
                Item::Use(path) => self.used(file, &path),
                item => self.items.push(item),
            }
        }
    }

    fn used(&mut self, from: u16, path: &Spanned<String>) {
        let file = match self.sources.load(from, &path.node) {
            Ok(file) => file,
            Err(what) => {
                let message = format!("cannot use this file: {what}");
                let help = "the path counts from the folder of the file it stands in, then from those of `-I DIR` and PIPEC_PATH";
                return self.fail(Diagnostic::error("no-file", message, path.span, "not read").help(help));
            }
        };
        if let Some(at) = self.chain.iter().position(|(on, _)| *on == file) {
            let diagnostic = self.cycle(at, file, path.span);
            return self.fail(diagnostic);
        }
        if self.chain.len() > MAX_NESTED {
            let message = format!("files use each other more than {MAX_NESTED} deep");
            return self.fail(Diagnostic::error("too-many", message, path.span, "one too many"));
        }
        if self.done.contains(&file) || self.diagnostics.len() >= parse::MAX_DIAGNOSTICS {
            return;
        }
        let text = self.sources.file(file).text.clone();
        let Some((items, mut damaged)) = parse::items(&text, file, self.diagnostics) else {
            self.whole = false; // What is wrong has been reported.
            return;
        };
        self.damaged.append(&mut damaged);
        self.chain.push((file, Some(path.span)));
        self.file(file, items);
        self.chain.pop();
    }

    /// What to say about a file that uses itself: the chain from its place `at` on.
    fn cycle(&self, at: usize, file: u16, span: Span) -> Diagnostic {
        let name = |file: u16| self.sources.file(file).name.as_str();
        let mut chain: Vec<&str> = self.chain[at..].iter().map(|(file, _)| name(*file)).collect();
        chain.push(name(file));
        let message = format!("files use each other in a circle: {}", chain.join(" uses "));
        let mut diagnostic = Diagnostic::error("use-cycle", message, span, "closes the circle");
        for (_, by) in &self.chain[at + 1..] {
            if let Some(by) = by {
                diagnostic = diagnostic.label(*by, "on the way here");
            }
        }
        diagnostic.help("put what both need into a third file, and use that in both")
    }

    fn fail(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
        self.whole = false;
    }
}
