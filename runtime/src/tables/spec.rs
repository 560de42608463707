//! Entries as those who put them in say them, and whether they fit what the program says of the table.

use std::time::Duration;

use pipec_abi::meta::{KeyedMeta, Meta, ParamMeta, PartMeta, ValueMeta};
use pipec_abi::table::shape::ones;
use pipec_abi::table::{KeyMatch, MatchKind};

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Higher is tried first. 0 where the table has no ternary, range or optional part.
    pub priority: u32,
    /// What it wants of each part of the key.
    pub key: Vec<KeyMatch>,
    /// The action.
    pub action: String,
    /// Its arguments; ports are OpenFlow numbers.
    pub args: Vec<u128>,
    /// Its own idle time, where the table has times.
    pub idle: Option<Duration>,
    /// Its own hard time, where the table has times.
    pub hard: Option<Duration>,
}

impl Entry {
    /// An entry of priority 0 with the times of its table.
    pub fn new(key: Vec<KeyMatch>, action: &str, args: Vec<u128>) -> Entry {
        Entry { priority: 0, key, action: action.into(), args, idle: None, hard: None }
    }

    /// The same with this priority.
    #[must_use]
    pub fn priority(self, priority: u32) -> Entry {
        Entry { priority, ..self }
    }

    /// An entry from its parts in a table.
    pub(super) fn from_parts(
        keyed: &KeyedMeta,
        priority: u32,
        key: Vec<KeyMatch>,
        action: u16,
        words: &[u64],
    ) -> Entry {
        let action = &keyed.actions[usize::from(action)];
        let mut words = words.iter().copied();
        let mut next = || u128::from(words.next().unwrap_or(0));
        let args = action.params.iter().map(|p| if p.width > 64 { next() << 64 | next() } else { next() }).collect();
        Entry { priority, ..Entry::new(key, &action.name, args) }
    }

    /// The action's number and the arguments as words, if the entry fits.
    pub(super) fn check(&self, meta: &Meta, table: &str, keyed: &KeyedMeta) -> Result<(u16, Vec<u64>), TableError> {
        let wrong = |what: String| TableError::Entry { table: table.into(), what };
        if self.key.len() != keyed.key.len() {
            return Err(wrong(format!("the key has {} parts, not {}", keyed.key.len(), self.key.len())));
        }
        for (want, part) in self.key.iter().zip(&keyed.key) {
            check_part(*want, part).map_err(|what| wrong(format!("{}: {what}", part.name)))?;
        }
        let priorities =
            keyed.key.iter().filter_map(|part| MatchKind::by_name(&part.kind)).any(MatchKind::has_priority);
        if self.priority > 0 && !priorities {
            return Err(wrong("its entries have no priorities".into()));
        }
        let named = |action: &&pipec_abi::meta::ActionMeta| action.entries && action.name == self.action;
        let Some(index) = keyed.actions.iter().position(|action| named(&action)) else {
            let known: Vec<&str> = keyed.actions.iter().filter(|a| a.entries).map(|a| a.name.as_str()).collect();
            return Err(wrong(format!("it has no action `{}`; it has {}", self.action, known.join(", "))));
        };
        let params = &keyed.actions[index].params;
        if params.len() != self.args.len() {
            let (want, have) = (params.len(), self.args.len());
            return Err(wrong(format!("the action `{}` has {want} parameters, not {have}", self.action)));
        }
        let mut words = Vec::new();
        for (arg, param) in self.args.iter().zip(params) {
            check_arg(meta, *arg, param).map_err(|what| wrong(format!("{}: {what}", param.name)))?;
            if param.width > 64 {
                words.push((arg >> 64) as u64);
            }
            words.push(*arg as u64);
        }
        if (self.idle.is_some() || self.hard.is_some()) && keyed.idle_ns == 0 && keyed.hard_ns == 0 {
            return Err(wrong("its entries have no time-outs: declare `idle` or `hard` in the table".into()));
        }
        Ok((index as u16, words))
    }
}

fn check_part(want: KeyMatch, part: &PartMeta) -> Result<(), String> {
    let full = ones(part.width);
    let kind = MatchKind::by_name(&part.kind).unwrap_or(MatchKind::Exact);
    match want {
        KeyMatch::Range { low, high } if kind == MatchKind::Range => match () {
            () if low > high => Err("the range is empty".into()),
            () if high > full => Err(format!("{high:#x} has more than {} bits", part.width)),
            () => Ok(()),
        },
        KeyMatch::Masked { value, mask } if kind != MatchKind::Range => {
            let fits = match kind {
                MatchKind::Exact => mask == full,
                MatchKind::Optional => mask == full || mask == 0,
                MatchKind::Lpm => mask & full == mask && (full & !mask).count_ones() == (full & !mask).trailing_ones(),
                _ => mask & full == mask,
            };
            match () {
                () if value & !full != 0 => Err(format!("{value:#x} has more than {} bits", part.width)),
                () if !fits => Err(format!("it is matched as {}, which the mask {mask:#x} is not", kind.name())),
                () if value & !mask != 0 => Err(format!("{value:#x} has bits outside the mask {mask:#x}")),
                () => Ok(()),
            }
        }
        _ => Err(format!("it is matched as {}", kind.name())),
    }
}

fn check_arg(meta: &Meta, arg: u128, param: &ParamMeta) -> Result<(), String> {
    if arg & !ones(param.width) != 0 {
        return Err(format!("{arg:#x} has more than {} bits", param.width));
    }
    if param.value == ValueMeta::Port && !meta.ports.iter().any(|port| u128::from(port.number) == arg) {
        return Err(format!("no port has the number {arg}"));
    }
    Ok(())
}

/// Why a table was not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// There is no table of that name with entries.
    #[error("there is no table `{table}` whose entries can be changed; {hint}")]
    NoTable {
        /// The name.
        table: String,
        /// What there is.
        hint: String,
    },
    /// The entry does not fit the table.
    #[error("table `{table}`: {what}")]
    Entry {
        /// The table.
        table: String,
        /// What does not fit.
        what: String,
    },
    /// An entry with that key and priority is there.
    #[error("table `{0}`: there is an entry with this key already; change it with `set`")]
    Exists(String),
    /// The table holds no more.
    #[error("table `{table}` is full: it holds {size} entries; declare a larger `size`")]
    Full {
        /// The table.
        table: String,
        /// Entries it holds.
        size: u32,
    },
    /// Packets do not write the table.
    #[error("table `{0}` is not learned: packets do not write it")]
    NotLearned(String),
}

impl TableError {
    pub(super) fn no_table(table: &str, meta: &Meta, known: &[&str]) -> TableError {
        let is_there = meta.tables.iter().any(|t| t.name == table);
        let hint = match (is_there, known) {
            (true, _) => "its entries are rules of the program".into(),
            (_, []) => format!("the pipeline `{}` has no such tables", meta.name),
            _ => format!("there are {}", known.join(", ")),
        };
        TableError::NoTable { table: table.into(), hint }
    }
}
