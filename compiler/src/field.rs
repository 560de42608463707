//! Match fields: every field of the language, one row each. Names, width, what must be there before it can be read, and
//! whether it can be written, all come from this table.

use pipec_abi::edit::Target;

/// What must be present for a field to be read; also what a bare header name (`tcp`, `arp`) tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Header {
    Eth,
    Vlan,
    Arp,
    Rarp,
    Ipv4,
    Ipv6,
    /// IPv4 or IPv6.
    IpAny,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmpv6,
    /// The second VLAN tag.
    Vlan2,
    /// Neighbour discovery: a solicitation or advertisement of ICMPv6.
    Nd,
    /// A header that the program declares, or one of the standard ones that are made like those: its place in
    /// [`Program::headers`](crate::hir::Program::headers).
    Declared(u16),
}

impl Header {
    /// Names in sources, with what they mean. `ip` is IPv4, as in OpenFlow's short-hands.
    pub const NAMES: &[(&str, Header)] = &[
        ("eth", Header::Eth),
        ("vlan", Header::Vlan),
        ("arp", Header::Arp),
        ("rarp", Header::Rarp),
        ("ipv4", Header::Ipv4),
        ("ip", Header::Ipv4),
        ("ipv6", Header::Ipv6),
        ("tcp", Header::Tcp),
        ("udp", Header::Udp),
        ("sctp", Header::Sctp),
        ("icmp", Header::Icmp),
        ("icmpv6", Header::Icmpv6),
        ("vlan2", Header::Vlan2),
        ("nd", Header::Nd),
    ];

    /// The name to say to people; [`Program::header_name`](crate::hir::Program::header_name) knows those of declared headers.
    pub fn name(self) -> &'static str {
        if self == Header::IpAny {
            "ipv4 or ipv6"
        } else {
            Self::NAMES.iter().find(|(_, h)| *h == self).map_or("?", |(n, _)| n)
        }
    }

    /// The header with this name.
    pub fn by_name(name: &str) -> Option<Header> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, h)| *h)
    }

    /// What else is present wherever this header is, directly below it.
    pub fn below(self) -> Option<Header> {
        match self {
            Header::Eth => None,
            Header::Vlan | Header::Arp | Header::Rarp | Header::Ipv4 | Header::Ipv6 | Header::IpAny => {
                Some(Header::Eth)
            }
            Header::Tcp | Header::Udp | Header::Sctp => Some(Header::IpAny),
            Header::Icmp => Some(Header::Ipv4),
            Header::Icmpv6 => Some(Header::Ipv6),
            Header::Vlan2 => Some(Header::Vlan),
            Header::Nd => Some(Header::Icmpv6),
            Header::Declared(_) => Some(Header::Eth),
        }
    }
}

/// How values of a field are written, and with what they may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Number,
    Mac,
    Ipv4,
    Ipv6,
    /// A port of the pipeline.
    Port,
    /// Bits with names, such as TCP flags.
    Flags,
}

macro_rules! fields {
    ($($id:ident $name:literal $width:literal $kind:ident $header:tt $target:tt $doc:literal,)*) => {
        /// A match field.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Field { $(#[doc = $doc] $id,)* }

        impl Field {
            /// All fields.
            pub const ALL: &[Field] = &[$(Field::$id,)*];
            /// The name.
            pub fn name(self) -> &'static str { match self { $(Field::$id => $name,)* } }
            /// Width in bits.
            pub fn width(self) -> u8 { match self { $(Field::$id => $width,)* } }
            /// How values are written.
            pub fn kind(self) -> Kind { match self { $(Field::$id => Kind::$kind,)* } }
            /// What must be present to read it, if it is in the packet.
            pub fn header(self) -> Option<Header> { match self { $(Field::$id => header!($header),)* } }
            /// How to write it, if that is possible.
            pub fn target(self) -> Option<Target> { match self { $(Field::$id => target!($target),)* } }
            /// What it is.
            pub fn doc(self) -> &'static str { match self { $(Field::$id => $doc,)* } }
        }
    };
}
macro_rules! header {
    (-) => {
        None
    };
    ($header:ident) => {
        Some(Header::$header)
    };
}
macro_rules! target {
    (-) => {
        None
    };
    ($target:ident) => {
        Some(Target::$target)
    };
}

