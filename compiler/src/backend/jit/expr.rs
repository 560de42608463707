//! Expressions of a plan as CLIF. All are 64-bit words.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value as Clif, types};
use pipec_abi::{CtView, burst, cenv, ctx, header};

use super::body::{Body, TRUSTED, UNALIGNED, imm};
use crate::plan::code::{Base, CtPart, Expr, Op, Stage};

impl Body<'_, '_> {
    /// The expression's value.
    pub fn expr(&mut self, e: &Expr) -> Clif {
        match e {
            Expr::Const(value) => self.b.ins().iconst(types::I64, *value as i64),
            Expr::Value(value) => self.value(*value),
            Expr::Arg(word) => {
                self.b.ins().load(types::I64, TRUSTED, self.ctx, imm(ctx::offset::ARGS + usize::from(*word) * 8))
            }
            Expr::Found => self.of_stage(Stage::found, 0),
            Expr::FoundArg(word) => self.of_stage(Stage::args, *word),
            Expr::Carried(value) => self.of_stage(Stage::kept, *value),
            Expr::Row { rows, at, stride, word } => self.row(*rows, *at, *stride, *word),
            Expr::Len => self.frame_len(),
            Expr::InPort => {
                let at = self.indexed(1);
                self.b.ins().uload16(types::I64, TRUSTED, at, imm(burst::offset::IN_PORT))
            }
            Expr::LookupPort => self.lookup_port,
            Expr::Load { base, offset, bytes } => self.load(*base, *offset, *bytes),
            Expr::Var(word) => {
                let at = self.vars();
                self.b.ins().load(types::I64, TRUSTED, at, imm(usize::from(*word) * 8))
            }
            Expr::Ct(part) => self.ct_part(*part),
            Expr::L2 => self.l2(),
            Expr::L3 { plain: true, .. } => self.plain_l3(),
            Expr::L3 { l2, .. } => self.l3(*l2),
            Expr::L4 { l3, proto, plain } => self.l4(*l3, *proto, *plain),
            Expr::Arp(l2) => self.parse(cenv::offset::ARP, *l2),
            Expr::Nd(l3) => self.parse(cenv::offset::ND, *l3),
            Expr::Op(op, a, b) => {
                if let Some(cond) = self.comparison(e) {
                    return self.b.ins().uextend(types::I64, cond);
                }
                let (a, b) = (self.expr(a), self.expr(b));
                match op {
                    Op::And => self.b.ins().band(a, b),
                    Op::Or => self.b.ins().bor(a, b),
                    Op::Add => self.b.ins().iadd(a, b),
                    Op::Sub => self.b.ins().isub(a, b),
                    Op::Shl => self.b.ins().ishl(a, b),
                    Op::Xor => self.b.ins().bxor(a, b),
                    Op::Mul => self.b.ins().imul(a, b),
                    _ => self.b.ins().ushr(a, b),
                }
            }
            Expr::LoadIf { cond, base, offset, bytes } => {
                let cond = self.condition(cond);
                let at = self.address(*base);
                let at = self.or_zeros(cond, at, usize::from(*offset));
                self.load_at(at, *offset, *bytes)
            }
            Expr::Guard(cond, value) => self.guard(cond, value),
            Expr::Log2(of) => {
                let of = self.expr(of);
                let some = self.b.ins().bor_imm_u(of, 1);
                let zeros = self.b.ins().clz(some);
                self.b.ins().bxor_imm_u(zeros, 63)
            }
        }
    }

    /// A word that is not 0 exactly if the expression is not: what a branch tests.
    pub fn condition(&mut self, e: &Expr) -> Clif {
        match self.comparison(e) {
            Some(cond) => cond,
            None => self.expr(e),
        }
    }

    /// A comparison as an 8-bit truth value.
    fn comparison(&mut self, e: &Expr) -> Option<Clif> {
        let Expr::Op(op, a, b) = e else { return None };
        let code = match op {
            Op::Eq => IntCC::Equal,
            Op::Ne => IntCC::NotEqual,
            Op::Lt => IntCC::UnsignedLessThan,
            Op::Le => IntCC::UnsignedLessThanOrEqual,
            _ => return None,
        };
        if let (Op::Eq, Expr::Const(0), Some(inner)) = (op, &**b, self.comparison(a)) {
            return Some(self.b.ins().icmp_imm_u(IntCC::Equal, inner, 0));
        }
        if let (Op::Eq | Op::Ne, Some((raw, value))) = (op, self.unswapped(a, b)) {
            return Some(self.b.ins().icmp_imm_u(code, raw, value as i64));
        }
        let a = self.expr(a);
        Some(match &**b {
            Expr::Const(value) if i32::try_from(*value).is_ok() => self.b.ins().icmp_imm_u(code, a, *value as i64),
            b => {
                let b = self.expr(b);
                self.b.ins().icmp(code, a, b)
            }
        })
    }

