//! Bindings to the DPDK that is installed on the building machine.
//!
//! In: the headers and libraries that `pkg-config libdpdk` names. Out: bindgen's declarations of the functions and types that
//! `pipec-runtime` uses, and the functions of the C shim (`c/shim.h`, names `shim_*`) around what the headers only have as
//! static inlines. The layout of every bound type is asserted at compile time. Never: anything safe, or anything that decides;
//! that is `pipec_runtime::io::dpdk`.
//!
//! To bind more, add the header to `c/wrapper.h` and the names to the lists in `build.rs`.

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    rustdoc::all
)]
mod bindings {
    include!(concat!(env!("OUT_DIR"), "/bindings.rs"));
}

pub use bindings::*;
