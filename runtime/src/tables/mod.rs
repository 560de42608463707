//! Tables whose entries are not the program's: who runs a program puts entries in and takes them out, packets learn them, time
//! ends them.
//!
//! In: changes from any thread, look-ups from workers. Out: what a worker finds. Never: a lock where packets go, or half of a
//! change.
//!
//! ```text
//! mod       what leads to the tables, and how a change is published
//! batch     changes of several tables that packets see at once
//! spec      entries as people write them: checked against what the program says of the table
//! text      entries from text
//! typed     tables with the types of one program
//! reader    which version a worker has come to
//! merger    the thread that builds tables anew under their changes
//! life      when entries of tables with time-outs were put in and used
//! learned   tables that packets write
//! ```
//!
//! **Publishing.** All tables hang on one [`Root`], which is never changed; what is changed in place in a table is one word, so
//! that a look-up sees old or new. Every change has a version. Where more than one word must change, what changes is made
//! aside, and a root that leads to it is put in the place of the old one. A worker compares the version once a burst and takes
//! the new root if there is one; so a packet sees all of a change or nothing of it. Memory that was left, and old roots, are
//! used again or freed by whoever changes tables, once no worker is in a burst that began before: never in the packet path.

mod batch;
mod learned;
mod life;
mod merger;
mod reader;
mod spec;
#[cfg(test)]
mod tests;
mod text;
pub mod typed;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use pipec_abi::meta::{KeyedMeta, Meta};
use pipec_abi::table::{Editor, EntryCounter, KeyMatch, OVERLAY, Open, Root, Shape, Table};
use pipec_abi::{Counter, Ctx};

pub use batch::Batch;
pub use learned::LearnedStats;
pub use spec::{Entry, TableError};

use crate::engine::Engine;
use crate::sync::{AtomicU64, Ordering, lock};
pub(crate) use reader::Reader;

use learned::Learned;
use life::{Lives, NOT_YET};

/// Time that may pass before it is written down that an entry was used, or that the clock has moved.
pub(crate) const GRAIN_NS: u64 = 1_000_000;

/// The tables of one running program.
pub struct Tables {
    meta: Arc<Meta>,
    me: Weak<Tables>,
    /// Of the newest change.
    version: AtomicU64,
    /// Of the newest root.
    root_version: AtomicU64,
    root: Mutex<Arc<Root>>,
    /// By the tables' numbers; none for those whose entries are rules.
    stores: Box<[Option<Store>]>,
    writer: Mutex<Writer>,
    readers: Mutex<reader::Readers>,
    merger: merger::Merger,
    /// Counters of entries, of each worker.
    counters: Mutex<Vec<Arc<[EntryCounter]>>>,
    /// When the last burst was, roughly; before the first, [`NOT_YET`].
    now_ns: AtomicU64,
}

/// What there is of an open table beside its entries.
struct Store {
    /// Its place in the description.
    place: usize,
    shape: Arc<Shape>,
    kind: StoreKind,
}

enum StoreKind {
    /// Nothing: entries stay.
    Plain,
    /// Entries end.
    Timed(Lives),
    /// Packets make entries.
    Learned(Box<Learned>),
}

/// What only one changes at a time.
struct Writer {
    /// Free places of each table, and what was counted there before.
    slots: Vec<Slots>,
    /// Each open table, as who changes it sees it.
    editors: Vec<Option<Editor>>,
    /// Roots that a worker may still hold.
    retired: Vec<Arc<Root>>,
}

/// Places for entries of a table.
#[derive(Default)]
struct Slots {
    /// Places from which entries were taken, the longest free first.
    free: VecDeque<u32>,
    /// The first place that was never taken.
    next: u32,
    /// What was counted at a place before its entry came.
    before: HashMap<u32, Counter>,
}

/// An entry as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it says.
    pub entry: Entry,
    /// Packets that found it, and their bytes.
    pub counter: Counter,
}

