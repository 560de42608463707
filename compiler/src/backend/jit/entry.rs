//! The entry of a program: loops over the burst, prepares, and goes through the suspended packets in order.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, BlockArg, InstBuilder, Signature, Value as Clif, types};
use cranelift_frontend::{FunctionBuilder, Switch, Variable};
use cranelift_jit::JITModule;
use cranelift_module::Module;
use pipec_abi::{burst, cenv};

use super::body::{Body, Notes, Return, Shared, TRUSTED, imm};
use crate::plan::code::{Stage, Stmt};

/// The signature of a `RunFn`: context, burst, entry.
pub fn signature(module: &JITModule) -> Signature {
    let mut signature = module.make_signature();
    signature.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I64), AbiParam::new(types::I16)]);
    signature
}

/// The values every part of the entry uses.
#[derive(Clone, Copy)]
struct Args {
    ctx: Clif,
    burst: Clif,
}

/// Builds the entry.
pub fn build(b: &mut FunctionBuilder<'_>, shared: &Shared<'_>) {
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let args = Args { ctx: b.block_params(entry)[0], burst: b.block_params(entry)[1] };
    let number = b.block_params(entry)[2];
    let (start, done) = (b.create_block(), b.create_block());
    let resumes: Vec<_> = shared.plan.points.iter().map(|_| b.create_block()).collect();
    let mut switch = Switch::new();
    switch.set_entry(0, start);
    for (k, block) in resumes.iter().enumerate() {
        switch.set_entry(k as u128 + 1, *block);
    }
    switch.emit(b, number, done);

    b.switch_to_block(start);
    let zero = b.ins().iconst(types::I32, 0);
    let sets: Vec<Variable> = shared.plan.prepares.iter().map(|_| b.declare_var(types::I32)).collect();
    for set in &sets {
        b.def_var(*set, zero);
    }
    let waiting: Vec<Variable> = shared.plan.stages.iter().map(|_| b.declare_var(types::I64)).collect();
    let none = b.ins().iconst(types::I64, 0);
    for stage in &waiting {
        b.def_var(*stage, none);
    }
    let notes = Notes { sets: &sets, waiting: &waiting };
    each_packet(b, args, |b, i, next| {
        if let Some(stmts) = &shared.plan.plain {
            let (plain, other) = (b.create_block(), b.create_block());
            Body::new(b, shared, args.ctx, args.burst, i, notes, Return::Next(next)).branch_plain(plain, other);
            b.switch_to_block(plain);
            body(b, shared, args, i, notes, next, stmts);
            b.switch_to_block(other);
        }
        body(b, shared, args, i, notes, next, &shared.plan.prefix);
    });
    for k in 0..waiting.len() {
        stage(b, shared, args, k, notes);
    }
    for (set, zone) in sets.iter().zip(&shared.plan.prepares) {
        prepare(b, shared, args, *set, *zone);
    }
    if !shared.plan.points.is_empty() {
        each_packet(b, args, |b, i, next| tail(b, shared, args, i, next));
    }
    b.ins().jump(done, &[]);

    for (block, stmts) in resumes.into_iter().zip(&shared.plan.points) {
        b.switch_to_block(block);
        b.set_cold_block(block);
        each_packet(b, args, |b, i, next| body(b, shared, args, i, Notes { sets: &[], waiting: &[] }, next, stmts));
        b.ins().jump(done, &[]);
    }
    b.switch_to_block(done);
    b.ins().return_(&[]);
}

