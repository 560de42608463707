//! Actions that change which headers a frame has, and writes to headers that the program declares. Bytes are put in and
//! taken out by `pipec_abi::reshape`; what is known of the frame is forgotten then. What was counted before is counted with
//! the length that the frame had.

use pipec_abi::reshape::{MAX_STACK, NOTHING, Reshape, Stack};

use super::writes::merge;
use super::{Lower, State, table_read};
use crate::field::Field;
use crate::hir::{self, Action, Encap, Inside, PRESENCE, Place, Space, Tunnel};
use crate::plan::code::{Base, Expr, Op, Stmt, Value};
use crate::plan::facts::presence;
use crate::plan::values::{Wide, guard, in_frame};

impl Lower<'_> {
    pub(super) fn shape(&mut self, action: &Action, state: &mut State, out: &mut Vec<Stmt>) {
        match action {
            Action::Push { header, values } => self.push(*header, values, state, out),
            Action::Pop { header } => self.pop(*header, state, out),
            Action::PushVlan { tpid, tci } => {
                let tci = self.value(tci, state, out).low;
                let tci = self.bind(tci, out);
                self.count(state, out);
                self.push_tag(u64::from(*tpid), tci, out);
                reshaped(state);
            }
            Action::PopVlan => {
                self.count(state, out);
                let tagged = self.tagged(state, out);
                let mut then = Vec::new();
                self.reshape(Reshape::Shrink, Expr::Const(12), Expr::Const(4), &mut then);
                when(tagged, then, vec![], out);
                reshaped(state);
            }
            Action::Truncate(max) => {
                self.count(state, out);
                let max = Expr::Const(u64::from(*max));
                let mut then = Vec::new();
                self.reshape(Reshape::Shrink, max.clone(), Expr::Len.op(Op::Sub, max.clone()), &mut then);
                when(max.op(Op::Lt, Expr::Len), then, vec![], out);
                reshaped(state);
            }
            Action::SetVlan { place, value } => self.set_vlan(*place, value, state, out),
            Action::PushMpls { eth_type, values } => {
                let values: Vec<_> =
                    values.iter().map(|(place, value)| (*place, self.wide(value, state, out))).collect();
                self.whole(Reshape::PushMpls, Expr::Const((*eth_type).into()), state, out);
                for (place, value) in values {
                    if let Space::Header(header) = place.space {
                        self.set_declared(header, place, value, state, out);
                    }
                }
            }
            Action::PopMpls { eth_type } => self.whole(Reshape::PopMpls, Expr::Const((*eth_type).into()), state, out),
            Action::Encap(encap) => self.encap(encap, state, out),
            Action::Decap { tunnel, header } => self.decap(*tunnel, *header, state, out),
            _ => {}
        }
    }

    /// A change of shape that finds its place by itself.
    fn whole(&mut self, what: Reshape, a: Expr, state: &mut State, out: &mut Vec<Stmt>) {
        self.count(state, out);
        self.reshape(what, a, Expr::Const(0), out);
        reshaped(state);
    }

    /// Changes the shape; the packet fails if that is not possible.
    fn reshape(&mut self, what: Reshape, a: Expr, b: Expr, out: &mut Vec<Stmt>) {
        let failed = self.fresh.value();
        out.push(Stmt::Reshape { failed, what, a, b });
        if !matches!(what, Reshape::Shrink | Reshape::Remove) {
            fail(failed, Expr::Value(failed), out);
        }
    }

    /// Whether there is a tag, as a condition.
    fn tagged(&mut self, state: &mut State, out: &mut Vec<Stmt>) -> Expr {
        let tci = self.site(state, out).read(&table_read(Field::VlanTci)).low;
        tci.with(Op::And, 0x1000)
    }

    fn push_tag(&mut self, tpid: u64, tci: Expr, out: &mut Vec<Stmt>) {
        self.reshape(Reshape::Grow, Expr::Const(12), Expr::Const(4), out);
        out.push(Stmt::Store { base: Base::Frame, offset: 12, bytes: 2, value: Expr::Const(tpid) });
        out.push(Stmt::Store { base: Base::Frame, offset: 14, bytes: 2, value: tci });
    }

    fn set_vlan(&mut self, place: Place, value: &hir::Value, state: &mut State, out: &mut Vec<Stmt>) {
        let Space::Field(field) = place.space else { return };
        let Some(target) = field.target() else { return };
        let low = self.value(value, state, out).low;
        let low = self.bind(low, out);
        self.count(state, out);
        let tagged = self.tagged(state, out);
        let then = vec![Stmt::Set { target, high: Expr::Const(0), low: low.clone() }];
        let tci = if field == Field::VlanPcp { low.with(Op::Shl, 13) } else { low };
        let mut otherwise = Vec::new();
        self.push_tag(0x8100, tci, &mut otherwise);
        when(tagged, then, otherwise, out);
        reshaped(state);
    }

    fn push(&mut self, header: u16, values: &[(Place, hir::Value)], state: &mut State, out: &mut Vec<Stmt>) {
        let declared = &self.program.headers[usize::from(header)];
        let values: Vec<(Place, Wide)> =
            values.iter().map(|(place, value)| (*place, self.wide(value, state, out))).collect();
        self.count(state, out);
        let mut at = Expr::Const(0);
        let mut open = Expr::Const(1);
        for after in &declared.after {
            let parent = self.site(state, out).behind(after.parent);
            let parent = self.bind(parent, out);
            let chosen = guard(open.clone(), parent.clone());
            at = at.op(Op::Or, chosen);
            let absent = parent.with(Op::Eq, 0);
            open = if open == Expr::Const(1) { absent } else { open.op(Op::And, absent) };
        }
        let at = self.bind(at.with(Op::And, 0xffff), out);
        let mut then = Vec::new();
        self.reshape(Reshape::Insert, at.clone(), Expr::Const(declared.bytes.into()), &mut then);
        for (offset, width, wide) in chunks(&values, declared.bytes * 8) {
            let (high, low) = (wide.high, wide.low);
            if high != Expr::Const(0) || low != Expr::Const(0) {
                then.push(Stmt::SetBits { at: at.clone(), offset, width, high, low, covered: true });
            }
        }
        when(at.with(Op::Ne, 0), then, vec![], out);
        reshaped(state);
    }

    fn pop(&mut self, header: u16, state: &mut State, out: &mut Vec<Stmt>) {
        self.count(state, out);
        let at = Expr::Value(self.site(state, out).declared_offset(header));
        let bytes = self.program.headers[usize::from(header)].bytes;
        let mut then = Vec::new();
        self.reshape(Reshape::Remove, at.clone(), Expr::Const(bytes.into()), &mut then);
        when(at.with(Op::Ne, 0), then, vec![], out);
        reshaped(state);
    }

    /// Writes bits of a declared header, if it is there.
    pub(super) fn set_declared(
        &mut self,
        header: u16,
        place: Place,
        value: Wide,
        state: &mut State,
        out: &mut Vec<Stmt>,
    ) {
        let (high, low) = (self.bind(value.high, out), self.bind(value.low, out));
        let at = Expr::Value(self.site(state, out).declared_offset(header));
        let Place { offset, width, .. } = place;
        let write = Stmt::SetBits { at: at.clone(), offset, width, high, low, covered: true };
        let there = state.facts.constant(&presence(header)) == Some(1);
        when(if there { Expr::Const(1) } else { at.with(Op::Ne, 0) }, vec![write], vec![], out);
        state.written = true;
        // Headers before it, and whether it is there, do not depend on its bits.
        let present = state.facts.constant(&presence(header));
        state.facts.forget(|space| matches!(space, Space::Header(h) if *h >= header));
        if let Some(present) = present {
            state.facts.set(&presence(header), present);
        }
        state.values.forget_headers(header, false);
    }

    /// Decrements the TTL of the outer label; the condition under which it has expired.
    pub(super) fn dec_mpls_ttl(&mut self, header: u16, state: &mut State, out: &mut Vec<Stmt>) -> Expr {
        let place = Place { space: Space::Header(header), offset: 24, width: 8 };
        let read = hir::Read { place, view: hir::View::Table };
        let ttl = self.site(state, out).read(&read).low;
        let ttl = self.bind(ttl, out);
        let there = self.site(state, out).declared_bits(header, PRESENCE, 1).low;
        let expired = self.bind(there.op(Op::And, ttl.clone().with(Op::Lt, 2)), out);
        let mut then = Vec::new();
        let less = Wide { high: Expr::Const(0), low: ttl.with(Op::Sub, 1) };
        self.set_declared(header, place, less, state, &mut then);
        when(expired.clone().with(Op::Eq, 0), then, vec![], out);
        state.values.forget_headers(header, true);
        expired.with(Op::Ne, 0)
    }

    fn encap(&mut self, encap: &Encap, state: &mut State, out: &mut Vec<Stmt>) {
        let values: Vec<(u16, u8, Wide)> =
            encap.values.iter().map(|(offset, width, value)| (*offset, *width, self.wide(value, state, out))).collect();
        self.count(state, out);
        let new = stack(encap);
        let at = self.stacks.iter().position(|s| *s == new).unwrap_or_else(|| {
            self.stacks.push(new);
            self.stacks.len() - 1
        });
        let (failed, stack) = (self.fresh.value(), at as u16);
        out.push(Stmt::Encap { failed, stack });
        let failure = Expr::Value(failed);
        let really = failure.clone().with(Op::Ne, 0).op(Op::And, failure.clone().with(Op::Ne, u64::from(NOTHING)));
        fail(failed, really, out);
        let mut then: Vec<Stmt> = values
            .into_iter()
            .map(|(offset, width, Wide { high, low })| Stmt::SetBits {
                at: Expr::Const(0),
                offset,
                width,
                high,
                low,
                covered: false,
            })
            .collect();
        then.push(Stmt::Finish { stack });
        when(failure.with(Op::Eq, 0), then, vec![], out);
        reshaped(state);
    }

    fn decap(&mut self, tunnel: Tunnel, header: u16, state: &mut State, out: &mut Vec<Stmt>) {
        self.count(state, out);
        let at = Expr::Value(self.site(state, out).declared_offset(header));
        self.reshape(Reshape::Decap, Expr::Const(tunnel as u64), at, out);
        reshaped(state);
    }

    /// A value, at hand before the frame changes.
    fn wide(&mut self, value: &hir::Value, state: &mut State, out: &mut Vec<Stmt>) -> Wide {
        let Wide { high, low } = self.value(value, state, out);
        Wide { high: self.bind(high, out), low: self.bind(low, out) }
    }
}

