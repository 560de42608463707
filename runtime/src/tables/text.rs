//! Entries from text, as they would stand in the program: `priority 10: 10.0.0.0/8, _ => route(lan, 02:00:00:00:00:01) idle 60 s`.
//! Ports are names or numbers, masks and lengths of prefixes stand behind `/`, ranges are `first..=last`.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use pipec_abi::meta::{KeyedMeta, Meta, PartMeta, ValueMeta};
use pipec_abi::table::shape::ones;
use pipec_abi::table::{KeyMatch, MatchKind};

use super::spec::{Entry, TableError};

/// The entry with this text.
pub fn entry(meta: &Meta, table: &str, keyed: &KeyedMeta, text: &str) -> Result<Entry, TableError> {
    let wrong = |what: String| TableError::Entry { table: table.into(), what };
    parse(meta, keyed, text.trim().trim_end_matches(';')).map_err(wrong)
}

fn parse(meta: &Meta, keyed: &KeyedMeta, text: &str) -> Result<Entry, String> {
    let (key, action) = text.split_once("=>").ok_or("an entry is `key => action`")?;
    let (priority, key) = match key.trim().strip_prefix("priority ") {
        None => (0, key),
        Some(rest) => {
            let (number, key) = rest.split_once(": ").ok_or("`priority N: ` stands before the key")?;
            (number.trim().parse().map_err(|_| format!("`{number}` is not a priority"))?, key)
        }
    };
    let parts: Vec<&str> = key.split(',').map(str::trim).collect();
    if parts.len() != keyed.key.len() {
        return Err(format!("the key has {} parts, not {}", keyed.key.len(), parts.len()));
    }
    let key = parts
        .iter()
        .zip(&keyed.key)
        .map(|(text, part)| key_part(meta, part, text).map_err(|what| format!("{}: {what}", part.name)));
    let key = key.collect::<Result<Vec<_>, _>>()?;
    let (action, idle, hard) = times(action)?;
    let (name, args) = match action.split_once('(') {
        None => (action.trim(), vec![]),
        Some((name, args)) => {
            let args = args.trim_end().strip_suffix(')').ok_or("`)` is missing")?;
            (name.trim(), args.split(',').map(str::trim).filter(|arg| !arg.is_empty()).collect())
        }
    };
    let params = keyed.actions.iter().find(|a| a.name == name).map_or(&[][..], |a| &a.params[..]);
    if params.len() != args.len() {
        return Err(format!("the action `{name}` has {} parameters, not {}", params.len(), args.len()));
    }
    let args = args
        .iter()
        .zip(params)
        .map(|(text, param)| value(meta, param.value, text).map_err(|what| format!("{}: {what}", param.name)));
    let args = args.collect::<Result<Vec<_>, _>>()?;
    Ok(Entry { priority, idle, hard, ..Entry::new(key, name, args) })
}

fn key_part(meta: &Meta, part: &PartMeta, text: &str) -> Result<KeyMatch, String> {
    let full = ones(part.width);
    let kind = MatchKind::by_name(&part.kind).unwrap_or(MatchKind::Exact);
    let one = |text: &str| value(meta, part.value, text);
    if kind == MatchKind::Range {
        return match text.split_once("..=") {
            _ if text == "_" => Ok(KeyMatch::Range { low: 0, high: full }),
            Some((low, high)) => Ok(KeyMatch::Range { low: one(low)?, high: one(high)? }),
            None => one(text).map(|value| KeyMatch::Range { low: value, high: value }),
        };
    }
    if text == "_" {
        return Ok(KeyMatch::Masked { value: 0, mask: 0 });
    }
    let Some((bits, mask)) = text.split_once('/') else {
        return one(text).map(|value| KeyMatch::Masked { value, mask: full });
    };
    let length =
        mask.trim().parse::<u8>().ok().filter(|_| {
            kind == MatchKind::Lpm || matches!(part.value, ValueMeta::Ipv4 | ValueMeta::Ipv6 | ValueMeta::Mac)
        });
    let mask = match length {
        Some(bits) if bits > part.width => return Err(format!("/{bits} is longer than {} bits", part.width)),
        Some(0) => 0,
        Some(bits) => full & !(full >> (bits - 1) >> 1),
        None => one(mask)?,
    };
    Ok(KeyMatch::Masked { value: one(bits)? & mask, mask })
}

/// A value of a kind.
pub fn value(meta: &Meta, kind: ValueMeta, text: &str) -> Result<u128, String> {
    let text = text.trim();
    let wrong = |what: &str| format!("`{text}` is not {what}");
    match kind {
        ValueMeta::Ipv4 => text.parse::<Ipv4Addr>().map(|a| u32::from(a).into()).map_err(|_| wrong("an IPv4 address")),
        ValueMeta::Ipv6 => text.parse::<Ipv6Addr>().map(u128::from).map_err(|_| wrong("an IPv6 address")),
        ValueMeta::Mac => {
            let bytes: Vec<&str> = text.split(':').collect();
            let whole = bytes.len() == 6 && bytes.iter().all(|b| b.len() == 2);
            let value = whole.then(|| u128::from_str_radix(&bytes.concat(), 16).ok());
            value.flatten().ok_or_else(|| wrong("a MAC address"))
        }
        ValueMeta::Port | ValueMeta::PortPlace => {
            let found = meta.ports.iter().position(|p| p.name == text || p.number.to_string() == text);
            let at = found.ok_or_else(|| wrong("a port of the program"))?;
            Ok(if kind == ValueMeta::PortPlace { at as u128 } else { meta.ports[at].number.into() })
        }
        ValueMeta::Number => {
            let digits = text.replace('_', "");
            let number = match digits.strip_prefix("0x") {
                Some(hex) => u128::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            number.map_err(|_| wrong("a number"))
        }
    }
}

/// Times behind an action: what stands before them, idle, hard.
fn times(text: &str) -> Result<(&str, Option<Duration>, Option<Duration>), String> {
    let (mut idle, mut hard, mut rest) = (None, None, text.trim());
    loop {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [.., what @ ("idle" | "hard"), number, unit] = words[..] else { return Ok((rest, idle, hard)) };
        let number: u64 = number.parse().map_err(|_| format!("`{number}` is not a time"))?;
        let time = match unit {
            "ns" => Duration::from_nanos(number),
            "us" => Duration::from_micros(number),
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "min" => Duration::from_secs(number.saturating_mul(60)),
            "h" => Duration::from_secs(number.saturating_mul(3600)),
            _ => return Err(format!("no unit of time `{unit}`")),
        };
        *(if what == "idle" { &mut idle } else { &mut hard }) = Some(time);
        rest = rest.rfind(what).map_or(rest, |at| rest[..at].trim_end());
    }
}