/// A loop over the packets of the burst. `make` builds the code for packet `i` and leads every path to the given block.
fn each_packet(
    b: &mut FunctionBuilder<'_>,
    args: Args,
    make: impl FnOnce(&mut FunctionBuilder<'_>, Clif, cranelift_codegen::ir::Block),
) {
    let n = b.ins().load(types::I32, TRUSTED, args.burst, imm(burst::offset::N));
    let n = b.ins().uextend(types::I64, n);
    each(b, n, make);
}

/// A loop over the numbers below `n`.
fn each(
    b: &mut FunctionBuilder<'_>,
    n: Clif,
    make: impl FnOnce(&mut FunctionBuilder<'_>, Clif, cranelift_codegen::ir::Block),
) {
    let (head, inside, next, after) = (b.create_block(), b.create_block(), b.create_block(), b.create_block());
    let i = b.append_block_param(head, types::I64);
    let zero = b.ins().iconst(types::I64, 0);
    b.ins().jump(head, &[BlockArg::Value(zero)]);
    b.switch_to_block(head);
    let more = b.ins().icmp(IntCC::UnsignedLessThan, i, n);
    b.ins().brif(more, inside, &[], after, &[]);
    b.switch_to_block(inside);
    make(b, i, next);
    b.switch_to_block(next);
    let following = b.ins().iadd_imm_u(i, 1);
    b.ins().jump(head, &[BlockArg::Value(following)]);
    b.switch_to_block(after);
}

fn body(
    b: &mut FunctionBuilder<'_>,
    shared: &Shared<'_>,
    args: Args,
    i: Clif,
    notes: Notes<'_>,
    next: cranelift_codegen::ir::Block,
    stmts: &[Stmt],
) {
    let mut body = Body::new(b, shared, args.ctx, args.burst, i, notes, Return::Next(next));
    if body.stmts(stmts) {
        body.leave(0);
    }
}

/// The look-up of all packets that have gathered for a stage, if any, and what they do then.
fn stage(b: &mut FunctionBuilder<'_>, shared: &Shared<'_>, args: Args, k: usize, notes: Notes<'_>) {
    let (some, after) = (b.create_block(), b.create_block());
    let n = b.use_var(notes.waiting[k]);
    b.ins().brif(n, some, &[], after, &[]);
    b.switch_to_block(some);
    let stage = &shared.plan.stages[k];
    let constants = [u32::from(stage.table), stage.keys(), stage.found(), stage.args()];
    let constants = constants.map(|word| b.ins().iconst(types::I32, i64::from(word)));
    let shape = cenv::all_counts(0, u32::from(stage.width), u32::from(stage.open.unwrap_or(0)));
    let counts = b.ins().ireduce(types::I32, n);
    let counts = b.ins().bor_imm_u(counts, i64::from(shape));
    let function = if stage.open.is_some() { cenv::offset::FIND_ALL } else { cenv::offset::LOOKUP_ALL };
    let [table, keys, found, arguments] = constants;
    let mut body = Body::new(b, shared, args.ctx, args.burst, n, notes, Return::Next(after));
    body.call(function, &[args.ctx, table, keys, found, arguments, counts], None);
    each(b, n, |b, place, next| {
        let mut body = Body::new(b, shared, args.ctx, args.burst, place, notes, Return::Next(next));
        body.gathered = Some((k, place));
        body.i = body.of_stage(Stage::lanes, 0);
        if body.stmts(&stage.body) {
            body.leave(0);
        }
    });
    b.ins().jump(after, &[]);
    b.switch_to_block(after);
}

/// `ct_prepare` for a set, unless it is empty.
fn prepare(b: &mut FunctionBuilder<'_>, shared: &Shared<'_>, args: Args, set: Variable, zone: u16) {
    let (some, after) = (b.create_block(), b.create_block());
    let set = b.use_var(set);
    b.ins().brif(set, some, &[], after, &[]);
    b.switch_to_block(some);
    let zone = b.ins().iconst(types::I32, i64::from(zone));
    let mut body =
        Body::new(b, shared, args.ctx, args.burst, set, Notes { sets: &[], waiting: &[] }, Return::Next(after));
    body.call(cenv::offset::CT_PREPARE, &[args.ctx, args.burst, set, zone], None);
    body.leave(0);
    b.switch_to_block(after);
}

/// The rest of a suspended packet.
fn tail(b: &mut FunctionBuilder<'_>, shared: &Shared<'_>, args: Args, i: Clif, next: cranelift_codegen::ir::Block) {
    let at = b.ins().iadd(args.burst, i);
    let pc = b.ins().uload8(types::I64, TRUSTED, at, imm(burst::offset::PC));
    let points: Vec<_> = shared.plan.points.iter().map(|_| b.create_block()).collect();
    let mut switch = Switch::new();
    for (k, block) in points.iter().enumerate() {
        switch.set_entry(k as u128, *block);
    }
    switch.emit(b, pc, next);
    for (block, stmts) in points.into_iter().zip(&shared.plan.points) {
        b.switch_to_block(block);
        body(b, shared, args, i, Notes { sets: &[], waiting: &[] }, next, stmts);
    }
}
