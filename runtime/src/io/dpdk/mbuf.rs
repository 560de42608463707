//! Packet buffers: DPDK's mbufs by handle.
//!
//! In and out: one packet, in one segment or several. Never: what its bytes mean.
//!
//! Cost matters here: accessors are one load, and nothing is checked twice.

use std::ffi::c_void;
use std::fmt;
use std::sync::atomic::{AtomicU16, Ordering};

use dpdk_sys::rte_mbuf;

use super::Pool;

/// A handle of one packet.
///
/// **The rule.** A handle that is not [`NULL`](Mbuf::NULL) is one reference to a packet, which its holder gives away once: to
/// a transmit queue that takes it, to [`free`](Mbuf::free) or to [`free_bulk`](Mbuf::free_bulk). From then on no copy of the
/// handle is used. [`refer`](Mbuf::refer) makes further references, each to be given away; while there are several, the
/// packet is read and not written ([`is_unique`](Mbuf::is_unique)). Nothing checks this, and a breach corrupts memory; it is
/// what every `SAFETY` comment in this file stands on.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Mbuf(pub(super) *mut rte_mbuf);

// SAFETY: a packet belongs to whoever holds its handle, on whatever thread; reference counts are atomic.
unsafe impl Send for Mbuf {}

/// Reads a field of the first segment.
macro_rules! get {
    ($mbuf:expr, $field:ident) => {{
        // SAFETY: the handle is of a live packet (the rule of `Mbuf`).
        unsafe { (*$mbuf.0).$field }
    }};
}

/// Writes a field of the first segment.
macro_rules! set {
    ($mbuf:expr, $field:ident, $value:expr) => {{
        let value = $value;
        // SAFETY: the handle is of a live packet that nobody else reads (the rule of `Mbuf`).
        unsafe { (*$mbuf.0).$field = value }
    }};
}

impl Mbuf {
    /// No packet, to fill arrays with.
    pub const NULL: Mbuf = Mbuf(std::ptr::null_mut());

    /// The handle as compiled code carries it.
    #[inline(always)]
    pub fn opaque(self) -> *mut c_void {
        self.0.cast()
    }

    /// The handle that [`opaque`](Mbuf::opaque) hid.
    #[inline(always)]
    pub fn from_opaque(pointer: *mut c_void) -> Mbuf {
        Mbuf(pointer.cast())
    }

    /// Whether this is no packet.
    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The first byte.
    #[inline(always)]
    pub fn data(self) -> *mut u8 {
        get!(self, buf_addr).cast::<u8>().wrapping_add(usize::from(get!(self, data_off)))
    }

    /// Bytes in all segments.
    #[inline(always)]
    pub fn len(self) -> u32 {
        get!(self, pkt_len)
    }

    /// Whether there is no byte.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Bytes in the first segment.
    #[inline(always)]
    pub fn head_len(self) -> u32 {
        u32::from(get!(self, data_len))
    }

    /// Segments.
    #[inline(always)]
    pub fn segments(self) -> u16 {
        get!(self, nb_segs)
    }

    /// Whether all bytes lie in one segment.
    #[inline(always)]
    pub fn is_contiguous(self) -> bool {
        self.segments() == 1
    }

    /// The bytes of the first segment.
    #[inline(always)]
    pub fn head(&self) -> &[u8] {
        // SAFETY: the segment holds `head_len` bytes from `data` on (the rule of `Mbuf`).
        unsafe { std::slice::from_raw_parts(self.data(), self.head_len() as usize) }
    }

