//! Where headers begin and whether their fields may be read: the parser, for compiled code.
//!
//! Each layer is one function whose result is packed into a word, so that generated Rust and JIT code carry it in a
//! register: [`l2`] → [`L2`], [`l3`] → [`L3`], [`l4`] → [`L4`]. The rules P1–P28 that the comments name are those of the
//! semantics: they say what Open vSwitch makes of every malformed frame, and so do we. Only what the caller asks for is
//! parsed. Nothing here writes.

use core::hint::select_unpredictable;

/// Ethernet type of IPv4.
pub const IPV4: u16 = 0x0800;
/// Ethernet type of IPv6.
pub const IPV6: u16 = 0x86dd;
/// What `eth.type` reads for 802.3 frames without a SNAP type (P2).
pub const NO_TYPE: u16 = 0x05ff;
/// IP protocol numbers.
pub mod proto {
    #![allow(missing_docs)]
    pub const ICMP: u8 = 1;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const FRAGMENT: u8 = 44;
    pub const ICMPV6: u8 = 58;
    pub const SCTP: u8 = 132;
}
/// Extension headers followed at the most; one more is an overrun (P19).
pub const MAX_EXTENSIONS: usize = 16;

/// Ethernet and its tags: `eth.type` in bits 0–15, the offset behind the header in 16–31, the outer TCI in 32–47 and the
/// second in 48–63, with bit 12 set if there is a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct L2(pub u64);

impl L2 {
    /// Packs the parts.
    #[inline(always)]
    pub const fn new(eth_type: u16, end: usize, tci: u16) -> L2 {
        L2(eth_type as u64 | (end as u64 & 0xffff) << 16 | (tci as u64) << 32)
    }
    /// The same with a second tag.
    #[inline(always)]
    pub const fn with_second(self, tci: u16) -> L2 {
        L2(self.0 | (tci as u64) << 48)
    }
    /// The type behind at most the limit of tags.
    #[inline(always)]
    pub const fn eth_type(self) -> u16 {
        self.0 as u16
    }
    /// Offset of what follows.
    #[inline(always)]
    pub const fn end(self) -> usize {
        (self.0 >> 16) as usize & 0xffff
    }
    /// The second tag, likewise.
    #[inline(always)]
    pub const fn second_tci(self) -> u16 {
        (self.0 >> 48) as u16
    }
    /// The outer tag with bit 12 forced to 1, or 0 without one (P4).
    #[inline(always)]
    pub const fn tci(self) -> u16 {
        (self.0 >> 32) as u16
    }
}

/// IPv4 or IPv6: offset of the payload in bits 0–15, its end in 16–31, protocol in 32–39, fragment bits in 40–41, and flags.
/// All zero where the frame is not IP or its header is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct L3(pub u64);

impl L3 {
    /// Neither IPv4 nor IPv6, or malformed.
    pub const NONE: L3 = L3(0);
    /// Set in the word if addresses can be read.
    pub const ADDRESSES: u64 = 1 << 42;
    /// Set if protocol, TTL, TOS and label can be read too: not after an overrun of extension headers (P16).
    pub const REST: u64 = 1 << 43;
    /// Set for IPv6.
    pub const V6: u64 = 1 << 44;

    /// Offset of the payload.
    #[inline(always)]
    pub const fn payload(self) -> usize {
        self.0 as usize & 0xffff
    }
    /// Where the payload ends: the frame may be longer (padding, P12).
    #[inline(always)]
    pub const fn end(self) -> usize {
        (self.0 >> 16) as usize & 0xffff
    }
    /// `ip.proto`: 44 for later fragments of IPv6 (P17).
    #[inline(always)]
    pub const fn proto(self) -> u8 {
        (self.0 >> 32) as u8
    }
    /// `ip.frag`: 0 no, 1 first, 3 later.
    #[inline(always)]
    pub const fn frag(self) -> u8 {
        (self.0 >> 40) as u8 & 3
    }
    /// Whether addresses can be read.
    #[inline(always)]
    pub const fn has_addresses(self) -> bool {
        self.0 & Self::ADDRESSES != 0
    }
    /// Whether protocol, TTL, TOS and label can be read.
    #[inline(always)]
    pub const fn has_rest(self) -> bool {
        self.0 & Self::REST != 0
    }
    /// Whether it is IPv6.
    #[inline(always)]
    pub const fn is_v6(self) -> bool {
        self.0 & Self::V6 != 0
    }
}

