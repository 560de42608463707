//! Turns lists of actions into code, along the paths that packets can take.
//!
//! A path starts in the prefix, which runs for the whole burst. At the first action that other packets can influence
//! (connection tracking, learning) the packet is suspended at a point, whose body goes on in the order of packets with all
//! that is statically known kept. Tables reached in one place are part of the path; others are functions.

use std::collections::{BTreeMap, HashMap};

use pipec_abi::{CtPoint, DropReason, Emit, Verdict};

use super::analysis::{Analysis, analyse};
use super::code::{Base, CtPart, Expr, Function, Label, Op, Plan, Stmt, Value};
use super::facts::{Facts, Known, ones};
use super::values::{Fresh, Site, Values, Wide};
use crate::describe::describe;
use crate::field::{Field, Header};
use crate::hir::{Action, Cond, Ct, Place, PortId, Program, Read, Space, TableId, View};

/// Points of a program at the most; beyond, packets are suspended at once and everything runs in order.
const MAX_POINTS: usize = 200;
/// A table with at most this many rules is inlined wherever it is reached.
const INLINE_RULES: usize = 4;
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
    table: TableId,
    /// Runs in the order of packets.
    in_order: bool,
    emitted: Emitted,
    /// Why the packet is dropped if it ends now without output; not yet said at run time.
    reason: Option<DropReason>,
    /// Rules taken and not yet counted.
    taken: Vec<(u32, u32)>,
    /// The packet may have been written since the burst began.
    written: bool,
    /// Something after the current list may write the packet.
    written_later: bool,
    /// Bytes will be put back after the current list: outputs must be copies.
    put_back: bool,
    list_end: End,
    exit_end: End,
}

/// The work.
pub(super) struct Lower<'p> {
    pub program: &'p Program,
    analysis: Analysis,
    counters: Vec<Vec<(u32, u32)>>,
    counter_ids: BTreeMap<Vec<(u32, u32)>, u32>,
    points: Vec<Vec<Stmt>>,
    functions: Vec<Function>,
    function_ids: HashMap<TableId, u16>,
    pending_functions: Vec<TableId>,
    prepares: Vec<u16>,
    ct_points: Vec<CtPoint>,
    pub tables: Vec<Vec<u8>>,
    pub fresh: Fresh,
    values: u32,
    spent: u32,
    /// Nothing runs ahead: every packet is suspended at its start.
    all_in_order: bool,
}

/// Plans a program.
pub fn lower(program: &Program) -> Plan {
    let ahead = Lower::new(program, false);
    if !ahead.analysis.counted {
        let ahead = ahead.run();
        if ahead.points.len() <= MAX_POINTS {
            return ahead;
        }
    }
    Lower::new(program, true).run()
}

