//! Loops that packets cannot leave: errors.
//!
//! A table is lost if every packet in it certainly goes on to a lost table: no packet misses it, and every rule that can match
//! goes to or calls a lost table before anything ends its list. Lost tables lead in a circle. Besides, a rule that goes back to
//! its own table having changed nothing matches the same packet again.

use super::Input;
use crate::diag::Diagnostic;
use crate::hir::{Action, TableId};

/// Reports loops without a way out.
pub fn check(input: &Input, diagnostics: &mut Vec<Diagnostic>) {
    let lost = lost(input);
    let mut seen = vec![false; lost.len()];
    for start in 0..lost.len() {
        if !lost[start] || seen[start] {
            continue;
        }
        // Follow the first rule of each table until a table comes again.
        let mut path: Vec<(usize, usize)> = vec![];
        let mut table = start;
        while !seen[table] {
            seen[table] = true;
            let Some((rule, next)) = step(input, table, &lost) else { break };
            path.push((table, rule));
            table = next;
        }
        let Some(begin) = path.iter().position(|(on, _)| *on == table) else { continue };
        circle(input, &path[begin..], diagnostics);
    }
    for (table, rule) in input.rules() {
        if !lost[table] && !input.at[table].0[rule].holds.is_empty() && unchanged(input, table, rule) {
            let name = &input.program.tables[table].name;
            let message = format!("a packet that matches this rule never leaves the table `{name}`");
            diagnostics.push(
                Diagnostic::error("endless-loop", message, input.cond_span(table, rule), "matches again and again")
                    .help("change something before going back to the same table, and test for it"),
            );
        }
    }
}

fn circle(input: &Input, path: &[(usize, usize)], diagnostics: &mut Vec<Diagnostic>) {
    let name = |table: usize| &input.program.tables[table].name;
    let Some(&(first, rule)) = path.first() else { return };
    let message = format!("packets that get to the table `{}` never leave it", name(first));
    let next = |i: usize| name(path[(i + 1) % path.len()].0);
    let mut diagnostic =
        Diagnostic::error("endless-loop", message, input.rule(first, rule).span, format!("goes to `{}`", next(0)));
    for (i, &(table, rule)) in path.iter().enumerate().skip(1).take(3) {
        diagnostic = diagnostic.label(input.rule(table, rule).span, format!("goes to `{}`", next(i)));
    }
    diagnostics.push(diagnostic.help("let some packets end before they come around again"));
}

/// Tables that packets get to and never leave.
fn lost(input: &Input) -> Vec<bool> {
    let mut lost: Vec<bool> = input
        .flow
        .enters
        .iter()
        .zip(&input.at)
        .map(|(enters, (_, missed))| !enters.is_empty() && missed.is_empty())
        .collect();
    // Tables that depend on a table: looked at again once it is not lost.
    let mut users = vec![vec![]; lost.len()];
    for (table, rule) in input.rules().filter(|(table, _)| lost[*table]) {
        super::flow::targets(input.program, &input.rule(table, rule).actions, &mut |target| {
            let users: &mut Vec<usize> = &mut users[usize::from(target.0)];
            if users.last() != Some(&table) {
                users.push(table);
            }
        });
    }
    let mut queue: Vec<usize> = (0..lost.len()).filter(|&table| lost[table]).collect();
    while let Some(table) = queue.pop() {
        if !lost[table] {
            continue;
        }
        let escapes =
            input.program.tables[table].rules.iter().enumerate().any(|(index, rule)| {
                !input.at[table].0[index].holds.is_empty() && certain(&rule.actions, &lost).is_none()
            });
        if escapes {
            lost[table] = false;
            queue.extend(users[table].iter().copied().filter(|&user| lost[user]));
        }
    }
    lost
}

/// The lost table that an action list certainly goes to or calls, if there is one.
fn certain(actions: &[Action], lost: &[bool]) -> Option<TableId> {
    for action in actions {
        match action {
            Action::Goto(table) | Action::Call { table, .. } if lost[usize::from(table.0)] => return Some(*table),
            Action::Goto(_)
            | Action::Drop
            | Action::Exit
            | Action::DecTtl
            | Action::DecMplsTtl { .. }
            | Action::Meter(_) => return None,
            // A callee may `exit`.
            Action::Call { .. } => return None,
            Action::Clone(inner) => {
                if let Some(table) = certain(inner, lost) {
                    return Some(table);
                }
            }
            _ => {}
        }
    }
    None
}

/// The first rule of a lost table that can match, and where it leads.
fn step(input: &Input, table: usize, lost: &[bool]) -> Option<(usize, usize)> {
    let rules = &input.program.tables[table].rules;
    let rule = (0..rules.len()).find(|&rule| !input.at[table].0[rule].holds.is_empty())?;
    Some((rule, usize::from(certain(&rules[rule].actions, lost)?.0)))
}

/// Whether a rule goes back to its table with the packet, its variables and `ct.*` as they were.
fn unchanged(input: &Input, table: usize, rule: usize) -> bool {
    for action in &input.rule(table, rule).actions {
        match action {
            Action::Goto(target) | Action::Call { table: target, in_port: None } => {
                return usize::from(target.0) == table;
            }
            Action::Output(_) | Action::InPort | Action::Flood | Action::All | Action::Normal | Action::Clone(_) => {}
            Action::OutputTo(_) | Action::OutputPart { .. } | Action::Mirror(_) | Action::Controller { .. } => {}
            Action::Count(_) | Action::Group(_) => {}
            _ => return false,
        }
    }
    false
}
