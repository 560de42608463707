//! DPDK's log, kept quiet: what the EAL and its drivers write is held back, and quoted only in a failure's message.
//!
//! In: DPDK's log stream, and during the start standard output and error, where the EAL writes too. Out: the last lines
//! above a level. Never: a line on the terminal while all goes well. Every line also goes to `tracing` at debug level.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines kept.
const LINES: usize = 128;
/// Longest line kept, in bytes; the rest of a longer one is lost.
const LINE_MAX: usize = 1024;

struct Log {
    /// Level (1 is the worst, 8 is debug) and text.
    lines: VecDeque<(u32, String)>,
    /// Lines ever written, so that a mark outlives what is forgotten.
    written: u64,
    /// The beginning of a line whose end has not been written.
    partial: String,
}

static LOG: Mutex<Log> = Mutex::new(Log { lines: VecDeque::new(), written: 0, partial: String::new() });

fn lock() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes over DPDK's log stream. Before the EAL starts; once.
pub(super) fn install() {
    // SAFETY: `on_write` has the signature that shim.h declares and lives as long as the program.
    let stream = unsafe { dpdk_sys::shim_stream(Some(on_write)) };
    if !stream.is_null() {
        // SAFETY: the stream is open and is never closed.
        unsafe { dpdk_sys::rte_openlog_stream(stream) };
    }
}

unsafe extern "C" fn on_write(text: *const std::ffi::c_char, len: usize) {
    // SAFETY: stdio hands over `len` readable bytes for the time of this call.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), len) };
    // SAFETY: reads a thread-local variable.
    let level = unsafe { dpdk_sys::rte_log_cur_msg_loglevel() };
    let level = u32::try_from(level).unwrap_or(0).max(dpdk_sys::RTE_LOG_EMERG);
    write(level, &String::from_utf8_lossy(bytes));
}

fn write(level: u32, text: &str) {
    if level <= dpdk_sys::RTE_LOG_CRIT {
        eprint!("{text}"); // DPDK often ends the process after these
    }
    let mut log = lock();
    for piece in text.split_inclusive('\n') {
        let room = LINE_MAX.saturating_sub(log.partial.len());
        log.partial.extend(piece.trim_end_matches('\n').chars().take(room));
        if piece.ends_with('\n') {
            let line = std::mem::take(&mut log.partial);
            tracing::debug!(target: "dpdk", "{line}");
            log.push(level, line);
        }
    }
}

impl Log {
    fn push(&mut self, level: u32, line: String) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back((level, line));
        self.written += 1;
    }

    /// What has this level or a worse one among the last lines.
    fn last(&self, lines: usize, level: u32) -> String {
        let lines = self.lines.iter().skip(self.lines.len() - lines);
        reasons(lines.filter(|(line_level, _)| *line_level <= level).map(|(_, line)| line.as_str()))
    }
}

/// What DPDK writes after the reason, in every case.
const NOISE: [&str; 3] = ["EAL: Driver cannot attach the device", "EAL: Failed to attach device", "dev_configure = "];

/// Lines as one text, each reason once.
pub(super) fn reasons<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut found: Vec<String> = Vec::new();
    for line in lines {
        let line = line.trim().replacen("FATAL: ", "", 1);
        if !line.is_empty() && !NOISE.iter().any(|noise| line.contains(noise)) && !found.contains(&line) {
            found.push(line);
        }
    }
    found.join("; ")
}

/// A place in the log.
#[derive(Clone, Copy)]
pub(super) struct Mark(u64);

/// The place the log has reached.
pub(super) fn mark() -> Mark {
    Mark(lock().written)
}

/// What DPDK has complained about since `mark`: its errors, or without any its warnings.
pub(super) fn complaints(mark: Mark) -> String {
    let log = lock();
    let lines = (log.written - mark.0).min(log.lines.len() as u64) as usize;
    let errors = log.last(lines, dpdk_sys::RTE_LOG_ERR);
    if errors.is_empty() { log.last(lines, dpdk_sys::RTE_LOG_WARNING) } else { errors }
}

/// Runs `f` with standard output and error going to memory, and returns what was written there, by whatever thread. Where
/// they cannot be redirected, they are left alone.
pub(super) fn capture<T>(f: impl FnOnce() -> T) -> (T, String) {
    match Redirect::new() {
        None => (f(), String::new()),
        Some(redirect) => {
            let value = f();
            (value, redirect.finish())
        }
    }
}

/// Writes captured text to where it would have gone.
pub(super) fn replay(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes()); // nobody is left to be told
}

struct Redirect {
    memory: File,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

impl Redirect {
    fn new() -> Option<Redirect> {
        // SAFETY: the name ends with NUL.
        let fd = unsafe { libc::memfd_create(c"pipec-start".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return None;
        }
        // SAFETY: the descriptor was just opened, and nobody else has it.
        let memory = unsafe { File::from_raw_fd(fd) };
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
        let stderr = std::io::stderr().as_fd().try_clone_to_owned().ok()?;
        flush();
        point_at(&memory, libc::STDOUT_FILENO);
        point_at(&memory, libc::STDERR_FILENO);
        Some(Redirect { memory, stdout, stderr })
    }

    fn finish(mut self) -> String {
        flush();
        point_at(&self.stdout, libc::STDOUT_FILENO);
        point_at(&self.stderr, libc::STDERR_FILENO);
        let mut bytes = Vec::new();
        let read = self.memory.rewind().and_then(|()| self.memory.read_to_end(&mut bytes));
        if read.is_err() { String::new() } else { String::from_utf8_lossy(&bytes).into_owned() }
    }
}

fn flush() {
    // SAFETY: flushes two streams of the C library, which locks them itself.
    unsafe { dpdk_sys::shim_flush() };
}

/// Makes descriptor `to` a second name of `from`. It fails only on descriptors that are not open, which these are.
fn point_at(from: &impl AsFd, to: i32) {
    // SAFETY: replaces one of the process's standard descriptors, which no Rust type owns.
    unsafe { libc::dup2(from.as_fd().as_raw_fd(), to) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_joined_and_old_lines_forgotten() {
        let start = mark();
        write(dpdk_sys::RTE_LOG_INFO, "EAL: half ");
        write(dpdk_sys::RTE_LOG_INFO, "a line\nEAL: another\n");
        assert_eq!(lock().last(2, dpdk_sys::RTE_LOG_INFO), "EAL: half a line; EAL: another");
        assert_eq!(complaints(start), "");
        write(dpdk_sys::RTE_LOG_WARNING, "tap: careful\n");
        assert_eq!(complaints(start), "tap: careful");
        write(dpdk_sys::RTE_LOG_ERR, "tap: no such thing \ntap: no such thing\n");
        assert_eq!(complaints(start), "tap: no such thing");
        assert_eq!(complaints(mark()), "");
        for _ in 0..LINES {
            write(dpdk_sys::RTE_LOG_INFO, "more\n");
        }
        assert_eq!(lock().lines.len(), LINES);
        assert_eq!(complaints(start), "");
    }
}
