//! A packet as values of fields, not yet bytes: what conditions ask for is set one by one, and what is left is plain.
//!
//! In: fields and their values, in any order. Out: a text as tests write packets. Fields that no text can set are left out.

use std::collections::BTreeMap;

use crate::field::{Field, Header};
use crate::hir::{Place, Space};

/// Values of fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    values: BTreeMap<Field, u128>,
}

impl Wanted {
    /// Sets bits of a place. What the program keeps for itself, such as variables, cannot be set.
    pub fn set(&mut self, place: Place, value: u128, mask: u128) {
        let Space::Field(field) = place.space else { return };
        let shift = u16::from(field.width()) - place.offset - u16::from(place.width);
        let known = self.values.entry(field).or_insert_with(|| usual(field));
        *known = *known & !(mask << shift) | (value & mask) << shift;
        if let Some(header) = field.header() {
            self.have(header);
        }
    }

    /// The value that a field has so far.
    pub fn get(&self, field: Field) -> Option<u128> {
        self.values.get(&field).copied()
    }

    /// Sees to it that a header is there.
    pub fn have(&mut self, header: Header) {
        match header {
            Header::Vlan => {
                self.values.entry(Field::VlanVid).or_insert(1);
            }
            Header::Arp => self.eth_type(0x0806),
            Header::Rarp => self.eth_type(0x8035),
            Header::Ipv4 => self.eth_type(0x0800),
            Header::Ipv6 => self.eth_type(0x86dd),
            Header::IpAny => self.ip(),
            Header::Tcp => self.proto(6),
            Header::Udp => self.proto(17),
            Header::Sctp => self.proto(132),
            Header::Icmp => {
                self.eth_type(0x0800);
                self.proto(1);
            }
            Header::Icmpv6 => {
                self.eth_type(0x86dd);
                self.proto(58);
            }
            _ => {}
        }
    }

    /// Sees to it that a header is not there, as far as another can stand in its place.
    pub fn lack(&mut self, header: Header) {
        match header {
            Header::Vlan => {
                self.values.remove(&Field::VlanVid);
                self.values.remove(&Field::VlanPcp);
                self.values.remove(&Field::VlanTci);
            }
            Header::Arp | Header::Rarp => self.ip(),
            Header::Ipv4 => self.eth_type(0x86dd),
            Header::Ipv6 => self.eth_type(0x0800),
            Header::IpAny => self.eth_type(0x0806),
            Header::Tcp => self.proto(17),
            Header::Udp | Header::Sctp | Header::Icmp | Header::Icmpv6 => self.proto(6),
            _ => {}
        }
    }

    fn eth_type(&mut self, eth_type: u128) {
        self.values.insert(Field::EthType, eth_type);
    }

    fn ip(&mut self) {
        if !matches!(self.get(Field::EthType), Some(0x0800 | 0x86dd)) {
            self.eth_type(0x0800);
        }
    }

    fn proto(&mut self, proto: u128) {
        self.ip();
        self.values.insert(Field::IpProto, proto);
    }

    /// The packet that answers this one: addresses and ports the other way round.
    pub fn reply(&self) -> Wanted {
        let mut reply = self.clone();
        for (a, b) in [
            (Field::EthSrc, Field::EthDst),
            (Field::Ipv4Src, Field::Ipv4Dst),
            (Field::Ipv6Src, Field::Ipv6Dst),
            (Field::TcpSrc, Field::TcpDst),
            (Field::UdpSrc, Field::UdpDst),
            (Field::SctpSrc, Field::SctpDst),
        ] {
            if self.values.contains_key(&a) || self.values.contains_key(&b) || is_there(self, a) {
                reply.values.insert(a, self.get(b).unwrap_or_else(|| usual(b)));
                reply.values.insert(b, self.get(a).unwrap_or_else(|| usual(a)));
            }
        }
        reply
    }

    /// The same packet with TCP flags, if it is TCP.
    #[must_use]
    pub fn with_flags(mut self, flags: u128) -> Wanted {
        if self.get(Field::IpProto) == Some(6) {
            self.values.insert(Field::TcpFlags, flags);
        }
        self
    }

