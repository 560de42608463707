//! The description of a program that goes along with every carrier of it. In: the HIR, and what an engine counts. Out: a
//! [`Meta`]. Never: anything about code.

use pipec_abi::meta::{CounterMeta, Meta, MeterMeta, PortMeta, RuleMeta, TableMeta};

use crate::hir::{MeterUnit, Program};

/// Describes a program whose counters count the given rules, and that has so many points. The first counters are those that
/// the program names; they count no rules.
pub fn describe(program: &Program, counters: Vec<Vec<(u32, u32)>>, points: usize) -> Meta {
    Meta {
        name: program.name.clone(),
        ports: program.ports.iter().map(|p| PortMeta { name: p.name.clone(), number: p.number }).collect(),
        tables: program
            .tables
            .iter()
            .map(|table| TableMeta {
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
