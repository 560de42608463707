//! Entries of any kind that come and go: what was built, without what has gone, and above it what has come.
//!
//! What is built is never changed. An entry that goes is marked as dead; where a look-up finds a dead one, it looks for the next
//! behind it, which is slow where the structure keeps only the first. An entry that comes is put into a small tuple space: into
//! that of the newest, which is made anew with every change, and with them now and then into a second one. A look-up asks all
//! there are and takes what comes first. When there are many, or by and by, a new main is built of all: by whoever has time,
//! while changes go on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::super::choose::choose;
use super::super::shape::Slot;
use super::super::{BURST, Costs, Entry, MISS, Range, Table, TupleSpace, prefixes};
use super::{KeyMatch, OpenEntry, Shape, ones};

/// Changes above what was built that are enough to build anew.
pub const OVERLAY: usize = 256;
/// The newest entries, which are made anew with every change, at the most.
const NEWEST: usize = 16;

/// An entry, its row, and where it stands in the order in which entries are tried.
#[derive(Debug)]
pub struct Placed {
    pub entry: OpenEntry,
    pub row: u32,
    pub rank: u128,
    /// What it wants, over the words of a key.
    spelled: Vec<Entry>,
}

impl Placed {
    /// An entry of a table whose parts lie there.
    pub fn new(shape: &Shape, slots: &[Slot], entry: OpenEntry, row: u32, rank: u128) -> Placed {
        Placed { spelled: spell(shape, slots, &entry.key), entry, row, rank }
    }
}

/// Entries that something was built of, in the order they are tried.
#[derive(Debug)]
pub struct Layer {
    pub(super) placed: Vec<Arc<Placed>>,
    pub(super) find: Table,
    /// Where the entry of a row is.
    at: HashMap<u32, u32>,
    /// Rows of entries that want the same as another of another priority: structures may keep only the first.
    twice: HashSet<u32>,
    /// The building it is the end of.
    building: u64,
}

/// What is published.
#[derive(Clone, Debug)]
pub struct Layers {
    shape: Arc<Shape>,
    pub main: Arc<Layer>,
    /// What has come since, the newest first.
    above: [Option<Arc<Layer>>; 2],
    /// Dead entries of the main, a bit each; empty while there are none.
    pub dead: Arc<[u64]>,
    /// What is behind dead entries must be found by trying all.
    plainly: bool,
}

impl Layer {
    /// Builds what suits the entries.
    pub fn new(shape: &Shape, placed: Vec<Arc<Placed>>, seed: u64) -> Layer {
        let kind = |entries: &[Entry], width| choose(width, entries, &Costs::default()).kind;
        let mut layer =
            Layer::of(shape, placed, |entries, width| Table::new(kind(entries, width) as u64, width, entries, seed));
        layer.at = layer.placed.iter().enumerate().map(|(at, placed)| (placed.row, at as u32)).collect();
        let mut known: HashMap<&[KeyMatch], u32> = HashMap::new();
        for placed in &layer.placed {
            if let Some(other) = known.insert(&placed.entry.key, placed.row) {
                layer.twice.extend([other, placed.row]);
            }
        }
        layer
    }

    /// Builds it of few entries, quickly.
    fn few(shape: &Shape, placed: Vec<Arc<Placed>>, seed: u64) -> Layer {
        Layer::of(shape, placed, |entries, width| Table::TupleSpace(TupleSpace::new(width, entries, seed)))
    }

    fn of(shape: &Shape, mut placed: Vec<Arc<Placed>>, build: impl Fn(&[Entry], usize) -> Table) -> Layer {
        placed.sort_by_key(|placed| placed.rank);
        let all = placed.iter().enumerate();
        let valued = |at: usize, entry: &Entry| Entry { value: at as u64, ..entry.clone() };
        let entries = all.flat_map(|(at, placed)| placed.spelled.iter().map(move |entry| valued(at, entry)));
        let entries: Vec<Entry> = entries.collect();
        Layer { find: build(&entries, shape.words()), placed, at: HashMap::new(), twice: HashSet::new(), building: 0 }
    }

    /// Whether the structure knows only the first entry that wants a key.
    fn keeps_first(&self) -> bool {
        !matches!(self.find, Table::TupleSpace(_) | Table::BitVector(_))
    }

    fn get(&self, value: u64) -> Option<&Placed> {
        if value == MISS { None } else { self.placed.get(value as usize).map(|placed| &**placed) }
    }
}

impl Layers {
    /// Of entries alone.
    pub fn new(shape: &Arc<Shape>, placed: Vec<Arc<Placed>>, seed: u64) -> Layers {
        Layers {
            shape: shape.clone(),
            main: Arc::new(Layer::new(shape, placed, seed)),
            above: [None, None],
            dead: Arc::from([]),
            plainly: false,
        }
    }

