//! Statements of a plan as CLIF, for one packet of a burst.

use std::collections::HashMap;

use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, FuncRef, InstBuilder, MemFlagsData, Signature, Type, Value as Clif, types,
};
use cranelift_frontend::{FunctionBuilder, Variable};
use cranelift_jit::JITModule;
use cranelift_module::Module;
use pipec_abi::{Counter, CtPoint, CtView, DropReason, Verdict, burst, cenv, ctx};

use crate::plan::Plan;
use crate::plan::code::{Function, Label, Stmt, Value};

/// Memory of the runtime: aligned, and there.
pub const TRUSTED: MemFlagsData = MemFlagsData::trusted();
/// Bytes of packets: there.
pub const UNALIGNED: MemFlagsData = MemFlagsData::new().with_notrap();

/// A byte offset as an immediate.
pub fn imm(offset: usize) -> i32 {
    offset as i32
}

/// What all functions of a program share.
pub struct Shared<'a> {
    /// The program.
    pub plan: &'a Plan,
    /// Its tables that are functions.
    pub tables: &'a [FuncRef],
    /// Address of what its `ct`s ask for.
    pub ct_points: i64,
    /// Address of the headers that it puts in front of packets.
    pub stacks: i64,
    /// Tables of constants.
    pub rows: &'a [Box<[u64]>],
}

/// What is noted of packets for later.
#[derive(Clone, Copy)]
pub struct Notes<'a> {
    /// Sets of packets that will be prepared.
    pub sets: &'a [Variable],
    /// How many packets have gathered for each stage.
    pub waiting: &'a [Variable],
}

/// Where `return` leads.
pub enum Return {
    /// To the next packet.
    Next(Block),
    /// Out of the function.
    Caller,
}

/// Builds the code for one packet.
pub struct Body<'a, 'f> {
    /// The function.
    pub b: &'a mut FunctionBuilder<'f>,
    /// What all functions share.
    pub shared: &'a Shared<'a>,
    /// `*mut Ctx`
    pub ctx: Clif,
    /// `*mut Burst`
    pub burst: Clif,
    /// Number of the packet, 64 bits.
    pub i: Clif,
    /// What a table's look-up is told, 64 bits.
    pub lookup_port: Clif,
    /// What is noted of packets for later.
    pub notes: Notes<'a>,
    /// Of a stage's packet: the stage, and its place among those that gathered.
    pub gathered: Option<(usize, Clif)>,
    /// Where `return` leads.
    pub to: Return,
    pub(super) values: HashMap<Value, Clif>,
    labels: HashMap<Label, Block>,
}

/// The signature of a table as a function: context, burst, packet, port; 0, 1 or 2.
pub fn table_signature(module: &JITModule) -> Signature {
    let mut signature = module.make_signature();
    signature.params.extend([AbiParam::new(types::I64); 4]);
    signature.returns.push(AbiParam::new(types::I64));
    signature
}

/// Builds a table as a function.
pub fn build_table(b: &mut FunctionBuilder<'_>, shared: &Shared<'_>, function: &Function) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let [ctx, burst, i, port] = [0, 1, 2, 3].map(|k| b.block_params(entry)[k]);
    let mut body = Body::new(b, shared, ctx, burst, i, Notes { sets: &[], waiting: &[] }, Return::Caller);
    body.lookup_port = port;
    if body.stmts(&function.body) {
        body.leave(0);
    }
}

impl<'a, 'f> Body<'a, 'f> {
    /// Code for packet `i`.
    pub fn new(
        b: &'a mut FunctionBuilder<'f>,
        shared: &'a Shared<'a>,
        ctx: Clif,
        burst: Clif,
        i: Clif,
        notes: Notes<'a>,
        to: Return,
    ) -> Body<'a, 'f> {
        let (values, labels) = (HashMap::new(), HashMap::new());
        Body { b, shared, ctx, burst, i, lookup_port: i, notes, gathered: None, to, values, labels }
    }

    /// Statements; whether control comes out behind them.
    pub fn stmts(&mut self, stmts: &[Stmt]) -> bool {
        for stmt in stmts {
            if !self.stmt(stmt) {
                return false;
            }
        }
        true
    }

