//! The fields of OpenFlow by their names in `ovs-ofctl` (old, new, NXM and OXM): where they lie in the HIR, how their values
//! are written, and what a match on them needs. All that is known of a field is its row here.
//!
//! Registers and OpenFlow's metadata lie in the metadata space: `xregN` is word N, `regN` one of its halves, `xxregN` two
//! words; `metadata` is the word behind them.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::values::Format;
use crate::field::Field;
use crate::hir::{Place, Space};

/// What must be matched before a field can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Needs {
    Nothing,
    Vlan,
    Arp,
    Ipv4,
    Ipv6,
    Ip,
    Tcp,
    Udp,
    Sctp,
    Icmp,
    Icmpv6,
    /// TCP, UDP or SCTP, or for matches ICMP.
    Ports,
    /// ICMP of either version.
    AnyIcmp,
    Mpls,
    /// A neighbour's solicitation or advertisement.
    Nd,
    NdSolicit,
    NdAdvert,
}

/// Where a field lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A field of the packet, or what is known of it.
    Field(Field),
    /// Bits of the metadata.
    Meta(u16),
    /// `vlan_tci`: the tag's control information with bit 12 for its presence.
    VlanTci,
    /// `dl_vlan`: 12 bits of it; 0xffff for no tag.
    DlVlan,
    /// `vlan_vid`: 13 bits of it.
    VlanVid,
    /// `dl_vlan_pcp` and `vlan_pcp`: the upper three bits of it.
    VlanPcp,
    /// `nw_tos`: the DSCP with two zeros behind.
    Tos,
    /// `nw_src`, `nw_dst`: of IPv4, or of ARP the protocol addresses.
    NwSrc,
    /// See [`What::NwSrc`].
    NwDst,
    /// `nw_proto`: of IP, or of ARP the operation.
    NwProto,
    /// `tp_src`: of whatever transport protocol is matched.
    TpSrc,
    /// See [`What::TpSrc`].
    TpDst,
    /// `icmp_type`: of either version.
    IcmpType,
    /// See [`What::IcmpType`].
    IcmpCode,
    /// Bits of the outer label of MPLS, from this one on.
    Mpls(u16),
}

/// A field of OpenFlow.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Where it lies.
    pub what: What,
    /// Its width in OpenFlow.
    pub width: u8,
    /// How values are written.
    pub format: Format,
    /// What must be matched with it.
    pub needs: Needs,
    /// A match may have a mask.
    pub maskable: bool,
}

/// The header of MPLS among a program's, which has no other.
pub const MPLS: u16 = 0;

/// First bit of OpenFlow's metadata.
const METADATA: u16 = 16 * 32;

macro_rules! rows {
    ($($names:literal $what:expr, $width:literal $format:ident $needs:ident $mask:ident;)*) => {
        const ROWS: &[(&str, Row)] = &[$(($names, Row {
            what: $what,
            width: $width,
            format: Format::$format,
            needs: Needs::$needs,
            maskable: rows!(@ $mask),
        }),)*];
    };
    (@ mask) => { true };
    (@ exact) => { false };
}

use Field as F;
use What::Field as At;

