//! Where paths end: why a packet is dropped, what is counted, and how it waits for its turn.

use pipec_abi::{DropReason, Verdict};

use super::{Emitted, End, Lower, State};
use crate::hir::Action;
use crate::plan::code::{Expr, Op, Stmt};
use crate::plan::report::Body;
use crate::plan::values::Wide;

impl Lower<'_> {
    /// Notes why the packet would be dropped if it ended now.
    pub(super) fn because(&self, reason: DropReason, state: &mut State) {
        if state.emitted != Emitted::Yes {
            state.reason = Some(reason);
        }
    }

    /// Says at run time what was only noted, before paths meet or an `Env` is asked.
    pub(super) fn say_reason(&self, state: &mut State, out: &mut Vec<Stmt>) {
        if let Some(reason) = state.reason.take() {
            out.push(Stmt::DropIfUnsent(reason));
            if state.emitted == Emitted::No {
                state.emitted = Emitted::Maybe;
            }
        }
    }

    /// Says the reason and counts the rules taken.
    pub(super) fn say_all(&mut self, state: &mut State, out: &mut Vec<Stmt>) {
        self.say_reason(state, out);
        self.count(state, out);
    }

    pub(super) fn count(&mut self, state: &mut State, out: &mut Vec<Stmt>) {
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
    pub(super) fn end_list(&mut self, state: State, out: &mut Vec<Stmt>) {
        self.leave(state, |state| state.list_end, 0, out);
    }

    /// The packet is over: what becomes of it is data.
    pub(super) fn end_by(&mut self, verdict: Expr, mut state: State, out: &mut Vec<Stmt>) {
        self.count(&mut state, out);
        let back = Verdict::drop(DropReason::InPort).0;
        let cond = verdict.clone().op(Op::Eq, Expr::InPort);
        out.push(Stmt::If { cond, then: vec![Stmt::Verdict(back)], otherwise: vec![Stmt::VerdictOf(verdict)] });
        out.push(Stmt::Return(1));
    }

    /// The packet is over, or the clone.
    pub(super) fn exit(&mut self, state: State, out: &mut Vec<Stmt>) {
        self.leave(state, |state| state.exit_end, 1, out);
    }

    pub(super) fn leave(&mut self, mut state: State, end: fn(&State) -> End, code: u8, out: &mut Vec<Stmt>) {
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

    /// Arguments that are values are put where they wait with the packet.
    fn keep_args(&mut self, state: &State, out: &mut Vec<Stmt>) {
        let first = usize::from(self.program.metadata_words);
        for (k, word) in waiting(&state.args).enumerate() {
            out.push(Stmt::SetVar { word: (first + k) as u16, value: word.clone() });
            self.waiting_args = self.waiting_args.max(k + 1);
        }
    }

    /// Takes them from there.
    fn fetch_args(&mut self, state: &mut State, out: &mut Vec<Stmt>) {
        let words = state.args.iter_mut().flat_map(|arg| [&mut arg.high, &mut arg.low]);
        let words = words.filter(|word| !matches!(word, Expr::Const(_)));
        for (word, at) in words.zip(self.program.metadata_words..) {
            let value = self.fresh.value();
            out.push(Stmt::Let(value, Expr::Var(at)));
            *word = Expr::Value(value);
        }
    }

    /// The packet waits for its turn; `go_on` makes what it does then.
    pub(super) fn suspend(
        &mut self,
        mut state: State,
        zone: Option<u16>,
        out: &mut Vec<Stmt>,
        go_on: impl FnOnce(&mut Self, State, &mut Vec<Stmt>),
    ) {
        self.keep_args(&state, out);
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
        self.waits(&state, prepare.filter(|at| *at < 8).and(zone));
        out.push(Stmt::Suspend { point: point.min(usize::from(u8::MAX) - 1) as u8, prepare });
        out.push(Stmt::Return(1));
        state.in_order = true;
        state.values.clear();
        let body = self.separate(Body::Point(point.min(254) as u8), |lower, out| {
            lower.fetch_args(&mut state, out);
            go_on(lower, state, out);
        });
        self.points[point] = body;
    }
}

/// Words of arguments that are not constants.
fn waiting(args: &[Wide]) -> impl Iterator<Item = &Expr> {
    args.iter().flat_map(|arg| [&arg.high, &arg.low]).filter(|word| !matches!(word, Expr::Const(_)))
}

/// Whether the packet ends behind the current action: nothing follows but `ct_clear`, here and in all callers.
pub(super) fn ends_packet(rest: &[Action], state: &State) -> bool {
    state.list_end == End::Packet && state.exit_end == End::Packet && rest.iter().all(|a| *a == Action::CtClear)
}

pub(super) fn maybe(emitted: Emitted) -> Emitted {
    if emitted == Emitted::Yes { Emitted::Yes } else { Emitted::Maybe }
}
