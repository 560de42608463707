//! What tables do, directly and through the tables they reach.

use pipec_abi::ctx::{MAX_DEPTH, MAX_TABLES};

use super::alike::Alike;
use super::lookup::MIN_RULES;
use crate::describe::shape;
use crate::hir::{Action, Program, Space, TableId};

/// What a list of actions does, with all it reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Writes bytes of the packet.
    pub writes: bool,
    /// Sends the packet somewhere.
    pub emits: bool,
    /// Asks for what other packets change, or changes what they see: must run in the order of packets.
    pub ordered: bool,
    /// Sets or clears `ct.*`.
    pub tracks: bool,
    /// Sets variables.
    pub sets_vars: bool,
    /// Changes where headers lie, or which there are.
    pub reshapes: bool,
}

impl Effects {
    fn add(&mut self, other: Effects) {
        self.writes |= other.writes;
        self.emits |= other.emits;
        self.ordered |= other.ordered;
        self.tracks |= other.tracks;
        self.sets_vars |= other.sets_vars;
        self.reshapes |= other.reshapes;
    }
}

/// What is known of the tables of a program.
#[derive(Clone, Debug)]
pub struct Analysis {
    effects: Vec<Effects>,
    /// Of each group, all its buckets together.
    groups: Vec<Effects>,
    /// Whether a table can reach itself.
    pub cyclic: Vec<bool>,
    /// Whether a packet could pass too many tables, so that they are counted.
    pub counted: bool,
}

/// Looks at all tables.
pub fn analyse(program: &Program) -> Analysis {
    let n = program.tables.len();
    let mut analysis = Analysis {
        effects: vec![Effects::default(); n],
        groups: vec![Effects::default(); program.groups.len()],
        cyclic: vec![false; n],
        counted: false,
    };
    let mut edges = vec![Vec::new(); n];
    for (t, table) in program.tables.iter().enumerate() {
        for rule in &table.rules {
            targets(program, &rule.actions, &mut |target| edges[t].push(usize::from(target.0)));
        }
    }
    // Effects grow to their least fixed point; n rounds are enough.
    for _ in 0..=n {
        let before = analysis.effects.clone();
        for (g, group) in program.groups.iter().enumerate() {
            let mut all = Effects::default();
            group.buckets.iter().for_each(|bucket| all.add(analysis.of(&bucket.actions)));
            analysis.groups[g] = all;
        }
        for (t, table) in program.tables.iter().enumerate() {
            let ordered = table.keyed.as_ref().is_some_and(|keyed| shape(keyed).ordered());
            let mut all = Effects { ordered, ..Effects::default() };
            for rule in &table.rules {
                all.add(analysis.of(&rule.actions));
            }
            analysis.effects[t] = all;
        }
        if before == analysis.effects {
            break;
        }
    }
    for t in 0..n {
        analysis.cyclic[t] = reaches(&edges, t);
    }
    analysis.counted = analysis.cyclic.iter().any(|c| *c) || exceeds_limits(program);
    analysis
}

impl Analysis {
    /// What a list of actions does.
    pub fn of(&self, actions: &[Action]) -> Effects {
        let mut all = Effects::default();
        for action in actions {
            all.reshapes |= action.reshapes();
            match action {
                Action::Output(_) | Action::InPort | Action::Flood | Action::All => all.emits = true,
                Action::Normal => {
                    all.emits = true;
                    all.ordered = true;
                }
                Action::Set { place, .. } if place.space == Space::Meta => all.sets_vars = true,
                Action::Set { .. } => all.writes = true,
                Action::DecTtl | Action::DecMplsTtl { .. } => all.writes = true,
                Action::Push { .. }
                | Action::Pop { .. }
                | Action::PushVlan { .. }
                | Action::PopVlan
                | Action::Truncate(_)
                | Action::SetVlan { .. }
                | Action::PushMpls { .. }
                | Action::PopMpls { .. }
                | Action::Encap(_)
                | Action::Decap { .. } => all.writes = true,
                Action::Ct(_) => {
                    all.ordered = true;
                    all.tracks = true;
                }
                Action::Extern { .. } => {
                    all.ordered = true;
                    all.writes = true;
                    all.reshapes = true; // it may write any byte
                }
                Action::CtClear => all.tracks = true,
                Action::Call { table, .. } | Action::Goto(table) => all.add(self.table(*table)),
                Action::Clone(body) => all.add(self.of(body)),
                Action::OutputTo(_) | Action::OutputPart { .. } | Action::Mirror(_) | Action::Controller { .. } => {
                    all.emits = true
                }
                Action::Group(group) => all.add(self.groups[usize::from(group.0)]),
                Action::Meter(_) | Action::Learn(_) => all.ordered = true,
                Action::Count(_) => {}
                Action::Drop | Action::Exit => {}
            }
        }
        all
    }

