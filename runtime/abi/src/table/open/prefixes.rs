//! Prefixes that come and go: changes of a trie in place.
//!
//! A change of one prefix makes leaves anew that lie in its range. A prefix that comes takes the leaves whose prefix is not
//! longer; one that goes leaves its leaves to the next shorter one, which is the same for all of its range. A node that changes
//! is written aside, with what leads to it changed by one store; where only leaves change, they are stored in place. So the
//! work is that of the nodes in which the prefix ends, and of those below that it shows through.
//!
//! The lengths of prefixes and the prefixes themselves are kept beside the trie, for who writes and for who lists.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::super::BURST;
use super::super::hash::Full;
use super::super::lpm::PLAIN;
use super::super::trie::{LEADS, Node, Prefix, STEP, Trie, WAYS, digit};
use super::super::values::NONE;

/// Prefixes of a field of up to 128 bits, with rows as values.
#[derive(Debug)]
pub struct Prefixes {
    trie: Trie,
    /// Bits above the field, of 128.
    above: u32,
    book: Arc<Mutex<Book>>,
}

/// What only who writes needs.
#[derive(Debug, Default)]
pub struct Book {
    rows: HashMap<(u128, u8), u32>,
    /// The length of the prefix of each row.
    lengths: Vec<u8>,
    space: Space,
}

/// Which words of a trie are free.
#[derive(Debug, Default)]
struct Space {
    next: usize,
    /// Free nodes by their words.
    free: Vec<Vec<u32>>,
    /// Nodes that a reader may be in, with the time from which on none is.
    waiting: VecDeque<(u64, u32, u8)>,
    /// A change ended for want of room: nodes may be free that are still led to.
    broken: bool,
}

impl Prefixes {
    /// A trie of prefixes with their rows; of a field of `width` bits.
    pub fn new(width: u8, prefixes: &[(u128, u8, u32)]) -> Prefixes {
        let above = 128 - u32::from(width);
        let mut book = Book::default();
        for &(bits, len, row) in prefixes {
            book.note(bits << above, len, row);
        }
        let all = book.rows.iter().map(|(&(bits, len), &value)| Prefix { bits, len, value });
        let mut trie = Trie::new(&mut all.collect::<Vec<_>>(), if width > 64 { PLAIN } else { 0 });
        book.space.next = trie.words.len();
        room(&mut trie.words, book.space.next);
        Prefixes { trie, above, book: Arc::new(Mutex::new(book)) }
    }

    /// The row of the longest prefix of a key, as 64 bits.
    #[inline(always)]
    pub fn lookup(&self, key: &[u64]) -> u64 {
        let (upper, lower) = self.bits(key);
        match self.trie.lookup(upper, lower) {
            NONE => super::super::MISS,
            row => row.into(),
        }
    }

    /// The rows of up to 32 keys.
    #[inline(always)]
    pub fn lookup_burst(&self, keys: &[u64], found: &mut [u64]) {
        let width = keys.len() / found.len().max(1);
        let mut upper = [0; BURST];
        upper.iter_mut().zip(keys.chunks_exact(width.max(1))).for_each(|(upper, key)| *upper = self.bits(key).0);
        let lower = |i: usize| self.bits(keys.get(i * width..).unwrap_or(&[])).1;
        let rows = self.trie.lookup_burst(found.len(), &upper, lower);
        let row = |row| if row == NONE { super::super::MISS } else { u64::from(row) };
        found.iter_mut().zip(rows).for_each(|(found, leaf)| *found = row(leaf));
    }

    #[inline(always)]
    fn bits(&self, key: &[u64]) -> (u64, u64) {
        let word = |at: usize| key.get(at).copied().unwrap_or(0);
        if self.above >= 64 {
            return (word(0) << (self.above - 64), 0);
        }
        let bits = (u128::from(word(0)) | u128::from(word(1)) << 64) << self.above;
        ((bits >> 64) as u64, bits as u64)
    }

    /// Bytes of what is looked up.
    pub fn memory(&self) -> usize {
        self.trie.memory()
    }

    /// Lines that a look-up reads at the most.
    pub fn worst_probes(&self) -> u32 {
        1 + 2 * (128 - self.above).saturating_sub(self.trie.first).div_ceil(STEP)
    }

    /// Lines that the look-up of a key reads, or more.
    pub fn probes(&self, key: &[u64]) -> u32 {
        let (upper, lower) = self.bits(key);
        1 + 2 * self.trie.nodes(upper, lower)
    }

    /// All prefixes: bits, length, row.
    pub fn list(&self) -> Vec<(u128, u8, u32)> {
        self.book().rows.iter().map(|(&(bits, len), &row)| (bits >> self.above, len, row)).collect()
    }

