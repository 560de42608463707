//! Where the headers of a frame lie: the parsing rules P1–P28 of the semantics, one after the other, as they are stated
//! there. A frame goes in; offsets come out, and nothing where a header is absent or malformed. It reads no field's value
//! and never writes. Bad checksums play no part (P28).

/// Shortest frame that has an Ethernet header (P1).
pub const ETHERNET: usize = 14;
/// Extension headers of IPv6 that are followed; a further one counts as an overrun (P19).
const EXTENSIONS: usize = 16;

/// The headers of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headers {
    /// Ethernet type behind the tags.
    pub eth_type: u16,
    /// The outer tag's control information as it is in the frame.
    pub tci: Option<u16>,
    /// The second tag's, likewise.
    pub second_tci: Option<u16>,
    /// Offset of what follows Ethernet, its tags and SNAP.
    pub l3: usize,
    /// An ARP or RARP header whose fields can be read.
    pub arp: bool,
    /// An IP header whose addresses can be read.
    pub ip: Option<Ip>,
    /// Neighbour discovery.
    pub nd: Option<Nd>,
}

/// A solicitation or advertisement of neighbours; offsets of its fields, if they can be read (P23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub struct Nd {
    pub target: Option<usize>,
    pub sll: Option<usize>,
    pub tll: Option<usize>,
}

/// An IP header that is not malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip {
    /// IPv6, else IPv4.
    pub v6: bool,
    /// A routing header says that the packet has further to go: transport checksums do not cover its destination.
    pub routed: bool,
    /// What else can be read: all of it, unless extension headers run over the end of the packet (P16).
    pub rest: Option<Rest>,
}

/// What is known of an IP packet beyond its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Protocol behind the extension headers.
    pub proto: u8,
    /// Which fragment it is.
    pub frag: Frag,
    /// Offset of the transport header.
    pub l4: usize,
    /// Behind the last byte of the packet; what follows in the frame is padding (P12).
    pub end: usize,
    /// The transport header is whole.
    pub transport: bool,
}

/// Which fragment a packet is; the values are those of `ip.frag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Frag {
    No = 0,
    First = 1,
    Later = 3,
}