    /// What a table does.
    pub fn table(&self, table: TableId) -> Effects {
        self.effects[usize::from(table.0)]
    }
}

/// In how many places of the code each table is reached: from the lists of rules, or, where these are looked up, of what they do
/// differently. What no packet comes to reaches nothing.
pub(super) fn reached(program: &Program, alike: &[[Alike; 2]]) -> Vec<usize> {
    let mut reached = vec![0; program.tables.len()];
    reached[usize::from(program.entry.0)] = 1;
    let mut waiting = vec![program.entry];
    while let Some(table) = waiting.pop() {
        let t = usize::from(table.0);
        let rules = &program.tables[t].rules;
        let mut visit = |target: TableId| {
            let places = &mut reached[usize::from(target.0)];
            *places += 1;
            if *places == 1 {
                waiting.push(target);
            }
        };
        if rules.len() >= MIN_RULES && program.tables[t].keyed.is_none() {
            alike[t][0].cases.iter().for_each(|case| targets(program, &case.actions, &mut visit));
        } else {
            rules.iter().for_each(|rule| targets(program, &rule.actions, &mut visit));
        }
    }
    reached
}

/// Calls `visit` for every table that a list reaches directly.
pub(super) fn targets(program: &Program, actions: &[Action], visit: &mut dyn FnMut(TableId)) {
    for action in actions {
        match action {
            Action::Call { table, .. } | Action::Goto(table) => visit(*table),
            Action::Clone(body) => targets(program, body, visit),
            Action::Group(group) => {
                program.group(*group).buckets.iter().for_each(|bucket| targets(program, &bucket.actions, visit));
            }
            _ => {}
        }
    }
}

fn reaches(edges: &[Vec<usize>], from: usize) -> bool {
    let mut seen = vec![false; edges.len()];
    let mut stack = edges[from].clone();
    while let Some(t) = stack.pop() {
        if t == from {
            return true;
        }
        if !std::mem::replace(&mut seen[t], true) {
            stack.extend(&edges[t]);
        }
    }
    false
}

/// The tables that are reached from some, and these, those that they go on to first, if none can reach itself.
pub(super) fn callees_first(program: &Program, from: impl Iterator<Item = TableId>) -> Vec<TableId> {
    let mut seen = vec![false; program.tables.len()];
    let mut order = Vec::new();
    let mut stack: Vec<(TableId, bool)> = from.map(|table| (table, false)).collect();
    while let Some((table, ready)) = stack.pop() {
        if ready {
            order.push(table);
        } else if !std::mem::replace(&mut seen[usize::from(table.0)], true) {
            stack.push((table, true));
            for rule in &program.table(table).rules {
                targets(program, &rule.actions, &mut |target| stack.push((target, false)));
            }
        }
    }
    order
}

/// Whether some path of an acyclic program could pass more tables than allowed, or nest deeper.
fn exceeds_limits(program: &Program) -> bool {
    let n = program.tables.len();
    // Of each table: tables that a packet passes from it on, and how deep it nests, at the most.
    let mut passed: Vec<Option<(u64, u32)>> = vec![None; n];
    for table in callees_first(program, (0..n).map(|t| TableId(t as u16))) {
        let t = usize::from(table.0);
        let (mut most, mut deepest) = (0u64, 0u32);
        for rule in &program.tables[t].rules {
            let mut sum = 0u64;
            targets(program, &rule.actions, &mut |target| {
                let target = usize::from(target.0);
                let (tables, depth) = passed[target].unwrap_or_default();
                sum = sum.saturating_add(tables);
                deepest = deepest.max(depth + u32::from(target <= t));
            });
            most = most.max(sum);
        }
        passed[t] = Some((most.saturating_add(1), deepest));
    }
    passed.iter().flatten().any(|(tables, depth)| *tables > u64::from(MAX_TABLES) || *depth > MAX_DEPTH)
}
