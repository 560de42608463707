//! How a table's rules are told apart: as a tree of tests where that is small, else as a chain, rule by rule.
//!
//! The tree tests each thing once on a path and drops rules that can no longer hold; it is the same decision made for every
//! packet, with no table left at run time. It may double in size with every test, so it is counted before it is built.

use super::code::{Expr, Label, Op, Stmt};
use super::facts::{Atom, Facts, Known, first_atom, is_opaque, ones};
use super::lower::{Lower, State};
use super::report::Classifier;
use crate::field::Field;
use crate::hir::{Cond, Match, Order, Read, Space, View};

/// Ends that a tree may have: so many, or twice the rules.
const TREE_ENDS: usize = 48;

/// Rules of a table that is told apart by a tree, at the most.
pub(super) const MAX_TREE_RULES: usize = 64;

/// A rule that may still hold: its number, and what is open of its condition.
pub(super) type Open = (usize, Cond);

impl<'p> Lower<'p> {
    /// Matches the rules of the state's table, whose look-up sees `in_port` as actions do unless `own_port`.
    pub(super) fn rules_seen_by(&mut self, own_port: bool, state: State, out: &mut Vec<Stmt>) {
        let program = self.program;
        if let Some(keyed) = &program.table(state.table()).keyed {
            return self.keyed(keyed, own_port, state, out);
        }
        let rules: Vec<Open> = self
            .rules_of(&state)
            .iter()
            .enumerate()
            .map(|(i, rule)| (i, if own_port { rule.cond.clone() } else { as_actions_see_port(&rule.cond) }))
            .collect();
        self.tell_apart(rules, state, &[], out);
    }

