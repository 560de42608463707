//! Headers without a packet: what `encap` puts in front of one. Values that are not known yet are kept aside, with their
//! places.

use super::headers::{HEADERS, Header};
use super::{Built, encode, read};
use crate::constant::Lookup;
use crate::field::Kind;
use crate::hir::{Inside, Value};
use crate::source::Span;

/// A header of a stack.
pub struct StackLayer {
    built: Built,
    span: Span,
    /// Parts whose values are known later.
    late: Vec<(usize, Value, Span)>,
}

impl StackLayer {
    /// A header with nothing given.
    pub fn by_name(name: &str, span: Span, lookup: &mut dyn Lookup) -> Option<StackLayer> {
        let known = HEADERS.iter().find(|(n, ..)| *n == name);
        let built = match known {
            Some((_, header, parts)) => Built::Header(*header, parts.iter().map(|part| part.3).collect()),
            None => {
                let (at, header) = lookup.header(name)?;
                let values = vec![None; header.fields.len()];
                Built::Declared(at, header, values)
            }
        };
        Some(StackLayer { built, span, late: vec![] })
    }

    /// Its parts.
    pub fn parts(&self) -> Vec<(String, Kind, u8)> {
        match &self.built {
            Built::Header(header, _) => {
                let parts = HEADERS.iter().find(|(_, h, _)| h == header).map_or(&[][..], |(.., parts)| parts);
                parts.iter().map(|(name, kind, width, _)| (name.to_string(), *kind, *width)).collect()
            }
            Built::Declared(_, header, _) => {
                header.fields.iter().map(|field| (field.name.clone(), field.kind, field.width)).collect()
            }
            Built::Bytes(_) => vec![],
        }
    }

    /// Gives a part its value.
    pub fn give(&mut self, part: usize, value: Value, span: Span) {
        let now = match value {
            Value::Const(value) => value,
            later => {
                self.late.push((part, later, span));
                0
            }
        };
        if let Built::Header(_, values) | Built::Declared(.., values) = &mut self.built {
            values[part] = Some(now);
        }
    }

    /// How many bytes it has.
    fn len(&self) -> usize {
        match &self.built {
            Built::Header(Header::Eth, _) => 14,
            Built::Header(Header::Vlan, _) => 4,
            Built::Header(Header::Ipv4, _) => 20,
            Built::Header(Header::Ipv6, _) => 40,
            Built::Header(..) => 8,
            Built::Declared(_, header, _) => header.bytes.into(),
            Built::Bytes(bytes) => bytes.len(),
        }
    }

    /// Where a part lies: first bit and width.
    fn place(&self, part: usize) -> Option<(u16, u8)> {
        match &self.built {
            Built::Declared(_, header, _) => header.fields.get(part).map(|field| (field.offset, field.width)),
            Built::Header(header, _) => {
                let (name, _, width) = self.parts().into_iter().nth(part)?;
                let first = match (header, name.as_str()) {
                    (Header::Eth, "dst") => 0,
                    (Header::Eth, "src") => 48,
                    (Header::Vlan, "pcp") => 0,
                    (Header::Vlan, "vid") => 4,
                    (Header::Ipv4, "dscp") => 8,
                    (Header::Ipv4, "ecn") => 14,
                    (Header::Ipv4, "id") => 32,
                    (Header::Ipv4, "ttl") => 64,
                    (Header::Ipv4, "src") => 96,
                    (Header::Ipv4, "dst") => 128,
                    (Header::Ipv6, "dscp") => 4,
                    (Header::Ipv6, "ecn") => 10,
                    (Header::Ipv6, "label") => 12,
                    (Header::Ipv6, "hop_limit") => 56,
                    (Header::Ipv6, "src") => 64,
                    (Header::Ipv6, "dst") => 192,
                    (Header::Udp, "src") => 0,
                    (Header::Udp, "dst") => 16,
                    _ => return None,
                };
                Some((first, width))
            }
            Built::Bytes(_) => None,
        }
    }

    fn is(&self, header: Header) -> bool {
        matches!(&self.built, Built::Header(own, _) if *own == header)
    }

    fn declared(&self) -> Option<&str> {
        if let Built::Declared(_, header, _) = &self.built { Some(&header.name) } else { None }
    }
}

/// A value that is known later: first bit and width, if it can be written then.
pub type Late = (Option<(u16, u8)>, Value, Span);

