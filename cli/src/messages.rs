//! How messages are shown: to people, on one line each, or as JSON for editors and other programs; always on standard error.
//!
//! In: diagnostics and failures. Out: text. Never: an exit status, which no format changes.

use std::process::ExitCode;
use std::sync::OnceLock;

use clap::ValueEnum;
use pipec_compiler::diag::{Diagnostic, Severity, render_all};
use pipec_compiler::source::{Sources, Span};
use pipec_runtime::Error;
use pipec_runtime::host;
use serde_json::{Value, json};

use crate::failure::Failure;

/// How messages are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// With the lines of the program, for people
    #[default]
    Human,
    /// FILE:LINE:COLUMN: error[ID]: MESSAGE
    Short,
    /// An object a line
    Json,
}

/// What the command line asks for; set once, at the start.
static FORMAT: OnceLock<Format> = OnceLock::new();

/// Shows messages so from now on.
pub fn choose(format: Format) {
    FORMAT.get_or_init(|| format);
}

fn chosen() -> Format {
    FORMAT.get().copied().unwrap_or_default()
}

/// Shows diagnostics, and to people how many errors there are.
pub fn tell(diagnostics: &[Diagnostic], sources: &Sources, color: bool) {
    show(diagnostics, sources, color);
    if diagnostics.is_empty() || chosen() != Format::Human {
        return;
    }
    match diagnostics.iter().filter(|d| d.severity == Severity::Error).count() {
        0 => {}
        1 => host::tell("1 error"),
        n => host::tell(&format!("{n} errors")),
    }
}

/// Shows diagnostics.
pub fn show(diagnostics: &[Diagnostic], sources: &Sources, color: bool) {
    if diagnostics.is_empty() {
        return;
    }
    match chosen() {
        Format::Human => host::tell(render_all(diagnostics, sources, color).trim_end()),
        Format::Short => diagnostics.iter().for_each(|diagnostic| host::tell(&short(diagnostic, sources))),
        Format::Json => diagnostics.iter().for_each(|diagnostic| host::tell(&object(diagnostic, sources).to_string())),
    }
}

/// Shows a failure that has no place in a program.
pub fn failure(error: &Error) {
    plain("error", &error.to_string());
}

/// Shows something worth knowing.
pub fn note(message: &str) {
    plain("note", message);
}

fn plain(level: &str, message: &str) {
    let rendered = format!("{level}: {message}");
    host::tell(&match chosen() {
        Format::Human | Format::Short => rendered,
        Format::Json => json!({
            "level": level, "code": null, "message": message, "spans": [], "help": [], "rendered": rendered + "\n",
        })
        .to_string(),
    });
}

/// Tells how a subcommand ended, and the exit status for it.
pub fn finish(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Told(status)) => ExitCode::from(status),
        Err(Failure::Error(error)) => {
            failure(&error);
            ExitCode::from(error.status())
        }
    }
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn short(diagnostic: &Diagnostic, sources: &Sources) -> String {
    let span = diagnostic.span();
    let (line, column) = sources.line_column(span);
    let name = &sources.file(span.file).name;
    format!("{name}:{line}:{column}: {}[{}]: {}", level(diagnostic.severity), diagnostic.code, diagnostic.message)
}

/// A diagnostic as the book's page on messages describes it.
fn object(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let spans: Vec<Value> = (diagnostic.labels.iter().enumerate())
        .map(|(i, (span, label))| {
            let (line, column) = sources.line_column(*span);
            let (end_line, end_column) = sources.line_column(Span { start: span.end, ..*span });
            json!({
                "file": sources.file(span.file).name, "primary": i == 0, "label": label,
                "line": line, "column": column, "end_line": end_line, "end_column": end_column,
                "byte_start": span.start, "byte_end": span.end,
            })
        })
        .collect();
    json!({
        "level": level(diagnostic.severity), "code": diagnostic.code, "message": diagnostic.message,
        "spans": spans, "help": diagnostic.help, "rendered": diagnostic.render(sources, false) + "\n",
    })
}