/// The transport header: its offset in bits 0–15, and whether its fields are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct L4(pub u64);

impl L4 {
    /// No transport header that can be read.
    pub const NONE: L4 = L4(0);
    /// Set if actions can read and write the fields.
    pub const ACTIONS: u64 = 1 << 16;
    /// Set if tables see the fields: not in any fragment, the first included (P24, `frags = normal`).
    pub const MATCHES: u64 = 1 << 17;

    /// Offset of the header.
    #[inline(always)]
    pub const fn offset(self) -> usize {
        self.0 as usize & 0xffff
    }
    /// Whether actions can read and write the fields.
    #[inline(always)]
    pub const fn for_actions(self) -> bool {
        self.0 & Self::ACTIONS != 0
    }
    /// Whether tables see the fields.
    #[inline(always)]
    pub const fn for_matches(self) -> bool {
        self.0 & Self::MATCHES != 0
    }
}

/// `N` bytes at `at`, big-endian, 0 where they are not all there.
#[inline(always)]
fn word<const N: usize>(data: &[u8], at: usize) -> u64 {
    match data.get(at..at.wrapping_add(N)) {
        Some(bytes) => bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)),
        None => 0,
    }
}

/// The byte at `at`; 0 beyond the end.
#[inline(always)]
pub fn load8(data: &[u8], at: usize) -> u64 {
    word::<1>(data, at)
}
/// Two bytes at `at`, big-endian; 0 beyond the end.
#[inline(always)]
pub fn load16(data: &[u8], at: usize) -> u64 {
    word::<2>(data, at)
}
/// Four bytes at `at`, big-endian; 0 beyond the end.
#[inline(always)]
pub fn load32(data: &[u8], at: usize) -> u64 {
    word::<4>(data, at)
}
/// Six bytes at `at`, big-endian; 0 beyond the end.
#[inline(always)]
pub fn load48(data: &[u8], at: usize) -> u64 {
    word::<6>(data, at)
}
/// Eight bytes at `at`, big-endian; 0 beyond the end.
#[inline(always)]
pub fn load64(data: &[u8], at: usize) -> u64 {
    word::<8>(data, at)
}

/// What stands where nothing is to be loaded.
pub static ZEROS: [u8; 8] = [0; 8];

/// `N` bytes at `at`, big-endian, if `cond` holds; else, and where they are not all there, 0. No branch depends on `cond`.
#[inline(always)]
pub fn load_if<const N: usize>(cond: bool, data: &[u8], at: usize) -> u64 {
    let value = word::<N>(data, select_unpredictable(cond, at, 0));
    select_unpredictable(cond, value, 0)
}

/// Writes the low `N` bytes of `value` at `at`, big-endian; nothing where they would not all fit.
#[inline(always)]
pub fn store<const N: usize>(data: &mut [u8], at: usize, value: u64) {
    if let Some(place) = data.get_mut(at..at.wrapping_add(N)) {
        place.copy_from_slice(&value.to_be_bytes()[8 - N..]);
    }
}

/// Bytes of headers that a frame has at the least that is [`is_plain_ipv4`].
pub const PLAIN_IPV4: usize = 34;
/// What [`l2`] is for such a frame.
pub const PLAIN_L2: L2 = L2::new(IPV4, 14, 0);
/// What [`l3`] is for such a frame, but for the end of the payload and the protocol.
pub const PLAIN_L3: L3 = L3(PLAIN_IPV4 as u64 | L3::ADDRESSES | L3::REST);