    /// `load == constant` needs no byte swap: the constant is swapped instead.
    fn unswapped(&mut self, a: &Expr, b: &Expr) -> Option<(Clif, u64)> {
        let (Expr::Load { base, offset, bytes: bytes @ (2 | 4) }, Expr::Const(value)) = (a, b) else { return None };
        let at = self.address(*base);
        let offset = imm(usize::from(*offset));
        Some(if *bytes == 2 {
            let swapped = u16::try_from(*value).ok()?.swap_bytes();
            (self.b.ins().load(types::I16, UNALIGNED, at, offset), u64::from(swapped))
        } else {
            let swapped = u32::try_from(*value).ok()?.swap_bytes();
            (self.b.ins().load(types::I32, UNALIGNED, at, offset), u64::from(swapped))
        })
    }

    fn guard(&mut self, cond: &Expr, value: &Expr) -> Clif {
        let cond = self.condition(cond);
        let (then, join) = (self.b.create_block(), self.b.create_block());
        let result = self.b.append_block_param(join, types::I64);
        let zero = self.b.ins().iconst(types::I64, 0);
        self.b.ins().brif(cond, then, &[], join, &[BlockArg::Value(zero)]);
        self.b.switch_to_block(then);
        let value = self.expr(value);
        self.b.ins().jump(join, &[BlockArg::Value(value)]);
        self.b.switch_to_block(join);
        result
    }

    /// The address if a condition holds, else one that has zeros at that offset.
    pub(super) fn or_zeros(&mut self, cond: Clif, at: Clif, offset: usize) -> Clif {
        let zeros = self.b.ins().iconst(types::I64, header::ZEROS.as_ptr() as i64 - offset as i64);
        self.b.ins().select(cond, at, zeros)
    }

    fn address(&mut self, base: Base) -> Clif {
        let frame = self.frame();
        match base {
            Base::Frame => frame,
            Base::At(value) => {
                let value = self.value(value);
                self.b.ins().iadd(frame, value)
            }
        }
    }

    /// A big-endian number of 1, 2, 4, 6 or 8 bytes.
    fn load(&mut self, base: Base, offset: u16, bytes: u8) -> Clif {
        let at = self.address(base);
        self.load_at(at, offset, bytes)
    }

    fn load_at(&mut self, at: Clif, offset: u16, bytes: u8) -> Clif {
        let offset = usize::from(offset);
        match bytes {
            1 => self.b.ins().uload8(types::I64, UNALIGNED, at, imm(offset)),
            2 => self.swapped(types::I16, at, offset),
            4 => self.swapped(types::I32, at, offset),
            6 => {
                let high = self.swapped(types::I32, at, offset);
                let low = self.swapped(types::I16, at, offset + 4);
                let high = self.b.ins().ishl_imm_u(high, 16);
                self.b.ins().bor(high, low)
            }
            _ => self.swapped(types::I64, at, offset),
        }
    }

    /// Writes the low 1, 2, 4, 6 or 8 bytes of a word, big-endian.
    pub fn store(&mut self, base: Base, offset: u16, bytes: u8, value: &Expr) {
        let value = self.expr(value);
        let at = self.address(base);
        let offset = usize::from(offset);
        let part = |body: &mut Self, ty: types::Type, shift: i64, offset: usize| {
            let part = if shift == 0 { value } else { body.b.ins().ushr_imm_u(value, shift) };
            let part = if ty == types::I64 { part } else { body.b.ins().ireduce(ty, part) };
            let part = if ty == types::I8 { part } else { body.b.ins().bswap(part) };
            body.b.ins().store(UNALIGNED, part, at, imm(offset));
        };
        match bytes {
            1 => part(self, types::I8, 0, offset),
            2 => part(self, types::I16, 0, offset),
            4 => part(self, types::I32, 0, offset),
            6 => {
                part(self, types::I32, 16, offset);
                part(self, types::I16, 0, offset + 4);
            }
            _ => part(self, types::I64, 0, offset),
        }
    }

    pub(super) fn swapped(&mut self, ty: types::Type, at: Clif, offset: usize) -> Clif {
        let raw = self.b.ins().load(ty, UNALIGNED, at, imm(offset));
        let value = self.b.ins().bswap(raw);
        if ty == types::I64 { value } else { self.b.ins().uextend(types::I64, value) }
    }

    fn ct_part(&mut self, part: CtPart) -> Clif {
        let at = self.ct_view();
        let offset = ctx::offset::CT
            + match part {
                CtPart::State => std::mem::offset_of!(CtView, state),
                CtPart::Zone => std::mem::offset_of!(CtView, zone),
                CtPart::Mark => std::mem::offset_of!(CtView, mark),
                CtPart::LabelHigh => std::mem::offset_of!(CtView, label),
                CtPart::LabelLow => std::mem::offset_of!(CtView, label) + 8,
            };
        if matches!(part, CtPart::LabelHigh | CtPart::LabelLow) {
            return self.b.ins().load(types::I64, TRUSTED, at, imm(offset));
        }
        let word = self.b.ins().load(types::I32, TRUSTED, at, imm(offset));
        self.b.ins().uextend(types::I64, word)
    }
}
