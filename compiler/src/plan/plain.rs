//! The common stack of headers gets code of its own: an untagged frame of IPv4 without options, whole and no fragment. There
//! the prefix knows where headers are, and what it would test of them.
//!
//! In: the prefix. Out: the same for such frames, where that says anything. Never: another outcome for a packet.
//!
//! What is known of a frame is known until something is written to it; values that were read before stay what they were.

use std::collections::HashMap;

use pipec_abi::header::{L3, PLAIN_IPV4, PLAIN_L2, PLAIN_L3};

use super::code::{Base, Expr, Op, Stmt, Value};
use super::values::guard;
use super::visit;

/// Statements of a prefix that is worth it at the most: its code is there twice.
const MOST: usize = 400;
/// Bits of an [`L3`] that are the same for all such frames: fragment and flags.
const SAME: u64 = !0 << 40;

/// The prefix for such frames, if it parses IP.
pub(super) fn plain(prefix: &[Stmt]) -> Option<Vec<Stmt>> {
    if count(prefix) > MOST {
        return None;
    }
    let mut plain = Plain { constants: HashMap::new(), l3: None, written: false };
    let stmts = plain.stmts(prefix);
    plain.l3.map(|_| stmts)
}

fn count(stmts: &[Stmt]) -> usize {
    stmts.iter().map(|stmt| 1 + visit::lists(stmt).into_iter().map(count).sum::<usize>()).sum()
}

struct Plain {
    /// Values that are always the same.
    constants: HashMap<Value, u64>,
    /// The value that says where IP lies.
    l3: Option<Value>,
    /// The frame may be another now.
    written: bool,
}