    /// The row of the first entry that wants a key.
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        let mut main = self.main.find.lookup(key);
        if !self.dead.is_empty() {
            main = self.alive(&self.shape, key, main);
        }
        let mut found = self.main.get(main);
        for above in self.above.iter().flatten() {
            if let Some(other) = above.get(above.find.lookup(key))
                && found.is_none_or(|found| other.rank < found.rank)
            {
                found = Some(other);
            }
        }
        found.map_or(MISS, |placed| placed.row.into())
    }

    /// The same for a burst.
    #[inline]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        self.main.find.lookup_burst(keys, found);
        if !self.dead.is_empty() {
            let keys = keys.chunks_exact((keys.len() / found.len().max(1)).max(1));
            found.iter_mut().zip(keys).for_each(|(found, key)| *found = self.alive(&self.shape, key, *found));
        }
        if self.above.iter().all(Option::is_none) {
            found.iter_mut().for_each(|found| *found = self.main.get(*found).map_or(MISS, |placed| placed.row.into()));
        } else {
            self.lookup_above(keys, found);
        }
    }

    /// From what the main says of each key of a burst to the row of what comes first among all layers.
    #[inline(never)]
    fn lookup_above(&self, keys: &[u64], found: &mut [u64]) {
        let mut first: [Option<&Placed>; BURST] = [None; BURST];
        first.iter_mut().zip(&*found).for_each(|(first, value)| *first = self.main.get(*value));
        for above in self.above.iter().flatten() {
            above.find.lookup_burst(keys, found);
            for (first, value) in first.iter_mut().zip(&*found) {
                if let Some(other) = above.get(*value)
                    && first.is_none_or(|first| other.rank < first.rank)
                {
                    *first = Some(other);
                }
            }
        }
        let row = |first: &Option<&Placed>| first.map_or(MISS, |placed| placed.row.into());
        found.iter_mut().zip(&first).for_each(|(found, first)| *found = row(first));
    }

    /// Bytes of what is looked up.
    pub fn memory(&self) -> usize {
        self.main.find.memory() + self.above.iter().flatten().map(|above| above.find.memory()).sum::<usize>()
    }

    /// Lines that a look-up reads at the most, if none of what it finds is dead.
    pub fn worst_probes(&self) -> u32 {
        let above = self.above.iter().flatten().map(|above| above.find.worst_probes());
        self.main.find.worst_probes() + above.sum::<u32>()
    }

    /// Lines that the look-up of a key reads.
    pub fn probes(&self, key: &[u64]) -> u32 {
        let above = self.above.iter().flatten().map(|above| above.find.probes(key));
        self.main.find.probes(key) + above.sum::<u32>()
    }

    /// What the main finds first from `found` on that is not dead.
    #[inline(never)]
    fn alive(&self, shape: &Shape, key: &[u64], found: u64) -> u64 {
        if found == MISS || !self.is_dead(found as usize) {
            return found;
        }
        if self.plainly {
            let key = shape.unpack(key);
            let mut behind = self.main.placed.iter().enumerate().skip(found as usize + 1);
            let next = behind.find(|(at, placed)| !self.is_dead(*at) && placed.entry.holds(&key));
            return next.map_or(MISS, |(at, _)| at as u64);
        }
        let mut found = found;
        while found != MISS && self.is_dead(found as usize) {
            found = match &self.main.find {
                Table::TupleSpace(table) => table.lookup_after(key, found as u32),
                Table::BitVector(table) => table.lookup_after(key, found as u32),
                _ => MISS,
            };
        }
        found
    }

    fn is_dead(&self, at: usize) -> bool {
        self.dead.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    /// All entries in the order they are tried.
    pub fn entries(&self) -> Vec<&Placed> {
        let alive = self.main.placed.iter().enumerate().filter(|(at, _)| !self.is_dead(*at)).map(|(_, placed)| placed);
        let above = self.above.iter().flatten().flat_map(|above| &above.placed);
        let mut all: Vec<&Placed> = alive.chain(above).map(|placed| &**placed).collect();
        all.sort_by_key(|placed| placed.rank);
        all
    }
}

/// The layers as who writes has them.
#[derive(Debug)]
pub struct Stack {
    pub layers: Layers,
    dead: usize,
    /// Rows that have died since somebody began to build a new main.
    died: Option<Vec<u32>>,
    seed: u64,
}

/// What a new main is built of.
#[derive(Debug)]
pub struct Task {
    shape: Arc<Shape>,
    placed: Vec<Arc<Placed>>,
    seed: u64,
}

impl Task {
    /// Builds it; this takes a while.
    pub fn run(self) -> Layer {
        Layer { building: self.seed, ..Layer::new(&self.shape, self.placed, self.seed) }
    }
}

impl Stack {
    pub fn new(layers: Layers, seed: u64) -> Stack {
        Stack { layers, dead: 0, died: None, seed }
    }

