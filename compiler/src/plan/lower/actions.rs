//! Lists of actions: one after another, those that come back, and how an output is sent.

use pipec_abi::{DropReason, Emit, Verdict};

use super::ends::{ends_packet, maybe};
use super::shapes::forget_frame;
use super::writes::{forget_ct, forget_packet};
use super::{Emitted, End, Lower, State};
use crate::field::Field;
use crate::hir::{self, Action, Cond, Ct, Match, Place, PortId, Read, Space, TableId, View};
use crate::plan::code::{Expr, Op, Stmt, Value};
use crate::plan::facts::{Known, ones};
use crate::plan::report::Copied;

impl<'p> Lower<'p> {
    pub(super) fn actions(&mut self, actions: &'p [Action], mut state: State, out: &mut Vec<Stmt>) {
        self.spent += 1;
        let Some((action, rest)) = actions.split_first() else {
            return match state.end_by.take() {
                Some(verdict) => self.end_by(verdict, state, out),
                None => self.end_list(state, out),
            };
        };
        let ordered = self.analysis.of(std::slice::from_ref(action)).ordered;
        // What would have to come back here after an ordered action cannot be suspended inside.
        let atomic = match action {
            Action::Ct(_) | Action::Normal | Action::Extern { .. } | Action::Meter(_) | Action::Learn(_) => true,
            Action::Goto(_) => false,
            Action::Call { .. } => !(rest.is_empty() || ends_packet(rest, &state)),
            Action::Clone(_) => !ends_packet(rest, &state),
            Action::Group(group) => !ends_packet(rest, &state) || self.runs_several(*group),
            _ => false,
        };
        if ordered && atomic && !state.in_order {
            let zone = match action {
                Action::Ct(Ct { zone: hir::Value::Const(zone), .. }) if !state.written => Some(*zone as u16),
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
            Action::Learn(learn) => self.learn(learn, &mut state, out),
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
            Action::Extern { action, args } => self.external(*action, args, &mut state, out),
            Action::CtClear => self.ct_clear(&mut state, out),
            Action::Goto(table) => return self.table(*table, None, state, out),
            Action::Call { table, in_port } if rest.is_empty() || ends_packet(rest, &state) => {
                return self.table(*table, *in_port, state, out);
            }
            Action::Call { table, in_port } => self.call(*table, *in_port, rest, &mut state, out),
            Action::Clone(body) if ends_packet(rest, &state) => return self.actions(body, state, out),
            Action::Clone(body) => self.clone_packet(body, rest, &mut state, out),
            Action::OutputTo(number) => return self.output_to(number, None, rest, state, out),
            Action::OutputPart { port, max_len } => return self.output_to(port, Some(*max_len), rest, state, out),
            Action::Mirror(port) => {
                self.say_reason(&mut state, out);
                self.emit(*port, rest, &mut state, out);
            }
            Action::Controller { reason, max_len } => {
                self.say_reason(&mut state, out);
                out.push(Stmt::Controller { reason: *reason, max_len: *max_len });
                state.emitted = maybe(state.emitted);
            }
            Action::Count(counter) => out.push(Stmt::Count(u32::from(counter.0))),
            Action::Group(group) => return self.group(*group, rest, state, out),
            Action::Meter(meter) => self.meter(*meter, &mut state, out),
            Action::DecMplsTtl { header } => {
                let expired = self.dec_mpls_ttl(*header, &mut state, out);
                let mut over = state.clone();
                self.because(DropReason::Ttl, &mut over);
                let mut then = Vec::new();
                self.end_list(over, &mut then);
                out.push(Stmt::If { cond: expired, then, otherwise: vec![] });
            }
            shape => self.shape(shape, &mut state, out),
        }
        self.actions(rest, state, out);
    }

    pub(super) fn output(&mut self, port: PortId, rest: &'p [Action], mut state: State, out: &mut Vec<Stmt>) {
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
    pub(super) fn emit(&mut self, port: PortId, rest: &[Action], state: &mut State, out: &mut Vec<Stmt>) {
        let only = rest.is_empty() && state.list_end == End::Packet && state.emitted == Emitted::No && !state.put_back;
        if only {
            out.push(Stmt::Verdict(Verdict::send(port.0).0));
        } else {
            out.push(Stmt::Emit { port: port.0, how: self.how(rest, state) });
        }
        state.emitted = Emitted::Yes;
    }

    /// Whether an output may share the packet's bytes.
    pub(super) fn how(&mut self, rest: &[Action], state: &State) -> Emit {
        let after = self.analysis.of(rest).writes;
        let changes = state.put_back || state.written_later || after;
        match (after, state.put_back, changes) {
            (true, ..) => self.copied(state, "an action behind the output writes the packet"),
            (_, true, _) => self.copied(state, "the output is in a clone, behind which the packet is put back"),
            (.., true) => self.copied(state, "the table is called, and its caller may write the packet"),
            _ => {}
        }
        if changes { Emit::Copy } else { Emit::Share }
    }

    /// Calls an action in Rust, which may write the packet and may end it.
    fn external(&mut self, action: u16, args: &[hir::Value], state: &mut State, out: &mut Vec<Stmt>) {
        let mut arguments = Vec::new();
        for arg in args {
            let word = self.value(arg, state, out).low;
            arguments.push(self.bind(word, out));
        }
        let dropped = self.fresh.value();
        out.push(Stmt::External { dropped, action, arguments });
        let mut over = state.clone();
        self.because(DropReason::Policy, &mut over);
        let mut then = Vec::new();
        self.exit(over, &mut then);
        out.push(Stmt::If { cond: Expr::Value(dropped), then, otherwise: vec![] });
        forget_packet(state);
        // Its bytes may have become another kind of packet.
        state.facts.forget(|space| matches!(space, Space::Field(field) if !field.is_metadata()));
        state.values.forget_packet();
        state.written = true;
    }

    /// Calls a table and comes back.
    pub(super) fn call(
        &mut self,
        table: TableId,
        port: Option<PortId>,
        rest: &[Action],
        state: &mut State,
        out: &mut Vec<Stmt>,
    ) {
        self.say_all(state, out);
        let effects = self.analysis.table(table);
        let depth = self.analysis.counted.then(|| self.depth(out));
        if self.is_function(table) {
            self.enter(table, state, out);
            self.decide_call(table);
            if state.written_later || state.put_back || self.analysis.of(rest).writes {
                self.written_behind.insert(table);
            }
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
        if effects.reshapes {
            forget_frame(state);
        }
        if effects.tracks {
            forget_ct(state);
            self.may_be_untracked = true;
        }
        if effects.sets_vars {
            state.facts.forget(|space| *space == Space::Meta);
        }
    }

    /// Runs a list on the packet as it is, and puts all back.
    pub(super) fn clone_packet(&mut self, body: &'p [Action], rest: &[Action], state: &mut State, out: &mut Vec<Stmt>) {
        self.say_all(state, out);
        let effects = self.analysis.of(body);
        if effects.writes {
            self.copied(state, "a clone writes the packet, which is saved and put back");
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

    /// Notes that the packet is copied here.
    fn copied(&mut self, state: &State, why: &'static str) {
        let body = self.body;
        self.report.copied(Copied { body, table: state.table, why });
    }

    /// How deep the packet is, as a value.
    pub(super) fn depth(&mut self, out: &mut Vec<Stmt>) -> Value {
        let depth = self.fresh.value();
        out.push(Stmt::Depth(depth));
        depth
    }
}

/// `in_port == port`, as actions see it.
pub(super) fn is_in_port(port: PortId) -> Cond {
    let read = Read { place: Place::field(Field::InPort), view: View::Action };
    Cond::Compare(read, Match::Masked { value: u128::from(port.0), mask: ones(16) })
}
