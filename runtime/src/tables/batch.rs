//! Changes of several tables that packets see at once: all of a batch or nothing of it.
//!
//! Changes are checked as they are added, against the tables as they are with the changes before. Nothing is seen until
//! [`Batch::commit`], which makes every changed table anew and publishes one root; a batch that is dropped has changed
//! nothing. One batch is made at a time. Learned tables are not part of a root: what is done to them is seen at once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, MutexGuard};

use pipec_abi::Counter;
use pipec_abi::table::{KeyMatch, Open, OpenEntry, Shape, Table};

use super::spec::{Entry, TableError};
use super::{StoreKind, Tables, Writer, lock};
use crate::sync::Ordering;

/// Changes that are seen at once.
pub struct Batch<'t> {
    tables: &'t Tables,
    writer: MutexGuard<'t, Writer>,
    changed: BTreeMap<usize, Work>,
}

/// A table that is being changed.
struct Work {
    shape: Arc<Shape>,
    entries: Vec<Option<OpenEntry>>,
    /// Where the entry with a priority and key is.
    index: HashMap<(u32, Vec<KeyMatch>), usize>,
    /// Entries there are.
    len: usize,
    /// Places that have become free.
    freed: Vec<u32>,
    /// Places that were taken, from the front of the free ones and from those never taken.
    from_free: usize,
    from_new: u32,
    /// Entries that are new, by place: their lives begin when the batch is committed.
    begun: Vec<OpenEntry>,
}

impl<'t> Batch<'t> {
    pub(super) fn new(tables: &'t Tables) -> Batch<'t> {
        Batch { tables, writer: lock(&tables.writer), changed: BTreeMap::new() }
    }

    /// A batch, unless there is one.
    pub(super) fn try_new(tables: &'t Tables) -> Option<Batch<'t>> {
        let writer = tables.writer.try_lock().ok()?;
        Some(Batch { tables, writer, changed: BTreeMap::new() })
    }

    /// Puts an entry in.
    ///
    /// # Errors
    /// When it does not fit the table, has the key of another, or the table is full.
    pub fn insert(&mut self, table: &str, entry: Entry) -> Result<(), TableError> {
        self.put(table, entry, false)
    }

    /// Puts an entry in, in the place of the one that has the same key and priority, if there is one. It keeps that one's
    /// counts.
    ///
    /// # Errors
    /// When it does not fit the table, or the table is full.
    pub fn set(&mut self, table: &str, entry: Entry) -> Result<(), TableError> {
        self.put(table, entry, true)
    }

    /// Puts many entries in.
    ///
    /// # Errors
    /// At the first that cannot be put in.
    pub fn load(&mut self, table: &str, entries: impl IntoIterator<Item = Entry>) -> Result<(), TableError> {
        entries.into_iter().try_for_each(|entry| self.insert(table, entry))
    }

    fn put(&mut self, table: &str, entry: Entry, replace: bool) -> Result<(), TableError> {
        let (number, name, keyed) = self.tables.keyed(table)?;
        let (action, args) = entry.check(&self.tables.meta, name, keyed)?;
        let ns = |own: Option<std::time::Duration>, table: u64| own.map_or(table, |own| own.as_nanos() as u64);
        let (idle_ns, hard_ns) = (ns(entry.idle, keyed.idle_ns), ns(entry.hard, keyed.hard_ns));
        let full = || TableError::Full { table: name.into(), size: keyed.size };
        if let Some(StoreKind::Learned(learned)) = self.tables.stores[number].as_ref().map(|store| &store.kind) {
            let shape = self.tables.stores[number].as_ref().map(|store| store.shape.clone());
            let key: Vec<u128> =
                entry.key.iter().map(|w| if let KeyMatch::Masked { value, .. } = w { *value } else { 0 }).collect();
            let key = shape.map_or(vec![], |shape| shape.pack(&key));
            let now_ns = self.tables.now();
            let before = learned.stats().full;
            learned.learn(&key, now_ns, action, &args, |slot| Some(self.tables.counted(keyed.first_entry + slot)));
            return if learned.stats().full > before { Err(full()) } else { Ok(()) };
        }
        let work = Self::work(self.tables, &mut self.changed, number);
        let id = (entry.priority, entry.key.clone());
        let slots = &self.writer.slots[number];
        let slot = match work.index.get(&id) {
            Some(_) if !replace => return Err(TableError::Exists(name.into())),
            Some(&at) => work.entries[at].as_ref().map_or(0, |old| old.slot),
            None if work.len >= keyed.size as usize => return Err(full()),
            // A place that was freed in this batch is still counted at by workers that have not seen it.
            None => match slots.free.get(work.from_free) {
                Some(&slot) => {
                    work.from_free += 1;
                    slot
                }
                None if slots.next + work.from_new < keyed.size => {
                    work.from_new += 1;
                    slots.next + work.from_new - 1
                }
                None => work.freed.pop().ok_or_else(full)?,
            },
        };
        let new = OpenEntry { slot, priority: entry.priority, key: entry.key, action, args, idle_ns, hard_ns };
        work.begun.push(new.clone());
        match work.index.get(&id) {
            Some(&at) => work.entries[at] = Some(new),
            None => {
                work.index.insert(id, work.entries.len());
                work.entries.push(Some(new));
                work.len += 1;
            }
        }
        Ok(())
    }

    /// Takes the entry with this key and priority out; whether there was one.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn remove(&mut self, table: &str, priority: u32, key: &[KeyMatch]) -> Result<bool, TableError> {
        let (number, ..) = self.tables.keyed(table)?;
        if let Some(store) = &self.tables.stores[number]
            && let StoreKind::Learned(learned) = &store.kind
        {
            let key: Vec<u128> =
                key.iter().map(|w| if let KeyMatch::Masked { value, .. } = w { *value } else { 0 }).collect();
            return Ok(key.len() == store.shape.parts.len() && learned.remove(&store.shape.pack(&key)));
        }
        let work = Self::work(self.tables, &mut self.changed, number);
        let Some(at) = work.index.remove(&(priority, key.to_vec())) else { return Ok(false) };
        work.take(at);
        Ok(true)
    }

    /// Takes all entries out.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn clear(&mut self, table: &str) -> Result<(), TableError> {
        let (number, ..) = self.tables.keyed(table)?;
        self.retain(number, |_| false);
        Ok(())
    }

