//! Captures: frames with time stamps from files, and back into files.
//!
//! In: pcap (both byte orders, microseconds or nanoseconds) and pcapng. Out: Ethernet frames in the order of the file, stamps
//! in nanoseconds since 1970; and pcap files whose bytes depend on nothing but frames and stamps. Never: an order over
//! several files, or a repair of stamps; that is `replay`'s.
//!
//! A file that breaks off in the middle of a packet still gives every packet before the break, and then the error, so that
//! nothing that was read is lost. Frames that were cut short when captured (a small snap length) come as the shorter frames
//! they are; [`Capture::cut`] tells of them.

mod error;
mod ng;
mod writer;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::{PcapError, TsResolution};

pub use error::{CaptureError, Problem};
pub use writer::Writer;

const ETHERNET: u32 = 1;
const SECOND_NS: u64 = 1_000_000_000;

/// How fine the stamps of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resolution {
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
}

/// A frame with its stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since 1970, or nothing in a file that has no stamps.
    pub stamp_ns: Option<u64>,
    /// The frame, without FCS.
    pub frame: Vec<u8>,
}

/// Frames that were cut short when they were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Number of the first one, from 1.
    pub first: u64,
    /// Bytes that are there of it.
    pub have: u32,
    /// Bytes that it had.
    pub had: u32,
    /// How many there are.
    pub count: u64,
}

/// A capture that is being read.
pub struct Capture {
    path: PathBuf,
    format: Format,
    resolution: Resolution,
    /// Packets read from the file.
    read: u64,
    /// The first packet, read to see that the file is good.
    first: Option<Result<Packet, CaptureError>>,
    cut: Option<Cut>,
    broken: bool,
}

type Input = io::Chain<io::Cursor<Vec<u8>>, File>;

enum Format {
    Pcap(PcapReader<Input>),
    PcapNg(PcapNgReader<Input>),
}

/// A packet as the file has it.
struct Record {
    stamp_ns: Option<u64>,
    had: u32,
    frame: Vec<u8>,
}

impl Capture {
    /// Opens a capture and looks at its first packet.
    ///
    /// # Errors
    /// When it cannot be opened, is no capture, or its frames are not Ethernet's.
    pub fn open(path: &Path) -> Result<Capture, CaptureError> {
        let fail = |problem| CaptureError { path: path.to_path_buf(), problem };
        let mut file = File::open(path).map_err(|error| fail(Problem::Open(error)))?;
        let mut magic = Vec::new();
        (&mut file).take(4).read_to_end(&mut magic).map_err(|error| fail(Problem::Open(error)))?;
        let format = sniff(&magic).map_err(fail)?;
        let input = io::Cursor::new(magic).chain(file);
        let header = |error| {
            fail(match error {
                PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => Problem::Truncated(0),
                PcapError::IoError(error) => Problem::Read(error, 0),
                _ => Problem::NotCapture,
            })
        };
        let format = match format {
            Magic::Pcap => Format::Pcap(PcapReader::new(input).map_err(header)?),
            Magic::PcapNg => Format::PcapNg(PcapNgReader::new(input).map_err(header)?),
        };
        if let Format::Pcap(reader) = &format
            && link_of(reader) != ETHERNET
        {
            return Err(fail(Problem::LinkType(link_of(reader), 1)));
        }
        let path = path.to_path_buf();
        let mut capture =
            Capture { path, format, resolution: Resolution::Micro, read: 0, first: None, cut: None, broken: false };
        capture.first = capture.read();
        if let Some(Err(CaptureError { problem: Problem::LinkType(..), .. })) = &capture.first
            && let Some(Err(error)) = capture.first.take()
        {
            return Err(error);
        }
        capture.resolution = capture.format.resolution();
        Ok(capture)
    }

    /// How fine its stamps are; for pcapng, as far as its interfaces up to the first packet say.
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Which frames were cut short when captured, of those read so far.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn read(&mut self) -> Option<Result<Packet, CaptureError>> {
        if self.broken {
            return None;
        }
        let next = match &mut self.format {
            Format::Pcap(reader) => next_pcap(reader, self.read),
            Format::PcapNg(reader) => ng::next(reader, self.read),
        }?;
        Some(match next {
            Ok(record) => {
                self.read += 1;
                let have = record.frame.len() as u32;
                if have < record.had {
                    let cut = self.cut.get_or_insert(Cut { first: self.read, have, had: record.had, count: 0 });
                    cut.count += 1;
                }
                Ok(Packet { stamp_ns: record.stamp_ns, frame: record.frame })
            }
            Err(problem) => {
                self.broken = true;
                Err(CaptureError { path: self.path.clone(), problem })
            }
        })
    }
}

impl Iterator for Capture {
    type Item = Result<Packet, CaptureError>;

    /// The next packet; after an error nothing comes any more.
    fn next(&mut self) -> Option<Self::Item> {
        self.first.take().or_else(|| self.read())
    }
}

enum Magic {
    Pcap,
    PcapNg,
}

fn sniff(magic: &[u8]) -> Result<Magic, Problem> {
    match *magic {
        [] => Err(Problem::Empty),
        [0xa1, 0xb2, 0xc3, 0xd4] | [0xd4, 0xc3, 0xb2, 0xa1] | [0xa1, 0xb2, 0x3c, 0x4d] | [0x4d, 0x3c, 0xb2, 0xa1] => {
            Ok(Magic::Pcap)
        }
        [0x0a, 0x0d, 0x0d, 0x0a] => Ok(Magic::PcapNg),
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd] | [0xfd, b'7', b'z', b'X'] => Err(Problem::Compressed),
        _ => Err(Problem::NotCapture),
    }
}

impl Format {
    fn resolution(&self) -> Resolution {
        let fine = match self {
            Format::Pcap(reader) => reader.header().ts_resolution == TsResolution::NanoSecond,
            Format::PcapNg(reader) => reader.interfaces().iter().any(|i| ng::Clock::of(i).is_finer_than_micro()),
        };
        if fine { Resolution::Nano } else { Resolution::Micro }
    }
}

/// What the reader's error means after `after` packets.
fn problem(error: PcapError, after: u64) -> Problem {
    match error {
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => Problem::Truncated(after),
        PcapError::IoError(error) => Problem::Read(error, after),
        other => Problem::Damaged(after, other.to_string()),
    }
}

fn link_of(reader: &PcapReader<Input>) -> u32 {
    u32::from(reader.header().datalink) & 0xffff // above it stand flags about the FCS
}

fn next_pcap(reader: &mut PcapReader<Input>, after: u64) -> Option<Result<Record, Problem>> {
    let unit_ns = if reader.header().ts_resolution == TsResolution::NanoSecond { 1 } else { 1000 };
    Some(match reader.next_raw_packet()? {
        Err(error) => Err(problem(error, after)),
        Ok(raw) => Ok(Record {
            stamp_ns: Some(u64::from(raw.ts_sec) * SECOND_NS + u64::from(raw.ts_frac) * unit_ns),
            had: raw.orig_len,
            frame: raw.data.into_owned(),
        }),
    })
}

#[cfg(test)]
pub(crate) mod tests;
