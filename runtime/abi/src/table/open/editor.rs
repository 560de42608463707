//! An open table as who changes it sees it: one thread at a time.
//!
//! Time is counted in versions of the root. A change is given the version from which on readers see it; what it leaves is used
//! again when all readers have come to that version ([`Editor::release`]).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::exact::Exact;
use super::layers::{Layer, Layers, OVERLAY, Placed, Stack, Task};
use super::{Find, KeyMatch, MatchKind, Open, OpenEntry, OpenPrefixes, Part, Rows, Shape};
use crate::table::shape::Slot;

/// A change of one entry.
#[derive(Clone, Debug)]
pub enum Change {
    /// An entry comes, in the place of the one with its key and priority if there is one, whose slot it has then.
    Put(OpenEntry),
    /// An entry goes: priority and key.
    Take(u32, Vec<KeyMatch>),
}

/// An open table as who changes it sees it.
#[derive(Debug)]
pub struct Editor {
    shape: Arc<Shape>,
    slots: Vec<Slot>,
    rows: Arc<Rows>,
    kind: Kind,
    free: Vec<u32>,
    next_row: u32,
    /// Rows that a reader may have the number of, with the time from which on none has.
    waiting: VecDeque<(u64, u32)>,
    /// The turn of the entry that comes next.
    turn: u64,
}

/// What finds rows.
#[derive(Debug)]
enum Kind {
    Nothing,
    Exact(Exact),
    Prefixes(Arc<OpenPrefixes>),
    Layers(Stack, HashMap<(u32, Vec<KeyMatch>), Arc<Placed>>),
}

impl Editor {
    /// A table of these entries, in the order they were put in. Of those with the same key and priority, the first counts.
    pub fn new(shape: Arc<Shape>, entries: Vec<OpenEntry>, seed: u64) -> Editor {
        let rows = Arc::new(Rows::new(usize::from(shape.args), (shape.size as usize).max(entries.len())));
        let slots = shape.slots();
        let mut editor = Editor {
            slots,
            rows,
            kind: Kind::Nothing,
            free: Vec::new(),
            next_row: 0,
            waiting: VecDeque::new(),
            turn: 0,
            shape,
        };
        let shape = editor.shape.clone();
        if shape.learned {
            return editor;
        }
        if in_place(&shape) && shape.parts.iter().all(|part| part.kind == MatchKind::Exact) {
            let mut exact = Exact::new(shape.words(), entries.len(), seed);
            for entry in &entries {
                let key = editor.pack(&entry.key);
                if exact.row(&key).is_none() {
                    let row = editor.write(entry, None).unwrap_or(0);
                    exact.put(&key, row);
                }
            }
            editor.kind = Kind::Exact(exact);
        } else if in_place(&shape) && matches!(shape.parts[..], [Part { kind: MatchKind::Lpm, .. }]) {
            let mut known = std::collections::HashSet::new();
            let mut prefixes = Vec::new();
            for entry in &entries {
                let (bits, len) = prefix(&entry.key);
                if known.insert((bits, len)) {
                    prefixes.push((bits, len, editor.write(entry, None).unwrap_or(0)));
                }
            }
            editor.kind = Kind::Prefixes(Arc::new(OpenPrefixes::new(shape.parts[0].width, &prefixes)));
        } else {
            let mut ids = HashMap::new();
            for entry in entries {
                let id = (entry.priority, entry.key.clone());
                ids.entry(id).or_insert_with(|| editor.place(entry, None));
            }
            let layers = Layers::new(&shape, ids.values().cloned().collect(), seed);
            editor.kind = Kind::Layers(Stack::new(layers, seed), ids);
        }
        editor
    }

    /// The table as packets are to see it now.
    pub fn open(&self) -> Open {
        let find = match &self.kind {
            Kind::Nothing => Find::Nothing,
            Kind::Exact(exact) => Find::Exact(exact.table.clone()),
            Kind::Prefixes(prefixes) => Find::Prefixes(prefixes.clone()),
            Kind::Layers(stack, _) => Find::Layers(stack.layers.clone()),
        };
        Open { shape: self.shape.clone(), rows: self.rows.clone(), find }
    }

    /// Entries there are.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Nothing => 0,
            Kind::Exact(exact) => exact.len,
            Kind::Prefixes(prefixes) => prefixes.len(),
            Kind::Layers(_, ids) => ids.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The slot of the entry with a priority and key.
    pub fn slot(&self, priority: u32, key: &[KeyMatch]) -> Option<u32> {
        self.row(priority, key).map(|row| self.rows.get(row.into()).found() as u32)
    }

