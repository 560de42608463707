//! Up to 32 packets on their way through a program, as arrays.
//!
//! The receive shim fills it, compiled code works on it, the runtime commits its verdicts. Neither the layout of a packet
//! buffer nor where its memory comes from shows here: `pkt` is opaque, `data` points at the first byte of the frame.

use core::ffi::c_void;

use crate::DropReason;

/// Packets in a burst, at most.
pub const BURST: usize = 32;

/// A packet's `pc` when nothing is left to do for it.
pub const DONE: u8 = 0xff;

/// What becomes of a packet: one word, written by compiled code and read when the burst is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Verdict(pub u16);

impl Verdict {
    /// Set in a verdict that drops; the low byte is the reason's code.
    pub const DROP_BIT: u16 = 0x8000;
    /// The packet has entries in the list of outputs, made by [`Env::emit`](crate::Env::emit) and its like.
    pub const LISTED: Verdict = Verdict(0x7fff);

    /// Sends the packet to one port, the program's dense number of it.
    pub const fn send(port: u16) -> Verdict {
        Verdict(port)
    }

    /// Drops the packet.
    pub const fn drop(reason: DropReason) -> Verdict {
        Verdict(Self::DROP_BIT | reason as u16)
    }

    /// The reason, if this drops.
    pub const fn reason(self) -> Option<DropReason> {
        if self.0 & Self::DROP_BIT == 0 { None } else { DropReason::from_code(self.0 as u8) }
    }

    /// The port, if this sends to exactly one.
    pub const fn port(self) -> Option<u16> {
        if self.0 < Self::LISTED.0 { Some(self.0) } else { None }
    }
}

/// Up to [`BURST`] packets.
///
/// Invariant, kept by whoever calls [`Burst::push`]: for every `i < n`, `data[i]` points at `len[i]` readable and writable
/// bytes that nobody else touches while the burst is processed. (A frame in several segments is put together on receipt:
/// conntrack reads all of it for its checksums.)
#[repr(C, align(64))]
pub struct Burst {
    /// First byte of each frame.
    data: [*mut u8; BURST],
    /// The runtime's handle of each packet.
    pkt: [*mut c_void; BURST],
    /// Bytes of each frame, without FCS.
    len: [u32; BURST],
    /// Port each packet came in by, the program's dense number.
    in_port: [u16; BURST],
    /// What becomes of each packet.
    verdict: [Verdict; BURST],
    /// The point each packet is suspended at, or [`DONE`].
    pc: [u8; BURST],
    /// The burst's time, in nanoseconds since any fixed moment; it never runs backwards.
    now_ns: u64,
    /// Packets in the burst.
    n: u32,
}

/// Byte offsets of a burst's fields, for the JIT.
pub mod offset {
    use super::Burst;
    use core::mem::offset_of;
    /// `data: [*mut u8; 32]`
    pub const DATA: usize = offset_of!(Burst, data);
    /// `len: [u32; 32]`
    pub const LEN: usize = offset_of!(Burst, len);
    /// `in_port: [u16; 32]`
    pub const IN_PORT: usize = offset_of!(Burst, in_port);
    /// `verdict: [u16; 32]`
    pub const VERDICT: usize = offset_of!(Burst, verdict);
    /// `pc: [u8; 32]`
    pub const PC: usize = offset_of!(Burst, pc);
    /// `n: u32`
    pub const N: usize = offset_of!(Burst, n);
}

const _: () = assert!(offset::DATA == 0 && offset::LEN == 512 && offset::IN_PORT == 640 && offset::VERDICT == 704);

// SAFETY: a burst owns the right to its packets while it is processed; a worker may be moved to its thread with it.
unsafe impl Send for Burst {}

impl Default for Burst {
    fn default() -> Self {
        Burst::new()
    }
}

impl Burst {
    /// An empty burst.
    pub const fn new() -> Burst {
        Burst {
            data: [core::ptr::null_mut(); BURST],
            pkt: [core::ptr::null_mut(); BURST],
            len: [0; BURST],
            in_port: [0; BURST],
            verdict: [Verdict::drop(DropReason::Policy); BURST],
            pc: [DONE; BURST],
            now_ns: 0,
            n: 0,
        }
    }

    /// Empties the burst and gives every place its first verdict: dropped by policy, nothing left to do.
    #[inline(always)]
    pub fn begin(&mut self, now_ns: u64) {
        self.n = 0;
        self.now_ns = now_ns;
        self.verdict = [Verdict::drop(DropReason::Policy); BURST];
        self.pc = [DONE; BURST];
    }

    /// Adds a packet.
    ///
    /// # Safety
    /// `data` must point at `len` bytes that stay readable and writable, and that nobody else touches, until the burst is
    /// committed.
    ///
    /// # Panics
    /// When the burst is full.
    #[inline(always)]
    pub unsafe fn push(&mut self, pkt: *mut c_void, data: *mut u8, len: u32, in_port: u16) {
        let i = self.n as usize;
        assert!(i < BURST, "a burst holds {BURST} packets");
        self.data[i] = data;
        self.pkt[i] = pkt;
        self.len[i] = len;
        self.in_port[i] = in_port;
        self.n += 1;
    }

    /// Packets in the burst.
    #[inline(always)]
    pub fn len(&self) -> usize {
        (self.n as usize).min(BURST)
    }

