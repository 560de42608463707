//! Tables: the order of their rules.
//!
//! Rules without priorities stand in the order of the source and count down to 1. If one has a priority, all have, `else`
//! excepted; the highest comes first, equals in the order of the source. `else` has priority 0 and is last, wherever it stands.

use super::Resolver;
use super::action::Actions;
use super::marks::RuleMarks;
use crate::ast::{self, ExprKind, Spanned};
use crate::diag::Diagnostic;
use crate::hir::{self, Cond};

impl<'a> Resolver<'a> {
    /// A table, with the marks of its rules.
    pub fn table_rules(&mut self, table: &'a ast::Table) -> Option<(hir::Table, Vec<RuleMarks>)> {
        if !table.keyed.is_empty() {
            return self.keyed_table(table);
        }
        let with_priority = table.rules.iter().find(|rule| rule.node.priority.is_some());
        let mut otherwise: Option<&Spanned<ast::Rule>> = None;
        let mut rules = vec![];
        let mut whole = true;
        let mut next = table.rules.iter().filter(|rule| rule.node.cond.is_some()).count() as u32;
        for rule in &table.rules {
            let priority = if rule.node.cond.is_none() {
                if let Some(first) = otherwise {
                    self.push(
                        Diagnostic::error("duplicate", "a table has one `else`", rule.node.head.span, "a second one")
                            .label(first.node.head.span, "the first one"),
                    );
                    whole = false;
                }
                otherwise = Some(rule);
                self.priority(rule, None)
            } else {
                next -= 1;
                match with_priority {
                    None => Some(next + 1),
                    Some(first) => self.priority(rule, Some(first)),
                }
            };
            let resolved = self.rule(rule);
            match (priority, resolved) {
                (Some(priority), Some((cond, actions, marks))) => {
                    let last = rule.node.cond.is_none();
                    let text = crate::print::rule(&rule.node);
                    rules.push((last, hir::Rule { priority, cond, actions, text, span: rule.span }, marks));
                }
                _ => whole = false,
            }
        }
        rules.sort_by_key(|(last, rule, _)| (*last, u32::MAX - rule.priority));
        let (rules, marks) = rules.into_iter().map(|(_, rule, marks)| (rule, marks)).unzip();
        let name = table.name.node.clone();
        whole.then_some((hir::Table { name, rules, span: table.name.span, keyed: None }, marks))
    }

    /// The priority of a rule in a table that has priorities since `first`, or of an `else`.
    fn priority(&mut self, rule: &Spanned<ast::Rule>, first: Option<&Spanned<ast::Rule>>) -> Option<u32> {
        match (&rule.node.priority, first) {
            (None, None) => Some(0),
            (Some(priority), None) => {
                self.push(
                    Diagnostic::error("priority", "`else` has no priority", priority.span, "not allowed here")
                        .help("`else` is what holds where no other rule does"),
                );
                None
            }
            (None, Some(first)) => {
                let first = first.node.priority.as_ref().map_or(first.span, |priority| priority.span);
                self.push(
                    Diagnostic::error(
                        "priority",
                        "a rule without a priority among rules with one",
                        rule.span,
                        "no priority",
                    )
                    .label(first, "this rule has one")
                    .help("write `priority N:` before it"),
                );
                None
            }
            (Some(priority), Some(_)) => match priority.node {
                ExprKind::Number { value, .. } if value <= 0xffff => Some(value as u32),
                _ => {
                    self.error("value-too-big", "priorities go from 0 to 65535", priority.span, "too big");
                    None
                }
            },
        }
    }

    /// Condition, actions and marks of a rule.
    fn rule(&mut self, rule: &'a Spanned<ast::Rule>) -> Option<(Cond, Vec<hir::Action>, RuleMarks)> {
        let mut marks = RuleMarks { cond: rule.node.head.span, ..RuleMarks::default() };
        let cond = match &rule.node.cond {
            Some(cond) => self.cond(cond, &mut marks),
            None => Some(Cond::True),
        };
        let mut into = Actions::default();
        let actions = self.actions(&rule.node.actions, &mut into);
        marks.actions = into.marks;
        Some((cond?, actions?, marks))
    }
}
