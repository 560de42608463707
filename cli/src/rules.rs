//! Where rules stand and what tables are called, for traces.

use pipec_compiler::hir::{Rule, TableId};

use crate::program::Loaded;

/// File and line of a rule.
pub fn place(loaded: &Loaded, rule: &Rule) -> String {
    let (line, _) = loaded.sources.line_column(rule.span);
    format!("{}:{line}", loaded.sources.file(rule.span.file).name)
}

/// The name of a table.
pub fn table(loaded: &Loaded, table: TableId) -> &str {
    &loaded.program.table(table).name
}
