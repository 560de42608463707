//! Arrays that are as large as they may ever become and cost only what has been touched.
//!
//! In goes a number of items; out comes a slice of zeroes. The allocator takes fresh pages from the system for sizes like
//! these, and the system hands out memory page by page at first touch, so a table for three million connections starts at
//! a few pages and grows without ever being copied. Nothing here is shrunk or moved.

use core::ops::Deref;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Types of which zeroed memory is a value, and that need no drop.
///
/// # Safety
/// Every bit of the type may be zero.
pub unsafe trait AllZero {}

/// Where items begin: two lines, because processors fetch lines in pairs.
const ALIGN: usize = 128;

/// A slice of `len` items, all zero at first.
pub struct Zeroed<T: AllZero> {
    base: NonNull<u8>,
    layout: Layout,
    items: NonNull<T>,
    len: usize,
}

// SAFETY: it owns its memory, as a box of a slice would.
unsafe impl<T: AllZero + Send> Send for Zeroed<T> {}
// SAFETY: it only ever lends `&[T]`.
unsafe impl<T: AllZero + Sync> Sync for Zeroed<T> {}

impl<T: AllZero> Zeroed<T> {
    /// Reserves `len` items.
    ///
    /// # Panics
    /// When the size overflows; when there is no address space left, it ends the process as any allocation does.
    pub fn new(len: usize) -> Zeroed<T> {
        assert!(align_of::<T>() <= ALIGN && size_of::<T>() > 0);
        let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(ALIGN));
        // An alignment of 16 and no more: above it, std clears the memory by hand, which touches every page.
        let layout = bytes
            .and_then(|bytes| Layout::from_size_align(bytes, 16).ok())
            .expect("a table that fits the address space");
        // SAFETY: the layout's size is at least ALIGN.
        let memory = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(memory) else { handle_alloc_error(layout) };
        let skip = base.as_ptr().align_offset(ALIGN);
        assert!(skip < ALIGN);
        // SAFETY: `skip < ALIGN`, and the layout has room for ALIGN bytes beside the items.
        let items = unsafe { base.add(skip) }.cast();
        Zeroed { base, layout, items, len }
    }
}

impl<T: AllZero> Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` made room for `len` items at this aligned address; zeroes are values of `T`, and `T`s written since
        // were written through `&T`. The memory lives as long as `self`.
        unsafe { core::slice::from_raw_parts(self.items.as_ptr(), self.len) }
    }
}

impl<T: AllZero> Drop for Zeroed<T> {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}

/// Asks for the line that holds `item`, without waiting for it.
#[inline(always)]
pub fn prefetch<T>(item: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing; any address is allowed, and this one is valid.
        unsafe { _mm_prefetch::<_MM_HINT_T0>((&raw const *item).cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = item;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    // SAFETY: an atomic integer may be zero.
    unsafe impl AllZero for AtomicU64 {}

    #[test]
    fn a_reservation_is_zero_and_aligned() {
        let words: Zeroed<AtomicU64> = Zeroed::new(1 << 20);
        assert_eq!(words.len(), 1 << 20);
        assert_eq!(words.as_ptr() as usize % ALIGN, 0);
        assert!([0, 1, 4095, (1 << 20) - 1].iter().all(|&i| words[i].load(crate::sync::Ordering::Relaxed) == 0));
    }
}
