//! Headers that a program declares, and those that it puts in front of packets. Data only; what it means stands at the head of
//! [`hir`](super).

use super::{Action, Cond, Place, Program, Space, Value};
use crate::field::{Field, Header, Kind};

/// A header made of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderDecl {
    /// Its name.
    pub name: String,
    /// How long it is; at least one byte.
    pub bytes: u16,
    /// Its fields, in order.
    pub fields: Vec<HeaderField>,
    /// What it may stand behind.
    pub after: Vec<After>,
}

/// A field of a declared header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Its name, without that of the header.
    pub name: String,
    /// First bit, counted from the header's most significant.
    pub offset: u16,
    /// How many bits.
    pub width: u8,
    /// How values are written.
    pub kind: Kind,
}

/// What a declared header stands behind, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// The header before it; a declared one stands before it in the program too.
    pub parent: Header,
    /// What must hold besides; it reads the packet only.
    pub cond: Cond,
}

impl HeaderDecl {
    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&HeaderField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Headers that are put in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encap {
    /// Their bytes; lengths and checksums are filled in.
    pub bytes: Vec<u8>,
    /// First bit, width and value of fields that are known only then.
    pub values: Vec<(u16, u8, Value)>,
    /// Offset of IP, and whether it is version 6.
    pub ip: (u16, bool),
    /// Offset of UDP.
    pub udp: Option<u16>,
    /// Offset of a length of 16 bits that counts what is behind the headers.
    pub length: Option<u16>,
    /// What is inside.
    pub inside: Inside,
}

/// What a stack of headers is put in front of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// The frame.
    Frame,
    /// The IP packet in it. Where its Ethernet type is written, and where its protocol number (4 or 41).
    Packet {
        /// Two bytes.
        eth_type: Option<u16>,
        /// One byte.
        protocol: Option<u16>,
    },
}

impl Program {
    /// The name of a header, for people.
    pub fn header_name(&self, header: Header) -> &str {
        match header {
            Header::Declared(index) => &self.headers[usize::from(index)].name,
            header => header.name(),
        }
    }

    /// The field that a place in a declared header is.
    pub fn header_field(&self, header: u16, place: Place) -> Option<&HeaderField> {
        let fields = &self.headers.get(usize::from(header))?.fields;
        fields.iter().find(|field| (field.offset, field.width) == (place.offset, place.width))
    }

    /// The name of a place in a declared header, for people: that of the field it lies in, with its bits if it is a part.
    pub fn header_place_name(&self, header: u16, place: Place) -> String {
        let declared = &self.headers[usize::from(header)];
        let inside = |f: &&HeaderField| (f.offset..f.offset + u16::from(f.width)).contains(&place.offset);
        let field = declared.fields.iter().find(inside);
        let Some(field) = field else { return declared.name.clone() };
        let name = format!("{}.{}", declared.name, field.name);
        // Bits of a field count from its least significant, those of a header from its first.
        let (end, upto) = (field.offset + u16::from(field.width), place.offset + u16::from(place.width));
        match end.checked_sub(upto) {
            Some(low) if place.width < field.width => format!("{name}[{low}..{}]", low + u16::from(place.width)),
            _ => name,
        }
    }
}

impl Action {
    /// Whether it may change which headers a packet has. Of itself: not what tables that it leads to, or the actions of a clone do.
    pub fn reshapes(&self) -> bool {
        match self {
            Action::Set { place, .. } => matches!(place.space, Space::Field(Field::EthType | Field::IpProto)),
            Action::Push { .. }
            | Action::Pop { .. }
            | Action::PushVlan { .. }
            | Action::PopVlan
            | Action::Truncate(_)
            | Action::SetVlan { .. }
            | Action::PushMpls { .. }
            | Action::PopMpls { .. }
            | Action::Encap(_)
            | Action::Decap { .. } => true,
            _ => false,
        }
    }
}
