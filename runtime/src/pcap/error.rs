//! What is wrong with a capture, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::error::system;

/// Something wrong with a capture.
#[derive(Debug)]
pub struct CaptureError {
    /// The file, as it was named.
    pub path: PathBuf,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a capture.
#[derive(Debug)]
pub enum Problem {
    /// It cannot be opened.
    Open(io::Error),
    /// It cannot be read, after so many packets.
    Read(io::Error, u64),
    /// It cannot be written.
    Write(io::Error),
    /// It has no bytes.
    Empty,
    /// It begins like no capture.
    NotCapture,
    /// It is compressed.
    Compressed,
    /// This packet, and those behind it, are not Ethernet frames but of this link type.
    LinkType(u32, u64),
    /// It ends in the middle of a packet, after so many whole ones.
    Truncated(u64),
    /// What follows so many packets cannot be.
    Damaged(u64, String),
}

impl std::error::Error for CaptureError {}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match &self.problem {
            Problem::Open(error) => write!(f, "cannot open the capture: {}; {}", system(error), open_help(error)),
            Problem::Read(error, after) => {
                write!(
                    f,
                    "cannot read on after {}: {}; see that it is a file that can be read",
                    packets(*after),
                    system(error)
                )
            }
            Problem::Write(error) => {
                write!(f, "cannot write the capture: {}; {}", system(error), write_help(error))
            }
            Problem::Empty => f.write_str("the file is empty, not a capture; capture again (tcpdump -w FILE)"),
            Problem::NotCapture => {
                f.write_str("this is not a capture; expected pcap or pcapng, as tcpdump -w and Wireshark write")
            }
            Problem::Compressed => f.write_str("the capture is compressed; unpack it first, such as by gunzip"),
            Problem::LinkType(link, packet) => {
                let (what, help) = link_type(*link);
                write!(f, "packet {packet} is not an Ethernet frame but of link type {link}{what}; {help}")
            }
            Problem::Truncated(after) => write!(
                f,
                "the capture breaks off in the middle of packet {}, after {}; those are good, the rest is lost: copy the file \
                 again or let the capture end before copying it",
                after + 1,
                packets(*after)
            ),
            Problem::Damaged(after, what) => write!(
                f,
                "the capture is damaged behind {}: {what}; those are good, the rest cannot be read: copy the file again",
                packets(*after)
            ),
        }
    }
}

fn packets(n: u64) -> String {
    match n {
        1 => "1 packet".to_string(),
        n => format!("{n} packets"),
    }
}

fn open_help(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "see that the path is right",
        io::ErrorKind::PermissionDenied => "make the file readable for you, or run as a user who may read it",
        _ => "see that it is a file that can be read",
    }
}

fn write_help(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "make its folder first",
        io::ErrorKind::PermissionDenied => "choose a folder that you may write",
        io::ErrorKind::StorageFull => "make room or choose another place",
        _ => "choose another place",
    }
}

/// The name of a link type that people meet, and what to do.
fn link_type(link: u32) -> (&'static str, &'static str) {
    match link {
        113 | 276 => (" (Linux cooked)", "capture on one Ethernet interface (tcpdump -i eth0), not on `any`"),
        12 | 14 | 101 | 228 | 229 => (" (IP without Ethernet)", "capture on an Ethernet interface (tcpdump -i eth0)"),
        105 | 127 => (" (802.11)", "capture without monitor mode, or on the wired side"),
        _ => ("", "capture on an Ethernet interface (tcpdump -i eth0)"),
    }
}
