//! Tables whose entries are not the program's: who runs a program puts entries in and takes them out, packets learn them, time
//! ends them.
//!
//! In: changes from any thread, look-ups from workers. Out: what a worker finds. Never: a change of a table that a worker
//! might be reading.
//!
//! ```text
//! mod       what leads to the tables, and how a change is published
//! batch     changes of several tables that packets see at once
//! spec      entries as people write them: checked against what the program says of the table
//! text      entries from text
//! typed     tables with the types of one program
//! life      when entries of tables with time-outs were put in and used
//! learned   tables that packets write
//! ```
//!
//! **Publishing.** All tables hang on one [`Root`], which is never changed. A change makes the tables anew that it touches, and
//! a root that leads to them, and puts it in the place of the old one. A worker compares a number once a burst and takes the
//! new root if it differs; so a packet sees all of a change or nothing of it. The old root is freed by whoever publishes, once
//! no worker holds it: never in the packet path.

mod batch;
mod learned;
mod life;
mod spec;
mod text;
pub mod typed;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pipec_abi::meta::{KeyedMeta, Meta};
use pipec_abi::table::{EntryCounter, KeyMatch, Open, Root, Shape, Table};
use pipec_abi::{Counter, Ctx};

pub use batch::Batch;
pub use learned::LearnedStats;
pub use spec::{Entry, TableError};

use crate::engine::Engine;
use crate::sync::{AtomicU64, Ordering};
use learned::Learned;
use life::{Lives, NOT_YET};

/// Time that may pass before it is written down that an entry was used, or that the clock has moved.
pub(crate) const GRAIN_NS: u64 = 1_000_000;

/// The tables of one running program.
pub struct Tables {
    meta: Arc<Meta>,
    seed: u64,
    version: AtomicU64,
    root: Mutex<Arc<Root>>,
    /// By the tables' numbers; none for those whose entries are rules.
    stores: Box<[Option<Store>]>,
    writer: Mutex<Writer>,
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
        let tables: Box<[Arc<Table>]> = engine.tables().iter().cloned().collect();
        let mut stores: Vec<Option<Store>> = tables.iter().map(|_| None).collect();
        let mut slots: Vec<Slots> = tables.iter().map(|_| Slots::default()).collect();
        for (place, keyed) in meta.tables.iter().enumerate().filter_map(|(t, table)| Some((t, table.keyed.as_ref()?))) {
            let number = keyed.table as usize;
            let Some(Table::Open(open)) = tables.get(number).map(|table| &**table) else { continue };
            let shape = open.shape().clone();
            let kind = if shape.learned {
                StoreKind::Learned(Box::new(Learned::new(&shape)))
            } else if shape.ordered() {
                StoreKind::Timed(Lives::new(shape.size, open.entries()))
            } else {
                StoreKind::Plain
            };
            slots[number].next = open.entries().len() as u32;
            stores[number] = Some(Store { place, shape, kind });
        }
        Arc::new(Tables {
            seed: RandomState::new().hash_one(tables.len()),
            version: AtomicU64::new(0),
            root: Mutex::new(Arc::new(Root { version: 0, tables })),
            stores: stores.into(),
            writer: Mutex::new(Writer { slots, retired: Vec::new() }),
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

    /// The number of the newest root.
    #[inline(always)]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The newest root.
    pub(crate) fn root(&self) -> Arc<Root> {
        lock(&self.root).clone()
    }

    /// Counters of entries for one more worker.
    pub(crate) fn new_counters(&self) -> Arc<[EntryCounter]> {
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
        let root = self.root();
        let Table::Open(open) = &*root.tables[number] else { return Ok(Vec::new()) };
        let alive = |slot: u32| match &store.kind {
            StoreKind::Timed(lives) => lives.is_alive(slot, now_ns),
            _ => true,
        };
        let listed = open.entries().iter().filter(|e| alive(e.slot)).map(|e| {
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
        if let Ok(mut writer) = self.writer.try_lock() {
            writer.reclaim();
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

    /// Puts a root with these tables in the place of the newest one.
    fn publish(&self, writer: &mut Writer, changed: Vec<(usize, Open)>) {
        let mut root = lock(&self.root);
        let mut tables = root.tables.clone();
        for (number, open) in changed {
            tables[number] = Arc::new(Table::Open(open));
        }
        let version = root.version + 1;
        let old = std::mem::replace(&mut *root, Arc::new(Root { version, tables }));
        self.version.store(version, Ordering::Release);
        drop(root);
        writer.retired.push(old);
        writer.reclaim();
    }
}

impl Writer {
    /// Frees roots that nobody holds any more.
    fn reclaim(&mut self) {
        self.retired.retain(|root| Arc::strong_count(root) > 1);
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
