//! What can go wrong between a command line and started ports. Each error names the thing and what to do about it.

use std::ffi::CStr;

/// A failure of the environment, met before any packet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A second start in one process.
    #[error("DPDK's EAL was started before in this process, and it can start only once")]
    EalStarted,
    /// The EAL refused to start.
    #[error("DPDK's EAL does not start: {reason}; {help}")]
    EalStart {
        /// What the EAL said.
        reason: String,
        /// What to do.
        help: String,
    },
    /// No room for packet buffers.
    #[error("no memory for {mbufs} packet buffers ({mib} MiB, pool `{pool}`): {reason}; {help}")]
    Memory {
        /// The pool's name.
        pool: String,
        /// How many buffers were wanted.
        mbufs: u32,
        /// How much memory they need.
        mib: u32,
        /// What DPDK said.
        reason: String,
        /// What to do.
        help: String,
    },
    /// A port that cannot be opened.
    #[error("port `{port}`: {problem}; {help}")]
    Port {
        /// The port as it was asked for, `NAME=KIND`.
        port: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        help: String,
    },
    /// A processor that this process may not use.
    #[error("processor {cpu} is not one that this process may run on; choose among {allowed}")]
    Cpu {
        /// The processor asked for.
        cpu: u32,
        /// Those there are.
        allowed: String,
    },
    /// A thread that DPDK does not take.
    #[error("DPDK takes no further thread: {reason}; use fewer workers")]
    Thread {
        /// What DPDK said.
        reason: String,
    },
}

impl Error {
    /// A port's error.
    pub(super) fn port(port: impl ToString, problem: impl Into<String>, help: impl Into<String>) -> Error {
        Error::Port { port: port.to_string(), problem: problem.into(), help: help.into() }
    }
}

/// The text of an error number, positive or negative.
pub(super) fn errno_text(errno: i32) -> String {
    // SAFETY: returns a static or thread-local C string for any number.
    let text = unsafe { dpdk_sys::rte_strerror(errno.saturating_abs()) };
    // SAFETY: the string ends with NUL and lives until this thread's next call, which comes after the copy.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// DPDK's error number of the last failed call on this thread.
pub(super) fn last_errno() -> i32 {
    // SAFETY: reads a thread-local variable.
    unsafe { dpdk_sys::shim_errno() }
}
