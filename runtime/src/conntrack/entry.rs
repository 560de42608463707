//! One connection: key, state and timers in as few cache lines as they fit.
//!
//! Every word is an atomic, so nothing here can be undefined however threads race; what makes an entry *consistent* is its
//! control word:
//!
//! ```text
//! version·32 | … | LABELLED REPLIED SWAPPED DOOMED LIVE LOCKED
//! free ──init──▶ LIVE ──claim──▶ free                        (a worker ended it, takes it out of its bucket, reuses it)
//!                LIVE ──doom───▶ DOOMED ──claim──▶ free      (another thread ended it; a worker does the rest)
//! ```
//!
//! The version rises whenever a locked section ends and whenever the entry is made or claimed. With one worker nobody locks:
//! that worker alone writes, but for the step from `LIVE` to `DOOMED`, which is why bits are only ever set by
//! read-modify-write. With several, whoever writes holds `LOCKED`, and readers that do not lock compare versions.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, spin_loop};

use super::memory::{AllZero, prefetch};

/// Bits of the control word.
pub mod ctl {
    /// A worker is writing.
    pub const LOCKED: u64 = 1;
    /// Packets find it.
    pub const LIVE: u64 = 1 << 1;
    /// Ended by a thread that may not change buckets; a worker will take it out.
    pub const DOOMED: u64 = 1 << 2;
    /// The original direction is the one in which the higher endpoint sends.
    pub const SWAPPED: u64 = 1 << 3;
    /// A packet in the reply direction was accepted.
    pub const REPLIED: u64 = 1 << 4;
    /// It has a label, kept beside the entries.
    pub const LABELLED: u64 = 1 << 5;
    /// One version.
    pub const VERSION: u64 = 1 << 32;
}
use ctl::{DOOMED, LABELLED, LIVE, LOCKED, REPLIED, SWAPPED, VERSION};

/// Between workers, writes that would prolong a life by less than this are left out: the clock of connections has milliseconds.
const TICK_NS: u64 = 1_000_000;

/// A connection with a key of `K` words.
#[repr(C, align(64))]
pub struct Entry<const K: usize> {
    key: [AtomicU64; K],
    ctl: AtomicU64,
    expires: AtomicU64,
    mark: AtomicU32,
    /// For what comes later: the number of a record with translations, helper and time-outs.
    extension: AtomicU32,
    /// TCP: sequence numbers of both ends, the lower endpoint's first, and one word with the rest. Others: `rest` alone.
    seq: [AtomicU64; 2],
    rest: AtomicU64,
}

const _: () = assert!(size_of::<Entry<2>>() == 64 && size_of::<Entry<5>>() == 128);
const _: () = assert!(core::mem::offset_of!(Entry<5>, seq) == 64);

// SAFETY: made of atomic integers only.
unsafe impl<const K: usize> AllZero for Entry<K> {}

/// What a dump says of an entry.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<const K: usize> {
    /// Its key.
    pub key: [u64; K],
    /// Its control word.
    pub ctl: u64,
    /// When it ends.
    pub expires: u64,
    /// Its mark.
    pub mark: u32,
    /// Its last word.
    pub rest: u64,
}

