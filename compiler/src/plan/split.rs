//! Tables taken apart: a few values of one field are told apart in code, and what is left of the rules for each is a table of
//! its own.
//!
//! A table that holds rules for several kinds of packets has a key with the fields of all of them, and masks that differ from
//! kind to kind. Behind a test of the field that names the kind each part has a short key and few masks. The field is chosen
//! greedily: of those that most rules compare whole, the one whose parts are predicted to cost least; parts may be taken apart
//! again. (ESwitch calls it decomposition by exact columns. A table whose columns depend on each other could also become
//! several that follow each other; but there a look-up is made for every part, where one does for [`product`](super::product).)
//!
//! In: rules, and what is known. Out: code that tests the field, and behind it the parts. Never: a part that costs more than
//! the whole, as predicted.

use super::code::Stmt;
use super::entries::{apart, key_width, layout, spell_rules, wholes};
use super::facts::{Atom, Facts, ones};
use super::lower::{Lower, State};
use super::matching::{Open, each_read, still_open};
use super::predict;
use crate::hir::{Cond, Match, Read};
use crate::words as names;

/// Words of a key that one look-up compares at no cost to speak of.
const FREE_WORDS: usize = 2;
/// Values that are told apart in code, at the most.
const MAX_VALUES: usize = 6;
/// Fields that are tried.
const MAX_FIELDS: usize = 3;
/// What the parts have to cost of the whole, at the most.
const GAIN: f32 = 0.85;

/// A field, and the values of it that are told apart.
struct Split {
    read: Read,
    values: Vec<u128>,
    /// Predicted cycles a packet.
    cycles: f32,
}

