//! Pools of packet buffers.
//!
//! In: how many buffers and how large. Out: buffers, and how many are out. Never: growth; an empty pool says no.

use std::ffi::{CStr, CString};
use std::ptr::NonNull;
use std::sync::Arc;

use dpdk_sys::{rte_mbuf, rte_mempool};

use super::error::{Error, errno_text, last_errno};
use super::{Eal, Mbuf, memory};

/// The usual room for data in a buffer, headroom not counted: a frame of 1,500 bytes with tags and tunnels fits.
pub const DATA_ROOM: u16 = dpdk_sys::RTE_MBUF_DEFAULT_DATAROOM as u16;
/// Buffers that a thread known to DPDK keeps for itself, at most; a multiple of what it takes at a time.
const CACHE: u32 = 256;
/// What a buffer needs beside its data: headroom, DPDK's header, alignment, its place in the pool's ring.
const OVERHEAD: u64 = 512;
/// What the EAL, rings and queues need beside buffers, in MiB.
const BASE_MIB: u64 = 48;

/// A pool of packet buffers; clones are handles of the same one, and threads may share it.
#[derive(Debug, Clone)]
pub struct Pool {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: NonNull<rte_mempool>,
    eal: Eal,
}

// SAFETY: DPDK's pools may be used from any thread at once.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Pool {
    /// Makes a pool of `mbufs` buffers with `data_room` bytes each (see [`DATA_ROOM`]). The name is unique in the process
    /// and at most 20 letters long.
    pub fn new(eal: &Eal, name: &str, mbufs: u32, data_room: u16) -> Result<Pool, Error> {
        let c_name = CString::new(name.replace('\0', "")).unwrap_or_default();
        let cache = CACHE.min(mbufs / 2);
        let room = data_room.saturating_add(dpdk_sys::RTE_PKTMBUF_HEADROOM as u16);
        let pool = match eal.memory_is_private() {
            true => memory::pool(&c_name, mbufs, cache, room),
            false => pool_in_eal_memory(&c_name, mbufs, cache, room),
        };
        match pool {
            Ok(pool) => Ok(Pool { inner: Arc::new(Inner { pool, eal: eal.clone() }) }),
            Err(errno) => Err(Error::Memory {
                pool: name.to_string(),
                mbufs,
                mib: Pool::memory_mib(mbufs, data_room),
                reason: errno_text(errno),
                help: eal.memory_help(),
            }),
        }
    }

    /// The memory that the EAL must start with for one pool of this size, in MiB.
    pub fn memory_mib(mbufs: u32, data_room: u16) -> u32 {
        let bytes = u64::from(mbufs) * (u64::from(data_room) + OVERHEAD);
        (BASE_MIB + bytes.div_ceil(1 << 20)).min(u64::from(u32::MAX)) as u32
    }

    /// An empty packet.
    #[inline]
    pub fn alloc(&self) -> Option<Mbuf> {
        // SAFETY: the pool lives as long as `self`.
        let mbuf = unsafe { dpdk_sys::shim_pktmbuf_alloc(self.raw()) };
        (!mbuf.is_null()).then_some(Mbuf(mbuf))
    }

    /// Fills `out` with empty packets; all of them or none.
    #[inline]
    pub fn alloc_bulk(&self, out: &mut [Mbuf]) -> bool {
        let first = out.as_mut_ptr().cast::<*mut rte_mbuf>();
        // SAFETY: the pool lives as long as `self`; an `Mbuf` is laid out as a pointer.
        unsafe { dpdk_sys::shim_pktmbuf_alloc_bulk(self.raw(), first, out.len() as u32) == 0 }
    }

    /// A packet with these bytes, or none where they do not fit into one buffer or no buffer is left.
    pub fn packet(&self, bytes: &[u8]) -> Option<Mbuf> {
        let mut mbuf = self.alloc()?;
        if !mbuf.append(bytes.len()) {
            mbuf.free();
            return None;
        }
        mbuf.head_mut().copy_from_slice(bytes);
        Some(mbuf)
    }

    /// Buffers that are free, those in threads' caches included. Exact while nobody uses the pool.
    pub fn available(&self) -> u32 {
        // SAFETY: the pool lives as long as `self`.
        unsafe { dpdk_sys::rte_mempool_avail_count(self.raw()) }
    }

    /// Buffers that are out. Exact while nobody uses the pool.
    pub fn in_use(&self) -> u32 {
        // SAFETY: the pool lives as long as `self`.
        unsafe { dpdk_sys::rte_mempool_in_use_count(self.raw()) }
    }

    /// Bytes of data that one buffer takes, headroom not counted.
    pub fn data_room(&self) -> u16 {
        // SAFETY: the pool lives as long as `self`.
        let room = unsafe { dpdk_sys::shim_pktmbuf_data_room(self.raw()) };
        room.saturating_sub(dpdk_sys::RTE_PKTMBUF_HEADROOM as u16)
    }

    pub(super) fn raw(&self) -> *mut rte_mempool {
        self.inner.pool.as_ptr()
    }
}

/// A pool in the memory that the EAL started with.
fn pool_in_eal_memory(name: &CStr, mbufs: u32, cache: u32, room: u16) -> Result<NonNull<rte_mempool>, i32> {
    let any_socket = -1;
    // SAFETY: the name is a C string that DPDK copies.
    let pool = unsafe { dpdk_sys::rte_pktmbuf_pool_create(name.as_ptr(), mbufs, cache, 0, room, any_socket) };
    NonNull::new(pool).ok_or_else(last_errno)
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the pool is alive, and nobody else has a handle.
        let in_use = unsafe { dpdk_sys::rte_mempool_in_use_count(self.pool.as_ptr()) };
        if in_use != 0 {
            // Some drivers (af_xdp) never give all of them back.
            tracing::debug!(in_use, "packet buffers are still out; their pool stays");
            std::mem::forget(self.eal.clone()); // and with it the memory
            return;
        }
        // SAFETY: as above, and no buffer is out.
        unsafe { dpdk_sys::rte_mempool_free(self.pool.as_ptr()) };
    }
}
