//! Names that are declared and not used. Warnings; a name that begins with `_` says that this is meant.

use super::Input;
use crate::diag::Diagnostic;

/// Warns of unused names.
pub fn check(input: &Input, diagnostics: &mut Vec<Diagnostic>) {
    for (what, name, span) in &input.marks.unused {
        let message = format!("the {what} `{name}` is never used");
        let diagnostic = Diagnostic::warning("unused-name", message, *span, "declared here");
        diagnostics.push(diagnostic.help(format!("remove it, or call it `_{name}` if it is meant to stay")));
    }
}
