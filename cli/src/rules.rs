//! Where rules stand and what tables are called, for traces.

use pipec_compiler::hir::{Rule, TableId};
use pipec_compiler::source::Span;

use crate::program::Loaded;

/// File and line of a rule.
pub fn place(loaded: &Loaded, rule: &Rule) -> String {
    at(loaded, rule.span)
}

/// File and line of a part of a source.
pub fn at(loaded: &Loaded, span: Span) -> String {
    let (line, _) = loaded.sources.line_column(span);
    format!("{}:{line}", loaded.sources.file(span.file).name)
}

/// The name of a table.
pub fn table(loaded: &Loaded, table: TableId) -> &str {
    &loaded.program.table(table).name
}
