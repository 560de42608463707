//! `!(…)` of a field is plain negation: it also holds for packets that have no such field. A warning where such packets
//! get to the rule and the source does not say that they are meant.

use super::Input;
use super::states::States;
use crate::diag::Diagnostic;
use crate::field::Header;

/// Warns of negations that hold for packets without the field.
pub fn check(input: &Input, diagnostics: &mut Vec<Diagnostic>) {
    for (table, rule) in input.rules() {
        let Some(marks) = input.rule_marks(table, rule) else { continue };
        let holds = input.at[table].0[rule].holds;
        let absent = marks.negated.iter().find_map(|read| {
            let header = read.header.filter(|h| !matches!(h, Header::Eth | Header::IpAny))?;
            (!(holds & !States::has(header)).is_empty()).then_some((read, input.program.header_name(header)))
        });
        if let Some((read, header)) = absent {
            let message = format!("this also matches packets without {header}, since they have no `{}`", read.name);
            diagnostics.push(
                Diagnostic::warning("negated-absent", message, read.span, "below a `!`")
                    .help(format!(
                        "if packets with {header} are meant, write `{header} && !…`, or `!=` for a comparison"
                    ))
                    .help(format!("if all others are meant too, write `!({header} && …)`")),
            );
        }
    }
}
