//! The description of a program that goes along with every carrier of it. In: the HIR, and what an engine counts. Out: a
//! [`Meta`]. Never: anything about code.

use pipec_abi::meta::{CounterMeta, Meta, PortMeta, RuleMeta, TableMeta};

use crate::hir::Program;

/// Describes a program whose counters count the given rules, and that has so many points.
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
        counters: counters.into_iter().map(|rules| CounterMeta { rules }).collect(),
        externs: program.externs.iter().map(|e| e.name.clone()).collect(),
        vars: u32::from(program.metadata_words),
        points: points as u32,
        vlan_limit: u32::from(program.options.vlan_limit),
    }
}
