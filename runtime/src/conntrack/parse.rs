//! From a frame to what the tracker needs of it: its key, its class, and the reason if no connection can contain it.
//!
//! In go a frame and a zone, out comes a [`Parsed`] (and a key for IPv6, which is kept apart for being large). A frame is
//! validated on the way: lengths, the IP header's checksum, the transport's, ports, flags. Bytes behind the IP packet
//! (padding) take no part. Nothing is written and no state is looked at.
//!
//! Most packets take the short ways of [`plain`](super::plain). Whatever those do not like comes here, where everything is
//! known and what is wrong is said.

use pipec_abi::header::{self, proto};

use super::checksum::{Sum, crc32c_is_right};
use super::icmp_error;
use super::key::{self, Key4, Key6};
use super::tcp::{self, Segment};

/// Why no connection can contain a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Invalid {
    /// Neither IPv4 nor IPv6.
    NotIp,
    /// An IP header that is cut short or contradicts the frame, or too many extension headers.
    IpHeader,
    /// A fragment.
    Fragment,
    /// The IPv4 header's checksum is wrong.
    IpChecksum,
    /// A transport header that is cut short, or a length that contradicts the packet.
    Length,
    /// The transport's checksum is wrong.
    Checksum,
    /// A port is 0.
    PortZero,
    /// TCP flags that make no sense together.
    TcpFlags,
    /// TCP sequence numbers outside the window.
    TcpWindow,
    /// A segment that cannot begin a connection, and none has its addresses and ports.
    TcpOpening,
    /// An ICMP type or code that is not tracked.
    IcmpType,
    /// An ICMP answer that nobody asked for.
    IcmpAnswer,
    /// An ICMP error about no connection.
    IcmpError,
}

impl Invalid {
    /// All reasons, in the order of their codes.
    pub const ALL: [Invalid; 13] = [
        Invalid::NotIp,
        Invalid::IpHeader,
        Invalid::Fragment,
        Invalid::IpChecksum,
        Invalid::Length,
        Invalid::Checksum,
        Invalid::PortZero,
        Invalid::TcpFlags,
        Invalid::TcpWindow,
        Invalid::TcpOpening,
        Invalid::IcmpType,
        Invalid::IcmpAnswer,
        Invalid::IcmpError,
    ];

    /// The name in counters.
    pub const fn name(self) -> &'static str {
        match self {
            Invalid::NotIp => "not_ip",
            Invalid::IpHeader => "ip_header",
            Invalid::Fragment => "fragment",
            Invalid::IpChecksum => "ip_checksum",
            Invalid::Length => "length",
            Invalid::Checksum => "checksum",
            Invalid::PortZero => "port_zero",
            Invalid::TcpFlags => "tcp_flags",
            Invalid::TcpWindow => "tcp_window",
            Invalid::TcpOpening => "tcp_opening",
            Invalid::IcmpType => "icmp_type",
            Invalid::IcmpAnswer => "icmp_answer",
            Invalid::IcmpError => "icmp_error",
        }
    }
}

/// How a packet is tracked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Not at all.
    Invalid,
    /// By TCP's states and windows.
    Tcp,
    /// By which directions were seen: UDP and everything without rules of its own.
    Other,
    /// An ICMP query.
    Ask,
    /// The answer to one.
    Answer,
    /// An ICMP error; the key is the one of the packet it is about, turned round.
    Error,
}

/// What the tracker needs of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Parsed {
    /// The key, for IPv4.
    pub key4: Key4,
    /// TCP's header.
    pub segment: Segment,
    /// How it is tracked.
    pub class: Class,
    /// Whether the sender is the higher endpoint of the key.
    pub swapped: bool,
    /// Whether the key is the other one.
    pub v6: bool,
    /// Why it is invalid, if it is.
    pub reason: Invalid,
}

impl Parsed {
    /// A packet that no connection can contain.
    pub const fn invalid(reason: Invalid) -> Parsed {
        Parsed { key4: [0; 2], segment: Segment::NONE, class: Class::Invalid, swapped: false, v6: false, reason }
    }
}

