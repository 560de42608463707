//! Tables that lead to each other as one: the product of their rules.
//!
//! A rule that only writes and then goes on to another table stands for as many rules as that table has: each with both
//! conditions and both lists. Spelled out like this, two look-ups and what is carried between them become one, in which a
//! program written as several tables costs what the same in one table does. Which tables are put together is decided by what
//! [`choose`](pipec_abi::table::choose) predicts for them, apart and together; where a product would be long, or dearer, they
//! stay apart. (The other direction, one table taken apart, is [`split`](super::split)'s.)
//!
//! In: a program none of whose tables can reach itself. Out: the same with other rules, and for each of these which rules of
//! the program it counts for. Never: a change of what packets do, or of what they are counted for.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use pipec_abi::table::Costs;

use super::analysis::callees_first;
use super::entries::{parts, wholes};
use super::facts::{Facts, Known};
use super::lookup::MIN_RULES;
use super::matching::{Open, as_actions_see_port, each_read};
use super::predict;
use super::values::is_tag;
use crate::check::cube::{Cube, cubes};
use crate::field::Field;
use crate::hir::{Action, Cond, Place, Program, Read, Rule, Space, Table, TableId, Value};

/// Rules of a product at the most.
const MAX_RULES: usize = 8192;
/// What a product has to cost of what its tables cost apart, at the most: predictions are not exact.
const GAIN: f32 = 0.95;
/// Tables that are tried one by one, where all together are too many.
const MAX_ALONE: usize = 16;

/// A program with products in place of tables.
pub(super) struct Product<'p> {
    /// The program.
    pub program: Cow<'p, Program>,
    /// What was put together.
    pub merged: Vec<Merged>,
    counted: HashMap<TableId, Vec<Counted>>,
}

/// Tables that are one.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The first of them.
    pub table: TableId,
    /// The others.
    pub with: Vec<TableId>,
    /// Rules of all together.
    pub rules: usize,
    /// Predicted cycles a packet.
    pub cycles: f32,
    /// The same, had they stayed apart.
    pub apart: f32,
}

/// What a rule of a product counts for.
#[derive(Clone, Debug)]
struct Counted {
    /// Rules of the program, each with its table.
    rules: Vec<(u32, u32)>,
    /// The last of them is a miss.
    missed: bool,
}

