//! The compiler: from the text of a program to generated Rust or machine code.
//!
//! A module imports only from modules before it in this order: `source diag field`, `ast`, `parse`, `hir`, `resolve`, `check`,
//! `eval`, `plan`, `backend`. [`eval`] is the reference meaning and shares no code with `plan` and `backend`.

pub mod backend;
pub mod diag;
pub mod eval;
pub mod field;
pub mod hir;
pub mod plan;
pub mod source;
