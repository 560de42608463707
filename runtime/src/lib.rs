//! The dataplane that compiled pipelines run on.
pub mod io;
