//! pcapng: blocks to packets. The clock and the link type are those of the interface that a packet came by.

use std::io::Read;

use pcap_file::pcapng::PcapNgReader;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::pcapng::blocks::{ENHANCED_PACKET_BLOCK, PACKET_BLOCK, SIMPLE_PACKET_BLOCK};
use pcap_file::{DataLink, Endianness};

use super::error::Problem;
use super::{Record, SECOND_NS, problem};

/// Reads blocks up to the next packet.
pub fn next(reader: &mut PcapNgReader<impl Read>, after: u64) -> Option<Result<Record, Problem>> {
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
pub struct Clock {
    ticks_per_s: u128,
    offset_s: i64,
}

impl Clock {
    /// The clock that an interface's description says.
    pub fn of(interface: &Interface) -> Clock {
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

    /// Whether microseconds do not show all of a stamp.
    pub fn is_finer_than_micro(&self) -> bool {
        self.ticks_per_s > 1_000_000
    }

    /// The nanoseconds since 1970 of a stamp.
    pub fn to_ns(&self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * u128::from(SECOND_NS) / self.ticks_per_s;
        let ns = i128::try_from(ns).unwrap_or(i128::MAX) + i128::from(self.offset_s) * i128::from(SECOND_NS);
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}
