//! Standard headers that are made like those a program declares: a program that uses one gets it among its own. Their fixed
//! parts only; what may stand behind them can be declared.

use crate::field::{Field, Header, Kind};
use crate::hir::{After, Cond, HeaderDecl, HeaderField, Match, Place, Program, Read, Space, View};

/// What a header stands behind: another one of these by its name, or one of the language; and values that must be there.
type Behind = (Parent, &'static [(Subject, &'static [u128])]);

#[derive(Clone, Copy)]
enum Parent {
    Known(Header),
    Standard(&'static str),
}

#[derive(Clone, Copy)]
enum Subject {
    Known(Field),
    /// A field of a standard header that stands before this one.
    Standard(&'static str, &'static str),
}

use Parent::{Known as In, Standard as Std};
use Subject::{Known as Of, Standard as StdOf};

type Row = (&'static str, &'static [(&'static str, u8)], &'static [Behind]);

const ROWS: &[Row] = &[
    ("llc", &[("dsap", 8), ("ssap", 8), ("control", 8)], &[(In(Header::Eth), &[(Of(Field::EthType), &[0x05ff])])]),
    (
        "snap",
        &[("oui", 24), ("type", 16)],
        &[(
            Std("llc"),
            &[(StdOf("llc", "dsap"), &[0xaa]), (StdOf("llc", "ssap"), &[0xaa]), (StdOf("llc", "control"), &[3])],
        )],
    ),
    (
        "mpls",
        &[("label", 20), ("tc", 3), ("bos", 1), ("ttl", 8)],
        &[(In(Header::Eth), &[(Of(Field::EthType), &[0x8847, 0x8848])])],
    ),
    (
        "gre",
        &[
            ("has_checksum", 1),
            ("has_routing", 1),
            ("has_key", 1),
            ("has_seq", 1),
            ("flags", 9),
            ("version", 3),
            ("proto", 16),
        ],
        &[(In(Header::IpAny), &[(Of(Field::IpProto), &[47])])],
    ),
    ("gre_checksum", &[("checksum", 16), ("offset", 16)], &[(Std("gre"), &[(StdOf("gre", "has_checksum"), &[1])])]),
    (
        "gre_key",
        &[("key", 32)],
        &[
            (Std("gre_checksum"), &[(StdOf("gre", "has_key"), &[1])]),
            (Std("gre"), &[(StdOf("gre", "has_checksum"), &[0]), (StdOf("gre", "has_key"), &[1])]),
        ],
    ),
    (
        "vxlan",
        &[("flags", 8), ("reserved", 24), ("vni", 24), ("reserved2", 8)],
        &[(In(Header::Udp), &[(Of(Field::UdpDst), &[4789])])],
    ),
    (
        "geneve",
        &[
            ("version", 2),
            ("opt_len", 6),
            ("oam", 1),
            ("critical", 1),
            ("reserved", 6),
            ("proto", 16),
            ("vni", 24),
            ("reserved2", 8),
        ],
        &[(In(Header::Udp), &[(Of(Field::UdpDst), &[6081])])],
    ),
    (
        "gtpu",
        &[
            ("version", 3),
            ("pt", 1),
            ("reserved", 1),
            ("e", 1),
            ("s", 1),
            ("pn", 1),
            ("type", 8),
            ("length", 16),
            ("teid", 32),
        ],
        &[(In(Header::Udp), &[(Of(Field::UdpDst), &[2152])])],
    ),
];

/// Names of the headers.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|(name, ..)| *name)
}

/// Names of the fields of a header, with its own, and their widths.
pub fn fields() -> impl Iterator<Item = (String, u8)> {
    ROWS.iter()
        .flat_map(|(header, fields, _)| fields.iter().map(move |(name, width)| (format!("{header}.{name}"), *width)))
}

/// The place of a standard header among a program's, where it is added with those it stands behind, if it is not there.
pub fn add(headers: &mut Vec<HeaderDecl>, name: &str) -> Option<u16> {
    if let Some(at) = headers.iter().position(|header| header.name == name) {
        return Some(at as u16);
    }
    let (name, widths, behind) = ROWS.iter().find(|(n, ..)| *n == name)?;
    let after = behind.iter().map(|(parent, tests)| {
        let parent = match parent {
            In(header) => *header,
            Std(parent) => Header::Declared(add(headers, parent)?),
        };
        let conds =
            tests.iter().map(|(subject, values)| test(headers, *subject, values)).collect::<Option<Vec<_>>>()?;
        Some(After { parent, cond: Cond::All(conds) })
    });
    let after = after.collect::<Option<Vec<_>>>()?;
    let mut offset = 0;
    let mut fields = vec![];
    for (name, width) in *widths {
        fields.push(HeaderField { name: name.to_string(), offset, width: *width, kind: Kind::Number });
        offset += u16::from(*width);
    }
    headers.push(HeaderDecl { name: name.to_string(), bytes: offset / 8, fields, after });
    Some(headers.len() as u16 - 1)
}

/// A place of a standard header, which is added to the program's.
pub fn place(headers: &mut Vec<HeaderDecl>, header: &str, field: &str) -> Option<Place> {
    let index = add(headers, header)?;
    let field = headers[usize::from(index)].field(field)?;
    Some(Place { space: Space::Header(index), offset: field.offset, width: field.width })
}

fn test(headers: &mut Vec<HeaderDecl>, subject: Subject, values: &[u128]) -> Option<Cond> {
    let place = match subject {
        Of(field) => Place::field(field),
        StdOf(header, field) => place(headers, header, field)?,
    };
    let mask = u128::MAX >> (128 - place.width);
    let test = match values {
        [value] => Match::Masked { value: *value, mask },
        values => Match::In(values.iter().map(|value| (*value, *value)).collect()),
    };
    Some(Cond::Compare(Read { place, view: View::Table }, test))
}

impl Program {
    /// The place of a standard header among the program's headers, where it is added if it is not there.
    pub fn standard(&mut self, name: &str) -> Option<u16> {
        add(&mut self.headers, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_can_be_added_and_is_whole_bytes() {
        for (name, widths, _) in ROWS {
            let mut headers = vec![];
            let at = add(&mut headers, name).expect("a header");
            assert_eq!(headers[usize::from(at)].name, *name);
            assert_eq!(widths.iter().map(|(_, width)| u32::from(*width)).sum::<u32>() % 8, 0, "{name}");
            assert_eq!(add(&mut headers, name), Some(at));
            assert!(Header::by_name(name).is_none());
        }
    }
}
