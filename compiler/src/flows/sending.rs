//! Outputs that are computed or cut, and those to the controller.

use super::actions::{Scope, unsupported};
use super::ports::{self, Port};
use super::sets::Slice;
use super::text::{Item, Items, Piece};
use super::values::number;
use crate::diag::Diagnostic;
use crate::hir::{Action, Value};

/// `output:FIELD[FIRST..LAST]`
pub fn to_field(piece: Piece, scope: &mut Scope) -> Result<Action, Diagnostic> {
    let slice = Slice::parse(piece)?;
    if slice.width() > 64 {
        return Err(piece.error("bad-value", "a port's number has at most 32 bits", format!("{} bits", slice.width())));
    }
    Ok(Action::OutputTo(Value::Read(slice.source(scope)?)))
}

/// `output(port=PORT,max_len=N)`
pub fn part(port: Piece, max_len: Piece, scope: &mut Scope) -> Result<Action, Diagnostic> {
    let max_len_bits = number(max_len, 32)?.min(u16::MAX.into()) as u16;
    if max_len_bits < 14 {
        return Err(max_len.error("bad-value", "a copy has at least an Ethernet header", "14 or more"));
    }
    let max_len = max_len_bits;
    match ports::parse(port)? {
        Port::Number(number) => {
            scope.ports.id(number);
            Ok(Action::OutputPart { port: Value::Const(number.into()), max_len })
        }
        _ => Err(unsupported(port, &format!("`max_len` of an output to `{}`", port.text))),
    }
}

/// `controller`, `controller:MAX_LEN`, `controller(reason=…,max_len=…)`
pub fn controller(item: &Item) -> Result<Action, Diagnostic> {
    let (mut reason, mut max_len) = (1, u16::MAX);
    match item.value.filter(|value| !value.text.is_empty()) {
        Some(value) if item.parentheses => {
            for argument in Items::new(value) {
                let argument = argument?;
                match argument.key.text {
                    "max_len" => max_len = number(argument.needs_value("a length")?, 16)? as u16,
                    "id" => drop(number(argument.needs_value("a number")?, 16)?),
                    "userdata" => {}
                    "reason" => {
                        let value = argument.needs_value("a reason")?;
                        reason = match value.text {
                            "no_match" => 0,
                            "action" => 1,
                            "invalid_ttl" => 2,
                            "action_set" => 3,
                            "group" => 4,
                            "packet_out" => 5,
                            _ => number(value, 8)? as u8,
                        };
                    }
                    name => return Err(unsupported(argument.all, &format!("`{name}` in `controller`"))),
                }
            }
        }
        Some(value) => max_len = number(value, 16)? as u16,
        None => {}
    }
    Ok(Action::Controller { reason, max_len })
}
