//! The dataplane that compiled pipelines run on: packets in by ports, through a program in bursts, out by ports.

pub mod conntrack;
pub mod engine;
pub mod env;
pub mod error;
pub mod fdb;
#[cfg(feature = "host")]
pub mod host;
pub mod io;
pub mod library;
#[cfg(feature = "dpdk")]
pub mod live;
#[cfg(feature = "host")]
pub mod live_line;
pub mod liveness;
pub mod meter;
pub mod offline;
pub mod options;
pub mod pcap;
pub mod ports;
pub mod replay;
pub mod stats;
#[cfg(feature = "host")]
pub mod summary;
pub mod sync;
pub mod tables;

pub use pipec_abi as abi;
#[cfg(feature = "macros")]
pub use pipec_macros::pipeline;

/// The macro for programs that stand in Rust's source: `pipeline! { pub pipeline wire { … } }`. It has a module of its own
/// because a crate cannot have an attribute and a macro of one name in one place.
#[cfg(feature = "macros")]
pub mod inline {
    pub use pipec_macros::pipeline_block as pipeline;
}

pub use engine::Engine;
pub use error::Error;
pub use tables::Tables;
