//! The receive callback: what runs for every burst. Its cost is in every figure, and the same for every program.
//!
//! In: mbufs of `net_null`, frames. Out: mbufs that hold the next frames; one that is too small stays as it is. Never: a step
//! that depends on the program.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::Arc;

use dpdk_sys::rte_mbuf;

use crate::frames::Frames;

/// Frames ahead that are fetched.
const AHEAD: usize = 8;

/// What one receive queue hands out next. Positions are in bytes, so that a packet costs no multiplication.
#[repr(align(64))]
pub struct Queue {
    slots: *const u8,
    /// Bytes a slot.
    stride: usize,
    /// Where the slots end.
    end: usize,
    /// The next slot.
    at: usize,
    /// What `slots` points into.
    _frames: Arc<Frames>,
}

impl Queue {
    /// A queue that begins with the first frame.
    pub fn new(frames: Arc<Frames>) -> Queue {
        let bytes = frames.bytes();
        Queue { slots: bytes.as_ptr(), stride: frames.stride(), end: bytes.len(), at: 0, _frames: frames }
    }
}

/// Replaces what was received by the queue's next frames. `arg` is a [`Queue`] that lives as long as the process.
pub unsafe extern "C" fn on_rx(
    _port: u16,
    _queue: u16,
    pkts: *mut *mut rte_mbuf,
    n: u16,
    _max: u16,
    arg: *mut c_void,
) -> u16 {
    // SAFETY: `attach` gives a queue of its own to each receive queue, which belongs to one thread at a time.
    let queue = unsafe { &mut *arg.cast::<Queue>() };
    // SAFETY: the driver has just filled in `n` packets.
    let pkts = unsafe { std::slice::from_raw_parts(pkts, usize::from(n)) };
    let (slots, stride, end, mut at) = (queue.slots, queue.stride, queue.end, queue.at);
    for pkt in pkts {
        // SAFETY: received packets are live, of one segment, and this thread's alone.
        let pkt = unsafe { &mut **pkt };
        let slot = slots.wrapping_add(at);
        let ahead = at + AHEAD * stride;
        prefetch(slots.wrapping_add(if ahead < end { ahead } else { 0 }));
        // SAFETY: `at` is the start of a slot, and each ends with its frame's length.
        let length = unsafe { slot.wrapping_add(stride - 2).cast::<u16>().read() };
        let copied = (usize::from(length) + 15) & !15;
        if copied + usize::from(pkt.data_off) <= usize::from(pkt.buf_len) {
            let data = pkt.buf_addr.cast::<u8>().wrapping_add(usize::from(pkt.data_off));
            // SAFETY: a slot holds the length rounded up to 16, and so does the buffer, as was just asked.
            unsafe { std::ptr::copy_nonoverlapping(slot, data, copied) };
            pkt.data_len = length;
            pkt.pkt_len = u32::from(length);
        }
        at += stride;
        if at == end {
            at = 0;
        }
    }
    queue.at = at;
    n
}

#[inline(always)]
fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which touches nothing.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Asks for huge pages below memory that is not written yet; where there are none, nothing changes.
pub fn ask_for_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    const PAGE: usize = 4096;
    let start = memory.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(PAGE);
    let length = size_of_val(memory).saturating_sub(skipped) / PAGE * PAGE;
    if length > 0 {
        // SAFETY: whole pages of memory of our own, which keep what they hold.
        unsafe { libc::madvise(start.wrapping_add(skipped).cast(), length, libc::MADV_HUGEPAGE) };
    }
}
