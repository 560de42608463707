//! Captures that are written. The bytes depend on nothing but frames and stamps.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pcap_file::pcap::{PcapHeader, PcapWriter, RawPcapPacket};
use pcap_file::{Endianness, PcapError, TsResolution};

use super::error::{CaptureError, Problem};
use super::{Resolution, SECOND_NS};

/// The most that readers of pcap take as one packet, and so the snap length that is written.
pub(super) const SNAP_LEN: u32 = 262_144;

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