impl Plain {
    fn stmts(&mut self, stmts: &[Stmt]) -> Vec<Stmt> {
        let mut all = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            self.stmt(stmt, &mut all);
        }
        all
    }

    fn stmt(&mut self, stmt: &Stmt, to: &mut Vec<Stmt>) {
        let new = match stmt {
            Stmt::Let(value, expr) => {
                let new = self.expr(expr);
                match new {
                    Expr::Const(constant) => _ = self.constants.insert(*value, constant),
                    Expr::L3 { plain: true, .. } => self.l3 = Some(*value),
                    _ => {}
                }
                Stmt::Let(*value, new)
            }
            Stmt::If { cond, then, otherwise } => {
                let cond = self.expr(cond);
                if let Expr::Const(constant) = cond {
                    return to.append(&mut self.stmts(if constant == 0 { otherwise } else { then }));
                }
                let before = self.written;
                let then = self.stmts(then);
                let after = std::mem::replace(&mut self.written, before);
                let otherwise = self.stmts(otherwise);
                self.written |= after;
                Stmt::If { cond, then, otherwise }
            }
            Stmt::Block(label, body) => Stmt::Block(*label, self.stmts(body)),
            Stmt::Switch { value, cases } => {
                let before = self.written;
                let mut after = before;
                let cases = cases.iter().map(|case| {
                    self.written = before;
                    let case = self.stmts(case);
                    after |= self.written;
                    case
                });
                let cases = cases.collect();
                self.written = after;
                Stmt::Switch { value: *value, cases }
            }
            Stmt::Gather { stage, key, carry } => {
                Stmt::Gather { stage: *stage, key: self.exprs(key), carry: carry.clone() }
            }
            Stmt::Lookup { result, table, key } => {
                Stmt::Lookup { result: *result, table: *table, key: self.exprs(key) }
            }
            Stmt::Find { result, table, key, ordered } => {
                Stmt::Find { result: *result, table: *table, key: self.exprs(key), ordered: *ordered }
            }
            Stmt::SetVar { word, value } => Stmt::SetVar { word: *word, value: self.expr(value) },
            Stmt::VerdictOf(word) => Stmt::VerdictOf(self.expr(word)),
            Stmt::Break(_)
            | Stmt::Return(_)
            | Stmt::Count(_)
            | Stmt::CountAt { .. }
            | Stmt::CountEntry { .. }
            | Stmt::Verdict(_)
            | Stmt::DropIfUnsent(_)
            | Stmt::Suspend { .. }
            | Stmt::Clear
            | Stmt::Enter { .. }
            | Stmt::Depth(_)
            | Stmt::SetDepth(_)
            | Stmt::Meter { .. }
            | Stmt::Live { .. } => stmt.clone(),
            other => {
                self.written = true;
                other.clone()
            }
        };
        to.push(new);
    }

    fn exprs(&self, exprs: &[Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn expr(&self, expr: &Expr) -> Expr {
        match expr {
            Expr::Value(value) => self.constants.get(value).map_or(expr.clone(), |constant| Expr::Const(*constant)),
            Expr::L2 if !self.written => Expr::Const(PLAIN_L2.0),
            Expr::L3 { l2, .. } if !self.written && self.constants.get(l2) == Some(&PLAIN_L2.0) => {
                Expr::L3 { l2: *l2, plain: true }
            }
            Expr::L4 { l3, proto, .. } => {
                Expr::L4 { l3: *l3, proto: *proto, plain: !self.written && self.l3 == Some(*l3) }
            }
            Expr::Op(op, a, b) => self.of_l3(expr).unwrap_or_else(|| self.folded(*op, a, b)),
            Expr::Guard(cond, value) => guard(self.expr(cond), self.expr(value)),
            Expr::Load { base, offset, bytes } => self.load(*base, *offset, *bytes),
            Expr::LoadIf { cond, base, offset, bytes } => match (self.expr(cond), self.load(*base, *offset, *bytes)) {
                (cond @ Expr::Const(_), load) => guard(cond, load),
                (cond, Expr::Load { base, offset, bytes }) => {
                    Expr::LoadIf { cond: Box::new(cond), base, offset, bytes }
                }
                (_, other) => other,
            },
            Expr::Log2(of) => Expr::Log2(Box::new(self.expr(of))),
            other => other.clone(),
        }
    }

    fn folded(&self, op: Op, a: &Expr, b: &Expr) -> Expr {
        match (op, a, b) {
            (Op::Lt, Expr::Len, Expr::Const(least)) if !self.written && *least <= PLAIN_IPV4 as u64 => Expr::Const(0),
            _ => self.expr(a).op(op, self.expr(b)),
        }
    }

    /// A part of where IP lies that all such frames have, or that lies where it does in all.
    fn of_l3(&self, expr: &Expr) -> Option<Expr> {
        let Expr::Op(Op::And, of, mask) = expr else { return None };
        let Expr::Const(mask) = **mask else { return None };
        match &**of {
            Expr::Value(value) if self.l3 == Some(*value) && (mask & !SAME == 0 || mask == 0xffff) => {
                Some(Expr::Const(PLAIN_L3.0 & mask))
            }
            Expr::Op(Op::Shr, of, by) => match (&**of, &**by) {
                (Expr::Value(value), Expr::Const(32))
                    if self.l3 == Some(*value) && !self.written && matches!(mask, 0xff | 0x3ff) =>
                {
                    Some(Expr::Load { base: Base::Frame, offset: PLAIN_L2.end() as u16 + 9, bytes: 1 })
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn load(&self, base: Base, offset: u16, bytes: u8) -> Expr {
        let base_of = |value| self.constants.get(&value).and_then(|at| u16::try_from(*at).ok());
        match base {
            Base::At(value) => match base_of(value).and_then(|at| at.checked_add(offset)) {
                Some(offset) => Expr::Load { base: Base::Frame, offset, bytes },
                None => Expr::Load { base, offset, bytes },
            },
            Base::Frame => Expr::Load { base, offset, bytes },
        }
    }
}

const _: () = assert!(PLAIN_L3.0 >> 40 & 3 == 0 && PLAIN_L3.0 & L3::V6 == 0);

#[cfg(test)]
mod tests {
    use super::*;

    const L2_AT: Value = Value(0);
    const L3_AT: Value = Value(1);

    fn parses_ip() -> Vec<Stmt> {
        vec![Stmt::Let(L2_AT, Expr::L2), Stmt::Let(L3_AT, Expr::L3 { l2: L2_AT, plain: false })]
    }

    #[test]
    fn what_all_plain_frames_have_is_known() {
        let is_v4 = Expr::Value(L3_AT).with(Op::And, L3::REST | L3::V6).with(Op::Eq, L3::REST);
        let at = Value(2);
        let load = Expr::Load { base: Base::At(at), offset: 16, bytes: 4 };
        let mut prefix = parses_ip();
        prefix.extend([
            Stmt::If { cond: Expr::Len.with(Op::Lt, 14), then: vec![Stmt::Return(1)], otherwise: vec![] },
            Stmt::Let(at, Expr::Value(L2_AT).with(Op::Shr, 16).with(Op::And, 0xffff)),
            Stmt::Let(Value(3), guard(is_v4, load)),
            Stmt::Let(Value(4), Expr::Value(L3_AT).with(Op::Shr, 32).with(Op::And, 0xff)),
        ]);
        let stmts = plain(&prefix).expect("it parses IP");
        assert_eq!(stmts.len(), prefix.len() - 1, "no frame is too short");
        let load = |offset, bytes| Expr::Load { base: Base::Frame, offset, bytes };
        assert_eq!(stmts[0], Stmt::Let(L2_AT, Expr::Const(PLAIN_L2.0)));
        assert_eq!(stmts[1], Stmt::Let(L3_AT, Expr::L3 { l2: L2_AT, plain: true }));
        assert_eq!(stmts[3..], [Stmt::Let(Value(3), load(30, 4)), Stmt::Let(Value(4), load(23, 1))]);
    }

    #[test]
    fn after_a_write_the_frame_may_be_another() {
        let write = Stmt::Store { base: Base::Frame, offset: 12, bytes: 2, value: Expr::Const(0) };
        let mut prefix = vec![write];
        prefix.extend(parses_ip());
        assert_eq!(plain(&prefix), None);
        // On one of two paths is enough; what was read before stays.
        let mut prefix = parses_ip();
        let dec_ttl = Stmt::DecTtl { expired: Value(9) };
        prefix.push(Stmt::If { cond: Expr::InPort, then: vec![dec_ttl], otherwise: vec![] });
        prefix.push(Stmt::Let(Value(5), Expr::L2));
        prefix.push(Stmt::Let(Value(6), Expr::L4 { l3: L3_AT, proto: None, plain: false }));
        prefix.push(Stmt::Let(Value(7), Expr::Value(L3_AT).with(Op::And, 0xffff)));
        let stmts = plain(&prefix).expect("it parses IP");
        assert_eq!(stmts[3], Stmt::Let(Value(5), Expr::L2));
        assert_eq!(stmts[4], Stmt::Let(Value(6), Expr::L4 { l3: L3_AT, proto: None, plain: false }));
        assert_eq!(stmts[5], Stmt::Let(Value(7), Expr::Const(34)));
    }

    #[test]
    fn what_does_not_parse_ip_has_one_prefix() {
        assert_eq!(plain(&[Stmt::Let(L2_AT, Expr::L2)]), None);
    }
}