    /// One statement; whether control comes out behind it.
    fn stmt(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Let(value, e) => {
                let e = self.expr(e);
                self.values.insert(*value, e);
            }
            Stmt::If { cond, then, otherwise } => return self.branch(cond, then, otherwise),
            Stmt::Block(label, stmts) => return self.block(*label, stmts),
            Stmt::Break(label) => {
                if let Some(&block) = self.labels.get(label) {
                    self.b.ins().jump(block, &[]);
                }
                return false;
            }
            Stmt::Return(code) => {
                self.leave(*code);
                return false;
            }
            Stmt::Count(counter) => self.count(*counter, None),
            Stmt::CountAt { base, place } => {
                let place = self.value(*place);
                let place = self.b.ins().ireduce(types::I32, place);
                let place = self.b.ins().uextend(types::I64, place);
                self.count(*base, Some(place));
            }
            Stmt::Lookup { result, table, key } => self.lookup(*result, *table, key),
            Stmt::Gather { stage, key, carry } => self.gather(usize::from(*stage), key, carry),
            Stmt::Switch { value, cases } => return self.switch(*value, cases),
            Stmt::External { dropped, action, arguments } => self.external(*dropped, *action, arguments),
            Stmt::Verdict(word) => self.verdict(*word),
            Stmt::VerdictOf(word) => {
                let word = self.expr(word);
                let at = self.indexed(1);
                self.b.ins().istore16(TRUSTED, word, at, imm(burst::offset::VERDICT));
            }
            Stmt::DropIfUnsent(reason) => self.drop_if_unsent(*reason),
            Stmt::Suspend { point, prepare } => self.suspend(*point, *prepare),
            Stmt::Ct { state, point, zone } => {
                let zone = self.expr(zone);
                let zone = self.b.ins().ireduce(types::I32, zone);
                let address = self.shared.ct_points + i64::from(*point) * size_of::<CtPoint>() as i64;
                let point = self.b.ins().iconst(types::I64, address);
                let (i, ctx, burst) = (self.i32(), self.ctx, self.burst);
                let result = self.call(cenv::offset::CT, &[ctx, burst, i, point, zone], Some(types::I32));
                let result = self.b.ins().uextend(types::I64, result);
                self.values.insert(*state, result);
            }
            Stmt::CtClear => self.ct_clear(),
            Stmt::Emit { port, how } => {
                let port = self.b.ins().iconst(types::I32, i64::from(*port));
                self.env(cenv::offset::EMIT, port, *how as u32);
            }
            Stmt::EmitIn { how } => self.env_in_port(cenv::offset::EMIT, *how as u32),
            Stmt::Flood { how } => self.env_in_port(cenv::offset::FLOOD, *how as u32),
            Stmt::Normal { how } => self.env_in_port(cenv::offset::NORMAL, *how as u32),
            Stmt::Set { target, high, low } => {
                let (high, low) = (self.expr(high), self.expr(low));
                let target = self.b.ins().iconst(types::I32, i64::from(*target as u16));
                let limit = self.b.ins().iconst(types::I32, i64::from(self.shared.plan.vlan_limit));
                let (i, burst) = (self.i32(), self.burst);
                self.call(cenv::offset::SET, &[burst, i, target, high, low, limit], None);
            }
            Stmt::Store { base, offset, bytes, value } => self.store(*base, *offset, *bytes, value),
            Stmt::DecTtl { expired } => {
                let limit = self.b.ins().iconst(types::I32, i64::from(self.shared.plan.vlan_limit));
                let (i, burst) = (self.i32(), self.burst);
                let result = self.call(cenv::offset::DEC_TTL, &[burst, i, limit], Some(types::I32));
                let result = self.b.ins().uextend(types::I64, result);
                self.values.insert(*expired, result);
            }
            Stmt::SetVar { word, value } => {
                let value = self.expr(value);
                let at = self.vars();
                self.b.ins().store(TRUSTED, value, at, imm(usize::from(*word) * 8));
            }
            Stmt::Call { result, function, in_port } => {
                let port = match in_port {
                    Some(port) => self.b.ins().iconst(types::I64, i64::from(*port)),
                    None => self.expr(&crate::plan::code::Expr::InPort),
                };
                let callee = self.shared.tables[usize::from(*function)];
                let call = self.b.ins().call(callee, &[self.ctx, self.burst, self.i, port]);
                let value = self.b.inst_results(call)[0];
                self.values.insert(*result, value);
            }
            Stmt::Clear => {
                let (i, ctx) = (self.i32(), self.ctx);
                self.call(cenv::offset::CLEAR, &[ctx, i], None);
            }
            Stmt::Enter { exceeded, back } => {
                let back = self.b.ins().iconst(types::I32, i64::from(*back));
                let ctx = self.ctx;
                let result = self.call(cenv::offset::ENTER, &[ctx, back], Some(types::I32));
                let result = self.b.ins().uextend(types::I64, result);
                self.values.insert(*exceeded, result);
            }
            Stmt::Depth(value) => {
                let depth = self.b.ins().load(types::I32, TRUSTED, self.ctx, imm(ctx::offset::DEPTH));
                let depth = self.b.ins().uextend(types::I64, depth);
                self.values.insert(*value, depth);
            }
            Stmt::SetDepth(value) => {
                let depth = self.value(*value);
                let depth = self.b.ins().ireduce(types::I32, depth);
                self.b.ins().store(TRUSTED, depth, self.ctx, imm(ctx::offset::DEPTH));
            }
            Stmt::Save => self.env_packet(cenv::offset::SAVE),
            Stmt::Restore => self.env_packet(cenv::offset::RESTORE),
            Stmt::EmitTo { port, how } => {
                let port = self.expr32(port);
                self.env(cenv::offset::EMIT, port, *how as u32);
            }
            Stmt::EmitPart { port, max_len } => {
                let port = self.expr32(port);
                self.env(cenv::offset::EMIT_PART, port, u32::from(*max_len));
            }
            Stmt::Controller { reason, max_len } => {
                let reason = self.b.ins().iconst(types::I32, i64::from(*reason));
                self.env(cenv::offset::CONTROLLER, reason, u32::from(*max_len));
            }
            Stmt::Meter { passes, meter } => {
                let meter = self.b.ins().iconst(types::I32, i64::from(*meter));
                let (i, ctx, burst) = (self.i32(), self.ctx, self.burst);
                let result = self.call(cenv::offset::METER, &[ctx, burst, i, meter], Some(types::I32));
                let result = self.b.ins().uextend(types::I64, result);
                self.values.insert(*passes, result);
            }
            Stmt::Live { alive, port } => {
                let port = self.b.ins().iconst(types::I32, i64::from(*port));
                let ctx = self.ctx;
                let result = self.call(cenv::offset::LIVE, &[ctx, port], Some(types::I32));
                let result = self.b.ins().uextend(types::I64, result);
                self.values.insert(*alive, result);
            }
            Stmt::SetCt(parts) => self.set_ct(*parts),
            Stmt::Find { result, table, key, ordered } => self.find(*result, *table, key, *ordered),
            Stmt::CountEntry { first, place } => {
                let place = self.value(*place);
                let place = self.b.ins().ireduce(types::I32, place);
                let place = self.b.ins().uextend(types::I64, place);
                self.count_entry(*first, place);
            }
            Stmt::Learn { table, key, action, args } => self.learn(*table, key, *action, args),
            Stmt::Fail(reason) => {
                let reason = self.b.ins().iconst(types::I32, *reason as i64);
                let (i, ctx, burst) = (self.i32(), self.ctx, self.burst);
                self.call(cenv::offset::FAIL, &[ctx, burst, i, reason], None);
            }
            shape => self.shape(shape),
        }
        true
    }

    fn branch(&mut self, cond: &crate::plan::code::Expr, then: &[Stmt], otherwise: &[Stmt]) -> bool {
        let cond = self.condition(cond);
        let (yes, join) = (self.b.create_block(), self.b.create_block());
        let no = if otherwise.is_empty() { join } else { self.b.create_block() };
        self.b.ins().brif(cond, yes, &[], no, &[]);
        if otherwise.is_empty() {
            self.arms([(yes, then)].into_iter(), join, true)
        } else {
            self.arms([(yes, then), (no, otherwise)].into_iter(), join, false)
        }
    }

    /// Statements in their blocks, all of which lead to `join`; whether control comes out there. `reached`: something else
    /// leads there too.
    pub(super) fn arms<'s>(
        &mut self,
        arms: impl Iterator<Item = (Block, &'s [Stmt])>,
        join: Block,
        mut reached: bool,
    ) -> bool {
        for (block, stmts) in arms {
            self.b.switch_to_block(block);
            if self.stmts(stmts) {
                self.b.ins().jump(join, &[]);
                reached = true;
            }
        }
        self.b.switch_to_block(join);
        if !reached {
            self.b.ins().trap(cranelift_codegen::ir::TrapCode::unwrap_user(1));
        }
        reached
    }

    fn block(&mut self, label: Label, stmts: &[Stmt]) -> bool {
        let after = self.b.create_block();
        self.labels.insert(label, after);
        if self.stmts(stmts) {
            self.b.ins().jump(after, &[]);
        }
        self.b.switch_to_block(after);
        true
    }

    /// `return code`.
    pub fn leave(&mut self, code: u8) {
        match self.to {
            Return::Next(block) => {
                self.b.ins().jump(block, &[] as &[BlockArg]);
            }
            Return::Caller => {
                let code = self.b.ins().iconst(types::I64, i64::from(code));
                self.b.ins().return_(&[code]);
            }
        }
    }

    /// A value of the plan.
    pub fn value(&mut self, value: Value) -> Clif {
        match self.values.get(&value) {
            Some(&value) => value,
            None => unreachable!("a plan defines values before it uses them: {value:?}"),
        }
    }

    // ---- memory -------------------------------------------------------------------------------------------------------

    /// Address of the burst plus the packet's number shifted left.
    pub fn indexed(&mut self, shift: u8) -> Clif {
        let offset = self.b.ins().ishl_imm_u(self.i, i64::from(shift));
        self.b.ins().iadd(self.burst, offset)
    }

    /// Address of the frame.
    pub fn frame(&mut self) -> Clif {
        let at = self.indexed(3);
        // Where a frame begins changes only with its shape.
        let flags = if self.shared.plan.reshapes { TRUSTED } else { TRUSTED.with_readonly() };
        self.b.ins().load(types::I64, flags, at, imm(burst::offset::DATA))
    }

    /// Length of the frame.
    pub fn frame_len(&mut self) -> Clif {
        let at = self.indexed(2);
        let len = self.b.ins().load(types::I32, TRUSTED, at, imm(burst::offset::LEN));
        self.b.ins().uextend(types::I64, len)
    }

    /// Address of the packet's variables.
    pub fn vars(&mut self) -> Clif {
        let base = self.b.ins().load(types::I64, TRUSTED, self.ctx, imm(ctx::offset::VARS));
        let offset = self.b.ins().imul_imm_u(self.i, i64::from(self.shared.plan.meta.vars) * 8);
        self.b.ins().iadd(base, offset)
    }

    /// Address of the context plus the offset of the packet's `ct.*` among all.
    pub fn ct_view(&mut self) -> Clif {
        let offset = self.b.ins().imul_imm_u(self.i, size_of::<CtView>() as i64);
        self.b.ins().iadd(self.ctx, offset)
    }

    /// The packet's number, 32 bits.
    pub fn i32(&mut self) -> Clif {
        self.b.ins().ireduce(types::I32, self.i)
    }

    /// Counts at a counter, or at one so many behind it.
    fn count(&mut self, counter: u32, behind: Option<Clif>) {
        let mut at = self.b.ins().load(types::I64, TRUSTED, self.ctx, imm(ctx::offset::COUNTERS));
        if let Some(behind) = behind {
            let offset = self.b.ins().imul_imm_u(behind, size_of::<Counter>() as i64);
            at = self.b.ins().iadd(at, offset);
        }
        self.add_packet(at, counter as usize * size_of::<Counter>());
    }

    /// Adds the packet to the counter so many bytes behind an address.
    fn add_packet(&mut self, at: Clif, offset: usize) {
        let len = self.frame_len();
        let packets = self.b.ins().load(types::I64, TRUSTED, at, imm(offset));
        let packets = self.b.ins().iadd_imm_u(packets, 1);
        self.b.ins().store(TRUSTED, packets, at, imm(offset));
        let bytes = self.b.ins().load(types::I64, TRUSTED, at, imm(offset + 8));
        let bytes = self.b.ins().iadd(bytes, len);
        self.b.ins().store(TRUSTED, bytes, at, imm(offset + 8));
    }

    /// Counts an entry so many behind the first of its table.
    fn count_entry(&mut self, first: u32, behind: Clif) {
        let at = self.b.ins().load(types::I64, TRUSTED, self.ctx, imm(ctx::offset::ENTRIES));
        let offset = self.b.ins().imul_imm_u(behind, size_of::<Counter>() as i64);
        let at = self.b.ins().iadd(at, offset);
        let offset = first as usize * size_of::<Counter>();
        self.add_packet(at, offset);
    }

    fn external(&mut self, dropped: Value, action: u16, arguments: &[crate::plan::code::Expr]) {
        let address = self.words(arguments);
        let action = self.b.ins().iconst(types::I32, i64::from(action));
        let words = self.b.ins().iconst(types::I32, arguments.len() as i64);
        let (i, ctx, burst) = (self.i32(), self.ctx, self.burst);
        let arguments = [ctx, burst, i, action, address, words];
        let value = self.call(cenv::offset::EXTERNAL, &arguments, Some(types::I32));
        let value = self.b.ins().uextend(types::I64, value);
        self.values.insert(dropped, value);
    }

    fn verdict(&mut self, word: u16) {
        let at = self.indexed(1);
        let word = self.b.ins().iconst(types::I64, i64::from(word));
        self.b.ins().istore16(TRUSTED, word, at, imm(burst::offset::VERDICT));
    }

    fn drop_if_unsent(&mut self, reason: DropReason) {
        let at = self.indexed(1);
        let old = self.b.ins().uload16(types::I64, TRUSTED, at, imm(burst::offset::VERDICT));
        let new = self.b.ins().iconst(types::I64, i64::from(Verdict::drop(reason).0));
        let listed =
            self.b.ins().icmp_imm_u(cranelift_codegen::ir::condcodes::IntCC::Equal, old, i64::from(Verdict::LISTED.0));
        let word = self.b.ins().select(listed, old, new);
        self.b.ins().istore16(TRUSTED, word, at, imm(burst::offset::VERDICT));
    }

    fn suspend(&mut self, point: u8, prepare: Option<u8>) {
        let at = self.b.ins().iadd(self.burst, self.i);
        let pc = self.b.ins().iconst(types::I64, i64::from(point));
        self.b.ins().istore8(TRUSTED, pc, at, imm(burst::offset::PC));
        if let Some(&set) = prepare.and_then(|set| self.notes.sets.get(usize::from(set))) {
            let one = self.b.ins().iconst(types::I32, 1);
            let i = self.i32();
            let bit = self.b.ins().ishl(one, i);
            let old = self.b.use_var(set);
            let new = self.b.ins().bor(old, bit);
            self.b.def_var(set, new);
        }
    }

    fn ct_clear(&mut self) {
        let at = self.ct_view();
        let zero = self.b.ins().iconst(types::I64, 0);
        for word in 0..size_of::<CtView>() / 8 {
            self.b.ins().store(TRUSTED, zero, at, imm(ctx::offset::CT + word * 8));
        }
    }

    fn set_ct(&mut self, parts: [Value; 5]) {
        let parts = parts.map(|part| self.value(part));
        let at = self.ct_view();
        let offsets = [
            std::mem::offset_of!(CtView, state),
            std::mem::offset_of!(CtView, zone),
            std::mem::offset_of!(CtView, mark),
            std::mem::offset_of!(CtView, label),
            std::mem::offset_of!(CtView, label) + 8,
        ];
        for (k, (part, offset)) in parts.into_iter().zip(offsets).enumerate() {
            let offset = imm(ctx::offset::CT + offset);
            if k < 3 {
                self.b.ins().istore32(TRUSTED, part, at, offset);
            } else {
                self.b.ins().store(TRUSTED, part, at, offset);
            }
        }
    }

    /// The low 32 bits of an expression.
    fn expr32(&mut self, e: &crate::plan::code::Expr) -> Clif {
        let word = self.expr(e);
        self.b.ins().ireduce(types::I32, word)
    }

    // ---- calls --------------------------------------------------------------------------------------------------------

    /// Calls a function of the context's table.
    pub fn call(&mut self, function: usize, args: &[Clif], result: Option<Type>) -> Clif {
        let calls = self.b.ins().load(types::I64, TRUSTED.with_readonly(), self.ctx, imm(ctx::offset::CALLS));
        let callee = self.b.ins().load(types::I64, TRUSTED.with_readonly(), calls, imm(function));
        let mut signature = Signature::new(self.b.func.signature.call_conv);
        signature.params.extend(args.iter().map(|arg| AbiParam::new(self.b.func.dfg.value_type(*arg))));
        signature.returns.extend(result.map(AbiParam::new));
        let signature = self.b.import_signature(signature);
        let call = self.b.ins().call_indirect(signature, callee, args);
        self.b.inst_results(call).first().copied().unwrap_or(callee)
    }

    /// An `Env` function of a port, or of the port the packet came in by.
    fn env(&mut self, function: usize, port: Clif, how: u32) {
        let how = self.b.ins().iconst(types::I32, i64::from(how));
        let (i, ctx, burst) = (self.i32(), self.ctx, self.burst);
        self.call(function, &[ctx, burst, i, port, how], None);
    }

    fn env_in_port(&mut self, function: usize, how: u32) {
        let at = self.indexed(1);
        let port = self.b.ins().load(types::I16, TRUSTED, at, imm(burst::offset::IN_PORT));
        let port = self.b.ins().uextend(types::I32, port);
        self.env(function, port, how);
    }

    fn env_packet(&mut self, function: usize) {
        let (i, ctx, burst) = (self.i32(), self.ctx, self.burst);
        self.call(function, &[ctx, burst, i], None);
    }
}