/// `if cond { then } else { otherwise }`, where that is not known.
fn when(cond: Expr, then: Vec<Stmt>, otherwise: Vec<Stmt>, out: &mut Vec<Stmt>) {
    match cond {
        Expr::Const(0) => out.extend(otherwise),
        Expr::Const(_) => out.extend(then),
        cond => out.push(Stmt::If { cond, then, otherwise }),
    }
}

/// The packet fails under a condition, as the outcome says.
fn fail(failed: Value, cond: Expr, out: &mut Vec<Stmt>) {
    out.push(Stmt::If { cond, then: vec![Stmt::FailWith(failed), Stmt::Return(2)], otherwise: vec![] });
}

/// The frame has another shape.
fn reshaped(state: &mut State) {
    state.written = true;
    forget_frame(state);
}

/// Nothing is known of the frame any more.
pub(super) fn forget_frame(state: &mut State) {
    state.facts.forget(|space| match space {
        Space::Field(field) => in_frame(*field),
        Space::Header(_) => true,
        Space::Meta => false,
    });
    state.values.forget_frame();
}

/// The bits of a pushed header, at most 128 at once: values that lie in one part together, others alone.
fn chunks(values: &[(Place, Wide)], bits: u16) -> Vec<(u16, u8, Wide)> {
    let mut chunks = Vec::new();
    for start in (0..bits).step_by(128) {
        let width = (bits - start).min(128) as u8;
        let end = start + u16::from(width);
        let mut all = Wide::constant(0);
        for (place, value) in values {
            let (first, last) = (place.offset, place.offset + u16::from(place.width));
            if first >= start && last <= end {
                all = merge(all, value.clone(), u32::from(end - last), place.width);
            } else if first >= start && first < end {
                chunks.push((first, place.width, value.clone()));
            }
        }
        chunks.push((start, width, all));
    }
    // Whole parts come first: they write zeros where a value lies across their end.
    chunks.sort_by_key(|(offset, ..)| offset % 128 != 0);
    chunks
}

/// A stack of headers as the runtime takes it.
fn stack(encap: &Encap) -> Stack {
    let mut bytes = [0; MAX_STACK];
    let len = encap.bytes.len().min(MAX_STACK);
    bytes[..len].copy_from_slice(&encap.bytes[..len]);
    let (eth_type, protocol, packet) = match encap.inside {
        Inside::Frame => (0, 0, 0),
        Inside::Packet { eth_type, protocol } => (eth_type.unwrap_or(0), protocol.unwrap_or(0), 1),
    };
    Stack {
        bytes,
        len: len as u16,
        ip: encap.ip.0,
        udp: encap.udp.unwrap_or(0),
        length: encap.length.unwrap_or(0),
        eth_type,
        protocol,
        v6: u8::from(encap.ip.1),
        packet,
    }
}
