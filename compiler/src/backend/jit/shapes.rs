//! Statements that change a frame's shape, and writes of bits behind a byte of it: calls of the runtime.

use cranelift_codegen::ir::{InstBuilder, Value as Clif, types};
use pipec_abi::cenv;
use pipec_abi::reshape::Stack;

use super::body::Body;
use crate::plan::code::Stmt;

impl Body<'_, '_> {
    /// One of these statements; control comes out behind it.
    pub fn shape(&mut self, stmt: &Stmt) {
        let (i, ctx, burst) = (self.i32(), self.ctx, self.burst);
        let limit = self.b.ins().iconst(types::I32, i64::from(self.shared.plan.vlan_limit));
        match stmt {
            Stmt::Reshape { failed, what, a, b } => {
                let (a, b) = (self.expr(a), self.expr(b));
                let what = self.b.ins().iconst(types::I32, *what as i64);
                let args = [ctx, burst, i, what, a, b, limit];
                let result = self.call(cenv::offset::RESHAPE, &args, Some(types::I32));
                let result = self.b.ins().uextend(types::I64, result);
                self.values.insert(*failed, result);
            }
            Stmt::Encap { failed, stack } => {
                let stack = self.stack(*stack);
                let result = self.call(cenv::offset::ENCAP, &[ctx, burst, i, stack, limit], Some(types::I32));
                let result = self.b.ins().uextend(types::I64, result);
                self.values.insert(*failed, result);
            }
            Stmt::Finish { stack } => {
                let stack = self.stack(*stack);
                self.call(cenv::offset::FINISH, &[burst, i, stack], None);
            }
            Stmt::FailWith(failed) => {
                let failed = self.value(*failed);
                let reason = self.b.ins().iadd_imm_s(failed, -1);
                let reason = self.b.ins().ireduce(types::I32, reason);
                self.call(cenv::offset::FAIL, &[ctx, burst, i, reason], None);
            }
            Stmt::SetBits { at, offset, width, high, low, covered } => {
                let (at, high, low) = (self.expr(at), self.expr(high), self.expr(low));
                let shape = u32::from(*offset) | u32::from(*width) << 16 | u32::from(*covered) << 24;
                let shape = self.b.ins().iconst(types::I32, i64::from(shape));
                self.call(cenv::offset::SET_BITS, &[burst, i, at, shape, high, low, limit], None);
            }
            _ => {}
        }
    }

    /// Address of a stack of headers.
    fn stack(&mut self, stack: u16) -> Clif {
        let address = self.shared.stacks + i64::from(stack) * size_of::<Stack>() as i64;
        self.b.ins().iconst(types::I64, address)
    }
}
