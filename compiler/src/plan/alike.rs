//! Rules that do the same but for constants: they are one piece of code, and the constants are rows of data.
//!
//! In: the rules of a table. Out: the different things they do, and for each rule which of them and with which constants.
//! Where a path ends with its list, also what becomes of the packet is a constant: a port, or that it is dropped. Never: facts
//! about packets; whether the result is used is decided where code is made.

use std::collections::HashMap;

use pipec_abi::{DropReason, Verdict};

use super::code::Rows;
use crate::hir::{Action, Rule, Space, Value};

/// Lists that lead to other tables stay apart while there are so few: what they set is known there then.
const FEW: usize = 16;

/// What several rules do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Case {
    /// Its actions; `Value::Param(k)` is the `k`-th of `params`.
    pub actions: Vec<Action>,
    /// Parameters: words of each, 1 or 2, the high one first.
    pub params: Vec<u8>,
    /// Behind its actions the packet's end is the last word of its row, as a verdict.
    pub ends: bool,
    /// Its rules end with a miss in another table.
    pub missed: bool,
}

/// The rules of one table.
#[derive(Clone, Debug, Default)]
pub(super) struct Alike {
    /// What they do.
    pub cases: Vec<Case>,
    /// Which of them each rule does; behind the rules, if the ends of packets are constants, what a miss does.
    pub case_of: Vec<usize>,
    /// The constants of each.
    pub rows: Rows,
}

/// A list without its constants, and these.
struct Skeleton {
    actions: Vec<Action>,
    constants: Vec<(u128, u8)>,
    end: Option<Verdict>,
    missed: bool,
}

/// Compares rules. `missed`: whether one ends with a miss in another table. `ends`: a packet's list ends with the packet,
/// which has no output yet.
pub(super) fn alike(rules: &[Rule], missed: impl Fn(usize) -> bool, ends: bool) -> Alike {
    let of = |(number, rule): (usize, &Rule)| skeleton(&rule.actions, missed(number), ends);
    let mut skeletons: Vec<Skeleton> = rules.iter().enumerate().map(of).collect();
    if ends {
        skeletons.push(Skeleton {
            actions: vec![],
            constants: vec![],
            end: Some(Verdict::drop(DropReason::NoMatch)),
            missed: false,
        });
    }
    let mut groups: HashMap<String, usize> = HashMap::new();
    let mut members: Vec<Vec<usize>> = Vec::new();
    for (rule, skeleton) in skeletons.iter().enumerate() {
        let missed = skeleton.missed && skeleton.end.is_none();
        let name = format!("{:?} {} {missed}", skeleton.actions, skeleton.end.is_some());
        let group = *groups.entry(name).or_insert_with(|| {
            members.push(Vec::new());
            members.len() - 1
        });
        members[group].push(rule);
    }
    let mut alike = Alike { case_of: vec![0; skeletons.len()], ..Alike::default() };
    let mut words: Vec<Vec<u64>> = vec![Vec::new(); skeletons.len()];
    for rules in &members {
        group(&skeletons, rules, &mut alike, &mut words);
    }
    let stride = words.iter().map(Vec::len).max().unwrap_or(0);
    words.iter_mut().for_each(|row| row.resize(stride, 0));
    alike.rows = Rows { stride, words: words.concat() };
    alike
}

/// Rules with one skeleton: a case, or one for each of their few sets of constants if other tables may look at these.
fn group(skeletons: &[Skeleton], rules: &[usize], alike: &mut Alike, words: &mut [Vec<u64>]) {
    let first = &skeletons[rules[0]];
    let mut distinct: Vec<usize> = Vec::new();
    for &rule in rules {
        let same = |other: &usize| skeletons[*other].constants == skeletons[rule].constants;
        if distinct.len() <= FEW && !distinct.iter().any(same) {
            distinct.push(rule);
        }
    }
    if leads_on(&first.actions) && distinct.len() <= FEW {
        for &one in &distinct {
            let same: Vec<usize> =
                rules.iter().copied().filter(|&rule| skeletons[rule].constants == skeletons[one].constants).collect();
            case(skeletons, &same, alike, words);
        }
    } else {
        case(skeletons, rules, alike, words);
    }
}

