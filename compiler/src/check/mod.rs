//! What a resolved program must fulfil, and what is probably a mistake in it. In: the HIR, with marks where there are any.
//! Out: diagnostics. Changes nothing.
//!
//! ```text
//! errors    dead_actions   an action behind `goto`, `drop` or `exit`
//!           loops          a loop that packets cannot leave
//!           overlap        equal priorities, overlapping conditions, different actions
//!           presence       a write to a header that no packet has there
//! warnings  never          a condition that no packet can meet
//!           shadow         a rule that earlier rules leave nothing for
//!           reach          a table, or a rule in it, that no packet gets to
//!           presence       a write to a header that some packets do not have there
//!           ct_reads       `ct.*` read where `ct()` was never called
//!           negation       a negation that also holds for packets without the field
//!           unused         names that nothing uses
//! shared    states, flow   which kinds of packets get where
//!           values, cube   conditions as sets
//! ```
//!
//! Every claim is certain: where the analysis does not know, it is silent.

mod ct_reads;
pub mod cube;
mod dead_actions;
mod flow;
mod loops;
mod negation;
mod never;
mod overlap;
mod presence;
mod reach;
mod shadow;
mod states;
mod unused;
mod values;

use crate::diag::Diagnostic;
use crate::hir::{Cond, Program, Rule};
use crate::resolve::marks::{Marks, RuleMarks};
use crate::source::Span;
use cube::Cube;
use flow::{AtRule, Flow};
use states::States;

/// Which language a program is written in: what is a mistake in one may be idiom in the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `.pipe`.
    Pipe,
    /// `.flows`.
    Flows,
}

/// Checks a program.
pub fn check(program: &Program, marks: &Marks, language: Language) -> Vec<Diagnostic> {
    let flow = Flow::new(program);
    let at = (0..program.tables.len()).map(|table| flow.rules(table)).collect();
    let input = Input { program, marks, language, flow, at, cubes: never::all_cubes(program) };
    let mut diagnostics = vec![];
    dead_actions::check(&input, &mut diagnostics);
    loops::check(&input, &mut diagnostics);
    overlap::check(&input, &mut diagnostics);
    presence::check(&input, &mut diagnostics);
    never::check(&input, &mut diagnostics);
    let shadows = shadow::find(&input);
    shadow::check(&input, &shadows, &mut diagnostics);
    let known = ct_reads::check(&input, &mut diagnostics);
    reach::check(&input, &shadows, &known, &mut diagnostics);
    negation::check(&input, &mut diagnostics);
    unused::check(&input, &mut diagnostics);
    diagnostics
}

/// What the checks look at.
struct Input<'p> {
    program: &'p Program,
    marks: &'p Marks,
    language: Language,
    flow: Flow,
    /// For each table, what gets to each of its rules, and what misses them all.
    at: Vec<(Vec<AtRule>, States)>,
    /// For each table and rule, its condition.
    cubes: Vec<Vec<Option<Vec<Cube>>>>,
}

impl<'p> Input<'p> {
    /// All rules: table and place in it.
    fn rules(&self) -> impl Iterator<Item = (usize, usize)> + 'p {
        let tables = self.program.tables.iter().enumerate();
        tables.flat_map(|(index, table)| (0..table.rules.len()).map(move |rule| (index, rule)))
    }

    fn rule(&self, table: usize, rule: usize) -> &'p Rule {
        &self.program.tables[table].rules[rule]
    }

    fn rule_marks(&self, table: usize, rule: usize) -> Option<&'p RuleMarks> {
        self.marks.tables.get(table)?.get(rule)
    }

    /// Where the condition of a rule stands.
    fn cond_span(&self, table: usize, rule: usize) -> Span {
        self.rule_marks(table, rule).map_or(self.rule(table, rule).span, |marks| marks.cond)
    }

    /// Where an action of a rule stands, and the call that it comes from.
    fn action_span(&self, (table, rule): (usize, usize), action: usize) -> (Span, Option<Span>) {
        let mark = self.rule_marks(table, rule).and_then(|marks| marks.actions.get(action));
        mark.map_or((self.rule(table, rule).span, None), |mark| (mark.span, mark.via))
    }

    /// Where the name of a table stands.
    fn table_span(&self, table: usize) -> Span {
        self.program.tables[table].span
    }

    /// Whether a rule is the `else` of its table.
    fn is_else(&self, table: usize, rule: usize) -> bool {
        let last = rule + 1 == self.program.tables[table].rules.len();
        last && self.rule(table, rule).cond == Cond::True && self.rule(table, rule).priority == 0
    }
}