/// Whether it is an untagged frame of IPv4 without options that is whole and no fragment: what most frames are.
#[inline(always)]
pub fn is_plain_ipv4(data: &[u8]) -> bool {
    let Some(header) = data.first_chunk::<PLAIN_IPV4>() else { return false };
    let total_len = usize::from(u16::from_be_bytes([header[16], header[17]]));
    // Ethernet type, version and length of the header in one load.
    let start = u32::from_be_bytes([header[12], header[13], header[14], header[15]]) >> 8;
    start == u32::from(IPV4) << 8 | 0x45
        && (u16::from_be_bytes([header[20], header[21]]) & 0x3fff == 0)
            & (total_len.wrapping_sub(20) <= data.len() - PLAIN_IPV4)
}

/// [`l3`] for a frame that is [`is_plain_ipv4`].
#[inline(always)]
pub fn plain_l3(data: &[u8]) -> L3 {
    L3(PLAIN_L3.0 | (load16(data, 16) + 14) << 16 | load8(data, 23) << 32)
}

/// Parses Ethernet and at most `vlan_limit` tags (P1–P6). The frame has 14 bytes or more.
#[inline(always)]
pub fn l2(data: &[u8], vlan_limit: u32) -> L2 {
    let eth_type = load16(data, 12) as u16;
    if eth_type >= 0x600 && eth_type != 0x8100 && eth_type != 0x88a8 {
        return L2::new(eth_type, 14, 0);
    }
    l2_slow(data, vlan_limit)
}

/// [`l2`] for tagged and 802.3 frames.
#[cold]
#[inline(never)]
pub fn l2_slow(data: &[u8], vlan_limit: u32) -> L2 {
    let mut at = 12;
    let (mut tci, mut second) = (0, 0);
    for _ in 0..vlan_limit {
        let tpid = load16(data, at);
        if (tpid != 0x8100 && tpid != 0x88a8) || data.len() < at + 6 {
            break;
        }
        let next = load16(data, at + 2) as u16 | 0x1000;
        if tci == 0 {
            tci = next
        } else {
            second = next
        }
        at += 4;
    }
    let eth_type = load16(data, at) as u16;
    at += 2;
    if eth_type >= 0x600 {
        return L2::new(eth_type, at, tci).with_second(second);
    }
    let snap_type = load16(data, at + 6) as u16;
    if load48(data, at) == 0xaaaa_0300_0000 && data.len() >= at + 8 && snap_type >= 0x600 {
        return L2::new(snap_type, at + 8, tci).with_second(second);
    }
    L2::new(NO_TYPE, at, tci).with_second(second)
}

/// Parses IPv4 (P10–P14) or IPv6 with its extension headers (P15–P19).
#[inline(always)]
pub fn l3(data: &[u8], l2: L2) -> L3 {
    match l2.eth_type() {
        IPV4 => ipv4(data, l2.end()),
        IPV6 => ipv6(data, l2.end()),
        _ => L3::NONE,
    }
}

#[inline(always)]
fn ipv4(data: &[u8], at: usize) -> L3 {
    let Some(header) = data.get(at..at + 20) else {
        return L3::NONE;
    };
    let available = data.len() - at;
    let header_len = usize::from(header[0] & 15) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_len < 20 || header_len > available || total_len > available || header_len > total_len {
        return L3::NONE;
    }
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let frag = if fragment & 0x1fff != 0 { 3 } else { u64::from(fragment >> 13 & 1) };
    L3((at + header_len) as u64
        | ((at + total_len) as u64) << 16
        | u64::from(header[9]) << 32
        | frag << 40
        | L3::ADDRESSES
        | L3::REST)
}

