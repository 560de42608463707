//! What a program is, for the runtime and for people: ports, tables, rules, counters. Travels as JSON with every carrier.

use serde::{Deserialize, Serialize};

/// A program's description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The pipeline's name.
    pub name: String,
    /// Its ports, in the order of its dense numbers.
    pub ports: Vec<PortMeta>,
    /// Its tables and their rules.
    pub tables: Vec<TableMeta>,
    /// What each counter counts.
    pub counters: Vec<CounterMeta>,
    /// Words of variables a packet.
    pub vars: u32,
    /// Points at which a packet can be resumed: entries 1 to this number.
    pub points: u32,
    /// Names of its actions in Rust.
    #[serde(default)]
    pub externs: Vec<String>,
    /// VLAN tags behind which headers are looked for, at the most.
    pub vlan_limit: u32,
    /// Its meters, in the order of their numbers.
    #[serde(default)]
    pub meters: Vec<MeterMeta>,
}

/// A meter: a bucket of tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeterMeta {
    /// Its name.
    pub name: String,
    /// Whether tokens are kilobits; else packets.
    pub kilobits: bool,
    /// Tokens in a second.
    pub rate: u32,
    /// Tokens that it holds.
    pub burst: u32,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortMeta {
    /// Its name.
    pub name: String,
    /// Its OpenFlow number.
    pub number: u32,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableMeta {
    /// Its name.
    pub name: String,
    /// Its rules, in the order they are tried.
    pub rules: Vec<RuleMeta>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleMeta {
    /// Its priority.
    pub priority: u32,
    /// Its source text, on one line.
    pub text: String,
}

/// What a counter counts: packets that took all of these rules, or what the program counts under a name. A rule's count is
/// the sum of the counters that name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterMeta {
    /// The rules, as table and rule; a rule behind the table's last is its miss.
    pub rules: Vec<(u32, u32)>,
    /// The name of a counter that the program declares by using it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Meta {
    /// Reads a description.
    ///
    /// # Errors
    /// When the text is not a description this version knows.
    pub fn parse(json: &str) -> Result<Meta, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// The description as text.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Packets and bytes of each rule, and of each table's miss behind its rules, from the counters' values.
    pub fn by_rule(&self, counters: &[crate::Counter]) -> Vec<Vec<crate::Counter>> {
        let mut sums: Vec<Vec<_>> =
            self.tables.iter().map(|t| vec![crate::Counter::default(); t.rules.len() + 1]).collect();
        for (meta, counter) in self.counters.iter().zip(counters) {
            for &(table, rule) in &meta.rules {
                if let Some(sum) = sums.get_mut(table as usize).and_then(|t| t.get_mut(rule as usize)) {
                    sum.packets += counter.packets;
                    sum.bytes += counter.bytes;
                }
            }
        }
        sums
    }

    /// The program's own counters, by name, from the counters' values.
    pub fn by_name<'a>(&'a self, counters: &'a [crate::Counter]) -> impl Iterator<Item = (&'a str, crate::Counter)> {
        let named = self.counters.iter().zip(counters);
        named.filter_map(|(meta, counter)| Some((meta.name.as_deref()?, *counter)))
    }
}