rows! {
//  names                                                    where                 bits format   needs   mask
    "in_port in_port_oxm NXM_OF_IN_PORT OXM_OF_IN_PORT"      At(F::InPort),        16 Port     Nothing exact;
    "ct_state NXM_NX_CT_STATE"                               At(F::CtState),       32 CtState  Nothing mask;
    "ct_zone NXM_NX_CT_ZONE"                                 At(F::CtZone),        16 Number   Nothing exact;
    "ct_mark NXM_NX_CT_MARK"                                 At(F::CtMark),        32 Number   Nothing mask;
    "ct_label NXM_NX_CT_LABEL"                               At(F::CtLabel),      128 Number   Nothing mask;
    "metadata OXM_OF_METADATA"                               What::Meta(METADATA), 64 Number   Nothing mask;
    "dl_dst eth_dst NXM_OF_ETH_DST OXM_OF_ETH_DST"           At(F::EthDst),        48 Mac      Nothing mask;
    "dl_src eth_src NXM_OF_ETH_SRC OXM_OF_ETH_SRC"           At(F::EthSrc),        48 Mac      Nothing mask;
    "dl_type eth_type NXM_OF_ETH_TYPE OXM_OF_ETH_TYPE"       At(F::EthType),       16 Number   Nothing exact;
    "vlan_tci NXM_OF_VLAN_TCI"                               What::VlanTci,        16 Number   Nothing mask;
    "dl_vlan"                                                What::DlVlan,         16 Number   Nothing exact;
    "vlan_vid OXM_OF_VLAN_VID"                               What::VlanVid,        13 Number   Nothing mask;
    "dl_vlan_pcp"                                            What::VlanPcp,         3 Number   Nothing exact;
    "vlan_pcp OXM_OF_VLAN_PCP"                               What::VlanPcp,         3 Number   Vlan    exact;
    "arp_op NXM_OF_ARP_OP OXM_OF_ARP_OP"                     At(F::ArpOp),         16 Number   Arp     exact;
    "arp_spa NXM_OF_ARP_SPA OXM_OF_ARP_SPA"                  At(F::ArpSpa),        32 Ipv4     Arp     mask;
    "arp_tpa NXM_OF_ARP_TPA OXM_OF_ARP_TPA"                  At(F::ArpTpa),        32 Ipv4     Arp     mask;
    "arp_sha NXM_NX_ARP_SHA OXM_OF_ARP_SHA"                  At(F::ArpSha),        48 Mac      Arp     mask;
    "arp_tha NXM_NX_ARP_THA OXM_OF_ARP_THA"                  At(F::ArpTha),        48 Mac      Arp     mask;
    "nw_proto ip_proto NXM_OF_IP_PROTO OXM_OF_IP_PROTO"      What::NwProto,         8 Number   Ip      exact;
    "nw_tos NXM_OF_IP_TOS"                                   What::Tos,             8 Number   Ip      exact;
    "ip_dscp OXM_OF_IP_DSCP"                                 At(F::IpDscp),         6 Number   Ip      exact;
    "nw_ecn ip_ecn NXM_NX_IP_ECN OXM_OF_IP_ECN"              At(F::IpEcn),          2 Number   Ip      exact;
    "nw_ttl NXM_NX_IP_TTL"                                   At(F::IpTtl),          8 Number   Ip      exact;
    "nw_frag ip_frag NXM_NX_IP_FRAG"                         At(F::IpFrag),         2 Frag     Ip      mask;
    "nw_src ip_src NXM_OF_IP_SRC OXM_OF_IPV4_SRC"            What::NwSrc,          32 Ipv4     Ipv4    mask;
    "nw_dst ip_dst NXM_OF_IP_DST OXM_OF_IPV4_DST"            What::NwDst,          32 Ipv4     Ipv4    mask;
    "ipv6_src NXM_NX_IPV6_SRC OXM_OF_IPV6_SRC"               At(F::Ipv6Src),      128 Ipv6     Ipv6    mask;
    "ipv6_dst NXM_NX_IPV6_DST OXM_OF_IPV6_DST"               At(F::Ipv6Dst),      128 Ipv6     Ipv6    mask;
    "ipv6_label NXM_NX_IPV6_LABEL OXM_OF_IPV6_FLABEL"        At(F::Ipv6Label),     20 Number   Ipv6    mask;
    "tp_src"                                                 What::TpSrc,          16 Number   Ports   mask;
    "tp_dst"                                                 What::TpDst,          16 Number   Ports   mask;
    "tcp_src NXM_OF_TCP_SRC OXM_OF_TCP_SRC"                  At(F::TcpSrc),        16 Number   Tcp     mask;
    "tcp_dst NXM_OF_TCP_DST OXM_OF_TCP_DST"                  At(F::TcpDst),        16 Number   Tcp     mask;
    "tcp_flags NXM_NX_TCP_FLAGS ONFOXM_ET_TCP_FLAGS OXM_OF_TCP_FLAGS" At(F::TcpFlags), 12 TcpFlags Tcp mask;
    "udp_src NXM_OF_UDP_SRC OXM_OF_UDP_SRC"                  At(F::UdpSrc),        16 Number   Udp     mask;
    "udp_dst NXM_OF_UDP_DST OXM_OF_UDP_DST"                  At(F::UdpDst),        16 Number   Udp     mask;
    "sctp_src OXM_OF_SCTP_SRC"                               At(F::SctpSrc),       16 Number   Sctp    mask;
    "sctp_dst OXM_OF_SCTP_DST"                               At(F::SctpDst),       16 Number   Sctp    mask;
    "icmp_type"                                              What::IcmpType,        8 Number   AnyIcmp exact;
    "icmp_code"                                              What::IcmpCode,        8 Number   AnyIcmp exact;
    "NXM_OF_ICMP_TYPE OXM_OF_ICMPV4_TYPE"                    At(F::IcmpType),       8 Number   Icmp    exact;
    "NXM_OF_ICMP_CODE OXM_OF_ICMPV4_CODE"                    At(F::IcmpCode),       8 Number   Icmp    exact;
    "icmpv6_type NXM_NX_ICMPV6_TYPE OXM_OF_ICMPV6_TYPE"      At(F::Icmpv6Type),     8 Number   Icmpv6  exact;
    "icmpv6_code NXM_NX_ICMPV6_CODE OXM_OF_ICMPV6_CODE"      At(F::Icmpv6Code),     8 Number   Icmpv6  exact;
    "nd_target NXM_NX_ND_TARGET OXM_OF_IPV6_ND_TARGET"       At(F::NdTarget),     128 Ipv6     Nd      mask;
    "nd_sll NXM_NX_ND_SLL OXM_OF_IPV6_ND_SLL"                At(F::NdSll),         48 Mac      NdSolicit mask;
    "nd_tll NXM_NX_ND_TLL OXM_OF_IPV6_ND_TLL"                At(F::NdTll),         48 Mac      NdAdvert mask;
    "mpls_label OXM_OF_MPLS_LABEL"                           What::Mpls(0),        20 Number   Mpls    exact;
    "mpls_tc OXM_OF_MPLS_TC"                                 What::Mpls(20),        3 Number   Mpls    exact;
    "mpls_bos OXM_OF_MPLS_BOS"                               What::Mpls(23),        1 Number   Mpls    exact;
    "mpls_ttl NXM_NX_MPLS_TTL"                               What::Mpls(24),        8 Number   Mpls    exact;
}