fields! {
//  id         name           bits kind   header  write       what
    InPort     "in_port"       16  Port   -       -           "Port the packet came in by; values are the program's dense port numbers.",
    CtState    "ct.state"      32  Flags  -       -           "Connection state bits; 0 before `ct()`.",
    CtZone     "ct.zone"       16  Number -       -           "Zone of the last `ct()`.",
    CtMark     "ct.mark"       32  Number -       -           "Mark of the connection.",
    CtLabel    "ct.label"      128 Number -       -           "Label of the connection.",
    EthDst     "eth.dst"       48  Mac    Eth     EthDst      "Destination address.",
    EthSrc     "eth.src"       48  Mac    Eth     EthSrc      "Source address.",
    EthType    "eth.type"      16  Number Eth     EthType         "Ethernet type behind the VLAN tag; 0x05ff for 802.3 without SNAP.",
    VlanTci    "vlan.tci"      16  Number Eth     -           "Tag control information; bit 12 says that there is a tag. 0 without one.",
    VlanVid    "vlan.vid"      12  Number Vlan    VlanVid     "VLAN id of the outer tag.",
    VlanPcp    "vlan.pcp"      3   Number Vlan    VlanPcp     "Priority of the outer tag.",
    ArpOp      "arp.op"        16  Number Arp     ArpOp       "Operation; above 255 it reads 0.",
    ArpSpa     "arp.spa"       32  Ipv4   Arp     ArpSpa      "Sender's IPv4 address.",
    ArpTpa     "arp.tpa"       32  Ipv4   Arp     ArpTpa      "Target's IPv4 address.",
    ArpSha     "arp.sha"       48  Mac    Arp     ArpSha      "Sender's hardware address.",
    ArpTha     "arp.tha"       48  Mac    Arp     ArpTha      "Target's hardware address.",
    IpProto    "ip.proto"      8   Number IpAny   IpProto         "Protocol; of IPv6 the one behind the extension headers.",
    IpDscp     "ip.dscp"       6   Number IpAny   IpDscp      "Differentiated services code point.",
    IpEcn      "ip.ecn"        2   Number IpAny   IpEcn       "Explicit congestion notification.",
    IpTtl      "ip.ttl"        8   Number IpAny   IpTtl       "Time to live, or hop limit.",
    IpFrag     "ip.frag"       2   Number IpAny   -           "0 whole, 1 first fragment, 3 later fragment.",
    Ipv4Src    "ipv4.src"      32  Ipv4   Ipv4    Ipv4Src     "Source address.",
    Ipv4Dst    "ipv4.dst"      32  Ipv4   Ipv4    Ipv4Dst     "Destination address.",
    Ipv6Src    "ipv6.src"      128 Ipv6   Ipv6    Ipv6Src     "Source address.",
    Ipv6Dst    "ipv6.dst"      128 Ipv6   Ipv6    Ipv6Dst     "Destination address.",
    Ipv6Label  "ipv6.label"    20  Number Ipv6    Ipv6Label   "Flow label.",
    TcpSrc     "tcp.src"       16  Number Tcp     TcpSrc      "Source port; 0 in fragments.",
    TcpDst     "tcp.dst"       16  Number Tcp     TcpDst      "Destination port; 0 in fragments.",
    TcpFlags   "tcp.flags"     12  Flags  Tcp     TcpFlags         "Flags; of a first fragment too, unlike its ports.",
    UdpSrc     "udp.src"       16  Number Udp     UdpSrc      "Source port; 0 in fragments.",
    UdpDst     "udp.dst"       16  Number Udp     UdpDst      "Destination port; 0 in fragments.",
    SctpSrc    "sctp.src"      16  Number Sctp    SctpSrc     "Source port; 0 in fragments.",
    SctpDst    "sctp.dst"      16  Number Sctp    SctpDst     "Destination port; 0 in fragments.",
    IcmpType   "icmp.type"     8   Number Icmp    IcmpType    "Type; 0 in fragments.",
    IcmpCode   "icmp.code"     8   Number Icmp    IcmpCode    "Code; 0 in fragments.",
    Icmpv6Type "icmpv6.type"   8   Number Icmpv6  Icmpv6Type  "Type; 0 in fragments.",
    Icmpv6Code "icmpv6.code"   8   Number Icmpv6  Icmpv6Code  "Code; 0 in fragments.",
    InPortNumber "in_port.number" 16 Number -     -           "OpenFlow number of the port the packet came in by.",
    FrameLen   "frame.len"     32  Number -       -           "Bytes of the frame, without its checksum.",
    Vlan2Tci   "vlan2.tci"     16  Number Eth     -           "As `vlan.tci`, of the second tag; there only with `option vlan_limit = 2`.",
    Vlan2Vid   "vlan2.vid"     12  Number Vlan2   Vlan2Vid    "VLAN id of the second tag.",
    Vlan2Pcp   "vlan2.pcp"     3   Number Vlan2   Vlan2Pcp    "Priority of the second tag.",
    IpValid    "ip.valid"      1   Number IpAny   -           "1 unless the header is malformed, in which case its fields read 0.",
    Ipv4Ihl    "ipv4.ihl"      4   Number Ipv4    -           "Length of the header with its options, in words of four bytes.",
    Ipv4Len    "ipv4.len"      16  Number Ipv4    -           "Length of the packet.",
    Ipv4Id     "ipv4.id"       16  Number Ipv4    Ipv4Id      "Identification, the same for all fragments of a packet.",
    Ipv6Len    "ipv6.len"      16  Number Ipv6    -           "Length of what follows the header.",
    TcpSeq     "tcp.seq"       32  Number Tcp     TcpSeq      "Sequence number; 0 in fragments.",
    TcpAck     "tcp.ack"       32  Number Tcp     TcpAck      "Number of the byte expected next; 0 in fragments.",
    TcpWindow  "tcp.window"    16  Number Tcp     TcpWindow   "Window as it is in the header; 0 in fragments.",
    UdpLen     "udp.len"       16  Number Udp     -           "Length of header and payload; 0 in fragments.",
    NdTarget   "nd.target"     128 Ipv6   Nd      NdTarget    "The address that is asked for or told.",
    NdSll      "nd.sll"        48  Mac    Nd      NdSll       "Link-layer address of the source; 0 without that option.",
    NdTll      "nd.tll"        48  Mac    Nd      NdTll       "Link-layer address of the target; 0 without that option.",
}

