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
    /// Words of scratch in which packets gather for look-ups of the whole burst.
    #[serde(default)]
    pub scratch: u32,
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
    /// Its rules, in the order they are tried; of a keyed table, one for each of its actions.
    pub rules: Vec<RuleMeta>,
    /// How its entries look, if it has some that are not rules of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyed: Option<KeyedMeta>,
}

/// What entries of a keyed table look like.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedMeta {
    /// Its number among the tables that are data.
    pub table: u32,
    /// The parts of its key.
    pub key: Vec<PartMeta>,
    /// What its entries may do, in the order of its rules; the last may be only for packets without an entry.
    pub actions: Vec<ActionMeta>,
    /// What happens to packets without an entry: an action and its arguments; none: they are dropped.
    pub default: Option<(u16, Vec<String>)>,
    /// Entries it holds at the most.
    pub size: u32,
    /// Entries not used for so long are gone, in nanoseconds; 0: never.
    pub idle_ns: u64,
    /// Entries are gone after so long, in nanoseconds; 0: never.
    pub hard_ns: u64,
    /// Packets make its entries.
    pub learned: bool,
    /// Its first place among the counters of entries.
    pub first_entry: u32,
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartMeta {
    /// The field or variable.
    pub name: String,
    /// Its bits.
    pub width: u8,
    /// How it is matched: `exact`, `lpm`, `ternary`, `range` or `optional`.
    pub kind: String,
    /// How its values are written.
    pub value: ValueMeta,
}

/// An action of a keyed table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionMeta {
    /// Its name.
    pub name: String,
    /// What an entry gives it.
    pub params: Vec<ParamMeta>,
    /// Entries may name it; else it is for packets without an entry.
    pub entries: bool,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamMeta {
    /// Its name.
    pub name: String,
    /// Its bits.
    pub width: u8,
    /// How its values are written.
    pub value: ValueMeta,
}

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueMeta {
    /// A number.
    Number,
    /// A MAC address.
    Mac,
    /// An IPv4 address.
    Ipv4,
    /// An IPv6 address.
    Ipv6,
    /// The name of a port; the value is its OpenFlow number.
    Port,
    /// The name of a port; the value is its place among the program's ports.
    PortPlace,
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
    /// Counters of entries that a context has.
    pub fn entry_counters(&self) -> usize {
        let keyed = self.tables.iter().filter_map(|table| table.keyed.as_ref());
        keyed.map(|keyed| keyed.first_entry as usize + keyed.size as usize).max().unwrap_or(0)
    }

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