#[cold]
#[inline(never)]
fn ipv6(data: &[u8], at: usize) -> L3 {
    let Some(header) = data.get(at..at + 40) else {
        return L3::NONE;
    };
    let end = at + 40 + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if end > data.len() {
        return L3::NONE;
    }
    let addresses = L3(L3::ADDRESSES | L3::V6);
    let (mut next, mut at, mut frag) = (header[6], at + 40, 0);
    for followed in 0..=MAX_EXTENSIONS {
        let step = match next {
            0 | 43 | 60 => (load8(data, at + 1) as usize + 1) * 8,
            51 => (load8(data, at + 1) as usize + 2) * 4,
            44 => 8,
            _ => {
                return L3(at as u64
                    | (end as u64) << 16
                    | u64::from(next) << 32
                    | frag << 40
                    | L3::ADDRESSES
                    | L3::REST
                    | L3::V6);
            }
        };
        if followed == MAX_EXTENSIONS || at + 8 > end || at + step > end {
            return addresses;
        }
        let header = next;
        next = data[at];
        if header == proto::FRAGMENT {
            let fragment = load16(data, at + 2);
            if fragment != 0 {
                frag = 1;
            }
            if fragment & 0xfff8 != 0 {
                return L3((at + 8) as u64
                    | (end as u64) << 16
                    | u64::from(proto::FRAGMENT) << 32
                    | 3 << 40
                    | L3::ADDRESSES
                    | L3::REST
                    | L3::V6);
            }
        }
        at += step;
    }
    addresses
}

/// Protocols whose header is found without a branch, a bit for each.
const TCP_OR_UDP: u64 = 1 << proto::TCP | 1 << proto::UDP;

/// Finds the transport header (P20, P21). 0 in later fragments and where it is cut short.
///
/// Which of TCP and UDP a packet is, and whether its header is whole, no branch depends on: traffic mixes them.
#[inline(always)]
pub fn l4(data: &[u8], l3: L3) -> L4 {
    // Protocol and bits of a fragment.
    let number = (l3.0 >> 32) & 0x3ff;
    let is_tcp = number == u64::from(proto::TCP);
    if number >= 64 || TCP_OR_UDP >> number & 1 == 0 {
        return l4_slow(data, l3);
    }
    let at = l3.payload();
    let size = l3.end().wrapping_sub(at);
    // For UDP the second test reads 0 and asks for 0.
    let (least, floor) = (select_unpredictable(is_tcp, 20, 8), select_unpredictable(is_tcp, 20, 0));
    let header_len = (load_if::<1>(is_tcp, data, at + 12) as usize >> 4) * 4;
    let good = (size >= least) & (header_len.wrapping_sub(floor) <= size.wrapping_sub(floor));
    L4(select_unpredictable(good, at as u64 | L4::ACTIONS | L4::MATCHES, 0))
}

/// [`l4`] where the protocol is TCP.
#[inline(always)]
pub fn l4_of_tcp(data: &[u8], l3: L3) -> L4 {
    let at = l3.payload();
    let size = l3.end().saturating_sub(at);
    let header_len = (load8(data, at + 12) >> 4) as usize * 4;
    if size >= 20 && header_len >= 20 && header_len <= size && l3.frag() == 0 {
        return L4(at as u64 | L4::ACTIONS | L4::MATCHES);
    }
    l4_slow(data, l3)
}

/// [`l4`] where the protocol is UDP.
#[inline(always)]
pub fn l4_of_udp(data: &[u8], l3: L3) -> L4 {
    let at = l3.payload();
    if l3.end().saturating_sub(at) >= 8 && l3.frag() == 0 {
        return L4(at as u64 | L4::ACTIONS | L4::MATCHES);
    }
    l4_slow(data, l3)
}