/// The two addresses of a packet.
#[derive(Clone, Copy)]
pub enum Ends {
    /// IPv4: source, destination.
    V4(u32, u32),
    /// IPv6: source, destination.
    V6(u128, u128),
}

impl Ends {
    /// Read from a header: at the place of IPv4's or IPv6's source.
    pub fn read(header: &[u8], v6: bool) -> Option<Ends> {
        Some(if v6 {
            let [src, dst] = [8, 24].map(|at| header.get(at..)?.first_chunk().map(|bytes| u128::from_be_bytes(*bytes)));
            Ends::V6(src?, dst?)
        } else {
            let [src, dst] = [12, 16].map(|at| header.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)));
            Ends::V4(src?, dst?)
        })
    }

    /// The start of a pseudo header's sum.
    fn pseudo(self, proto: u8, len: usize) -> Sum {
        let sum = Sum::default().number(u32::from(proto)).number(len as u32);
        match self {
            Ends::V4(src, dst) => sum.number(src).number(dst),
            Ends::V6(src, dst) => sum.slice(&src.to_be_bytes()).slice(&dst.to_be_bytes()),
        }
    }
}

/// What a transport header says.
#[derive(Clone, Copy)]
pub enum Transport {
    /// Ports, or zeroes.
    Ports(u16, u16),
    /// An ICMP query or its answer: type, type on the way back, identifier.
    Query(u8, u8, u16),
    /// An ICMP error.
    Error,
}

/// A key of either family, and whether it was swapped.
pub fn any_key(ends: Ends, transport: Transport, proto: u8, zone: u16, key6: &mut Key6) -> (Key4, bool) {
    match (ends, transport) {
        (Ends::V4(src, dst), Transport::Query(kind, pair, id)) => key::key4_icmp(src, dst, kind, pair, id, zone),
        (Ends::V6(src, dst), Transport::Query(kind, pair, id)) => {
            let (key, swapped) = key::key6_icmp(src, dst, kind, pair, id, zone);
            *key6 = key;
            ([0; 2], swapped)
        }
        (ends, transport) => {
            let (from, to) = if let Transport::Ports(from, to) = transport { (from, to) } else { (0, 0) };
            match ends {
                Ends::V4(src, dst) => key::key4(src, dst, from, to, proto, zone),
                Ends::V6(src, dst) => {
                    let (key, swapped) = key::key6(src, dst, from, to, proto, zone);
                    *key6 = key;
                    ([0; 2], swapped)
                }
            }
        }
    }
}

/// Parses a frame; a key for IPv6 goes to `key6`.
#[inline(never)]
pub fn parse(data: &[u8], zone: u16, vlan_limit: u32, key6: &mut Key6) -> Parsed {
    try_parse(data, zone, vlan_limit, key6).unwrap_or_else(Parsed::invalid)
}

fn try_parse(data: &[u8], zone: u16, vlan_limit: u32, key6: &mut Key6) -> Result<Parsed, Invalid> {
    let l2 = header::l2(data, vlan_limit);
    if l2.eth_type() != header::IPV4 && l2.eth_type() != header::IPV6 {
        return Err(Invalid::NotIp);
    }
    let l3 = header::l3(data, l2);
    let v6 = l3.is_v6();
    if !l3.has_rest() {
        return Err(Invalid::IpHeader);
    }
    if l3.frag() != 0 {
        return Err(Invalid::Fragment);
    }
    let ip = data.get(l2.end()..l3.payload()).ok_or(Invalid::IpHeader)?;
    let payload = data.get(l3.payload()..l3.end()).ok_or(Invalid::IpHeader)?;
    if !v6 && !Sum::default().slice(ip).is_right() {
        return Err(Invalid::IpChecksum);
    }
    let ends = Ends::read(ip, v6).ok_or(Invalid::IpHeader)?;
    let proto = l3.proto();
    let (transport, class) = transport(payload, proto, ends)?;
    if class == Class::Error {
        let (key4, swapped) = icmp_error::about(payload, ends, zone, key6)?;
        return Ok(Parsed { key4, segment: Segment::NONE, class, swapped, v6, reason: Invalid::IcmpError });
    }
    let (key4, swapped) = any_key(ends, transport, proto, zone, key6);
    let segment = if class == Class::Tcp { Segment::read(payload, l3.payload()) } else { Segment::NONE };
    Ok(Parsed { key4, segment, class, swapped, v6, reason: Invalid::NotIp })
}

