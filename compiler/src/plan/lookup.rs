//! Tables with many rules: their look-up is data, and only what differs between rules' actions is code.
//!
//! Conditions that all rules share become code before the look-up. What is left of each rule is spelled out as entries, each a
//! mask and a value over a key of words; a rule that would need too many keeps the whole table a chain. Rules with the same
//! actions are one case of the code behind the look-up.

use std::collections::BTreeSet;

use pipec_abi::table::{self, MAX_WORDS};

use super::alike::Alike;
use super::code::{Expr, Op, Rows, Stmt, Value};
use super::entries::{Apart, MAX_ENTRIES, Slot, always, apart, entries, key_width, layout, second, spell_rules, words};
use super::lower::{Ask, Lower, State};
use super::matching::Open;
use super::merge::{self, Several};
use super::report::Classifier;
use crate::field::Field;
use crate::hir::Place;

/// Rules from which on a look-up is data.
pub(super) const MIN_RULES: usize = 24;
/// The same where the look-up is made for the whole burst.
pub(super) const MIN_GATHERED: usize = 10;
/// Cases of code behind a look-up.
const MAX_CASES: usize = 4096;

/// What follows a look-up.
struct Rest<'p> {
    alike: &'p Alike,
    /// Cases that its entries lead to.
    used: BTreeSet<usize>,
    /// The rule that is taken where nothing is found.
    miss: usize,
    /// Rules that stand for several.
    several: Vec<(usize, Several)>,
}

