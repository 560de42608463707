//! What code costs, by a simple model: each kind of step has a price in cycles, and a path costs the sum of its steps.
//!
//! In: statements of a plan. Out: for every way on which a body can end, the cheapest and the dearest path to it. These are
//! estimates: prices were measured one by one, on a processor at 2 GHz with everything in its caches; nothing is said of
//! what steps do to each other, of branches that are mispredicted, and of memory that is far away. Never: a decision.

use std::collections::BTreeMap;

use pipec_abi::Emit;

use super::data::Shape;
use crate::plan::Plan;
use crate::plan::code::{Expr, Label, Stmt};

/// A price list: the kind of step, and cycles.
macro_rules! prices {
    ($($(#[doc = $doc:literal])* $name:ident = $cycles:literal;)*) => {
        $($(#[doc = $doc])* pub const $name: u64 = $cycles;)*
        /// All prices, for people.
        pub const PRICES: &[(&str, u64)] = &[$((stringify!($name), $cycles),)*];
    };
}

prices! {
    /// Receiving a packet and sending it, per packet of a burst.
    IO = 50;
    /// An operation on words, a load from the packet, a value.
    OP = 1;
    /// A test and its branch, predicted.
    BRANCH = 2;
    /// Finding what follows Ethernet, its tags and SNAP.
    PARSE_L2 = 4;
    /// Reading an IP header's lengths, fragment and protocol.
    PARSE_L3 = 8;
    /// Finding a transport header that is whole.
    PARSE_L4 = 6;
    /// Reading an ARP header.
    PARSE_ARP = 5;
    /// Adding to a counter.
    COUNT = 3;
    /// Writing a packet's verdict.
    VERDICT = 1;
    /// Letting a packet wait, and taking it up again.
    SUSPEND = 8;
    /// Putting a key aside until the burst is looked up, and taking the packet up again.
    GATHER = 5;
    /// Calling a table, and coming back.
    CALL = 6;
    /// Finding a connection that was prepared: hashed and prefetched for the burst.
    CT = 40;
    /// What it costs more where it was not prepared.
    CT_UNPREPARED = 60;
    /// Adding an output to a packet's list.
    EMIT = 15;
    /// Copying the packet for an output.
    COPY = 70;
    /// Saving the packet, or putting it back.
    SAVE = 60;
    /// Learning an address and finding another.
    NORMAL = 45;
    /// Sending to all ports: as often as there are ports, taken as four.
    FLOOD = 90;
    /// Writing a field, with its checksums.
    SET = 8;
    /// A tuple space, beside its probes.
    TUPLE_SPACE = 10;
    /// One of its probes, with up to 1,000 entries; with up to 10,000, with more.
    PROBE = 7;
    /// One of its probes, with up to 10,000 entries.
    PROBE_10K = 8;
    /// One of its probes, with more entries.
    PROBE_100K = 14;
    /// Bit vectors, beside pieces and words.
    BIT_VECTOR = 8;
    /// A piece of 16 bits of the key.
    PIECE = 3;
    /// 64 entries of bit vectors.
    VECTOR_WORD = 6;
    /// A trie's look-up of one to three loads.
    LPM = 14;
    /// One of several lists of actions, by number.
    SWITCH = 4;
    /// Taking tokens from a meter's bucket.
    METER = 20;
    /// Any step that has no price of its own yet.
    OTHER = 10;
}

/// The least and the most cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// On the cheapest path.
    pub least: u64,
    /// On the dearest.
    pub most: u64,
}

impl Range {
    const ZERO: Range = Range { least: 0, most: 0 };

    fn plus(self, cycles: u64) -> Range {
        self.and(Range { least: cycles, most: cycles })
    }

    /// One behind the other.
    pub fn and(self, other: Range) -> Range {
        Range { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    /// One or the other.
    pub fn or(self, other: Range) -> Range {
        Range { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// Where a path of a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// The packet is done, or the table that was called.
    Done,
    /// It waits for the look-up of a stage.
    Gathers(u8),
    /// It waits at a point.
    Waits(u8),
}

/// What a list of statements costs, by where it leads.
#[derive(Clone, Debug, Default)]
struct Ways {
    falls: Option<Range>,
    breaks: BTreeMap<Label, Range>,
    ends: BTreeMap<Exit, Range>,
}

/// Adds a way.
fn add<K: Ord>(ways: &mut BTreeMap<K, Range>, to: K, range: Range) {
    ways.entry(to).and_modify(|known| *known = known.or(range)).or_insert(range);
}

/// Prices the bodies of one plan.
pub struct Costs<'p> {
    plan: &'p Plan,
    shapes: Vec<Shape>,
    /// What functions cost; none while one is being priced, and for those that can reach themselves.
    functions: Vec<Option<Range>>,
}

impl<'p> Costs<'p> {
    /// Prices functions first.
    pub fn new(plan: &'p Plan) -> Costs<'p> {
        let shapes = plan.tables.iter().map(|bytes| Shape::of(bytes)).collect();
        let mut costs = Costs { plan, shapes, functions: vec![None; plan.functions.len()] };
        // A function that calls functions is priced right once those are; a few rounds reach all but cycles.
        for _ in 0..4 {
            for (i, function) in plan.functions.iter().enumerate() {
                let ends = costs.body(&function.body);
                costs.functions[i] = ends.values().copied().reduce(Range::or);
            }
        }
        costs
    }

    /// The shapes of tables that are data.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// What a function costs.
    pub fn function(&self, name: &str) -> Option<Range> {
        let at = self.plan.functions.iter().position(|function| function.name == name)?;
        self.functions[at]
    }

    /// Every way on which a body ends.
    pub fn body(&self, body: &[Stmt]) -> BTreeMap<Exit, Range> {
        let mut ways = self.list(body);
        if let Some(falls) = ways.falls {
            add(&mut ways.ends, Exit::Done, falls);
        }
        ways.ends
    }

    /// The look-up of a stage.
    pub fn stage(&self, stage: u8) -> Range {
        let shape = self.plan.stages.get(usize::from(stage)).map(|stage| &self.shapes[usize::from(stage.table)]);
        shape.map_or(Range::ZERO, |shape| Range { least: shape.least, most: shape.most })
    }

    fn list(&self, stmts: &[Stmt]) -> Ways {
        let mut ways = Ways { falls: Some(Range::ZERO), ..Ways::default() };
        let mut waits = None;
        for stmt in stmts {
            let Some(so_far) = ways.falls else { break };
            if let Stmt::Suspend { point, .. } = stmt {
                waits = Some(Exit::Waits(*point));
            }
            if let Stmt::Gather { stage, .. } = stmt {
                waits = Some(Exit::Gathers(*stage));
            }
            let own = match stmt {
                Stmt::Return(_) => {
                    let exit = waits.unwrap_or(Exit::Done);
                    Ways { ends: BTreeMap::from([(exit, Range::ZERO)]), ..Ways::default() }
                }
                stmt => self.stmt(stmt),
            };
            ways.falls = own.falls.map(|range| so_far.and(range));
            own.breaks.into_iter().for_each(|(to, range)| add(&mut ways.breaks, to, so_far.and(range)));
            own.ends.into_iter().for_each(|(to, range)| add(&mut ways.ends, to, so_far.and(range)));
        }
        ways
    }

    fn stmt(&self, stmt: &Stmt) -> Ways {
        match stmt {
            Stmt::If { cond, then, otherwise } => {
                self.either([then.as_slice(), otherwise.as_slice()].into_iter(), expr(cond) + BRANCH)
            }
            Stmt::Switch { cases, .. } => self.either(cases.iter().map(Vec::as_slice), SWITCH),
            Stmt::Block(label, body) => {
                let mut ways = self.list(body);
                if let Some(range) = ways.breaks.remove(label) {
                    ways.falls = Some(ways.falls.map_or(range, |falls| falls.or(range)));
                }
                ways
            }
            Stmt::Break(label) => Ways { breaks: BTreeMap::from([(*label, Range::ZERO)]), ..Ways::default() },
            Stmt::Lookup { table, key, .. } => {
                let key: u64 = key.iter().map(expr).sum();
                let shape = &self.shapes[usize::from(*table)];
                let range = Range { least: shape.least, most: shape.most };
                Ways { falls: Some(range.plus(key)), ..Ways::default() }
            }
            Stmt::Find { table, key, ordered, .. } => {
                let key: u64 = key.iter().map(expr).sum();
                let shape = &self.shapes[usize::from(*table)];
                let range = Range { least: shape.least, most: shape.most };
                Ways { falls: Some(range.plus(key + if *ordered { OTHER } else { 0 })), ..Ways::default() }
            }
            Stmt::Call { function, .. } => {
                let own = self.functions.get(usize::from(*function)).copied().flatten().unwrap_or(Range::ZERO);
                Ways { falls: Some(own.plus(CALL)), ..Ways::default() }
            }
            stmt => Ways { falls: Some(Range::ZERO.plus(self.simple(stmt))), ..Ways::default() },
        }
    }

    fn either<'s>(&self, lists: impl Iterator<Item = &'s [Stmt]>, before: u64) -> Ways {
        let mut ways = Ways::default();
        for own in lists.map(|list| self.list(list)) {
            if let Some(range) = own.falls {
                let range = range.plus(before);
                ways.falls = Some(ways.falls.map_or(range, |falls| falls.or(range)));
            }
            own.breaks.into_iter().for_each(|(to, range)| add(&mut ways.breaks, to, range.plus(before)));
            own.ends.into_iter().for_each(|(to, range)| add(&mut ways.ends, to, range.plus(before)));
        }
        ways
    }

    /// A step without branches.
    fn simple(&self, stmt: &Stmt) -> u64 {
        let sent = |how: &Emit| EMIT + if *how == Emit::Copy { COPY } else { 0 };
        match stmt {
            Stmt::Let(_, value) => expr(value),
            Stmt::Count(_) | Stmt::CountAt { .. } | Stmt::CountEntry { .. } => COUNT,
            Stmt::Gather { key, carry, .. } => GATHER + key.iter().map(expr).sum::<u64>() + carry.len() as u64 * OP,
            Stmt::VerdictOf(verdict) => VERDICT + expr(verdict),
            Stmt::Verdict(_) | Stmt::DropIfUnsent(_) | Stmt::Fail(_) => VERDICT,
            Stmt::Suspend { .. } => SUSPEND,
            Stmt::Ct { point: _, zone, .. } => {
                let prepared =
                    matches!(zone, Expr::Const(zone) if self.plan.prepares.iter().any(|z| u64::from(*z) == *zone));
                expr(zone) + CT + if prepared { 0 } else { CT_UNPREPARED }
            }
            Stmt::Emit { how, .. } | Stmt::EmitIn { how } => sent(how),
            Stmt::EmitTo { port, how } => expr(port) + sent(how),
            Stmt::EmitPart { port, .. } => expr(port) + EMIT + COPY,
            Stmt::Controller { .. } => EMIT + COPY,
            Stmt::Meter { .. } => METER,
            Stmt::Live { .. } => OP,
            Stmt::Flood { how } => FLOOD + sent(how) - EMIT,
            Stmt::Normal { how } => NORMAL + sent(how),
            Stmt::Set { high, low, .. } => SET + expr(high) + expr(low),
            Stmt::Store { value, .. } | Stmt::SetVar { value, .. } => OP + expr(value),
            Stmt::DecTtl { .. } => SET,
            Stmt::Save | Stmt::Restore => SAVE,
            Stmt::CtClear | Stmt::Clear | Stmt::Depth(_) | Stmt::SetDepth(_) | Stmt::Enter { .. } => 2 * OP,
            Stmt::SetCt(_) => 5 * OP,
            _ => OTHER,
        }
    }
}

/// An expression.
pub fn expr(expr_: &Expr) -> u64 {
    match expr_ {
        Expr::Const(_) | Expr::Value(_) => 0,
        Expr::L2 => PARSE_L2,
        Expr::L3 { .. } => PARSE_L3,
        Expr::L4 { .. } => PARSE_L4,
        Expr::Arp(_) => PARSE_ARP,
        Expr::Op(_, left, right) => OP + expr(left) + expr(right),
        Expr::Log2(of) => 2 * OP + expr(of),
        Expr::LoadIf { cond, .. } => 2 * OP + expr(cond),
        Expr::Guard(cond, value) => BRANCH + expr(cond) + expr(value),
        _ => OP,
    }
}

/// A trie: at the least and at the most.
pub fn lpm() -> (u64, u64) {
    (LPM / 3, LPM)
}

/// Bit vectors of so many pieces and entries.
pub fn bit_vector(pieces: usize, entries: usize) -> (u64, u64) {
    let words = entries.div_ceil(64) as u64;
    let pieces = BIT_VECTOR + PIECE * pieces as u64;
    (pieces + VECTOR_WORD, pieces + VECTOR_WORD * words)
}

/// A tuple space of so many tuples and entries.
pub fn tuple_space(tuples: usize, entries: usize) -> (u64, u64) {
    let probe = match entries {
        0..=1_000 => PROBE,
        1_001..=10_000 => PROBE_10K,
        _ => PROBE_100K,
    };
    (TUPLE_SPACE + probe, TUPLE_SPACE + probe * tuples.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::code::Value;

    /// The plan of a program, with another prefix.
    fn plan(prefix: Vec<Stmt>) -> Plan {
        let mut sources = crate::source::Sources::default();
        let file = sources.add("p.pipe", "pipeline p { port a; table t { else => drop; } }");
        let (program, _) = crate::front_pipe(&mut sources, file);
        Plan { prefix, ..crate::plan::plan(&program.expect("a program")) }
    }

    #[test]
    fn each_end_has_its_cheapest_and_dearest_path() {
        let test = |then, otherwise| Stmt::If { cond: Expr::Value(Value(0)), then, otherwise };
        let plan = plan(vec![
            Stmt::Let(Value(0), Expr::L2),
            Stmt::Block(Label(0), vec![test(vec![Stmt::Break(Label(0))], vec![Stmt::Count(0)])]),
            test(vec![Stmt::Suspend { point: 3, prepare: None }, Stmt::Return(1)], vec![]),
            Stmt::Verdict(0),
        ]);
        let ends = Costs::new(&plan).body(&plan.prefix);
        let start = PARSE_L2 + BRANCH;
        let done = Range { least: start + BRANCH + VERDICT, most: start + COUNT + BRANCH + VERDICT };
        let waits = Range { least: start + BRANCH + SUSPEND, most: start + COUNT + BRANCH + SUSPEND };
        assert_eq!(ends.into_iter().collect::<Vec<_>>(), [(Exit::Done, done), (Exit::Waits(3), waits)]);
    }
}