/// Validates a transport header and what it covers.
fn transport(payload: &[u8], proto: u8, ends: Ends) -> Result<(Transport, Class), Invalid> {
    let v6 = matches!(ends, Ends::V6(..));
    match proto {
        proto::TCP => {
            let header_len = header::load8(payload, 12) as usize >> 4 << 2;
            let flags = header::load8(payload, 13) as u8;
            check(payload.len() >= 20 && header_len >= 20 && header_len <= payload.len(), Invalid::Length)?;
            check(ends.pseudo(proto, payload.len()).slice(payload).is_right(), Invalid::Checksum)?;
            check(tcp::are_legal(flags), Invalid::TcpFlags)?;
            Ok((ports(payload)?, Class::Tcp))
        }
        proto::UDP => {
            let len = header::load16(payload, 4) as usize;
            check(len >= 8 && len <= payload.len(), Invalid::Length)?;
            // Over all that IP says is there, so that bytes behind the datagram are not hidden; OVS and Linux do the same.
            let unsummed = !v6 && header::load16(payload, 6) == 0;
            check(unsummed || ends.pseudo(proto, payload.len()).slice(payload).is_right(), Invalid::Checksum)?;
            Ok((ports(payload)?, Class::Other))
        }
        proto::SCTP => {
            check(are_whole_chunks(payload), Invalid::Length)?;
            check(crc32c_is_right(payload), Invalid::Checksum)?;
            Ok((ports(payload)?, Class::Other))
        }
        proto::ICMP if !v6 => {
            check(payload.len() >= 8, Invalid::Length)?;
            check(Sum::default().slice(payload).is_right(), Invalid::Checksum)?;
            icmp(payload, proto)
        }
        proto::ICMPV6 if v6 => {
            check(payload.len() >= 8, Invalid::Length)?;
            check(ends.pseudo(proto, payload.len()).slice(payload).is_right(), Invalid::Checksum)?;
            icmp(payload, proto)
        }
        proto::ICMP => Err(Invalid::IcmpType),
        _ => Ok((Transport::Ports(0, 0), Class::Other)),
    }
}

fn check(holds: bool, otherwise: Invalid) -> Result<(), Invalid> {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// The ports that TCP, UDP and SCTP begin with.
pub fn ports(payload: &[u8]) -> Result<Transport, Invalid> {
    let (from, to) = (header::load16(payload, 0) as u16, header::load16(payload, 2) as u16);
    check(from != 0 && to != 0, Invalid::PortZero)?;
    Ok(Transport::Ports(from, to))
}

fn icmp(payload: &[u8], proto: u8) -> Result<(Transport, Class), Invalid> {
    let kind = header::load8(payload, 0) as u8;
    if icmp_error::is_error(proto, kind) {
        return Ok((Transport::Error, Class::Error));
    }
    let asks = key::icmp_asks(proto, kind).ok_or(Invalid::IcmpType)?;
    Ok((query(payload, proto)?, if asks { Class::Ask } else { Class::Answer }))
}

/// An ICMP query or its answer.
pub fn query(payload: &[u8], proto: u8) -> Result<Transport, Invalid> {
    let (kind, code) = (header::load8(payload, 0) as u8, header::load8(payload, 1));
    let pair = key::icmp_pair(proto, kind).ok_or(Invalid::IcmpType)?;
    check(code == 0, Invalid::IcmpType)?;
    Ok(Transport::Query(kind, pair, header::load16(payload, 4) as u16))
}

/// Whether an SCTP packet is its common header and chunks that fill it exactly.
fn are_whole_chunks(payload: &[u8]) -> bool {
    let mut at = 12;
    while at + 4 <= payload.len() {
        let len = header::load16(payload, at + 2) as usize;
        if len < 4 {
            return false;
        }
        at += len.next_multiple_of(4);
    }
    payload.len() > 12 && at == payload.len()
}
