//! Rules whose condition no packet can meet: a warning, with the two parts that exclude each other where there are two.

use super::Input;
use super::cube::{Cube, cubes, has};
use crate::diag::Diagnostic;
use crate::hir::Cond;
use crate::resolve::marks::{ReadMark, RuleMarks};
use crate::source::Span;

/// Whether a condition holds for no packet at all.
pub fn is_never(cubes: Option<&Vec<Cube>>) -> bool {
    cubes.is_some_and(Vec::is_empty)
}

/// Warns of conditions that never hold.
pub fn check(input: &Input, diagnostics: &mut Vec<Diagnostic>) {
    for (table, rule) in input.rules() {
        let cond = &input.rule(table, rule).cond;
        if !is_never(input.cubes[table][rule].as_ref()) || known(cond) {
            continue;
        }
        let pair = input.rule_marks(table, rule).and_then(|marks| contradiction(cond, marks));
        diagnostics.push(match pair {
            Some((a, b, why)) => {
                let message = "this condition never holds";
                Diagnostic::warning("never-matches", message, b.span, why).label(a.span, "besides this")
            }
            None => whole(input.cond_span(table, rule)),
        });
    }
}

fn whole(span: Span) -> Diagnostic {
    Diagnostic::warning("never-matches", "this condition never holds", span, "its parts exclude each other")
}

/// Whether `resolve` has found and reported a comparison that never holds.
fn known(cond: &Cond) -> bool {
    match cond {
        Cond::Any(list) if list.is_empty() => true,
        Cond::Any(list) | Cond::All(list) => list.iter().any(known),
        Cond::Not(inner) => known(inner),
        _ => false,
    }
}

/// Two reads that exclude each other, where the condition is a plain conjunction so that this is why it never holds.
fn contradiction<'m>(cond: &Cond, marks: &'m RuleMarks) -> Option<(&'m ReadMark, &'m ReadMark, String)> {
    let Cond::All(parts) = cond else { return None };
    if parts.iter().any(|part| !matches!(part, Cond::Has(_) | Cond::Compare(..))) {
        return None;
    }
    let reads = &marks.reads;
    for (i, b) in reads.iter().enumerate() {
        for a in &reads[..i] {
            if let (Some(x), Some(y)) = (a.header, b.header)
                && has(x).and(&has(y)).is_none()
            {
                return Some((a, b, format!("a packet has {} or {}, not both", x.name(), y.name())));
            }
        }
    }
    // Each part by itself is read once, in the order of the source.
    let compared = parts.iter().filter(|part| matches!(part, Cond::Compare(..)));
    let compared: Vec<_> = compared.zip(reads.iter().filter(|read| read.mask != 0)).collect();
    for (i, (part, b)) in compared.iter().enumerate() {
        for (other, a) in &compared[..i] {
            let both = Cond::All(vec![(*part).clone(), (*other).clone()]);
            if a.field.is_some() && a.field == b.field && is_never(cubes(&both).as_ref()) {
                let why = if a.name == b.name {
                    format!("`{}` cannot be both", b.name)
                } else {
                    format!("`{}` and `{}` exclude each other", a.name, b.name)
                };
                return Some((a, b, why));
            }
        }
    }
    None
}

/// Cubes of all rules of a program.
pub fn all_cubes(program: &crate::hir::Program) -> Vec<Vec<Option<Vec<Cube>>>> {
    // Which rule of a keyed table is taken is no matter of conditions.
    let of_rule =
        |table: &crate::hir::Table, rule: &crate::hir::Rule| table.keyed.is_none().then(|| cubes(&rule.cond))?;
    program.tables.iter().map(|table| table.rules.iter().map(|rule| of_rule(table, rule)).collect()).collect()
}
