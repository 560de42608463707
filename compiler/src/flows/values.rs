//! Values as `ovs-ofctl` writes them: numbers, addresses and flags, most with an optional mask. Text goes in; a value and a
//! mask come out, right-aligned, with no bit of the value outside of the mask.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::text::Piece;
use crate::diag::Diagnostic;
use crate::field::{CT_FLAGS, TCP_FLAGS};

/// How values of a field are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Format {
    Number,
    Mac,
    Ipv4,
    Ipv6,
    Port,
    Frag,
    CtState,
    TcpFlags,
}

/// A value and which of its bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Masked {
    /// The value; 0 where the mask is.
    pub value: u128,
    /// The bits that count.
    pub mask: u128,
}

/// The lowest `width` bits.
pub fn ones(width: u8) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

/// A value of `width` bits, with or without mask.
pub fn masked(piece: Piece, format: Format, width: u8) -> Result<Masked, Diagnostic> {
    if piece.text == "*" {
        return Ok(Masked { value: 0, mask: 0 });
    }
    match format {
        Format::Frag => return fragment(piece),
        Format::CtState => return flags(piece, CT_FLAGS, width),
        Format::TcpFlags => return flags(piece, TCP_FLAGS, width),
        _ => {}
    }
    let (value, mask) = match piece.split_once("/") {
        Some((value, mask)) => (exact(value, format, width)?, mask_of(mask, format, width)?),
        None => (exact(piece, format, width)?, ones(width)),
    };
    Ok(Masked { value: value & mask, mask })
}

/// A value of `width` bits.
pub fn exact(piece: Piece, format: Format, width: u8) -> Result<u128, Diagnostic> {
    match format {
        Format::Mac => mac(piece),
        Format::Ipv4 => ipv4(piece),
        Format::Ipv6 => ipv6(piece),
        _ => number(piece, width),
    }
}

fn mask_of(piece: Piece, format: Format, width: u8) -> Result<u128, Diagnostic> {
    let prefix = !piece.text.is_empty() && piece.text.bytes().all(|byte| byte.is_ascii_digit());
    match format {
        Format::Ipv4 | Format::Ipv6 if prefix => {
            let length = number(piece, 16)?;
            if length > u128::from(width) {
                return Err(piece.error(
                    "bad-value",
                    format!("a prefix of {length} bits in an address of {width}"),
                    format!("at most {width}"),
                ));
            }
            Ok(ones(width) & !ones(width - length as u8))
        }
        _ => exact(piece, format, width),
    }
}

/// A number, decimal or with `0x`.
pub fn number(piece: Piece, width: u8) -> Result<u128, Diagnostic> {
    let text = piece.text;
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u128::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let signed = text.starts_with('+') || text.contains("0x+");
    let Some(value) = parsed.ok().filter(|_| !signed) else {
        return Err(piece.error("bad-value", format!("`{text}` is not a number"), "a number, as `80` or `0x50`"));
    };
    if text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(piece
            .error("bad-value", format!("`{text}` begins with 0"), "Open vSwitch reads this as octal")
            .help(format!("write `{value}` or `0x{value:x}`")));
    }
    if value & !ones(width) != 0 {
        let most = ones(width);
        return Err(piece.error(
            "bad-value",
            format!("{text} does not fit in {width} bits"),
            format!("at most {most} (0x{most:x})"),
        ));
    }
    Ok(value)
}

fn mac(piece: Piece) -> Result<u128, Diagnostic> {
    let mut value = 0;
    let mut bytes = 0;
    for part in piece.text.split(':') {
        let byte = u8::from_str_radix(part, 16).ok().filter(|_| part.len() <= 2 && !part.starts_with('+'));
        value = value << 8 | u128::from(byte.unwrap_or(0));
        bytes += if byte.is_some() { 1 } else { 7 };
    }
    if bytes == 6 {
        return Ok(value);
    }
    let message = format!("`{}` is not an Ethernet address", piece.text);
    Err(piece.error("bad-value", message, "six bytes, as `02:00:00:00:00:01`"))
}

fn ipv4(piece: Piece) -> Result<u128, Diagnostic> {
    let address: Result<Ipv4Addr, _> = piece.text.parse();
    address.map(|address| u128::from(u32::from(address))).map_err(|_| {
        let message = format!("`{}` is not an IPv4 address", piece.text);
        piece.error("bad-value", message, "an address, as `10.0.0.1`")
    })
}

fn ipv6(piece: Piece) -> Result<u128, Diagnostic> {
    let address: Result<Ipv6Addr, _> = piece.text.parse();
    address.map(u128::from).map_err(|_| {
        let message = format!("`{}` is not an IPv6 address", piece.text);
        piece.error("bad-value", message, "an address, as `2001:db8::1`")
    })
}

/// `ip_frag`: bit 0 says that it is a fragment, bit 1 that it is not the first.
fn fragment(piece: Piece) -> Result<Masked, Diagnostic> {
    let (value, mask) = match piece.text.to_ascii_lowercase().as_str() {
        "no" => (0, 3),
        "yes" => (1, 1),
        "first" => (1, 3),
        "later" => (2, 2),
        "not_later" => (0, 2),
        _ => {
            let message = format!("`{}` says nothing about fragments", piece.text);
            return Err(piece.error("bad-value", message, "`no`, `yes`, `first`, `later` or `not_later`"));
        }
    };
    Ok(Masked { value, mask })
}