    /// Prefixes there are.
    pub fn len(&self) -> usize {
        self.book().rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The row of a prefix.
    pub fn row(&self, bits: u128, len: u8) -> Option<u32> {
        self.book().rows.get(&(bits << self.above, len)).copied()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- changes: by one thread at a time ----------------------------------------------------------------------------------

    /// The same in memory of its own: with room to grow, and an array that suits what is in it.
    pub fn copy(&self) -> Prefixes {
        let mut book = self.book();
        let mut trie = if book.space.broken || !self.trie.suits(book.rows.len()) {
            let all = book.rows.iter().map(|(&(bits, len), &value)| Prefix { bits, len, value });
            let trie = Trie::new(&mut all.collect::<Vec<_>>(), if self.above < 64 { PLAIN } else { 0 });
            book.space = Space { next: trie.words.len(), ..Space::default() };
            trie
        } else {
            // What waits does so for readers of the other memory.
            book.space.release(u64::MAX);
            self.trie.copy()
        };
        room(&mut trie.words, book.space.next);
        Prefixes { trie, above: self.above, book: self.book.clone() }
    }

    /// Whether a copy would have an array that suits it better.
    pub fn outgrown(&self) -> bool {
        !self.trie.suits(self.book().rows.len())
    }

    /// Puts a prefix in, or gives the one that is there another row.
    ///
    /// # Errors
    /// When memory is short: the same must be done to a [copy](Prefixes::copy).
    pub fn put(&self, bits: u128, len: u8, row: u32, now: u64) -> Result<(), Full> {
        let bits = bits << self.above;
        let mut book = self.book();
        book.space.has_room(&self.trie)?;
        let old = book.rows.get(&(bits, len)).copied();
        book.note(bits, len, row);
        let Book { lengths, space, .. } = &mut *book;
        let mut edit = Edit { trie: &self.trie, space, now, new: row };
        match old {
            Some(old) => edit.range(bits, len, &|leaf| leaf == old || leaf == row),
            None => {
                edit.range(bits, len, &|leaf| leaf == NONE || lengths.get(leaf as usize).is_some_and(|l| *l <= len))
            }
        }
    }

    /// Takes a prefix out that is there.
    ///
    /// # Errors
    /// As [`Prefixes::put`].
    pub fn take(&self, bits: u128, len: u8, old: u32, now: u64) -> Result<(), Full> {
        let bits = bits << self.above;
        let mut book = self.book();
        book.space.has_room(&self.trie)?;
        book.rows.remove(&(bits, len));
        let new = book.cover(&self.trie, bits, len);
        let mut edit = Edit { trie: &self.trie, space: &mut book.space, now, new };
        edit.range(bits, len, &|leaf| leaf == old)
    }

    /// Nodes that were left before `now` may be written again.
    pub fn release(&self, now: u64) {
        self.book().space.release(now);
    }
}

/// Adds words for nodes to come behind those that were taken.
fn room(words: &mut Vec<AtomicU64>, taken: usize) {
    let more = (taken + taken / 2 + 4096).saturating_sub(words.len());
    words.reserve_exact(more);
    words.extend((0..more).map(|_| AtomicU64::new(0)));
}

impl Book {
    fn note(&mut self, bits: u128, len: u8, row: u32) {
        self.rows.insert((bits, len), row);
        if self.lengths.len() <= row as usize {
            self.lengths.resize((row as usize + 1).next_power_of_two(), 0);
        }
        self.lengths[row as usize] = len;
    }

    /// The row of the longest prefix that covers a prefix and is shorter.
    fn cover(&self, trie: &Trie, bits: u128, len: u8) -> u32 {
        let (covered, depth) = trie.covered(bits, u32::from(len));
        let shorter = (depth.unwrap_or(0) as u8..len).rev();
        let mut found = shorter
            .filter(|len| depth.is_none_or(|depth| u32::from(*len) > depth))
            .filter_map(|len| self.rows.get(&(bits & !u128::MAX.checked_shr(len.into()).unwrap_or(0), len)).copied());
        found.next().unwrap_or(covered)
    }
}

impl Space {
    /// Whether a change that is not uncommonly large will find room.
    fn has_room(&self, trie: &Trie) -> Result<(), Full> {
        if self.broken || self.next + 32 * (2 + WAYS / 2) > trie.words.len() { Err(Full) } else { Ok(()) }
    }

    fn take(&mut self, words: usize, capacity: usize) -> Result<u32, Full> {
        if let Some(at) = self.free.get_mut(words).and_then(Vec::pop) {
            return Ok(at);
        }
        if self.next + words > capacity {
            self.broken = true;
            return Err(Full);
        }
        self.next += words;
        Ok((self.next - words) as u32)
    }

    fn leave(&mut self, at: u32, words: usize, now: u64) {
        self.waiting.push_back((now, at, words as u8));
    }

    fn release(&mut self, now: u64) {
        while let Some(&(left, at, words)) = self.waiting.front()
            && left <= now
        {
            let words = usize::from(words);
            if self.free.len() <= words {
                self.free.resize(words + 1, Vec::new());
            }
            self.free[words].push(at);
            self.waiting.pop_front();
        }
    }
}

/// One change of a trie: some leaves in a range become `new`.
struct Edit<'t> {
    trie: &'t Trie,
    space: &'t mut Space,
    now: u64,
    new: u32,
}

impl Edit<'_> {
    /// In the range of a prefix, changes the leaves that `is` holds of.
    fn range(&mut self, bits: u128, len: u8, is: &dyn Fn(u32) -> bool) -> Result<(), Full> {
        let (first, len) = (self.trie.first, u32::from(len));
        let way = (bits >> (128 - first)) as usize;
        let ways = if len < first { 1 << (first - len) } else { 1 };
        for top in &self.trie.top[way..way + ways] {
            let old = top.load(Ordering::Relaxed);
            let new = if len <= first { self.all(old, first, is)? } else { self.part(old, first, bits, len, is)? };
            if new != old {
                top.store(new, Ordering::Release);
            }
        }
        Ok(())
    }

