//! The dataplane that compiled pipelines run on: packets in by ports, through a program in bursts, out by ports.

pub mod conntrack;
pub mod engine;
pub mod env;
pub mod error;
pub mod fdb;
pub mod io;
#[cfg(feature = "dpdk")]
pub mod live;
pub mod offline;
pub mod pcap;
pub mod replay;
pub mod stats;
pub mod sync;

pub use engine::Engine;
pub use error::Error;
