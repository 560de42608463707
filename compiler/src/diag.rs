//! Diagnostics: what a user did wrong, where, what was expected, and what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::source::{Sources, Span};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The program cannot be compiled.
    Error,
    /// It can, and probably does not mean what was intended.
    Warning,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// A short stable name, such as `unknown-field`.
    pub code: &'static str,
    /// One sentence, lower case, no full stop.
    pub message: String,
    /// The places that matter, the guilty one first, each with what it is.
    pub labels: Vec<(Span, String)>,
    /// What to do.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &'static str, message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
        let labels = vec![(span, label.into())];
        Diagnostic { severity: Severity::Error, code, message: message.into(), labels, help: vec![] }
    }

    /// A warning at a place.
    pub fn warning(code: &'static str, message: impl Into<String>, span: Span, label: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message, span, label) }
    }

    /// Adds another place that matters.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push((span, text.into()));
        self
    }

    /// Adds what to do.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// The guilty place.
    pub fn span(&self) -> Span {
        self.labels.first().map_or(Span::default(), |(span, _)| *span)
    }

    /// The diagnostic as people read it, with source excerpts.
    pub fn render(&self, sources: &Sources, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()).id(self.code));
        let mut files: Vec<u16> = vec![];
        for (span, _) in &self.labels {
            if !files.contains(&span.file) {
                files.push(span.file);
            }
        }
        for file in files {
            let source = sources.file(file);
            let mut snippet = Snippet::source(source.text.as_str()).path(source.name.as_str());
            for (i, (span, text)) in self.labels.iter().enumerate().filter(|(_, (span, _))| span.file == file) {
                let kind = if i == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
                let end = (span.end as usize).min(source.text.len());
                let start = (span.start as usize).min(end);
                snippet = snippet.annotation(kind.span(start..end).label(text.as_str()));
            }
            group = group.element(snippet);
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }
}

/// Whether any of them is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}

/// All of them, rendered one below the other.
pub fn render_all(diagnostics: &[Diagnostic], sources: &Sources, color: bool) -> String {
    diagnostics.iter().map(|d| d.render(sources, color) + "\n").collect()
}

/// In the order of the source, without repetitions, and no more than `limit` of each severity: the last says how many
/// there are besides.
pub fn in_order(mut diagnostics: Vec<Diagnostic>, limit: usize) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|d| (d.span().file, d.span().start));
    diagnostics.dedup();
    for severity in [Severity::Error, Severity::Warning] {
        let all = diagnostics.iter().filter(|d| d.severity == severity).count();
        if all > limit {
            let mut kept = 0;
            let mut last = Span::default();
            diagnostics.retain(|d| {
                kept += usize::from(d.severity == severity);
                if d.severity == severity && kept == limit {
                    last = d.span();
                }
                d.severity != severity || kept <= limit
            });
            let what = if severity == Severity::Error { "errors" } else { "warnings" };
            let message = format!("{} more {what} are not shown", all - limit);
            let more = Diagnostic::error("too-many", message, last, "the last one that is shown");
            diagnostics.push(Diagnostic { severity, ..more });
        }
    }
    diagnostics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_line_the_label_and_the_help() {
        let mut sources = Sources::default();
        let file = sources.add("a.pipe", "table t {\n    foo => drop;\n}\n");
        let diagnostic = Diagnostic::error("unknown-field", "no field `foo`", Span::new(file, 14..17), "not a field")
            .help("did you mean `ip`?");
        let text = diagnostic.render(&sources, false);
        for part in
            ["error[unknown-field]: no field `foo`", "a.pipe:2:5", "foo => drop;", "not a field", "did you mean `ip`?"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert_eq!(sources.line_column(diagnostic.span()), (2, 5));
    }
}
