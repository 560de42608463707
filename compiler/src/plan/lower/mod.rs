//! Turns lists of actions into code, along the paths that packets can take.
//!
//! A path starts in the prefix, which runs for the whole burst. At the first action that other packets can influence
//! (connection tracking, learning) the packet is suspended at a point, whose body goes on in the order of packets with all
//! that is statically known kept. Tables reached in one place are part of the path; others are functions.
//!
//! Here: tables and functions. Beside: [`actions`], [`sending`], [`groups`], [`keyed`] tables, [`taking`] rules, [`writes`],
//! [`shapes`] (headers that come and go), and [`ends`], where paths end.

mod actions;
mod ends;
mod groups;
mod keyed;
mod sending;
mod shapes;
mod stages;
mod taking;
mod writes;

pub(super) use stages::Ask;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pipec_abi::reshape::Stack;
use pipec_abi::table::Costs;
use pipec_abi::{CtPoint, DropReason, Verdict};

use self::ends::maybe;
use super::alike::{Alike, alike};
use super::analysis::{Analysis, analyse, reached};
use super::code::{Expr, External, Function, Label, Op, Param, Plan, Rows, Stage, Stmt, Value};
use super::facts::{Facts, Known};
use super::product::Product;
use super::report::{Body, Classifier, Decision, Report, Waits};
use super::values::{Fresh, Site, Values, Wide};
use super::{dead, plain};
use crate::describe::{describe, open_tables};
use crate::field::{Field, Kind};
use crate::hir::{Place, PortId, Program, Read, Space, TableId, View};

/// Points of a program at the most; beyond, packets are suspended at once and everything runs in order.
const MAX_POINTS: usize = 200;
/// A table with at most this many rules is inlined wherever it is reached.
const INLINE_RULES: usize = 4;
/// A table with more is not looked at for how many of its rules are left.
const MAX_SMALL_RULES: usize = 256;
/// Statements of one body after which tables become functions.
const BODY_BUDGET: u32 = 40_000;

/// Whether the packet has outputs on this path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Emitted {
    No,
    Yes,
    Maybe,
}

/// Where a list of actions ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With the packet.
    Packet,
    /// With a table as a function: `return 0` when its list ends, `return 1` when the packet does.
    Function,
    /// Behind a block of this body.
    Block(Label),
}

/// A place on a path.
#[derive(Clone)]
pub(super) struct State {
    pub facts: Facts,
    pub values: Values,
    /// The table whose rules are being matched, or whose rule is being executed.
    pub(super) table: TableId,
    /// Runs in the order of packets.
    in_order: bool,
    /// Packets have gathered for a look-up before.
    pub(super) gathered: bool,
    emitted: Emitted,
    /// Why the packet is dropped if it ends now without output; not yet said at run time.
    reason: Option<DropReason>,
    /// Rules taken and not yet counted.
    pub(super) taken: Vec<(u32, u32)>,
    /// The packet may have been written since the burst began.
    written: bool,
    /// Something after the current list may write the packet.
    written_later: bool,
    /// Bytes will be put back after the current list: outputs must be copies.
    put_back: bool,
    list_end: End,
    exit_end: End,
    /// Arguments of the entry by which the current list was taken.
    args: Vec<Wide>,
    /// What becomes of the packet at the end of the current list, as a verdict, if that is data.
    end_by: Option<Expr>,
}

impl State {
    /// The table whose rules are being matched, or whose rule is being executed.
    pub(super) fn table(&self) -> TableId {
        self.table
    }
}