    /// Matches rules of the state's table: all that may still hold, in order. `rejected`: what was not done with them before.
    pub(super) fn tell_apart(
        &mut self,
        rules: Vec<Open>,
        state: State,
        rejected: &[(&'static str, String)],
        out: &mut Vec<Stmt>,
    ) {
        let limit = TREE_ENDS.max(2 * rules.len());
        let open = still_open(&rules, &state.facts).len();
        let mut rejected = rejected.to_vec();
        if rules.iter().any(|(_, cond)| is_opaque(cond)) {
            let why = "a rule compares two places, which no look-up does".to_owned();
            rejected.extend([("tree", why.clone()), ("look-up", why)]);
            let tests = rules.iter().map(|(_, cond)| tests(cond)).sum();
            self.decide(state.table, open, rejected, Classifier::Chain { tests });
            return self.chain(rules, state, out);
        }
        if self.split(&rules, &state, out) {
            return;
        }
        // From a few rules on, one look-up for the burst is cheaper than branches that surprise.
        let tried = self.may_gather(&state).then(|| self.lookup(&rules, &state, open, &rejected, out));
        if tried == Some(Ok(())) {
            return;
        }
        if rules.len() > MAX_TREE_RULES {
            rejected
                .push(("tree", format!("it has {} rules, and a tree has {MAX_TREE_RULES} at the most", rules.len())));
        } else if let Some((ends, depth)) = ends(&rules, &state.facts, limit) {
            let tree = Classifier::Tree { depth, ends: ends as u32 };
            self.decide(state.table, open, rejected, if depth == 0 { Classifier::Direct } else { tree });
            return self.tree(rules, state, out);
        } else {
            rejected.push(("tree", format!("it would have more than {limit} ends")));
        }
        if let Err(why) = tried.unwrap_or_else(|| self.lookup(&rules, &state, open, &rejected, out)) {
            rejected.push(("look-up", why));
            let tests = rules.iter().map(|(_, cond)| tests(cond)).sum();
            self.decide(state.table, open, rejected, Classifier::Chain { tests });
            self.chain(rules, state, out);
        }
    }

    fn tree(&mut self, rules: Vec<Open>, mut state: State, out: &mut Vec<Stmt>) {
        let rules = still_open(&rules, &state.facts);
        let Some((rule, cond)) = rules.first() else {
            let miss = self.rules_of(&state).len();
            return self.take(miss, state, out);
        };
        let Some(atom) = next_test(cond) else { return self.take(*rule, state, out) };
        let cond = self.site(&mut state, out).test(&atom.read, &atom.test);
        let mut without = state.clone();
        state.facts.learn(&atom, true);
        without.facts.learn(&atom, false);
        let (mut then, mut otherwise) = (Vec::new(), Vec::new());
        self.tree(rules.clone(), state, &mut then);
        self.tree(rules, without, &mut otherwise);
        out.push(Stmt::If { cond, then, otherwise });
    }

    fn chain(&mut self, rules: Vec<Open>, mut state: State, out: &mut Vec<Stmt>) {
        self.read_ahead(&rules, &mut state, out);
        let miss = self.rules_of(&state).len();
        for (rule, cond) in rules {
            match state.facts.simplify(&cond) {
                Known::False => {}
                Known::True => return self.take(rule, state, out),
                Known::Open(cond) => {
                    let next = self.new_label();
                    let mut inside = state.clone();
                    let mut body = Vec::new();
                    if self.all_hold(&cond, next, &mut inside, &mut body) {
                        self.take(rule, inside, &mut body);
                    }
                    out.push(Stmt::Block(next, body));
                    state.facts.learn_test(&cond, false);
                }
            }
        }
        self.take(miss, state, out);
    }

    /// Tests the parts of a condition one by one, and leaves for `next` at the first that does not hold; whether they can all
    /// hold.
    pub(super) fn all_hold(&mut self, cond: &Cond, next: Label, state: &mut State, out: &mut Vec<Stmt>) -> bool {
        let parts = if let Cond::All(parts) = cond { parts.as_slice() } else { std::slice::from_ref(cond) };
        for part in parts {
            let part = match state.facts.simplify(part) {
                Known::True => continue,
                Known::False => {
                    out.push(Stmt::Break(next));
                    return false;
                }
                Known::Open(part) => part,
            };
            let fails = self.condition(&part, state, out).with(Op::Eq, 0);
            out.push(Stmt::If { cond: fails, then: vec![Stmt::Break(next)], otherwise: vec![] });
            state.facts.learn_test(&part, true);
        }
        true
    }

    /// Reads once, before a chain, what several of its rules look at.
    fn read_ahead(&mut self, rules: &[Open], state: &mut State, out: &mut Vec<Stmt>) {
        let mut seen: Vec<(Read, usize)> = Vec::new();
        for (_, cond) in rules {
            each_read(cond, &mut |read| match seen.iter_mut().find(|(r, _)| r == read) {
                Some((_, times)) => *times += 1,
                None => seen.push((*read, 1)),
            });
        }
        for (read, times) in seen {
            if times > 1 {
                self.site(state, out).read(&read);
            }
        }
    }

    /// A condition as a word, 0 or 1, without branches.
    pub(super) fn condition(&mut self, cond: &Cond, state: &mut State, out: &mut Vec<Stmt>) -> Expr {
        match cond {
            Cond::True => Expr::Const(1),
            Cond::Has(header) => self.condition(&super::facts::spell_out(*header), state, out),
            Cond::Compare(read, test) => self.site(state, out).test(read, test),
            Cond::Not(inner) => self.condition(inner, state, out).with(Op::Eq, 0),
            Cond::All(parts) => self.joined(parts, Op::And, 1, state, out),
            Cond::Any(parts) => self.joined(parts, Op::Or, 0, state, out),
            Cond::CompareTo(left, order, right) => {
                let mut site = self.site(state, out);
                let (left, right) = (site.read(left).low, site.read(right).low);
                let op = match order {
                    Order::Equal => Op::Eq,
                    Order::Less => Op::Lt,
                    Order::AtMost => Op::Le,
                };
                left.op(op, right)
            }
        }
    }

    fn joined(&mut self, parts: &[Cond], op: Op, start: u64, state: &mut State, out: &mut Vec<Stmt>) -> Expr {
        let mut all = Expr::Const(start);
        for (i, part) in parts.iter().enumerate() {
            let part = self.condition(part, state, out);
            all = if i == 0 { part } else { all.op(op, part) };
        }
        all
    }
}

/// The rules that may hold under the facts, up to the first that surely does.
pub(super) fn still_open(rules: &[Open], facts: &Facts) -> Vec<Open> {
    let mut open = Vec::new();
    for (rule, cond) in rules {
        match facts.simplify(cond) {
            Known::False => {}
            Known::True => {
                open.push((*rule, Cond::True));
                break;
            }
            Known::Open(cond) => open.push((*rule, cond)),
        }
    }
    open
}

/// The test that a tree makes next, for its first open rule: the first of a whole field, since prefixes and ranges divide what
/// these still tell apart.
fn next_test(cond: &Cond) -> Option<Atom> {
    let parts = if let Cond::All(parts) = cond { parts.as_slice() } else { std::slice::from_ref(cond) };
    let mut atoms = parts.iter().filter_map(first_atom);
    let of_packet = |read: &Read| matches!(read.place.space, Space::Field(field) if !field.is_metadata());
    let divides = |atom: &Atom| match atom.test {
        Match::Masked { mask, .. } => {
            of_packet(&atom.read) && atom.read.place.width > 16 && mask != ones(atom.read.place.width)
        }
        Match::Range { .. } | Match::In(_) => true,
    };
    atoms.clone().find(|atom| !divides(atom)).or_else(|| atoms.next())
}

/// How many ends the tree would have, if not more than `limit`, and the tests on its longest path.
pub(super) fn ends(rules: &[Open], facts: &Facts, limit: usize) -> Option<(usize, u32)> {
    if limit == 0 {
        return None;
    }
    let rules = still_open(rules, facts);
    let Some(atom) = rules.first().and_then(|(_, cond)| next_test(cond)) else { return Some((1, 0)) };
    let (mut with, mut without) = (facts.clone(), facts.clone());
    with.learn(&atom, true);
    without.learn(&atom, false);
    let (first, left) = ends(&rules, &with, limit - 1)?;
    let (second, right) = ends(&rules, &without, limit.checked_sub(first)?)?;
    (first + second <= limit).then_some((first + second, 1 + left.max(right)))
}

/// Tests that a condition makes.
fn tests(cond: &Cond) -> u32 {
    let mut tests = 0;
    each_read(cond, &mut |_| tests += 1);
    tests
}

pub(super) fn each_read(cond: &Cond, visit: &mut impl FnMut(&Read)) {
    match cond {
        Cond::True => {}
        Cond::Has(header) => each_read(&super::facts::spell_out(*header), visit),
        Cond::Compare(read, _) => visit(read),
        Cond::CompareTo(left, _, right) => [left, right].into_iter().for_each(visit),
        Cond::Not(inner) => each_read(inner, visit),
        Cond::All(parts) | Cond::Any(parts) => parts.iter().for_each(|part| each_read(part, visit)),
    }
}

/// The condition with `in_port` as actions see it: nothing overrides it for this look-up.
pub(super) fn as_actions_see_port(cond: &Cond) -> Cond {
    let seen = |read: &Read| match read.place.space {
        Space::Field(Field::InPort | Field::InPortNumber) => Read { view: View::Action, ..*read },
        _ => *read,
    };
    match cond {
        Cond::Compare(read, test) => Cond::Compare(seen(read), test.clone()),
        Cond::CompareTo(left, order, right) => Cond::CompareTo(seen(left), *order, seen(right)),
        Cond::Not(inner) => Cond::Not(Box::new(as_actions_see_port(inner))),
        Cond::All(parts) => Cond::All(parts.iter().map(as_actions_see_port).collect()),
        Cond::Any(parts) => Cond::Any(parts.iter().map(as_actions_see_port).collect()),
        other => other.clone(),
    }
}
