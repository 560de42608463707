//! From a frame to what the tracker needs of it: its key, its class, and the reason if no connection can contain it.
//!
//! In go a frame and a zone, out comes a [`Parsed`] (and a key for IPv6, which is kept apart for being large). A frame is
//! validated on the way: lengths, the IP header's checksum, the transport's, ports, flags. Bytes behind the IP packet
//! (padding) take no part. Nothing is written and no state is looked at.
//!
//! [`parse`] tries [`plain`], the way of most packets: no tag, IPv4 without options or fragments, TCP or UDP, nothing wrong
//! with it. Whatever that one does not like goes to [`general`], which knows everything and says what is wrong. Callers may
//! try `plain` themselves.

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

/// Parses a frame; a key for IPv6 goes to `key6`.
pub fn parse(data: &[u8], zone: u16, vlan_limit: u32, key6: &mut Key6) -> Parsed {
    let mut parsed = Parsed::invalid(Invalid::NotIp);
    if !plain(data, zone, &mut parsed) {
        parsed = general(data, zone, vlan_limit, key6);
    }
    parsed
}

/// `N` bytes at `at` of the first bytes of a frame, which surely has them.
#[inline(always)]
fn field<const N: usize>(head: &[u8; 54], at: usize) -> [u8; N] {
    match head[at..].first_chunk() {
        Some(bytes) => *bytes,
        None => [0; N],
    }
}

/// Untagged IPv4 without options or fragments, TCP or UDP, and nothing wrong with it: then `parsed` tells all of it.
#[inline(always)]
pub fn plain(data: &[u8], zone: u16, parsed: &mut Parsed) -> bool {
    let Some(head) = data.first_chunk::<54>() else {
        return false;
    };
    // Type, version and header length, TOS, total length, identifier: all in one word.
    let lead = u64::from_le_bytes(field(head, 12));
    let total = usize::from(((lead >> 32) as u16).swap_bytes());
    let fragment = u16::from_ne_bytes(field(head, 20)) & 0x3fff_u16.to_be();
    let ip = Sum::default().eight(field(head, 14)).eight(field(head, 22)).four(field(head, 30));
    let (addresses, ports) = (u64::from_be_bytes(field(head, 26)), u32::from_be_bytes(field(head, 34)));
    let (from, to) = ((ports >> 16) as u16, ports as u16);
    // IPv4, five words of header: `& 0f` leaves out the version, which is not checked.
    let is_plain = (lead & 0x0f_ffff == 0x05_0008) & (fragment == 0) & (from != 0) & (to != 0) & ip.is_right();
    if !is_plain {
        return false;
    }
    let Some(payload) = data.get(34..14 + total) else {
        return false;
    };
    let proto = head[23];
    let pseudo = Sum::default().eight(field(head, 26)).number(u32::from(proto));
    if proto == proto::UDP {
        let len = usize::from(u16::from_be_bytes(field(head, 38)));
        if len < 8 || len > payload.len() {
            return false;
        }
        let is_summed = field(head, 40) != [0, 0];
        if is_summed && !pseudo.number(payload.len() as u32).slice(payload).is_right() {
            return false;
        }
        parsed.class = Class::Other;
    } else if proto == proto::TCP {
        let header_len = usize::from(head[46] >> 4) * 4;
        let flags = head[47];
        if header_len < 20 || header_len > payload.len() || !tcp::are_legal(flags) {
            return false;
        }
        if !pseudo.number(payload.len() as u32).slice(payload).is_right() {
            return false;
        }
        let options = &payload[20..header_len];
        let options_len = if tcp::say_nothing(options) { 0 } else { options.len() as u8 };
        parsed.class = Class::Tcp;
        parsed.segment = Segment {
            seq: u32::from_be_bytes(field(head, 38)),
            ack: u32::from_be_bytes(field(head, 42)),
            len: (payload.len() - header_len) as u16,
            window: u16::from_be_bytes(field(head, 48)),
            options_at: 54,
            options_len,
            flags,
        };
    } else {
        return false;
    }
    let (key4, swapped) = key::key4((addresses >> 32) as u32, addresses as u32, from, to, proto, zone);
    parsed.key4 = key4;
    parsed.swapped = swapped;
    parsed.v6 = false;
    true
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

/// Every frame: what it is, or why it is nothing.
#[cold]
#[inline(never)]
pub fn general(data: &[u8], zone: u16, vlan_limit: u32, key6: &mut Key6) -> Parsed {
    try_general(data, zone, vlan_limit, key6).unwrap_or_else(Parsed::invalid)
}

fn try_general(data: &[u8], zone: u16, vlan_limit: u32, key6: &mut Key6) -> Result<Parsed, Invalid> {
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
            check((8..=payload.len()).contains(&len), Invalid::Length)?;
            let unsummed = !v6 && header::load16(payload, 6) == 0;
            // Over all of IP's payload, as Open vSwitch and the kernel do, even where UDP says that it is shorter.
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