/// The work.
pub(super) struct Lower<'p> {
    pub program: &'p Program,
    /// The same before tables were put together, and what rules count for.
    pub(super) source: &'p Program,
    product: &'p Product<'p>,
    analysis: Analysis,
    /// In how many places each table is reached.
    reached: Vec<usize>,
    counters: Vec<Vec<(u32, u32)>>,
    counter_ids: BTreeMap<Vec<(u32, u32)>, u32>,
    points: Vec<Vec<Stmt>>,
    pub(super) stages: Vec<Stage>,
    /// What each table's rules do, where they may be many: as parts of a list, and at its end.
    alike: &'p [[Alike; 2]],
    /// What steps of look-ups cost.
    pub(super) costs: Costs,
    /// Functions behind some call of which the packet may be written, or put back: all, if that is not known yet.
    known_written_behind: Option<BTreeSet<TableId>>,
    /// The same as it is seen.
    written_behind: BTreeSet<TableId>,
    pub(super) rows: Vec<Rows>,
    functions: Vec<Function>,
    function_ids: HashMap<TableId, u16>,
    pending_functions: Vec<TableId>,
    prepares: Vec<u16>,
    ct_points: Vec<CtPoint>,
    pub tables: Vec<Vec<u8>>,
    stacks: Vec<Stack>,
    pub fresh: Fresh,
    values: u32,
    spent: u32,
    /// Somewhere a packet may have been tracked or not, so that what it has of connections is read, set or not.
    may_be_untracked: bool,
    /// Nothing runs ahead: every packet is suspended at its start.
    all_in_order: bool,
    /// What was decided, and the body for which code is being made.
    pub report: Report,
    body: Body,
    /// Words of variables behind the program's own, where arguments wait while a packet does.
    waiting_args: usize,
}

/// Plans a program.
pub fn lower(source: &Program, costs: &Costs) -> (Plan, Report) {
    let counted = analyse(source).counted;
    let product = if counted { Product::none(source) } else { Product::of(source, costs) };
    let alike = alike_rules(&product);
    let run = |in_order| {
        // At first all functions are taken to have writes behind them; each run knows more of those that have not.
        let mut known = None;
        loop {
            let (plan, report, seen) = Lower::new(source, &product, &alike, *costs, in_order, known.clone()).run();
            if seen.len() == plan.functions.len() || known.as_ref() == Some(&seen) {
                return (plan, report);
            }
            known = Some(seen);
        }
    };
    let mut why = "a packet could pass too many tables, so that they are counted".to_string();
    if !counted {
        let ahead = run(false);
        if ahead.0.points.len() <= MAX_POINTS {
            return ahead;
        }
        why = format!("packets would wait at {} points, more than {MAX_POINTS}", ahead.0.points.len());
    }
    let (plan, report) = run(true);
    (plan, Report { in_order: Some(why), ..report })
}

/// What the rules of each table do.
fn alike_rules(product: &Product<'_>) -> Vec<[Alike; 2]> {
    let program = &product.program;
    let both = |t: usize, rules: &[crate::hir::Rule]| {
        let missed = |rule: usize| product.missed(TableId(t as u16), rule);
        [alike(rules, missed, false), alike(rules, missed, true)]
    };
    program
        .tables
        .iter()
        .enumerate()
        .map(|(t, table)| if table.keyed.is_none() { both(t, &table.rules) } else { Default::default() })
        .collect()
}

