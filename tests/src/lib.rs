//! What tests that cross crates share: programs on every engine, random programs, random frames.

pub mod engines;
pub mod frames;
pub mod ovs;
pub mod programs;
