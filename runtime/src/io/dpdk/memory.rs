//! Memory for packet buffers where no hugepages are set aside.
//!
//! In: how many buffers. Out: a pool in pages of 2 MiB that the kernel makes up on the spot (transparent hugepages), as
//! no user has to set up anything for that. Never: memory that a device or another process could reach.
//!
//! A burst touches two places in each of its packets, every packet lies on a page of its own, and the processor remembers 64
//! small pages: with small pages receiving and sending cost nearly twice as much. DPDK's own memory without hugepages is a
//! file that cannot be mapped in large pages, therefore this.

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};

use dpdk_sys::{rte_mbuf, rte_mempool, rte_pktmbuf_pool_private};

use super::error::last_errno;

/// The size of a large page.
const PAGE: usize = 2 << 20;

/// Makes a pool of `mbufs` buffers of `room` bytes, headroom included; an error number where that fails.
pub(super) fn pool(name: &CStr, mbufs: u32, cache: u32, room: u16) -> Result<NonNull<rte_mempool>, i32> {
    let element = size_of::<rte_mbuf>() as u32 + u32::from(room);
    let private = size_of::<rte_pktmbuf_pool_private>() as u32;
    let any_socket = -1;
    let flags = dpdk_sys::RTE_MEMPOOL_F_NO_IOVA_CONTIG; // no device reads it, so buffers may cross pages
    // SAFETY: the name is a C string that DPDK copies.
    let pool =
        unsafe { dpdk_sys::rte_mempool_create_empty(name.as_ptr(), mbufs, element, cache, private, any_socket, flags) };
    let pool = NonNull::new(pool).ok_or_else(last_errno)?;
    fill(pool.as_ptr(), mbufs, room).map(|()| pool).inspect_err(|_| {
        // SAFETY: the pool was just made, and nobody else has it.
        unsafe { dpdk_sys::rte_mempool_free(pool.as_ptr()) };
    })
}

/// Gives an empty pool its memory and its buffers.
fn fill(pool: *mut rte_mempool, mbufs: u32, room: u16) -> Result<(), i32> {
    // SAFETY: returns the name of the implementation of pools that DPDK prefers, a static string.
    let ops = unsafe { dpdk_sys::rte_mbuf_best_mempool_ops() };
    // SAFETY: the pool is empty; the name is that of an implementation.
    let result = unsafe { dpdk_sys::rte_mempool_set_ops_byname(pool, ops, ptr::null_mut()) };
    if result < 0 {
        return Err(result);
    }
    // SAFETY: plain numbers, of which all zeros is a value.
    let mut private: rte_pktmbuf_pool_private = unsafe { std::mem::zeroed() };
    private.mbuf_data_room_size = room;
    // SAFETY: the pool was made with room for this, which is copied.
    unsafe { dpdk_sys::rte_pktmbuf_pool_init(pool, (&raw mut private).cast()) };
    let (mut chunk, mut align) = (0, 0);
    // SAFETY: the pool is alive; both numbers are written.
    let bytes =
        unsafe { dpdk_sys::rte_mempool_op_calc_mem_size_default(pool, mbufs, 0, &raw mut chunk, &raw mut align) };
    let bytes = usize::try_from(bytes).map_err(|_| libc::ENOMEM)?;
    let memory = Mapping::new(bytes.next_multiple_of(PAGE))?;
    // SAFETY: the memory is ours and becomes the pool's, which unmaps it by `unmap` when it is freed.
    let result = unsafe {
        dpdk_sys::rte_mempool_populate_virt(
            pool,
            memory.addr.cast(),
            memory.len,
            PAGE,
            Some(unmap),
            memory.len as *mut c_void,
        )
    };
    if result < 0 {
        return Err(result);
    }
    std::mem::forget(memory);
    // SAFETY: initialises each buffer of the pool, which nobody uses yet.
    unsafe { dpdk_sys::rte_mempool_obj_iter(pool, Some(dpdk_sys::rte_pktmbuf_init), ptr::null_mut()) };
    Ok(())
}

/// Private memory, aligned to large pages.
struct Mapping {
    addr: *mut c_void,
    len: usize,
}

impl Mapping {
    fn new(len: usize) -> Result<Mapping, i32> {
        let whole = len.checked_add(PAGE).ok_or(libc::ENOMEM)?;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, wherever the kernel likes.
        let start = unsafe { libc::mmap(ptr::null_mut(), whole, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(libc::ENOMEM);
        }
        let before = start.align_offset(PAGE);
        let addr = start.wrapping_byte_add(before);
        Mapping { addr: start, len: before }.unmap();
        Mapping { addr: addr.wrapping_byte_add(len), len: PAGE - before }.unmap();
        // SAFETY: advice on a mapping of ours; where the kernel does not take it, pages stay small.
        unsafe { libc::madvise(addr, len, libc::MADV_HUGEPAGE) };
        Ok(Mapping { addr, len })
    }

    fn unmap(self) {}
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: whole pages of a mapping of ours, which nobody uses any more.
            unsafe { libc::munmap(self.addr, self.len) };
        }
    }
}

/// Called by DPDK when it frees a pool: once, with what `fill` gave it.
unsafe extern "C" fn unmap(memory: *mut dpdk_sys::rte_mempool_memhdr, len: *mut c_void) {
    // SAFETY: DPDK hands over its record of the memory, which is alive for this call.
    let addr = unsafe { (*memory).addr };
    Mapping { addr, len: len as usize }.unmap();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_aligned_and_usable() {
        let memory = Mapping::new(2 * PAGE).unwrap();
        assert_eq!(memory.addr as usize % PAGE, 0);
        let last = memory.addr.cast::<u8>().wrapping_add(memory.len - 1);
        // SAFETY: the last byte of the mapping.
        unsafe { last.write(1) };
        // SAFETY: as above.
        assert_eq!(unsafe { last.read() }, 1);
        assert_eq!(Mapping::new(usize::MAX / 2).err(), Some(libc::ENOMEM));
    }
}
