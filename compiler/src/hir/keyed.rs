//! Keyed tables: a key that every packet is looked up by, entries that come from the program, from files, from whoever runs it
//! or from packets, and the actions that entries may name.
//!
//! - The rules of a keyed table are its actions, in order; no packet is held against their conditions, which only say what is
//!   present when the action runs. The entry that is found says which rule is taken and what its parameters are.
//! - Entries are tried by priority, the highest first; then by the length of their prefix; then in the order of `entries`.
//! - A packet that lacks a header that the key needs has no entry. Without an entry, `default` is taken; without that it is a
//!   table miss.
//! - An entry that has not been used for its idle time, or is older than its hard time, is gone. Times count from when it was
//!   put in, at the time of bursts; a packet that finds an entry has used it.
//! - `learn` puts an entry into a learned table, or other arguments into the entry with that key, whose times begin again. The
//!   next look-up sees it. A full table stays as it is, and the packet goes on.

use super::{Read, Value};
use crate::field::{Header, Kind};
use crate::source::Span;

pub use pipec_abi::table::{KeyMatch, MatchKind};

/// What makes a table a keyed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyed {
    /// The parts of its key.
    pub key: Vec<KeyPart>,
    /// Its actions: one for each rule of the table.
    pub actions: Vec<KeyedAction>,
    /// The rule that packets without an entry take, and its arguments.
    pub default: Option<(u16, Vec<u128>)>,
    /// Entries it holds at the most.
    pub size: u32,
    /// Entries not used for so long are gone; 0: never.
    pub idle_ns: u64,
    /// Entries are gone after so long; 0: never.
    pub hard_ns: u64,
    /// Packets make its entries.
    pub learned: bool,
    /// Entries that are there from the start, in the order of the source.
    pub entries: Vec<KeyedEntry>,
}

/// A part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// As it is written.
    pub name: String,
    /// What is read.
    pub read: Read,
    /// What must be present.
    pub header: Option<Header>,
    /// How it is matched.
    pub kind: MatchKind,
    /// How its values are written.
    pub value: Kind,
}

/// An action of a keyed table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedAction {
    /// Its name.
    pub name: String,
    /// What an entry gives it; a [`Value::Param`] counts from 0.
    pub params: Vec<Param>,
    /// Whether entries may name it; else it is for packets without an entry.
    pub entries: bool,
}

/// A parameter of an action. Ports are OpenFlow numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// How its values are written.
    pub kind: Kind,
    /// Its bits.
    pub width: u8,
}

/// An entry that is there from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedEntry {
    /// Higher is tried first.
    pub priority: u32,
    /// What it wants of each part of the key.
    pub key: Vec<KeyMatch>,
    /// The rule it takes.
    pub action: u16,
    /// The arguments.
    pub args: Vec<u128>,
    /// Its own idle time, if it has one.
    pub idle_ns: Option<u64>,
    /// Its own hard time, if it has one.
    pub hard_ns: Option<u64>,
    /// Where it stands.
    pub span: Span,
}

/// A `learn`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learn {
    /// The learned table.
    pub table: super::TableId,
    /// A value for each part of its key.
    pub key: Vec<Value>,
    /// The rule that the entry takes.
    pub action: u16,
    /// A value for each of its parameters.
    pub args: Vec<Value>,
}

impl Keyed {
    /// Where each parameter of an action lies among the words of its arguments, and how many words they are.
    pub fn arg_words(&self, action: usize) -> (Vec<usize>, usize) {
        let mut at = 0;
        let words = self.actions[action].params.iter().map(|param| {
            let word = at;
            at += if param.width > 64 { 2 } else { 1 };
            word
        });
        let words = words.collect();
        (words, at)
    }
}
