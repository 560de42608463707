//! The one door to atomics, so that a model checker can stand in for them.
//!
//! No code here waits for longer than another worker needs for a few dozen instructions: whoever holds a spin bit is a
//! worker on a processor of its own, never a thread that may be put to sleep.

pub use core::hint::spin_loop;
pub use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// How often [`try_lock`] looks again.
const TRIES: usize = 256;

/// The lock. Not for the packet path.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock, if it is to be had soon.
pub fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..TRIES {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => spin_loop(),
        }
    }
    None
}

/// Keeps its content on cache lines of its own (two, because processors fetch lines in pairs).
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(pub T);

/// A count that one thread adds to and others read: no locked instruction.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds, in the thread that owns the count.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// The count so far, from any thread.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