impl<'p> Lower<'p> {
    fn new(program: &'p Program, all_in_order: bool) -> Lower<'p> {
        Lower {
            program,
            analysis: analyse(program),
            counters: Vec::new(),
            counter_ids: BTreeMap::new(),
            points: Vec::new(),
            functions: Vec::new(),
            function_ids: HashMap::new(),
            pending_functions: Vec::new(),
            prepares: Vec::new(),
            ct_points: Vec::new(),
            tables: Vec::new(),
            fresh: Fresh::default(),
            values: 0,
            spent: 0,
            all_in_order,
        }
    }

    fn run(mut self) -> Plan {
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
        if !self.all_in_order && (!self.functions.is_empty() || self.program.metadata_words > 0) {
            prefix.push(Stmt::Clear);
        }
        prefix.append(&mut body);
        self.end_body();
        let mut functions = std::mem::take(&mut self.functions);
        functions.sort_by_key(|f| self.function_ids[&self.table_by_name(&f.name)]);
        Plan {
            prefix,
            meta: describe(self.program, self.counters, self.points.len()),
            points: self.points,
            functions,
            prepares: self.prepares,
            ct_points: self.ct_points,
            tables: self.tables,
            vlan_limit: u32::from(self.program.options.vlan_limit),
            values: self.values,
        }
    }

    fn table_by_name(&self, name: &str) -> TableId {
        let at = self.program.tables.iter().position(|t| t.name == name).unwrap_or(0);
        TableId(at as u16)
    }

    /// A packet as it comes in.
    fn start(&self) -> State {
        let mut facts = Facts::new(self.program.ports.len());
        for field in [Field::CtState, Field::CtZone, Field::CtMark, Field::CtLabel] {
            facts.set(&table_read(field), 0);
        }
        State {
            facts,
            values: Values::default(),
            table: self.program.entry,
            in_order: false,
            emitted: Emitted::No,
            reason: None,
            taken: Vec::new(),
            written: false,
            written_later: false,
            put_back: false,
            list_end: End::Packet,
            exit_end: End::Packet,
        }
    }

    /// Values are numbered anew in the next body.
    fn end_body(&mut self) {
        self.values = self.values.max(self.fresh.value);
        self.fresh = Fresh::default();
        self.spent = 0;
    }

    /// Runs `make` for a body of its own, leaving the current one as it is.
    fn separate(&mut self, make: impl FnOnce(&mut Self, &mut Vec<Stmt>)) -> Vec<Stmt> {
        let fresh = std::mem::take(&mut self.fresh);
        let spent = std::mem::take(&mut self.spent);
        let mut body = Vec::new();
        make(self, &mut body);
        self.end_body();
        self.fresh = fresh;
        self.spent = spent;
        body
    }

    /// A table as a function: nothing is known of the packet.
    fn function(&mut self, table: TableId) {
        let body = self.separate(|lower, out| {
            let mut state = lower.start();
            state.facts = Facts::new(lower.program.ports.len());
            state.values.lookup_port_is_parameter = true;
            state.in_order = true;
            state.emitted = Emitted::Maybe;
            state.written = true;
            state.written_later = true;
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
        let ordered = self.analysis.table(table).ordered;
        let own_function = self.is_function(table);
        if own_function && ordered && !state.in_order {
            return self.suspend(state, None, out, move |lower, state, out| lower.visit(table, port, state, out));
        }
        if own_function {
            return self.call_function(table, port, state, out);
        }
        state.table = table;
        state.facts.forget(|space| *space == Space::Field(Field::InPort) && port.is_some());
        if let Some(port) = port {
            state.facts.set(&table_read(Field::InPort), u128::from(port.0));
        }
        self.rules_seen_by(port.is_some(), state, out);
    }

    fn is_function(&self, table: TableId) -> bool {
        let t = usize::from(table.0);
        let rules = self.program.tables[t].rules.len();
        self.analysis.cyclic[t]
            || (self.analysis.reached[t] > 1 && rules > INLINE_RULES)
            || (self.spent > BODY_BUDGET && rules > 0)
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

    /// The first counter of the state's table, whose rules are counted by number.
    pub(super) fn counters_of(&mut self, state: &State) -> u32 {
        let table = u32::from(state.table.0);
        let base = self.counters.len() as u32;
        // Each place gets the rules taken before, so that they are counted with it.
        for rule in 0..self.rules_of(state).len() as u32 {
            let mut rules = state.taken.clone();
            rules.push((table, rule));
            self.counters.push(rules);
        }
        base
    }

    /// Takes a rule that stands for all with its actions: the one that was found is counted, `base` and the low 32 bits of
    /// `found` say where.
    pub(super) fn take_counted(&mut self, rule: usize, base: u32, found: Value, mut state: State, out: &mut Vec<Stmt>) {
        out.push(Stmt::CountAt { base, place: found });
        state.taken.clear();
        self.spent += 1;
        let program = self.program;
        match program.table(state.table).rules[rule].actions.as_slice() {
            [] => {
                self.because(DropReason::Policy, &mut state);
                self.end_list(state, out);
            }
            actions => self.actions(actions, state, out),
        }
    }

    /// Takes a rule: counts it and does what it says.
    pub(super) fn take(&mut self, rule: usize, mut state: State, out: &mut Vec<Stmt>) {
        self.spent += 1;
        state.taken.push((u32::from(state.table.0), rule as u32));
        let program = self.program;
        let rules = &program.table(state.table).rules;
        match rules.get(rule) {
            None => self.because(DropReason::NoMatch, &mut state),
            Some(rule) if rule.actions.is_empty() => self.because(DropReason::Policy, &mut state),
            Some(rule) => return self.actions(&rule.actions, state, out),
        }
        self.end_list(state, out);
    }

    // ---- actions ------------------------------------------------------------------------------------------------------

    fn actions(&mut self, actions: &'p [Action], mut state: State, out: &mut Vec<Stmt>) {
        self.spent += 1;
        let Some((action, rest)) = actions.split_first() else { return self.end_list(state, out) };
        let ordered = self.analysis.of(std::slice::from_ref(action)).ordered;
        // What would have to come back here after an ordered action cannot be suspended inside.
        let atomic = match action {
            Action::Ct(_) | Action::Normal => true,
            Action::Goto(_) => false,
            Action::Call { .. } => !(rest.is_empty() || ends_packet(rest, &state)),
            Action::Clone(_) => !ends_packet(rest, &state),
            _ => false,
        };
        if ordered && atomic && !state.in_order {
            let zone = match action {
                Action::Ct(Ct { zone: crate::hir::Value::Const(zone), .. }) if !state.written => Some(*zone as u16),
                _ => None,
            };
            return self.suspend(state, zone, out, move |lower, state, out| lower.actions(actions, state, out));
        }
        match action {
            Action::Output(port) => return self.output(*port, rest, state, out),
            Action::InPort | Action::Flood | Action::All | Action::Normal => {
                let how = self.how(rest, &state);
                self.say_reason(&mut state, out);
                out.push(match action {
                    Action::InPort => Stmt::EmitIn { how },
                    Action::Normal => Stmt::Normal { how },
                    _ => Stmt::Flood { how },
                });
                state.emitted = if *action == Action::InPort { Emitted::Yes } else { maybe(state.emitted) };
            }
            Action::Drop => {
                self.because(DropReason::Policy, &mut state);
                return self.exit(state, out);
            }
            Action::Exit => return self.exit(state, out),
            Action::Set { place, value } => self.set(place, value, &mut state, out),
            Action::DecTtl => {
                let expired = self.dec_ttl(&mut state, out);
                let mut over = state.clone();
                self.because(DropReason::Ttl, &mut over);
                let mut then = Vec::new();
                self.end_list(over, &mut then);
                out.push(Stmt::If { cond: Expr::Value(expired), then, otherwise: vec![] });
            }
            Action::Ct(ct) => self.ct(ct, &mut state, out),
            Action::CtClear => self.ct_clear(&mut state, out),
            Action::Goto(table) => return self.table(*table, None, state, out),
            Action::Call { table, in_port } if rest.is_empty() || ends_packet(rest, &state) => {
                return self.table(*table, *in_port, state, out);
            }
            Action::Call { table, in_port } => self.call(*table, *in_port, rest, &mut state, out),
            Action::Clone(body) if ends_packet(rest, &state) => return self.actions(body, state, out),
            Action::Clone(body) => self.clone_packet(body, rest, &mut state, out),
        }
        self.actions(rest, state, out);
    }

    fn output(&mut self, port: PortId, rest: &'p [Action], mut state: State, out: &mut Vec<Stmt>) {
        let back = is_in_port(port);
        match state.facts.simplify(&back) {
            Known::True => {
                self.because(DropReason::InPort, &mut state);
                self.actions(rest, state, out);
            }
            Known::False => {
                self.emit(port, rest, &mut state, out);
                self.actions(rest, state, out);
            }
            Known::Open(_) => {
                let cond = Expr::InPort.with(Op::Eq, u64::from(port.0));
                let (mut then, mut otherwise) = (Vec::new(), Vec::new());
                if rest.is_empty() && state.list_end == End::Packet {
                    let mut left_out = state.clone();
                    self.because(DropReason::InPort, &mut left_out);
                    self.end_list(left_out, &mut then);
                    self.emit(port, rest, &mut state, &mut otherwise);
                    self.end_list(state, &mut otherwise);
                    out.push(Stmt::If { cond, then, otherwise });
                    return;
                }
                self.say_reason(&mut state, out);
                let before = state.emitted;
                then.push(Stmt::DropIfUnsent(DropReason::InPort));
                otherwise.push(Stmt::Emit { port: port.0, how: self.how(rest, &state) });
                out.push(Stmt::If { cond, then, otherwise });
                state.emitted = maybe(before);
                self.actions(rest, state, out);
            }
        }
    }

    /// Sends the packet to a port it did not come in by.
    fn emit(&mut self, port: PortId, rest: &[Action], state: &mut State, out: &mut Vec<Stmt>) {
        let only = rest.is_empty() && state.list_end == End::Packet && state.emitted == Emitted::No && !state.put_back;
        if only {
            out.push(Stmt::Verdict(Verdict::send(port.0).0));
        } else {
            out.push(Stmt::Emit { port: port.0, how: self.how(rest, state) });
        }
        state.emitted = Emitted::Yes;
    }

    /// Whether an output may share the packet's bytes.
    fn how(&self, rest: &[Action], state: &State) -> Emit {
        let changes = state.put_back || state.written_later || self.analysis.of(rest).writes;
        if changes { Emit::Copy } else { Emit::Share }
    }

    fn set(&mut self, place: &Place, value: &crate::hir::Value, state: &mut State, out: &mut Vec<Stmt>) {
        let new = match value {
            crate::hir::Value::Const(value) => Wide::constant(*value),
            crate::hir::Value::Read(from) => self.site(state, out).read(&Read { place: *from, view: View::Action }),
        };
        let whole = match place.space {
            Space::Field(field) => Place::field(field),
            Space::Meta => {
                let first = place.offset / 64 * 64;
                let words = (place.offset + u16::from(place.width)).div_ceil(64) - place.offset / 64;
                Place { space: Space::Meta, offset: first, width: (words * 64) as u8 }
            }
        };
        let read = Read { place: whole, view: View::Action };
        let below = u32::from(whole.width) - u32::from(place.offset - whole.offset) - u32::from(place.width);
        let merged = if *place == whole {
            new
        } else {
            let old = self.site(state, out).read(&read);
            merge(old, new, below, place.width)
        };
        match place.space {
            Space::Meta => {
                let first = whole.offset / 64;
                // Both words are computed before either is stored.
                let (high, low) = (self.bind(merged.high, out), self.bind(merged.low, out));
                if whole.width > 64 {
                    out.push(Stmt::SetVar { word: first, value: high });
                    out.push(Stmt::SetVar { word: first + 1, value: low });
                } else {
                    out.push(Stmt::SetVar { word: first, value: low });
                }
                state.facts.forget(|space| *space == Space::Meta);
                if let (crate::hir::Value::Const(value), true) = (value, place.width <= 64) {
                    state.facts.set(&Read { place: *place, view: View::Table }, *value);
                }
            }
            Space::Field(field) => {
                let ethernet = match field {
                    Field::EthDst => Some(0),
                    Field::EthSrc => Some(6),
                    _ => None,
                };
                if let Some(offset) = ethernet {
                    out.push(Stmt::Store { base: Base::Frame, offset, bytes: 6, value: merged.low });
                    state.written = true;
                } else if let Some(target) = field.target() {
                    out.push(Stmt::Set { target, high: merged.high, low: merged.low });
                    state.written = true;
                }
                self.forget_field(field, state);
                if let (crate::hir::Value::Const(value), Some(Header::Eth)) = (value, field.header())
                    && *place == whole
                {
                    state.facts.set(&table_read(field), *value);
                }
            }
        }
    }

    /// Decrements the TTL; a value that is 1 if it has expired. The header of IPv4 is written in place: the TTL is the high
    /// byte of a word of the checksum's sum, which thus falls by 0x100 (RFC 1624, equation 3).
    fn dec_ttl(&mut self, state: &mut State, out: &mut Vec<Stmt>) -> Value {
        let expired = self.fresh.value();
        state.written = true;
        if state.facts.constant(&table_read(Field::EthType)) != Some(0x0800) {
            out.push(Stmt::DecTtl { expired });
            self.forget_field(Field::IpTtl, state);
            return expired;
        }
        let mut site = self.site(state, out);
        let ttl = site.read(&table_read(Field::IpTtl)).low;
        let base = site.l3_offset();
        out.push(Stmt::Let(expired, ttl.clone().with(Op::Lt, 2)));
        let (sum, folded) = (self.fresh.value(), self.fresh.value());
        let old = Expr::Load { base, offset: 10, bytes: 2 };
        let sum_of = Expr::Const(0xffff).op(Op::Sub, old).with(Op::Add, 0xfeff);
        let fold = Expr::Value(sum).with(Op::And, 0xffff).op(Op::Add, Expr::Value(sum).with(Op::Shr, 16));
        let new = Expr::Const(0xffff).op(Op::Sub, Expr::Value(folded));
        let write = vec![
            Stmt::Let(sum, sum_of),
            Stmt::Let(folded, fold),
            Stmt::Store { base, offset: 8, bytes: 1, value: ttl.with(Op::Sub, 1) },
            Stmt::Store { base, offset: 10, bytes: 2, value: new },
        ];
        out.push(Stmt::If { cond: Expr::Value(expired).with(Op::Eq, 0), then: write, otherwise: vec![] });
        self.forget_field(Field::IpTtl, state);
        expired
    }

    /// The expression as a value, unless it is known.
    fn bind(&mut self, expr: Expr, out: &mut Vec<Stmt>) -> Expr {
        if matches!(expr, Expr::Const(_) | Expr::Value(_)) {
            return expr;
        }
        let value = self.fresh.value();
        out.push(Stmt::Let(value, expr));
        Expr::Value(value)
    }

    fn forget_field(&self, field: Field, state: &mut State) {
        let tag = matches!(field, Field::VlanVid | Field::VlanPcp);
        state.facts.forget(|space| {
            *space == Space::Field(field)
                || tag && matches!(space, Space::Field(Field::VlanVid | Field::VlanPcp | Field::VlanTci))
        });
        state.values.forget_field(field);
    }

    fn ct(&mut self, ct: &Ct, state: &mut State, out: &mut Vec<Stmt>) {
        let zone = match ct.zone {
            crate::hir::Value::Const(zone) => Expr::Const(zone as u64),
            crate::hir::Value::Read(place) => self.site(state, out).read(&Read { place, view: View::Action }).low,
        };
        let (mark, mark_mask) = ct.mark.unwrap_or_default();
        let (label, label_mask) = ct.label.unwrap_or_default();
        let words = |wide: u128| [(wide >> 64) as u64, wide as u64];
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        let point = CtPoint {
            flags: flag(ct.commit, CtPoint::COMMIT)
                | flag(ct.force, CtPoint::FORCE)
                | flag(state.written, CtPoint::FRESH),
            mark,
            mark_mask,
            reserved: 0,
            label: words(label),
            label_mask: words(label_mask),
        };
        let point = self.ct_points.iter().position(|p| *p == point).unwrap_or_else(|| {
            self.ct_points.push(point);
            self.ct_points.len() - 1
        });
        let value = self.fresh.value();
        let known_zone = if let Expr::Const(zone) = zone { Some(zone) } else { None };
        out.push(Stmt::Ct { state: value, point: point as u16, zone });
        forget_ct(state);
        state.values.hold_ct_state(value);
        let trk = u128::from(pipec_abi::ct::state::TRK);
        state.facts.set_bits(&table_read(Field::CtState), trk, trk);
        if let Some(zone) = known_zone {
            state.facts.set(&table_read(Field::CtZone), u128::from(zone as u16));
        }
    }

    fn ct_clear(&mut self, state: &mut State, out: &mut Vec<Stmt>) {
        out.push(Stmt::CtClear);
        forget_ct(state);
        for field in [Field::CtState, Field::CtZone, Field::CtMark, Field::CtLabel] {
            state.facts.set(&table_read(field), 0);
        }
    }

    /// Calls a table and comes back.
    fn call(&mut self, table: TableId, port: Option<PortId>, rest: &[Action], state: &mut State, out: &mut Vec<Stmt>) {
        self.say_all(state, out);
        let effects = self.analysis.table(table);
        let depth = self.analysis.counted.then(|| self.depth(out));
        if self.is_function(table) {
            self.enter(table, state, out);
            let (result, function) = (self.fresh.value(), self.function_id(table));
            out.push(Stmt::Call { result, function, in_port: port.map(|p| p.0) });
            self.after_function(result, state, out);
        } else {
            let label = self.label();
            let mut inside = state.clone();
            inside.list_end = End::Block(label);
            inside.written_later |= self.analysis.of(rest).writes;
            let mut body = Vec::new();
            self.table(table, port, inside, &mut body);
            out.push(Stmt::Block(label, body));
        }
        if let Some(depth) = depth {
            out.push(Stmt::SetDepth(depth));
        }
        if effects.emits {
            state.emitted = maybe(state.emitted);
        } else if state.emitted == Emitted::No {
            state.emitted = Emitted::Maybe; // the reason has been said at run time
        }
        if effects.writes {
            state.written = true;
            forget_packet(state);
        }
        if effects.tracks {
            forget_ct(state);
        }
        if effects.sets_vars {
            state.facts.forget(|space| *space == Space::Meta);
        }
    }

    /// Runs a list on the packet as it is, and puts all back.
    fn clone_packet(&mut self, body: &'p [Action], rest: &[Action], state: &mut State, out: &mut Vec<Stmt>) {
        self.say_all(state, out);
        let effects = self.analysis.of(body);
        if effects.writes {
            out.push(Stmt::Save);
        }
        let vars = if effects.sets_vars { self.program.metadata_words } else { 0 };
        let vars: Vec<Expr> = (0..vars).map(|word| self.bind(Expr::Var(word), out)).collect();
        let ct = effects.tracks.then(|| self.read_ct(state, out));
        let depth = self.analysis.counted.then(|| self.depth(out));
        let label = self.label();
        let mut inside = state.clone();
        inside.list_end = End::Block(label);
        inside.exit_end = End::Block(label);
        inside.put_back |= effects.writes;
        inside.written_later |= self.analysis.of(rest).writes;
        let mut block = Vec::new();
        self.actions(body, inside, &mut block);
        out.push(Stmt::Block(label, block));
        if effects.writes {
            out.push(Stmt::Restore);
            state.written = true;
        }
        for (word, value) in vars.into_iter().enumerate() {
            out.push(Stmt::SetVar { word: word as u16, value });
        }
        if let Some(ct) = ct {
            out.push(Stmt::SetCt(ct));
        }
        if let Some(depth) = depth {
            out.push(Stmt::SetDepth(depth));
        }
        state.emitted = maybe(state.emitted);
    }

    /// How deep the packet is, as a value.
    fn depth(&mut self, out: &mut Vec<Stmt>) -> Value {
        let depth = self.fresh.value();
        out.push(Stmt::Depth(depth));
        depth
    }

    /// `ct.*` as values.
    fn read_ct(&mut self, state: &mut State, out: &mut Vec<Stmt>) -> [Value; 5] {
        let parts = [CtPart::State, CtPart::Zone, CtPart::Mark, CtPart::LabelHigh, CtPart::LabelLow];
        // Before any `ct()` of a path the context may hold the last packet's.
        let clear = state.facts.constant(&table_read(Field::CtState)) == Some(0);
        parts.map(|part| {
            let value = self.fresh.value();
            out.push(Stmt::Let(value, if clear { Expr::Const(0) } else { Expr::Ct(part) }));
            value
        })
    }

    // ---- ends ---------------------------------------------------------------------------------------------------------

    /// Notes why the packet would be dropped if it ended now.
    fn because(&self, reason: DropReason, state: &mut State) {
        if state.emitted != Emitted::Yes {
            state.reason = Some(reason);
        }
    }

    /// Says at run time what was only noted, before paths meet or an `Env` is asked.
    fn say_reason(&self, state: &mut State, out: &mut Vec<Stmt>) {
        if let Some(reason) = state.reason.take() {
            out.push(Stmt::DropIfUnsent(reason));
            if state.emitted == Emitted::No {
                state.emitted = Emitted::Maybe;
            }
        }
    }

    /// Says the reason and counts the rules taken.
    fn say_all(&mut self, state: &mut State, out: &mut Vec<Stmt>) {
        self.say_reason(state, out);
        self.count(state, out);
    }

    fn count(&mut self, state: &mut State, out: &mut Vec<Stmt>) {
        if state.taken.is_empty() {
            return;
        }
        let rules = std::mem::take(&mut state.taken);
        let next = self.counters.len() as u32;
        let id = *self.counter_ids.entry(rules.clone()).or_insert(next);
        if id == next {
            self.counters.push(rules);
        }
        out.push(Stmt::Count(id));
    }

    /// The list of actions is over.
    fn end_list(&mut self, state: State, out: &mut Vec<Stmt>) {
        self.leave(state, |state| state.list_end, 0, out);
    }

    /// The packet is over, or the clone.
    fn exit(&mut self, state: State, out: &mut Vec<Stmt>) {
        self.leave(state, |state| state.exit_end, 1, out);
    }

    fn leave(&mut self, mut state: State, end: fn(&State) -> End, code: u8, out: &mut Vec<Stmt>) {
        match end(&state) {
            End::Packet => {
                self.count(&mut state, out);
                match state.emitted {
                    Emitted::No => {
                        let reason = state.reason.unwrap_or(DropReason::Policy);
                        out.push(Stmt::Verdict(Verdict::drop(reason).0));
                    }
                    Emitted::Maybe => self.say_reason(&mut state, out),
                    Emitted::Yes => {}
                }
                out.push(Stmt::Return(1));
            }
            End::Function => {
                self.say_all(&mut state, out);
                out.push(Stmt::Return(code));
            }
            End::Block(label) => {
                self.say_all(&mut state, out);
                out.push(Stmt::Break(label));
            }
        }
    }

    /// The packet waits for its turn; `go_on` makes what it does then.
    fn suspend(
        &mut self,
        mut state: State,
        zone: Option<u16>,
        out: &mut Vec<Stmt>,
        go_on: impl FnOnce(&mut Self, State, &mut Vec<Stmt>),
    ) {
        let point = self.points.len();
        self.points.push(Vec::new());
        let prepare = zone.and_then(|zone| {
            let at = self.prepares.iter().position(|z| *z == zone).unwrap_or_else(|| {
                self.prepares.push(zone);
                self.prepares.len() - 1
            });
            (at < 8).then_some(at as u8)
        });
        self.prepares.truncate(8);
        out.push(Stmt::Suspend { point: point.min(usize::from(u8::MAX) - 1) as u8, prepare });
        out.push(Stmt::Return(1));
        state.in_order = true;
        state.values.clear();
        let body = self.separate(|lower, out| go_on(lower, state, out));
        self.points[point] = body;
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
        Site { values: &mut state.values, facts: &state.facts, fresh: &mut self.fresh, out }
    }

    /// The rules of the state's table.
    pub(super) fn rules_of(&self, state: &State) -> &'p [crate::hir::Rule] {
        &self.program.table(state.table).rules
    }
}

/// Whether the packet ends behind the current action: nothing follows but `ct_clear`, here and in all callers.
fn ends_packet(rest: &[Action], state: &State) -> bool {
    state.list_end == End::Packet && state.exit_end == End::Packet && rest.iter().all(|a| *a == Action::CtClear)
}

/// `in_port == port`, as actions see it.
fn is_in_port(port: PortId) -> Cond {
    let read = Read { place: Place::field(Field::InPort), view: View::Action };
    Cond::Compare(read, crate::hir::Match::Masked { value: u128::from(port.0), mask: ones(16) })
}

pub(super) fn table_read(field: Field) -> Read {
    Read { place: Place::field(field), view: View::Table }
}

fn maybe(emitted: Emitted) -> Emitted {
    if emitted == Emitted::Yes { Emitted::Yes } else { Emitted::Maybe }
}

fn forget_ct(state: &mut State) {
    state
        .facts
        .forget(|space| matches!(space, Space::Field(Field::CtState | Field::CtZone | Field::CtMark | Field::CtLabel)));
    state.values.forget_ct();
}

/// The packet's bytes may have changed.
fn forget_packet(state: &mut State) {
    state
        .facts
        .forget(|space| matches!(space, Space::Field(field) if field.target().is_some() || *field == Field::VlanTci));
    for &field in Field::ALL.iter().filter(|f| f.target().is_some()) {
        state.values.forget_field(field);
    }
}

/// `old` with `width` bits above the lowest `below` replaced by `new`.
fn merge(old: Wide, new: Wide, below: u32, width: u8) -> Wide {
    let mask = ones(width) << below;
    let part = |old: Expr, new: Expr, mask: u64| old.with(Op::And, !mask).op(Op::Or, new.with(Op::And, mask));
    let shifted = match below {
        0 => new,
        1..64 => Wide {
            high: new
                .high
                .with(Op::Shl, u64::from(below))
                .op(Op::Or, new.low.clone().with(Op::Shr, u64::from(64 - below))),
            low: new.low.with(Op::Shl, u64::from(below)),
        },
        _ => Wide { high: new.low.with(Op::Shl, u64::from(below - 64)), low: Expr::Const(0) },
    };
    Wide { high: part(old.high, shifted.high, (mask >> 64) as u64), low: part(old.low, shifted.low, mask as u64) }
}
