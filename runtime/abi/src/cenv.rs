//! An [`Env`] as a table of C functions, for carriers that do not know its type: libraries and JIT code.
//!
//! The functions take the context, the burst and plain numbers. Helpers that need no `Env` (slow paths of the parser, writes)
//! stand in the same table, so that JIT code resolves no symbol.

use crate::edit::{self, Target, Ttl};
use crate::external::Flow;
use crate::header::{self, L2, L3};
use crate::reshape::{self, Reshape, Stack};
use crate::{Burst, CtPoint, Ctx, DropReason, Emit, Env, Gathered};

/// Functions that compiled code calls.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)] // the methods of `Env`, and `header`, say what they do
pub struct CEnv {
    pub ct_prepare: extern "C" fn(&mut Ctx, &Burst, u32, u32),
    pub ct: extern "C" fn(&mut Ctx, &mut Burst, u32, &CtPoint, u32) -> u32,
    pub emit: extern "C" fn(&mut Ctx, &mut Burst, u32, u32, u32),
    pub flood: extern "C" fn(&mut Ctx, &mut Burst, u32, u32, u32),
    pub normal: extern "C" fn(&mut Ctx, &mut Burst, u32, u32, u32),
    pub save: extern "C" fn(&mut Ctx, &mut Burst, u32),
    pub restore: extern "C" fn(&mut Ctx, &mut Burst, u32),
    pub fail: extern "C" fn(&mut Ctx, &mut Burst, u32, u32),
    pub l2: extern "C" fn(&Burst, u32, u32) -> u64,
    pub l3: extern "C" fn(&Burst, u32, u64) -> u64,
    pub l4: extern "C" fn(&Burst, u32, u64) -> u64,
    pub arp: extern "C" fn(&Burst, u32, u64) -> u64,
    pub set: extern "C" fn(&mut Burst, u32, u32, u64, u64, u32),
    pub dec_ttl: extern "C" fn(&mut Burst, u32, u32) -> u32,
    pub clear: extern "C" fn(&mut Ctx, u32),
    pub enter: extern "C" fn(&mut Ctx, u32) -> u32,
    pub lookup: extern "C" fn(&Ctx, u32, *const u64, u32) -> u64,
    pub external: extern "C" fn(&Ctx, &mut Burst, u32, u32, *const u64, u32) -> u32,
    pub emit_part: extern "C" fn(&mut Ctx, &mut Burst, u32, u32, u32),
    pub controller: extern "C" fn(&mut Ctx, &mut Burst, u32, u32, u32),
    pub meter: extern "C" fn(&mut Ctx, &mut Burst, u32, u32) -> u32,
    pub live: extern "C" fn(&mut Ctx, u32) -> u32,
    pub find: extern "C" fn(&mut Ctx, u32, *const u64, u32) -> u64,
    pub find_ordered: extern "C" fn(&mut Ctx, &Burst, u32, u32, *const u64, u32) -> u64,
    pub learn: extern "C" fn(&mut Ctx, &Burst, u32, u32, *const u64, u32),
    pub reshape: extern "C" fn(&mut Ctx, &mut Burst, u32, u32, u64, u64, u32) -> u32,
    pub encap: extern "C" fn(&mut Ctx, &mut Burst, u32, &Stack, u32) -> u32,
    pub finish: extern "C" fn(&mut Burst, u32, &Stack),
    pub set_bits: extern "C" fn(&mut Burst, u32, u64, u32, u64, u64, u32),
    pub nd: extern "C" fn(&Burst, u32, u64) -> u64,
    pub lookup_all: extern "C" fn(&mut Ctx, u32, u32, u32, u32, u32),
    pub find_all: extern "C" fn(&mut Ctx, u32, u32, u32, u32, u32),
}

