//! Which kinds of packets get to which table, rule and action: a fixed point over the tables, from the entry on.
//!
//! Rules of a table are tried in order, and what certainly matches one does not get to the next. `call` comes back with
//! what the callee lets through; `clone` puts everything back. All sets are upper bounds, so what is empty is certain.

use super::states::{Outcome, States, outcome, roots};
use crate::field::Header;
use crate::hir::{Action, Program, TableId};

/// What is known about a program's packets.
#[derive(Debug)]
pub struct Flow {
    /// For each table, what gets into it.
    pub enters: Vec<States>,
    /// For each table, what comes back from a call of it.
    returns: Vec<States>,
    /// For each table and rule, what its condition can be.
    outcomes: Vec<Vec<Outcome>>,
    /// Some action changes which headers packets have.
    reshapes: bool,
    /// For each declared header, the kinds of packets that can have it.
    pub roots: Vec<States>,
    /// For each declared header, whether IP can lie behind it.
    below_ip: Vec<bool>,
}

/// What gets to a rule.
#[derive(Clone, Copy, Debug)]
pub struct AtRule {
    /// What it is tried for.
    pub tried: States,
    /// What may match it.
    pub holds: States,
}

/// What happens to packets besides going on.
#[derive(Default)]
struct Effects {
    /// Tables that are entered, with what.
    enters: Vec<(TableId, States)>,
    /// What leaves the action list before its end, or ends in a table that was gone to.
    returns: States,
}

impl Flow {
    /// Follows all packets through a program.
    pub fn new(program: &Program) -> Flow {
        let tables = program.tables.len();
        let roots = roots(program);
        let mut flow = Flow {
            enters: vec![States::NONE; tables],
            returns: vec![States::NONE; tables],
            outcomes: program
                .tables
                .iter()
                .map(|table| table.rules.iter().map(|rule| rule_outcome(table, rule, &roots)).collect())
                .collect(),
            reshapes: program.tables.iter().flat_map(|table| &table.rules).any(|rule| reshapes(&rule.actions)),
            below_ip: below_ip(program),
            roots,
        };
        let callers = callers(program);
        let entry = usize::from(program.entry.0);
        flow.enters[entry] = States::fresh();
        let mut queued = vec![false; tables];
        let mut queue = std::collections::VecDeque::from([entry]);
        queued[entry] = true;
        while let Some(table) = queue.pop_front() {
            queued[table] = false;
            let effects = flow.table(program, table);
            let mut again = vec![];
            for (target, states) in effects.enters {
                let target = usize::from(target.0);
                if flow.enters[target] | states != flow.enters[target] {
                    flow.enters[target] |= states;
                    again.push(target);
                }
            }
            if flow.returns[table] | effects.returns != flow.returns[table] {
                flow.returns[table] |= effects.returns;
                again.extend(callers[table].iter().copied().filter(|&caller| !flow.enters[caller].is_empty()));
            }
            for table in again {
                if !std::mem::replace(&mut queued[table], true) {
                    queue.push_back(table);
                }
            }
        }
        flow
    }

    /// Everything a table does with what enters it.
    fn table(&self, program: &Program, table: usize) -> Effects {
        let mut effects = Effects::default();
        let (rules, missed) = self.rules(table);
        for (rule, at) in program.tables[table].rules.iter().zip(rules) {
            if !at.holds.is_empty() {
                let left = self.list(program, &rule.actions, at.holds, &mut effects, &mut 0, &mut |_, _, _| {});
                effects.returns |= left;
            }
        }
        effects.returns |= missed;
        effects
    }

    /// What packets may have become in a table.
    fn behind(&self, states: States) -> States {
        if self.reshapes { states.reshape().any_tracking() } else { states.any_tracking() }
    }

    /// What gets to each rule of a table, and what misses all of them.
    pub fn rules(&self, table: usize) -> (Vec<AtRule>, States) {
        let mut tried = self.enters[table];
        let mut rules = vec![];
        for outcome in &self.outcomes[table] {
            rules.push(AtRule { tried, holds: tried & outcome.holds });
            tried = tried & outcome.fails;
        }
        (rules, tried)
    }

