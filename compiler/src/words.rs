//! The HIR in words: names of places, values, conditions and actions, as the language of pipelines writes them.
//!
//! In: parts of a program, of whichever language. Out: text on one line, the same for what means the same. Never: source text.

mod keyed;

use std::net::{Ipv4Addr, Ipv6Addr};

pub use keyed::{entry_key, key_value, param, signature, taken};

use crate::field::{CT_FLAGS, Field, Kind, TCP_FLAGS};
use crate::hir::{Action, Cond, Ct, Match, Order, Place, PortId, Program, Rule, Space, TableId, Value};
pub use crate::print::time;

/// The name of a place: a field's, a variable's, or which bits of either.
pub fn place(program: &Program, place: Place) -> String {
    let range = || format!("[{}..{}]", place.offset, place.offset + u16::from(place.width));
    if let Space::Header(header) = place.space {
        return program.header_place_name(header, place);
    }
    if let Space::Field(field) = place.space {
        return if place == Place::field(field) {
            field.name().to_string()
        } else {
            field.name().to_string() + &range()
        };
    }
    match program.variables.iter().find(|variable| variable.place == place) {
        Some(variable) => variable.name.clone(),
        None if place.space == Space::Meta => "metadata".to_string() + &range(),
        None => format!("{:?}{}", place.space, range()),
    }
}

/// A value of a place.
pub fn value(program: &Program, place: Place, value: u128) -> String {
    let field = match place.space {
        Space::Field(field) => field,
        Space::Header(header) => match program.header_field(header, place) {
            Some(whole) => return keyed::of_kind(program, whole.kind, value),
            None => return number(value),
        },
        Space::Meta => return number(value),
    };
    if place != Place::field(field) {
        return format!("{value:#x}");
    }
    match field.kind() {
        Kind::Mac => mac(value),
        Kind::Ipv4 => Ipv4Addr::from(value as u32).to_string(),
        Kind::Ipv6 => Ipv6Addr::from(value).to_string(),
        Kind::Port if field == Field::InPort => port(program, PortId(value as u16)),
        Kind::Flags => flags(field, value),
        _ if field == Field::EthType || field == Field::VlanTci => format!("{value:#06x}"),
        _ => number(value),
    }
}

/// Small numbers in decimal, large ones in hexadecimal.
fn number(value: u128) -> String {
    if value <= 0xffff_ffff { value.to_string() } else { format!("{value:#x}") }
}

