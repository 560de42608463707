//! Actions that write: `set_field`, `load`, `move`, `write_metadata` and the `mod_` family. A mask becomes one write for each
//! run of ones in it.

use super::actions::{Scope, unsupported, warn_without};
use super::names::{self, Needs, Row, What};
use super::text::{Item, Piece};
use super::values::{Format, Masked, exact, masked, number, ones};
use crate::diag::Diagnostic;
use crate::field::Field;
use crate::hir::{Action, Place, Space, Value};
use crate::suggest::closest;

/// Some bits of a field, as `NAME[FIRST..LAST]` says.
#[derive(Clone, Copy)]
pub struct Slice<'a> {
    /// The field.
    pub row: Row,
    /// Its name.
    pub name: Piece<'a>,
    /// First bit, counted from the least significant.
    pub low: u8,
    /// Last bit.
    pub high: u8,
    /// All of it.
    pub all: Piece<'a>,
}

impl<'a> Slice<'a> {
    /// Reads `NAME`, `NAME[]`, `NAME[BIT]` or `NAME[FIRST..LAST]`.
    pub fn parse(piece: Piece<'a>) -> Result<Slice<'a>, Diagnostic> {
        let piece = piece.trim();
        let (name, bits) = match piece.split_once("[") {
            Some((name, bits)) => (name, Some(bits)),
            None => (piece, None),
        };
        let row = names::by_name(name.text).ok_or_else(|| unknown(name))?;
        let all = Slice { row, name, low: 0, high: row.width - 1, all: piece };
        let Some(bits) = bits else { return Ok(all) };
        let Some(inside) = bits.text.strip_suffix(']').map(|inside| bits.slice(0, inside.len())) else {
            return Err(bits.error("flow-syntax", "a `[` is never closed", "`]` expected at the end"));
        };
        if inside.text.is_empty() {
            return Ok(all);
        }
        let (low, high) = inside.split_once("..").unwrap_or((inside, inside));
        let (low, high) = (number(low, 16)?, number(high, 16)?);
        if low > high || high >= row.width.into() {
            let message = format!("`{}` has no bits {low} to {high}", name.text);
            return Err(inside.error("bad-value", message, format!("bits are numbered 0 to {}", row.width - 1)));
        }
        Ok(Slice { low: low as u8, high: high as u8, ..all })
    }

    /// How many bits.
    pub fn width(&self) -> u8 {
        self.high - self.low + 1
    }

    /// Where it is read.
    pub fn source(&self, scope: &Scope) -> Result<Place, Diagnostic> {
        scope.matches.check(self.name, self.row.needs)?;
        if self.row.what == What::Field(Field::InPort) {
            // Numbers of ports have 16 bits here, also where OpenFlow has 32.
            if self.low > 15 {
                return Err(unsupported(self.all, "reading these bits"));
            }
            let high = self.high.min(15);
            let place = Place::field(Field::InPortNumber);
            return Ok(Place { offset: u16::from(15 - high), width: high - self.low + 1, ..place });
        }
        self.row.place(self.low, self.high).ok_or_else(|| unsupported(self.all, "reading these bits"))
    }
}

fn unknown(name: Piece) -> Diagnostic {
    if names::comes_later(name.text) {
        let message = format!("the field `{}` is not supported yet", name.text);
        return name.error("unsupported-field", message, "cannot be read or written");
    }
    let error = name.error("unknown-field", format!("no field `{}`", name.text), "not a field");
    match closest(name.text, names::all()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// What stands before and behind `->`.
pub fn arrow(piece: Piece) -> Result<(Piece, Piece), Diagnostic> {
    let parts = piece.split_once("->").map(|(from, to)| (from.trim(), to.trim()));
    parts.ok_or_else(|| piece.error("flow-syntax", "no `->` and field to write", "`->FIELD` expected behind this"))
}

/// The value of a `set_field` or `load` for a slice.
pub fn constant(value: Piece, to: &Slice, is_load: bool) -> Result<Masked, Diagnostic> {
    if is_load || to.width() != to.row.width {
        return Ok(Masked { value: number(value, to.width())?, mask: ones(to.width()) });
    }
    masked(value, to.row.format, to.row.width)
}

/// `set_field:VALUE[/MASK]->FIELD`
pub fn set_field(piece: Piece, scope: &mut Scope, actions: &mut Vec<Action>) -> Result<(), Diagnostic> {
    let (value, to) = arrow(piece)?;
    let to = Slice::parse(to)?;
    write(&to, constant(value, &to, false)?, scope, actions)
}

/// `load:VALUE->FIELD[FIRST..LAST]`
pub fn load(piece: Piece, scope: &mut Scope, actions: &mut Vec<Action>) -> Result<(), Diagnostic> {
    let (value, to) = arrow(piece)?;
    let to = Slice::parse(to)?;
    write(&to, constant(value, &to, true)?, scope, actions)
}

/// `move:FIELD[FIRST..LAST]->FIELD[FIRST..LAST]`
pub fn mov(piece: Piece, scope: &mut Scope, actions: &mut Vec<Action>) -> Result<(), Diagnostic> {
    let (from, to) = arrow(piece)?;
    let (from, to) = (Slice::parse(from)?, Slice::parse(to)?);
    if from.width() != to.width() {
        let error = piece.error("bad-value", "the two sides of `move` differ in width", "must have the same width");
        let bits = |slice: &Slice| format!("{} bits", slice.width());
        return Err(error.label(from.all.span(), bits(&from)).label(to.all.span(), bits(&to)));
    }
    let value = Value::Read(from.source(scope)?);
    let place = writable(&to, to.low, to.high, scope)?;
    actions.push(set(place, value, scope));
    Ok(())
}

/// `write_metadata:VALUE[/MASK]`
pub fn write_metadata(piece: Piece, actions: &mut Vec<Action>) -> Result<(), Diagnostic> {
    let value = masked(piece, Format::Number, 64)?;
    if let Some(row) = names::by_name("metadata") {
        runs(value, |low, high, value| {
            actions.extend(row.target(low, high).map(|place| Action::Set { place, value: Value::Const(value) }));
            Ok(())
        })?;
    }
    Ok(())
}

/// Writes the bits of a slice that the mask has.
fn write(to: &Slice, test: Masked, scope: &mut Scope, actions: &mut Vec<Action>) -> Result<(), Diagnostic> {
    let Masked { mut value, mut mask } = test;
    // Bits of OpenFlow's field that say something other than a value.
    let present = 1u128 << 12 >> to.low.min(12);
    match to.row.what {
        What::VlanVid if to.high == 12 && mask & present != 0 => {
            if value & present == 0 {
                return Err(
                    unsupported(to.all, "removing a VLAN tag").help("add 0x1000 to the value to set the VLAN id")
                );
            }
            (value, mask) = (value & !present, mask & !present);
        }
        What::DlVlan if value << to.low > 0xfff => {
            return Err(to.all.error("bad-value", format!("there is no VLAN {value}"), "at most 4095"));
        }
        What::DlVlan => mask &= 0xfff >> to.low.min(12),
        What::Tos => {
            let low_bits = 3u128 >> to.low.min(2);
            if value & low_bits != 0 {
                return Err(to.all.error(
                    "bad-value",
                    "the lower two bits of `nw_tos` are not part of it",
                    "must be 0",
                ));
            }
            mask &= !low_bits;
        }
        _ => {}
    }
    runs(Masked { value, mask }, |low, high, value| {
        let place = writable(to, to.low + low, to.low + high, scope)?;
        actions.push(set(place, Value::Const(value), scope));
        Ok(())
    })
}

/// A write; of a tag that may not be there, one that adds it.
fn set(place: Place, value: Value, scope: &mut Scope) -> Action {
    let tag = [Field::VlanVid, Field::VlanPcp].map(Place::field).contains(&place);
    if tag && !scope.matches.provides(Needs::Vlan) {
        scope.matches = std::borrow::Cow::Owned(scope.matches.tagged(true));
        return Action::SetVlan { place, value };
    }
    Action::Set { place, value }
}

/// Where bits of a field are written, if they can be and the match makes sure that they are there.
fn writable(to: &Slice, low: u8, high: u8, scope: &Scope) -> Result<Place, Diagnostic> {
    let name = to.name.text;
    let place = match to.row.what {
        // Without a tag, one is added.
        What::VlanVid | What::DlVlan | What::VlanPcp => to.row.target(low, high),
        What::TpSrc | What::TpDst | What::IcmpType | What::IcmpCode => {
            scope.matches.check(to.name, to.row.needs)?;
            let source = matches!(to.row.what, What::TpSrc | What::IcmpType);
            let field = scope.matches.ports().map(|[src, dst]| if source { src } else { dst });
            field.map(|field| {
                let offset = u16::from(field.width() - 1 - high);
                Place { space: Space::Field(field), offset, width: high - low + 1 }
            })
        }
        What::Field(Field::CtMark | Field::CtLabel) => {
            let message = format!("`{name}` can be written only inside of `ct(commit,exec(...))`");
            return Err(to.name.error("read-only-field", message, "belongs to the connection"));
        }
        _ => {
            scope.matches.check(to.name, to.row.needs)?;
            to.row.target(low, high)
        }
    };
    place.ok_or_else(|| match to.row.what {
        What::Field(Field::InPort) | What::VlanTci => unsupported(to.name, &format!("writing `{name}`")),
        _ => to.name.error("read-only-field", format!("`{name}` cannot be written"), "can only be matched and read"),
    })
}

/// Calls `each` with first bit, last bit and value of every run of ones in the mask, lowest first.
fn runs(test: Masked, mut each: impl FnMut(u8, u8, u128) -> Result<(), Diagnostic>) -> Result<(), Diagnostic> {
    let mut low = 0;
    while low < 128 && test.mask >> low != 0 {
        low += (test.mask >> low).trailing_zeros() as u8;
        let length = (test.mask >> low).trailing_ones() as u8;
        each(low, low + length - 1, test.value >> low & ones(length))?;
        low += length;
    }
    Ok(())
}

/// The actions of OpenFlow 1.0 that write one field. False: there is no such action.
pub fn modify(item: &Item, name: &str, scope: &mut Scope, actions: &mut Vec<Action>) -> Result<bool, Diagnostic> {
    let (format, bits, needs, fields): (_, _, _, &[Field]) = match name {
        "mod_dl_src" => (Format::Mac, 48, Needs::Nothing, &[Field::EthSrc]),
        "mod_dl_dst" => (Format::Mac, 48, Needs::Nothing, &[Field::EthDst]),
        "mod_nw_src" => (Format::Ipv4, 32, Needs::Ipv4, &[Field::Ipv4Src]),
        "mod_nw_dst" => (Format::Ipv4, 32, Needs::Ipv4, &[Field::Ipv4Dst]),
        "mod_nw_tos" => (Format::Number, 8, Needs::Ip, &[Field::IpDscp]),
        "mod_nw_ecn" => (Format::Number, 2, Needs::Ip, &[Field::IpEcn]),
        "mod_nw_ttl" => (Format::Number, 8, Needs::Ip, &[Field::IpTtl]),
        "mod_tp_src" => (Format::Number, 16, Needs::Ports, &[Field::TcpSrc, Field::UdpSrc, Field::SctpSrc]),
        "mod_tp_dst" => (Format::Number, 16, Needs::Ports, &[Field::TcpDst, Field::UdpDst, Field::SctpDst]),
        "mod_vlan_vid" | "set_vlan_vid" => (Format::Number, 12, Needs::Vlan, &[Field::VlanVid]),
        "mod_vlan_pcp" | "set_vlan_pcp" => (Format::Number, 3, Needs::Vlan, &[Field::VlanPcp]),
        _ => return Ok(false),
    };
    let text = item.needs_value("a value")?;
    let mut value = exact(text, format, bits)?;
    if name == "mod_nw_tos" {
        if value & 3 != 0 {
            return Err(text.error(
                "bad-value",
                "the lower two bits of the TOS are not the DSCP",
                "must be a multiple of 4",
            ));
        }
        value >>= 2;
    }
    if needs == Needs::Vlan {
        actions.push(set(Place::field(fields[0]), Value::Const(value), scope));
        return Ok(true);
    }
    warn_without(item, needs, scope);
    // Of TCP, UDP and SCTP a packet has at most one, and only a header that is there is written.
    let known = scope.matches.ports().filter(|_| needs == Needs::Ports && scope.matches.provides(needs));
    let source = name == "mod_tp_src";
    let fields = match &known {
        Some([src, dst]) => std::slice::from_ref(if source { src } else { dst }),
        None => fields,
    };
    actions.extend(fields.iter().map(|&field| Action::Set { place: Place::field(field), value: Value::Const(value) }));
    Ok(true)
}