impl Tables {
    /// The tables of a program with the entries that it brings along.
    pub fn new(engine: &Engine) -> Arc<Tables> {
        let meta = engine.shared_meta();
        let mut tables: Box<[Arc<Table>]> = engine.tables().iter().cloned().collect();
        let seed = RandomState::new().hash_one(tables.len());
        let mut stores: Vec<Option<Store>> = tables.iter().map(|_| None).collect();
        let mut editors: Vec<Option<Editor>> = tables.iter().map(|_| None).collect();
        let mut slots: Vec<Slots> = tables.iter().map(|_| Slots::default()).collect();
        for (place, keyed) in meta.tables.iter().enumerate().filter_map(|(t, table)| Some((t, table.keyed.as_ref()?))) {
            let number = keyed.table as usize;
            let Some(Table::Open(open)) = tables.get(number).map(|table| &**table) else { continue };
            let (shape, entries) = (open.shape().clone(), open.entries());
            let kind = if shape.learned {
                StoreKind::Learned(Box::new(Learned::new(&shape)))
            } else if shape.ordered() {
                StoreKind::Timed(Lives::new(shape.size, &entries))
            } else {
                StoreKind::Plain
            };
            slots[number].next = entries.iter().map(|entry| entry.slot + 1).max().unwrap_or(0);
            // The program's table is the same for all who run it; these entries are changed.
            let editor = Editor::new(shape.clone(), entries, seed);
            tables[number] = Arc::new(Table::Open(editor.open()));
            editors[number] = Some(editor);
            stores[number] = Some(Store { place, shape, kind });
        }
        Arc::new_cyclic(|me| Tables {
            me: me.clone(),
            version: AtomicU64::new(0),
            root_version: AtomicU64::new(0),
            root: Mutex::new(Arc::new(Root { version: 0, tables })),
            stores: stores.into(),
            writer: Mutex::new(Writer { slots, editors, retired: Vec::new() }),
            readers: Mutex::default(),
            merger: merger::Merger::default(),
            counters: Mutex::new(Vec::new()),
            now_ns: AtomicU64::new(NOT_YET),
            meta,
        })
    }

    /// The tables that a program was given, or else new ones.
    pub(crate) fn of(engine: &Engine) -> Arc<Tables> {
        engine.given_tables().cloned().unwrap_or_else(|| Tables::new(engine))
    }

    /// What the program is.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    // ---- for workers --------------------------------------------------------------------------------------------------

    /// The number of the newest change.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The newest root.
    pub(crate) fn root(&self) -> Arc<Root> {
        lock(&self.root).clone()
    }

    /// Counters of entries for one more worker.
    fn new_counters(&self) -> Arc<[EntryCounter]> {
        let counters = EntryCounter::new(self.meta.entry_counters());
        lock(&self.counters).push(counters.clone());
        counters
    }

    /// A burst begins.
    #[inline(always)]
    pub(crate) fn begin(&self, now_ns: u64) {
        if now_ns.abs_diff(self.now_ns.load(Ordering::Relaxed)) >= GRAIN_NS {
            self.clock(now_ns);
        }
    }

    #[cold]
    fn clock(&self, now_ns: u64) {
        if self.now_ns.swap(now_ns, Ordering::Relaxed) == NOT_YET {
            for store in self.stores.iter().flatten() {
                if let StoreKind::Timed(lives) = &store.kind {
                    lives.start(now_ns);
                }
            }
        }
    }

    /// [`Env::find`](pipec_abi::Env::find)
    pub(crate) fn find(&self, ctx: &mut Ctx, now_ns: u64, table: u16, key: &[u64]) -> u64 {
        match self.stores.get(usize::from(table)).and_then(Option::as_ref).map(|store| &store.kind) {
            Some(StoreKind::Learned(learned)) => {
                let mut row = [0; 1 + pipec_abi::table::MAX_ARGS];
                let words = learned.find(key, now_ns, &mut row);
                ctx.found(&row[..words])
            }
            Some(StoreKind::Timed(lives)) => {
                let found = ctx.find(usize::from(table), key);
                if found == pipec_abi::table::MISS || lives.touch(found as u32, now_ns) {
                    return found;
                }
                let found = ctx.find_alive(usize::from(table), key, |slot| lives.is_alive(slot, now_ns));
                if found != pipec_abi::table::MISS {
                    lives.touch(found as u32, now_ns);
                }
                found
            }
            _ => ctx.find(usize::from(table), key),
        }
    }

    /// [`Env::learn`](pipec_abi::Env::learn)
    pub(crate) fn learn(&self, now_ns: u64, table: u16, key: &[u64], action: u16, args: &[u64]) {
        if let Some(Store { kind: StoreKind::Learned(learned), place, .. }) = &self.stores[usize::from(table)] {
            let first = self.meta.tables[*place].keyed.as_ref().map_or(0, |keyed| keyed.first_entry);
            let counted = |slot: u32| {
                let workers = self.counters.try_lock().ok()?;
                Some(sum(&workers, first + slot))
            };
            learned.learn(key, now_ns, action, args, counted);
        }
    }

