//! What can go wrong around a program: the user's mistakes and the environment's failures, each a message that says what to
//! do. Never anything on the packet path, which has drop reasons.

use crate::io::spec::SpecError;
use crate::pcap::CaptureError;

/// A failure outside the packet path.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A port that cannot be understood.
    #[error(transparent)]
    Port(#[from] SpecError),
    /// A capture that cannot be read or written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// DPDK, or a port on it, that does not start.
    #[cfg(feature = "dpdk")]
    #[error(transparent)]
    Dpdk(#[from] crate::io::dpdk::Error),
    /// Anything else that the machine refuses.
    #[error("{0}")]
    Environment(String),
}

impl Error {
    /// The exit status that stands for it: 2 when the request is wrong, 1 when the environment is.
    pub fn status(&self) -> u8 {
        match self {
            Error::Usage(_) | Error::Port(_) => 2,
            Error::Capture(_) | Error::Environment(_) => 1,
            #[cfg(feature = "dpdk")]
            Error::Dpdk(_) => 1,
        }
    }
}

/// An error of the system in its own words, without its number.
pub fn system(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
