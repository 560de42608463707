//! Changes of several tables that packets see at once: all of a batch or nothing of it.
//!
//! Changes are checked as they are added, against the tables as they are with the changes before. Nothing is seen until
//! [`Batch::commit`]. A single change of a table that can be changed in place is made there; of a batch, every table is
//! changed aside, and one root leads to all of them. A batch that is dropped has changed nothing. One batch is made at a time.
//! Learned tables are not part of a root: what is done to them is seen at once.

use std::collections::{BTreeMap, HashMap};
use std::sync::MutexGuard;

use pipec_abi::table::{Change, Editor, KeyMatch, OpenEntry};

use super::spec::{Entry, TableError};
use super::{StoreKind, Tables, Writer, lock};
use crate::sync::Ordering;

/// Roots that wait to be freed until others than who changes a single entry do it.
const RETIRED: usize = 256;

/// Changes that are seen at once.
pub struct Batch<'t> {
    tables: &'t Tables,
    writer: MutexGuard<'t, Writer>,
    changed: BTreeMap<usize, Work>,
}

/// Changes of one table.
#[derive(Default)]
struct Work {
    changes: Vec<Change>,
    /// The slots of entries that were touched, by priority and key; none where there is no entry now.
    touched: HashMap<(u32, Vec<KeyMatch>), Option<u32>>,
    /// Entries there are.
    len: usize,
    /// Places that have become free.
    freed: Vec<u32>,
    /// Places that were taken, from the front of the free ones and from those never taken.
    from_free: usize,
    from_new: u32,
    /// Places of entries that had no place before.
    begun: Vec<u32>,
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
        let Some(editor) = &self.writer.editors[number] else { return Err(full()) };
        let work = self.changed.entry(number).or_insert_with(|| Work { len: editor.len(), ..Work::default() });
        let old = work.slot(editor, entry.priority, &entry.key);
        let slots = &self.writer.slots[number];
        let slot = match old {
            Some(_) if !replace => return Err(TableError::Exists(name.into())),
            Some(slot) => slot,
            None if work.len >= keyed.size as usize || work.changes.len() >= editor.room() => return Err(full()),
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
        if old.is_none() {
            work.len += 1;
            work.begun.push(slot);
        }
        work.touched.insert((entry.priority, entry.key.clone()), Some(slot));
        let new = OpenEntry { slot, priority: entry.priority, key: entry.key, action, args, idle_ns, hard_ns };
        work.changes.push(Change::Put(new));
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
        let Some(editor) = &self.writer.editors[number] else { return Ok(false) };
        let work = self.changed.entry(number).or_insert_with(|| Work { len: editor.len(), ..Work::default() });
        let old = work.slot(editor, priority, key);
        if let Some(slot) = old {
            work.take(priority, key.to_vec(), slot);
        }
        Ok(old.is_some())
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
        let Some(editor) = &self.writer.editors[number] else { return };
        let work = self.changed.entry(number).or_insert_with(|| Work { len: editor.len(), ..Work::default() });
        let put =
            work.changes.iter().filter_map(|change| if let Change::Put(entry) = change { Some(entry) } else { None });
        let mut all: Vec<OpenEntry> = editor.open().entries();
        all.extend(put.cloned());
        for entry in all {
            // Of an entry that was put in again there is one here that is not the table's any more; its slot is the same.
            let slot = work.slot(editor, entry.priority, &entry.key);
            if slot == Some(entry.slot) && !keep(&entry) {
                work.take(entry.priority, entry.key, entry.slot);
            }
        }
    }

    /// Makes packets see the changes, from their next burst on.
    pub fn commit(mut self) {
        let changed: Vec<(usize, Work)> =
            std::mem::take(&mut self.changed).into_iter().filter(|(_, work)| !work.changes.is_empty()).collect();
        if changed.is_empty() {
            return;
        }
        let now_ns = self.tables.now_ns.load(Ordering::Relaxed);
        let version = self.tables.version() + 1;
        let alone = matches!(&changed[..], [(_, work)] if work.changes.len() == 1);
        let mut published = Vec::new();
        for (number, work) in changed {
            let Some(store) = &self.tables.stores[number] else { continue };
            let first = self.tables.meta.tables[store.place].keyed.as_ref().map_or(0, |keyed| keyed.first_entry);
            let Writer { slots, editors, .. } = &mut *self.writer;
            let (slots, Some(editor)) = (&mut slots[number], &mut editors[number]) else { continue };
            slots.free.drain(..work.from_free);
            slots.next += work.from_new;
            slots.free.extend(&work.freed);
            for slot in &work.begun {
                slots.before.insert(*slot, self.tables.counted(first + slot));
            }
            if let StoreKind::Timed(lives) = &store.kind {
                let put =
                    work.changes.iter().filter_map(|change| if let Change::Put(e) = change { Some(e) } else { None });
                put.for_each(|entry| lives.begin(entry, now_ns));
            }
            let anew = match &work.changes[..] {
                [change] if alone => editor.change(change, version),
                changes => editor.change_all(changes, version).map(|()| true),
            };
            if anew == Some(true) {
                published.push((number, editor.open()));
            }
            self.tables.wake(editor);
        }
        self.tables.publish(&mut self.writer, version, published);
        // One change leaves little; who builds tables anew frees it.
        if !alone || self.writer.retired.len() > RETIRED {
            self.tables.reclaim(&mut self.writer);
        }
    }
}

impl Work {
    /// The slot of the entry with a priority and key, with the changes so far.
    fn slot(&self, editor: &Editor, priority: u32, key: &[KeyMatch]) -> Option<u32> {
        if self.touched.is_empty() {
            return editor.slot(priority, key);
        }
        let touched = self.touched.get(&(priority, key.to_vec())).copied();
        touched.unwrap_or_else(|| editor.slot(priority, key))
    }

    /// Takes an entry out that is there.
    fn take(&mut self, priority: u32, key: Vec<KeyMatch>, slot: u32) {
        self.len -= 1;
        self.freed.push(slot);
        self.touched.insert((priority, key.clone()), None);
        self.changes.push(Change::Take(priority, key));
    }
}
