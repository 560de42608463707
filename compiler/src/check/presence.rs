//! Writes to headers that are absent: an error where no packet that gets there has the header, a warning where some have
//! not, since the write does nothing for those.

use super::Input;
use super::states::States;
use crate::diag::Diagnostic;
use crate::field::{Field, Header};
use crate::hir::{Action, Program, Space};

/// Reports writes to headers that are, or may be, absent.
pub fn check(input: &Input, diagnostics: &mut Vec<Diagnostic>) {
    for (table, rule) in input.rules() {
        let states = input.at[table].0[rule].holds;
        if states.is_empty() {
            continue;
        }
        input.flow.actions(input.program, &input.rule(table, rule).actions, states, &mut |index, action, states| {
            let Some((name, header)) = written(input.program, action) else { return };
            if states.is_empty() {
                return;
            }
            let with = match header {
                Header::Declared(index) => states & input.flow.roots[usize::from(index)],
                header => states & States::has(header),
            };
            let (span, via) = input.action_span((table, rule), index);
            let what = input.program.header_name(header);
            let diagnostic = if with.is_empty() {
                let message = format!("`{name}` is written, but no packet that gets here has {what}");
                Diagnostic::error("write-absent", message, span, format!("there is no {what} here"))
            } else if with != states && !matches!(action, Action::DecTtl) {
                let message = format!("`{name}` is written, but not every packet that gets here has {what}");
                Diagnostic::warning("write-maybe-absent", message, span, "does nothing without it")
            } else {
                return;
            };
            let diagnostic = match via {
                Some(via) => diagnostic.label(via, "called here"),
                None => diagnostic.label(input.cond_span(table, rule), format!("lets packets without {what} through")),
            };
            let test = if header == Header::IpAny { "(ipv4 || ipv6)" } else { what };
            diagnostics.push(diagnostic.help(format!("test for it: `{test} && …`")));
        });
    }
}

/// The field an action writes, and the header that it needs.
fn written(program: &Program, action: &Action) -> Option<(String, Header)> {
    match action {
        Action::Set { place, .. } => match place.space {
            Space::Field(field) => field.header().map(|header| (field.name().into(), header)),
            Space::Header(header) => Some((program.header_place_name(header, *place), Header::Declared(header))),
            Space::Meta => None,
        },
        Action::DecTtl => Some((Field::IpTtl.name().into(), Header::IpAny)),
        _ => None,
    }
}
