//! Names that are declared and not used, variables that are only set or only read. Warnings; a name that begins with `_` says
//! that this is meant.

use super::Input;
use crate::diag::Diagnostic;

/// Warns of unused names.
pub fn check(input: &Input, diagnostics: &mut Vec<Diagnostic>) {
    for (what, name, span) in &input.marks.unused {
        let message = format!("the {what} `{name}` is never used");
        let diagnostic = Diagnostic::warning("unused-name", message, *span, "declared here");
        diagnostics.push(diagnostic.help(format!("remove it, or call it `_{name}` if it is meant to stay")));
    }
    // What actions in Rust do with variables is not known.
    if !input.program.externs.is_empty() {
        return;
    }
    for (name, span) in &input.marks.unread {
        let message = format!("the variable `{name}` is set, but never read");
        let diagnostic = Diagnostic::warning("unused-name", message, *span, "declared here");
        diagnostics.push(diagnostic.help(format!("remove it, or call it `_{name}` if it is meant to stay")));
    }
    for (name, span) in &input.marks.unset {
        let message = format!("the variable `{name}` is read, but nothing sets it");
        let diagnostic = Diagnostic::warning("unset-variable", message, *span, "always 0");
        diagnostics.push(diagnostic.help(format!("set it in an action: `{name} = …`")));
    }
}