/// Byte offsets of the table's functions, for the JIT.
pub mod offset {
    #![allow(missing_docs)]
    use super::CEnv;
    use core::mem::offset_of;
    pub const CT_PREPARE: usize = offset_of!(CEnv, ct_prepare);
    pub const CT: usize = offset_of!(CEnv, ct);
    pub const EMIT: usize = offset_of!(CEnv, emit);
    pub const FLOOD: usize = offset_of!(CEnv, flood);
    pub const NORMAL: usize = offset_of!(CEnv, normal);
    pub const SAVE: usize = offset_of!(CEnv, save);
    pub const RESTORE: usize = offset_of!(CEnv, restore);
    pub const FAIL: usize = offset_of!(CEnv, fail);
    pub const L2: usize = offset_of!(CEnv, l2);
    pub const L3: usize = offset_of!(CEnv, l3);
    pub const L4: usize = offset_of!(CEnv, l4);
    pub const ARP: usize = offset_of!(CEnv, arp);
    pub const SET: usize = offset_of!(CEnv, set);
    pub const DEC_TTL: usize = offset_of!(CEnv, dec_ttl);
    pub const CLEAR: usize = offset_of!(CEnv, clear);
    pub const ENTER: usize = offset_of!(CEnv, enter);
    pub const LOOKUP: usize = offset_of!(CEnv, lookup);
    pub const EXTERNAL: usize = offset_of!(CEnv, external);
    pub const EMIT_PART: usize = offset_of!(CEnv, emit_part);
    pub const CONTROLLER: usize = offset_of!(CEnv, controller);
    pub const METER: usize = offset_of!(CEnv, meter);
    pub const LIVE: usize = offset_of!(CEnv, live);
    pub const FIND: usize = offset_of!(CEnv, find);
    pub const FIND_ORDERED: usize = offset_of!(CEnv, find_ordered);
    pub const LEARN: usize = offset_of!(CEnv, learn);
    pub const RESHAPE: usize = offset_of!(CEnv, reshape);
    pub const ENCAP: usize = offset_of!(CEnv, encap);
    pub const FINISH: usize = offset_of!(CEnv, finish);
    pub const SET_BITS: usize = offset_of!(CEnv, set_bits);
    pub const ND: usize = offset_of!(CEnv, nd);
    pub const LOOKUP_ALL: usize = offset_of!(CEnv, lookup_all);
    pub const FIND_ALL: usize = offset_of!(CEnv, find_all);
}

/// The table for an `Env` of type `E`.
pub struct CallTable<E>(core::marker::PhantomData<E>);

impl<E: Env> CallTable<E> {
    /// The functions.
    pub const CALLS: &'static CEnv = &CEnv {
        ct_prepare: ct_prepare::<E>,
        ct: ct::<E>,
        emit: emit::<E>,
        flood: flood::<E>,
        normal: normal::<E>,
        save: save::<E>,
        restore: restore::<E>,
        fail: fail::<E>,
        l2,
        l3,
        l4,
        arp,
        set,
        dec_ttl,
        clear,
        enter,
        lookup,
        external,
        emit_part: emit_part::<E>,
        controller: controller::<E>,
        meter: meter::<E>,
        live: live::<E>,
        find,
        find_ordered: find_ordered::<E>,
        learn: learn::<E>,
        reshape: reshape::<E>,
        encap: encap::<E>,
        finish,
        set_bits,
        nd,
        lookup_all,
        find_all,
    };
}

/// The `Env` attached to a context.
#[inline(always)]
fn env<'a, E>(ctx: &mut Ctx) -> &'a mut E {
    // SAFETY: `Ctx::attach` is called with an `E` beside the choice of `CallTable<E>`; it outlives the run, lies outside the
    // context, and is used by nobody else meanwhile.
    unsafe { &mut *ctx.env().cast::<E>() }
}

fn how(code: u32) -> Emit {
    if code == Emit::Share as u32 { Emit::Share } else { Emit::Copy }
}

extern "C" fn ct_prepare<E: Env>(ctx: &mut Ctx, burst: &Burst, set: u32, zone: u32) {
    env::<E>(ctx).ct_prepare(ctx, burst, set, zone as u16);
}

extern "C" fn ct<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, point: &CtPoint, zone: u32) -> u32 {
    env::<E>(ctx).ct(ctx, burst, i as usize, point, zone as u16)
}

extern "C" fn emit<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, port: u32, code: u32) {
    env::<E>(ctx).emit(ctx, burst, i as usize, port as u16, how(code));
}

extern "C" fn flood<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, in_port: u32, code: u32) {
    env::<E>(ctx).flood(ctx, burst, i as usize, in_port as u16, how(code));
}

extern "C" fn normal<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, in_port: u32, code: u32) {
    env::<E>(ctx).normal(ctx, burst, i as usize, in_port as u16, how(code));
}

extern "C" fn save<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32) {
    env::<E>(ctx).save(ctx, burst, i as usize);
}

extern "C" fn restore<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32) {
    env::<E>(ctx).restore(ctx, burst, i as usize);
}

extern "C" fn fail<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, reason: u32) {
    let reason = DropReason::from_code(reason as u8).unwrap_or(DropReason::Policy);
    env::<E>(ctx).fail(ctx, burst, i as usize, reason);
}

extern "C" fn l2(burst: &Burst, i: u32, vlan_limit: u32) -> u64 {
    header::l2(burst.bytes(i as usize), vlan_limit).0
}

extern "C" fn l3(burst: &Burst, i: u32, l2: u64) -> u64 {
    header::l3(burst.bytes(i as usize), L2(l2)).0
}

extern "C" fn l4(burst: &Burst, i: u32, l3: u64) -> u64 {
    header::l4(burst.bytes(i as usize), L3(l3)).0
}

