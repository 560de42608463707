//! How a subcommand ends when it does not end well.

use pipec_runtime::Error;

/// Why a subcommand failed.
#[derive(Debug)]
pub enum Failure {
    /// The user has been told already; this is the exit status.
    Told(u8),
    /// Still to be told.
    Error(Error),
}

impl<E: Into<Error>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Error(error.into())
    }
}

impl Failure {
    /// What was asked for makes no sense.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::Error(Error::Usage(message.into()))
    }

    /// The machine refuses.
    pub fn environment(message: impl Into<String>) -> Failure {
        Failure::Error(Error::Environment(message.into()))
    }
}
