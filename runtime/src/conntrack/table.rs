//! The table: from a key to its entry, for one family of addresses.
//!
//! Two arrays: [buckets](super::bucket), of a line each, and [entries](super::entry). A look-up touches one bucket and one
//! entry; [`Tracker::prepare`](super::Tracker::prepare) asks for both lines of all packets of a burst before it needs any.
//!
//! **Growth.** The table grows by one bucket at a time (linear hashing, Litwin 1980), so no packet pays for a growth in one
//! blow. With `n` a power of two and `s < n` buckets split so far, a hash belongs to bucket `hash mod n`, or `hash mod 2n`
//! if the first is below `s`; splitting bucket `s` moves what now belongs to bucket `s + n` there. A round of splits begins
//! when there are five entries for each bucket, and each insertion then splits two buckets, so the round is over long before
//! buckets fill up. The *shape* (`n`, `s`) is one word. Both arrays are reserved at their largest, see
//! [memory](super::memory). The table does not shrink.
//!
//! **Bounds.** Buckets that overflow go on in overflow buckets, of which a chain has at most [`CHAIN`]; an insertion that
//! would need more is refused. With a keyed hash and this load that takes more luck than there is.
//!
//! **Several workers.** Insertion, removal and splitting hold the lock of the (first) bucket; the bucket of a key is looked up
//! again once locked. Whoever splits holds a flag that others do not wait for. Look-ups lock nothing: an entry found is
//! proven by its key. One not found may have been on the move, so bucket version and shape are compared, and the look-up
//! repeated if they changed.

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, spin_loop};

use super::bucket::{Bucket, PLACES, tag};
use super::entry::Entry;
use super::hash::Secret;
use super::memory::{AllZero, Zeroed, prefetch};
use super::slab::Slab;

/// Overflow buckets in a chain, at most.
pub const CHAIN: usize = 7;
/// Entries a bucket that start a round of splits.
const LOAD: usize = 5;
const FIRST_BUCKETS: usize = 64;

/// A label, beside the entries because few have one.
pub struct Label([AtomicU64; 2]);

// SAFETY: made of atomic integers only.
unsafe impl AllZero for Label {}

/// What became of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is in the table.
    New,
    /// Another live entry has this key.
    Found(u32),
    /// There is no place for it.
    Full,
}

/// A table of connections with keys of `K` words.
pub struct Table<const K: usize> {
    secret: Secret,
    entries: Zeroed<Entry<K>>,
    labels: Zeroed<Label>,
    buckets: Zeroed<Bucket>,
    overflow: Zeroed<Bucket>,
    /// `n - 1` in the low half, `s` in the high half.
    shape: AtomicU64,
    splitting: AtomicBool,
    overflow_used: AtomicU32,
    /// First of the free overflow buckets plus one, linked by `next`; changed only under `overflow_lock`.
    overflow_free: AtomicU32,
    overflow_lock: AtomicBool,
    shared: bool,
    /// Which entries are free.
    pub slab: Slab,
}

/// The shape of a table at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape(u64);

impl Shape {
    #[inline(always)]
    fn mask(self) -> usize {
        self.0 as u32 as usize
    }

    #[inline(always)]
    fn split(self) -> usize {
        (self.0 >> 32) as usize
    }

    #[inline(always)]
    fn bucket(self, hash: u64) -> usize {
        let narrow = hash as usize & self.mask();
        let wide = hash as usize & (self.mask() << 1 | 1);
        if narrow < self.split() { wide } else { narrow }
    }

    fn after_a_split(self) -> Shape {
        let (mask, split) = (self.mask(), self.split() + 1);
        let (mask, split) = if split > mask { (mask << 1 | 1, 0) } else { (mask, split) };
        Shape(mask as u64 | (split as u64) << 32)
    }
}

impl<const K: usize> Table<K> {
    /// A table of at most `max` connections for `workers` workers.
    pub fn new(max: usize, workers: usize, secret: Secret) -> Table<K> {
        let capacity = max + workers * super::slab::KEEP;
        let most = capacity.div_ceil(LOAD).next_power_of_two().max(FIRST_BUCKETS);
        Table {
            secret,
            entries: Zeroed::new(capacity),
            labels: Zeroed::new(capacity),
            buckets: Zeroed::new(most),
            overflow: Zeroed::new(most / 2),
            shape: AtomicU64::new(FIRST_BUCKETS as u64 - 1),
            splitting: AtomicBool::new(false),
            overflow_used: AtomicU32::new(0),
            overflow_free: AtomicU32::new(0),
            overflow_lock: AtomicBool::new(false),
            shared: workers > 1,
            slab: Slab::new(capacity),
        }
    }