/// Other names of fields, with what must be present for them (mostly the field's own header): the versions of IP by name,
/// and OpenFlow's names, new and old.
const ALIASES: &[(&str, Field, Option<Header>)] = &[
    ("ipv4.proto", Field::IpProto, Some(Header::Ipv4)),
    ("ipv4.dscp", Field::IpDscp, Some(Header::Ipv4)),
    ("ipv4.ecn", Field::IpEcn, Some(Header::Ipv4)),
    ("ipv4.ttl", Field::IpTtl, Some(Header::Ipv4)),
    ("ipv4.frag", Field::IpFrag, Some(Header::Ipv4)),
    ("ipv6.proto", Field::IpProto, Some(Header::Ipv6)),
    ("ipv6.dscp", Field::IpDscp, Some(Header::Ipv6)),
    ("ipv6.ecn", Field::IpEcn, Some(Header::Ipv6)),
    ("ipv6.hop_limit", Field::IpTtl, Some(Header::Ipv6)),
    ("ipv6.frag", Field::IpFrag, Some(Header::Ipv6)),
    ("ipv4.valid", Field::IpValid, Some(Header::Ipv4)),
    ("ipv6.valid", Field::IpValid, Some(Header::Ipv6)),
    ("packet.len", Field::FrameLen, None),
    ("eth_dst", Field::EthDst, Some(Header::Eth)),
    ("eth_src", Field::EthSrc, Some(Header::Eth)),
    ("eth_type", Field::EthType, Some(Header::Eth)),
    ("dl_dst", Field::EthDst, Some(Header::Eth)),
    ("dl_src", Field::EthSrc, Some(Header::Eth)),
    ("dl_type", Field::EthType, Some(Header::Eth)),
    ("vlan_tci", Field::VlanTci, Some(Header::Eth)),
    ("vlan_vid", Field::VlanVid, Some(Header::Vlan)),
    ("vlan_pcp", Field::VlanPcp, Some(Header::Vlan)),
    ("dl_vlan", Field::VlanVid, Some(Header::Vlan)),
    ("dl_vlan_pcp", Field::VlanPcp, Some(Header::Vlan)),
    ("arp_op", Field::ArpOp, Some(Header::Arp)),
    ("arp_spa", Field::ArpSpa, Some(Header::Arp)),
    ("arp_tpa", Field::ArpTpa, Some(Header::Arp)),
    ("arp_sha", Field::ArpSha, Some(Header::Arp)),
    ("arp_tha", Field::ArpTha, Some(Header::Arp)),
    ("ip_proto", Field::IpProto, Some(Header::IpAny)),
    ("nw_proto", Field::IpProto, Some(Header::IpAny)),
    ("ip_dscp", Field::IpDscp, Some(Header::IpAny)),
    ("ip_ecn", Field::IpEcn, Some(Header::IpAny)),
    ("nw_ecn", Field::IpEcn, Some(Header::IpAny)),
    ("nw_ttl", Field::IpTtl, Some(Header::IpAny)),
    ("ip_frag", Field::IpFrag, Some(Header::IpAny)),
    ("nw_frag", Field::IpFrag, Some(Header::IpAny)),
    ("ipv4_src", Field::Ipv4Src, Some(Header::Ipv4)),
    ("ipv4_dst", Field::Ipv4Dst, Some(Header::Ipv4)),
    ("ip_src", Field::Ipv4Src, Some(Header::Ipv4)),
    ("ip_dst", Field::Ipv4Dst, Some(Header::Ipv4)),
    ("nw_src", Field::Ipv4Src, Some(Header::Ipv4)),
    ("nw_dst", Field::Ipv4Dst, Some(Header::Ipv4)),
    ("ipv6_src", Field::Ipv6Src, Some(Header::Ipv6)),
    ("ipv6_dst", Field::Ipv6Dst, Some(Header::Ipv6)),
    ("ipv6_label", Field::Ipv6Label, Some(Header::Ipv6)),
    ("tcp_src", Field::TcpSrc, Some(Header::Tcp)),
    ("tcp_dst", Field::TcpDst, Some(Header::Tcp)),
    ("tcp_flags", Field::TcpFlags, Some(Header::Tcp)),
    ("udp_src", Field::UdpSrc, Some(Header::Udp)),
    ("udp_dst", Field::UdpDst, Some(Header::Udp)),
    ("sctp_src", Field::SctpSrc, Some(Header::Sctp)),
    ("sctp_dst", Field::SctpDst, Some(Header::Sctp)),
    ("icmp_type", Field::IcmpType, Some(Header::Icmp)),
    ("icmp_code", Field::IcmpCode, Some(Header::Icmp)),
    ("icmpv6_type", Field::Icmpv6Type, Some(Header::Icmpv6)),
    ("icmpv6_code", Field::Icmpv6Code, Some(Header::Icmpv6)),
    ("nd_target", Field::NdTarget, Some(Header::Nd)),
    ("nd_sll", Field::NdSll, Some(Header::Nd)),
    ("nd_tll", Field::NdTll, Some(Header::Nd)),
    ("ct_state", Field::CtState, None),
    ("ct_zone", Field::CtZone, None),
    ("ct_mark", Field::CtMark, None),
    ("ct_label", Field::CtLabel, None),
];

