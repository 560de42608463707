//! Takes out writes of variables that nobody reads: what they were set to was known wherever it was asked for.
//!
//! In: a plan. Out: the same without them, and without the clearing of packets' variables if none is read. Never: a change of
//! what packets do.

use std::collections::BTreeSet;

use super::Plan;
use super::code::{Expr, Stmt};
use super::visit;

/// Takes dead writes out. `clear`: packets are cleared even where no variable is read.
pub(super) fn writes(plan: &mut Plan, clear: bool) {
    loop {
        let mut read = BTreeSet::new();
        for body in bodies(plan) {
            visit::each_in(body, &mut |expr| {
                if let Expr::Var(word) = expr {
                    read.insert(*word);
                }
            });
        }
        let mut gone = false;
        for body in bodies(plan) {
            gone |= strip(body, &read);
        }
        if read.is_empty() && !clear {
            plan.prefix.retain(|stmt| *stmt != Stmt::Clear);
        }
        if !gone {
            return;
        }
    }
}

fn bodies(plan: &mut Plan) -> impl Iterator<Item = &mut Vec<Stmt>> {
    let stages = plan.stages.iter_mut().map(|stage| &mut stage.body);
    let functions = plan.functions.iter_mut().map(|function| &mut function.body);
    std::iter::once(&mut plan.prefix).chain(stages).chain(&mut plan.points).chain(functions)
}

/// Takes out writes of words that are not read; whether there were any.
fn strip(body: &mut Vec<Stmt>, read: &BTreeSet<u16>) -> bool {
    let before = body.len();
    body.retain(|stmt| !matches!(stmt, Stmt::SetVar { word, .. } if !read.contains(word)));
    let mut gone = body.len() < before;
    for stmt in body {
        match stmt {
            Stmt::If { then, otherwise, .. } => gone |= strip(then, read) | strip(otherwise, read),
            Stmt::Block(_, inner) => gone |= strip(inner, read),
            Stmt::Switch { cases, .. } => gone = cases.iter_mut().fold(gone, |gone, case| strip(case, read) || gone),
            _ => {}
        }
    }
    gone
}
