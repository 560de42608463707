//! The match of one rule: items in, a normal form out, with what `ovs-ofctl` would refuse or silently change reported.
//!
//! The normal form has one entry for each field or word of metadata, in a fixed order: equal matches compare equal, and
//! whether two overlap shows entry by entry. A condition of the HIR is made of it at the very end ([`Match::cond`]), when ports
//! have their dense numbers.

use super::names::{self, Needs, Row, What};
use super::ports::{self, Port};
use super::report::Report;
use super::text::{Item, Piece};
use super::values::{Masked, masked, ones};
use crate::diag::Diagnostic;
use crate::field::{Field, Header};
use crate::hir::{self, Cond, Place, Read, Space, View};
use crate::suggest::closest;

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// A word of the metadata.
    Word(u16),
    /// A field; `in_port` has the number of OpenFlow.
    Field(Field),
    /// The outer label of MPLS, 32 bits.
    Mpls,
}

/// One entry of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// What it is about.
    pub key: Key,
    /// The bits wanted; 0 where the mask is.
    pub value: u128,
    /// The bits that count: at least one.
    pub mask: u128,
}

/// The match of one rule, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Match {
    entries: Vec<Entry>,
    /// What needs a header may stand without a match on it: what is not there is not written.
    unchecked: bool,
}

/// Names that stand for an Ethernet type and perhaps a protocol.
const PROTOCOLS: &[(&str, u16, Option<u8>)] = &[
    ("ip", 0x0800, None),
    ("ipv4", 0x0800, None),
    ("ip4", 0x0800, None),
    ("ipv6", 0x86dd, None),
    ("ip6", 0x86dd, None),
    ("arp", 0x0806, None),
    ("rarp", 0x8035, None),
    ("mpls", 0x8847, None),
    ("mplsm", 0x8848, None),
    ("icmp", 0x0800, Some(1)),
    ("icmp6", 0x86dd, Some(58)),
    ("tcp", 0x0800, Some(6)),
    ("tcp6", 0x86dd, Some(6)),
    ("udp", 0x0800, Some(17)),
    ("udp6", 0x86dd, Some(17)),
    ("sctp", 0x0800, Some(132)),
    ("sctp6", 0x86dd, Some(132)),
];

/// Whether a bare word belongs to a match.
fn protocol(item: &Item) -> Option<(u16, Option<u8>)> {
    if item.value.is_some() {
        return None;
    }
    PROTOCOLS.iter().find(|(name, ..)| item.key.is(name)).map(|&(_, eth_type, proto)| (eth_type, proto))
}

/// Reads the items of a match. Everything that is wrong is reported.
pub fn parse(items: &[Item], report: &mut Report) -> Match {
    let mut matches = Match::default();
    let mut rows: Vec<(&Item, Row, u8)> = Vec::with_capacity(items.len());
    for item in items {
        if let Some((eth_type, proto)) = protocol(item) {
            let added = matches.add(Field::EthType, Masked { value: eth_type.into(), mask: 0xffff }, item.all);
            report.ok(added);
            if let Some(proto) = proto {
                let added = matches.add(Field::IpProto, Masked { value: proto.into(), mask: 0xff }, item.all);
                report.ok(added);
            }
        } else if !item.key.is("eth") {
            match names::by_name(item.key.text) {
                Some(row) => rows.push((item, row, stage(&row))),
                None => report.add(unknown(item)),
            }
        }
    }
    for now in 0..4 {
        for (item, row, stage) in &rows {
            if *stage == now {
                let added = matches.add_item(item, row);
                report.ok(added);
            }
        }
    }
    matches
}

/// Fields that others depend on come first, in whatever order they stand.
fn stage(row: &Row) -> u8 {
    match row.what {
        What::Field(Field::EthType) => 0,
        What::NwProto | What::VlanTci | What::DlVlan | What::VlanVid | What::Field(Field::IpFrag) => 1,
        What::Field(Field::NdTarget | Field::NdSll | Field::NdTll) => 3,
        _ => 2,
    }
}