/// Beginnings of the names of fields that Open vSwitch has and we do not, yet.
const LATER: &[&str] = &[
    "tun_",
    "tunnel_",
    "pkt_mark",
    "skb_priority",
    "packet_type",
    "conj_id",
    "recirc_id",
    "dp_hash",
    "nd_",
    "nsh_",
    "nsp",
    "nsi",
    "ct_nw_",
    "ct_ipv6_",
    "ct_tp_",
    "actset_output",
    "reg",
    "xreg",
    "xxreg",
    "nxm_",
    "oxm_",
    "nxoxm_",
    "onfoxm_",
    "ericoxm_",
];

/// The field with this name, upper case or lower.
pub fn by_name(name: &str) -> Option<Row> {
    static BY_NAME: LazyLock<HashMap<&str, Row>> =
        LazyLock::new(|| ROWS.iter().flat_map(|(names, row)| names.split(' ').map(|name| (name, *row))).collect());
    let any_case = || ROWS.iter().find(|(names, _)| names.split(' ').any(|n| n.eq_ignore_ascii_case(name)));
    BY_NAME.get(name).copied().or_else(|| register(name)).or_else(|| any_case().map(|(_, row)| *row))
}

/// Whether Open vSwitch has a field of this name, as far as its beginning tells.
pub fn comes_later(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    LATER.iter().any(|beginning| name.starts_with(beginning))
}

/// All names but those of registers, for suggestions.
pub fn all() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|(names, _)| names.split(' '))
}

/// `reg0`–`reg15`, `xreg0`–`xreg7`, `xxreg0`–`xxreg3`, and their names in NXM and OXM.
fn register(name: &str) -> Option<Row> {
    const KINDS: &[(&str, u8, u16)] = &[
        ("reg", 32, 16),
        ("NXM_NX_REG", 32, 16),
        ("xreg", 64, 8),
        ("OXM_OF_PKT_REG", 64, 8),
        ("xxreg", 128, 4),
        ("NXM_NX_XXREG", 128, 4),
    ];
    let digits = name.find(|c: char| c.is_ascii_digit())?;
    let (kind, number) = name.split_at(digits);
    let &(_, width, count) = KINDS.iter().find(|(k, ..)| k.eq_ignore_ascii_case(kind))?;
    let number: u16 = number.parse().ok().filter(|n: &u16| *n < count && n.to_string() == number)?;
    let what = What::Meta(number * u16::from(width));
    Some(Row { what, width, format: Format::Number, needs: Needs::Nothing, maskable: true })
}