    /// Takes out what `keep` does not keep.
    pub(super) fn retain(&mut self, number: usize, keep: impl Fn(&OpenEntry) -> bool) {
        let work = Self::work(self.tables, &mut self.changed, number);
        for at in 0..work.entries.len() {
            if let Some(entry) = &work.entries[at]
                && !keep(entry)
            {
                let id = (entry.priority, entry.key.clone());
                work.index.remove(&id);
                work.take(at);
            }
        }
    }

    /// Makes packets see the changes, from their next burst on.
    pub fn commit(mut self) {
        let mut changed = Vec::new();
        let now_ns = self.tables.now_ns.load(Ordering::Relaxed);
        for (number, work) in std::mem::take(&mut self.changed) {
            if work.begun.is_empty() && work.freed.is_empty() {
                continue;
            }
            let Some(store) = &self.tables.stores[number] else { continue };
            let first = self.tables.meta.tables[store.place].keyed.as_ref().map_or(0, |keyed| keyed.first_entry);
            let slots = &mut self.writer.slots[number];
            slots.free.drain(..work.from_free);
            slots.next += work.from_new;
            slots.free.extend(&work.freed);
            let kept: HashSet<u32> = work.old_slots(self.tables, number);
            for entry in &work.begun {
                if !kept.contains(&entry.slot) {
                    let before: Counter = self.tables.counted(first + entry.slot);
                    slots.before.insert(entry.slot, before);
                }
                if let StoreKind::Timed(lives) = &store.kind {
                    lives.begin(entry, now_ns);
                }
            }
            let entries = work.entries.into_iter().flatten().collect();
            changed.push((number, Open::new(work.shape, entries, self.tables.seed)));
        }
        if !changed.is_empty() {
            self.tables.publish(&mut self.writer, changed);
        }
    }

    fn work<'w>(tables: &Tables, changed: &'w mut BTreeMap<usize, Work>, number: usize) -> &'w mut Work {
        changed.entry(number).or_insert_with(|| {
            let root = tables.root();
            let (shape, entries) = match &*root.tables[number] {
                Table::Open(open) => (open.shape().clone(), open.entries().to_vec()),
                _ => unreachable!("a keyed table is an open one"),
            };
            let index = entries.iter().enumerate().map(|(at, e)| ((e.priority, e.key.clone()), at)).collect();
            let len = entries.len();
            let entries = entries.into_iter().map(Some).collect();
            Work { shape, entries, index, len, freed: vec![], from_free: 0, from_new: 0, begun: vec![] }
        })
    }
}

impl Work {
    /// Takes the entry at a place out.
    fn take(&mut self, at: usize) {
        if let Some(entry) = self.entries[at].take() {
            self.len -= 1;
            self.freed.push(entry.slot);
        }
    }

    /// Places of entries that were there before the batch and are still.
    fn old_slots(&self, tables: &Tables, number: usize) -> HashSet<u32> {
        let root = tables.root();
        let Table::Open(open) = &*root.tables[number] else { return HashSet::new() };
        let freed: HashSet<u32> = self.freed.iter().copied().collect();
        open.entries().iter().map(|e| e.slot).filter(|slot| !freed.contains(slot)).collect()
    }
}
