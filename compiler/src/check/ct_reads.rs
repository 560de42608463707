//! `ct.*` read where `ct()` was never called: it is 0 there, which is seldom what is meant. `ct.trk` asks just that, so
//! reading it is fine anywhere.

use pipec_abi::ct::state::TRK;

use super::Input;
use super::states::States;
use crate::diag::Diagnostic;
use crate::field::Field;

/// Warns of reads of `ct.*` before any `ct()`, and says for which rules.
pub fn check(input: &Input, diagnostics: &mut Vec<Diagnostic>) -> Vec<(usize, usize)> {
    let mut rules = vec![];
    for (table, rule) in input.rules() {
        let tried = input.at[table].0[rule].tried;
        let Some(marks) = input.rule_marks(table, rule) else { continue };
        let never = super::never::is_never(input.cubes[table][rule].as_ref());
        if never || tried.is_empty() || !(tried & !States::fresh()).is_empty() {
            continue;
        }
        let read = marks.reads.iter().find(|read| match read.field {
            Some(Field::CtState) => read.mask & !u128::from(TRK) != 0,
            Some(Field::CtMark | Field::CtLabel | Field::CtZone) => true,
            _ => false,
        });
        if let Some(read) = read {
            let message = format!("`{}` is read, but no packet that gets here went through `ct()`", read.name);
            diagnostics.push(
                Diagnostic::warning("ct-before-ct", message, read.span, "always 0 here")
                    .help("track packets first: `ip && !ct.trk => ct(), goto TABLE;`"),
            );
            rules.push((table, rule));
        }
    }
    rules
}
