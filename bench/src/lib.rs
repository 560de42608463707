//! Side-by-side benchmarks: this dataplane and others on the same frames over the same ports.
//!
//! In: names of workloads and engines. Out: cycles a packet of each, measured in alternation, as a table or JSON. Never: a test
//! that fails for being slow.
//!
//! ```text
//! workload   rules and frames, from a seed            ─┐
//! engine     a process: started, warmed, measured,     ├─▶ rounds (A B A B …) ─▶ report, beside targets
//!            stopped; its ports are net_null with the  │
//!            frames of `bench/replay`                 ─┘
//! ```
//!
//! A figure is `TSC cycles a second × seconds that the engine's thread had the processor ÷ packets received`. With nothing
//! else on that processor, this is the time a packet takes; with something else, what it would take, but for caches.

pub mod artifacts;
pub mod compiled;
pub mod engine;
pub mod error;
pub mod frames;
pub mod instructions;
pub mod latency;
pub mod live;
pub mod lookups;
pub mod machine;
pub mod process;
pub mod random;
pub mod report;
pub mod results;
pub mod rounds;
pub mod targets;
pub mod updates;
pub mod workload;

pub use error::Error;
