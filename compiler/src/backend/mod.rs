//! Translators of a [`Plan`](crate::plan::Plan): each reads the plan alone, and none knows another.

#[cfg(feature = "jit")]
pub mod jit;
pub mod rust;
