//! What is said to the user: all that is wrong, but not a thousand times the same.

use std::collections::BTreeMap;

use crate::diag::{Diagnostic, Severity};

/// Errors that are shown.
const ERRORS: usize = 50;
/// Warnings of one code that are shown.
const WARNINGS: usize = 10;

/// Diagnostics as they come up.
#[derive(Default)]
pub struct Report {
    shown: Vec<Diagnostic>,
    errors: usize,
    warnings: BTreeMap<&'static str, (usize, Option<Diagnostic>)>,
}

impl Report {
    /// Adds one.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
            if self.errors <= ERRORS {
                self.shown.push(diagnostic);
            }
            return;
        }
        let (count, last) = self.warnings.entry(diagnostic.code).or_default();
        *count += 1;
        if *count <= WARNINGS {
            self.shown.push(diagnostic);
        } else {
            *last = Some(diagnostic);
        }
    }

    /// The value, or `None` after adding the error.
    pub fn ok<T>(&mut self, result: Result<T, Diagnostic>) -> Option<T> {
        result.map_err(|diagnostic| self.add(diagnostic)).ok()
    }

    /// Whether there was an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// All that is to be shown; what is left out is counted.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        for (code, (count, last)) in self.warnings {
            if let Some(last) = last {
                let message = format!("{} more warnings like `{code}`", count - WARNINGS);
                self.shown.push(Diagnostic::warning(code, message, last.span(), "the last of them"));
            }
        }
        if let Some(last) = self.shown.iter().rfind(|d| d.severity == Severity::Error).filter(|_| self.errors > ERRORS)
        {
            let message = format!("{} more errors", self.errors - ERRORS);
            self.shown.push(Diagnostic::error("more-errors", message, last.span(), "the last one shown"));
        }
        self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Span;

    #[test]
    fn what_is_left_out_is_counted() {
        let mut report = Report::default();
        for _ in 0..60 {
            report.add(Diagnostic::error("a", "x", Span::default(), ""));
            report.add(Diagnostic::warning("b", "y", Span::default(), ""));
        }
        let all = report.finish();
        assert_eq!(all.len(), 50 + 10 + 2);
        assert!(all.iter().any(|d| d.message == "10 more errors"));
        assert!(all.iter().any(|d| d.message == "50 more warnings like `b`"));
    }
}