impl Field {
    /// The field with this name or alias, and what must be present for it under that name.
    pub fn by_name(name: &str) -> Option<(Field, Option<Header>)> {
        let own = Field::ALL.iter().find(|f| f.name() == name).map(|&f| (f, f.header()));
        own.or_else(|| ALIASES.iter().find(|(n, ..)| *n == name).map(|&(_, f, h)| (f, h)))
    }

    /// Whether it is not read from the packet's bytes.
    pub fn is_metadata(self) -> bool {
        use Field::{CtLabel, CtMark, CtState, CtZone, InPort, InPortNumber};
        matches!(self, InPort | InPortNumber | CtState | CtZone | CtMark | CtLabel)
    }

    /// All names and aliases, for suggestions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Field::ALL.iter().map(|f| f.name()).chain(ALIASES.iter().map(|(n, ..)| *n))
    }
}

/// Names of the bits of `ct.state`, and their values.
pub const CT_FLAGS: &[(&str, u32)] = &[
    ("new", pipec_abi::ct::state::NEW),
    ("est", pipec_abi::ct::state::EST),
    ("rel", pipec_abi::ct::state::REL),
    ("rpl", pipec_abi::ct::state::RPL),
    ("inv", pipec_abi::ct::state::INV),
    ("trk", pipec_abi::ct::state::TRK),
    ("snat", pipec_abi::ct::state::SNAT),
    ("dnat", pipec_abi::ct::state::DNAT),
];

/// Names of the bits of `tcp.flags`, and their values.
pub const TCP_FLAGS: &[(&str, u32)] = &[
    ("fin", 0x001),
    ("syn", 0x002),
    ("rst", 0x004),
    ("psh", 0x008),
    ("ack", 0x010),
    ("urg", 0x020),
    ("ece", 0x040),
    ("cwr", 0x080),
    ("ns", 0x100),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = Field::names().collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn written_fields_have_the_width_of_their_header() {
        for &field in Field::ALL {
            assert!(field.width() <= 128 && field.width() > 0);
            assert!(field.target().is_none() || field.header().is_some(), "{field:?}");
        }
    }
}
