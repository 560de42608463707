//! Headers that programs declare, in packets: their bits, and what they imply for the header before them.

use super::Built;
use super::encode::{eth_type, header_of};
use super::headers::Header;
use crate::hir::{Cond, HeaderDecl, Match, Place, Space};
use crate::source::Span;

/// The value that a field must have for the next header to be there, if that is a declared one whose condition says so.
pub fn implied(next: Option<&Built>, place: Place) -> Option<u128> {
    let Some(Built::Declared(_, header, _)) = next else { return None };
    header.after.iter().find_map(|after| value_of(&after.cond, place))
}

fn value_of(cond: &Cond, place: Place) -> Option<u128> {
    match cond {
        Cond::All(parts) => parts.iter().find_map(|part| value_of(part, place)),
        Cond::Compare(read, test) if read.place == place => match test {
            Match::Masked { value, .. } => Some(*value),
            Match::Range { low, .. } => Some(*low),
            Match::In(ranges) => ranges.first().map(|(low, _)| *low),
        },
        _ => None,
    }
}

/// A header before its body; `behind`: the layers that follow.
pub fn encode(
    at: u16,
    header: &HeaderDecl,
    values: &[Option<u128>],
    body: Vec<u8>,
    behind: &[(Built, Span)],
) -> Vec<u8> {
    let next = behind.first().map(|(layer, _)| layer);
    let mut out = vec![0; usize::from(header.bytes)];
    for (field, value) in header.fields.iter().zip(values) {
        let place = Place { space: Space::Header(at), offset: field.offset, width: field.width };
        let follows = || implied(next, place).or_else(|| standard(header, &field.name, body.len(), behind));
        let value = value.or_else(follows).unwrap_or(0);
        for k in 0..usize::from(field.width) {
            let bit = usize::from(field.offset) + k;
            let one = (value >> (usize::from(field.width) - 1 - k) & 1) as u8;
            out[bit / 8] |= one << (7 - bit % 8);
        }
    }
    out.extend_from_slice(&body);
    out
}

/// What a field of a standard header is if nothing is said.
fn standard(header: &HeaderDecl, field: &str, len: usize, behind: &[(Built, Span)]) -> Option<u128> {
    let optional = |layer: &Built| matches!(layer, Built::Declared(_, h, _) if h.name.starts_with("gre_"));
    let inside = behind.iter().map(|(layer, _)| layer).find(|layer| !optional(layer));
    let proto = |default: u128| match header_of(inside) {
        Some(Header::Eth) => 0x6558,
        Some(Header::Ipv4 | Header::Ipv6) => eth_type(inside, 0),
        _ => default,
    };
    Some(match (header.name.as_str(), field) {
        ("vxlan", "flags") => 0x08,
        ("gre", "proto") => proto(0x0800),
        ("geneve", "proto") => proto(0x6558),
        ("gtpu", "version" | "pt") => 1,
        ("gtpu", "type") => 255,
        ("gtpu", "length") => len as u128,
        ("mpls", "bos") => {
            u128::from(!matches!(behind.first(), Some((Built::Declared(_, next, _), _)) if next.name == "mpls"))
        }
        ("mpls", "ttl") => 64,
        _ => return None,
    })
}
