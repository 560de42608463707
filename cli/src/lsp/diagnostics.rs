//! What is wrong with a text that is being written, as editors show it. In: the text, and those that are open beside it. Out:
//! diagnostics with all their places, for each file of the program.

use std::collections::BTreeMap;
use std::sync::Arc;

use lsp_types::{Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Uri};
use pipec_compiler::diag::{self, Severity};
use pipec_compiler::parse;
use pipec_compiler::source::{Sources, Span};

use super::files::{self, Overlay};
use super::position::Lines;

/// The diagnostics of a program by its files' URIs, its own file among them in any case. Of a text for others to use, only
/// mistakes of form are known.
pub fn diagnostics(uri: &Uri, flows: bool, text: &str, open: Overlay) -> BTreeMap<String, Vec<Diagnostic>> {
    let mut sources = Sources::with_loader(Arc::new(open));
    let path = files::path(uri);
    let language = if flows { ".flows" } else { ".pipe" };
    let name = if path.ends_with(language) { path } else { path + language };
    let file = sources.add(name, text);
    let mut found = vec![];
    if !flows && parse::is_part(text) {
        parse::items(text, file, &mut found);
    } else {
        found = pipec_compiler::front(&mut sources, file, &[]).1;
    }
    let shower =
        Shower { uri, lines: sources.files().iter().map(|file| Lines::new(&file.text)).collect(), sources: &sources };
    let mut by_file: BTreeMap<String, Vec<Diagnostic>> = BTreeMap::new();
    for file in 0..sources.files().len() as u16 {
        by_file.entry(shower.uri(file).to_string()).or_default();
    }
    for diagnostic in &found {
        by_file.entry(shower.uri(diagnostic.span().file).to_string()).or_default().push(shower.show(diagnostic));
    }
    by_file
}

struct Shower<'s> {
    /// Of the first file.
    uri: &'s Uri,
    sources: &'s Sources,
    lines: Vec<Lines<'s>>,
}

impl Shower<'_> {
    fn uri(&self, file: u16) -> Uri {
        let other = (file > 0).then(|| files::uri(&self.sources.file(file).name)).flatten();
        other.unwrap_or_else(|| self.uri.clone())
    }

    fn range(&self, span: Span) -> lsp_types::Range {
        self.lines[usize::from(span.file)].range(&span.range())
    }

    fn show(&self, diagnostic: &diag::Diagnostic) -> Diagnostic {
        let mut message = diagnostic.message.clone();
        if let Some((_, label)) = diagnostic.labels.first().filter(|(_, label)| !label.is_empty()) {
            message += &format!(": {label}");
        }
        for help in &diagnostic.help {
            message += &format!("\nhelp: {help}");
        }
        let related: Vec<DiagnosticRelatedInformation> = (diagnostic.labels.iter().skip(1))
            .map(|(span, label)| DiagnosticRelatedInformation {
                location: Location { uri: self.uri(span.file), range: self.range(*span) },
                message: label.clone(),
            })
            .collect();
        Diagnostic {
            range: self.range(diagnostic.span()),
            severity: Some(match diagnostic.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(diagnostic.code.to_string())),
            source: Some("pipec".to_string()),
            message,
            related_information: Some(related).filter(|related| !related.is_empty()),
            ..Diagnostic::default()
        }
    }
}
