//! Tables with many rules: their look-up is data, and only what differs between rules' actions is code.
//!
//! Tests that all rules share become code before the look-up. What is left of each rule is spelled out as entries, each a
//! mask and a value over a key of words; a rule that would need too many keeps the whole table a chain. Rules with the same
//! actions are one case of the code behind the look-up.

use std::collections::BTreeSet;

use pipec_abi::table::{self, Entry, Kind, MAX_WORDS, prefixes};

use super::alike::Alike;
use super::code::{Expr, Op, Rows, Stmt, Value};
use super::facts::{Facts, Known, ones, spell_out};
use super::lower::{Ask, Lower, State};
use super::matching::Open;
use super::report::Classifier;
use crate::hir::{Cond, Match, Read};

/// Rules from which on a look-up is data.
const MIN_RULES: usize = 8;
/// Entries that one rule may become.
const MAX_ENTRIES: usize = 1024;
/// Masks of a tuple space that cost less than bit vectors.
const FEW_MASKS: usize = 6;
/// Entries of bit vectors at the most: beyond, building them and keeping them in caches costs more than probes do.
const MAX_VECTOR: usize = 8192;
/// Cases of code behind a look-up.
const MAX_CASES: usize = 4096;

/// A conjunction of tests that are all masks.
type Masks = Vec<(Read, u128, u128)>;

/// Rules by number, each as alternatives of masks.
type Spelled = Vec<(usize, Vec<Masks>)>;