    /// When the last burst was; 0 before the first.
    fn now(&self) -> u64 {
        let now_ns = self.now_ns.load(Ordering::Relaxed);
        if now_ns == NOT_YET { 0 } else { now_ns }
    }

    // ---- for everybody else -------------------------------------------------------------------------------------------

    /// Changes of several tables, which packets see at once when they are committed. While there is a batch, other changes and
    /// [`Tables::list`] wait for it, so the thread that has it asks for neither.
    pub fn batch(&self) -> Batch<'_> {
        Batch::new(self)
    }

    /// Puts an entry in.
    ///
    /// # Errors
    /// When it does not fit the table, has the key of another, or the table is full.
    pub fn insert(&self, table: &str, entry: Entry) -> Result<(), TableError> {
        let mut batch = self.batch();
        batch.insert(table, entry)?;
        batch.commit();
        Ok(())
    }

    /// Puts an entry in, in the place of the one that has the same key and priority, if there is one.
    ///
    /// # Errors
    /// When it does not fit the table, or the table is full.
    pub fn set(&self, table: &str, entry: Entry) -> Result<(), TableError> {
        let mut batch = self.batch();
        batch.set(table, entry)?;
        batch.commit();
        Ok(())
    }

    /// Takes the entry with this key and priority out; whether there was one.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn remove(&self, table: &str, priority: u32, key: &[KeyMatch]) -> Result<bool, TableError> {
        let mut batch = self.batch();
        let removed = batch.remove(table, priority, key)?;
        batch.commit();
        Ok(removed)
    }

    /// The entry with this text, as it would stand in the program: `10.0.0.0/8 => route(a)`.
    ///
    /// # Errors
    /// When it cannot be understood; the message names the table and the part.
    pub fn parse(&self, table: &str, text: &str) -> Result<Entry, TableError> {
        let (_, name, keyed) = self.keyed(table)?;
        text::entry(&self.meta, name, keyed, text)
    }

    /// All entries of a table in the order they are tried, with what was counted.
    ///
    /// # Errors
    /// When there is no such table.
    pub fn list(&self, table: &str) -> Result<Vec<Listed>, TableError> {
        let (number, _, keyed) = self.keyed(table)?;
        let Some(store) = &self.stores[number] else { return Ok(Vec::new()) };
        let now_ns = self.now();
        if let StoreKind::Learned(learned) = &store.kind {
            let each = learned.list(now_ns).into_iter().map(|(slot, words, action, args, before)| {
                let key = store.shape.unpack(&words).into_iter().zip(&store.shape.parts);
                let key = key
                    .map(|(value, part)| KeyMatch::Masked { value, mask: pipec_abi::table::shape::ones(part.width) });
                let entry = Entry::from_parts(keyed, 0, key.collect(), action, &args);
                Listed { entry, counter: since(self.counted(keyed.first_entry + slot), before) }
            });
            return Ok(each.collect());
        }
        let writer = lock(&self.writer);
        let Some(editor) = &writer.editors[number] else { return Ok(Vec::new()) };
        let alive = |slot: u32| match &store.kind {
            StoreKind::Timed(lives) => lives.is_alive(slot, now_ns),
            _ => true,
        };
        let listed = editor.open().entries().into_iter().filter(|e| alive(e.slot)).map(|e| {
            let before = writer.slots[number].before.get(&e.slot).copied().unwrap_or_default();
            let mut entry = Entry::from_parts(keyed, e.priority, e.key.clone(), e.action, &e.args);
            entry.idle = (e.idle_ns != keyed.idle_ns).then(|| Duration::from_nanos(e.idle_ns));
            entry.hard = (e.hard_ns != keyed.hard_ns).then(|| Duration::from_nanos(e.hard_ns));
            Listed { entry, counter: since(self.counted(keyed.first_entry + e.slot), before) }
        });
        Ok(listed.collect())
    }

    /// What happened in a table that packets write.
    ///
    /// # Errors
    /// When there is no such table, or packets do not write it.
    pub fn learned(&self, table: &str) -> Result<LearnedStats, TableError> {
        let (number, name, _) = self.keyed(table)?;
        match &self.stores[number] {
            Some(Store { kind: StoreKind::Learned(learned), .. }) => Ok(learned.stats()),
            _ => Err(TableError::NotLearned(name.to_string())),
        }
    }

    /// Takes entries out whose time is over, and frees what nobody reads any more. To be called now and then.
    pub fn sweep(&self, now_ns: u64) {
        self.begin(now_ns);
        for (number, store) in self.stores.iter().enumerate() {
            match store.as_ref().map(|store| &store.kind) {
                Some(StoreKind::Learned(learned)) => learned.sweep(now_ns),
                Some(StoreKind::Timed(lives)) if lives.may_end(now_ns) => self.sweep_timed(number, lives, now_ns),
                _ => {}
            }
        }
        if self.merger.is_needed() {
            self.merge();
        }
        if let Ok(mut writer) = self.writer.try_lock() {
            self.reclaim(&mut writer);
        }
    }

    /// Takes entries out whose time is over, unless somebody is making a batch: then they are passed over by look-ups until
    /// the next sweep.
    fn sweep_timed(&self, number: usize, lives: &Lives, now_ns: u64) {
        let Some(mut batch) = Batch::try_new(self) else { return lives.ask_again() };
        batch.retain(number, |entry| lives.is_alive(entry.slot, now_ns));
        batch.commit();
    }

    /// The table with a name: number, name, and what the program says of it.
    fn keyed(&self, table: &str) -> Result<(usize, &str, &KeyedMeta), TableError> {
        let keyed = self.meta.tables.iter().filter_map(|t| Some((t.name.as_str(), t.keyed.as_ref()?)));
        if let Some((name, keyed)) = keyed.clone().find(|(name, _)| *name == table) {
            return Ok((keyed.table as usize, name, keyed));
        }
        let known: Vec<&str> = keyed.map(|(name, _)| name).collect();
        Err(TableError::no_table(table, &self.meta, &known))
    }

    /// What all workers have counted at a place.
    fn counted(&self, place: u32) -> Counter {
        sum(&lock(&self.counters), place)
    }

    /// Makes a version known, with a root in which these tables are new, if any are.
    fn publish(&self, writer: &mut Writer, version: u64, changed: Vec<(usize, Open)>) {
        if !changed.is_empty() {
            let mut tables = self.root().tables.clone();
            for (number, open) in changed {
                tables[number] = Arc::new(Table::Open(open));
            }
            let root = Arc::new(Root { version, tables });
            writer.retired.push(std::mem::replace(&mut *lock(&self.root), root));
            self.root_version.store(version, Ordering::Release);
        }
        self.version.store(version, Ordering::Release);
        self.release(writer);
    }

    /// Frees what no worker reads any more, which may take a while.
    fn reclaim(&self, writer: &mut Writer) {
        writer.retired.retain(|root| Arc::strong_count(root) > 1);
        self.release(writer);
    }

    /// Lets memory of tables be used again that no worker reads any more.
    fn release(&self, writer: &mut Writer) {
        let seen = lock(&self.readers).all_have(self.version());
        writer.editors.iter_mut().flatten().for_each(|editor| editor.release(seen));
    }

    /// A table has been changed: if changes lie above what was built, they are to be built in.
    fn wake(&self, editor: &Editor) {
        let unmerged = editor.unmerged();
        if unmerged > 0 {
            self.merger.wake(&self.me, unmerged >= OVERLAY / 4);
        }
    }

    /// Builds tables anew whose changes lie above what was built. Others may change them meanwhile.
    fn merge(&self) {
        for number in 0..self.stores.len() {
            let task = lock(&self.writer).editors[number].as_mut().and_then(Editor::begin);
            let Some(main) = task.map(pipec_abi::table::Task::run) else { continue };
            let mut writer = lock(&self.writer);
            let Some(editor) = &mut writer.editors[number] else { continue };
            editor.merged(main);
            let open = editor.open();
            self.wake(editor);
            self.publish(&mut writer, self.version() + 1, vec![(number, open)]);
            let retired = writer.retired.extract_if(.., |root| Arc::strong_count(root) == 1).collect::<Vec<_>>();
            drop(writer);
            drop(retired); // this is what takes time
        }
    }
}

/// What workers have counted at a place.
fn sum(workers: &[Arc<[EntryCounter]>], place: u32) -> Counter {
    let mut sum = Counter::default();
    for one in workers.iter().filter_map(|counters| counters.get(place as usize)).map(EntryCounter::get) {
        sum.packets += one.packets;
        sum.bytes += one.bytes;
    }
    sum
}

fn since(now: Counter, before: Counter) -> Counter {
    Counter { packets: now.packets - before.packets, bytes: now.bytes - before.bytes }
}