impl<'p> Product<'p> {
    /// Puts tables together where that is cheaper.
    pub fn of(program: &'p Program, costs: &Costs) -> Product<'p> {
        let mut product = Product::none(program);
        // What an earlier product has taken in no packet comes to any more.
        for table in callees_first(program, std::iter::once(program.entry)) {
            product.put_together(table, costs);
        }
        product
    }

    /// The program as it is.
    pub fn none(program: &'p Program) -> Product<'p> {
        Product { program: Cow::Borrowed(program), merged: vec![], counted: HashMap::new() }
    }

    /// The rules of the program that one of a table stands for; behind its last: a miss.
    pub fn rules(&self, table: TableId, rule: usize) -> Vec<(u32, u32)> {
        self.counted(table, rule)
            .map_or_else(|| vec![(u32::from(table.0), rule as u32)], |counted| counted.rules.clone())
    }

    /// Whether a rule ends with a miss in another table.
    pub fn missed(&self, table: TableId, rule: usize) -> bool {
        self.counted(table, rule).is_some_and(|counted| counted.missed)
    }

    /// What a rule of a product counts for; nothing of other tables.
    fn counted(&self, table: TableId, rule: usize) -> Option<&Counted> {
        self.counted.get(&table)?.get(rule)
    }

    /// Puts a table together with those that its rules go on to: all of them, or each that is worth it.
    fn put_together(&mut self, table: TableId, costs: &Costs) {
        let t = self.program.table(table);
        if t.keyed.is_some() {
            return;
        }
        let with = t.rules.iter().filter_map(goes_to).filter(|to| self.program.table(*to).keyed.is_none());
        let with: Vec<TableId> = BTreeSet::from_iter(with).into_iter().collect();
        if with.is_empty() || self.try_with(table, &with, costs) || with.len() == 1 || with.len() > MAX_ALONE {
            return;
        }
        for one in with {
            self.try_with(table, &[one], costs);
        }
    }

    /// Puts tables together, if that is cheaper.
    fn try_with(&mut self, table: TableId, with: &[TableId], costs: &Costs) -> bool {
        let Some((rules, counted)) = self.expand(table, with) else { return false };
        // With fewer rules a product is a tree, as its tables are.
        if rules.len() < MIN_RULES {
            return false;
        }
        let own = &self.program.table(table).rules;
        let cost = |rules: &[Rule], behind| {
            let same = |a: usize, b: usize| rules[a].actions == rules[b].actions;
            predict::cycles(&numbered(rules), same, &Facts::default(), behind, costs)
        };
        let mut apart = cost(own, false);
        for to in with {
            let share = own.iter().filter(|rule| goes_to(rule) == Some(*to)).count() as f32 / own.len() as f32;
            apart += share * cost(&self.program.table(*to).rules, true);
        }
        let cycles = cost(&rules, false);
        if cycles > GAIN * apart {
            return false;
        }
        let mut all = with.to_vec();
        for inner in self.merged.iter().filter(|merged| with.contains(&merged.table)) {
            all.extend(&inner.with);
        }
        self.merged.retain(|merged| merged.table != table);
        self.merged.push(Merged { table, with: all, rules: rules.len(), cycles, apart });
        self.program.to_mut().tables[usize::from(table.0)].rules = rules;
        self.counted.insert(table, counted);
        true
    }

    /// The rules of a table with those of others that they go on to; nothing if they are too many, or none can be put together.
    fn expand(&self, table: TableId, with: &[TableId]) -> Option<(Vec<Rule>, Vec<Counted>)> {
        let own = &self.program.table(table).rules;
        let others: BTreeMap<TableId, Indexed<'_>> =
            with.iter().map(|to| (*to, Indexed::of(self.program.table(*to)))).collect();
        let sum = own.len() + others.values().map(|other| other.rules.len()).sum::<usize>();
        // A long product takes more of the caches than it saves.
        let limit = MAX_RULES.min(4 * sum + 256);
        let (mut rules, mut counted) = (Vec::new(), Vec::new());
        for (number, rule) in own.iter().enumerate() {
            let behind = goes_to(rule).and_then(|to| Some((to, others.get(&to)?, Behind::of(rule)?)));
            let counts = Counted { rules: self.rules(table, number), missed: self.missed(table, number) };
            let taken = match behind {
                Some((to, other, behind)) => self.product(rule, &counts, to, other, &behind),
                None => None,
            };
            match taken {
                Some(taken) => taken.into_iter().for_each(|(rule, counts)| {
                    rules.push(rule);
                    counted.push(counts);
                }),
                None => {
                    rules.push(rule.clone());
                    counted.push(counts);
                }
            }
            if rules.len() > limit {
                return None;
            }
        }
        // Each that goes on must have become several, or its table would be there twice.
        if rules.iter().any(|rule| goes_to(rule).is_some_and(|to| with.contains(&to))) {
            return None;
        }
        counted.push(Counted { rules: self.rules(table, own.len()), missed: false });
        Some((rules, counted))
    }

    /// One rule with each of the table that it goes on to; nothing if that table reads what the rule writes and is not known.
    fn product(
        &self,
        rule: &Rule,
        counts: &Counted,
        to: TableId,
        other: &Indexed<'_>,
        behind: &Behind,
    ) -> Option<Vec<(Rule, Counted)>> {
        let before = &rule.actions[..rule.actions.len() - 1];
        let mut all = Vec::new();
        let mut add = |cond: Option<Cond>, actions: &[Action], second: usize, missed: bool| {
            let both = [Some(rule.cond.clone()), cond].into_iter().flatten();
            let cond = Cond::All(both.flat_map(parts).collect());
            let actions = unseen_out([before, actions].concat());
            let rules = [counts.rules.clone(), self.rules(to, second)].concat();
            let joint = Rule { priority: rule.priority, cond, actions, text: String::new(), span: rule.span };
            all.push((joint, Counted { rules, missed }));
        };
        let mut left = Left::of(&rule.cond);
        for second in other.candidates(&behind.facts) {
            let next = &other.rules[second];
            let missed = self.missed(to, second);
            match behind.facts.simplify(&as_actions_see_port(&next.cond)) {
                Known::False => {}
                Known::True => {
                    add(None, &next.actions, second, missed);
                    return Some(all);
                }
                Known::Open(cond) if behind.may_ask(&cond) => {
                    left.take(&cond);
                    add(Some(cond), &next.actions, second, missed);
                }
                Known::Open(_) => return None,
            }
        }
        if !left.nothing() {
            add(None, &[], other.rules.len(), true);
        }
        Some(all)
    }
}

/// Packets that no rule has taken so far, while that can be said.
struct Left(Option<Vec<Cube>>);

impl Left {
    /// Pieces at the most.
    const MAX: usize = 64;

    /// Those for which a condition holds.
    fn of(cond: &Cond) -> Left {
        Left(cubes(cond))
    }

    /// A rule takes those for which this holds.
    fn take(&mut self, cond: &Cond) {
        let taken = cubes(cond);
        let without = |left: Vec<Cube>| {
            taken?.iter().try_fold(left, |left, cube| {
                let pieces: Option<Vec<Vec<Cube>>> = left.iter().map(|piece| piece.without(cube)).collect();
                pieces.map(|pieces| pieces.concat()).filter(|pieces| pieces.len() <= Left::MAX)
            })
        };
        self.0 = self.0.take().and_then(without);
    }

    /// There are surely none.
    fn nothing(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }
}

/// The table that a rule goes on to, if that is the last it does and nothing comes back.
fn goes_to(rule: &Rule) -> Option<TableId> {
    match rule.actions.last()? {
        Action::Goto(table) | Action::Call { table, in_port: None } => Some(*table),
        _ => None,
    }
}

/// What is known behind a rule's list, but for its last action.
struct Behind {
    facts: Facts,
    /// What it has written.
    written: Vec<Place>,
}

impl Behind {
    /// Nothing if the rule does more than to write.
    fn of(rule: &Rule) -> Option<Behind> {
        let mut behind = Behind { facts: Facts::default(), written: vec![] };
        behind.facts.learn_all(&rule.cond);
        for action in &rule.actions[..rule.actions.len() - 1] {
            match action {
                Action::Count(_) => {}
                Action::Set { place, value } => match place.space {
                    Space::Meta => {
                        behind.facts.forget_tests(|space| *space == Space::Meta);
                        let known = if let Value::Const(value) = value { Some(*value) } else { None };
                        behind.facts.write_variable(place, known);
                        behind.written.push(*place);
                    }
                    // What kind of packet it is depends on these, and so do other fields.
                    Space::Field(Field::EthType | Field::IpProto) | Space::Header(_) => return None,
                    Space::Field(field) if field.is_metadata() => return None,
                    Space::Field(field) => {
                        let place = Place::field(field);
                        behind.facts.forget_tests(|space| *space == place.space || is_tags(space, &place.space));
                        behind.written.push(place);
                    }
                },
                _ => return None,
            }
        }
        Some(behind)
    }

    /// Whether a condition asks for nothing that was written.
    fn may_ask(&self, cond: &Cond) -> bool {
        let mut may = true;
        each_read(cond, &mut |read| may &= !self.written.iter().any(|place| overlap(place, &read.place)));
        may
    }
}

fn is_tags(a: &Space, b: &Space) -> bool {
    matches!((a, b), (Space::Field(a), Space::Field(b)) if is_tag(*a) && is_tag(*b))
}

/// Whether a write of one place may change another.
fn overlap(a: &Place, b: &Place) -> bool {
    let meet =
        |a: &Place, b: &Place| a.offset < b.offset + u16::from(b.width) && b.offset < a.offset + u16::from(a.width);
    match (a.space, b.space) {
        (Space::Meta, Space::Meta) => meet(a, b),
        (a, b) => a == b || is_tags(&a, &b) || matches!(b, Space::Header(_)) && a != Space::Meta,
    }
}

/// A list without writes of variables that nothing behind them can see.
fn unseen_out(mut actions: Vec<Action>) -> Vec<Action> {
    let plain = |action: &Action| match action {
        Action::Set { value: Value::Const(_), .. }
        | Action::DecTtl
        | Action::Count(_)
        | Action::Output(_)
        | Action::Drop => true,
        Action::Set { value: Value::Read(from), .. } => from.space != Space::Meta,
        _ => false,
    };
    if actions.iter().all(plain) {
        actions.retain(|action| !matches!(action, Action::Set { place, .. } if place.space == Space::Meta));
    }
    actions
}

fn numbered(rules: &[Rule]) -> Vec<Open> {
    rules.iter().enumerate().map(|(i, rule)| (i, rule.cond.clone())).collect()
}

/// A table's rules by the variable that most of them test whole: a register that says which of them are meant.
struct Indexed<'a> {
    rules: &'a [Rule],
    by: Option<(Read, HashMap<u128, Vec<usize>>)>,
    /// Rules that do not test it.
    others: Vec<usize>,
}

impl<'a> Indexed<'a> {
    fn of(table: &'a Table) -> Indexed<'a> {
        let mut times: HashMap<Read, usize> = HashMap::new();
        for rule in &table.rules {
            let mut variable = |read: &Read, _| {
                if read.place.space == Space::Meta {
                    *times.entry(*read).or_default() += 1;
                }
            };
            wholes(&rule.cond, &mut variable);
        }
        let most = times.into_iter().max_by_key(|(read, n)| (*n, std::cmp::Reverse(read.place.offset)));
        let Some((by, _)) = most else {
            return Indexed { rules: &table.rules, by: None, others: (0..table.rules.len()).collect() };
        };
        let (mut index, mut others): (HashMap<u128, Vec<usize>>, _) = (HashMap::new(), Vec::new());
        for (number, rule) in table.rules.iter().enumerate() {
            let mut value = None;
            wholes(&rule.cond, &mut |read, v| {
                if *read == by {
                    value = Some(v);
                }
            });
            match value {
                Some(value) => index.entry(value).or_default().push(number),
                None => others.push(number),
            }
        }
        Indexed { rules: &table.rules, by: Some((by, index)), others }
    }

    /// Rules that may hold, in order.
    fn candidates(&self, facts: &Facts) -> Vec<usize> {
        let known = self.by.as_ref().and_then(|(by, index)| Some((facts.constant(by)?, index)));
        let mut all = match known {
            None => return (0..self.rules.len()).collect(),
            Some((value, index)) => index.get(&value).cloned().unwrap_or_default(),
        };
        all.extend(&self.others);
        all.sort_unstable();
        all
    }
}