/// Headers, the outermost first.
pub struct Stack {
    layers: Vec<(Built, Span)>,
    /// For each layer, its first byte.
    offsets: Vec<u16>,
    own: Vec<StackLayer>,
}

impl Stack {
    /// A stack of these headers.
    pub fn of(own: Vec<StackLayer>) -> Stack {
        let mut at = 0;
        let offsets = own.iter().map(|layer| {
            at += layer.len();
            (at - layer.len()) as u16
        });
        let offsets = offsets.collect();
        let layers = own
            .iter()
            .map(|layer| {
                let built = match &layer.built {
                    Built::Header(header, values) => Built::Header(*header, values.clone()),
                    Built::Declared(at, header, values) => Built::Declared(*at, header.clone(), values.clone()),
                    Built::Bytes(bytes) => Built::Bytes(bytes.clone()),
                };
                (built, layer.span)
            })
            .collect();
        Stack { layers, offsets, own }
    }

    /// The bytes; without a checksum of UDP.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = encode::encode(&self.layers, true);
        if let Some(udp) = self.offset_of(Header::Udp) {
            let udp = usize::from(udp);
            bytes[udp + 6..udp + 8].fill(0);
        }
        bytes
    }

    /// A header that no stack has, or that stands behind the wrong one.
    pub fn misplaced(&self) -> Option<Span> {
        use Header::{Eth, Ipv4, Ipv6, Udp, Vlan};
        let other = self.own.iter().find(|layer| {
            layer.declared().is_none() && ![Eth, Vlan, Ipv4, Ipv6, Udp].iter().any(|header| layer.is(*header))
        });
        let second = self.own.iter().skip(1).find(|layer| layer.is(Eth));
        other.or(second).map(|layer| layer.span).or_else(|| read::misplaced(&self.layers).map(|(span, _)| span))
    }

    /// Where the first header of this kind begins.
    pub fn offset_of(&self, header: Header) -> Option<u16> {
        let at = self.own.iter().position(|layer| layer.is(header))?;
        Some(self.offsets[at])
    }

    /// Where the declared header of this name begins.
    pub fn declared(&self, name: &str) -> Option<u16> {
        let at = self.own.iter().position(|layer| layer.declared() == Some(name))?;
        Some(self.offsets[at])
    }

    /// Where the one header of IP begins, and whether it is version 6.
    pub fn ip(&self) -> Option<(u16, bool)> {
        let mut found = self.own.iter().zip(&self.offsets).filter(|(l, _)| l.is(Header::Ipv4) || l.is(Header::Ipv6));
        let (layer, at) = found.next()?;
        found.next().is_none().then_some((*at, layer.is(Header::Ipv6)))
    }

    /// What can be inside.
    pub fn inside(&self) -> Option<Inside> {
        let packet = |eth_type, protocol| Some(Inside::Packet { eth_type, protocol });
        let last = self.own.last()?;
        if last.is(Header::Ipv4) || last.is(Header::Ipv6) {
            let (ip, v6) = self.ip()?;
            return packet(None, Some(ip + if v6 { 6 } else { 9 }));
        }
        // The type that GRE and Geneve have for what is inside, if it is given.
        let given = |name: &str, part: usize| {
            let layer = self.own.iter().find(|layer| layer.declared() == Some(name));
            layer.and_then(|layer| if let Built::Declared(.., values) = &layer.built { values[part] } else { None })
        };
        match last.declared()? {
            "vxlan" => Some(Inside::Frame),
            "gtpu" => packet(None, None),
            "geneve" => match given("geneve", 5) {
                None | Some(0x6558) => Some(Inside::Frame),
                Some(_) => packet(self.declared("geneve").map(|at| at + 2), None),
            },
            "gre" | "gre_key" | "gre_checksum" => match given("gre", 6) {
                Some(0x6558) => Some(Inside::Frame),
                _ => packet(self.declared("gre").map(|at| at + 2), None),
            },
            _ => None,
        }
    }

    /// Values that are known later.
    pub fn late(&self) -> Vec<Late> {
        let layers = self.own.iter().zip(&self.offsets);
        layers
            .flat_map(|(layer, at)| {
                layer.late.iter().map(move |(part, value, span)| {
                    let place = layer.place(*part).map(|(first, width)| (at * 8 + first, width));
                    (place, value.clone(), *span)
                })
            })
            .collect()
    }
}
