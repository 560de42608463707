//! What compiled pipelines and the runtime share, and nothing else: a leaf crate.
//!
//! A compiled pipeline is a function over a [`Burst`]: it reads and writes packet bytes itself, and asks an [`Env`] for
//! everything that has state outside the packet (connections, learned addresses, output). Three carriers bring one to the
//! runtime: static Rust, a library ([`export`]), and JIT code; all three are a [`RunFn`] and a description in JSON.
//!
//! How a program runs over a burst (the names are used by `plan`, the back ends and the runtime alike):
//!
//! ```text
//! run(ctx, burst, 0)
//!   prefix   for every packet: parse, look up what packets cannot change; ends in a verdict, or suspends at a point
//!   prepare  Env::ct_prepare for those that wait for the connection tracker: hash and prefetch for all
//!   tail     for every suspended packet, in order, to its end: ct(), learning, and everything after
//! run(ctx, burst, k)   resumes every packet of the burst at point k: held fragments, packets handed to another worker
//! ```
//!
//! `unsafe` stands in [`burst`] (a burst's pointers become slices), [`cenv`] (the C-ABI table of an `Env`) and [`export`].

pub mod burst;
pub mod cenv;
pub mod ct;
pub mod ctx;
pub mod edit;
pub mod env;
pub mod export;
pub mod external;
pub mod hash;
pub mod header;
#[cfg(feature = "meta")]
pub mod meta;
pub mod reason;
pub mod reshape;
pub mod table;

pub use burst::{BURST, Burst, Verdict};
pub use ct::{CtPoint, CtView};
pub use ctx::{Counter, Ctx, Gathered};
pub use env::{Emit, Env};
pub use export::{Program, RunFn};
pub use external::{Flow, Packet};
pub use reason::DropReason;

/// The pseudo port of whoever controls the dataplane: no program has so many ports.
pub const CONTROLLER: u16 = 0x7ffe;

/// Changes with every layout in this crate that compiled code depends on. A library with another value is refused.
pub const ABI_HASH: u64 = {
    let words = [
        4, // raised by hand when a meaning changes and no layout does
        size_of::<Burst>() as u64,
        size_of::<Ctx>() as u64,
        size_of::<export::Descriptor>() as u64,
        size_of::<CtPoint>() as u64,
        size_of::<CtView>() as u64,
        size_of::<cenv::CEnv>() as u64,
        size_of::<reshape::Stack>() as u64,
        DropReason::ALL.len() as u64,
    ];
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < words.len() {
        hash = (hash ^ words[i]).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
};
