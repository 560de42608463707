//! What a keyed table looks at, what its entries may be, and how they are found. In: the table, and the shape of its data. Out:
//! a [`KeyedTable`], and words. Never: entries one by one.

use serde::Serialize;

use super::data::Shape;
use crate::describe::shape;
use crate::hir::{Keyed, Program};
use crate::print::time;
use crate::words;

/// A keyed table, beside its code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyedTable {
    /// The parts of its key.
    pub key: Vec<KeyPart>,
    /// Its actions with their parameters; those for packets without an entry only are not among them.
    pub actions: Vec<String>,
    /// What packets without an entry take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Entries that are there from the start.
    pub entries: usize,
    /// Entries it holds at the most.
    pub size: u32,
    /// Entries not used for so long are gone; 0: never.
    pub idle_ns: u64,
    /// Entries are gone after so long; 0: never.
    pub hard_ns: u64,
    /// Packets make its entries.
    pub learned: bool,
    /// It is looked up in the order of packets, since they or time change what is there.
    pub ordered: bool,
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeyPart {
    /// What is read.
    pub part: String,
    /// `exact`, `lpm`, `ternary`, `range` or `optional`.
    pub kind: &'static str,
    /// How many bits.
    pub bits: u8,
}

impl KeyedTable {
    /// What a table is.
    pub fn of(program: &Program, keyed: &Keyed) -> KeyedTable {
        let key = keyed.key.iter().map(|part| KeyPart {
            part: part.name.clone(),
            kind: part.kind.name(),
            bits: part.read.place.width,
        });
        let default = keyed.default.as_ref();
        KeyedTable {
            key: key.collect(),
            actions: keyed.actions.iter().filter(|action| action.entries).map(words::signature).collect(),
            default: default.map(|(rule, args)| words::taken(program, keyed, usize::from(*rule), args)),
            entries: keyed.entries.len(),
            size: keyed.size,
            idle_ns: keyed.idle_ns,
            hard_ns: keyed.hard_ns,
            learned: keyed.learned,
            ordered: shape(keyed).ordered(),
        }
    }

    /// `5 entries of at most 1024`
    pub fn title(&self) -> String {
        let begins = match (self.learned, self.entries) {
            (true, _) => "entries that packets make".to_string(),
            (false, 1) => "1 entry".to_string(),
            (false, n) => format!("{n} entries"),
        };
        format!("{begins}, at the most {}", self.size)
    }

    /// Its key, its actions and its times.
    pub fn lines(&self) -> Vec<String> {
        let bits = |bits| super::count(usize::from(bits), "bit");
        let key = self.key.iter().map(|part| format!("{}: {} ({})", part.part, part.kind, bits(part.bits)));
        let default = self.default.as_deref().unwrap_or("none, which is a miss");
        let mut lines = vec![
            format!("key {}", key.collect::<Vec<_>>().join(", ")),
            format!("actions {}; default {default}", self.actions.join(", ")),
        ];
        let times = [("used", self.idle_ns), ("put in", self.hard_ns)];
        let times =
            times.iter().filter(|(_, ns)| *ns > 0).map(|(what, ns)| format!("{} after it was {what}", time(*ns)));
        let times: Vec<String> = times.collect();
        if !times.is_empty() {
            lines.push(format!("an entry is gone {}", times.join(", or ")));
        }
        lines
    }
}

/// Why entries are found as they are.
pub fn why(shape: &Shape, ordered: bool) -> String {
    let found = match shape.classifier {
        "lpm" => "its key is one prefix of 32 bits: a trie".to_string(),
        "bit-vector" => format!("its entries have many masks: {}", shape.masks),
        "learned" => "packets make its entries: a hash table of the runtime".to_string(),
        "empty" => "it begins without entries; how they are found is chosen when there are some".to_string(),
        _ if shape.masks == 1 => "all its entries have one mask: a hash table".to_string(),
        _ => format!("its entries have few masks: {}", shape.masks),
    };
    match (ordered, shape.classifier) {
        (false, "empty") => found,
        (false, _) => found + "; chosen anew when entries change",
        (true, "learned") => found + ", looked up in the order of packets",
        (true, _) => found + "; looked up in the order of packets, since entries end with time",
    }
}
