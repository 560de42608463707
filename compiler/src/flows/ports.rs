//! Ports: numbers, and OpenFlow's reserved ones by name or number. Programs number their ports densely; the numbers met are
//! collected here in the order of the source, and sorted when all are known.

use std::collections::HashMap;

use super::text::Piece;
use super::values::number;
use crate::diag::Diagnostic;
use crate::hir::{GroupId, PortId};
use crate::source::Span;

/// The number of `LOCAL`.
const LOCAL: u32 = 0xfffe;
/// Numbers below this are those of ports.
const FIRST_RESERVED: u32 = 0xff00;

/// What stands where a port is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Port {
    /// A port, `LOCAL` included.
    Number(u32),
    Ingress,
    Normal,
    Flood,
    All,
    Controller,
    /// A reserved port that we do not have.
    Other(&'static str),
}

const RESERVED: &[(u32, &str, Port)] = &[
    (0xfff7, "UNSET", Port::Other("UNSET")),
    (0xfff8, "IN_PORT", Port::Ingress),
    (0xfff9, "TABLE", Port::Other("TABLE")),
    (0xfffa, "NORMAL", Port::Normal),
    (0xfffb, "FLOOD", Port::Flood),
    (0xfffc, "ALL", Port::All),
    (0xfffd, "CONTROLLER", Port::Controller),
    (LOCAL, "LOCAL", Port::Number(LOCAL)),
    (0xffff, "NONE", Port::Other("NONE")),
];

/// The reserved port of this name.
pub fn reserved(name: &str) -> Option<Port> {
    RESERVED.iter().find(|(_, n, _)| n.eq_ignore_ascii_case(name)).map(|(.., port)| *port)
}

/// What a piece names as a port.
pub fn parse(piece: Piece) -> Result<Port, Diagnostic> {
    if let Some(port) = reserved(piece.text) {
        return Ok(port);
    }
    if !piece.text.starts_with(|c: char| c.is_ascii_digit()) {
        let message = format!("no port `{}`", piece.text);
        return Err(piece
            .error("unknown-port", message, "a port's number is expected here")
            .help("names of ports are known to Open vSwitch only; `ovs-ofctl show` tells their numbers"));
    }
    let value = number(piece, 32)? as u32;
    // Reserved numbers have 16 bits in OpenFlow 1.0 and 32 later.
    let short = if value >= 0xffff_ff00 { value & 0xffff } else { value };
    if let Some((.., port)) = RESERVED.iter().find(|(n, ..)| *n == short) {
        return Ok(*port);
    }
    if short >= FIRST_RESERVED {
        let message = format!("{} is no port's number", piece.text);
        return Err(piece.error("unknown-port", message, format!("ports have numbers below {FIRST_RESERVED}")));
    }
    Ok(Port::Number(short))
}

/// Numbers of groups or meters that actions name, in the order in which they are met.
#[derive(Default)]
pub struct Met(pub Vec<(u32, Span)>);

impl Met {
    /// The id of a number, provisional.
    pub fn meet(&mut self, number: u32, span: Span) -> GroupId {
        let at = self.0.iter().position(|(met, _)| *met == number).unwrap_or(self.0.len());
        if at == self.0.len() {
            self.0.push((number, span));
        }
        GroupId(at as u16)
    }
}

/// The ports of a program: ids in the order in which they were met.
#[derive(Default)]
pub struct Ports {
    numbers: Vec<u32>,
    ids: HashMap<u32, u16>,
    /// Groups that actions name.
    pub groups: Met,
    /// Meters that actions name; ids of both are places in such a list.
    pub meters: Met,
}

impl Ports {
    /// The id of a port, provisional until [`Ports::sorted`].
    pub fn id(&mut self, number: u32) -> PortId {
        let next = self.numbers.len() as u16; // there are fewer numbers than 0xff00, and LOCAL
        let id = *self.ids.entry(number).or_insert(next);
        if id == next && self.numbers.len() == usize::from(next) {
            self.numbers.push(number);
        }
        PortId(id)
    }

    /// The numbers in order, and for each provisional id its place among them.
    pub fn sorted(&self) -> (Vec<u32>, Vec<PortId>) {
        let mut numbers = self.numbers.clone();
        numbers.sort_unstable();
        let place = |number: &u32| PortId(numbers.partition_point(|other| other < number) as u16);
        let places = self.numbers.iter().map(place).collect();
        (numbers, places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let port = |text| parse(Piece::new(0, 0, text)).ok();
        assert_eq!((port("1"), port("0x10")), (Some(Port::Number(1)), Some(Port::Number(16))));
        assert_eq!(
            (port("local"), port("65534"), port("0xfffffffe")),
            (Some(Port::Number(LOCAL)), port("LOCAL"), port("LOCAL"))
        );
        assert_eq!(
            (port("in_port"), port("65528"), port("NORMAL")),
            (Some(Port::Ingress), Some(Port::Ingress), Some(Port::Normal))
        );
        assert_eq!((port("p1"), port("65280"), port("65537"), port("")), (None, None, None, None));
    }

    #[test]
    fn ports_are_sorted_at_the_end() {
        let mut ports = Ports::default();
        assert_eq!([7, 2, 7, 5].map(|number| ports.id(number).0), [0, 1, 0, 2]);
        assert_eq!(ports.sorted(), (vec![2, 5, 7], vec![PortId(2), PortId(0), PortId(1)]));
    }
}