    /// Whether it holds no packet.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The burst's time in nanoseconds.
    #[inline(always)]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The frame of packet `i`.
    #[inline(always)]
    pub fn bytes(&self, i: usize) -> &[u8] {
        // SAFETY: `push` was promised this many bytes, alone to us; `begin`'s null places have length 0 until pushed, and
        // reading a stale place reads memory of the last burst only if i >= n, which the assert forbids.
        unsafe { core::slice::from_raw_parts(self.checked(i), self.len[i] as usize) }
    }

    /// The frame of packet `i`, to change.
    #[inline(always)]
    pub fn bytes_mut(&mut self, i: usize) -> &mut [u8] {
        // SAFETY: as in `bytes`; `&mut self` makes it the only view.
        unsafe { core::slice::from_raw_parts_mut(self.checked(i), self.len[i] as usize) }
    }

    #[inline(always)]
    fn checked(&self, i: usize) -> *mut u8 {
        assert!(i < self.len(), "packet of a burst");
        self.data[i]
    }

    /// Frame `i` lies elsewhere now, or is longer or shorter.
    ///
    /// # Safety
    /// As for [`Burst::push`].
    #[inline]
    pub unsafe fn replace(&mut self, i: usize, data: *mut u8, len: u32) {
        assert!(i < self.len(), "packet of a burst");
        self.data[i] = data;
        self.len[i] = len;
    }

    /// Frame `i` begins `n` bytes further behind, or at its end.
    pub fn strip(&mut self, i: usize, n: usize) {
        let n = n.min(self.len[i] as usize);
        self.data[i] = self.bytes_mut(i)[n..].as_mut_ptr();
        self.len[i] -= n as u32;
    }

    /// Length of frame `i`.
    #[inline(always)]
    pub fn frame_len(&self, i: usize) -> u32 {
        self.len[i]
    }

    /// Lengths of all frames.
    #[inline(always)]
    pub fn frame_lens(&self) -> &[u32] {
        &self.len[..self.len()]
    }

    /// The runtime's handle of packet `i`.
    #[inline(always)]
    pub fn pkt(&self, i: usize) -> *mut c_void {
        self.pkt[i]
    }

    /// The handles of all packets.
    #[inline(always)]
    pub fn pkts(&self) -> &[*mut c_void] {
        &self.pkt[..self.len()]
    }

    /// The port packet `i` came in by.
    #[inline(always)]
    pub fn in_port(&self, i: usize) -> u16 {
        self.in_port[i]
    }

    /// What becomes of packet `i`.
    #[inline(always)]
    pub fn verdict(&self, i: usize) -> Verdict {
        self.verdict[i]
    }

    /// All verdicts.
    #[inline(always)]
    pub fn verdicts(&self) -> &[Verdict; BURST] {
        &self.verdict
    }

    /// Packets that this becomes of: a bit for each.
    #[inline]
    pub fn with_verdict(&self, verdict: Verdict) -> u32 {
        let mut set = 0;
        for (i, other) in self.verdict.iter().enumerate() {
            set |= u32::from(*other == verdict) << i;
        }
        set & self.all()
    }

    /// All packets: a bit for each.
    #[inline(always)]
    pub fn all(&self) -> u32 {
        ((1u64 << self.len()) - 1) as u32
    }

    /// Says what becomes of packet `i`.
    #[inline(always)]
    pub fn set_verdict(&mut self, i: usize, verdict: Verdict) {
        self.verdict[i] = verdict;
    }

    /// Drops packet `i` unless it has outputs already: a later reason replaces an earlier one.
    #[inline(always)]
    pub fn drop_if_unsent(&mut self, i: usize, reason: DropReason) {
        if self.verdict[i] != Verdict::LISTED {
            self.verdict[i] = Verdict::drop(reason);
        }
    }

    /// The point packet `i` is suspended at, or [`DONE`].
    #[inline(always)]
    pub fn pc(&self, i: usize) -> u8 {
        self.pc[i]
    }

    /// Suspends packet `i` at a point.
    #[inline(always)]
    pub fn suspend(&mut self, i: usize, pc: u8) {
        self.pc[i] = pc;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_tell_apart() {
        assert_eq!(Verdict::send(3).port(), Some(3));
        assert_eq!(Verdict::send(3).reason(), None);
        assert_eq!(Verdict::drop(DropReason::Ttl).reason(), Some(DropReason::Ttl));
        assert_eq!(Verdict::drop(DropReason::Ttl).port(), None);
        assert_eq!(Verdict::LISTED.port(), None);
        assert_eq!(Verdict::LISTED.reason(), None);
    }

    #[test]
    fn a_burst_gives_back_what_was_pushed() {
        let mut frame = [7u8; 60];
        let mut burst = Burst::new();
        burst.begin(5);
        // SAFETY: the frame outlives the burst's use and is not touched otherwise.
        unsafe { burst.push(core::ptr::null_mut(), frame.as_mut_ptr(), 60, 2) };
        burst.bytes_mut(0)[1] = 9;
        assert_eq!((burst.len(), burst.in_port(0), burst.bytes(0)[1]), (1, 2, 9));
        assert_eq!((burst.all(), burst.with_verdict(Verdict::drop(DropReason::Policy))), (1, 1));
        burst.set_verdict(0, Verdict::send(4));
        assert_eq!(
            (burst.with_verdict(Verdict::drop(DropReason::Policy)), burst.with_verdict(Verdict::send(4))),
            (0, 1)
        );
    }
}