    /// Tells for each action of a rule, those in clones behind the clone, what gets to it.
    pub fn actions<'p>(
        &self,
        program: &'p Program,
        actions: &'p [Action],
        states: States,
        visit: &mut dyn FnMut(usize, &'p Action, States),
    ) {
        self.list(program, actions, states, &mut Effects::default(), &mut 0, visit);
    }

    /// Runs an action list; what is left at its end comes back.
    fn list<'p>(
        &self,
        program: &'p Program,
        actions: &'p [Action],
        mut states: States,
        effects: &mut Effects,
        index: &mut usize,
        visit: &mut dyn FnMut(usize, &'p Action, States),
    ) -> States {
        for action in actions {
            visit(*index, action, states);
            *index += 1;
            match action {
                Action::Ct(_) => states = states.track(),
                Action::CtClear => states = states.clear(),
                Action::DecTtl | Action::DecMplsTtl { .. } => effects.returns |= states,
                // What lies behind IP changes nothing before it.
                Action::Push { header, .. } | Action::Pop { header } if !self.below_ip[usize::from(*header)] => {}
                action if reshapes(std::slice::from_ref(action)) && !matches!(action, Action::Clone(_)) => {
                    states = states.reshape();
                }
                Action::Drop | Action::Exit => states = States::NONE,
                Action::Call { table, .. } => {
                    effects.enters.push((*table, states));
                    states = self.returns[usize::from(table.0)] & self.behind(states);
                }
                Action::Goto(table) => {
                    effects.enters.push((*table, states));
                    effects.returns |= self.returns[usize::from(table.0)] & self.behind(states);
                    states = States::NONE;
                }
                Action::Clone(inner) => {
                    // What leaves the clone's list early is not let through by the table.
                    let mut own = Effects::default();
                    self.list(program, inner, states, &mut own, index, visit);
                    effects.enters.append(&mut own.enters);
                }
                Action::Group(group) => {
                    for bucket in &program.group(*group).buckets {
                        let mut own = Effects::default();
                        self.list(program, &bucket.actions, states, &mut own, &mut 0, &mut |_, _, _| {});
                        effects.enters.append(&mut own.enters);
                    }
                }
                _ => {}
            }
        }
        states
    }
}

/// What a rule's condition can be. Of a keyed table an entry decides: any rule may not be taken.
fn rule_outcome(table: &crate::hir::Table, rule: &crate::hir::Rule, roots: &[States]) -> Outcome {
    let outcome = outcome(&rule.cond, roots);
    if table.keyed.is_some() { Outcome { fails: States::ALL, ..outcome } } else { outcome }
}

/// For each declared header, whether it may stand where IP would.
fn below_ip(program: &Program) -> Vec<bool> {
    let mut below: Vec<bool> = vec![];
    for header in &program.headers {
        let any = header.after.iter().any(|after| match after.parent {
            Header::Declared(parent) => below.get(usize::from(parent)).copied().unwrap_or(true),
            // What stands between IP and TCP hides that.
            Header::Tcp | Header::Udp | Header::Sctp | Header::Icmp | Header::Icmpv6 => false,
            _ => true,
        });
        below.push(any);
    }
    below
}

/// Whether some action changes which headers packets have.
fn reshapes(actions: &[Action]) -> bool {
    actions.iter().any(|action| match action {
        Action::Clone(inner) => reshapes(inner),
        action => action.reshapes(),
    })
}

/// For each table, the tables that go to or call it.
fn callers(program: &Program) -> Vec<Vec<usize>> {
    let mut callers = vec![vec![]; program.tables.len()];
    for (index, table) in program.tables.iter().enumerate() {
        for rule in &table.rules {
            targets(program, &rule.actions, &mut |target| {
                let callers = &mut callers[usize::from(target.0)];
                if callers.last() != Some(&index) {
                    callers.push(index);
                }
            });
        }
    }
    callers
}

/// Calls `visit` with every table that actions go to or call.
pub fn targets(program: &Program, actions: &[Action], visit: &mut dyn FnMut(TableId)) {
    for action in actions {
        match action {
            Action::Goto(table) | Action::Call { table, .. } => visit(*table),
            Action::Clone(inner) => targets(program, inner, visit),
            Action::Group(group) => {
                program.group(*group).buckets.iter().for_each(|bucket| targets(program, &bucket.actions, visit));
            }
            _ => {}
        }
    }
}
