//! Keyed tables and `learn`. Code depends on what entries look like, never on the entries: it tests what must be present, makes
//! the key, looks it up, and goes on by the number of the entry's action with the entry's arguments as values.
//!
//! A look-up that time or packets can change is in the order of packets; others stand wherever the path is.

use super::{Ask, Lower, State};
use crate::describe::{open_place, shape};
use crate::field::Field;
use crate::hir::{Cond, Keyed, Learn, Read, Rule, Space, Value, View};
use crate::plan::alike::leads_on;
use crate::plan::code::{Expr, Label, Op, Stmt};
use crate::plan::facts::{Known, ones};
use crate::plan::report::Classifier;
use crate::plan::values::Wide;

impl<'p> Lower<'p> {
    /// Looks a packet up in the state's table, a keyed one.
    pub(in crate::plan) fn keyed(&mut self, keyed: &'p Keyed, own_port: bool, state: State, out: &mut Vec<Stmt>) {
        let shape = shape(keyed);
        if shape.ordered() && !state.in_order {
            return self.suspend(state, None, out, move |lower, state, out| lower.keyed(keyed, own_port, state, out));
        }
        let (table, first) = open_place(self.program, state.table);
        let classifier = Classifier::Keyed { table, ordered: shape.ordered() };
        self.decide(state.table, keyed.actions.len(), vec![], classifier);
        let present = Cond::All(keyed.key.iter().filter_map(|part| part.header).map(Cond::Has).collect());
        let ask = Ask { table, open: Some(shape.args) };
        let surely = matches!(state.facts.simplify(&present), Known::True);
        if shape.ordered() || !self.may_gather(&state) || !surely && miss_leads_on(keyed, self.rules_of(&state)) {
            return self.keyed_here(keyed, own_port, (&present, &shape), ask, first, state, out);
        }
        // What lacks a header misses at once; the rest gathers.
        let next = self.new_label();
        let (mut inside, mut body) = (state.clone(), Vec::new());
        if self.all_hold(&present, next, &mut inside, &mut body) {
            let key = self.key(keyed, own_port, &shape, &mut inside, &mut body);
            self.look_up(ask, key, inside, &mut body, |lower, state, found, gathered, out| {
                let next = lower.new_label();
                let cases = lower.entries(keyed, first, found, gathered, &state, next);
                out.push(Stmt::Block(next, vec![Stmt::Switch { value: found, cases }]));
                lower.missed(keyed, state, out);
            });
        }
        out.push(Stmt::Block(next, body));
        self.missed(keyed, state, out);
    }

    /// Looks up where the packet is.
    #[allow(clippy::too_many_arguments)] // what a look-up consists of
    fn keyed_here(
        &mut self,
        keyed: &'p Keyed,
        own_port: bool,
        (present, shape): (&Cond, &pipec_abi::table::Shape),
        ask: Ask,
        first: u32,
        state: State,
        out: &mut Vec<Stmt>,
    ) {
        let next = self.new_label();
        let (mut inside, mut body) = (state.clone(), Vec::new());
        if self.all_hold(present, next, &mut inside, &mut body) {
            let key = self.key(keyed, own_port, shape, &mut inside, &mut body);
            let result = self.fresh.value();
            body.push(Stmt::Find { result, table: ask.table, key, ordered: shape.ordered() });
            let cases = self.entries(keyed, first, result, false, &inside, next);
            body.push(Stmt::Switch { value: result, cases });
        }
        out.push(Stmt::Block(next, body));
        self.missed(keyed, state, out);
    }

    /// The words of the key.
    fn key(
        &mut self,
        keyed: &Keyed,
        own_port: bool,
        shape: &pipec_abi::table::Shape,
        state: &mut State,
        out: &mut Vec<Stmt>,
    ) -> Vec<Expr> {
        let reads = keyed.key.iter().map(|part| seen(part.read, own_port));
        let words: Vec<Wide> = reads.map(|read| self.site(state, out).read(&read)).collect();
        self.pack(shape, words)
    }