impl<'p> Lower<'p> {
    fn new(
        source: &'p Program,
        product: &'p Product<'p>,
        alike: &'p [[Alike; 2]],
        costs: Costs,
        all_in_order: bool,
        known: Option<BTreeSet<TableId>>,
    ) -> Lower<'p> {
        let program = &product.program;
        Lower {
            program,
            source,
            product,
            analysis: analyse(program),
            reached: reached(program, alike),
            // The first are those that the program names.
            counters: vec![Vec::new(); program.counters.len()],
            counter_ids: BTreeMap::new(),
            points: Vec::new(),
            stages: Vec::new(),
            alike,
            costs,
            known_written_behind: known,
            written_behind: BTreeSet::new(),
            rows: Vec::new(),
            functions: Vec::new(),
            function_ids: HashMap::new(),
            pending_functions: Vec::new(),
            prepares: Vec::new(),
            ct_points: Vec::new(),
            tables: open_tables(program),
            stacks: Vec::new(),
            fresh: Fresh::default(),
            values: 0,
            spent: 0,
            may_be_untracked: false,
            all_in_order,
            report: Report { merged: product.merged.clone(), ..Report::default() },
            body: Body::Prefix,
            waiting_args: 0,
        }
    }

    fn run(mut self) -> (Plan, Report, BTreeSet<TableId>) {
        let mut prefix = Vec::new();
        let state = self.start();
        let mut body = Vec::new();
        let too_short = Expr::Len.with(Op::Lt, 14);
        let malformed = vec![Stmt::Verdict(Verdict::drop(DropReason::Malformed).0), Stmt::Return(1)];
        prefix.push(Stmt::If { cond: too_short, then: malformed, otherwise: vec![] });
        let entry = self.program.entry;
        if self.all_in_order {
            self.suspend(state, None, &mut body, |lower, state, out| {
                out.push(Stmt::Clear);
                lower.visit(entry, None, state, out);
            });
        } else {
            self.visit(entry, None, state, &mut body);
        }
        while let Some(table) = self.pending_functions.pop() {
            self.function(table);
        }
        let read_unset = !self.functions.is_empty() || self.may_be_untracked;
        if !self.all_in_order && (read_unset || self.program.metadata_words > 0) {
            prefix.push(Stmt::Clear);
        }
        prefix.append(&mut body);
        self.end_body();
        let mut functions = std::mem::take(&mut self.functions);
        let reshapes = (0..self.program.tables.len()).any(|t| self.analysis.table(TableId(t as u16)).reshapes);
        functions.sort_by_key(|f| self.function_ids[&self.table_by_name(&f.name)]);
        self.report.counted = self.analysis.counted;
        let scratch = self.place_stages();
        let mut meta = describe(self.source, self.counters, self.points.len());
        meta.vars += self.waiting_args as u32;
        meta.scratch = scratch;
        let mut plan = Plan {
            prefix,
            plain: None,
            meta,
            points: self.points,
            stages: self.stages,
            rows: self.rows,
            functions,
            prepares: self.prepares,
            ct_points: self.ct_points,
            tables: self.tables,
            externs: self.program.externs.iter().map(external).collect(),
            vlan_limit: u32::from(self.program.options.vlan_limit),
            values: self.values,
            stacks: self.stacks,
            reshapes,
        };
        dead::writes(&mut plan, read_unset || self.all_in_order);
        plan.plain = plain::plain(&plan.prefix);
        (plan, self.report, self.written_behind)
    }

    fn table_by_name(&self, name: &str) -> TableId {
        let at = self.program.tables.iter().position(|t| t.name == name).unwrap_or(0);
        TableId(at as u16)
    }

    /// Nothing is known of a packet.
    fn no_facts(&self) -> Facts {
        Facts::of_ports(self.program.ports.iter().map(|port| port.number).collect())
    }

    /// A packet as it comes in.
    fn start(&self) -> State {
        let mut facts = self.no_facts();
        facts.no_variables_set(self.program.metadata_words);
        for field in [Field::CtState, Field::CtZone, Field::CtMark, Field::CtLabel] {
            facts.set(&table_read(field), 0);
        }
        State {
            facts,
            values: Values::default(),
            table: self.program.entry,
            in_order: false,
            gathered: false,
            emitted: Emitted::No,
            reason: None,
            taken: Vec::new(),
            written: false,
            written_later: false,
            put_back: false,
            list_end: End::Packet,
            exit_end: End::Packet,
            args: Vec::new(),
            end_by: None,
        }
    }

    /// Values are numbered anew in the next body.
    fn end_body(&mut self) {
        self.values = self.values.max(self.fresh.value);
        self.report.read(self.body, std::mem::take(&mut self.fresh.reads));
        self.fresh = Fresh::default();
        self.spent = 0;
    }

    /// Runs `make` for a body of its own, leaving the current one as it is.
    fn separate(&mut self, own: Body, make: impl FnOnce(&mut Self, &mut Vec<Stmt>)) -> Vec<Stmt> {
        let outer = std::mem::replace(&mut self.body, own);
        let fresh = std::mem::take(&mut self.fresh);
        let spent = std::mem::take(&mut self.spent);
        let mut body = Vec::new();
        make(self, &mut body);
        self.end_body();
        self.body = outer;
        self.fresh = fresh;
        self.spent = spent;
        body
    }

    /// A table as a function: nothing is known of the packet.
    fn function(&mut self, table: TableId) {
        let body = self.separate(Body::Function(table), |lower, out| {
            let mut state = lower.start();
            state.facts = lower.no_facts();
            state.values.lookup_port_is_parameter = true;
            state.in_order = true;
            state.emitted = Emitted::Maybe;
            state.written = true;
            state.written_later = lower.known_written_behind.as_ref().is_none_or(|known| known.contains(&table));
            state.list_end = End::Function;
            state.exit_end = End::Function;
            state.table = table;
            lower.rules(state, out);
        });
        self.functions.push(Function { name: self.program.table(table).name.clone(), body });
    }

    // ---- tables -------------------------------------------------------------------------------------------------------

    /// Goes to a table: its look-up sees `in_port` as `port`, if given. What the table does ends where the state says.
    fn table(&mut self, table: TableId, port: Option<PortId>, mut state: State, out: &mut Vec<Stmt>) {
        self.enter(table, &mut state, out);
        self.visit(table, port, state, out);
    }

    /// [`Lower::table`], not counted.
    fn visit(&mut self, table: TableId, port: Option<PortId>, mut state: State, out: &mut Vec<Stmt>) {
        state.args.clear();
        let ordered = self.analysis.table(table).ordered;
        let own_function = self.is_function(table) && !self.is_small_here(table, port, &state);
        if own_function && ordered && !state.in_order {
            return self.suspend(state, None, out, move |lower, state, out| lower.visit(table, port, state, out));
        }
        if own_function {
            return self.call_function(table, port, state, out);
        }
        state.table = table;
        state
            .facts
            .forget(|space| matches!(space, Space::Field(Field::InPort | Field::InPortNumber)) && port.is_some());
        if let Some(port) = port {
            state.facts.set(&table_read(Field::InPort), u128::from(port.0));
        }
        self.rules_seen_by(port.is_some(), state, out);
    }

    /// Whether what is known of the packet leaves so few of a table's rules that they may stand in several places.
    fn is_small_here(&self, table: TableId, port: Option<PortId>, state: &State) -> bool {
        let t = usize::from(table.0);
        let rules = &self.program.tables[t].rules;
        if self.analysis.cyclic[t] || self.spent > BODY_BUDGET || port.is_some() || rules.len() > MAX_SMALL_RULES {
            return false;
        }
        let left = rules.iter().map(|rule| state.facts.simplify(&rule.cond)).filter(|known| *known != Known::False);
        let mut surely = false;
        let left = left.take_while(|known| !std::mem::replace(&mut surely, *known == Known::True)).count();
        // Where each place has its own rules, all of them together are hardly more than the table.
        left <= INLINE_RULES || left * self.reached[t] <= 2 * rules.len()
    }

    fn is_function(&self, table: TableId) -> bool {
        let t = usize::from(table.0);
        let rules = self.program.tables[t].rules.len();
        self.analysis.cyclic[t]
            || (self.reached[t] > 1 && rules > INLINE_RULES)
            || (self.spent > BODY_BUDGET && rules > 0)
    }

    /// Notes that a table is called from here, and why.
    fn decide_call(&mut self, table: TableId) {
        let t = usize::from(table.0);
        let why = if self.analysis.cyclic[t] {
            "the table can reach itself".to_string()
        } else if self.reached[t] > 1 {
            let rules = self.program.tables[t].rules.len();
            format!(
                "the table is reached from {} places and has {rules} rules, more than {INLINE_RULES}",
                self.reached[t]
            )
        } else {
            format!("the code around it has more than {BODY_BUDGET} statements")
        };
        let rejected = vec![("inline", why)];
        let open = self.program.tables[t].rules.len();
        let decision = Decision { table, body: self.body, open, classifier: Classifier::Call, rejected };
        if !self.report.decisions.contains(&decision) {
            self.report.decisions.push(decision);
        }
    }

    /// Notes what a table's rules became.
    pub(super) fn decide(
        &mut self,
        table: TableId,
        open: usize,
        rejected: Vec<(&'static str, String)>,
        classifier: Classifier,
    ) {
        self.report.decisions.push(Decision { table, body: self.body, open, classifier, rejected });
    }

    /// Notes a point.
    fn waits(&mut self, state: &State, zone: Option<u16>) {
        self.report.points.push(Waits { table: state.table, zone });
    }

    fn function_id(&mut self, table: TableId) -> u16 {
        let next = self.function_ids.len() as u16;
        let id = *self.function_ids.entry(table).or_insert(next);
        if id == next {
            self.pending_functions.push(table);
        }
        id
    }

    /// Counts a table where a packet could pass too many.
    fn enter(&mut self, table: TableId, state: &mut State, out: &mut Vec<Stmt>) {
        if !self.analysis.counted {
            return;
        }
        self.count(state, out); // what follows may fail
        let exceeded = self.fresh.value();
        out.push(Stmt::Enter { exceeded, back: table <= state.table });
        let fail = |reason| vec![Stmt::Fail(reason), Stmt::Return(2)];
        let too_many = Expr::Value(exceeded).with(Op::Eq, 1);
        let too_deep = Expr::Value(exceeded).with(Op::Eq, 2);
        out.push(Stmt::If { cond: too_many, then: fail(DropReason::Resubmits), otherwise: vec![] });
        out.push(Stmt::If { cond: too_deep, then: fail(DropReason::Depth), otherwise: vec![] });
    }

    /// Calls a table as a function; the current list ends behind it.
    fn call_function(&mut self, table: TableId, port: Option<PortId>, mut state: State, out: &mut Vec<Stmt>) {
        self.say_all(&mut state, out);
        self.decide_call(table);
        if state.written_later || state.put_back {
            self.written_behind.insert(table);
        }
        let (result, function) = (self.fresh.value(), self.function_id(table));
        out.push(Stmt::Call { result, function, in_port: port.map(|p| p.0) });
        self.after_function(result, &state, out);
        state.emitted = maybe(state.emitted);
        self.end_list(state, out);
    }

    /// Leaves if the function ended the packet.
    fn after_function(&mut self, result: Value, state: &State, out: &mut Vec<Stmt>) {
        let failed = Expr::Value(result).with(Op::Eq, 2);
        out.push(Stmt::If { cond: failed, then: vec![Stmt::Return(2)], otherwise: vec![] });
        let then = match state.exit_end {
            End::Packet | End::Function => vec![Stmt::Return(1)],
            End::Block(label) => vec![Stmt::Break(label)],
        };
        out.push(Stmt::If { cond: Expr::Value(result).with(Op::Eq, 1), then, otherwise: vec![] });
    }

    /// Matches the rules of the state's table.
    fn rules(&mut self, state: State, out: &mut Vec<Stmt>) {
        self.rules_seen_by(true, state, out);
    }

    fn label(&mut self) -> Label {
        self.fresh.label += 1;
        Label(self.fresh.label - 1)
    }

    /// A new label, for matching.
    pub(super) fn new_label(&mut self) -> Label {
        self.label()
    }

    /// Where code goes.
    pub(super) fn site<'a>(&'a mut self, state: &'a mut State, out: &'a mut Vec<Stmt>) -> Site<'a> {
        let headers = &self.program.headers;
        Site { values: &mut state.values, facts: &state.facts, headers, fresh: &mut self.fresh, out }
    }
}

/// A whole field as tables see it.
pub(super) fn table_read(field: Field) -> Read {
    Read { place: Place::field(field), view: View::Table }
}

/// An action in Rust, for the back ends.
fn external(external: &crate::hir::Extern) -> External {
    let param = |&(kind, width): &(Kind, u8)| match kind {
        Kind::Mac => Param::Mac,
        Kind::Ipv4 => Param::Ipv4,
        Kind::Port => Param::Number(32),
        Kind::Number | Kind::Flags | Kind::Ipv6 => Param::Number(width),
    };
    External { name: external.name.clone(), params: external.params.iter().map(param).collect() }
}