    /// Entry `number`. Numbers come from this table.
    #[inline(always)]
    pub fn entry(&self, number: u32) -> &Entry<K> {
        &self.entries[number as usize]
    }

    /// Label of entry `number`, high then low half.
    pub fn label(&self, number: u32) -> [u64; 2] {
        self.labels[number as usize].0.each_ref().map(|half| half.load(Ordering::Relaxed))
    }

    /// Label of entry `number` if it still has this key: both halves of one write.
    #[cold]
    pub fn label_of(&self, number: u32, key: &[u64; K]) -> [u64; 2] {
        let Some(ctl) = self.entry(number).enter(self.shared, key) else {
            return [0; 2];
        };
        let label = self.label(number);
        self.entry(number).leave(self.shared, ctl, 0);
        label
    }

    /// Sets the label of entry `number`.
    pub fn set_label(&self, number: u32, label: [u64; 2]) {
        for (half, value) in self.labels[number as usize].0.iter().zip(label) {
            half.store(value, Ordering::Relaxed);
        }
    }

    /// The keyed hash.
    #[inline(always)]
    pub fn hash(&self, key: &[u64; K]) -> u64 {
        self.secret.hash(key)
    }

    /// The shape now.
    #[inline(always)]
    pub fn shape(&self) -> Shape {
        Shape(self.shape.load(Ordering::Acquire))
    }

    /// The bucket of a hash, whose line is asked for, and its tag.
    #[inline(always)]
    pub fn approach(&self, shape: Shape, hash: u64) -> (u32, u16) {
        let number = shape.bucket(hash);
        if let Some(bucket) = self.buckets.get(number) {
            prefetch(bucket);
        }
        (number as u32, tag(hash))
    }

    /// The first entry in a bucket whose tag fits, whose lines are asked for: a guess, to be proven by its key.
    #[inline(always)]
    pub fn guess(&self, bucket: u32, tag: u16) -> Option<u32> {
        let number = self.buckets.get(bucket as usize)?.first(tag)?;
        self.entries.get(number as usize)?.prefetch();
        Some(number)
    }

    /// The live entry with this key. It may have expired.
    pub fn find(&self, key: &[u64; K], hash: u64) -> Option<u32> {
        loop {
            let shape = self.shape();
            let bucket = &self.buckets[shape.bucket(hash)];
            let version = bucket.version();
            let found = self.find_in(bucket, key, tag(hash));
            if found.is_some() || !self.shared || (bucket.is_unmoved(version) && self.shape() == shape) {
                return found;
            }
            spin_loop();
        }
    }

    fn find_in(&self, first: &Bucket, key: &[u64; K], tag: u16) -> Option<u32> {
        self.chain(first).find_map(|bucket| bucket.find(tag, |number| self.entry(number).is_live(key)))
    }

    /// Makes an entry findable that was made live with this key.
    pub fn insert(&self, key: &[u64; K], hash: u64, number: u32) -> Inserted {
        self.grow();
        self.locked(hash, |first| {
            if let Some(found) = self.find_in(first, key, tag(hash)) {
                return Inserted::Found(found);
            }
            match self.place(first) {
                Some((bucket, place)) => {
                    bucket.put(place, tag(hash), number);
                    Inserted::New
                }
                None => Inserted::Full,
            }
        })
    }

    /// Takes an entry out of its bucket. It must have been claimed, and its key untouched since.
    pub fn remove(&self, number: u32) {
        let hash = self.hash(&self.entry(number).key());
        self.locked(hash, |first| {
            for bucket in self.chain(first) {
                if let Some(place) =
                    (0..PLACES).find(|&place| bucket.get(place).is_some_and(|(_, entry)| entry == number))
                {
                    return bucket.clear(place);
                }
            }
        });
    }

    /// Runs `act` on the bucket of a hash, locked if workers share the table.
    fn locked<R>(&self, hash: u64, act: impl FnOnce(&Bucket) -> R) -> R {
        if !self.shared {
            return act(&self.buckets[self.shape().bucket(hash)]);
        }
        loop {
            let number = self.shape().bucket(hash);
            let bucket = &self.buckets[number];
            bucket.lock();
            if self.shape().bucket(hash) == number {
                let result = act(bucket);
                bucket.unlock();
                return result;
            }
            bucket.unlock();
        }
    }

