//! A trace as JSON: for each packet what came, what happened, and what became of it.

use pipec_compiler::eval::Event;
use pipec_compiler::hir::PortId;
use pipec_compiler::packet::describe;
use pipec_compiler::words;
use pipec_runtime::offline::Outcome;
use serde_json::{Value, json};

use super::outcome::changes;
use super::{ct_arguments, keyed, reason_why};
use crate::program::Loaded;
use crate::rules;

/// One packet's part of the trace.
pub fn packet(loaded: &Loaded, port: PortId, frame: &[u8], events: &[Event], outcome: &Outcome) -> Value {
    let program = &loaded.program;
    let output = |(port, sent): &(u16, Vec<u8>)| {
        let changes = changes(program, frame, sent).into_iter();
        let changes = changes.map(|c| json!({ "field": c.field, "before": c.before, "after": c.after }));
        json!({
            "port": words::port(program, PortId(*port)),
            "length": sent.len(),
            "packet": describe(sent),
            "hex": hex(sent),
            "changes": changes.collect::<Vec<_>>(),
        })
    };
    let events = events.iter().filter(|event| !matches!(event, Event::Packet(_) | Event::End(_)));
    json!({
        "port": words::port(program, port),
        "length": frame.len(),
        "packet": describe(frame),
        "hex": hex(frame),
        "events": events.map(|event| self::event(loaded, event)).collect::<Vec<_>>(),
        "outputs": outcome.outputs.iter().map(output).collect::<Vec<_>>(),
        "dropped": outcome.drop.map(|reason| json!({ "reason": reason.name(), "description": reason.describe() })),
    })
}

/// Bytes in hexadecimal.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn event(loaded: &Loaded, event: &Event) -> Value {
    let program = &loaded.program;
    let port = |port: PortId| words::port(program, port);
    match event.clone() {
        Event::Table { table, depth, in_port } => {
            json!({ "event": "table", "table": rules::table(loaded, table), "depth": depth, "in_port": in_port.map(port) })
        }
        Event::Rule(table, rule) => {
            let (name, rule) = (rules::table(loaded, table), &program.table(table).rules[rule]);
            json!({ "event": "rule", "table": name, "place": rules::place(loaded, rule), "rule": rule.text })
        }
        Event::Key(table, key) => {
            let parts = keyed::parts(loaded, table, &key).into_iter();
            let parts: serde_json::Map<_, _> = parts.map(|(name, value)| (name, Value::String(value))).collect();
            json!({ "event": "key", "table": rules::table(loaded, table), "key": parts })
        }
        Event::NoKey(table, header) => {
            let header = program.header_name(header);
            json!({ "event": "no_key", "table": rules::table(loaded, table), "lacks": header })
        }
        Event::Entry { table, slot, rule, args } => {
            let found = slot.and_then(|slot| keyed::found(loaded, table, slot));
            let (key, place) = found.map_or((None, None), |(key, place)| (Some(key), Some(place)));
            let action = keyed::action(loaded, table, rule, &args);
            let name = rules::table(loaded, table);
            let default = slot.is_none();
            json!({ "event": "entry", "table": name, "default": default, "key": key, "place": place, "action": action })
        }
        Event::Learn { table, key, rule, args } => {
            let parts = keyed::parts(loaded, table, &key).into_iter();
            let parts: serde_json::Map<_, _> = parts.map(|(name, value)| (name, Value::String(value))).collect();
            let action = keyed::action(loaded, table, rule, &args);
            json!({ "event": "learn", "table": rules::table(loaded, table), "key": parts, "action": action })
        }
        Event::Miss(table) => json!({ "event": "miss", "table": rules::table(loaded, table) }),
        Event::Seen { read, value } => {
            let name = words::place(program, read.place);
            json!({ "event": "field", "field": name, "value": words::value(program, read.place, value) })
        }
        Event::Tried { table, rule: number, atom, value } => {
            let rule = &program.table(table).rules[number];
            let why = reason_why(program, rule, atom, value);
            json!({ "event": "tried", "place": rules::place(loaded, rule), "rule": rule.text, "why": why })
        }
        Event::Output(to) => json!({ "event": "output", "port": port(to) }),
        Event::LeftOut(to) => json!({ "event": "left_out", "port": port(to) }),
        Event::InPort(to) => json!({ "event": "in_port", "port": port(to) }),
        Event::Set { place, value, before, after } => {
            let show = |value| words::value(program, place, value);
            let name = words::place(program, place);
            json!({ "event": "set", "field": name, "value": show(value), "before": show(before), "after": show(after) })
        }
        Event::Reshape { action, header, values, more } => {
            let header = header.and_then(|header| program.headers.get(usize::from(header)));
            let values = values.iter().map(|(place, value)| {
                (words::place(program, *place), Value::String(words::value(program, *place, *value)))
            });
            let values: serde_json::Map<_, _> = values.collect();
            let header = header.map(|header| &header.name);
            json!({ "event": "reshape", "action": action, "header": header, "values": values, "longer_by": more })
        }
        Event::DecTtl(left) => json!({ "event": "dec_ttl", "left": left }),
        Event::Ct { point, zone, view } => json!({
            "event": "ct",
            "arguments": ct_arguments(&point, zone),
            "state": super::state_names(view.state),
            "mark": view.mark,
            "label": format!("{:#x}", u128::from(view.label[0]) << 64 | u128::from(view.label[1])),
        }),
        Event::Part(to, max_len) => json!({ "event": "part", "port": port(to), "max_len": max_len }),
        Event::Mirror(to) => json!({ "event": "mirror", "port": port(to) }),
        Event::Controller(reason, max_len) => json!({ "event": "controller", "reason": reason, "max_len": max_len }),
        Event::NoPort(number) => json!({ "event": "no_port", "number": number }),
        Event::Count(counter) => json!({ "event": "count", "counter": program.counters[usize::from(counter.0)] }),
        Event::Bucket(group, bucket) => {
            json!({ "event": "bucket", "group": program.group(group).name, "bucket": bucket })
        }
        Event::Meter(meter, passes) => {
            json!({ "event": "meter", "meter": program.meters[usize::from(meter.0)].name, "passes": passes })
        }
        Event::Reason(reason) => json!({ "event": "reason", "reason": reason.name() }),
        Event::Failed(reason) => json!({ "event": "failed", "reason": reason.name() }),
        other => json!({ "event": snake(&format!("{other:?}")) }),
    }
}

/// `CtClear` as `ct_clear`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
