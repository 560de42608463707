//! Tables that no packet gets to, and rules that none of the packets in their table can match. Warnings.

use super::Input;
use super::flow::targets;
use super::shadow::Shadows;
use crate::diag::Diagnostic;
use crate::source::Span;

/// Warns of tables and rules that are not reached. Rules of `known` have a warning already that says why.
pub fn check(input: &Input, shadows: &Shadows, known: &[(usize, usize)], diagnostics: &mut Vec<Diagnostic>) {
    let ways = ways_in(input);
    for (index, table) in input.program.tables.iter().enumerate() {
        if input.flow.enters[index].is_empty() {
            let message = format!("no packet gets to the table `{}`", table.name);
            let diagnostic =
                Diagnostic::warning("unreachable-table", message, input.table_span(index), "never reached");
            diagnostics.push(match ways[index] {
                Some(span) => diagnostic.label(span, "this rule would go there, but never matches"),
                None => diagnostic.help(format!("go there by `goto {0}` or `call {0}`, or remove it", table.name)),
            });
        }
    }
    for (table, rule) in input.rules() {
        let at = input.at[table].0[rule];
        let explained = !shadows[table][rule].is_empty()
            || super::never::is_never(input.cubes[table][rule].as_ref())
            || known.contains(&(table, rule))
            || input.flow.enters[table].is_empty();
        if explained || !at.holds.is_empty() {
            continue;
        }
        let message = "no packet that gets here can match this rule";
        let diagnostic =
            Diagnostic::warning("unreachable-rule", message, input.cond_span(table, rule), "never matches");
        let name = &input.program.tables[table].name;
        diagnostics.push(match (at.tried.is_empty(), ways[table]) {
            (true, _) => diagnostic.help("rules before it take all packets: remove it, or put it before them"),
            (false, Some(span)) => diagnostic.label(span, format!("packets get to `{name}` from here")),
            (false, None) => diagnostic,
        });
    }
}

/// For each table, the condition of the first rule of another one that goes to or calls it.
fn ways_in(input: &Input) -> Vec<Option<Span>> {
    let mut ways = vec![None; input.program.tables.len()];
    for (from, rule) in input.rules() {
        targets(input.program, &input.rule(from, rule).actions, &mut |target| {
            let target = usize::from(target.0);
            if from != target {
                ways[target].get_or_insert_with(|| input.cond_span(from, rule));
            }
        });
    }
    ways
}