    /// Makes changes: what has gone by its row, what has come. The layers that show them, unless there is no room above.
    pub fn change(&mut self, gone: &[u32], come: &[Arc<Placed>]) {
        let mut dead = self.layers.dead.to_vec();
        let [mut newest, mut older] =
            self.layers.above.each_ref().map(|above| above.as_ref().map_or(vec![], |above| above.placed.clone()));
        let before = older.len();
        for row in gone {
            if let Some(died) = &mut self.died {
                died.push(*row);
            }
            match self.layers.main.at.get(row).copied().filter(|at| !self.layers.is_dead(*at as usize)) {
                Some(at) => {
                    dead.resize(self.layers.main.placed.len().div_ceil(64), 0);
                    dead[at as usize / 64] |= 1 << (at % 64);
                    self.dead += 1;
                    let main = &self.layers.main;
                    self.layers.plainly |= main.twice.contains(row) || main.keeps_first();
                }
                None => [&mut newest, &mut older].into_iter().for_each(|all| all.retain(|placed| placed.row != *row)),
            }
        }
        newest.extend(come.iter().filter(|placed| !gone.contains(&placed.row)).cloned());
        if newest.len() > NEWEST {
            older.append(&mut newest);
        }
        if self.dead > 0 {
            self.layers.dead = dead.into();
        }
        if older.len() != before {
            self.layers.above[1] = self.few(older);
        }
        self.layers.above[0] = self.few(newest);
    }

    fn few(&self, placed: Vec<Arc<Placed>>) -> Option<Arc<Layer>> {
        (!placed.is_empty()).then(|| Arc::new(Layer::few(&self.layers.shape, placed, self.seed)))
    }

    /// What lies above.
    fn above(&self) -> impl Iterator<Item = &Arc<Placed>> {
        self.layers.above.iter().flatten().flat_map(|above| &above.placed)
    }

    /// A key of hashes that was not used yet.
    pub fn seed(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(1);
        self.seed
    }

    /// How many changes lie above what was built.
    pub fn load(&self) -> usize {
        self.dead + self.above().count()
    }

    /// What to build a new main of; the changes from now on are remembered until [`Stack::merged`].
    pub fn begin(&mut self) -> Task {
        self.died = Some(Vec::new());
        self.seed();
        let alive = self.layers.main.placed.iter().enumerate().filter(|(at, _)| !self.layers.is_dead(*at));
        let placed = alive.map(|(_, placed)| placed).chain(self.above()).cloned().collect();
        Task { shape: self.layers.shape.clone(), placed, seed: self.seed }
    }

    /// Whether somebody builds.
    pub fn is_building(&self) -> bool {
        self.died.is_some()
    }

    /// Puts a new main under the changes made since it was begun.
    pub fn merged(&mut self, main: Layer) {
        if self.died.is_none() || main.building != self.seed {
            return; // something else was built meanwhile
        }
        let shape = self.layers.shape.clone();
        let above: Vec<Arc<Placed>> =
            self.above().filter(|placed| !main.at.contains_key(&placed.row)).cloned().collect();
        let mut dead = vec![0; main.placed.len().div_ceil(64)];
        let mut plainly = false;
        self.dead = 0;
        for row in self.died.take().unwrap_or_default() {
            if let Some(at) = main.at.get(&row) {
                dead[*at as usize / 64] |= 1 << (at % 64);
                self.dead += 1;
                plainly |= main.twice.contains(&row) || main.keeps_first();
            }
        }
        let dead: Arc<[u64]> = if self.dead > 0 { dead.into() } else { Arc::from([]) };
        let above = [None, self.few(above)];
        self.layers = Layers { shape, main: Arc::new(main), above, dead, plainly };
    }
}

/// An entry over the words of a key. Ranges of more than a word are taken as the prefixes they are made of.
fn spell(shape: &Shape, slots: &[Slot], key: &[KeyMatch]) -> Vec<Entry> {
    let width = shape.words_of(slots);
    let mut all = vec![Entry { mask: vec![0; width], key: vec![0; width], ranges: vec![], value: 0 }];
    for ((part, slot), want) in shape.parts.iter().zip(slots).zip(key) {
        let ways = match *want {
            KeyMatch::Masked { value, mask } => vec![(value, mask)],
            KeyMatch::Range { low, high } if low == 0 && high >= ones(part.width) => continue,
            KeyMatch::Range { low, high } if part.width <= 64 => {
                let (word, shift, width) = (slot.word as u8, slot.shift as u8, part.width);
                let range = Range { word, shift, width, low: low as u64, high: high as u64 };
                all.iter_mut().for_each(|entry| entry.ranges.push(range));
                continue;
            }
            KeyMatch::Range { low, high } => prefixes(low, high, part.width),
        };
        let with = |entry: &Entry, (value, mask): (u128, u128)| {
            let mut entry = entry.clone();
            entry.mask[slot.word] |= (mask as u64) << slot.shift;
            entry.key[slot.word] |= (value as u64) << slot.shift;
            if part.width > 64 {
                entry.mask[slot.word + 1] |= (mask >> 64) as u64;
                entry.key[slot.word + 1] |= (value >> 64) as u64;
            }
            entry
        };
        all = all.iter().flat_map(|entry| ways.iter().map(|way| with(entry, *way)).collect::<Vec<_>>()).collect();
    }
    all
}
