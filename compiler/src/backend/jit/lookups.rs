//! Look-ups as CLIF: what is asked of tables, packets that gather for one call a burst, rows of constants.

use cranelift_codegen::ir::{Block, InstBuilder, StackSlotData, StackSlotKind, Value as Clif, types};
use cranelift_frontend::Switch;
use pipec_abi::{BURST, cenv, ctx};

use super::body::{Body, TRUSTED, imm};
use crate::plan::code::{Expr, Stage, Stmt, Value};

/// A number of words as an immediate offset.
fn word(words: u32) -> i32 {
    words as i32 * 8
}

impl Body<'_, '_> {
    pub(super) fn find(&mut self, result: Value, table: u16, key: &[Expr], ordered: bool) {
        let address = self.words(key);
        let table = self.b.ins().iconst(types::I32, i64::from(table));
        let words = self.b.ins().iconst(types::I32, key.len() as i64);
        let (ctx, burst) = (self.ctx, self.burst);
        let found = if ordered {
            let i = self.i32();
            self.call(cenv::offset::FIND_ORDERED, &[ctx, burst, i, table, address, words], Some(types::I64))
        } else {
            self.call(cenv::offset::FIND, &[ctx, table, address, words], Some(types::I64))
        };
        self.values.insert(result, found);
    }

    pub(super) fn learn(&mut self, table: u16, key: &[Expr], action: u16, args: &[Expr]) {
        let all: Vec<_> = key.iter().chain(args).cloned().collect();
        let address = self.words(&all);
        let counts = cenv::learn_counts(key.len() as u32, args.len() as u32, action);
        let table = self.b.ins().iconst(types::I32, i64::from(table));
        let counts = self.b.ins().iconst(types::I32, i64::from(counts));
        let (i, ctx, burst) = (self.i32(), self.ctx, self.burst);
        self.call(cenv::offset::LEARN, &[ctx, burst, i, table, address, counts], None);
    }

    pub(super) fn lookup(&mut self, result: Value, table: u16, key: &[Expr]) {
        let address = self.words(key);
        let table = self.b.ins().iconst(types::I32, i64::from(table));
        let words = self.b.ins().iconst(types::I32, key.len() as i64);
        let ctx = self.ctx;
        let value = self.call(cenv::offset::LOOKUP, &[ctx, table, address, words], Some(types::I64));
        self.values.insert(result, value);
    }

    /// Address of the scratch.
    pub fn scratch(&mut self) -> Clif {
        self.b.ins().load(types::I64, TRUSTED.with_readonly(), self.ctx, imm(ctx::offset::SCRATCH))
    }

    /// Address of the scratch, so many words behind its start.
    fn scratch_at(&mut self, words: Clif) -> Clif {
        let scratch = self.scratch();
        let offset = self.b.ins().ishl_imm_u(words, 3);
        self.b.ins().iadd(scratch, offset)
    }

    pub(super) fn gather(&mut self, stage: usize, key: &[Expr], carry: &[Value]) {
        let place = &self.shared.plan.stages[stage];
        let (lanes, keys, kept) = (place.lanes(), place.keys(), place.kept());
        let Some(&waiting) = self.notes.waiting.get(stage) else { return };
        let n = self.b.use_var(waiting);
        let at = self.scratch_at(n);
        self.b.ins().store(TRUSTED, self.i, at, word(lanes));
        let first = self.b.ins().imul_imm_u(n, key.len() as i64);
        let key_at = self.scratch_at(first);
        for (part, to) in key.iter().zip(keys..) {
            let part = self.expr(part);
            self.b.ins().store(TRUSTED, part, key_at, word(to));
        }
        for (value, row) in carry.iter().zip(0..) {
            let value = self.value(*value);
            self.b.ins().store(TRUSTED, value, at, word(kept + row * BURST as u32));
        }
        let more = self.b.ins().iadd_imm_u(n, 1);
        self.b.def_var(waiting, more);
    }

    /// A word that the stage has for its packet: from `first` on, row by row.
    pub fn of_stage(&mut self, first: impl Fn(&Stage) -> u32, row: u16) -> Clif {
        let Some((stage, place)) = self.gathered else { unreachable!("only a stage's body reads what was found") };
        let at = self.scratch_at(place);
        let offset = first(&self.shared.plan.stages[stage]) + u32::from(row) * BURST as u32;
        self.b.ins().load(types::I64, TRUSTED, at, word(offset))
    }

    /// A word of a row of constants.
    pub fn row(&mut self, rows: u16, at: Value, stride: u16, column: u16) -> Clif {
        let at = self.value(at);
        let at = self.b.ins().ireduce(types::I32, at);
        let at = self.b.ins().uextend(types::I64, at);
        let rows = usize::from(rows);
        let offset = self.b.ins().imul_imm_u(at, i64::from(stride) * 8);
        let base = self.b.ins().iconst(types::I64, self.shared.rows[rows].as_ptr() as i64);
        let at = self.b.ins().iadd(base, offset);
        self.b.ins().load(types::I64, TRUSTED.with_readonly(), at, word(u32::from(column)))
    }

    /// The address of these words, stored in the function's frame.
    pub(super) fn words(&mut self, words: &[Expr]) -> Clif {
        let words: Vec<Clif> = words.iter().map(|word| self.expr(word)).collect();
        let size = words.len().max(1) as u32 * 8;
        let slot = self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, size, 3));
        for (k, word) in words.iter().enumerate() {
            self.b.ins().stack_store(types::I64, *word, slot, imm(k * 8));
        }
        self.b.ins().stack_addr(types::I64, slot, 0)
    }

    pub(super) fn switch(&mut self, value: Value, cases: &[Vec<Stmt>]) -> bool {
        let value = self.value(value);
        let case = self.b.ins().ushr_imm_u(value, 32);
        let blocks: Vec<Block> = cases.iter().map(|_| self.b.create_block()).collect();
        let join = self.b.create_block();
        let mut switch = Switch::new();
        let Some((last, others)) = blocks.split_last() else { return true };
        for (k, block) in others.iter().enumerate() {
            switch.set_entry(k as u128, *block);
        }
        switch.emit(self.b, case, *last);
        self.arms(blocks.iter().copied().zip(cases.iter().map(Vec::as_slice)), join, false)
    }
}