    fn chain<'a>(&'a self, first: &'a Bucket) -> impl Iterator<Item = &'a Bucket> {
        core::iter::successors(Some(first), |bucket| Some(&self.overflow[bucket.next()? as usize])).take(CHAIN + 1)
    }

    /// An empty place in a chain, which is made longer if it must.
    fn place<'a>(&'a self, first: &'a Bucket) -> Option<(&'a Bucket, usize)> {
        let mut bucket = first;
        for _ in 0..=CHAIN {
            if let Some(place) = bucket.empty() {
                return Some((bucket, place));
            }
            let next = match bucket.next() {
                Some(next) => next,
                None => self.extend(bucket)?,
            };
            bucket = &self.overflow[next as usize];
        }
        None
    }

    #[cold]
    fn extend(&self, bucket: &Bucket) -> Option<u32> {
        let number = self.with_overflow(|| match self.overflow_free.load(Ordering::Relaxed).checked_sub(1) {
            Some(free) => {
                let next = self.overflow[free as usize].next();
                self.overflow_free.store(next.map_or(0, |next| next + 1), Ordering::Relaxed);
                Some(free)
            }
            None => {
                let used = self.overflow_used.load(Ordering::Relaxed);
                self.overflow_used.store(used + 1, Ordering::Relaxed);
                ((used as usize) < self.overflow.len()).then_some(used)
            }
        })?;
        self.overflow[number as usize].set_next(None);
        bucket.set_next(Some(number));
        Some(number)
    }

    fn release(&self, number: u32) {
        self.with_overflow(|| {
            let free = self.overflow_free.load(Ordering::Relaxed).checked_sub(1);
            self.overflow[number as usize].set_next(free);
            self.overflow_free.store(number + 1, Ordering::Relaxed);
        });
    }

    fn with_overflow<R>(&self, act: impl FnOnce() -> R) -> R {
        while self.overflow_lock.swap(true, Ordering::Acquire) {
            spin_loop();
        }
        let result = act();
        self.overflow_lock.store(false, Ordering::Release);
        result
    }

    /// Splits up to two buckets if it is time.
    fn grow(&self) {
        let shape = self.shape();
        if shape.split() == 0 && self.slab.used() <= LOAD * (shape.mask() + 1) {
            return;
        }
        if shape.mask() + 1 >= self.buckets.len() || self.splitting.swap(true, Ordering::Acquire) {
            return;
        }
        for _ in 0..2 {
            self.split();
            if self.shape().split() == 0 {
                break;
            }
        }
        self.splitting.store(false, Ordering::Release);
    }

    #[cold]
    fn split(&self) {
        let shape = self.shape();
        let (old, new) = (&self.buckets[shape.split()], &self.buckets[shape.split() + shape.mask() + 1]);
        if self.shared {
            old.lock();
        }
        const MOST: usize = PLACES * (CHAIN + 1);
        let mut content = [(0u16, 0u32); MOST];
        let mut n = 0;
        for place in self.chain(old).flat_map(|bucket| (0..PLACES).filter_map(|place| bucket.get(place))) {
            self.entry(place.1).prefetch();
            content[n] = place;
            n += 1;
        }
        let (mut stay, mut go) = ([(0u16, 0u32); MOST], [(0u16, 0u32); MOST]);
        let (mut staying, mut going) = (0, 0);
        for &(tag, number) in &content[..n] {
            if self.hash(&self.entry(number).key()) & (shape.mask() as u64 + 1) == 0 {
                stay[staying] = (tag, number);
                staying += 1;
            } else {
                go[going] = (tag, number);
                going += 1;
            }
        }
        let (stay, go) = (&stay[..staying], &go[..going]);
        if self.rewrite(new, go) {
            self.shape.store(shape.after_a_split().0, Ordering::Release);
            let fits = self.rewrite(old, stay);
            assert!(fits, "a bucket holds a part of what it held");
        } else {
            self.rewrite(new, &[]); // no overflow bucket was left: this bucket stays as it is, and is tried again
        }
        if self.shared {
            old.unlock();
        }
    }

    /// Makes a chain hold just this. Readers may find less meanwhile, and look again.
    fn rewrite(&self, first: &Bucket, content: &[(u16, u32)]) -> bool {
        let mut rest = content;
        let mut bucket = first;
        loop {
            let (now, later) = rest.split_at(rest.len().min(PLACES));
            for place in 0..PLACES {
                match now.get(place) {
                    Some(&(tag, number)) => bucket.put(place, tag, number),
                    None => bucket.clear(place),
                }
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
            let Some(next) = bucket.next().or_else(|| self.extend(bucket)) else { return false };
            bucket = &self.overflow[next as usize];
        }
        let mut surplus = bucket.next();
        bucket.set_next(None);
        while let Some(number) = surplus {
            let bucket = &self.overflow[number as usize];
            (0..PLACES).for_each(|place| bucket.clear(place));
            surplus = bucket.next();
            self.release(number);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(max: usize) -> Table<2> {
        Table::new(max, 1, Secret::new(Some(5)))
    }

    fn add(table: &Table<2>, kept: &mut Vec<u32>, key: [u64; 2]) -> u32 {
        let number = table.slab.take(kept).unwrap();
        table.entry(number).init(&key, false, 1, (0, 0, 0));
        assert_eq!(table.insert(&key, table.hash(&key), number), Inserted::New);
        number
    }

    fn find(table: &Table<2>, key: [u64; 2]) -> Option<u32> {
        table.find(&key, table.hash(&key))
    }

    #[test]
    fn all_are_found_at_every_size() {
        let (table, mut kept) = (table(50_000), Vec::new());
        for n in 0..50_000u64 {
            let number = add(&table, &mut kept, [n, n * 7]);
            assert_eq!(find(&table, [n, n * 7]), Some(number));
            if n.is_power_of_two() || n == 49_999 {
                for m in 0..=n {
                    assert!(find(&table, [m, m * 7]).is_some(), "{m} of {n}");
                }
            }
        }
        assert!(table.shape().mask() + 1 >= 8192);
        assert_eq!(find(&table, [1, 1]), None);
    }

    #[test]
    fn what_is_removed_is_gone_and_its_place_is_used_again() {
        let (table, mut kept) = (table(1_000), Vec::new());
        for round in 0..200u64 {
            let numbers: Vec<_> = (0..100).map(|n| add(&table, &mut kept, [n, round])).collect();
            for (n, number) in numbers.into_iter().enumerate() {
                assert!(table.entry(number).claim(|| true));
                table.remove(number);
                table.slab.give(&mut kept, number);
                assert_eq!(find(&table, [n as u64, round]), None);
            }
        }
        assert_eq!(table.slab.used(), 100);
        assert!((0..64).all(|bucket| table.buckets[bucket].empty() == Some(0)));
    }

    #[test]
    fn a_second_entry_with_one_key_is_refused() {
        let (table, mut kept) = (table(10), Vec::new());
        let number = add(&table, &mut kept, [1, 2]);
        let other = table.slab.take(&mut kept).unwrap();
        table.entry(other).init(&[1, 2], false, 1, (0, 0, 0));
        assert_eq!(table.insert(&[1, 2], table.hash(&[1, 2]), other), Inserted::Found(number));
    }

    #[test]
    fn chains_overflow_to_a_bound_and_shrink_when_split() {
        let table = table(10_000);
        let mut kept = Vec::new();
        let shape = table.shape();
        let mut crowd = (0..).map(|n| [n, 9]).filter(|key| shape.bucket(table.hash(key)) == 0);
        for _ in 0..PLACES * (CHAIN + 1) {
            add(&table, &mut kept, crowd.next().unwrap());
        }
        let key = crowd.next().unwrap();
        let number = table.slab.take(&mut kept).unwrap();
        table.entry(number).init(&key, false, 1, (0, 0, 0));
        assert_eq!(table.insert(&key, table.hash(&key), number), Inserted::Full);
        let used = table.overflow_used.load(Ordering::Relaxed);
        table.split();
        assert!(table.insert(&key, table.hash(&key), number) == Inserted::New);
        let mut crowd = (0..).map(|n| [n, 9]).filter(|key| shape.bucket(table.hash(key)) == 0);
        for _ in 0..PLACES * (CHAIN + 1) {
            assert!(find(&table, crowd.next().unwrap()).is_some());
        }
        assert!(table.overflow_free.load(Ordering::Relaxed) > 0 || table.overflow_used.load(Ordering::Relaxed) > used);
    }
}