impl Lower<'_> {
    /// Takes a table apart, if that is cheaper, and says so; else gives the rules back.
    pub(super) fn split(&mut self, rules: &[Open], state: &State, out: &mut Vec<Stmt>) -> bool {
        let open = still_open(rules, &state.facts);
        if open.len() < super::lookup::MIN_GATHERED || !has_wide_key(&open, &state.facts) {
            return false;
        }
        let same = |a: usize, b: usize| self.do_the_same(state, a, b);
        let whole = predict::cycles(&open, same, &state.facts, state.gathered, &self.costs);
        let tried = columns(&open, &state.facts).into_iter().map(|(read, values)| {
            let cycles = self.cost(&open, state, &read, &values);
            Split { read, values, cycles }
        });
        let best = tried.min_by(|a, b| a.cycles.total_cmp(&b.cycles)).filter(|split| split.cycles < GAIN * whole);
        let Some(Split { read, values, cycles }) = best else { return false };
        let name = names::place(self.source, read.place);
        let why = format!("by {name} its parts take about {cycles:.0} cycles a packet, the whole {whole:.0}");
        let rejected = vec![("one table", why)];
        self.take_apart(&open, &read, &values, state.clone(), &rejected, out);
        true
    }

    /// What the parts cost, each weighed by its rules.
    fn cost(&self, rules: &[Open], state: &State, read: &Read, values: &[u128]) -> f32 {
        let same = |a: usize, b: usize| self.do_the_same(state, a, b);
        let named = |value: u128| rules.iter().filter(|(_, cond)| whole(cond, read) == Some(value)).count();
        let all = rules.len() as f32;
        let mut others = (state.facts.clone(), all);
        let (mut cycles, mut most) = (0.0, 0.0f32);
        let mut add = |facts: &Facts, share: f32| {
            most = most.max(share);
            cycles += share * predict::cycles(rules, same, facts, state.gathered, &self.costs);
        };
        for value in values {
            let count = named(*value) as f32;
            let mut facts = others.0.clone();
            let atom = is(read, *value);
            facts.learn(&atom, true);
            others.0.learn(&atom, false);
            others.1 -= count;
            add(&facts, count / all);
        }
        add(&others.0, others.1 / all);
        let surprise = if predict::comes_in_runs(read) { 0.0 } else { (1.0 - most) * self.costs.mispredict };
        // Each part is called for on its own.
        cycles + surprise + values.len() as f32 * (predict::TEST + self.costs.call / 8.0)
    }

    /// Tests one value after the other.
    fn take_apart(
        &mut self,
        rules: &[Open],
        read: &Read,
        values: &[u128],
        mut state: State,
        rejected: &[(&'static str, String)],
        out: &mut Vec<Stmt>,
    ) {
        let Some((value, values)) = values.split_first() else {
            let rest = still_open(rules, &state.facts);
            return self.tell_apart(rest, state, rejected, out);
        };
        let atom = is(read, *value);
        let cond = self.site(&mut state, out).test(&atom.read, &atom.test);
        let mut without = state.clone();
        state.facts.learn(&atom, true);
        without.facts.learn(&atom, false);
        let (mut then, mut otherwise) = (Vec::new(), Vec::new());
        self.tell_apart(still_open(rules, &state.facts), state, rejected, &mut then);
        self.take_apart(rules, read, values, without, rejected, &mut otherwise);
        out.push(Stmt::If { cond, then, otherwise });
    }
}

/// Whether the key of these rules would be so wide that parts of them may be cheaper.
fn has_wide_key(rules: &[Open], facts: &Facts) -> bool {
    let (mut reads, mut bits): (Vec<Read>, usize) = (Vec::new(), 0);
    for (_, cond) in rules {
        each_read(cond, &mut |read| {
            if !reads.contains(read) {
                reads.push(*read);
                bits += usize::from(read.place.width);
            }
        });
    }
    if bits <= 64 * FREE_WORDS {
        return false;
    }
    let apart = apart(rules, facts);
    let Some(spelled) = spell_rules(&apart.rules, &apart.facts) else { return true };
    layout(&spelled).is_none_or(|slots| key_width(&slots) > FREE_WORDS)
}

/// A field, and how many rules want it to have which value.
struct Column {
    read: Read,
    values: Vec<(u128, usize)>,
    rules: usize,
}

/// Fields that most rules compare whole, with their few values: those of many rules first.
fn columns(rules: &[Open], facts: &Facts) -> Vec<(Read, Vec<u128>)> {
    let mut columns: Vec<Column> = Vec::new();
    let mut count = |read: &Read, value: u128| {
        if facts.constant(read).is_some() {
            return;
        }
        let at = columns.iter().position(|known| known.read == *read).unwrap_or_else(|| {
            columns.push(Column { read: *read, values: vec![], rules: 0 });
            columns.len() - 1
        });
        let column = &mut columns[at];
        column.rules += 1;
        match column.values.iter().position(|(known, _)| *known == value) {
            Some(at) => column.values[at].1 += 1,
            None if column.values.len() <= MAX_VALUES => column.values.push((value, 1)),
            None => {}
        }
    };
    rules.iter().for_each(|(_, cond)| wholes(cond, &mut count));
    columns.retain(|column| column.values.len() <= MAX_VALUES && 2 * column.rules >= rules.len());
    columns.sort_by_key(|column| std::cmp::Reverse(column.rules));
    columns.truncate(MAX_FIELDS);
    let in_order = |mut column: Column| {
        column.values.sort_by_key(|(value, times)| (std::cmp::Reverse(*times), *value));
        (column.read, column.values.into_iter().map(|(value, _)| value).collect())
    };
    columns.into_iter().map(in_order).collect()
}

/// The value that a condition surely wants a place to have.
fn whole(cond: &Cond, wanted: &Read) -> Option<u128> {
    let mut found = None;
    wholes(cond, &mut |read, value| found = found.or((read == wanted).then_some(value)));
    found
}

fn is(read: &Read, value: u128) -> Atom {
    Atom { read: *read, test: Match::Masked { value, mask: ones(read.place.width) } }
}
