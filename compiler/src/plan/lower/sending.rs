//! Outputs to computed ports, hashes, and meters.

use pipec_abi::{DropReason, hash};

use super::ends::maybe;
use super::{Lower, State};
use crate::field::Field;
use crate::hir::{Action, MeterId, Place, Read, Value, View};
use crate::plan::code::{Expr, Op, Stmt};
use crate::plan::numbers;

impl<'p> Lower<'p> {
    /// Sends the packet, or what `max_len` leaves of it, to the port with a number, and goes on.
    pub(super) fn output_to(
        &mut self,
        number: &Value,
        max_len: Option<u16>,
        rest: &'p [Action],
        mut state: State,
        out: &mut Vec<Stmt>,
    ) {
        let number = self.value(number, &mut state, out).low;
        if let (Expr::Const(number), None) = (&number, max_len)
            && let Some(port) = self.program.port_numbered(u128::from(*number))
        {
            return self.output(port, rest, state, out);
        }
        let number = self.bind(number, out);
        let port = self.bind(numbers::port_of(&number, &state.facts.numbers), out);
        self.say_reason(&mut state, out);
        let in_port = Read { place: Place::field(Field::InPort), view: View::Action };
        let own = self.site(&mut state, out).read(&in_port).low.with(Op::Add, 1);
        let dense = port.clone().with(Op::Sub, 1);
        let send = match max_len {
            None => Stmt::EmitTo { port: dense, how: self.how(rest, &state) },
            Some(max_len) => Stmt::EmitPart { port: dense, max_len },
        };
        let other = Stmt::If {
            cond: port.clone().op(Op::Eq, own),
            then: vec![Stmt::DropIfUnsent(DropReason::InPort)],
            otherwise: vec![send],
        };
        out.push(Stmt::If {
            cond: port.with(Op::Eq, 0),
            then: vec![Stmt::DropIfUnsent(DropReason::NoPort)],
            otherwise: vec![other],
        });
        state.emitted = maybe(state.emitted);
        self.actions(rest, state, out);
    }

    /// Lets the packet pass, or ends it.
    pub(super) fn meter(&mut self, meter: MeterId, state: &mut State, out: &mut Vec<Stmt>) {
        self.say_reason(state, out);
        let passes = self.fresh.value();
        out.push(Stmt::Meter { passes, meter: meter.0 });
        let mut over = state.clone();
        self.because(DropReason::Meter, &mut over);
        let mut then = Vec::new();
        self.exit(over, &mut then);
        out.push(Stmt::If { cond: Expr::Value(passes).with(Op::Eq, 0), then, otherwise: vec![] });
    }

    /// The hash of some values, 32 bits.
    pub(super) fn hash(&mut self, values: &[Value], state: &mut State, out: &mut Vec<Stmt>) -> Expr {
        let mut hash = Expr::Const(hash::START);
        for value in values {
            let wide = self.value(value, state, out);
            let words = if value.is_wide() { vec![wide.high, wide.low] } else { vec![wide.low] };
            for word in words {
                hash = self.step(hash, word, out);
            }
        }
        finish(hash)
    }

    /// Another hash from a hash.
    pub(super) fn again(&mut self, hash: Expr, out: &mut Vec<Stmt>) -> Expr {
        let hash = self.step(Expr::Const(hash::START), hash, out);
        finish(hash)
    }

    fn step(&mut self, hash: Expr, word: Expr, out: &mut Vec<Stmt>) -> Expr {
        let mixed = self.bind(hash.op(Op::Xor, word).with(Op::Mul, hash::SPREAD), out);
        self.bind(mixed.clone().op(Op::Xor, mixed.with(Op::Shr, 32)), out)
    }
}

fn finish(hash: Expr) -> Expr {
    hash.with(Op::Mul, hash::SPREAD).with(Op::Shr, 32)
}