/// A two-byte number in a frame.
pub fn be16(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

impl Headers {
    /// Parses a frame of 14 bytes or more.
    pub fn parse(frame: &[u8], vlan_limit: u8) -> Headers {
        let (eth_type, tags, l3) = ethernet(frame, vlan_limit);
        let body = &frame[l3..];
        let arp = (eth_type == 0x0806 || eth_type == 0x8035) && whole_arp(body);
        let ip = match eth_type {
            0x0800 => ipv4(body),
            0x86dd => ipv6(body),
            _ => None,
        };
        let ip = ip.map(|ip| ip.moved(l3));
        let nd = ip.and_then(|ip| neighbour_discovery(frame, &ip));
        Headers { eth_type, tci: tags[0], second_tci: tags[1], l3, arp, ip, nd }
    }
}

impl Ip {
    /// Offsets counted from `by` bytes earlier.
    fn moved(self, by: usize) -> Ip {
        let rest = self.rest.map(|r| Rest { l4: r.l4 + by, end: r.end + by, ..r });
        Ip { rest, ..self }
    }
}

/// Ethernet type, tags from the outer one on, and offset of what follows.
fn ethernet(frame: &[u8], vlan_limit: u8) -> (u16, [Option<u16>; 2], usize) {
    let mut at = 12;
    let mut tags = [None; 2];
    // P3: at most so many tags; one more is left as the Ethernet type.
    for tag in tags.iter_mut().take(vlan_limit.into()) {
        let tpid = be16(frame, at);
        // P6: a tag that is cut short is not parsed.
        if (tpid != 0x8100 && tpid != 0x88a8) || frame.len() < at + 6 {
            break;
        }
        *tag = Some(be16(frame, at + 2));
        at += 4;
    }
    let eth_type = be16(frame, at);
    at += 2;
    if eth_type >= 0x0600 {
        return (eth_type, tags, at);
    }
    // P2: 802.3. Only SNAP with the OUI 0 leads on to a type.
    let llc = &frame[at..];
    if llc.len() >= 8 && llc[..6] == [0xaa, 0xaa, 0x03, 0, 0, 0] && be16(llc, 6) >= 0x0600 {
        return (be16(llc, 6), tags, at + 8);
    }
    (0x05ff, tags, at)
}

/// P23: an option that stands there twice, with an address, makes all of it unreadable.
fn neighbour_discovery(frame: &[u8], ip: &Ip) -> Option<Nd> {
    let rest = ip.rest.filter(|rest| ip.v6 && rest.proto == 58 && rest.transport)?;
    let message = &frame[rest.l4..rest.end];
    if !matches!(message[0], 135 | 136) || message[1] != 0 {
        return None;
    }
    let Some(mut options) = message.get(24..) else { return Some(Nd::default()) };
    let mut nd = Nd { target: Some(rest.l4 + 8), ..Nd::default() };
    while options.len() >= 8 {
        let len = usize::from(options[1]) * 8;
        if len == 0 || len > options.len() {
            break;
        }
        let place = match (options[0], len) {
            (1, 8) => Some(&mut nd.sll),
            (2, 8) => Some(&mut nd.tll),
            _ => None,
        };
        if let Some(place) = place {
            if place.is_some_and(|at| frame[at..at + 6] != [0; 6]) {
                return Some(Nd::default());
            }
            *place = Some(rest.end - options.len() + 2);
        }
        options = &options[len..];
    }
    Some(nd)
}

/// P26: Ethernet and IPv4 addresses, all there.
fn whole_arp(arp: &[u8]) -> bool {
    arp.len() >= 28 && be16(arp, 0) == 1 && be16(arp, 2) == 0x0800 && arp[4] == 6 && arp[5] == 4
}

/// P10–P14. The version is not checked (P11).
fn ipv4(ip: &[u8]) -> Option<Ip> {
    if ip.len() < 20 {
        return None;
    }
    let header_len = usize::from(ip[0] & 0x0f) * 4;
    let total_len = usize::from(be16(ip, 2));
    if header_len < 20 || header_len > ip.len() || total_len > ip.len() || header_len > total_len {
        return None;
    }
    let more = ip[6] & 0x20 != 0;
    let offset = be16(ip, 6) & 0x1fff;
    let frag = match (offset, more) {
        (0, false) => Frag::No,
        (0, true) => Frag::First,
        _ => Frag::Later,
    };
    let proto = ip[9];
    let packet = &ip[..total_len];
    let transport = frag != Frag::Later && whole_transport(packet, header_len, proto, 1);
    let rest = Rest { proto, frag, l4: header_len, end: total_len, transport };
    Some(Ip { v6: false, routed: false, rest: Some(rest) })
}

/// P15–P19.
fn ipv6(ip: &[u8]) -> Option<Ip> {
    if ip.len() < 40 || 40 + usize::from(be16(ip, 4)) > ip.len() {
        return None;
    }
    let packet = &ip[..40 + usize::from(be16(ip, 4))];
    let mut routed = false;
    let rest = extensions(packet, &mut routed);
    Some(Ip { v6: true, routed, rest })
}

/// Walks the extension headers of an IPv6 packet that ends where its payload length says; nothing after an overrun (P16).
fn extensions(packet: &[u8], routed: &mut bool) -> Option<Rest> {
    let mut proto = packet[6];
    let mut at = 40;
    let mut frag = Frag::No;
    let mut followed = 0;
    while matches!(proto, 0 | 43 | 44 | 51 | 60) {
        let header = &packet[at..];
        if header.len() < 8 || followed == EXTENSIONS {
            return None;
        }
        let len = match proto {
            44 => 8,
            51 => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        if len > header.len() {
            return None;
        }
        if proto == 43 && header[3] != 0 {
            *routed = true;
        }
        if proto == 44 {
            let word = be16(header, 2);
            // P17, P18: any bit makes it a fragment, an offset a later one, whose protocol stays 44.
            if word != 0 {
                frag = Frag::First;
            }
            if word & 0xfff8 != 0 {
                let l4 = at + len;
                return Some(Rest { proto: 44, frag: Frag::Later, l4, end: packet.len(), transport: false });
            }
        }
        proto = header[0];
        at += len;
        followed += 1;
    }
    let transport = whole_transport(packet, at, proto, 58);
    Some(Rest { proto, frag, l4: at, end: packet.len(), transport })
}

/// P20, P21: whether the transport header is whole. `icmp` is the protocol number of this version's ICMP.
fn whole_transport(packet: &[u8], l4: usize, proto: u8, icmp: u8) -> bool {
    let segment = &packet[l4..];
    match proto {
        6 if segment.len() >= 20 => {
            let header_len = usize::from(segment[12] >> 4) * 4;
            header_len >= 20 && header_len <= segment.len()
        }
        17 => segment.len() >= 8,
        132 => segment.len() >= 12,
        _ if proto == icmp => segment.len() >= 8,
        _ => false,
    }
}
