//! Actions behind one that ends the list: an error, since they are never reached.

use super::Input;
use crate::diag::Diagnostic;
use crate::hir::Action;

/// Reports actions that are never reached.
pub fn check(input: &Input, diagnostics: &mut Vec<Diagnostic>) {
    for (table, rule) in input.rules() {
        check_list(input, (table, rule), &input.rule(table, rule).actions, &mut 0, diagnostics);
    }
}

fn check_list(
    input: &Input,
    rule: (usize, usize),
    actions: &[Action],
    index: &mut usize,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut ended: Option<(usize, &'static str)> = None;
    let mut reported = false;
    for action in actions {
        if let Some((by, name)) = ended
            && !reported
        {
            reported = true;
            let message = format!("this action is never reached: `{name}` ends the list before it");
            let (span, _) = input.action_span(rule, *index);
            let diagnostic = Diagnostic::error("unreachable-action", message, span, "never reached")
                .label(input.action_span(rule, by).0, "ends the list");
            diagnostics.push(match name {
                "goto" => diagnostic.help("put it before the `goto`, or write `call`, which comes back"),
                _ => diagnostic.help("put it first, or remove it"),
            });
        }
        let own = *index;
        *index += 1;
        if let Action::Clone(inner) = action {
            check_list(input, rule, inner, index, diagnostics);
        }
        let name = match action {
            Action::Goto(_) => Some("goto"),
            Action::Drop => Some("drop"),
            Action::Exit => Some("exit"),
            _ => None,
        };
        if let Some(name) = name {
            ended.get_or_insert((own, name));
        }
    }
}