    /// The bytes of the first segment, to change.
    #[inline(always)]
    pub fn head_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `head`, and nobody else reads them (the rule of `Mbuf`).
        unsafe { std::slice::from_raw_parts_mut(self.data(), self.head_len() as usize) }
    }

    /// Brings the packet's first bytes into the cache.
    #[inline(always)]
    pub fn prefetch(self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch has no effect but on the cache, whatever the address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(self.data().cast_const().cast())
        };
    }

    /// Bytes free before the first.
    #[inline(always)]
    pub fn headroom(self) -> u32 {
        u32::from(get!(self, data_off))
    }

    /// Bytes free behind the last.
    #[inline(always)]
    pub fn tailroom(self) -> u32 {
        let last = self.last();
        u32::from(get!(last, buf_len)) - u32::from(get!(last, data_off)) - u32::from(get!(last, data_len))
    }

    /// Adds `n` bytes of any content at the front; false, and no change, without so much headroom.
    #[inline(always)]
    pub fn prepend(&mut self, n: usize) -> bool {
        if n > self.headroom() as usize {
            return false;
        }
        set!(self, data_off, get!(self, data_off) - n as u16);
        set!(self, data_len, get!(self, data_len) + n as u16);
        set!(self, pkt_len, get!(self, pkt_len) + n as u32);
        true
    }

    /// Takes `n` bytes away at the front; false, and no change, where the first segment has fewer.
    #[inline(always)]
    pub fn strip(&mut self, n: usize) -> bool {
        if n > self.head_len() as usize {
            return false;
        }
        set!(self, data_off, get!(self, data_off) + n as u16);
        set!(self, data_len, get!(self, data_len) - n as u16);
        set!(self, pkt_len, get!(self, pkt_len) - n as u32);
        true
    }

    /// Adds `n` bytes of any content at the end; false, and no change, without so much tailroom.
    #[inline]
    pub fn append(&mut self, n: usize) -> bool {
        if n > self.tailroom() as usize {
            return false;
        }
        let last = self.last();
        set!(last, data_len, get!(last, data_len) + n as u16);
        set!(self, pkt_len, get!(self, pkt_len) + n as u32);
        true
    }

    /// Cuts the packet to at most `len` bytes; at least the first byte stays.
    pub fn truncate(&mut self, len: u32) {
        let len = len.max(1);
        if len >= self.len() {
            return;
        }
        let mut left = len;
        let mut kept = 1;
        let mut segment = *self;
        while left > segment.head_len() {
            left -= segment.head_len();
            segment = segment.next();
            kept += 1;
        }
        let rest = segment.next();
        set!(segment, data_len, left as u16);
        set!(segment, next, std::ptr::null_mut());
        set!(self, nb_segs, kept);
        set!(self, pkt_len, len);
        rest.free_segments();
    }

    /// Copies the first bytes of the packet, over all segments, and returns how many.
    pub fn read(self, out: &mut [u8]) -> usize {
        let mut done = 0;
        let mut segment = self;
        while !segment.is_null() && done < out.len() {
            let bytes = segment.head();
            let n = bytes.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&bytes[..n]);
            done += n;
            segment = segment.next();
        }
        done
    }

    /// A packet of its own with the same bytes, fresh headroom, and as few segments as its pool's buffers allow; none when
    /// the pool is empty.
    #[inline]
    pub fn copy(self, pool: &Pool) -> Option<Mbuf> {
        // SAFETY: the packet is live (the rule of `Mbuf`), and so is the pool.
        let copy = unsafe { dpdk_sys::rte_pktmbuf_copy(self.0, pool.raw(), 0, u32::MAX) };
        (!copy.is_null()).then_some(Mbuf(copy))
    }

    /// Adds `more` references.
    #[inline]
    pub fn refer(self, more: u16) {
        // SAFETY: the packet is live, and the caller holds the only reference or one of several that are counted (the rule
        // of `Mbuf`).
        unsafe { dpdk_sys::shim_pktmbuf_ref(self.0, more as i16) };
    }

    /// Whether this is the only reference, so that the packet may be written.
    #[inline]
    pub fn is_unique(self) -> bool {
        let mut segment = self;
        while !segment.is_null() {
            if segment.references() != 1 || get!(segment, ol_flags) & ATTACHED != 0 {
                return false;
            }
            segment = segment.next();
        }
        true
    }

    /// References to the first segment.
    #[inline(always)]
    fn references(self) -> u16 {
        // SAFETY: the address of a field of a live segment (the rule of `Mbuf`).
        let count = unsafe { &raw mut (*self.0).refcnt };
        // SAFETY: aligned, alive, and all threads access it atomically once there are several references.
        unsafe { AtomicU16::from_ptr(count) }.load(Ordering::Acquire)
    }

    /// Sees to it that the first `depth` bytes, or all where there are fewer, lie in the first segment: where they do not,
    /// the packet is replaced by a copy. False, and no change, when the pool is empty or its buffers are smaller.
    #[inline(always)]
    pub fn make_contiguous(&mut self, depth: u32, pool: &Pool) -> bool {
        self.head_len() >= depth.min(self.len()) || self.gather(depth, pool)
    }

    #[cold]
    fn gather(&mut self, depth: u32, pool: &Pool) -> bool {
        if depth.min(self.len()) > u32::from(pool.data_room()) {
            return false;
        }
        let Some(copy) = self.copy(pool) else {
            return false;
        };
        self.free();
        *self = copy;
        true
    }

    /// Hangs another packet's segments behind this one's; both may have been in several. The other handle is given away.
    /// False, and no change, where there would be more than 65,535 segments or 4 GiB.
    pub fn chain(&mut self, tail: Mbuf) -> bool {
        let (Some(segments), Some(len)) =
            (self.segments().checked_add(tail.segments()), self.len().checked_add(tail.len()))
        else {
            return false;
        };
        let last = self.last();
        set!(last, next, tail.0);
        set!(self, nb_segs, segments);
        set!(self, pkt_len, len);
        set!(tail, pkt_len, tail.head_len()); // as DPDK has it in segments that do not lead
        true
    }

    /// Gives the packet back to its pool, or only this reference where there are several.
    #[inline]
    pub fn free(self) {
        // SAFETY: the caller gives its reference away (the rule of `Mbuf`).
        unsafe { dpdk_sys::shim_pktmbuf_free(self.0) };
    }

    /// [`free`](Mbuf::free) for many.
    #[inline]
    pub fn free_bulk(pkts: &[Mbuf]) {
        let first = pkts.as_ptr().cast_mut().cast::<*mut rte_mbuf>();
        // SAFETY: the caller gives its references away (the rule of `Mbuf`); the array is only read; an `Mbuf` is laid out as a
        // pointer.
        unsafe { dpdk_sys::shim_pktmbuf_free_bulk(first, pkts.len() as u32) };
    }

    /// The next segment, or none.
    #[inline(always)]
    fn next(self) -> Mbuf {
        Mbuf(get!(self, next))
    }

    #[inline]
    fn last(self) -> Mbuf {
        let mut segment = self;
        while !segment.next().is_null() {
            segment = segment.next();
        }
        segment
    }

    /// Frees segments that no packet leads to any more.
    fn free_segments(self) {
        let mut segment = self;
        while !segment.is_null() {
            let next = segment.next();
            // SAFETY: `truncate` took the segment out of its packet.
            unsafe { dpdk_sys::shim_pktmbuf_free_seg(segment.0) };
            segment = next;
        }
    }
}

/// Flags of a segment whose buffer is not its own.
const ATTACHED: u64 = dpdk_sys::RTE_MBUF_F_INDIRECT | dpdk_sys::RTE_MBUF_F_EXTERNAL;

impl fmt::Debug for Mbuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mbuf({:p})", self.0)
    }
}

const _: () = assert!(size_of::<Mbuf>() == size_of::<*mut rte_mbuf>());
