//! The description of a program that goes along with every carrier of it. In: the HIR, and what an engine counts. Out: a
//! [`Meta`]. Never: anything about code.

use pipec_abi::meta::{
    ActionMeta, CounterMeta, KeyedMeta, Meta, MeterMeta, ParamMeta, PartMeta, PortMeta, RuleMeta, TableMeta, ValueMeta,
};
use pipec_abi::table::{Open, OpenEntry, Part, Shape};

use crate::field::{Field, Kind};
use crate::hir::{Keyed, MeterUnit, Program, Space, TableId};

/// Describes a program whose counters count the given rules, and that has so many points. The first counters are those that
/// the program names; they count no rules.
pub fn describe(program: &Program, counters: Vec<Vec<(u32, u32)>>, points: usize) -> Meta {
    Meta {
        name: program.name.clone(),
        ports: program.ports.iter().map(|p| PortMeta { name: p.name.clone(), number: p.number }).collect(),
        tables: program
            .tables
            .iter()
            .enumerate()
            .map(|(t, table)| TableMeta {
                keyed: table.keyed.as_ref().map(|keyed| describe_keyed(program, t, keyed)),
                name: table.name.clone(),
                rules: table
                    .rules
                    .iter()
                    .map(|rule| RuleMeta { priority: rule.priority, text: rule.text.clone() })
                    .collect(),
            })
            .collect(),
        externs: program.externs.iter().map(|e| e.name.clone()).collect(),
        counters: (counters.into_iter().enumerate())
            .map(|(k, rules)| CounterMeta { rules, name: program.counters.get(k).cloned() })
            .collect(),
        vars: u32::from(program.metadata_words),
        points: points as u32,
        scratch: 0,
        vlan_limit: u32::from(program.options.vlan_limit),
        meters: program
            .meters
            .iter()
            .map(|meter| MeterMeta {
                name: meter.name.clone(),
                kilobits: meter.unit == MeterUnit::Kilobits,
                rate: meter.rate,
                burst: meter.burst,
            })
            .collect(),
    }
}

/// The tables of a program that are data from the start, as bytes: its keyed tables, in order.
pub fn open_tables(program: &Program) -> Vec<Vec<u8>> {
    let keyed = program.tables.iter().filter_map(|table| table.keyed.as_ref());
    keyed.map(|keyed| Open::encode(&shape(keyed), &entries(keyed))).collect()
}

/// The number of a keyed table among the tables that are data, and its first place among the counters of entries.
pub fn open_place(program: &Program, table: TableId) -> (u16, u32) {
    let before = program.tables[..usize::from(table.0)].iter().filter_map(|table| table.keyed.as_ref());
    before.fold((0, 0), |(number, first), keyed| (number + 1, first + keyed.size))
}

/// The shape of a keyed table.
pub fn shape(keyed: &Keyed) -> Shape {
    let words = (0..keyed.actions.len()).map(|action| keyed.arg_words(action).1);
    Shape {
        parts: keyed.key.iter().map(|part| Part { width: part.read.place.width, kind: part.kind }).collect(),
        args: words.max().unwrap_or(0) as u8,
        size: keyed.size,
        idle_ns: keyed.idle_ns,
        hard_ns: keyed.hard_ns,
        timed_entries: keyed.entries.iter().any(|entry| entry.idle_ns.is_some() || entry.hard_ns.is_some()),
        learned: keyed.learned,
    }
}

fn entries(keyed: &Keyed) -> Vec<OpenEntry> {
    let entries = keyed.entries.iter().enumerate().map(|(slot, entry)| OpenEntry {
        slot: slot as u32,
        priority: entry.priority,
        key: entry.key.clone(),
        action: entry.action,
        args: arg_words(keyed, usize::from(entry.action), &entry.args),
        idle_ns: entry.idle_ns.unwrap_or(keyed.idle_ns),
        hard_ns: entry.hard_ns.unwrap_or(keyed.hard_ns),
    });
    entries.collect()
}

/// Arguments of an action as words.
fn arg_words(keyed: &Keyed, action: usize, args: &[u128]) -> Vec<u64> {
    let params = keyed.actions[action].params.iter().zip(args);
    params
        .flat_map(
            |(param, arg)| if param.width > 64 { vec![(arg >> 64) as u64, *arg as u64] } else { vec![*arg as u64] },
        )
        .collect()
}

fn describe_keyed(program: &Program, t: usize, keyed: &Keyed) -> KeyedMeta {
    let (table, first_entry) = open_place(program, TableId(t as u16));
    KeyedMeta {
        table: u32::from(table),
        key: keyed
            .key
            .iter()
            .map(|part| PartMeta {
                name: part.name.clone(),
                width: part.read.place.width,
                kind: part.kind.name().into(),
                value: match part.read.place.space {
                    Space::Field(Field::InPort) => ValueMeta::PortPlace,
                    _ => value(part.value),
                },
            })
            .collect(),
        actions: keyed
            .actions
            .iter()
            .map(|action| ActionMeta {
                name: action.name.clone(),
                params: action
                    .params
                    .iter()
                    .map(|p| ParamMeta { name: p.name.clone(), width: p.width, value: value(p.kind) })
                    .collect(),
                entries: action.entries,
            })
            .collect(),
        default: keyed.default.as_ref().map(|(k, args)| (*k, args.iter().map(u128::to_string).collect())),
        size: keyed.size,
        idle_ns: keyed.idle_ns,
        hard_ns: keyed.hard_ns,
        learned: keyed.learned,
        first_entry,
    }
}

fn value(kind: Kind) -> ValueMeta {
    match kind {
        Kind::Number | Kind::Flags => ValueMeta::Number,
        Kind::Mac => ValueMeta::Mac,
        Kind::Ipv4 => ValueMeta::Ipv4,
        Kind::Ipv6 => ValueMeta::Ipv6,
        Kind::Port => ValueMeta::Port,
    }
}
