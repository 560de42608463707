//! Look-up structures beside those of DPDK, in one process.
//!
//! In: names of sets (`acl-1000`, `hash8-1000000`, `lpm-100000`, …). Out: nanoseconds and cycles a key, in bursts of 32 and in
//! alternation, memory, and times to build and to change. Never: a test that fails for being slow.
//!
//! ```text
//! classbench   rules over five fields ─┐
//! sets         keys, prefixes, traces  ├─▶ a table of pipec_abi, and peers (DPDK's, through c/peers.c) ─▶ measure
//! ```

pub mod classbench;
pub mod json;
pub mod measure;
#[cfg(peers)]
pub mod peers;
pub mod sets;
pub mod targets;
