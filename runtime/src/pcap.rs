//! Captures: frames with time stamps from files, and back into files.
//!
//! In: pcap (both byte orders, microseconds or nanoseconds) and pcapng. Out: Ethernet frames in the order of the file, stamps
//! in nanoseconds since 1970; and pcap files whose bytes depend on nothing but frames and stamps. Never: an order over
//! several files, or a repair of stamps; that is `replay`'s.
//!
//! A file that breaks off in the middle of a packet still gives every packet before the break, and then the error, so that
//! nothing that was read is lost. Frames that were cut short when captured (a small snap length) come as the shorter frames
//! they are; [`Capture::cut`] tells of them.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::system;
use pcap_file::pcap::{PcapHeader, PcapReader, PcapWriter, RawPcapPacket};
use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::{ENHANCED_PACKET_BLOCK, PACKET_BLOCK, SIMPLE_PACKET_BLOCK};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

const ETHERNET: u32 = 1;
const SECOND_NS: u64 = 1_000_000_000;
/// The most that readers of pcap take as one packet, and so the snap length that is written.
const SNAP_LEN: u32 = 262_144;

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
            Format::PcapNg(reader) => next_pcapng(reader, self.read),
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
            Format::PcapNg(reader) => reader.interfaces().iter().any(|i| Clock::of(i).is_finer_than_micro()),
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

/// Reads blocks up to the next packet.
fn next_pcapng(reader: &mut PcapNgReader<Input>, after: u64) -> Option<Result<Record, Problem>> {
    loop {
        let (kind, body) = match reader.next_raw_block()? {
            Ok(block) => (block.type_, block.body.into_owned()),
            Err(error) => return Some(Err(problem(error, after))),
        };
        let order = reader.section().endianness;
        let record = match kind {
            ENHANCED_PACKET_BLOCK => enhanced_packet(&Fields { body: &body, order }, reader.interfaces()),
            PACKET_BLOCK => old_packet(&Fields { body: &body, order }, reader.interfaces()),
            SIMPLE_PACKET_BLOCK => simple_packet(&Fields { body: &body, order }, reader.interfaces()),
            _ => continue,
        };
        return Some(record.map_err(|bad| match bad {
            Bad::Link(link) => Problem::LinkType(link, after + 1),
            Bad::Short => Problem::Damaged(after, "the next block is shorter than what it says it has".to_string()),
            Bad::Interface(id) => {
                Problem::Damaged(after, format!("the next packet is of interface {id}, which is not described"))
            }
        }));
    }
}

/// What is wrong with a packet's block.
enum Bad {
    Link(u32),
    Short,
    Interface(usize),
}

/// The numbers in a block.
struct Fields<'a> {
    body: &'a [u8],
    order: Endianness,
}