/// Rules that become one case: constants that all share stay in the code.
fn case(skeletons: &[Skeleton], rules: &[usize], alike: &mut Alike, words: &mut [Vec<u64>]) {
    let first = &skeletons[rules[0]];
    let differs = |k: usize| rules.iter().any(|rule| skeletons[*rule].constants[k].0 != first.constants[k].0);
    let varying: Vec<usize> = (0..first.constants.len()).filter(|k| differs(*k)).collect();
    let fill = |k: u16| match varying.iter().position(|v| *v == usize::from(k)) {
        Some(at) => Value::Param(at as u16),
        None => Value::Const(first.constants[usize::from(k)].0),
    };
    let actions = first.actions.iter().map(|action| with(action, &fill)).collect();
    let params: Vec<u8> = varying.iter().map(|k| if first.constants[*k].1 > 64 { 2 } else { 1 }).collect();
    for &rule in rules {
        alike.case_of[rule] = alike.cases.len();
        for &k in &varying {
            let (value, width) = skeletons[rule].constants[k];
            if width > 64 {
                words[rule].push((value >> 64) as u64);
            }
            words[rule].push(value as u64);
        }
        words[rule].extend(skeletons[rule].end.map(|verdict| u64::from(verdict.0)));
    }
    alike.cases.push(Case { actions, params, ends: first.end.is_some(), missed: first.missed });
}

/// The action with its parameters replaced.
fn with(action: &Action, fill: &impl Fn(u16) -> Value) -> Action {
    match action {
        Action::Set { place, value: Value::Param(k) } => Action::Set { place: *place, value: fill(*k) },
        other => other.clone(),
    }
}

/// A list without its constants. Of constants, those that are written are taken out.
fn skeleton(actions: &[Action], missed: bool, ends: bool) -> Skeleton {
    let mut skeleton = Skeleton { actions: Vec::new(), constants: Vec::new(), end: None, missed };
    let mut rest = actions;
    if ends {
        let (before, end) = match actions {
            [before @ .., Action::Output(port)] => (before, Some(Verdict::send(port.0))),
            [before @ .., Action::Drop] => (before, Some(Verdict::drop(DropReason::Policy))),
            before if missed => (before, Some(Verdict::drop(DropReason::NoMatch))),
            before => (before, Some(Verdict::drop(DropReason::Policy))),
        };
        if before.iter().all(goes_on) {
            (rest, skeleton.end) = (before, end);
        }
    }
    for action in rest {
        skeleton.actions.push(match action {
            Action::Set { place, value: Value::Const(value) } if place.space != Space::Meta || ends => {
                skeleton.constants.push((*value, place.width));
                Action::Set { place: *place, value: Value::Param(skeleton.constants.len() as u16 - 1) }
            }
            other => other.clone(),
        });
    }
    skeleton
}

/// Whether a list goes on to other tables.
pub(super) fn leads_on(actions: &[Action]) -> bool {
    actions.iter().any(|action| matches!(action, Action::Goto(_) | Action::Call { .. } | Action::Clone(_)))
}

/// Whether an action sends nothing, and what follows it is done.
fn goes_on(action: &Action) -> bool {
    matches!(action, Action::Set { .. } | Action::DecTtl | Action::Count(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hir::Program;

    fn program(rules: &str) -> Program {
        let mut sources = crate::source::Sources::default();
        let text = format!("pipeline p {{ port a, b, c; table t {{ {rules} else => drop; }} }}");
        let file = sources.add("p.pipe", text);
        crate::front_pipe(&mut sources, file).0.expect("a program")
    }

    #[test]
    fn rules_that_differ_in_constants_are_one_case() {
        let program = program(
            "ipv4.dst == 10.0.0.1 => eth.dst = 02:00:00:00:00:01, eth.src = 02:00:00:00:00:09, output(b);
             ipv4.dst == 10.0.0.2 => eth.dst = 02:00:00:00:00:02, eth.src = 02:00:00:00:00:09, output(c);",
        );
        let rules = &program.tables[0].rules;
        let alike = super::alike(rules, |_| false, true);
        assert_eq!(alike.cases.len(), 2, "routes, and what is dropped");
        assert_eq!((alike.cases[0].params.len(), alike.cases[0].actions.len()), (1, 2), "the source is the same");
        assert_eq!(alike.rows.stride, 2);
        let drop = u64::from(Verdict::drop(DropReason::Policy).0);
        let row = |rule: usize| &alike.rows.words[rule * 2..rule * 2 + 2];
        assert_eq!(row(0), [0x0200_0000_0001, 1]);
        assert_eq!(row(1), [0x0200_0000_0002, 2]);
        assert_eq!(row(2)[0], drop);
        assert_eq!(alike.case_of, [0, 0, 1, 1]);
        assert_eq!(
            super::alike(rules, |_| false, false).cases.len(),
            3,
            "outputs are part of the code where more may follow"
        );
    }

    #[test]
    fn all_outputs_and_drops_are_one_case() {
        let program = program("ipv4.dst == 10.0.0.1 => output(b); ipv4.dst == 10.0.0.2 => drop; arp => output(c);");
        let alike = super::alike(&program.tables[0].rules, |_| false, true);
        assert_eq!((alike.cases.len(), alike.rows.stride), (1, 1));
    }
}
