//! Looks through code. In: statements. Out: their expressions, their lists, the values they use and define. Never: a decision.

use std::collections::BTreeSet;

use super::code::{Base, Expr, Stmt, Value};

/// The lists inside a statement.
pub fn lists(stmt: &Stmt) -> Vec<&[Stmt]> {
    match stmt {
        Stmt::If { then, otherwise, .. } => vec![then, otherwise],
        Stmt::Block(_, body) => vec![body],
        Stmt::Switch { cases, .. } => cases.iter().map(Vec::as_slice).collect(),
        _ => vec![],
    }
}

/// The expressions of a statement, without those of lists in it.
pub fn exprs(stmt: &Stmt) -> Vec<&Expr> {
    match stmt {
        Stmt::Let(_, value) | Stmt::SetVar { value, .. } | Stmt::Store { value, .. } => vec![value],
        Stmt::If { cond, .. } => vec![cond],
        Stmt::Lookup { key, .. } | Stmt::Find { key, .. } | Stmt::Gather { key, .. } => key.iter().collect(),
        Stmt::Learn { key, args, .. } => key.iter().chain(args).collect(),
        Stmt::External { arguments, .. } => arguments.iter().collect(),
        Stmt::Ct { zone, .. } => vec![zone],
        Stmt::EmitTo { port, .. } | Stmt::EmitPart { port, .. } | Stmt::VerdictOf(port) => vec![port],
        Stmt::Set { high, low, .. } => vec![high, low],
        Stmt::Reshape { a, b, .. } => vec![a, b],
        Stmt::SetBits { at, high, low, .. } => vec![at, high, low],
        Stmt::Block(..)
        | Stmt::Break(_)
        | Stmt::Return(_)
        | Stmt::Count(_)
        | Stmt::CountAt { .. }
        | Stmt::Switch { .. }
        | Stmt::Verdict(_)
        | Stmt::DropIfUnsent(_)
        | Stmt::Suspend { .. }
        | Stmt::CtClear
        | Stmt::Emit { .. }
        | Stmt::EmitIn { .. }
        | Stmt::Flood { .. }
        | Stmt::Normal { .. }
        | Stmt::DecTtl { .. }
        | Stmt::Call { .. }
        | Stmt::Clear
        | Stmt::Enter { .. }
        | Stmt::Depth(_)
        | Stmt::SetDepth(_)
        | Stmt::Save
        | Stmt::Restore
        | Stmt::Controller { .. }
        | Stmt::Meter { .. }
        | Stmt::Live { .. }
        | Stmt::SetCt(_)
        | Stmt::Fail(_)
        | Stmt::CountEntry { .. }
        | Stmt::Encap { .. }
        | Stmt::Finish { .. }
        | Stmt::FailWith(_) => vec![],
    }
}

/// Visits an expression and all inside it.
pub fn each(expr: &Expr, visit: &mut impl FnMut(&Expr)) {
    visit(expr);
    if let Expr::Op(_, left, right) | Expr::Guard(left, right) = expr {
        each(left, visit);
        each(right, visit);
    }
    if let Expr::Log2(of) | Expr::LoadIf { cond: of, .. } = expr {
        each(of, visit);
    }
}

/// Visits all expressions of code.
pub fn each_in(code: &[Stmt], visit: &mut impl FnMut(&Expr)) {
    for stmt in code {
        exprs(stmt).into_iter().for_each(|expr| each(expr, visit));
        lists(stmt).into_iter().for_each(|list| each_in(list, visit));
    }
}

/// The values that a statement uses beside its expressions.
fn bare(stmt: &Stmt) -> Vec<Value> {
    match stmt {
        Stmt::CountAt { place, .. } | Stmt::CountEntry { place, .. } => vec![*place],
        Stmt::Switch { value, .. } | Stmt::SetDepth(value) | Stmt::FailWith(value) => vec![*value],
        Stmt::SetCt(parts) => parts.to_vec(),
        Stmt::Store { base: Base::At(value), .. } => vec![*value],
        Stmt::Gather { carry, .. } => carry.clone(),
        _ => vec![],
    }
}

/// The value that a statement defines.
fn defined(stmt: &Stmt) -> Option<Value> {
    match stmt {
        Stmt::Let(value, _) | Stmt::Depth(value) => Some(*value),
        Stmt::Lookup { result, .. } | Stmt::Find { result, .. } | Stmt::Call { result, .. } => Some(*result),
        Stmt::Ct { state, .. } => Some(*state),
        Stmt::DecTtl { expired } => Some(*expired),
        Stmt::Enter { exceeded, .. } => Some(*exceeded),
        Stmt::Meter { passes, .. } => Some(*passes),
        Stmt::Live { alive, .. } => Some(*alive),
        Stmt::External { dropped, .. } => Some(*dropped),
        Stmt::Reshape { failed, .. } | Stmt::Encap { failed, .. } => Some(*failed),
        _ => None,
    }
}

/// The values that an expression uses.
fn used(expr: &Expr, uses: &mut BTreeSet<Value>) {
    each(expr, &mut |expr| match expr {
        Expr::Value(value)
        | Expr::L3 { l2: value, .. }
        | Expr::L4 { l3: value, .. }
        | Expr::Arp(value)
        | Expr::Nd(value) => {
            uses.insert(*value);
        }
        Expr::Load { base: Base::At(value), .. }
        | Expr::LoadIf { base: Base::At(value), .. }
        | Expr::Row { at: value, .. } => {
            uses.insert(*value);
        }
        _ => {}
    });
}

/// The values that code uses and does not define.
pub fn free(code: &[Stmt]) -> BTreeSet<Value> {
    let (mut uses, mut definitions) = (BTreeSet::new(), BTreeSet::new());
    collect(code, &mut uses, &mut definitions);
    &uses - &definitions
}

fn collect(code: &[Stmt], uses: &mut BTreeSet<Value>, definitions: &mut BTreeSet<Value>) {
    for stmt in code {
        exprs(stmt).into_iter().for_each(|expr| used(expr, uses));
        uses.extend(bare(stmt));
        definitions.extend(defined(stmt));
        lists(stmt).into_iter().for_each(|list| collect(list, uses, definitions));
    }
}