/// Where a read lies in the key: first bit of its lowest word, and its width.
struct Slot {
    read: Read,
    word: usize,
    shift: u32,
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
        if rules.len() < MIN_RULES {
            return Err(format!("it has {} rules, and a look-up pays from {MIN_RULES} on", rules.len()));
        }
        let mut state = state.clone();
        let (guard, facts, spelled) = self.spelled(rules, &state)?;
        let slots = layout(&spelled).ok_or_else(|| format!("its key would have more than {MAX_WORDS} words"))?;
        let alike = self.alike_of(&state, self.ends_by_verdict(&state));
        if alike.cases.len() > MAX_CASES {
            return Err(format!("its rules do more than {MAX_CASES} different things"));
        }
        let mut rejected = rejected.to_vec();
        rejected.extend(why_not(&spelled, &slots));
        let lookup = Classifier::Lookup { table: self.tables.len() as u16, guard: guard.len() as u32 };
        self.decide(state.table, open, rejected, lookup);
        // What all rules test, as code; a packet that fails it misses.
        let always = always(rules, &state.facts).unwrap_or(self.rules_of(&state).len());
        for (read, value, mask) in guard {
            let test = Match::Masked { value, mask };
            let holds = self.site(&mut state, out).test(&read, &test);
            let mut otherwise = Vec::new();
            let mut without = state.clone();
            let atom = super::facts::Atom { read, test };
            without.facts.learn(&atom, false);
            self.take(always, without, &mut otherwise);
            out.push(Stmt::If { cond: holds.with(Op::Eq, 0), then: otherwise, otherwise: vec![] });
        }
        // Where they hold, an earlier rule may always hold.
        let miss = self::always(rules, &facts).unwrap_or(always);
        state.facts = facts;
        self.emit_lookup(&spelled, &slots, alike, miss, state, out);
        Ok(())
    }

    /// The tests that all rules share but one behind them that always holds, what is known where they hold, and what is left
    /// of the rules as masks, without the one that always holds.
    fn spelled(&self, rules: &[Open], state: &State) -> Result<(Masks, Facts, Spelled), String> {
        let guard = shared_tests(rules, &state.facts);
        let mut facts = state.facts.clone();
        for (read, value, mask) in &guard {
            let atom = super::facts::Atom { read: *read, test: Match::Masked { value: *value, mask: *mask } };
            facts.learn(&atom, true);
        }
        let spelled =
            spell_rules(rules, &facts).ok_or_else(|| format!("a rule would become more than {MAX_ENTRIES} entries"))?;
        Ok((guard, facts, spelled))
    }

    fn emit_lookup(
        &mut self,
        spelled: &[(usize, Vec<Masks>)],
        slots: &[Slot],
        alike: &'p Alike,
        miss: usize,
        mut state: State,
        out: &mut Vec<Stmt>,
    ) {
        let width = slots.iter().map(|s| s.word + words(&s.read)).max().unwrap_or(1);
        let mut entries = Vec::new();
        for (rule, masks) in spelled {
            let value = (alike.case_of[*rule] as u64) << 32 | *rule as u64;
            entries.extend(masks.iter().map(|masks| entry(masks, slots, width, value)));
        }
        let kind = choose(&entries, slots);
        let table = self.tables.len() as u16;
        self.tables.push(table::encode(kind, width, &entries));
        let mut key = vec![Expr::Const(0); width];
        for slot in slots {
            let wide = self.site(&mut state, out).read(&slot.read);
            let low = wide.low.with(Op::Shl, u64::from(slot.shift));
            key[slot.word] = std::mem::replace(&mut key[slot.word], Expr::Const(0)).op(Op::Or, low);
            if words(&slot.read) == 2 {
                key[slot.word + 1] = wide.high;
            }
        }
        let used = spelled.iter().map(|(rule, _)| alike.case_of[*rule]).collect::<BTreeSet<usize>>();
        self.look_up(Ask { table, open: None }, key, state, out, move |lower, state, found, _, out| {
            lower.found(alike, &used, miss, found, state, out);
        });
    }

    /// Goes on with what was found.
    fn found(
        &mut self,
        alike: &'p Alike,
        used: &BTreeSet<usize>,
        miss: usize,
        found: Value,
        mut state: State,
        out: &mut Vec<Stmt>,
    ) {
        let base = self.counters_of(&state);
        let rows = (alike.rows.stride > 0).then(|| self.rows_of(&alike.rows));
        state.taken.clear();
        // What misses may do the same as what is found.
        let same = alike.case_of.get(miss).filter(|case| used.len() == 1 && used.contains(case));
        if let Some(case) = same {
            // Its number where nothing was found, else that of the rule.
            let (low, rule) = (self.fresh.value(), self.fresh.value());
            out.push(Stmt::Let(low, Expr::Value(found).with(Op::And, 0xffff_ffff)));
            let is_rule = Expr::Value(low).with(Op::Lt, alike.case_of.len() as u64);
            let behind = Expr::Value(low).with(Op::Sub, miss as u64).op(Op::Mul, is_rule).with(Op::Add, miss as u64);
            out.push(Stmt::Let(rule, behind));
            out.push(Stmt::CountAt { base, place: rule });
            return self.take_case(&alike.cases[*case], rows.map(|rows| (rows, rule)), state, out);
        }
        let mut arms = Vec::new();
        for (number, case) in alike.cases.iter().enumerate() {
            let mut arm = Vec::new();
            if used.contains(&number) {
                arm.push(Stmt::CountAt { base, place: found });
                self.take_case(case, rows.map(|rows| (rows, found)), state.clone(), &mut arm);
            }
            arms.push(arm);
        }
        let mut missed = vec![Stmt::Count(base + miss as u32)];
        self.take_uncounted(miss, state, &mut missed);
        arms.push(missed);
        out.push(Stmt::Switch { value: found, cases: arms });
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

/// The rule that always holds, which other rules stand before.
fn always(rules: &[Open], facts: &Facts) -> Option<usize> {
    rules.iter().find(|(_, cond)| matches!(facts.simplify(cond), Known::True)).map(|(rule, _)| *rule)
}

/// Words of a key that a read takes.
fn words(read: &Read) -> usize {
    if read.place.width > 64 { 2 } else { 1 }
}

/// Tests that every rule makes as they are.
fn shared_tests(rules: &[Open], facts: &Facts) -> Masks {
    let mut shared: Option<Masks> = None;
    for (_, cond) in rules {
        let cond = match facts.simplify(cond) {
            Known::Open(cond) => cond,
            Known::True => break,
            Known::False => continue,
        };
        let own = conjuncts(&cond);
        shared = Some(match shared {
            None => own,
            Some(shared) => shared.into_iter().filter(|test| own.contains(test)).collect(),
        });
        if shared.as_ref().is_some_and(Vec::is_empty) {
            break;
        }
    }
    shared.unwrap_or_default()
}

/// The tests by masks that a condition surely makes.
fn conjuncts(cond: &Cond) -> Masks {
    match cond {
        Cond::Compare(read, Match::Masked { value, mask }) => vec![(*read, *value, *mask)],
        Cond::All(parts) => parts.iter().flat_map(conjuncts).collect(),
        _ => Vec::new(),
    }
}

/// The rules before one that always holds as alternatives of masks, under the facts; nothing if one has too many.
fn spell_rules(rules: &[Open], facts: &Facts) -> Option<Spelled> {
    let mut spelled = Vec::with_capacity(rules.len());
    for (rule, cond) in rules {
        match facts.simplify(cond) {
            Known::False => {}
            Known::True => break,
            Known::Open(cond) => {
                let alternatives = alternatives(&cond, true)?;
                spelled.push((*rule, alternatives));
            }
        }
    }
    Some(spelled)
}

/// A condition, or its opposite, as alternatives of conjunctions.
fn alternatives(cond: &Cond, holds: bool) -> Option<Vec<Masks>> {
    match cond {
        Cond::True => Some(if holds { vec![Vec::new()] } else { Vec::new() }),
        Cond::Has(header) => alternatives(&spell_out(*header), holds),
        Cond::Not(inner) => alternatives(inner, !holds),
        Cond::Compare(read, test) => compare(read, test, holds),
        Cond::CompareTo(..) => None,
        Cond::All(parts) if holds => all_of(parts, holds),
        Cond::Any(parts) if !holds => all_of(parts, holds),
        Cond::All(parts) | Cond::Any(parts) => {
            let mut any = Vec::new();
            for part in parts {
                any.extend(alternatives(part, holds)?);
            }
            (any.len() <= MAX_ENTRIES).then_some(any)
        }
    }
}

fn all_of(parts: &[Cond], holds: bool) -> Option<Vec<Masks>> {
    let mut all: Vec<Masks> = vec![Vec::new()];
    for part in parts {
        let part = alternatives(part, holds)?;
        if all.len() * part.len() > MAX_ENTRIES {
            return None;
        }
        let both = |a: &Masks| part.iter().filter_map(|b| merge(a, b)).collect::<Vec<_>>();
        all = all.iter().flat_map(both).collect();
    }
    Some(all)
}

/// Both conjunctions, or nothing if they exclude each other.
fn merge(a: &Masks, b: &Masks) -> Option<Masks> {
    let mut all = a.clone();
    for (read, value, mask) in b {
        match all.iter_mut().find(|(r, ..)| r == read) {
            Some((_, v, m)) if (*v ^ value) & *m & mask != 0 => return None,
            Some((_, v, m)) => {
                *v |= value;
                *m |= mask;
            }
            None => all.push((*read, *value, *mask)),
        }
    }
    Some(all)
}

/// One test, or its opposite, as masks.
fn compare(read: &Read, test: &Match, holds: bool) -> Option<Vec<Masks>> {
    let width = read.place.width;
    let one = |(value, mask): (u128, u128)| vec![(*read, value, mask)];
    let ranges = |ranges: Vec<(u128, u128)>| -> Option<Vec<Masks>> {
        let masks: Vec<_> = ranges.into_iter().flat_map(|(low, high)| prefixes(low, high, width)).map(one).collect();
        (masks.len() <= MAX_ENTRIES).then_some(masks)
    };
    match (test, holds) {
        (Match::Masked { value, mask }, true) => Some(vec![one((*value, *mask))]),
        (Match::Masked { value, mask }, false) => {
            // Some bit differs; the bits above it do not, so that alternatives exclude each other.
            let mut masks = Vec::new();
            let mut above = 0u128;
            for bit in (0..width).rev().map(|bit| 1u128 << bit).filter(|bit| mask & bit != 0) {
                masks.push(one(((value & above) | (!value & bit), above | bit)));
                above |= bit;
            }
            Some(masks)
        }
        (Match::Range { low, high }, true) => ranges(vec![(*low, *high)]),
        (Match::In(list), true) => ranges(list.clone()),
        (Match::Range { low, high }, false) => ranges(gaps(&[(*low, *high)], ones(width))),
        (Match::In(list), false) => ranges(gaps(list, ones(width))),
    }
}

/// What lies between sorted ranges.
fn gaps(ranges: &[(u128, u128)], most: u128) -> Vec<(u128, u128)> {
    let (mut gaps, mut from) = (Vec::new(), Some(0u128));
    for (low, high) in ranges {
        if let Some(start) = from.filter(|start| start < low) {
            gaps.push((start, low - 1));
        }
        from = high.checked_add(1).filter(|next| *next <= most);
    }
    gaps.extend(from.map(|start| (start, most)));
    gaps
}

/// Where each read lies in the key; nothing if there are too many.
fn layout(spelled: &[(usize, Vec<Masks>)]) -> Option<Vec<Slot>> {
    let mut reads: Vec<Read> = Vec::new();
    for (read, ..) in spelled.iter().flat_map(|(_, masks)| masks).flatten() {
        if !reads.contains(read) {
            reads.push(*read);
        }
    }
    reads.sort_by_key(|read| std::cmp::Reverse(read.place.width));
    let mut free: Vec<u32> = Vec::new(); // bits taken of each word
    let mut slots = Vec::new();
    for read in reads {
        let width = u32::from(read.place.width);
        let fits = free.iter().position(|used| used + width <= 64);
        let word = fits.unwrap_or_else(|| {
            free.extend(std::iter::repeat_n(0, words(&read)));
            free.len() - words(&read)
        });
        slots.push(Slot { read, word, shift: free[word] });
        free[word] += width.min(64);
        if width > 64 {
            free[word + 1] = 64;
        }
    }
    (free.len() <= MAX_WORDS).then_some(slots)
}

fn entry(masks: &Masks, slots: &[Slot], width: usize, value: u64) -> Entry {
    let mut entry = Entry { mask: vec![0; width], key: vec![0; width], ranges: vec![], value };
    for (read, value, mask) in masks {
        for slot in slots.iter().filter(|slot| slot.read == *read) {
            entry.mask[slot.word] |= (*mask as u64) << slot.shift;
            entry.key[slot.word] |= (*value as u64) << slot.shift;
            if words(read) == 2 {
                entry.mask[slot.word + 1] |= (mask >> 64) as u64;
                entry.key[slot.word + 1] |= (value >> 64) as u64;
            }
        }
    }
    entry
}

/// Prefixes of one field of 32 bits with longer ones first are a trie. Few masks are few probes of a tuple space; with many,
/// up to some thousand entries are bit vectors.
fn choose(entries: &[Entry], slots: &[Slot]) -> Kind {
    let masks: BTreeSet<&[u64]> = entries.iter().map(|e| e.mask.as_slice()).collect();
    if masks.len() == 1 {
        return Kind::Hash;
    }
    let many = if masks.len() > FEW_MASKS && entries.len() <= MAX_VECTOR { Kind::BitVector } else { Kind::TupleSpace };
    let [slot] = slots else { return many };
    let is_prefix = |mask: u64| mask <= 0xffff_ffff && (mask as u32).leading_ones() == (mask as u32).count_ones();
    let mut masks: Vec<u64> = entries.iter().map(|e| e.mask[0]).collect();
    let all_prefixes = slot.read.place.width == 32 && masks.iter().all(|m| is_prefix(*m));
    let longer_first = masks.is_sorted_by_key(|m| std::cmp::Reverse(m.count_ones()));
    masks.dedup();
    if all_prefixes && longer_first && masks.len() > 1 { Kind::Lpm } else { many }
}

/// The structures that [`choose`] does not take, with what speaks against each.
fn why_not(spelled: &[(usize, Vec<Masks>)], slots: &[Slot]) -> Vec<(&'static str, String)> {
    let width = slots.iter().map(|s| s.word + words(&s.read)).max().unwrap_or(1);
    let all = spelled.iter().flat_map(|(_, masks)| masks);
    let entries: Vec<Entry> = all.map(|masks| entry(masks, slots, width, 0)).collect();
    let masks = entries.iter().map(|e| e.mask.as_slice()).collect::<BTreeSet<_>>().len();
    let kind = choose(&entries, slots);
    let mut rejected = Vec::new();
    if kind != Kind::Lpm {
        let why = match slots {
            [slot] if slot.read.place.width != 32 => format!("its field has {} bits, not 32", slot.read.place.width),
            [_] if masks == 1 => "all entries have the same mask, for which a hash table is enough".to_string(),
            [_] => "its entries are not prefixes with longer ones first".to_string(),
            _ => format!("its rules test {} fields, not one", slots.len()),
        };
        rejected.push(("lpm", why));
    }
    match kind {
        Kind::TupleSpace if masks <= FEW_MASKS => {
            rejected.push(("bit-vector", format!("{masks} distinct masks are few probes of a tuple space")));
        }
        Kind::TupleSpace => {
            rejected.push(("bit-vector", format!("{} entries are more than {MAX_VECTOR}", entries.len())));
        }
        Kind::BitVector => {
            rejected.push(("tuple-space", format!("{masks} distinct masks are more than {FEW_MASKS} probes")));
        }
        Kind::Lpm => {
            let why = "prefixes of one field are a trie, one to three loads whatever their lengths";
            rejected.push(("tuple-space", why.to_string()));
        }
        _ => {} // not chosen: entries of open tables are not rules
    }
    rejected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_covered_exactly() {
        for (low, high) in [(0u128, 255), (0, 0), (255, 255), (1, 254), (7, 9), (128, 200)] {
            let prefixes = prefixes(low, high, 8);
            for value in 0..256u128 {
                let hits = prefixes.iter().filter(|(v, m)| value & m == *v).count();
                assert_eq!(hits, usize::from((low..=high).contains(&value)), "{value} in {low}..={high}");
            }
        }
        assert_eq!(prefixes(0, u128::MAX, 128), [(0, 0)]);
        assert_eq!(prefixes(0, 65_535, 16), [(0, 0)]);
    }

    #[test]
    fn gaps_are_what_is_left() {
        assert_eq!(gaps(&[(0, 3), (5, 255)], 255), [(4, 4)]);
        assert_eq!(gaps(&[(1, 1)], 3), [(0, 0), (2, 3)]);
        assert_eq!(gaps(&[(0, 3)], 3), []);
    }
}