/// `+new-est`, or names joined by `|` or a number, with or without mask.
fn flags(piece: Piece, names: &[(&str, u32)], width: u8) -> Result<Masked, Diagnostic> {
    if !piece.text.starts_with(['+', '-']) {
        let (value, mask) = match piece.split_once("/") {
            Some((value, mask)) => (flag_set(value, names, width)?, flag_set(mask, names, width)?),
            None => (flag_set(piece, names, width)?, ones(width)),
        };
        return Ok(Masked { value: value & mask, mask });
    }
    let (mut value, mut mask) = (0, 0);
    let mut at = 0;
    while at < piece.text.len() {
        let end = piece.text[at + 1..].find(['+', '-']).map_or(piece.text.len(), |next| at + 1 + next);
        let bit = flag(piece.slice(at + 1, end), names, width)?;
        if mask & bit != 0 {
            let part = piece.slice(at, end);
            return Err(part.error("bad-value", "a flag is named twice", "named before"));
        }
        mask |= bit;
        if piece.text.as_bytes()[at] == b'+' {
            value |= bit;
        }
        at = end;
    }
    Ok(Masked { value, mask })
}

fn flag_set(piece: Piece, names: &[(&str, u32)], width: u8) -> Result<u128, Diagnostic> {
    if piece.text.starts_with(|c: char| c.is_ascii_digit()) {
        return number(piece, width);
    }
    let mut set = 0;
    let mut rest = Some(piece);
    while let Some(piece) = rest {
        let (name, more) = piece.split_once("|").map_or((piece, None), |(name, more)| (name, Some(more)));
        set |= flag(name, names, width)?;
        rest = more;
    }
    Ok(set)
}

/// The bit of a flag: by name, or as `[800]` for those that have none.
fn flag(piece: Piece, names: &[(&str, u32)], width: u8) -> Result<u128, Diagnostic> {
    if let Some((_, bit)) = names.iter().find(|(name, _)| piece.is(name)) {
        return Ok(u128::from(*bit));
    }
    let digits = piece.text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let bit = digits.and_then(|digits| u128::from_str_radix(digits, 16).ok());
    bit.filter(|&bit| bit.is_power_of_two() && bit <= ones(width)).ok_or_else(|| {
        let all: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        piece
            .error("bad-value", format!("no flag `{}`", piece.text), "not the name of a flag")
            .help(format!("the flags are {}; write them as `+a-b`", all.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, format: Format, width: u8) -> Option<(u128, u128)> {
        masked(Piece::new(0, 0, text), format, width).ok().map(|m| (m.value, m.mask))
    }

    #[test]
    fn numbers() {
        assert_eq!(read("80", Format::Number, 16), Some((80, 0xffff)));
        assert_eq!(read("0x51/0xfff0", Format::Number, 16), Some((0x50, 0xfff0)));
        assert_eq!(read("*", Format::Number, 16), Some((0, 0)));
        assert_eq!(read("0", Format::Number, 16), Some((0, 0xffff)));
        for bad in ["", "x", "0x", "65536", "010", "1/", "1/x", "-1", "+1", "0x+1"] {
            assert_eq!(read(bad, Format::Number, 16), None, "{bad}");
        }
        assert_eq!(read("0xffffffffffffffffffffffffffffffff", Format::Number, 128), Some((u128::MAX, u128::MAX)));
    }

    #[test]
    fn addresses() {
        assert_eq!(read("2:00:0:0:0:1", Format::Mac, 48), Some((0x0200_0000_0001, ones(48))));
        let multicast = Some((1 << 40, 1 << 40));
        assert_eq!(read("01:00:00:00:00:00/01:00:00:00:00:00", Format::Mac, 48), multicast);
        assert_eq!(read("10.1.2.3/8", Format::Ipv4, 32), Some((0x0a00_0000, 0xff00_0000)));
        assert_eq!(read("10.1.2.3/255.0.255.0", Format::Ipv4, 32), Some((0x0a00_0200, 0xff00_ff00)));
        assert_eq!(read("10.1.2.3/0", Format::Ipv4, 32), Some((0, 0)));
        assert_eq!(read("2001:db8::1/32", Format::Ipv6, 128), Some((0x2001_0db8 << 96, ones(32) << 96)));
        assert_eq!(read("::1/::1", Format::Ipv6, 128), Some((1, 1)));
        for bad in ["1:2:3:4:5", "1:2:3:4:5:6:7", "1:2:3:4:5:gg", "1:2:3:4:5:123"] {
            assert_eq!(read(bad, Format::Mac, 48), None, "{bad}");
        }
        for bad in ["10.1", "10.1.2.3/33", "10.1.2.3.4"] {
            assert_eq!(read(bad, Format::Ipv4, 32), None, "{bad}");
        }
    }

    #[test]
    fn flags_and_fragments() {
        assert_eq!(read("+new-est+trk", Format::CtState, 32), Some((0x21, 0x23)));
        assert_eq!(read("0x21/0x23", Format::CtState, 32), Some((0x21, 0x23)));
        assert_eq!(read("new|trk", Format::CtState, 32), Some((0x21, ones(32))));
        assert_eq!(read("+syn-ack", Format::TcpFlags, 12), Some((0x02, 0x12)));
        assert_eq!(read("+[800]-[200]", Format::TcpFlags, 12), Some((0x800, 0xa00)));
        for bad in ["+new+new", "+foo", "+", "new+est", "+[300]", "+[1000]"] {
            assert_eq!(read(bad, Format::TcpFlags, 12), None, "{bad}");
        }
        assert_eq!(read("later", Format::Frag, 2), Some((2, 2)));
        assert_eq!(read("0x1", Format::Frag, 2), None);
    }
}