extern "C" fn arp(burst: &Burst, i: u32, l2: u64) -> u64 {
    u64::from(header::arp(burst.bytes(i as usize), L2(l2)))
}

extern "C" fn set(burst: &mut Burst, i: u32, target: u32, high: u64, low: u64, vlan_limit: u32) {
    if let Some(&target) = Target::ALL.get(target as usize) {
        edit::set(burst.bytes_mut(i as usize), target, u128::from(high) << 64 | u128::from(low), vlan_limit);
    }
}

extern "C" fn dec_ttl(burst: &mut Burst, i: u32, vlan_limit: u32) -> u32 {
    u32::from(edit::dec_ttl(burst.bytes_mut(i as usize), vlan_limit) == Ttl::Expired)
}

extern "C" fn clear(ctx: &mut Ctx, i: u32) {
    ctx.start_packet();
    ctx.vars(i as usize).fill(0);
    *ctx.ct(i as usize) = crate::CtView::CLEAR;
}

extern "C" fn enter(ctx: &mut Ctx, back: u32) -> u32 {
    u32::from(ctx.enter(back != 0))
}

extern "C" fn lookup(ctx: &Ctx, table: u32, key: *const u64, words: u32) -> u64 {
    // SAFETY: compiled code passes the address of that many words of its own frame.
    let key = unsafe { core::slice::from_raw_parts(key, words as usize) };
    ctx.lookup(table as usize, key)
}

extern "C" fn external(ctx: &Ctx, burst: &mut Burst, i: u32, action: u32, arguments: *const u64, words: u32) -> u32 {
    // SAFETY: compiled code passes the address of that many words of its own frame.
    let arguments = unsafe { core::slice::from_raw_parts(arguments, words as usize) };
    (ctx.external(action as usize, burst, i as usize, arguments) == Flow::Drop) as u32
}

extern "C" fn emit_part<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, port: u32, max_len: u32) {
    env::<E>(ctx).emit_part(ctx, burst, i as usize, port as u16, max_len as u16);
}

extern "C" fn controller<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, reason: u32, max_len: u32) {
    env::<E>(ctx).controller(ctx, burst, i as usize, reason as u8, max_len as u16);
}

extern "C" fn meter<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, meter: u32) -> u32 {
    u32::from(env::<E>(ctx).meter(ctx, burst, i as usize, meter as u16))
}

extern "C" fn live<E: Env>(ctx: &mut Ctx, port: u32) -> u32 {
    u32::from(env::<E>(ctx).live(ctx, port as u16))
}

extern "C" fn find(ctx: &mut Ctx, table: u32, key: *const u64, words: u32) -> u64 {
    // SAFETY: as in `lookup`.
    let key = unsafe { core::slice::from_raw_parts(key, words as usize) };
    ctx.find(table as usize, key)
}

extern "C" fn find_ordered<E: Env>(
    ctx: &mut Ctx,
    burst: &Burst,
    i: u32,
    table: u32,
    key: *const u64,
    words: u32,
) -> u64 {
    // SAFETY: as in `lookup`.
    let key = unsafe { core::slice::from_raw_parts(key, words as usize) };
    env::<E>(ctx).find(ctx, burst, i as usize, table as u16, key)
}

/// How many words of key and of arguments stand where a call of `learn` points, and the action, as one number.
pub const fn learn_counts(key: u32, args: u32, action: u16) -> u32 {
    key | args << 8 | (action as u32) << 16
}

extern "C" fn learn<E: Env>(ctx: &mut Ctx, burst: &Burst, i: u32, table: u32, words: *const u64, counts: u32) {
    let (key, args, action) = ((counts & 0xff) as usize, (counts >> 8 & 0xff) as usize, (counts >> 16) as u16);
    // SAFETY: compiled code passes the address of that many words of its own frame.
    let words = unsafe { core::slice::from_raw_parts(words, key + args) };
    let (key, args) = words.split_at(key);
    env::<E>(ctx).learn(ctx, burst, i as usize, table as u16, key, action, args);
}

extern "C" fn reshape<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, what: u32, a: u64, b: u64, limit: u32) -> u32 {
    match Reshape::ALL.get(what as usize) {
        Some(&what) => reshape::apply(env::<E>(ctx), ctx, burst, i as usize, what, (a, b), limit),
        None => 0,
    }
}

extern "C" fn encap<E: Env>(ctx: &mut Ctx, burst: &mut Burst, i: u32, stack: &Stack, limit: u32) -> u32 {
    reshape::encap(env::<E>(ctx), ctx, burst, i as usize, stack, limit)
}

extern "C" fn finish(burst: &mut Burst, i: u32, stack: &Stack) {
    reshape::finish(burst.bytes_mut(i as usize), stack);
}

