//! How a program reaches the runtime: one entry, three carriers.
//!
//! | carrier | `RunFn` | calls of `Env` |
//! |---|---|---|
//! | static Rust: [`Program`] | [`run_static`] | direct |
//! | library: [`export_program!`](crate::export_program) | in the [`Descriptor`] it exports | through [`CEnv`](crate::cenv::CEnv) |
//! | JIT | compiled code | through [`CEnv`](crate::cenv::CEnv) |
//!
//! What a program is (ports, rules, counters, points) goes along as JSON, the same text in all three.

use crate::cenv::Calls;
use crate::external::Extern;
use crate::{Burst, Ctx, Env};

/// Runs a program over a burst from an entry: 0 is the start, `k` resumes every packet at point `k`.
///
/// The context has an `Env` attached, and counters and variables as many as the description says.
pub type RunFn = unsafe extern "C" fn(ctx: *mut Ctx, burst: *mut Burst, entry: u16);

/// A program in static Rust; generated code implements it.
pub trait Program {
    /// What the program is, in JSON.
    const META: &'static str;
    /// Its tables, as [`table::encode`](crate::table::encode) wrote them.
    const TABLES: &'static [&'static [u8]];
    /// Its actions in Rust, in the order of its description.
    const EXTERNS: &'static [Extern] = &[];

    /// Runs a burst.
    fn run<E: Env>(env: &mut E, ctx: &mut Ctx, burst: &mut Burst, entry: u16);
}

/// The [`RunFn`] of a static program whose calls of `E` are direct.
///
/// # Safety
/// As [`RunFn`] says, and the `Env` attached to the context is an `E`.
pub unsafe extern "C" fn run_static<P: Program, E: Env>(ctx: *mut Ctx, burst: *mut Burst, entry: u16) {
    // SAFETY: the caller's contexts and bursts are alone to this call.
    let ctx = unsafe { &mut *ctx };
    // SAFETY: the same.
    let burst = unsafe { &mut *burst };
    // SAFETY: an `E` is attached, which lies outside the context and the burst.
    let env = unsafe { &mut *ctx.env().cast::<E>() };
    P::run(env, ctx, burst, entry);
}

/// The [`RunFn`] of a program in a library.
///
/// # Safety
/// As [`RunFn`] says.
pub unsafe extern "C" fn run_library<P: Program>(ctx: *mut Ctx, burst: *mut Burst, entry: u16) {
    // SAFETY: the caller's contexts and bursts are alone to this call.
    let ctx = unsafe { &mut *ctx };
    // SAFETY: the same.
    let burst = unsafe { &mut *burst };
    if let Some(calls) = ctx.calls() {
        P::run(&mut Calls(calls), ctx, burst, entry);
    }
}

/// What a library exports under the name [`SYMBOL`].
#[repr(C)]
pub struct Descriptor {
    /// [`ABI_HASH`](crate::ABI_HASH) of the crate it was compiled with.
    pub abi_hash: u64,
    /// The description, in JSON.
    pub meta: *const u8,
    /// Its length in bytes.
    pub meta_len: usize,
    /// Its tables, as bytes.
    pub tables: *const &'static [u8],
    /// How many.
    pub n_tables: usize,
    /// Its actions in Rust.
    pub externs: *const Extern,
    /// How many.
    pub n_externs: usize,
    /// The entry.
    pub run: RunFn,
}

// SAFETY: immutable, and points at constants only.
unsafe impl Sync for Descriptor {}

/// Name of the [`Descriptor`] that a library exports.
pub const SYMBOL: &str = "pipec_program";

impl Descriptor {
    /// The descriptor of a program.
    pub const fn of<P: Program>() -> Descriptor {
        Descriptor {
            abi_hash: crate::ABI_HASH,
            meta: P::META.as_ptr(),
            meta_len: P::META.len(),
            tables: P::TABLES.as_ptr(),
            n_tables: P::TABLES.len(),
            externs: P::EXTERNS.as_ptr(),
            n_externs: P::EXTERNS.len(),
            run: run_library::<P>,
        }
    }
}

/// Exports a program from a library. Holds the only `unsafe` that generated source needs.
#[macro_export]
macro_rules! export_program {
    ($program:ty) => {
        /// What the runtime looks up in this library.
        // SAFETY: the name is the product's own; no other symbol has it.
        #[unsafe(no_mangle)]
        pub static pipec_program: $crate::export::Descriptor = $crate::export::Descriptor::of::<$program>();
    };
}
