//! Groups: buckets run as clones; which of them, the hash or living ports say.

use pipec_abi::DropReason;

use super::ends::{ends_packet, maybe};
use super::{Lower, State};
use crate::hir::{Action, Bucket, Group, GroupId, GroupKind, PortId};
use crate::plan::code::{Expr, Op, Stmt};

impl<'p> Lower<'p> {
    /// Whether a group runs more than one bucket.
    pub(super) fn runs_several(&self, group: GroupId) -> bool {
        let group = self.program.group(group);
        group.kind == GroupKind::All && group.buckets.len() > 1
    }

    /// Runs a group's buckets, and goes on.
    pub(super) fn group(&mut self, id: GroupId, rest: &'p [Action], mut state: State, out: &mut Vec<Stmt>) {
        let program = self.program;
        let group = program.group(id);
        match group.kind {
            GroupKind::All | GroupKind::Indirect => {
                if group.buckets.is_empty() {
                    self.because(DropReason::Group, &mut state);
                }
                let Some((last, others)) = group.buckets.split_last() else { return self.actions(rest, state, out) };
                // The last is no clone where nothing follows, so what others send must not share its bytes.
                let direct = ends_packet(rest, &state);
                let written_later = state.written_later;
                state.written_later |= direct && self.analysis.of(&last.actions).writes;
                for bucket in others {
                    self.clone_packet(&bucket.actions, rest, &mut state, out);
                }
                state.written_later = written_later;
                if direct {
                    return self.actions(&last.actions, state, out);
                }
                self.clone_packet(&last.actions, rest, &mut state, out);
                self.actions(rest, state, out);
            }
            GroupKind::Select => {
                let chosen = self.select(group, &mut state, out);
                self.arms(chosen, &group.buckets, rest, state, out);
            }
            GroupKind::FastFailover => {
                let alive: Vec<Expr> = group.buckets.iter().map(|bucket| self.alive(bucket.watch, out)).collect();
                // How many buckets stand before the first that is alive.
                let mut chosen = Expr::Const(0);
                for alive in alive.into_iter().rev() {
                    let next = chosen.with(Op::Add, 1);
                    chosen = guard(alive.with(Op::Eq, 0), next);
                }
                self.arms(chosen, &group.buckets, rest, state, out);
            }
        }
    }

    /// The number of the bucket that the hash says; behind the last if there is none.
    fn select(&mut self, group: &Group, state: &mut State, out: &mut Vec<Stmt>) -> Expr {
        let weights: Vec<u64> = group.buckets.iter().map(|bucket| bucket.weight.into()).collect();
        let sum: u64 = weights.iter().sum();
        let hash = self.hash(&group.hash, state, out);
        let hash = self.bind(hash, out);
        let at = self.bind(hash.clone().with(Op::Mul, sum).with(Op::Shr, 32), out);
        let known = weights.iter().map(|weight| Expr::Const(*weight)).collect();
        let chosen = self.share(&at, known, out);
        if group.buckets.iter().all(|bucket| bucket.watch.is_none()) {
            return chosen;
        }
        let chosen = self.bind(chosen, out);
        let mut lives = Vec::new();
        for bucket in &group.buckets {
            let alive = self.alive(bucket.watch, out);
            lives.push(alive);
        }
        let mut is_alive = Expr::Const(0);
        for (k, alive) in lives.iter().enumerate() {
            let this = chosen.clone().with(Op::Eq, k as u64);
            is_alive = is_alive.op(Op::Or, guard(this, alive.clone()));
        }
        let is_alive = self.bind(is_alive, out);
        let left: Vec<Expr> =
            lives.into_iter().zip(&weights).map(|(alive, weight)| alive.with(Op::Mul, *weight)).collect();
        let mut sum = Expr::Const(0);
        for weight in &left {
            sum = sum.op(Op::Add, weight.clone());
        }
        let sum = self.bind(sum, out);
        let again = self.again(hash, out);
        let at = self.bind(again.op(Op::Mul, sum).with(Op::Shr, 32), out);
        let other = self.share(&at, left, out);
        guard(is_alive.clone(), chosen).op(Op::Or, guard(is_alive.with(Op::Eq, 0), other))
    }

    /// Whose share a number falls into: how many end at it or before.
    fn share(&mut self, at: &Expr, weights: Vec<Expr>, out: &mut Vec<Stmt>) -> Expr {
        let (mut end, mut chosen) = (Expr::Const(0), Expr::Const(0));
        for weight in weights {
            end = self.bind(end.op(Op::Add, weight), out);
            chosen = chosen.op(Op::Add, end.clone().op(Op::Le, at.clone()));
        }
        chosen
    }

    /// Whether a bucket's port is alive, as a value.
    fn alive(&mut self, watch: Option<PortId>, out: &mut Vec<Stmt>) -> Expr {
        let Some(port) = watch else { return Expr::Const(1) };
        let alive = self.fresh.value();
        out.push(Stmt::Live { alive, port: port.0 });
        Expr::Value(alive)
    }

    /// Runs one of several buckets by its number.
    fn arms(&mut self, chosen: Expr, buckets: &'p [Bucket], rest: &'p [Action], mut state: State, out: &mut Vec<Stmt>) {
        let value = self.fresh.value();
        out.push(Stmt::Let(value, chosen.with(Op::Shl, 32)));
        let last = ends_packet(rest, &state);
        if !last {
            self.say_all(&mut state, out);
        }
        let mut cases = Vec::new();
        let (mut emits, mut writes) = (false, false);
        for bucket in buckets {
            let mut arm = Vec::new();
            let mut own = state.clone();
            if last {
                self.actions(&bucket.actions, own, &mut arm);
            } else {
                self.clone_packet(&bucket.actions, rest, &mut own, &mut arm);
            }
            let effects = self.analysis.of(&bucket.actions);
            emits |= effects.emits;
            writes |= effects.writes;
            cases.push(arm);
        }
        let mut none = Vec::new();
        if last {
            let mut own = state.clone();
            self.because(DropReason::Group, &mut own);
            self.end_list(own, &mut none);
        } else {
            none.push(Stmt::DropIfUnsent(DropReason::Group));
        }
        cases.push(none);
        out.push(Stmt::Switch { value, cases });
        if last {
            return;
        }
        state.written |= writes;
        if emits || state.emitted != super::Emitted::Yes {
            state.emitted = maybe(state.emitted);
        }
        self.actions(rest, state, out);
    }
}

fn guard(cond: Expr, value: Expr) -> Expr {
    match cond {
        Expr::Const(0) => Expr::Const(0),
        Expr::Const(_) => value,
        cond => Expr::Guard(Box::new(cond), Box::new(value)),
    }
}