/// `shape`: offset in bits, above 16 bits the width, above 24 whether a checksum follows.
extern "C" fn set_bits(burst: &mut Burst, i: u32, at: u64, shape: u32, high: u64, low: u64, limit: u32) {
    let covered = (shape >> 24 != 0).then_some(limit);
    let value = u128::from(high) << 64 | u128::from(low);
    let data = burst.bytes_mut(i as usize);
    reshape::set_bits(data, at as usize, shape & 0xffff, shape >> 16 & 0xff, value, covered);
}

extern "C" fn nd(burst: &Burst, i: u32, l3: u64) -> u64 {
    header::nd(burst.bytes(i as usize), L3(l3)).0
}

/// How many keys and how many words of key and of arguments each, as one number.
pub const fn all_counts(n: u32, width: u32, args: u32) -> u32 {
    n | width << 8 | args << 16
}

/// The meaning of [`all_counts`], beside the places of the first key and of what is found.
fn gathered(keys: u32, found: u32, args: u32, counts: u32) -> Gathered {
    Gathered {
        n: (counts & 0xff) as usize,
        width: (counts >> 8 & 0xff) as usize,
        keys: keys as usize,
        found: found as usize,
        args: args as usize,
        arg_words: (counts >> 16) as usize,
    }
}

extern "C" fn lookup_all(ctx: &mut Ctx, table: u32, keys: u32, found: u32, args: u32, counts: u32) {
    ctx.lookup_all(table as usize, gathered(keys, found, args, counts));
}

extern "C" fn find_all(ctx: &mut Ctx, table: u32, keys: u32, found: u32, args: u32, counts: u32) {
    ctx.find_all(table as usize, gathered(keys, found, args, counts));
}

/// An [`Env`] that goes through the table of a context: what the code of a library is given.
pub struct Calls(pub &'static CEnv);

impl Env for Calls {
    fn ct_prepare(&mut self, ctx: &mut Ctx, burst: &Burst, set: u32, zone: u16) {
        (self.0.ct_prepare)(ctx, burst, set, u32::from(zone))
    }
    fn ct(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, point: &CtPoint, zone: u16) -> u32 {
        (self.0.ct)(ctx, burst, i as u32, point, u32::from(zone))
    }
    fn emit(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, port: u16, how: Emit) {
        (self.0.emit)(ctx, burst, i as u32, u32::from(port), how as u32)
    }
    fn flood(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, in_port: u16, how: Emit) {
        (self.0.flood)(ctx, burst, i as u32, u32::from(in_port), how as u32)
    }
    fn normal(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, in_port: u16, how: Emit) {
        (self.0.normal)(ctx, burst, i as u32, u32::from(in_port), how as u32)
    }
    fn save(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize) {
        (self.0.save)(ctx, burst, i as u32)
    }
    fn restore(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize) {
        (self.0.restore)(ctx, burst, i as u32)
    }
    fn grow(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, at: usize, n: usize) -> bool {
        (self.0.reshape)(ctx, burst, i as u32, Reshape::Grow as u32, at as u64, n as u64, 0) == 0
    }
    fn shrink(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, at: usize, n: usize) {
        (self.0.reshape)(ctx, burst, i as u32, Reshape::Shrink as u32, at as u64, n as u64, 0);
    }
    fn fail(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, reason: DropReason) {
        (self.0.fail)(ctx, burst, i as u32, reason as u32)
    }
    fn emit_part(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, port: u16, max_len: u16) {
        (self.0.emit_part)(ctx, burst, i as u32, u32::from(port), u32::from(max_len))
    }
    fn controller(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, reason: u8, max_len: u16) {
        (self.0.controller)(ctx, burst, i as u32, u32::from(reason), u32::from(max_len))
    }
    fn meter(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, meter: u16) -> bool {
        (self.0.meter)(ctx, burst, i as u32, u32::from(meter)) != 0
    }
    fn live(&mut self, ctx: &mut Ctx, port: u16) -> bool {
        (self.0.live)(ctx, u32::from(port)) != 0
    }
    fn find(&mut self, ctx: &mut Ctx, burst: &Burst, i: usize, table: u16, key: &[u64]) -> u64 {
        (self.0.find_ordered)(ctx, burst, i as u32, u32::from(table), key.as_ptr(), key.len() as u32)
    }
    fn learn(&mut self, ctx: &mut Ctx, burst: &Burst, i: usize, table: u16, key: &[u64], action: u16, args: &[u64]) {
        let mut words = [0; crate::table::MAX_WORDS + crate::table::MAX_ARGS];
        let all = key.iter().chain(args);
        for (to, from) in words.iter_mut().zip(all) {
            *to = *from;
        }
        let counts = learn_counts(key.len() as u32, args.len() as u32, action);
        (self.0.learn)(ctx, burst, i as u32, u32::from(table), words.as_ptr(), counts)
    }
}
