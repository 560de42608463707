//! What tests that cross crates share: programs on every engine, random programs, random frames, live networks.

pub mod beside;
pub mod binary;
pub mod book;
pub mod classifier;
pub mod corpus;
pub mod engines;
pub mod frames;
pub mod fuzz;
pub mod house;
pub mod live;
pub mod ovs;
pub mod program_tests;
pub mod programs;
pub mod rust;
pub mod shapes;
