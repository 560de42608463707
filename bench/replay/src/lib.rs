//! EAL plug-in: what DPDK's `net_null` ports receive becomes the frames of a capture, over and over. Any DPDK program that
//! loads it (`-d PATH`) gets the same input at the same cost a packet.
//!
//! In: the folder that `REPLAY_DIR` names, with `<device>.pcap` for each port. They are read when the plug-in is loaded, which
//! is before the EAL starts its ports, and attached to each port when it appears. Until then a port receives blank frames:
//! warm up before counting. Several receive queues share the frames by a hash of the five-tuple that is the same for both
//! directions; `REPLAY_SPLIT=asymmetric` makes it differ by direction, as plain RSS does. Out: frames in mbufs. Never: a
//! failure of the program that loaded it; what is wrong is said on standard error, and the port goes on with blank frames.
//!
//! With `REPLAY_LATENCY=SECONDS,CPU` the program's ports are `net_ring0` and `net_ring1`, and a thread on that processor sends
//! the frames of `net_null0.pcap` and `net_null1.pcap` to them, takes what they send and tells how long that took: see
//! `latency`.
//!
//! The EAL refuses plug-ins that lie below a folder which everybody may write.

mod attach;
mod frames;
mod latency;
mod receive;
mod rings;

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::attach::Capture;
use crate::frames::{Frames, Split};

/// What the dynamic loader calls when it has loaded this library.
#[used]
// SAFETY: the section holds functions of the C calling convention, which the loader calls once, without arguments that matter.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    let Some(folder) = std::env::var_os("REPLAY_DIR").map(PathBuf::from) else {
        tell("REPLAY_DIR is not set; ports receive blank frames");
        return;
    };
    let split = match std::env::var_os("REPLAY_SPLIT") {
        Some(word) if word == "asymmetric" => Split::Asymmetric,
        _ => Split::Symmetric,
    };
    let result = match latency::ask() {
        None => captures(&folder).map(|captures| {
            let captures = captures.iter().map(|(device, frames)| Capture::new(device, frames.clone())).collect();
            thread::spawn(move || attach::watch(captures, split));
        }),
        Some(ask) => ask.and_then(|ask| {
            let captures = captures(&folder)?;
            let of =
                |device: &str| captures.iter().find(|capture| capture.0 == device).map(|capture| capture.1.clone());
            let frames = [of("net_null0"), of("net_null1")];
            thread::spawn(move || latency::run(frames, &ask));
            Ok(())
        }),
    };
    if let Err(message) = result {
        tell(&message);
    }
}

/// The captures of a folder, by device; those that cannot be read are told of.
fn captures(folder: &Path) -> Result<Vec<(String, Arc<Frames>)>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut captures = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension() != Some(OsStr::new("pcap")) {
            continue;
        }
        let Some(device) = path.file_stem().and_then(OsStr::to_str) else { continue };
        match Frames::read(&path) {
            Ok(frames) => captures.push((device.to_string(), Arc::new(frames))),
            Err(message) => tell(&format!("{}: {message}", path.display())),
        }
    }
    Ok(captures)
}

/// Writes a line to standard error at once, so that it stays whole beside what the program writes; where nobody reads it,
/// there is nobody else to tell.
fn tell(line: &str) {
    let _ = io::stderr().write_all(format!("replay: {line}\n").as_bytes());
}