/// [`l4`] for other protocols and for fragments.
#[cold]
#[inline(never)]
pub fn l4_slow(data: &[u8], l3: L3) -> L4 {
    let at = l3.payload();
    let size = l3.end().saturating_sub(at);
    let whole = match l3.proto() {
        proto::TCP => {
            let header_len = (load8(data, at + 12) >> 4) as usize * 4;
            size >= 20 && header_len >= 20 && header_len <= size
        }
        proto::UDP => size >= 8,
        proto::SCTP => size >= 12,
        proto::ICMP => size >= 8 && !l3.is_v6(),
        proto::ICMPV6 => size >= 8 && l3.is_v6(),
        _ => false,
    };
    if !whole || l3.frag() > 1 {
        return L4::NONE;
    }
    L4(at as u64 | L4::ACTIONS | if l3.frag() == 0 { L4::MATCHES } else { 0 })
}

/// Neighbour discovery: offsets of the target in bits 0–15, of the source's link-layer address in 16–31 and of the target's
/// in 32–47; each 0 where it is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Nd(pub u64);

impl Nd {
    /// Nothing can be read.
    pub const NONE: Nd = Nd(0);

    /// Offset of `nd.target`, or 0.
    pub const fn target(self) -> usize {
        self.0 as usize & 0xffff
    }
    /// Offset of `nd.sll`, or 0.
    pub const fn sll(self) -> usize {
        (self.0 >> 16) as usize & 0xffff
    }
    /// Offset of `nd.tll`, or 0.
    pub const fn tll(self) -> usize {
        (self.0 >> 32) as usize & 0xffff
    }
}

/// Finds the fields of neighbour discovery (P23). An address that stands there twice makes all of them unreadable.
#[cold]
#[inline(never)]
pub fn nd(data: &[u8], l3: L3) -> Nd {
    let l4 = l4(data, l3);
    let (at, end) = (l4.offset(), l3.end());
    let kind = load16(data, at);
    let solicit_or_advert = kind == 0x8700 || kind == 0x8800;
    if !l4.for_actions() || l3.proto() != proto::ICMPV6 || !solicit_or_advert || end < at + 24 {
        return Nd::NONE;
    }
    let mut found = [0; 2];
    let mut option = at + 24;
    while option + 8 <= end {
        let (kind, len) = (load8(data, option), load8(data, option + 1) as usize * 8);
        if len == 0 || option + len > end {
            break;
        }
        if (kind == 1 || kind == 2) && len == 8 {
            let place: &mut usize = &mut found[kind as usize - 1];
            if *place != 0 && load48(data, *place) != 0 {
                return Nd::NONE;
            }
            *place = option + 2;
        }
        option += len;
    }
    Nd((at + 8) as u64 | (found[0] as u64) << 16 | (found[1] as u64) << 32)
}