impl<'p> Lower<'p> {
    /// Makes a table a look-up, if it is one with many rules that can be spelled out as entries.
    /// Else says why not.
    pub(super) fn lookup(
        &mut self,
        rules: &[Open],
        state: &State,
        open: usize,
        rejected: &[(&'static str, String)],
        out: &mut Vec<Stmt>,
    ) -> Result<(), String> {
        // Behind a look-up packets are spread over tables, and few gather for each.
        let least = if self.may_gather(state) && !state.gathered { MIN_GATHERED } else { MIN_RULES };
        if rules.len() < least {
            return Err(format!("it has {} rules, and a look-up pays from {least} on", rules.len()));
        }
        let mut state = state.clone();
        let Apart { shared, facts, rules: left } = apart(rules, &state.facts);
        let mut spelled =
            spell_rules(&left, &facts).ok_or_else(|| format!("a rule would become more than {MAX_ENTRIES} entries"))?;
        let several = merge::merge(&mut spelled, |a, b| self.do_the_same(&state, a, b));
        let slots = layout(&spelled).ok_or_else(|| format!("its key would have more than {MAX_WORDS} words"))?;
        let alike = self.alike_of(&state, self.ends_by_verdict(&state));
        if alike.cases.len() > MAX_CASES {
            return Err(format!("its rules do more than {MAX_CASES} different things"));
        }
        let width = key_width(&slots);
        // A rule's number and, above it, what it does.
        let entries = entries(&spelled, &slots, |rule| (alike.case_of[rule] as u64) << 32 | rule as u64);
        let choice = table::choose(width, &entries, &self.costs);
        let mut rejected = rejected.to_vec();
        rejected.extend(choice.rejected.into_iter().map(|(kind, why)| (table::name(kind), why)));
        let table = self.tables.len() as u16;
        self.tables.push(table::encode(choice.kind, width, &entries));
        let lookup = Classifier::Lookup { table, guard: shared.len() as u32, cycles: choice.cycles };
        self.decide(state.table, open, rejected, lookup);
        // What all rules test, as code; a packet that fails it misses.
        let last = always(rules, &state.facts).unwrap_or(self.rules_of(&state).len());
        for cond in shared {
            let holds = self.condition(&cond, &mut state, out);
            let mut otherwise = Vec::new();
            let mut without = state.clone();
            without.facts.learn_test(&cond, false);
            self.take(last, without, &mut otherwise);
            out.push(Stmt::If { cond: holds.with(Op::Eq, 0), then: otherwise, otherwise: vec![] });
        }
        // Where they hold, an earlier rule may always hold.
        let miss = always(&left, &facts).unwrap_or(last);
        state.facts = facts;
        let used = spelled.iter().map(|(rule, _)| alike.case_of[*rule]).collect();
        let rest = Rest { alike, used, miss, several };
        let (key, ports) = self.key_words(&slots, width, &mut state, out);
        self.look_up(Ask { table, open: None }, key, state, out, move |lower, state, found, _, out| {
            lower.found(&rest, ports, found, state, out);
        });
        Ok(())
    }

    /// The words of a key; neighbours are read together. And the ports, if they are part of it.
    fn key_words(
        &mut self,
        slots: &[Slot],
        width: usize,
        state: &mut State,
        out: &mut Vec<Stmt>,
    ) -> (Vec<Expr>, [Expr; 2]) {
        let mut key = vec![Expr::Const(0); width];
        let mut ports = [Expr::Const(0), Expr::Const(0)];
        let mut add = |word: usize, shift: u32, part: Expr| {
            let part = part.with(Op::Shl, u64::from(shift));
            key[word] = std::mem::replace(&mut key[word], Expr::Const(0)).op(Op::Or, part);
        };
        let mut slots = slots.iter().peekable();
        while let Some(slot) = slots.next() {
            let behind = slots.peek().filter(|next| second(&slot.read) == Some(next.read));
            if let Some(next) = behind
                && let Some(pair) = self.site(state, out).pair(&slot.read, &next.read)
            {
                let both = self.fresh.value();
                out.push(Stmt::Let(both, pair));
                let both = Expr::Value(both);
                if next.read.place == Place::field(Field::TcpDst) {
                    ports = [both.clone().with(Op::Shr, 16), both.clone().with(Op::And, 0xffff)];
                }
                add(next.word, next.shift, both);
                slots.next();
                continue;
            }
            let wide = self.site(state, out).read(&slot.read);
            for (port, field) in ports.iter_mut().zip([Field::TcpSrc, Field::TcpDst]) {
                if slot.read.place == Place::field(field) {
                    *port = wide.low.clone();
                }
            }
            add(slot.word, slot.shift, wide.low);
            if words(&slot.read) == 2 {
                add(slot.word + 1, 0, wide.high);
            }
        }
        (key, ports)
    }

    /// Goes on with what was found.
    fn found(&mut self, rest: &Rest<'p>, ports: [Expr; 2], found: Value, mut state: State, out: &mut Vec<Stmt>) {
        let Rest { alike, used, miss, several } = rest;
        let miss = *miss;
        let base = self.counters_of(&state);
        let rows = (alike.rows.stride > 0).then(|| self.rows_of(&alike.rows));
        state.taken.clear();
        let apart = (!several.is_empty()).then(|| {
            let mut words = vec![0; alike.case_of.len().max(miss + 1)];
            several.iter().for_each(|(rule, several)| words[*rule] = several.word());
            self.rows_of(&Rows { stride: 1, words })
        });
        // What misses may do the same as what is found.
        let same = alike.case_of.get(miss).filter(|case| used.len() == 1 && used.contains(case));
        if let Some(case) = same {
            // Its number where nothing was found, else that of the rule.
            let (low, rule) = (self.fresh.value(), self.fresh.value());
            out.push(Stmt::Let(low, Expr::Value(found).with(Op::And, 0xffff_ffff)));
            let is_rule = Expr::Value(low).with(Op::Lt, alike.case_of.len() as u64);
            let behind = Expr::Value(low).with(Op::Sub, miss as u64).op(Op::Mul, is_rule).with(Op::Add, miss as u64);
            out.push(Stmt::Let(rule, behind));
            let counted = self.told_apart(apart, &ports, rule, out);
            out.push(Stmt::CountAt { base, place: counted });
            return self.take_case(&alike.cases[*case], rows.map(|rows| (rows, rule)), state, out);
        }
        let mut arms = Vec::new();
        for (number, case) in alike.cases.iter().enumerate() {
            let mut arm = Vec::new();
            if used.contains(&number) {
                let counted = self.told_apart(apart, &ports, found, &mut arm);
                arm.push(Stmt::CountAt { base, place: counted });
                self.take_case(case, rows.map(|rows| (rows, found)), state.clone(), &mut arm);
            }
            arms.push(arm);
        }
        let mut missed = vec![Stmt::Count(base + miss as u32)];
        self.take_uncounted(miss, state, &mut missed);
        arms.push(missed);
        out.push(Stmt::Switch { value: found, cases: arms });
    }

    /// The rule that is counted, of those that the one found stands for.
    fn told_apart(&mut self, apart: Option<u16>, ports: &[Expr; 2], rule: Value, out: &mut Vec<Stmt>) -> Value {
        let Some(rows) = apart else { return rule };
        let (word, counted) = (self.fresh.value(), self.fresh.value());
        out.push(Stmt::Let(word, Expr::Row { rows, at: rule, stride: 1, word: 0 }));
        let part = |shift: u64, mask: u64| Expr::Value(word).with(Op::Shr, shift).with(Op::And, mask);
        let steps = |port: &Expr, least: Expr, stride: Expr| {
            Expr::Log2(Box::new(port.clone())).op(Op::Sub, least).op(Op::Mul, stride)
        };
        let [source, destination] = ports;
        let behind = steps(source, part(0, 0xff), part(16, 0xffff));
        let behind = behind.op(Op::Add, steps(destination, part(8, 0xff), part(32, 0xffff)));
        out.push(Stmt::Let(counted, Expr::Value(rule).op(Op::Add, behind)));
        counted
    }

    /// The number of a table of constants, which may be at several places.
    fn rows_of(&mut self, rows: &Rows) -> u16 {
        let known = self.rows.iter().position(|known| known == rows);
        let number = known.unwrap_or_else(|| {
            self.rows.push(rows.clone());
            self.rows.len() - 1
        });
        number as u16
    }
}