/// The error for a field that does not exist, or not yet.
fn unknown(item: &Item) -> Diagnostic {
    let name = item.key.text;
    if names::comes_later(name) {
        return item.key.error(
            "unsupported-field",
            format!("the field `{name}` is not supported yet"),
            "cannot be matched",
        );
    }
    let error = item.key.error("unknown-field", format!("no field `{name}`"), "neither a field nor a protocol");
    let known = names::all().chain(PROTOCOLS.iter().map(|(name, ..)| *name)).chain(["table", "priority", "actions"]);
    match closest(name, known) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// What the match says about what must be present, for checking prerequisites.
impl Match {
    /// The entries, sorted by key.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The value that a field must have, if the match says it in full.
    fn exact(&self, field: Field) -> Option<u128> {
        let entry = self.entries.iter().find(|entry| entry.key == Key::Field(field))?;
        (entry.mask == ones(field.width())).then_some(entry.value)
    }

    /// Whether the match makes sure of what a field needs.
    pub fn provides(&self, needs: Needs) -> bool {
        let (eth_type, proto) = (self.exact(Field::EthType), self.exact(Field::IpProto));
        let (v4, v6) = (eth_type == Some(0x0800), eth_type == Some(0x86dd));
        let transport = |numbers: &[u128]| (v4 || v6) && proto.is_some_and(|proto| numbers.contains(&proto));
        match needs {
            Needs::Nothing => true,
            Needs::Vlan => self.entries.iter().any(|e| e.key == Key::Field(Field::VlanTci) && e.value & 0x1000 != 0),
            Needs::Arp => eth_type == Some(0x0806) || eth_type == Some(0x8035),
            Needs::Ipv4 => v4,
            Needs::Ipv6 => v6,
            Needs::Ip => v4 || v6,
            Needs::Tcp => transport(&[6]),
            Needs::Udp => transport(&[17]),
            Needs::Sctp => transport(&[132]),
            Needs::Ports => transport(&[6, 17, 132]),
            Needs::Icmp => v4 && proto == Some(1),
            Needs::Icmpv6 => v6 && proto == Some(58),
            Needs::AnyIcmp => self.provides(Needs::Icmp) || self.provides(Needs::Icmpv6),
            Needs::Mpls => eth_type == Some(0x8847) || eth_type == Some(0x8848),
            Needs::Nd => self.provides(Needs::NdSolicit) || self.provides(Needs::NdAdvert),
            Needs::NdSolicit => self.provides(Needs::Icmpv6) && self.exact(Field::Icmpv6Type) == Some(135),
            Needs::NdAdvert => self.provides(Needs::Icmpv6) && self.exact(Field::Icmpv6Type) == Some(136),
        }
    }

    /// What is known behind an action that leaves a packet of this Ethernet type.
    pub fn retyped(&self, eth_type: u16) -> Match {
        let stays = |entry: &&Entry| match entry.key {
            Key::Word(_) => true,
            Key::Field(field) => {
                matches!(field.header(), None | Some(Header::Eth | Header::Vlan)) && field != Field::EthType
            }
            Key::Mpls => false,
        };
        let mut entries: Vec<Entry> = self.entries.iter().filter(stays).copied().collect();
        entries.push(Entry { key: Key::Field(Field::EthType), value: eth_type.into(), mask: 0xffff });
        entries.sort_by_key(|entry| entry.key);
        Match { entries, unchecked: self.unchecked }
    }

    /// What is known behind an action that leaves a tag, or none.
    pub fn tagged(&self, tagged: bool) -> Match {
        let mut entries = self.entries.clone();
        entries.retain(|entry| entry.key != Key::Field(Field::VlanTci));
        let value = if tagged { 0x1000 } else { 0 };
        if tagged {
            entries.push(Entry { key: Key::Field(Field::VlanTci), value, mask: 0x1000 });
        }
        entries.sort_by_key(|entry| entry.key);
        Match { entries, unchecked: self.unchecked }
    }

    /// Whether the match asks for later fragments, which have no ports.
    pub fn later_fragment(&self) -> bool {
        self.entries.iter().any(|e| e.key == Key::Field(Field::IpFrag) && e.value & 2 != 0)
    }

    /// The transport protocol's ports, source then destination; for matches ICMP's type and code stand in for them.
    pub fn ports(&self) -> Option<[Field; 2]> {
        [
            (Needs::Tcp, [Field::TcpSrc, Field::TcpDst]),
            (Needs::Udp, [Field::UdpSrc, Field::UdpDst]),
            (Needs::Sctp, [Field::SctpSrc, Field::SctpDst]),
            (Needs::Icmp, [Field::IcmpType, Field::IcmpCode]),
            (Needs::Icmpv6, [Field::Icmpv6Type, Field::Icmpv6Code]),
        ]
        .into_iter()
        .find(|(needs, _)| self.provides(*needs))
        .map(|(_, fields)| fields)
    }

    /// The match of a bucket, of which nothing is known.
    pub fn of_bucket() -> Match {
        Match { entries: vec![], unchecked: true }
    }

    /// An error if the match lacks what a field needs.
    pub fn check(&self, name: Piece, needs: Needs) -> Result<(), Diagnostic> {
        if self.unchecked {
            return Ok(());
        }
        let transport = matches!(needs, Needs::Tcp | Needs::Udp | Needs::Sctp | Needs::Ports);
        if transport && self.later_fragment() {
            let message = format!("`{}` in later fragments, which have no transport header", name.text);
            return Err(name
                .error("prerequisite", message, "never there")
                .help("match `ip_frag=not_later` or leave it out"));
        }
        if self.provides(needs) {
            return Ok(());
        }
        let (what, example) = match needs {
            Needs::Nothing => return Ok(()),
            Needs::Vlan => ("a VLAN tag", "dl_vlan=10` or `vlan_tci=0x1000/0x1000"),
            Needs::Arp => ("ARP", "arp"),
            Needs::Ipv4 => ("IPv4", "ip"),
            Needs::Ipv6 => ("IPv6", "ipv6"),
            Needs::Ip => ("IP", "ip` or `ipv6"),
            Needs::Tcp => ("TCP", "tcp` or `tcp6"),
            Needs::Udp => ("UDP", "udp` or `udp6"),
            Needs::Sctp => ("SCTP", "sctp` or `sctp6"),
            Needs::Ports => ("TCP, UDP or SCTP", "tcp` or `udp"),
            Needs::Icmp => ("ICMP", "icmp"),
            Needs::Icmpv6 => ("ICMPv6", "icmp6"),
            Needs::AnyIcmp => ("ICMP", "icmp` or `icmp6"),
            Needs::Mpls => ("MPLS", "mpls` or `mplsm"),
            Needs::Nd | Needs::NdSolicit => ("neighbour discovery", "icmp6,icmp_type=135,icmp_code=0"),
            Needs::NdAdvert => ("neighbour discovery", "icmp6,icmp_type=136,icmp_code=0"),
        };
        let message = format!("`{}` needs a match on {what}", name.text);
        Err(name
            .error("prerequisite", message, format!("there only in packets of {what}"))
            .help(format!("add `{example}` to the match")))
    }

    fn add_item(&mut self, item: &Item, row: &Row) -> Result<(), Diagnostic> {
        let text = item.needs_value("a value")?;
        if text.text.contains('/') && !row.maskable {
            let message = format!("`{}` takes no mask", item.key.text);
            return Err(text.error("bad-value", message, "one value, or none at all, can be matched"));
        }
        match row.what {
            What::Field(Field::InPort) => return self.add_in_port(item, text),
            What::TpSrc | What::TpDst if self.provides(Needs::AnyIcmp) => {}
            What::NwSrc | What::NwDst | What::NwProto if self.provides(Needs::Arp) => {}
            _ => self.check(item.key, row.needs)?,
        }
        let Masked { value, mask } = masked(text, row.format, row.width)?;
        let too_big = || text.error("bad-value", format!("{} does not fit in this field", text.text), "too big");
        let whole = |field: Field| {
            let fits = value <= ones(field.width());
            if fits { Ok((field, Masked { value, mask: mask & ones(field.width()) })) } else { Err(too_big()) }
        };
        let arp = self.provides(Needs::Arp);
        let ports = self.ports();
        let port = |i: usize| ports.map_or(Err(too_big()), |ports| whole(ports[i]));
        let tci = |value, mask| Ok((Field::VlanTci, Masked { value, mask }));
        let (field, test) = match row.what {
            What::Mpls(first) => {
                let below = 32 - first - u16::from(row.width);
                let test = Masked { value: value << below, mask: mask << below };
                return self.add_key(Key::Mpls, test, item.all);
            }
            What::Meta(first) => return self.add_meta(first, row.width, Masked { value, mask }, item.all),
            What::Field(field) => whole(field)?,
            What::VlanTci => tci(value, mask)?,
            What::VlanVid => tci(value, mask)?,
            What::DlVlan if mask == 0 => return Ok(()),
            What::DlVlan if value == 0xffff => tci(0, 0xffff)?,
            What::DlVlan if value <= 0xfff => tci(value | 0x1000, 0x1fff)?,
            What::DlVlan => return Err(too_big()),
            What::VlanPcp if mask == 0 => return Ok(()),
            What::VlanPcp => tci(value << 13 | 0x1000, 0xf000)?,
            What::Tos if value & 3 != 0 => {
                return Err(text
                    .error("bad-value", "the lower two bits of `nw_tos` are not part of it", "must be a multiple of 4")
                    .help("match `nw_ecn` for them"));
            }
            What::Tos => (Field::IpDscp, Masked { value: value >> 2, mask: mask >> 2 }),
            What::NwSrc => whole(if arp { Field::ArpSpa } else { Field::Ipv4Src })?,
            What::NwDst => whole(if arp { Field::ArpTpa } else { Field::Ipv4Dst })?,
            What::NwProto if arp => (Field::ArpOp, Masked { value, mask: if mask == 0 { 0 } else { 0xffff } }),
            What::NwProto => whole(Field::IpProto)?,
            What::TpSrc | What::IcmpType => port(0)?,
            What::TpDst | What::IcmpCode => port(1)?,
        };
        self.add(field, test, item.all)
    }

    fn add_in_port(&mut self, item: &Item, text: Piece) -> Result<(), Diagnostic> {
        if text.text == "*" {
            return Ok(());
        }
        match ports::parse(text)? {
            Port::Number(number) => {
                self.add(Field::InPort, Masked { value: number.into(), mask: u128::from(u32::MAX) }, item.all)
            }
            _ => Err(text.error("unknown-port", format!("no packet comes in by `{}`", text.text), "not a port")),
        }
    }

    /// Adds bits of the metadata, word by word.
    fn add_meta(&mut self, first: u16, width: u8, test: Masked, piece: Piece) -> Result<(), Diagnostic> {
        for word in first / 64..=(first + u16::from(width) - 1) / 64 {
            // How far the word's last bit lies above the last bit of the place, or below it.
            let above = i32::from(first) + i32::from(width) - i32::from(word + 1) * 64;
            let part = |bits: u128| {
                let shifted = if above >= 0 { bits >> above } else { bits << -above };
                shifted & u128::from(u64::MAX)
            };
            self.add_key(Key::Word(word), Masked { value: part(test.value), mask: part(test.mask) }, piece)?;
        }
        Ok(())
    }

    fn add(&mut self, field: Field, test: Masked, piece: Piece) -> Result<(), Diagnostic> {
        self.add_key(Key::Field(field), test, piece)
    }

    fn add_key(&mut self, key: Key, test: Masked, piece: Piece) -> Result<(), Diagnostic> {
        let Masked { value, mask } = test;
        if mask == 0 {
            return Ok(());
        }
        match self.entries.binary_search_by_key(&key, |entry| entry.key) {
            Err(at) => self.entries.insert(at, Entry { key, value, mask }),
            Ok(at) => {
                let entry = &mut self.entries[at];
                if (entry.value ^ value) & entry.mask & mask != 0 {
                    let message = format!("`{}` contradicts the rest of the match", piece.text);
                    return Err(piece
                        .error("contradiction", message, "no packet can match this too")
                        .help("leave one of the two out"));
                }
                entry.value |= value;
                entry.mask |= mask;
            }
        }
        Ok(())
    }

    /// Whether a packet can match both.
    #[cfg(test)]
    pub fn overlaps(&self, other: &Match) -> bool {
        self.entries.iter().all(|a| {
            let same = other.entries.iter().find(|b| b.key == a.key);
            same.is_none_or(|b| (a.value ^ b.value) & a.mask & b.mask == 0)
        })
    }

    /// The condition, with the dense number of each port.
    pub fn cond(&self, port: impl Fn(u32) -> u16) -> Cond {
        let mut conds: Vec<Cond> = self.entries.iter().map(|entry| self.entry_cond(entry, &port)).collect();
        match conds.len() {
            0 => Cond::True,
            1 => conds.remove(0),
            _ => Cond::All(conds),
        }
    }

    fn entry_cond(&self, entry: &Entry, port: impl Fn(u32) -> u16) -> Cond {
        let Entry { key, value, mask } = *entry;
        let compare =
            |place, value, mask| Cond::Compare(Read { place, view: View::Table }, hir::Match::Masked { value, mask });
        let field = match key {
            Key::Field(field) => field,
            // 0 where the label is cut short.
            Key::Mpls => {
                let place = Place { space: Space::Header(names::MPLS), offset: 0, width: 32 };
                return compare(place, value, mask);
            }
            Key::Word(word) => {
                let place = |offset, width| Place { space: Space::Meta, offset: word * 64 + offset, width };
                return match (mask >> 32, mask & 0xffff_ffff) {
                    (high, 0) => compare(place(0, 32), value >> 32, high),
                    (0, low) => compare(place(32, 32), value, low),
                    _ => compare(place(0, 64), value, mask),
                };
            }
        };
        let header = match field {
            Field::EthType => match value {
                0x0800 => Some(Header::Ipv4),
                0x86dd => Some(Header::Ipv6),
                0x0806 => Some(Header::Arp),
                0x8035 => Some(Header::Rarp),
                _ => None,
            },
            Field::IpProto => match value {
                1 if self.provides(Needs::Icmp) => Some(Header::Icmp),
                58 if self.provides(Needs::Icmpv6) => Some(Header::Icmpv6),
                6 => Some(Header::Tcp),
                17 => Some(Header::Udp),
                132 => Some(Header::Sctp),
                _ => None,
            },
            _ => None,
        };
        match (header, field) {
            (Some(header), _) => Cond::Has(header),
            (None, Field::InPort) => compare(Place::field(field), port(value as u32).into(), 0xffff),
            _ => compare(Place::field(field), value, mask),
        }
    }
}