    fn row(&self, priority: u32, key: &[KeyMatch]) -> Option<u32> {
        if key.len() != self.shape.parts.len() {
            return None;
        }
        match &self.kind {
            Kind::Nothing => None,
            Kind::Exact(exact) => exact.row(&self.pack(key)).filter(|_| priority == 0 && self.is_exact(key)),
            Kind::Prefixes(prefixes) => {
                let (bits, len) = prefix(key);
                prefixes.row(bits, len).filter(|_| priority == 0)
            }
            Kind::Layers(_, ids) => ids.get(&(priority, key.to_vec())).map(|placed| placed.row),
        }
    }

    // ---- changes -----------------------------------------------------------------------------------------------------------

    /// Makes one change, which readers see from `version` on at the latest. Whether [`Editor::open`] gives another table then,
    /// which must be published for it; nothing if there is no room for it.
    pub fn change(&mut self, change: &Change, version: u64) -> Option<bool> {
        if self.room() == 0 {
            return None;
        }
        match &self.kind {
            Kind::Layers(..) => self.change_all(core::slice::from_ref(change), version).map(|()| true),
            _ => self.apply(change, version),
        }
    }

    /// Makes changes aside: readers see all of them, from `version` on, when [`Editor::open`] is published. Nothing if there is
    /// no room for them.
    pub fn change_all(&mut self, changes: &[Change], version: u64) -> Option<()> {
        if self.room() < changes.len() {
            return None;
        }
        match &mut self.kind {
            Kind::Nothing => {}
            Kind::Exact(exact) => {
                *exact = exact.copy(changes.len());
                for change in changes {
                    self.apply(change, version)?;
                    self.release_aside();
                }
            }
            Kind::Prefixes(prefixes) => {
                *prefixes = Arc::new(prefixes.copy());
                for change in changes {
                    self.apply(change, version)?;
                    self.release_aside();
                }
            }
            Kind::Layers(..) => self.change_layers(changes, version)?,
        }
        Some(())
    }

    /// Nobody reads what is aside: it can be used again at once.
    fn release_aside(&mut self) {
        match &mut self.kind {
            Kind::Exact(exact) => exact.release(u64::MAX),
            Kind::Prefixes(prefixes) => prefixes.release(u64::MAX),
            _ => {}
        }
    }

    fn apply(&mut self, change: &Change, version: u64) -> Option<bool> {
        let (priority, key) = match change {
            Change::Put(entry) => (entry.priority, &entry.key),
            Change::Take(priority, key) => (*priority, key),
        };
        let old = self.row(priority, key);
        let new = match change {
            Change::Put(entry) => Some(self.write(entry, old)?),
            Change::Take(..) => None,
        };
        let words = self.pack(key);
        let published = match (&mut self.kind, new, old) {
            (_, None, None) => return Some(false),
            (Kind::Exact(exact), Some(new), _) => exact.put(&words, new),
            (Kind::Exact(exact), None, _) => exact.take(&words, version),
            (Kind::Prefixes(prefixes), new, old) => {
                let (bits, len) = prefix(key);
                let edit = |prefixes: &OpenPrefixes| match new {
                    Some(new) => prefixes.put(bits, len, new, version),
                    None => prefixes.take(bits, len, old.unwrap_or(0), version),
                };
                let mut copied = prefixes.outgrown();
                if copied {
                    *prefixes = Arc::new(prefixes.copy());
                }
                while edit(prefixes).is_err() {
                    *prefixes = Arc::new(prefixes.copy());
                    copied = true;
                }
                copied
            }
            _ => false,
        };
        self.waiting.extend(old.map(|old| (version, old)));
        Some(published)
    }

    fn change_layers(&mut self, changes: &[Change], version: u64) -> Option<()> {
        let (mut gone, mut come) = (Vec::new(), Vec::new());
        for change in changes {
            let (priority, key) = match change {
                Change::Put(entry) => (entry.priority, &entry.key),
                Change::Take(priority, key) => (*priority, key),
            };
            let old = self.row(priority, key);
            if let Some(old) = old {
                gone.push(old);
                self.waiting.push_back((version, old));
            }
            let id = (priority, key.clone());
            let placed = match change {
                Change::Put(entry) => Some(self.try_place(entry.clone(), old)?),
                Change::Take(..) => None,
            };
            let Kind::Layers(_, ids) = &mut self.kind else { return None };
            match placed {
                Some(placed) => {
                    come.push(placed.clone());
                    ids.insert(id, placed);
                }
                None => {
                    ids.remove(&id);
                }
            }
        }
        if let Kind::Layers(stack, ids) = &mut self.kind {
            // Many changes at once are built at once.
            if come.len() + gone.len() > OVERLAY {
                let seed = stack.seed();
                *stack = Stack::new(Layers::new(&self.shape, ids.values().cloned().collect(), seed), seed);
            } else {
                stack.change(&gone, &come);
            }
        }
        self.rebuild_if_full();
        Some(())
    }

    // ---- what is done by and by --------------------------------------------------------------------------------------------