fn mac(value: u128) -> String {
    value.to_be_bytes()[10..].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

/// Bits by their names; those that have none as a number.
fn flags(field: Field, value: u128) -> String {
    let names = if field == Field::CtState { CT_FLAGS } else { TCP_FLAGS };
    let known = names.iter().filter(|(_, bit)| value & u128::from(*bit) != 0);
    let rest = names.iter().fold(value, |rest, (_, bit)| rest & !u128::from(*bit));
    let mut parts: Vec<String> = known.map(|(name, _)| (*name).to_string()).collect();
    if rest != 0 || parts.is_empty() {
        parts.push(if rest == 0 { "0".to_string() } else { format!("{rest:#x}") });
    }
    parts.join("|")
}

/// The name of a port.
pub fn port(program: &Program, port: PortId) -> String {
    if port.0 == pipec_abi::CONTROLLER {
        return "controller".to_string();
    }
    program.ports.get(usize::from(port.0)).map_or_else(|| format!("port {}", port.0), |port| port.name.clone())
}

/// The name of a table.
pub fn table(program: &Program, table: TableId) -> &str {
    program.tables.get(usize::from(table.0)).map_or("?", |table| table.name.as_str())
}

/// What a place is held against: `== 10.0.0.0/8`, `in 1..=5`.
pub fn test(program: &Program, of: Place, test: &Match) -> String {
    let show = |bits| value(program, of, bits);
    let ones = if of.width >= 128 { u128::MAX } else { (1 << of.width) - 1 };
    match test {
        Match::Masked { value, mask } if *mask == ones => format!("== {}", show(*value)),
        Match::Masked { value, mask } => {
            let length = mask.count_ones();
            let prefix = *mask == ones & !(ones.checked_shr(length).unwrap_or(0));
            let address = matches!(of.space, Space::Field(f) if matches!(f.kind(), Kind::Ipv4 | Kind::Ipv6));
            let bits = matches!(of.space, Space::Field(f) if f.kind() == Kind::Flags);
            match (address && prefix, bits && value == mask, bits && *value == 0) {
                (true, ..) => format!("== {}/{length}", show(*value)),
                (_, true, _) => format!("has {}", show(*mask)),
                (.., true) => format!("lacks {}", show(*mask)),
                _ => format!("& {mask:#x} == {value:#x}"),
            }
        }
        Match::Range { low, high } => format!("in {}..={}", show(*low), show(*high)),
        Match::In(ranges) => {
            let one = |(low, high): &(u128, u128)| match low == high {
                true => show(*low),
                false => format!("{}..={}", show(*low), show(*high)),
            };
            format!("in {{ {} }}", ranges.iter().map(one).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A condition. Parts of `all` and `any` keep their order.
pub fn cond(program: &Program, cond: &Cond) -> String {
    let joined = |parts: &[Cond], by: &str, none: &str| match parts {
        [] => none.to_string(),
        parts => parts.iter().map(|part| inner(program, part)).collect::<Vec<_>>().join(by),
    };
    match cond {
        Cond::True => "else".to_string(),
        Cond::Has(header) => program.header_name(*header).to_string(),
        Cond::Compare(read, held) => format!("{} {}", place(program, read.place), test(program, read.place, held)),
        Cond::Not(part) if matches!(**part, Cond::Compare(..)) => format!("!({})", self::cond(program, part)),
        Cond::Not(part) => format!("!{}", inner(program, part)),
        Cond::All(parts) => joined(parts, " && ", "else"),
        Cond::Any(parts) => joined(parts, " || ", "never"),
        Cond::CompareTo(left, order, right) => {
            let order = match order {
                Order::Equal => "==",
                Order::Less => "<",
                Order::AtMost => "<=",
            };
            format!("{} {order} {}", place(program, left.place), place(program, right.place))
        }
        #[allow(unreachable_patterns)] // what conditions learn to say later
        other => format!("{other:?}"),
    }
}

/// How many tests a condition makes: everything that is not made of other conditions.
pub fn atoms(cond: &Cond) -> usize {
    match cond {
        Cond::Not(inner) => atoms(inner),
        Cond::All(parts) | Cond::Any(parts) => parts.iter().map(atoms).sum(),
        _ => 1,
    }
}

/// A test of a condition, by its number in the order in which they are written.
pub fn atom(cond: &Cond, number: usize) -> Option<&Cond> {
    match cond {
        Cond::Not(inner) => atom(inner, number),
        Cond::All(parts) | Cond::Any(parts) => {
            let mut first = 0;
            for part in parts {
                let own = atoms(part);
                if number < first + own {
                    return atom(part, number - first);
                }
                first += own;
            }
            None
        }
        leaf => (number == 0).then_some(leaf),
    }
}

/// Whether a test of a condition, by its number, has to hold for the condition to hold.
pub fn atom_wanted(cond: &Cond, number: usize) -> bool {
    match cond {
        Cond::Not(inner) => !atom_wanted(inner, number),
        Cond::All(parts) | Cond::Any(parts) => {
            let mut first = 0;
            for part in parts {
                let own = atoms(part);
                if number < first + own {
                    return atom_wanted(part, number - first);
                }
                first += own;
            }
            true
        }
        _ => true,
    }
}

fn inner(program: &Program, part: &Cond) -> String {
    match part {
        Cond::All(_) | Cond::Any(_) => format!("({})", cond(program, part)),
        _ => cond(program, part),
    }
}

/// A list of actions; `drop` for an empty one.
pub fn actions(program: &Program, list: &[Action]) -> String {
    match list {
        [] => "drop".to_string(),
        list => list.iter().map(|one| action(program, one)).collect::<Vec<_>>().join(", "),
    }
}

/// A rule: condition and actions.
pub fn rule(program: &Program, rule: &Rule) -> String {
    format!("{} => {}", cond(program, &rule.cond), actions(program, &rule.actions))
}

/// An action.
pub fn action(program: &Program, action: &Action) -> String {
    match action {
        Action::Output(to) => format!("output({})", port(program, *to)),
        Action::Set { place: to, value: from } => {
            let from = match from {
                Value::Const(bits) => value(program, *to, *bits),
                from => computed(program, from),
            };
            format!("{} = {from}", place(program, *to))
        }
        Action::Ct(ct) => connection(program, ct),
        Action::Call { table: to, in_port: None } => format!("call {}", table(program, *to)),
        Action::Call { table: to, in_port: Some(seen) } => {
            format!("call {} (in_port = {})", table(program, *to), port(program, *seen))
        }
        Action::Goto(to) => format!("goto {}", table(program, *to)),
        Action::Clone(body) => format!("clone {{ {} }}", actions(program, body)),
        Action::OutputTo(to) => format!("output({})", computed(program, to)),
        Action::OutputPart { port: to, max_len } => format!("output({}, max_len = {max_len})", computed(program, to)),
        Action::Mirror(to) => format!("mirror({})", port(program, *to)),
        Action::Controller { reason, max_len } => format!("controller(reason = {reason}, max_len = {max_len})"),
        Action::Count(counter) => {
            format!("count({})", program.counters.get(usize::from(counter.0)).map_or("?", String::as_str))
        }
        Action::Group(group) => {
            format!("group({})", program.groups.get(usize::from(group.0)).map_or("?", |group| group.name.as_str()))
        }
        Action::Meter(meter) => {
            format!("meter({})", program.meters.get(usize::from(meter.0)).map_or("?", |meter| meter.name.as_str()))
        }
        Action::Push { header, values } => {
            format!("push {}({})", header_name(program, *header), assignments(program, values))
        }
        Action::Pop { header } => format!("pop {}", header_name(program, *header)),
        Action::PushVlan { tpid, tci } => format!("push vlan(tci = {}, tpid = {tpid:#06x})", computed(program, tci)),
        Action::PopVlan => "pop vlan".into(),
        Action::Truncate(max) => format!("truncate({max})"),
        Action::SetVlan { place: to, value } => format!("{} = {}", place(program, *to), computed(program, value)),
        Action::PushMpls { eth_type, values } if values.is_empty() => format!("push mpls(type = {eth_type:#06x})"),
        Action::PushMpls { eth_type, values } => {
            format!("push mpls(type = {eth_type:#06x}, {})", assignments(program, values))
        }
        Action::PopMpls { eth_type } => format!("pop mpls({eth_type:#06x})"),
        Action::Encap(encap) => {
            let hex: String = encap.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let values = encap.values.iter().map(|(at, _, value)| format!(", bit {at} = {}", computed(program, value)));
            format!("encap {} ({hex}{})", crate::packet::show(&encap.bytes), values.collect::<String>())
        }
        Action::Learn(learn) => keyed::learn(program, learn),
        Action::Extern { action, args } => {
            let name = program.externs.get(usize::from(*action)).map_or("?", |external| external.name.as_str());
            format!("{name}({})", args.iter().map(|arg| computed(program, arg)).collect::<Vec<_>>().join(", "))
        }
        Action::Decap { header, .. } => format!("decap {}", header_name(program, *header)),
        Action::DecMplsTtl { .. } => "dec_mpls_ttl".into(),
        other => snake(&format!("{other:?}")),
    }
}

fn header_name(program: &Program, header: u16) -> &str {
    program.headers.get(usize::from(header)).map_or("?", |header| header.name.as_str())
}

/// Values of a header's fields, by the names that they have in it.
fn assignments(program: &Program, values: &[(Place, Value)]) -> String {
    let one = |(to, from): &(Place, Value)| {
        let name = place(program, *to);
        format!("{} = {}", name.split_once('.').map_or(name.as_str(), |(_, field)| field), computed(program, from))
    };
    values.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn computed(program: &Program, value: &Value) -> String {
    match value {
        Value::Const(bits) => number(*bits),
        Value::Read(from) => place(program, *from),
        Value::Param(param) => format!("parameter {}", param + 1),
        Value::Arith(op, left, right) => {
            format!("({} {} {})", computed(program, left), snake(&format!("{op:?}")), computed(program, right))
        }
        Value::Hash(values) => {
            format!("hash({})", values.iter().map(|value| computed(program, value)).collect::<Vec<_>>().join(", "))
        }
        #[allow(unreachable_patterns)] // what values learn to say later
        other => snake(&format!("{other:?}")),
    }
}

fn connection(program: &Program, ct: &Ct) -> String {
    let mut parts = vec![];
    if ct.commit {
        parts.push("commit".to_string());
    }
    if ct.force {
        parts.push("force".to_string());
    }
    if ct.zone != Value::Const(0) {
        parts.push(format!("zone = {}", computed(program, &ct.zone)));
    }
    if let Some((value, mask)) = ct.mark {
        parts.push(format!("mark = {value:#x}/{mask:#x}"));
    }
    if let Some((value, mask)) = ct.label {
        parts.push(format!("label = {value:#x}/{mask:#x}"));
    }
    format!("ct({})", parts.join(", "))
}

/// `DecTtl` as `dec_ttl`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut before = ' ';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        before = c;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;

    fn rules(text: &str) -> Vec<String> {
        let mut sources = Sources::default();
        let file = sources.add("p.pipe", text);
        let (program, diagnostics) = crate::front_pipe(&mut sources, file);
        let program = program.unwrap_or_else(|| panic!("{}", crate::diag::render_all(&diagnostics, &sources, false)));
        program.tables.iter().flat_map(|table| &table.rules).map(|one| rule(&program, one)).collect()
    }

    #[test]
    fn rules_are_shown_as_they_would_be_written() {
        let shown = rules(
            "pipeline p { port a, b; table t { ipv4.dst == 10.0.0.0/8 && tcp.dst in { 80, 90..=99 } => dec_ttl, \
             eth.dst = 02:00:00:00:00:01, output(b); in_port == a && tcp.flags == syn => ct(commit, zone = 3), goto u; \
             else => drop; } table u { ct.new => normal; } }",
        );
        assert_eq!(
            shown,
            [
                "ipv4 && ipv4.dst == 10.0.0.0/8 && tcp && tcp.dst in { 80, 90..=99 } \
                 => dec_ttl, eth.dst = 02:00:00:00:00:01, output(b)",
                "in_port == a && tcp && tcp.flags == syn => ct(commit, zone = 3), goto u",
                "else => drop",
                "ct.state has new => normal"
            ]
        );
    }
}
