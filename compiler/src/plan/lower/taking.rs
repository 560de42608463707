//! Taking rules: what is counted for them, and what they do.
//!
//! A rule is counted for all that it stands for, of its own table and of those that are one with it. Where a path ends with the
//! packet the rule is counted together with those taken before.

use pipec_abi::DropReason;

use super::{Emitted, Lower, State, stages};
use crate::hir::Rule;
use crate::plan::alike::{Alike, Case};
use crate::plan::code::{Expr, Stmt, Value};
use crate::plan::values::Wide;

impl<'p> Lower<'p> {
    /// The first counter of the state's table, whose rules are counted by number; what misses, behind them.
    pub(in crate::plan) fn counters_of(&mut self, state: &State) -> u32 {
        let base = self.counters.len() as u32;
        // Each place gets the rules taken before, so that they are counted with it.
        for rule in 0..=self.rules_of(state).len() {
            let rules = [state.taken.clone(), self.product.rules(state.table, rule)].concat();
            self.counters.push(rules);
        }
        base
    }

    /// What the rules of the state's table do; `ends`: where their lists end with the packet.
    pub(in crate::plan) fn alike_of(&self, state: &State, ends: bool) -> &'p Alike {
        &self.alike[usize::from(state.table.0)][usize::from(ends)]
    }

    /// Whether what becomes of the packet may be a constant of its rule: its list ends with it, and it has no output yet.
    pub(in crate::plan) fn ends_by_verdict(&self, state: &State) -> bool {
        stages::ends_with_packet(state) && state.emitted == Emitted::No && !state.put_back
    }

    /// Does what several rules do, all counted already, with the constants of one of them.
    pub(in crate::plan) fn take_case(
        &mut self,
        case: &'p Case,
        row: Option<(u16, Value)>,
        mut state: State,
        out: &mut Vec<Stmt>,
    ) {
        self.spent += 1;
        let mut at = 0;
        let mut word = |lower: &mut Self, out: &mut Vec<Stmt>| {
            let Some((rows, place)) = row else { return Expr::Const(0) };
            let value = lower.fresh.value();
            out.push(Stmt::Let(
                value,
                Expr::Row { rows, at: place, stride: lower.rows[usize::from(rows)].stride as u16, word: at },
            ));
            at += 1;
            Expr::Value(value)
        };
        state.args.clear();
        for words in &case.params {
            let high = if *words == 2 { word(self, out) } else { Expr::Const(0) };
            state.args.push(Wide { high, low: word(self, out) });
        }
        if case.ends {
            state.end_by = Some(word(self, out));
        }
        if case.missed && !case.ends {
            self.because(DropReason::NoMatch, &mut state);
        } else if case.actions.is_empty() && !case.ends {
            self.because(DropReason::Policy, &mut state);
        }
        self.actions(&case.actions, state, out);
    }

    /// Takes a rule: counts it and does what it says.
    pub(in crate::plan) fn take(&mut self, rule: usize, mut state: State, out: &mut Vec<Stmt>) {
        state.taken.extend(self.product.rules(state.table, rule));
        self.take_uncounted(rule, state, out);
    }

    /// Does what a rule says.
    pub(in crate::plan) fn take_uncounted(&mut self, rule: usize, mut state: State, out: &mut Vec<Stmt>) {
        self.spent += 1;
        let program = self.program;
        let rules = &program.table(state.table).rules;
        match rules.get(rule) {
            None => self.because(DropReason::NoMatch, &mut state),
            Some(found) => {
                if self.product.missed(state.table, rule) {
                    self.because(DropReason::NoMatch, &mut state);
                } else if found.actions.is_empty() {
                    self.because(DropReason::Policy, &mut state);
                }
                return self.actions(&found.actions, state, out);
            }
        }
        self.end_list(state, out);
    }

    /// Whether two rules of the state's table do the same.
    pub(in crate::plan) fn do_the_same(&self, state: &State, a: usize, b: usize) -> bool {
        let (rules, missed) = (self.rules_of(state), |rule| self.product.missed(state.table, rule));
        rules[a].actions == rules[b].actions && missed(a) == missed(b)
    }

    /// The rules of the state's table.
    pub(in crate::plan) fn rules_of(&self, state: &State) -> &'p [Rule] {
        &self.program.table(state.table).rules
    }
}