    /// How many changes lie above what was built; 0 while a new main is being built.
    pub fn unmerged(&self) -> usize {
        match &self.kind {
            Kind::Layers(stack, _) if !stack.is_building() => stack.load(),
            _ => 0,
        }
    }

    /// Builds all anew, at once, if nobody builds for so long that what lies above makes look-ups slow.
    fn rebuild_if_full(&mut self) {
        if let Kind::Layers(stack, ids) = &mut self.kind
            && stack.load() >= 16 * OVERLAY
        {
            let seed = stack.seed();
            *stack = Stack::new(Layers::new(&self.shape, ids.values().cloned().collect(), seed), seed);
        }
    }

    /// Begins to build a new main, if there is what changed: run the task, then give the result to [`Editor::merged`].
    pub fn begin(&mut self) -> Option<Task> {
        match &mut self.kind {
            Kind::Layers(stack, _) if !stack.is_building() && stack.load() > 0 => Some(stack.begin()),
            _ => None,
        }
    }

    /// A new main has been built; [`Editor::open`] is to be published.
    pub fn merged(&mut self, main: Layer) {
        if let Kind::Layers(stack, _) = &mut self.kind {
            stack.merged(main);
        }
    }

    /// All readers have come to `version`: what was left up to it is used again.
    pub fn release(&mut self, version: u64) {
        match &mut self.kind {
            Kind::Exact(exact) => exact.release(version),
            Kind::Prefixes(prefixes) => prefixes.release(version),
            // Who builds knows entries by their rows.
            Kind::Layers(stack, _) if stack.is_building() => return,
            _ => {}
        }
        while let Some(&(left, row)) = self.waiting.front()
            && left <= version
        {
            self.free.push(row);
            self.waiting.pop_front();
        }
    }

    /// Entries that may be put in before rows must be released.
    pub fn room(&self) -> usize {
        self.free.len() + (self.rows.capacity() - self.next_row) as usize
    }

    // ---- rows --------------------------------------------------------------------------------------------------------------

    /// Writes the row of an entry, which keeps the turn of the one it takes the place of.
    fn write(&mut self, entry: &OpenEntry, old: Option<u32>) -> Option<u32> {
        let row = match self.free.pop() {
            Some(row) => row,
            None if self.next_row < self.rows.capacity() => {
                self.next_row += 1;
                self.next_row - 1
            }
            None => return None,
        };
        let turn = old.map_or(self.turn, |old| self.rows.get(old.into()).turn());
        self.turn += u64::from(old.is_none());
        self.rows.write(row, entry.found(), &entry.args, turn);
        Some(row)
    }

    fn try_place(&mut self, entry: OpenEntry, old: Option<u32>) -> Option<Arc<Placed>> {
        let row = self.write(&entry, old)?;
        let turn = self.rows.get(row.into()).turn();
        let before = u64::from(!entry.priority) << 16 | u64::from(0xffff - entry.prefix(&self.shape) as u16);
        let rank = u128::from(before) << 64 | u128::from(turn);
        Some(Arc::new(Placed::new(&self.shape, &self.slots, entry, row, rank)))
    }

    fn place(&mut self, entry: OpenEntry, old: Option<u32>) -> Arc<Placed> {
        let spare = entry.clone();
        self.try_place(entry, old)
            .unwrap_or_else(|| Arc::new(Placed::new(&self.shape, &self.slots, spare, 0, u128::MAX)))
    }

    /// What an entry wants as the words of a key.
    fn pack(&self, key: &[KeyMatch]) -> Vec<u64> {
        let mut words = vec![0; self.shape.words_of(&self.slots)];
        for ((slot, part), want) in self.slots.iter().zip(&self.shape.parts).zip(key) {
            let (KeyMatch::Masked { value, .. } | KeyMatch::Range { low: value, .. }) = *want;
            words[slot.word] |= (value as u64) << slot.shift;
            if part.width > 64 {
                words[slot.word + 1] |= (value >> 64) as u64;
            }
        }
        words
    }

    fn is_exact(&self, key: &[KeyMatch]) -> bool {
        let full = |(want, part): (&KeyMatch, &Part)| matches!(want, KeyMatch::Masked { mask, .. } if *mask == super::ones(part.width));
        key.iter().zip(&self.shape.parts).all(full)
    }
}

/// Whether changes can be made in place, so far as time has no part in it.
fn in_place(shape: &Shape) -> bool {
    !shape.ordered() && !shape.parts.is_empty() && shape.words() <= crate::table::MAX_WORDS
}

/// The prefix that the only part of a key wants.
fn prefix(key: &[KeyMatch]) -> (u128, u8) {
    match key {
        [KeyMatch::Masked { value, mask }] => (*value, mask.count_ones() as u8),
        _ => (0, 0),
    }
}
