//! What stands in the way of a measurement.

use std::path::Path;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something is not installed; says what, and how to install it.
    #[error("{0}")]
    Missing(String),
    /// The engine has no answer to this workload; nothing is wrong.
    #[error("does not apply")]
    NotApplicable,
    /// Something went wrong; says what, and what to do.
    #[error("{0}")]
    Failed(String),
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// A file or folder that cannot be used as it should.
    pub fn file(path: &Path, error: &dyn std::error::Error) -> Error {
        Error::Failed(format!("{}: {error}", path.display()))
    }
}
