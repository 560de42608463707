//! What is wrong with a text that is being written, as editors show it. In: the text and what it is called. Out: diagnostics with
//! all their places. Never: a file's text from the disk where an editor has it open.

use lsp_types::{Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString, Uri};
use pipec_compiler::diag::{self, Severity};
use pipec_compiler::source::{Sources, Span};

use super::position::Lines;

/// The diagnostics of a text; `name` says its language.
pub fn diagnostics(uri: &Uri, name: &str, text: &str) -> Vec<Diagnostic> {
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let (_, found) = pipec_compiler::front(&mut sources, file, &[]);
    found.iter().map(|diagnostic| show(diagnostic, uri, &Lines::new(text))).collect()
}

fn show(diagnostic: &diag::Diagnostic, uri: &Uri, lines: &Lines<'_>) -> Diagnostic {
    let range = |span: Span| lines.range(&span.range());
    let mut message = diagnostic.message.clone();
    if let Some((_, label)) = diagnostic.labels.first().filter(|(_, label)| !label.is_empty()) {
        message += &format!(": {label}");
    }
    for help in &diagnostic.help {
        message += &format!("\nhelp: {help}");
    }
    let related: Vec<DiagnosticRelatedInformation> = (diagnostic.labels.iter().skip(1))
        .map(|(span, label)| DiagnosticRelatedInformation {
            location: Location { uri: uri.clone(), range: range(*span) },
            message: label.clone(),
        })
        .collect();
    Diagnostic {
        range: range(diagnostic.span()),
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
