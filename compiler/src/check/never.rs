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
        let marks = input.rule_marks(table, rule);
        let span = input.cond_span(table, rule);
        diagnostics.push(match marks.and_then(contradiction) {
            Some((a, b, why)) => {
                let message = "this condition never holds";
                Diagnostic::warning("never-matches", message, b.span, why).label(a.span, "besides this")
            }
            None => whole(span),
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

/// Two reads of which a packet can only have one, or two of the same field.
fn contradiction(marks: &RuleMarks) -> Option<(&ReadMark, &ReadMark, String)> {
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
    for (i, b) in reads.iter().enumerate() {
        let same = |a: &&ReadMark| a.field.is_some() && a.field == b.field;
        if let Some(a) = reads[..i].iter().find(same) {
            return Some((a, b, format!("`{}` cannot be both", b.name)));
        }
    }
    None
}

/// Cubes of all rules of a program.
pub fn all_cubes(program: &crate::hir::Program) -> Vec<Vec<Option<Vec<Cube>>>> {
    program.tables.iter().map(|table| table.rules.iter().map(|rule| cubes(&rule.cond)).collect()).collect()
}