    /// Changes everything below a leaf: what stands in its place then.
    fn all(&mut self, leaf: u32, depth: u32, is: &dyn Fn(u32) -> bool) -> Result<u32, Full> {
        if leaf & LEADS == 0 {
            return Ok(if is(leaf) { self.new } else { leaf });
        }
        let mut node = self.trie.node(leaf);
        let mut way = 0;
        while way < WAYS {
            let (old, end) = (node.ways[way], node.run_end(way));
            let new = self.all(old, depth + STEP, is)?;
            node.ways[way..end].fill(new);
            way = end;
        }
        if is(node.covered) {
            node.covered = self.new;
        }
        self.write(leaf, depth, &node)
    }

    /// Changes the range of a longer prefix below a leaf.
    fn part(&mut self, leaf: u32, depth: u32, bits: u128, len: u32, is: &dyn Fn(u32) -> bool) -> Result<u32, Full> {
        let mut node = self.trie.node(leaf);
        let way = digit(bits, depth);
        if len > depth + STEP {
            node.ways[way] = self.part(node.ways[way], depth + STEP, bits, len, is)?;
        } else {
            for way in way..way + (1 << (depth + STEP - len)) {
                node.ways[way] = self.all(node.ways[way], depth + STEP, is)?;
            }
        }
        self.write(leaf, depth, &node)
    }

    /// Writes a node in the place of what a leaf leads to: what leads to it.
    fn write(&mut self, leaf: u32, depth: u32, node: &Node) -> Result<u32, Full> {
        let trie = self.trie;
        let plain = depth < trie.plain;
        let runs = node.runs(plain);
        let had = (leaf & LEADS != 0).then(|| (leaf & !LEADS, trie.word(leaf & !LEADS)));
        let alone = node.ways.iter().all(|way| *way == node.ways[0]) && node.ways[0] & LEADS == 0;
        if let Some((at, old)) = had {
            if !alone && old == runs {
                let words = node.words(plain).enumerate().skip(1);
                words.for_each(|(k, word)| trie.words[at as usize + k].store(word, Ordering::Release));
                return Ok(leaf);
            }
            self.space.leave(at, words(old), self.now);
        }
        if alone {
            return Ok(node.ways[0]);
        }
        let at = self.space.take(words(runs), trie.words.len())?;
        for (k, word) in node.words(plain).enumerate() {
            trie.words[at as usize + k].store(word, Ordering::Release);
        }
        Ok(LEADS | at)
    }
}

/// Words of a node with these runs.
fn words(runs: u64) -> usize {
    2 + runs.count_ones() as usize / 2
}

impl Trie {
    /// Whether the array suits so many prefixes.
    fn suits(&self, prefixes: usize) -> bool {
        self.first >= Trie::first_of(prefixes)
    }

    fn copy(&self) -> Trie {
        let top = self.top.iter().map(|leaf| AtomicU32::new(leaf.load(Ordering::Relaxed))).collect();
        let words = self.words.iter().map(|word| AtomicU64::new(word.load(Ordering::Relaxed))).collect();
        Trie { first: self.first, plain: self.plain, top, words }
    }

    /// The node that a leaf leads to; of a value, one that is that everywhere.
    fn node(&self, leaf: u32) -> Node {
        if leaf & LEADS == 0 {
            return Node { ways: [leaf; WAYS], covered: leaf };
        }
        let at = leaf & !LEADS;
        let runs = self.word(at);
        let mut node = Node { ways: [0; WAYS], covered: self.leaf(at, 0) };
        let mut run = 0;
        for way in 0..WAYS {
            run += (runs >> way) as u32 & 1;
            node.ways[way] = self.leaf(at, run);
        }
        node
    }

    /// What covers the node in which a prefix ends, and at which bit that begins; nothing if it ends in the array.
    fn covered(&self, bits: u128, len: u32) -> (u32, Option<u32>) {
        if len <= self.first {
            return (NONE, None);
        }
        let mut depth = self.first;
        let mut leaf = self.top[(bits >> (128 - depth)) as usize].load(Ordering::Relaxed);
        while leaf & LEADS != 0 && len > depth + STEP {
            let node = self.node(leaf);
            leaf = node.ways[digit(bits, depth)];
            depth += STEP;
        }
        (if leaf & LEADS != 0 { self.leaf(leaf & !LEADS, 0) } else { leaf }, Some(depth))
    }
}

impl Node {
    /// Behind the run that begins at a way.
    fn run_end(&self, way: usize) -> usize {
        (way + 1..WAYS).find(|next| self.ways[*next] != self.ways[way]).unwrap_or(WAYS)
    }
}