    /// The packet as tests write it.
    pub fn text(&self) -> String {
        let mut layers = vec![];
        let eth_type = self.get(Field::EthType).unwrap_or(0x0800);
        let mut eth = self.parts(&[(Field::EthDst, "dst"), (Field::EthSrc, "src")]);
        let known = matches!(eth_type, 0x0800 | 0x86dd | 0x0806);
        if !known {
            eth.push(format!("type = {eth_type}"));
        }
        if !eth.is_empty() {
            layers.push(format!("eth({})", eth.join(", ")));
        }
        let tci = self.get(Field::VlanTci);
        let tagged = tci.is_some_and(|tci| tci & 0x1000 != 0);
        if known && (tagged || self.values.contains_key(&Field::VlanVid) || self.values.contains_key(&Field::VlanPcp)) {
            let part = |field, of: fn(u128) -> u128| self.get(field).or(tci.map(of)).unwrap_or(0);
            let (vid, pcp) = (part(Field::VlanVid, |tci| tci & 0xfff), part(Field::VlanPcp, |tci| tci >> 13));
            layers.push(format!("vlan(vid = {vid}, pcp = {pcp})"));
        }
        match eth_type {
            0x0800 | 0x86dd => self.ip_layers(eth_type == 0x86dd, &mut layers),
            0x0806 => {
                let parts = [(Field::ArpOp, "op"), (Field::ArpSpa, "spa"), (Field::ArpTpa, "tpa")];
                let mut parts = self.parts(&parts);
                parts.extend(self.parts(&[(Field::ArpSha, "sha"), (Field::ArpTha, "tha")]));
                layers.push(format!("arp({})", parts.join(", ")));
            }
            _ => {}
        }
        layers.join(" / ")
    }

    fn ip_layers(&self, v6: bool, layers: &mut Vec<String>) {
        let ttl = if v6 { "hop_limit" } else { "ttl" };
        let (src, dst) = if v6 { (Field::Ipv6Src, Field::Ipv6Dst) } else { (Field::Ipv4Src, Field::Ipv4Dst) };
        let mut ip = self.parts(&[(src, "src"), (dst, "dst"), (Field::IpTtl, ttl)]);
        ip.extend(self.parts(&[(Field::IpDscp, "dscp"), (Field::IpEcn, "ecn")]));
        match self.get(Field::IpFrag) {
            Some(1) if !v6 => ip.push("mf = 1".to_string()),
            Some(2..) if !v6 => ip.push("offset = 1".to_string()),
            _ => {}
        }
        if v6 {
            ip.extend(self.parts(&[(Field::Ipv6Label, "label")]));
        }
        let (name, parts): (&str, &[(Field, &str)]) = match self.get(Field::IpProto).unwrap_or(17) {
            6 => ("tcp", &[(Field::TcpSrc, "src"), (Field::TcpDst, "dst"), (Field::TcpFlags, "flags")]),
            17 => ("udp", &[(Field::UdpSrc, "src"), (Field::UdpDst, "dst")]),
            132 => ("sctp", &[(Field::SctpSrc, "src"), (Field::SctpDst, "dst")]),
            1 if !v6 => ("icmp", &[(Field::IcmpType, "type"), (Field::IcmpCode, "code")]),
            58 if v6 => ("icmpv6", &[(Field::Icmpv6Type, "type"), (Field::Icmpv6Code, "code")]),
            proto => {
                ip.push(format!("proto = {proto}"));
                ("", &[])
            }
        };
        layers.push(format!("{}({})", if v6 { "ipv6" } else { "ipv4" }, ip.join(", ")));
        if !name.is_empty() {
            layers.push(format!("{name}({})", self.parts(parts).join(", ")));
        }
    }

    fn parts(&self, parts: &[(Field, &str)]) -> Vec<String> {
        let written = |(field, name): &(Field, &str)| {
            let value = crate::packet::written(field.kind(), self.get(*field)?);
            Some(format!("{name} = {value}"))
        };
        parts.iter().filter_map(written).collect()
    }
}

fn is_there(wanted: &Wanted, field: Field) -> bool {
    match field.header() {
        Some(Header::Ipv4) => matches!(wanted.get(Field::EthType), None | Some(0x0800)),
        Some(Header::Ipv6) => wanted.get(Field::EthType) == Some(0x86dd),
        Some(Header::Tcp) => wanted.get(Field::IpProto) == Some(6),
        Some(Header::Udp) => matches!(wanted.get(Field::IpProto), None | Some(17)),
        Some(Header::Sctp) => wanted.get(Field::IpProto) == Some(132),
        Some(Header::Eth) => true,
        _ => false,
    }
}

/// What a field of a plain packet is, as the packet builder has it.
fn usual(field: Field) -> u128 {
    match field {
        Field::EthDst => 0x0200_0000_0002,
        Field::EthSrc => 0x0200_0000_0001,
        Field::Ipv4Src | Field::ArpSpa => 0xc000_0201,
        Field::Ipv4Dst | Field::ArpTpa => 0xc000_0202,
        Field::Ipv6Src => 0x2001_0db8 << 96 | 1,
        Field::Ipv6Dst => 0x2001_0db8 << 96 | 2,
        Field::IpTtl => 64,
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => 40_000,
        Field::TcpDst => 80,
        Field::UdpDst => 53,
        Field::SctpDst => 2_905,
        Field::TcpFlags => 2,
        _ => 0,
    }
}