/// Whether the fields of an ARP or RARP header can be read (P26).
#[inline(always)]
pub fn arp(data: &[u8], l2: L2) -> bool {
    let at = l2.end();
    (l2.eth_type() == 0x0806 || l2.eth_type() == 0x8035)
        && data.len() >= at + 28
        && load48(data, at) == 0x0001_0800_0604
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(eth_type: u16, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0u8; 12];
        frame.extend(eth_type.to_be_bytes());
        frame.extend(payload);
        frame
    }

    #[test]
    fn p2_a_snap_type_counts_as_the_ethernet_type() {
        let snap = frame(40, &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45]);
        assert_eq!(l2(&snap, 1), L2::new(IPV4, 22, 0));
        let other = frame(40, &[0x42, 0x42, 3, 0, 0, 0, 8, 0]);
        assert_eq!(l2(&other, 1).eth_type(), NO_TYPE);
        assert_eq!(l2(&frame(40, &[0xaa, 0xaa, 3]), 1).eth_type(), NO_TYPE);
    }

    #[test]
    fn p3_to_p6_tags() {
        let tagged = frame(0x8100, &[0x70, 0x05, 0x08, 0x00]);
        assert_eq!(l2(&tagged, 1), L2::new(IPV4, 18, 0x7005));
        let double = frame(0x88a8, &[0, 100, 0x81, 0, 0, 7, 8, 0]);
        assert_eq!(l2(&double, 1), L2::new(0x8100, 18, 0x1064));
        assert_eq!(l2(&double, 2), L2::new(IPV4, 22, 0x1064).with_second(0x1007));
        let cut = frame(0x8100, &[0, 5]);
        assert_eq!(l2(&cut, 1), L2::new(0x8100, 14, 0));
    }

    #[test]
    fn p10_malformed_ipv4_reads_nothing() {
        let mut good = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        good.extend([0, 53, 0, 54, 0, 8, 0, 0]);
        let parse = |ip: &[u8]| {
            let frame = frame(IPV4, ip);
            let l3 = l3(&frame, l2(&frame, 1));
            (l3, l4(&frame, l3))
        };
        let (ip, udp) = parse(&good);
        assert_eq!((ip.payload(), ip.end(), ip.proto(), ip.frag()), (34, 42, 17, 0));
        assert!(udp.for_matches() && udp.offset() == 34);
        for (at, byte) in [(0, 0x44), (0, 0x4f), (3, 29), (3, 19)] {
            let mut bad = good.clone();
            bad[at] = byte;
            assert_eq!(parse(&bad), (L3::NONE, L4::NONE), "byte {at} = {byte}");
        }
        let mut first = good.clone();
        first[6] = 0x20;
        assert!(!parse(&first).1.for_matches() && parse(&first).1.for_actions());
        let mut later = good;
        later[7] = 1;
        assert_eq!((parse(&later).0.frag(), parse(&later).1), (3, L4::NONE));
    }

    #[test]
    fn p20_quick_ways_to_the_transport_header_find_what_the_slow_one_does() {
        for protocol in [1, 6, 17, 58, 132, 200] {
            for (total, words, fragment) in (20..62).flat_map(|total| {
                [0u8, 4, 5, 6, 10, 15].into_iter().flat_map(move |words| [0, 1, 0x20].map(|bits| (total, words, bits)))
            }) {
                let mut ip = vec![0x45, 0, 0, total, 0, 0, fragment & 0x20, fragment & 1, 64, protocol, 0, 0];
                ip.extend([0; 8]);
                ip.resize(usize::from(total), words << 4);
                let frame = frame(IPV4, &ip);
                let l3 = l3(&frame, l2(&frame, 1));
                let slow = l4_slow(&frame, l3);
                assert_eq!(l4(&frame, l3), slow, "protocol {protocol}, {total} bytes, {words} words, {fragment:#x}");
                match protocol {
                    proto::TCP => {
                        assert_eq!(l4_of_tcp(&frame, l3), slow, "{total} bytes, {words} words, {fragment:#x}")
                    }
                    proto::UDP => assert_eq!(l4_of_udp(&frame, l3), slow, "{total} bytes, {fragment:#x}"),
                    _ => {}
                }
            }
        }
        assert_eq!(load_if::<2>(true, &[1, 2, 3], 1), 0x203);
        assert_eq!((load_if::<2>(true, &[1, 2, 3], 2), load_if::<2>(false, &[1, 2, 3], 0)), (0, 0));
    }

    #[test]
    fn p16_to_p18_extension_headers() {
        let parse = |next: u8, payload: &[u8]| {
            let mut ip = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
            ip.extend([0u8; 32]);
            ip.extend(payload);
            let frame = frame(IPV6, &ip);
            l3(&frame, l2(&frame, 1))
        };
        assert_eq!(parse(58, &[0; 8]).proto(), 58);
        assert_eq!(parse(0, &[17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0]).proto(), 17);
        let overrun = parse(0, &[17, 1, 0, 0, 0, 0, 0, 0]);
        assert!(overrun.has_addresses() && !overrun.has_rest());
        assert_eq!(parse(44, &[17, 0, 0, 1, 0, 0, 0, 0]).frag(), 1);
        let later = parse(44, &[17, 0, 0, 9, 0, 0, 0, 0]);
        assert_eq!((later.frag(), later.proto()), (3, 44));
        assert_eq!(parse(44, &[17, 0, 0, 0, 0, 0, 0, 0]).frag(), 0);
    }
}