impl<const K: usize> Entry<K> {
    /// Asks for its lines.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch(&self.key);
        if K > 2 {
            prefetch(&self.seq);
        }
    }

    /// The control word.
    #[inline(always)]
    pub fn ctl(&self) -> u64 {
        self.ctl.load(Ordering::Acquire)
    }

    /// Whether this is its key. Says nothing of whether it lives.
    #[inline(always)]
    pub fn is(&self, key: &[u64; K]) -> bool {
        let mut difference = 0;
        for (mine, other) in self.key.iter().zip(key) {
            difference |= mine.load(Ordering::Relaxed) ^ other;
        }
        difference == 0
    }

    /// Whether it lives and has this key.
    #[inline(always)]
    pub fn is_live(&self, key: &[u64; K]) -> bool {
        self.ctl() & LIVE != 0 && self.is(key)
    }

    /// Its key, also after its end until it is made anew.
    #[inline(always)]
    pub fn key(&self) -> [u64; K] {
        core::array::from_fn(|i| self.key[i].load(Ordering::Relaxed))
    }

    /// When it ends.
    #[inline(always)]
    pub fn expires(&self) -> u64 {
        self.expires.load(Ordering::Relaxed)
    }

    /// Whether a new end is so near to the old that it need not be written.
    #[inline(always)]
    pub fn ends_about(&self, expires: u64) -> bool {
        expires.wrapping_sub(self.expires()) < TICK_NS
    }

    /// Sets when it ends.
    #[inline(always)]
    pub fn set_expires(&self, expires: u64) {
        self.expires.store(expires, Ordering::Relaxed);
    }

    /// Its mark.
    #[inline(always)]
    pub fn mark(&self) -> u32 {
        self.mark.load(Ordering::Relaxed)
    }

    /// Sets its mark.
    pub fn set_mark(&self, mark: u32) {
        self.mark.store(mark, Ordering::Relaxed);
    }

    /// Its last word: for protocols other than TCP, all the state there is.
    #[inline(always)]
    pub fn rest(&self) -> u64 {
        self.rest.load(Ordering::Relaxed)
    }

    /// Sets its last word.
    #[inline(always)]
    pub fn set_rest(&self, rest: u64) {
        self.rest.store(rest, Ordering::Relaxed);
    }

    /// TCP's words: the sequence numbers of the end that sends when `swapped`, those of the other, and the rest with the
    /// sender's half low.
    #[inline(always)]
    pub fn tcp(&self, swapped: bool) -> (u64, u64, u64) {
        let end = usize::from(swapped);
        (
            self.seq[end].load(Ordering::Relaxed),
            self.seq[1 - end].load(Ordering::Relaxed),
            self.rest().rotate_right(32 * end as u32),
        )
    }

    /// Sets TCP's words.
    #[inline(always)]
    pub fn set_tcp(&self, swapped: bool, (src, dst, rest): (u64, u64, u64)) {
        let end = usize::from(swapped);
        self.seq[end].store(src, Ordering::Relaxed);
        self.seq[1 - end].store(dst, Ordering::Relaxed);
        self.set_rest(rest.rotate_left(32 * end as u32));
    }

    /// Makes a free entry, which nobody can find yet, live.
    pub fn init(&self, key: &[u64; K], swapped: bool, expires: u64, tcp: (u64, u64, u64)) {
        fence(Ordering::Release); // whoever reads what follows sees that the last life is over
        for (mine, &other) in self.key.iter().zip(key) {
            mine.store(other, Ordering::Relaxed);
        }
        self.expires.store(expires, Ordering::Relaxed);
        self.mark.store(0, Ordering::Relaxed);
        self.extension.store(0, Ordering::Relaxed);
        self.set_tcp(swapped, tcp);
        let version = self.ctl.load(Ordering::Relaxed) & !(VERSION - 1);
        let bits = LIVE | if swapped { SWAPPED } else { 0 };
        self.ctl.store(version.wrapping_add(VERSION) | bits, Ordering::Release);
    }

    /// Opens the entry for changes if it is alive with this key, and gives its control word; locked meanwhile if workers share
    /// the table. [`Entry::leave`] must follow.
    #[inline(always)]
    pub fn enter(&self, shared: bool, key: &[u64; K]) -> Option<u64> {
        let ctl = if shared { self.lock() } else { self.ctl() };
        if ctl & LIVE != 0 && self.is(key) {
            return Some(ctl);
        }
        if shared {
            self.unlock(ctl, 0);
        }
        None
    }

    /// Ends changes to the entry: sets bits in the control word that [`Entry::enter`] gave.
    #[inline(always)]
    pub fn leave(&self, shared: bool, ctl: u64, bits: u64) {
        if shared {
            self.unlock(ctl, bits);
        } else if bits & !ctl != 0 {
            // Another thread may doom the entry meanwhile: no plain write.
            self.ctl.fetch_or(bits, Ordering::Relaxed);
        }
    }

    /// Locks the entry if it is alive; the control word without the lock.
    fn lock(&self) -> u64 {
        loop {
            let ctl = self.ctl() & !LOCKED;
            if ctl & LIVE == 0 {
                return ctl;
            }
            if self.ctl.compare_exchange_weak(ctl, ctl | LOCKED, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                fence(Ordering::Release);
                return ctl;
            }
            spin_loop();
        }
    }

    /// Undoes [`Entry::lock`], which gave `ctl`.
    #[inline]
    fn unlock(&self, ctl: u64, bits: u64) {
        if ctl & LIVE != 0 {
            self.ctl.store(ctl.wrapping_add(VERSION) | bits, Ordering::Release);
        }
    }

    /// Runs `look` on the entry without writing to it. If it is alive with this key and was not changed meanwhile, the
    /// result holds.
    #[inline(always)]
    pub fn look<R>(&self, shared: bool, key: &[u64; K], look: impl FnOnce(u64) -> R) -> Option<R> {
        let ctl = self.ctl();
        if ctl & (LIVE | LOCKED) != LIVE || !self.is(key) {
            return None;
        }
        let result = look(ctl);
        if shared {
            fence(Ordering::Acquire);
            if self.ctl.load(Ordering::Relaxed) != ctl {
                return None;
            }
        }
        Some(result)
    }

    /// Ends an entry for a worker, which must then take it out of its bucket. `ended` judges it as it is when it ends.
    /// False if it was not alive, or is not to end.
    pub fn claim(&self, ended: impl Fn() -> bool) -> bool {
        self.end(LIVE, 0, ended)
    }

    /// Takes over an entry that another thread doomed; the worker must then take it out of its bucket.
    pub fn claim_doomed(&self) -> bool {
        self.end(DOOMED, 0, || true)
    }

    /// Ends an entry for a thread that is no worker.
    pub fn doom(&self, ended: impl Fn() -> bool) -> bool {
        self.end(LIVE, DOOMED, ended)
    }

    #[cold]
    fn end(&self, from: u64, to: u64, ended: impl Fn() -> bool) -> bool {
        loop {
            let ctl = self.ctl();
            if ctl & from == 0 || !ended() {
                return false;
            }
            // Whoever changes what `ended` looks at raises the version, so that this fails and looks again.
            let next = (ctl & !(LIVE | DOOMED) | to).wrapping_add(VERSION);
            let left = ctl & LOCKED == 0
                && self.ctl.compare_exchange_weak(ctl, next, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            if left {
                return true;
            }
            spin_loop();
        }
    }

    /// The entry as it is, if it lives: the same connection throughout, its parts perhaps a packet apart.
    pub fn snapshot(&self) -> Option<Snapshot<K>> {
        for _ in 0..8 {
            let ctl = self.ctl();
            if ctl & LIVE == 0 {
                return None;
            }
            let snapshot =
                Snapshot { key: self.key(), ctl, expires: self.expires(), mark: self.mark(), rest: self.rest() };
            fence(Ordering::Acquire);
            if self.ctl.load(Ordering::Relaxed) == ctl {
                return Some(snapshot);
            }
            spin_loop();
        }
        None
    }
}

/// Whether a packet that was `swapped` or not goes in the reply direction of an entry with this control word.
#[inline(always)]
pub fn is_reply(ctl: u64, swapped: bool) -> bool {
    (ctl & SWAPPED != 0) != swapped
}

/// Whether an entry with this control word has seen both directions.
#[inline(always)]
pub fn has_replied(ctl: u64) -> bool {
    ctl & REPLIED != 0
}

/// Whether an entry with this control word has a label.
#[inline(always)]
pub fn has_label(ctl: u64) -> bool {
    ctl & LABELLED != 0
}
