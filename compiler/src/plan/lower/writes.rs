//! Actions that write: fields and variables, the TTL, and `ct.*`.

use pipec_abi::CtPoint;

use super::shapes::forget_frame;
use super::{Lower, State, table_read};
use crate::field::{Field, Header};
use crate::hir::{self, Arith, Ct, Place, Read, Space, View};
use crate::plan::code::{Base, CtPart, Expr, Op, Stmt, Value};
use crate::plan::facts::ones;
use crate::plan::values::{Wide, is_tag};

impl Lower<'_> {
    pub(super) fn set(&mut self, place: &Place, value: &hir::Value, state: &mut State, out: &mut Vec<Stmt>) {
        let new = self.value(value, state, out);
        let whole = match place.space {
            Space::Field(field) => Place::field(field),
            Space::Header(header) => return self.set_declared(header, *place, new, state, out),
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
            Space::Header(_) => {}
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
                state.facts.forget_tests(|space| *space == Space::Meta);
                let known = if let hir::Value::Const(value) = value { Some(*value) } else { None };
                state.facts.write_variable(place, known);
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
                if matches!(field, Field::EthType | Field::IpProto) {
                    forget_frame(state);
                } else if let (hir::Value::Const(value), Some(Header::Eth)) = (value, field.header())
                    && *place == whole
                {
                    state.facts.set(&table_read(field), *value);
                }
            }
        }
    }

    /// What a value is when the action runs.
    pub(super) fn value(&mut self, value: &hir::Value, state: &mut State, out: &mut Vec<Stmt>) -> Wide {
        match value {
            hir::Value::Const(value) => Wide::constant(*value),
            hir::Value::Param(k) => state.args.get(usize::from(*k)).cloned().unwrap_or(Wide::constant(0)),
            hir::Value::Read(from) => self.site(state, out).read(&Read { place: *from, view: View::Action }),
            hir::Value::Arith(op, left, right) => {
                let left = self.value(left, state, out).low;
                let left = self.bind(left, out);
                let right = self.value(right, state, out).low;
                let right = self.bind(right, out);
                Wide { high: Expr::Const(0), low: arith(*op, left, right) }
            }
            hir::Value::Hash(values) => {
                let hash = self.hash(values, state, out);
                Wide { high: Expr::Const(0), low: hash }
            }
        }
    }

    /// Decrements the TTL; a value that is 1 if it has expired. The header of IPv4 is written in place: the TTL is the high
    /// byte of a word of the checksum's sum, which thus falls by 0x100 (RFC 1624, equation 3).
    pub(super) fn dec_ttl(&mut self, state: &mut State, out: &mut Vec<Stmt>) -> Value {
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
    pub(super) fn bind(&mut self, expr: Expr, out: &mut Vec<Stmt>) -> Expr {
        if matches!(expr, Expr::Const(_) | Expr::Value(_)) {
            return expr;
        }
        let value = self.fresh.value();
        out.push(Stmt::Let(value, expr));
        Expr::Value(value)
    }

    pub(super) fn forget_field(&self, field: Field, state: &mut State) {
        let tag = is_tag(field);
        state.facts.forget(|space| match space {
            Space::Field(other) => *other == field || tag && is_tag(*other),
            Space::Header(_) => true,
            Space::Meta => false,
        });
        state.values.forget_field(field);
        state.values.forget_headers(0, true);
    }

    pub(super) fn ct(&mut self, ct: &Ct, state: &mut State, out: &mut Vec<Stmt>) {
        let zone = self.value(&ct.zone, state, out).low.with(Op::And, 0xffff);
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

    pub(super) fn ct_clear(&mut self, state: &mut State, out: &mut Vec<Stmt>) {
        out.push(Stmt::CtClear);
        forget_ct(state);
        for field in [Field::CtState, Field::CtZone, Field::CtMark, Field::CtLabel] {
            state.facts.set(&table_read(field), 0);
        }
    }

    /// `ct.*` as values.
    pub(super) fn read_ct(&mut self, state: &mut State, out: &mut Vec<Stmt>) -> [Value; 5] {
        let parts = [CtPart::State, CtPart::Zone, CtPart::Mark, CtPart::LabelHigh, CtPart::LabelLow];
        // Before any `ct()` of a path the context may hold the last packet's.
        let clear = state.facts.constant(&table_read(Field::CtState)) == Some(0);
        parts.map(|part| {
            let value = self.fresh.value();
            out.push(Stmt::Let(value, if clear { Expr::Const(0) } else { Expr::Ct(part) }));
            value
        })
    }
}

/// An operation on two words that are at hand.
fn arith(op: Arith, left: Expr, right: Expr) -> Expr {
    match op {
        Arith::Add => left.op(Op::Add, right),
        Arith::Sub => left.op(Op::Sub, right),
        Arith::And => left.op(Op::And, right),
        Arith::Or => left.op(Op::Or, right),
        Arith::Xor => left.op(Op::Xor, right),
        Arith::Shl | Arith::Shr => {
            let op = if op == Arith::Shl { Op::Shl } else { Op::Shr };
            match right {
                Expr::Const(bits) if bits < 64 => left.with(op, bits),
                Expr::Const(_) => Expr::Const(0),
                bits => Expr::Guard(Box::new(bits.clone().with(Op::Lt, 64)), Box::new(left.op(op, bits))),
            }
        }
    }
}

pub(super) fn forget_ct(state: &mut State) {
    state
        .facts
        .forget(|space| matches!(space, Space::Field(Field::CtState | Field::CtZone | Field::CtMark | Field::CtLabel)));
    state.values.forget_ct();
}

/// The packet's bytes may have changed.
pub(super) fn forget_packet(state: &mut State) {
    state.facts.forget(|space| match space {
        Space::Field(field) => field.target().is_some() || is_tag(*field),
        Space::Header(_) => true,
        Space::Meta => false,
    });
    state.values.forget_headers(0, true);
    for &field in Field::ALL.iter().filter(|f| f.target().is_some()) {
        state.values.forget_field(field);
    }
}

/// `old` with `width` bits above the lowest `below` replaced by `new`.
pub(super) fn merge(old: Wide, new: Wide, below: u32, width: u8) -> Wide {
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