    /// For each action that entries have what it does, and a miss, which leads behind the block.
    #[allow(clippy::too_many_arguments)] // what is known of an entry
    fn entries(
        &mut self,
        keyed: &'p Keyed,
        first: u32,
        found: crate::plan::code::Value,
        gathered: bool,
        state: &State,
        next: Label,
    ) -> Vec<Vec<Stmt>> {
        let mut cases = Vec::new();
        for rule in 0..keyed.actions.iter().take_while(|action| action.entries).count() {
            let mut arm = vec![Stmt::CountEntry { first, place: found }];
            let mut state = state.clone();
            state.args = self.arguments(keyed, rule, gathered, &mut arm);
            self.take(rule, state, &mut arm);
            cases.push(arm);
        }
        cases.push(vec![Stmt::Break(next)]);
        cases
    }

    /// What has no entry.
    fn missed(&mut self, keyed: &Keyed, mut state: State, out: &mut Vec<Stmt>) {
        match &keyed.default {
            Some((rule, args)) => {
                state.args = args.iter().map(|arg| Wide::constant(*arg)).collect();
                self.take(usize::from(*rule), state, out);
            }
            None => {
                let miss = self.rules_of(&state).len();
                self.take(miss, state, out);
            }
        }
    }

    /// The arguments of the entry that was found, as values.
    fn arguments(&mut self, keyed: &Keyed, rule: usize, gathered: bool, out: &mut Vec<Stmt>) -> Vec<Wide> {
        let mut word = |lower: &mut Self, at: usize| {
            let value = lower.fresh.value();
            out.push(Stmt::Let(value, if gathered { Expr::FoundArg(at as u16) } else { Expr::Arg(at as u16) }));
            Expr::Value(value)
        };
        let (places, _) = keyed.arg_words(rule);
        let params = keyed.actions[rule].params.iter().zip(places);
        let wide = params.map(|(param, at)| match param.width {
            ..=64 => Wide { high: Expr::Const(0), low: word(self, at) },
            _ => Wide { high: word(self, at), low: word(self, at + 1) },
        });
        wide.collect()
    }

    /// Values of the parts of a key as its words.
    fn pack(&mut self, shape: &pipec_abi::table::Shape, parts: Vec<Wide>) -> Vec<Expr> {
        let mut key = vec![Expr::Const(0); shape.words()];
        for ((slot, part), wide) in shape.slots().into_iter().zip(&shape.parts).zip(parts) {
            let low = wide.low.with(Op::Shl, u64::from(slot.shift));
            key[slot.word] = std::mem::replace(&mut key[slot.word], Expr::Const(0)).op(Op::Or, low);
            if part.width > 64 {
                key[slot.word + 1] = wide.high;
            }
        }
        key
    }

    /// `learn`
    pub(super) fn learn(&mut self, learn: &Learn, state: &mut State, out: &mut Vec<Stmt>) {
        let Some(keyed) = &self.program.table(learn.table).keyed else { return };
        let shape = shape(keyed);
        let mut parts = Vec::new();
        for (value, part) in learn.key.iter().zip(&keyed.key) {
            parts.push(self.cut(value, part.read.place.width, state, out));
        }
        let key = self.pack(&shape, parts);
        let mut args = Vec::new();
        for (value, param) in learn.args.iter().zip(&keyed.actions[usize::from(learn.action)].params) {
            let wide = self.cut(value, param.width, state, out);
            if param.width > 64 {
                args.push(wide.high);
            }
            args.push(wide.low);
        }
        let (table, _) = open_place(self.program, learn.table);
        out.push(Stmt::Learn { table, key, action: learn.action, args });
    }

    /// The lowest bits of a value.
    fn cut(&mut self, value: &Value, width: u8, state: &mut State, out: &mut Vec<Stmt>) -> Wide {
        let wide = self.value(value, state, out);
        let fits = match value {
            Value::Read(place) => place.width <= width,
            _ => false,
        };
        if fits {
            return wide;
        }
        let mask = ones(width);
        Wide { high: wide.high.with(Op::And, (mask >> 64) as u64), low: wide.low.with(Op::And, mask as u64) }
    }
}

/// Whether what has no entry goes on to other tables: that code is not to be there twice.
fn miss_leads_on(keyed: &Keyed, rules: &[Rule]) -> bool {
    let rule = keyed.default.as_ref().and_then(|(rule, _)| rules.get(usize::from(*rule)));
    rule.is_some_and(|rule| leads_on(&rule.actions))
}

/// How a part of a key is read, where nothing overrides the port for this look-up.
fn seen(read: Read, own_port: bool) -> Read {
    let is_port = read.place.space == Space::Field(Field::InPort);
    if is_port && !own_port { Read { view: View::Action, ..read } } else { read }
}