/// The name of a place in the metadata, as `ovs-ofctl` would print it.
pub fn metadata_name(offset: u16, width: u8) -> String {
    match width {
        _ if offset >= METADATA => "metadata".into(),
        128 => format!("xxreg{}", offset / 128),
        64 => format!("xreg{}", offset / 64),
        _ => format!("reg{}", offset / 32),
    }
}

impl Row {
    /// Where bits `low..=high` of the field lie, counted from the least significant; `None` where there is no such place.
    pub fn place(&self, low: u8, high: u8) -> Option<Place> {
        let width = high - low + 1;
        let from_top = |space, total: u8| {
            let offset = total.checked_sub(high + 1)?;
            Some(Place { space, offset: offset.into(), width })
        };
        let of = |field: Field| from_top(Space::Field(field), field.width());
        match self.what {
            What::Field(field) => of(field),
            What::Meta(first) => {
                let offset = first + u16::from(self.width - high - 1);
                Some(Place { space: Space::Meta, offset, width })
            }
            What::DlVlan if high > 11 => None,
            What::VlanTci | What::VlanVid | What::DlVlan => of(Field::VlanTci),
            What::VlanPcp => Some(Place { space: Space::Field(Field::VlanPcp), offset: (2 - high).into(), width }),
            What::Tos if low >= 2 => {
                Some(Place { space: Space::Field(Field::IpDscp), offset: (7 - high).into(), width })
            }
            What::Tos => None,
            What::NwSrc => of(Field::Ipv4Src),
            What::NwDst => of(Field::Ipv4Dst),
            What::NwProto => of(Field::IpProto),
            What::IcmpType => of(Field::IcmpType),
            What::IcmpCode => of(Field::IcmpCode),
            What::TpSrc | What::TpDst => None,
            What::Mpls(first) => {
                let offset = first + u16::from(self.width - high - 1);
                Some(Place { space: Space::Header(MPLS), offset, width })
            }
        }
    }
}

impl Row {
    /// Where bits `low..=high` of the field are written; `None` where they cannot be.
    pub fn target(&self, low: u8, high: u8) -> Option<Place> {
        if matches!(self.what, What::VlanVid | What::DlVlan) {
            let offset = 11u8.checked_sub(high)?.into();
            return Some(Place { space: Space::Field(Field::VlanVid), offset, width: high - low + 1 });
        }
        self.place(low, high).filter(|place| match place.space {
            // Open vSwitch writes no types and flags.
            Space::Field(Field::EthType | Field::IpProto | Field::TcpFlags) => false,
            Space::Field(field) => field.target().is_some(),
            Space::Meta => true,
            // All but the bottom of the stack.
            Space::Header(_) => place.offset != 23,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_one_row() {
        let mut names: Vec<_> = all().map(str::to_ascii_lowercase).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.iter().all(|name| by_name(name).is_some()));
    }

    #[test]
    fn registers_overlay() {
        let place = |name: &str| by_name(name).and_then(|row| row.place(0, row.width - 1));
        let meta = |offset, width| Some(Place { space: Space::Meta, offset, width });
        assert_eq!((place("reg0"), place("reg3"), place("NXM_NX_REG15")), (meta(0, 32), meta(96, 32), meta(480, 32)));
        assert_eq!((place("xreg1"), place("xxreg3"), place("metadata")), (meta(64, 64), meta(384, 128), meta(512, 64)));
        assert_eq!((place("reg16"), place("xreg8"), place("reg01"), place("reg")), (None, None, None, None));
        assert_eq!(by_name("reg1").and_then(|row| row.place(0, 15)), meta(48, 16));
    }

    #[test]
    fn slices_of_packet_fields() {
        let place = |name: &str, low, high| by_name(name).and_then(|row| row.place(low, high));
        let of = |field, offset, width| Some(Place { space: Space::Field(field), offset, width });
        assert_eq!(place("NXM_OF_ETH_SRC", 0, 47), of(Field::EthSrc, 0, 48));
        assert_eq!(place("nw_src", 0, 7), of(Field::Ipv4Src, 24, 8));
        assert_eq!(place("vlan_vid", 0, 11), of(Field::VlanTci, 4, 12));
        assert_eq!(place("nw_tos", 2, 7), of(Field::IpDscp, 0, 6));
        assert_eq!(place("nw_tos", 0, 7), None);
        assert_eq!(place("vlan_pcp", 0, 2), of(Field::VlanPcp, 0, 3));
    }
}
