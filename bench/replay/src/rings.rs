//! Ring ports from the other side: what is put in is received by the port, what the port sends comes out.
//!
//! In: the name of a `net_ring` device that the program has started. Out: packets. Never: two threads on one end.

use std::ffi::{CStr, CString};
use std::ptr::NonNull;

use dpdk_sys::{rte_mbuf, rte_mempool};

/// Packets that are put in or taken out at a time, at most.
pub const BURST: usize = 32;

/// DPDK's ring.
#[repr(C)]
struct Ring {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn rings_in(device: *const libc::c_char) -> *mut Ring;
    fn rings_out(name: *const libc::c_char) -> *mut Ring;
    fn rings_divert(port: u16, device: *const libc::c_char, queues: u32, out: *mut Ring) -> i32;
    fn rings_put(ring: *mut Ring, pkts: *mut *mut rte_mbuf, n: u32) -> u32;
    fn rings_take(ring: *mut Ring, pkts: *mut *mut rte_mbuf, n: u32) -> u32;
    fn rings_own(pkts: *const *mut rte_mbuf, n: u32);
    fn rings_pool() -> *mut rte_mempool;
    fn rings_now() -> u64;
}

/// The time-stamp counter.
pub fn now() -> u64 {
    // SAFETY: reads a counter.
    unsafe { rings_now() }
}

/// Cycles of the time-stamp counter a second.
pub fn hz() -> f64 {
    // SAFETY: the EAL has been started, since there is a port.
    unsafe { dpdk_sys::rte_get_tsc_hz() as f64 }
}

/// A port from the other side.
pub struct Peer {
    into: NonNull<Ring>,
    out: NonNull<Ring>,
}

impl Peer {
    /// The other side of a device's port, once that has been started. From then on the port does not receive what it sends.
    pub fn of(device: &CStr) -> Option<Peer> {
        let (mut port, mut info) = (0, None);
        // SAFETY: a name with its terminator, and a place for the number.
        if unsafe { dpdk_sys::rte_eth_dev_get_port_by_name(device.as_ptr(), &raw mut port) } == 0 {
            // SAFETY: plain numbers and pointers, of which all zeros is a value.
            let place = info.insert(unsafe { std::mem::zeroed() });
            // SAFETY: writes what is known of the port.
            if unsafe { dpdk_sys::rte_eth_dev_info_get(port, place) } != 0 {
                return None;
            }
        }
        let queues = info?.nb_tx_queues;
        // SAFETY: a name with its terminator.
        let into = NonNull::new(unsafe { rings_in(device.as_ptr()) }).filter(|_| queues > 0)?;
        let name = CString::new(format!("replay_{port}")).ok()?;
        // SAFETY: a name with its terminator.
        let out = NonNull::new(unsafe { rings_out(name.as_ptr()) })?;
        // SAFETY: a port with so many queues; the function looks at what it changes before.
        let diverted = unsafe { rings_divert(port, device.as_ptr(), queues.into(), out.as_ptr()) };
        (diverted == 0).then_some(Peer { into, out })
    }

    /// Puts packets in, in order, as far as there is room; how many.
    pub fn put(&self, pkts: &[*mut rte_mbuf]) -> usize {
        // SAFETY: the ring lives as long as the process, and reads so many pointers.
        unsafe { rings_put(self.into.as_ptr(), pkts.as_ptr().cast_mut(), pkts.len() as u32) as usize }
    }

    /// Takes packets out; those that were there.
    pub fn take<'b>(&self, pkts: &'b mut [*mut rte_mbuf; BURST]) -> &'b [*mut rte_mbuf] {
        // SAFETY: the ring lives as long as the process, and writes so many pointers at most.
        let n = unsafe { rings_take(self.out.as_ptr(), pkts.as_mut_ptr(), BURST as u32) };
        // SAFETY: so many live packets, which are this thread's now.
        unsafe { rings_own(pkts.as_ptr(), n) };
        &pkts[..n as usize]
    }
}

/// The program's packet buffers.
pub struct Pool(NonNull<rte_mempool>);

impl Pool {
    /// The largest pool that the program has.
    pub fn of_program() -> Option<Pool> {
        // SAFETY: the EAL has been started, since there is a port.
        NonNull::new(unsafe { rings_pool() }).map(Pool)
    }

    /// Fills `pkts` with empty packets, all or none; whether it did.
    pub fn take(&self, pkts: &mut [*mut rte_mbuf]) -> bool {
        // SAFETY: the pool lives as long as its ports do, and writes so many pointers.
        unsafe { dpdk_sys::shim_pktmbuf_alloc_bulk(self.0.as_ptr(), pkts.as_mut_ptr(), pkts.len() as u32) == 0 }
    }
}

/// Gives packets back to their pools.
pub fn free(pkts: &[*mut rte_mbuf]) {
    // SAFETY: packets that came out of a ring belong to who took them.
    unsafe { dpdk_sys::shim_pktmbuf_free_bulk(pkts.as_ptr().cast_mut(), pkts.len() as u32) };
}

/// Tells DPDK of this thread, which may then keep buffers for itself.
pub fn register_thread() {
    // SAFETY: a thread that is not one of the EAL's; where it fails, buffers come a little slower.
    unsafe { dpdk_sys::rte_thread_register() };
}
