//! Keys, entries and actions of keyed tables in words, as entries are written in programs.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{computed, mac, number, port, table};
use crate::field::{Field, Kind};
use crate::hir::{
    KeyMatch, KeyPart, Keyed, KeyedAction, KeyedEntry, Learn, MatchKind, Param, PortId, Program, Space, Value,
};

/// A value of a kind; ports are OpenFlow numbers.
pub(super) fn of_kind(program: &Program, kind: Kind, value: u128) -> String {
    match kind {
        Kind::Mac => mac(value),
        Kind::Ipv4 => Ipv4Addr::from(value as u32).to_string(),
        Kind::Ipv6 => Ipv6Addr::from(value).to_string(),
        Kind::Port => {
            let found = program.ports.iter().find(|port| u128::from(port.number) == value);
            found.map_or_else(|| number(value), |port| port.name.clone())
        }
        Kind::Number | Kind::Flags => number(value),
    }
}

/// An argument.
pub fn param(program: &Program, param: &Param, value: u128) -> String {
    of_kind(program, param.kind, value)
}

/// A value of a part of a key.
pub fn key_value(program: &Program, part: &KeyPart, value: u128) -> String {
    match part.read.place.space {
        Space::Field(Field::InPort) => port(program, PortId(value as u16)),
        _ => of_kind(program, part.value, value),
    }
}

/// What an entry wants of the key, with its priority: `priority 10: 10.0.0.0/8, _`.
pub fn entry_key(program: &Program, keyed: &Keyed, entry: &KeyedEntry) -> String {
    let parts = keyed.key.iter().zip(&entry.key).map(|(part, want)| key_match(program, part, *want));
    let parts = parts.collect::<Vec<_>>().join(", ");
    if entry.priority == 0 { parts } else { format!("priority {}: {parts}", entry.priority) }
}

fn key_match(program: &Program, part: &KeyPart, want: KeyMatch) -> String {
    let show = |value| key_value(program, part, value);
    let width = part.read.place.width;
    let full = if width >= 128 { u128::MAX } else { (1 << width) - 1 };
    match want {
        KeyMatch::Range { low: 0, high } if high == full => "_".to_string(),
        KeyMatch::Range { low, high } if low == high => show(low),
        KeyMatch::Range { low, high } => format!("{}..={}", show(low), show(high)),
        KeyMatch::Masked { mask: 0, .. } => "_".to_string(),
        KeyMatch::Masked { value, mask } if mask == full => show(value),
        KeyMatch::Masked { value, mask } => {
            let length = mask.count_ones();
            let is_prefix = mask == full & !full.checked_shr(length).unwrap_or(0);
            let by_length = part.kind == MatchKind::Lpm || matches!(part.value, Kind::Ipv4 | Kind::Ipv6);
            match is_prefix && by_length {
                true => format!("{}/{length}", show(value)),
                false if part.value == Kind::Mac => format!("{}/{}", show(value), mac(mask)),
                false => format!("{}/{mask:#x}", show(value)),
            }
        }
    }
}

/// An action with the names of its parameters: `route(out, smac, dmac)`.
pub fn signature(action: &KeyedAction) -> String {
    let params: Vec<&str> = action.params.iter().map(|param| param.name.as_str()).collect();
    with_args(&action.name, &params)
}

/// An action with its arguments: `route(out = c, smac = 02:00:00:00:00:0c)`.
pub fn taken(program: &Program, keyed: &Keyed, action: usize, args: &[u128]) -> String {
    let Some(action) = keyed.actions.get(action) else { return "?".to_string() };
    let args = action.params.iter().zip(args).map(|(p, arg)| format!("{} = {}", p.name, param(program, p, *arg)));
    with_args(&action.name, &args.collect::<Vec<_>>())
}

/// A `learn`: `learn addresses(eth.src) => to(in_port)`.
pub(super) fn learn(program: &Program, learn: &Learn) -> String {
    let all = |values: &[Value]| values.iter().map(|value| computed(program, value)).collect::<Vec<_>>();
    let actions = program.table(learn.table).keyed.as_ref().map_or(&[][..], |keyed| &keyed.actions);
    let action = actions.get(usize::from(learn.action)).map_or("?", |action| action.name.as_str());
    let key = with_args(table(program, learn.table), &all(&learn.key));
    format!("learn {key} => {}", with_args(action, &all(&learn.args)))
}

fn with_args(name: &str, args: &[impl AsRef<str>]) -> String {
    let args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
    if args.is_empty() { name.to_string() } else { format!("{name}({})", args.join(", ")) }
}