impl Fields<'_> {
    fn word(&self, at: usize) -> Result<u32, Bad> {
        let bytes = self.body.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok()).ok_or(Bad::Short)?;
        Ok(if self.order == Endianness::Big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn half(&self, at: usize) -> Result<u16, Bad> {
        let bytes = self.body.get(at..at + 2).and_then(|b| <[u8; 2]>::try_from(b).ok()).ok_or(Bad::Short)?;
        Ok(if self.order == Endianness::Big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn bytes(&self, at: usize, len: u32) -> Result<Vec<u8>, Bad> {
        self.body.get(at..).and_then(|rest| rest.get(..len as usize)).map(<[u8]>::to_vec).ok_or(Bad::Short)
    }
}

type Interface = InterfaceDescriptionBlock<'static>;

/// The interface a packet came by, which must be Ethernet.
fn ethernet(interfaces: &[Interface], id: usize) -> Result<&Interface, Bad> {
    let interface = interfaces.get(id).ok_or(Bad::Interface(id))?;
    if interface.linktype == DataLink::ETHERNET { Ok(interface) } else { Err(Bad::Link(interface.linktype.into())) }
}

fn stamped(fields: &Fields<'_>, interface: &Interface) -> Result<Record, Bad> {
    let ticks = u64::from(fields.word(4)?) << 32 | u64::from(fields.word(8)?);
    let frame = fields.bytes(20, fields.word(12)?)?;
    Ok(Record { stamp_ns: Some(Clock::of(interface).to_ns(ticks)), had: fields.word(16)?, frame })
}

fn enhanced_packet(fields: &Fields<'_>, interfaces: &[Interface]) -> Result<Record, Bad> {
    stamped(fields, ethernet(interfaces, fields.word(0)? as usize)?)
}

/// The packet block that the enhanced one replaced.
fn old_packet(fields: &Fields<'_>, interfaces: &[Interface]) -> Result<Record, Bad> {
    stamped(fields, ethernet(interfaces, usize::from(fields.half(0)?))?)
}

/// A packet of the first interface, without a stamp.
fn simple_packet(fields: &Fields<'_>, interfaces: &[Interface]) -> Result<Record, Bad> {
    let interface = ethernet(interfaces, 0)?;
    let had = fields.word(0)?;
    let have = if interface.snaplen == 0 { had } else { had.min(interface.snaplen) };
    Ok(Record { stamp_ns: None, had, frame: fields.bytes(4, have)? })
}

/// The clock of an interface in a pcapng file.
struct Clock {
    ticks_per_s: u128,
    offset_s: i64,
}

impl Clock {
    fn of(interface: &Interface) -> Clock {
        let mut clock = Clock { ticks_per_s: 1_000_000, offset_s: 0 };
        for option in &interface.options {
            match *option {
                InterfaceDescriptionOption::IfTsResol(code) => {
                    let exponent = u32::from(code & 0x7f);
                    let base: u128 = if code & 0x80 == 0 { 10 } else { 2 };
                    clock.ticks_per_s = base.checked_pow(exponent).unwrap_or(u128::MAX);
                }
                InterfaceDescriptionOption::IfTsOffset(offset) => clock.offset_s = offset as i64,
                _ => {}
            }
        }
        clock
    }

    fn is_finer_than_micro(&self) -> bool {
        self.ticks_per_s > 1_000_000
    }

    fn to_ns(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * u128::from(SECOND_NS) / self.ticks_per_s;
        let ns = i128::try_from(ns).unwrap_or(i128::MAX) + i128::from(self.offset_s) * i128::from(SECOND_NS);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

/// A capture that is being written: pcap, little-endian, Ethernet.
pub struct Writer {
    path: PathBuf,
    resolution: Resolution,
    inner: PcapWriter<BufWriter<File>>,
}

impl Writer {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(path: &Path, resolution: Resolution) -> Result<Writer, CaptureError> {
        let fail = |error| CaptureError { path: path.to_path_buf(), problem: Problem::Write(error) };
        let file = File::create(path).map_err(fail)?;
        let ts_resolution = match resolution {
            Resolution::Micro => TsResolution::MicroSecond,
            Resolution::Nano => TsResolution::NanoSecond,
        };
        let header =
            PcapHeader { snaplen: SNAP_LEN, ts_resolution, endianness: Endianness::Little, ..PcapHeader::default() };
        let inner = PcapWriter::with_header(BufWriter::new(file), header).map_err(|error| fail(to_io(error)))?;
        Ok(Writer { path: path.to_path_buf(), resolution, inner })
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&mut self, stamp_ns: u64, frame: &[u8]) -> Result<(), CaptureError> {
        let unit_ns = if self.resolution == Resolution::Nano { 1 } else { 1000 };
        let len = frame.len() as u32;
        let packet = RawPcapPacket {
            ts_sec: u32::try_from(stamp_ns / SECOND_NS).unwrap_or(u32::MAX),
            ts_frac: (stamp_ns % SECOND_NS / unit_ns) as u32,
            incl_len: len,
            orig_len: len,
            data: frame.into(),
        };
        let written = self.inner.write_raw_packet(&packet);
        written.map(|_| ()).map_err(|error| self.fail(to_io(error)))
    }

    /// Writes out what is still in memory.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(self) -> Result<(), CaptureError> {
        let path = self.path;
        let flushed = self.inner.into_writer().flush();
        flushed.map_err(|error| CaptureError { path, problem: Problem::Write(error) })
    }

    fn fail(&self, error: io::Error) -> CaptureError {
        CaptureError { path: self.path.clone(), problem: Problem::Write(error) }
    }
}

fn to_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

#[cfg(test)]
pub(crate) mod tests;
