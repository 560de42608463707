//! The [`Env`] of a worker: connections, learning, and the outputs of a burst until it is committed.
//!
//! It is generic over where packets live ([`Buffers`]): packet buffers of DPDK, or heap memory for `replay` and tests.
//! Outputs of a packet collect in a list (in the order they were asked for) and reach a [`Sink`] in [`WorkerEnv::commit`];
//! until then they can be discarded. A packet with one output and nothing after it never touches the list: its verdict says
//! the port.

use core::ffi::c_void;
use std::sync::Arc;

use pipec_abi::{BURST, Burst, CONTROLLER, CtPoint, Ctx, DropReason, Emit, Env, Verdict};

use crate::conntrack::Tracker;
use crate::fdb::{self, Fdb};
use crate::liveness::Liveness;
use crate::meter::Meters;
use crate::tables::Tables;

/// A packet, as whoever owns its memory knows it.
pub type Handle = *mut c_void;

/// Where packets live.
pub trait Buffers {
    /// Whether nobody sees in which order the outputs of one packet to different ports were asked for.
    const ANY_ORDER: bool = false;

    /// A copy of packet `i` of the burst as it is now, or nothing when no buffer is free.
    fn copy(&mut self, burst: &Burst, i: usize) -> Option<Handle>;
    /// So many more holders of the same bytes, which nobody writes any more.
    fn share(&mut self, pkt: Handle, more: u16);
    /// Gives up one hold of a packet.
    fn free(&mut self, pkt: Handle);
    /// Length of the frame in bytes.
    fn frame_len(&self, pkt: Handle) -> u32;
    /// Cuts a packet that nobody else holds to `len` bytes, if it is longer.
    fn cut(&mut self, pkt: Handle, len: u32);
    /// Adds `n` bytes of any content at the front of a packet that nobody else holds: its first byte; nothing, and no
    /// change, where there is no room.
    fn prepend(&mut self, pkt: Handle, n: usize) -> Option<*mut u8>;
    /// Takes the first `n` bytes of such a packet away, which has them: its first byte.
    fn strip(&mut self, pkt: Handle, n: usize) -> *mut u8;
}

/// Where a burst's packets go when it is committed. Each packet, and each copy, reaches it exactly once.
pub trait Sink<B: Buffers> {
    /// Packet `pkt` goes out of `port`.
    fn send(&mut self, buffers: &mut B, port: u16, pkt: Handle, len: u32, copy: bool);
    /// Packet `pkt`, received on `in_port`, is dropped.
    fn drop(&mut self, buffers: &mut B, in_port: u16, pkt: Handle, len: u32, reason: DropReason);
    /// A copy of a packet, meant for `port`, could not be made.
    fn lost(&mut self, port: u16, reason: DropReason);
    /// A copy of a packet that came in by `in_port` goes to the controller, which is told the reason.
    fn punt(&mut self, buffers: &mut B, in_port: u16, pkt: Handle, len: u32, reason: u8);
    /// These packets of the burst, a bit for each, go out of `port`; some of them are copies.
    fn send_some(&mut self, buffers: &mut B, port: u16, burst: &Burst, which: u32, copies: u32) {
        for i in ones(which) {
            self.send(buffers, port, burst.pkt(i), burst.frame_len(i), copies >> i & 1 == 1);
        }
    }
    /// These packets of the burst, a bit for each, are dropped.
    fn drop_some(&mut self, buffers: &mut B, burst: &Burst, which: u32, reason: DropReason) {
        for i in ones(which) {
            self.drop(buffers, burst.in_port(i), burst.pkt(i), burst.frame_len(i), reason);
        }
    }
    /// All packets of the burst go out of `port`.
    fn send_all(&mut self, buffers: &mut B, port: u16, burst: &Burst) {
        for i in 0..burst.len() {
            self.send(buffers, port, burst.pkt(i), burst.frame_len(i), false);
        }
    }
}

/// Numbers of the bits that are set, in order.
pub(crate) fn ones(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (first < u32::BITS).then_some(first as usize)
    })
}

/// The bit of a port among the first 64.
#[inline(always)]
fn bit(port: u16) -> u64 {
    1u64.checked_shl(port.into()).unwrap_or(0)
}

/// The packets of each verdict that many have, a bit for each, and all others.
#[inline(always)]
fn by_verdict(burst: &Burst) -> ([Option<(Verdict, u32)>; KINDS], u32) {
    let (mut left, mut unseen) = (burst.all(), burst.all());
    let many = std::array::from_fn(|_| {
        let verdict = burst.verdict(ones(unseen).next()?);
        let which = burst.with_verdict(verdict);
        unseen &= !which;
        let is_many = which.count_ones() >= TOGETHER && verdict != Verdict::LISTED;
        is_many.then(|| left &= !which).map(|()| (verdict, which))
    });
    (many, left)
}

/// From so many packets of one verdict on they are committed together.
const TOGETHER: u32 = 6;
/// Verdicts of a burst that are looked for, at the most.
const KINDS: usize = 3;
/// Outputs of one burst at the most; beyond it packets fail under [`DropReason::Outputs`].
const MAX_OUTPUTS: usize = 8192;
/// Bytes of a frame, at the most: lengths of IP and offsets of headers have 16 bits.
const MAX_FRAME: usize = 65_535;
/// Bytes that `save` has room for without asking for more: a frame of Ethernet with headers in front.
const SAVE_BYTES: usize = 2048;
/// The end of a list.
const END: u16 = u16::MAX;

/// One output that was asked for.
#[derive(Clone, Copy)]
struct Out {
    /// A copy made then, or null for the packet itself.
    copy: Handle,
    port: u16,
    next: u16,
    /// For the controller: why.
    reason: u8,
}

/// A packet's outputs: the first and the last, and how many of them are the packet itself.
#[derive(Clone, Copy)]
struct List {
    head: u16,
    tail: u16,
    shares: u16,
}

impl List {
    const EMPTY: List = List { head: END, tail: END, shares: 0 };
}

/// The `Env` of a worker.
pub struct WorkerEnv<B: Buffers> {
    /// Where packets live.
    pub buffers: B,
    tracker: Tracker,
    fdb: Arc<Fdb>,
    tables: Arc<Tables>,
    /// Program ports that `flood` and `normal` send to.
    flood: Vec<u16>,
    outs: Vec<Out>,
    /// The outputs of each packet.
    lists: [List; BURST],
    /// Those of a packet that goes out as it is, of some of the first 64 ports, in any order: a bit for each. It has no list then.
    ports: [u64; BURST],
    /// Frames that `save` remembered; kept for the next.
    saved: Vec<Vec<u8>>,
    saves: usize,
    /// Copies for which there was no buffer, as (port, number), since the last commit.
    lost: Vec<(u16, DropReason)>,
    meters: Arc<Meters>,
    liveness: Arc<Liveness>,
}

// SAFETY: the handles in it belong to this worker alone; it moves to its thread as a whole.
unsafe impl<B: Buffers + Send> Send for WorkerEnv<B> {}

impl<B: Buffers> WorkerEnv<B> {
    /// An `Env` for a program whose ports `flood` are attached and flood.
    pub fn new(buffers: B, tracker: Tracker, fdb: Arc<Fdb>, flood: Vec<u16>, tables: Arc<Tables>) -> WorkerEnv<B> {
        WorkerEnv {
            buffers,
            tracker,
            fdb,
            tables,
            flood,
            outs: Vec::with_capacity(MAX_OUTPUTS),
            lists: [List::EMPTY; BURST],
            ports: [0; BURST],
            saved: Vec::new(),
            saves: 0,
            lost: Vec::with_capacity(MAX_OUTPUTS),
            meters: Arc::default(),
            liveness: Arc::default(),
        }
    }

    /// The same, with the meters of the program and what is known of its ports' links.
    #[must_use]
    pub fn with(self, meters: Arc<Meters>, liveness: Arc<Liveness>) -> WorkerEnv<B> {
        WorkerEnv { meters, liveness, ..self }
    }

    /// Starts a burst: forgets the last one.
    #[inline(always)]
    pub fn begin(&mut self, now_ns: u64) {
        self.tracker.begin(now_ns);
        self.tables.begin(now_ns);
    }

    /// The tables whose entries are not the program's.
    pub fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }

    /// Hands every packet and copy of the burst to the sink, in order.
    #[inline(always)]
    pub fn commit<S: Sink<B>>(&mut self, burst: &Burst, sink: &mut S) {
        let n = burst.len();
        if n == 0 {
            return;
        }
        let verdicts = burst.verdicts();
        let first = verdicts[0];
        let mut differ = 0u16;
        for verdict in &verdicts[..n] {
            differ |= verdict.0 ^ first.0;
        }
        match first.port() {
            Some(port) if differ == 0 => sink.send_all(&mut self.buffers, port, burst),
            _ => self.commit_each(burst, sink),
        }
    }

    /// Commits packets of each verdict together while there are many of it, so that no branch depends on a packet; the rest one
    /// by one. Packets that go out of one port stay in order.
    #[inline(never)]
    fn commit_each<S: Sink<B>>(&mut self, burst: &Burst, sink: &mut S) {
        let listed = burst.with_verdict(Verdict::LISTED);
        let (many, left) = match (self.outs.is_empty(), listed) {
            (true, 0) => by_verdict(burst),
            (true, _) => ([None; KINDS], self.commit_ports(burst, sink)),
            (false, _) => ([None; KINDS], burst.all()),
        };
        for (verdict, which) in many.into_iter().flatten() {
            match (verdict.port(), verdict.reason()) {
                (Some(port), _) => sink.send_some(&mut self.buffers, port, burst, which, 0),
                (None, Some(reason)) => sink.drop_some(&mut self.buffers, burst, which, reason),
                (None, None) => {} // that there are no lists was asked for
            }
        }
        for i in ones(left) {
            self.commit_one(burst, i, sink);
        }
        self.end_commit(sink);
    }

    /// Commits packets that go out of several ports, and with them those that go out of one, port by port, so that those of
    /// each port stay in order; which are left.
    fn commit_ports<S: Sink<B>>(&mut self, burst: &Burst, sink: &mut S) -> u32 {
        let (mut all, mut left) = (0, burst.all());
        for i in 0..burst.len() {
            let ports = self.ports[i] | burst.verdict(i).port().map_or(0, bit);
            self.ports[i] = ports;
            if ports == 0 {
                continue;
            }
            let shares = ports.count_ones() as u16;
            if shares > 1 {
                self.buffers.share(burst.pkt(i), shares - 1);
            }
            all |= ports;
            left &= !(1 << i);
        }
        while all != 0 {
            let port = all.trailing_zeros();
            all &= all - 1;
            let (mut which, mut copies) = (0, 0);
            for (i, ports) in self.ports.iter().enumerate() {
                let from = ports >> port;
                which |= (from as u32 & 1) << i;
                copies |= (from as u32 & u32::from(from > 1)) << i;
            }
            sink.send_some(&mut self.buffers, port as u16, burst, which, copies);
        }
        self.ports = [0; BURST];
        left
    }

    /// Hands packet `i` and its copies to the sink.
    #[inline]
    pub fn commit_one<S: Sink<B>>(&mut self, burst: &Burst, i: usize, sink: &mut S) {
        let verdict = burst.verdict(i);
        let (pkt, len) = (burst.pkt(i), burst.frame_len(i));
        match (verdict.port(), verdict.reason()) {
            (Some(port), _) => sink.send(&mut self.buffers, port, pkt, len, false),
            (None, Some(reason)) => sink.drop(&mut self.buffers, burst.in_port(i), pkt, len, reason),
            (None, None) => self.commit_list(i, pkt, burst.in_port(i), len, sink),
        }
    }

    /// Ends a commit that went packet by packet: forgets the lists, and tells of copies that could not be made.
    pub fn end_commit<S: Sink<B>>(&mut self, sink: &mut S) {
        self.outs.clear();
        for (port, reason) in self.lost.drain(..) {
            sink.lost(port, reason);
        }
    }

    /// Commits a packet with several outputs: the last that shares it gets the packet itself.
    #[inline(never)]
    fn commit_list<S: Sink<B>>(&mut self, i: usize, pkt: Handle, in_port: u16, len: u32, sink: &mut S) {
        let mut ports = std::mem::take(&mut self.ports[i]);
        let List { head: mut at, mut shares, .. } = std::mem::replace(&mut self.lists[i], List::EMPTY);
        shares += ports.count_ones() as u16;
        match shares {
            0 => self.buffers.free(pkt),
            1 => {}
            // All at once: while nobody else holds the packet, its count need not be changed atomically.
            shares => self.buffers.share(pkt, shares - 1),
        }
        while ports != 0 {
            let port = ports.trailing_zeros() as u16;
            ports &= ports - 1;
            shares -= 1;
            sink.send(&mut self.buffers, port, pkt, len, shares > 0);
        }
        while at != END {
            let out = self.outs[usize::from(at)];
            if !out.copy.is_null() {
                let len = self.buffers.frame_len(out.copy);
                match out.port {
                    CONTROLLER => sink.punt(&mut self.buffers, in_port, out.copy, len, out.reason),
                    port => sink.send(&mut self.buffers, port, out.copy, len, true),
                }
            } else {
                shares -= 1;
                sink.send(&mut self.buffers, out.port, pkt, len, shares > 0);
            }
            at = out.next;
        }
    }

    /// Adds an output of packet `i` as it is, if it has no list, and the port's bit is free.
    #[inline(always)]
    fn note(&mut self, burst: &mut Burst, i: usize, port: u16) -> bool {
        let (bit, ports) = (bit(port), self.ports[i]);
        let noted = B::ANY_ORDER && bit & !ports != 0 && self.lists[i].head == END;
        if noted {
            self.ports[i] = ports | bit;
            burst.set_verdict(i, Verdict::LISTED);
        }
        noted
    }

    /// Adds an output to packet `i`'s list, behind those that it has; `copy` is null for the packet itself. Whether there was
    /// room.
    fn list(&mut self, burst: &mut Burst, i: usize, port: u16, copy: Handle) -> bool {
        let mut ports = std::mem::take(&mut self.ports[i]);
        while ports != 0 {
            let port = ports.trailing_zeros() as u16;
            ports &= ports - 1;
            if !self.append(burst, i, port, core::ptr::null_mut()) {
                return false;
            }
        }
        self.append(burst, i, port, copy)
    }

    fn append(&mut self, burst: &mut Burst, i: usize, port: u16, copy: Handle) -> bool {
        if self.outs.len() >= MAX_OUTPUTS {
            return false;
        }
        let at = self.outs.len() as u16;
        self.outs.push(Out { copy, port, next: END, reason: 0 });
        let List { head, tail, shares } = &mut self.lists[i];
        *shares += u16::from(copy.is_null());
        match self.outs.get_mut(usize::from(*tail)) {
            Some(last) if *tail != END => last.next = at,
            _ => *head = at,
        }
        *tail = at;
        burst.set_verdict(i, Verdict::LISTED);
        true
    }

    /// Sends packet `i` to every port that floods but `in_port`; how many.
    fn flood_ports(&mut self, burst: &mut Burst, i: usize, in_port: u16, how: Emit) -> usize {
        let mut sent = 0;
        for k in 0..self.flood.len() {
            let port = self.flood[k];
            if port != in_port {
                self.emit_as(burst, i, port, how);
                sent += 1;
            }
        }
        sent
    }

    /// Adds an output, of the packet itself or of a copy made now.
    #[inline(always)]
    fn emit_as(&mut self, burst: &mut Burst, i: usize, port: u16, how: Emit) {
        if how != Emit::Share || !self.note(burst, i, port) {
            self.emit_listed(burst, i, port, how);
        }
    }

    #[inline(never)]
    fn emit_listed(&mut self, burst: &mut Burst, i: usize, port: u16, how: Emit) {
        let copy = if how == Emit::Share {
            core::ptr::null_mut()
        } else {
            match self.buffers.copy(burst, i) {
                Some(copy) => copy,
                None => {
                    if self.lost.len() < MAX_OUTPUTS {
                        self.lost.push((port, DropReason::NoMbuf));
                    }
                    return burst.drop_if_unsent(i, DropReason::NoMbuf);
                }
            }
        };
        if !self.list(burst, i, port, copy) {
            if !copy.is_null() {
                self.buffers.free(copy);
            }
            self.discard(burst, i, DropReason::Outputs);
        }
    }

    /// Adds an output of a copy cut to `max_len` bytes; whether it could.
    fn emit_cut(&mut self, burst: &mut Burst, i: usize, port: u16, max_len: u16) -> bool {
        let Some(copy) = self.buffers.copy(burst, i) else {
            if self.lost.len() < MAX_OUTPUTS {
                self.lost.push((port, DropReason::NoMbuf));
            }
            burst.drop_if_unsent(i, DropReason::NoMbuf);
            return false;
        };
        self.buffers.cut(copy, u32::from(max_len));
        let listed = self.list(burst, i, port, copy);
        if !listed {
            self.buffers.free(copy);
            self.discard(burst, i, DropReason::Outputs);
        }
        listed
    }

    /// Makes packet `i` longer or shorter by `n` bytes at the front; false, and no change, where there is no room.
    fn resize(&mut self, burst: &mut Burst, i: usize, n: i32) -> bool {
        let pkt = burst.pkt(i);
        let data = match usize::try_from(n) {
            Ok(n) => self.buffers.prepend(pkt, n),
            Err(_) => Some(self.buffers.strip(pkt, n.unsigned_abs() as usize)),
        };
        let Some(data) = data else { return false };
        let len = burst.frame_len(i).wrapping_add_signed(n);
        // SAFETY: whoever owns the packet's memory has just made it so long, and it is this packet's alone until it is
        // committed.
        unsafe { burst.replace(i, data, len) };
        true
    }

    /// Discards the outputs of packet `i` and drops it.
    #[cold]
    fn discard(&mut self, burst: &mut Burst, i: usize, reason: DropReason) {
        self.ports[i] = 0;
        let mut at = std::mem::replace(&mut self.lists[i], List::EMPTY).head;
        while at != END {
            let out = self.outs[usize::from(at)];
            if !out.copy.is_null() {
                self.buffers.free(out.copy);
            }
            at = out.next;
        }
        burst.set_verdict(i, Verdict::drop(reason));
    }
}

impl<B: Buffers> Env for WorkerEnv<B> {
    #[inline(always)]
    fn ct_prepare(&mut self, _ctx: &mut Ctx, burst: &Burst, set: u32, zone: u16) {
        self.tracker.prepare(burst, set, zone);
    }

    #[inline(always)]
    fn ct(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, point: &CtPoint, zone: u16) -> u32 {
        self.tracker.ct(ctx.ct(i), burst, i, point, zone)
    }

    fn emit(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, port: u16, how: Emit) {
        self.emit_as(burst, i, port, how);
    }

    fn flood(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, in_port: u16, how: Emit) {
        if self.flood_ports(burst, i, in_port, how) == 0 {
            burst.drop_if_unsent(i, DropReason::L2NoPort);
        }
    }

    /// SEMANTICS 3: every port is a trunk of all VLANs, so the VLAN only separates what is learned.
    fn normal(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, in_port: u16, how: Emit) {
        let data = burst.bytes(i);
        let l2 = pipec_abi::header::l2(data, 1);
        let tpid = pipec_abi::header::load16(data, 12);
        let cut = l2.tci() == 0 && (tpid == 0x8100 || tpid == 0x88a8);
        let (mut dst, mut src) = ([0; 6], [0; 6]);
        dst.copy_from_slice(&data[..6]);
        src.copy_from_slice(&data[6..12]);
        if cut {
            return burst.drop_if_unsent(i, DropReason::L2Vlan);
        }
        if fdb::is_reserved(&dst) {
            return burst.drop_if_unsent(i, DropReason::L2Reserved);
        }
        let (vlan, now_ns) = (l2.tci() & 0xfff, burst.now_ns());
        if src[0] & 1 == 0 {
            self.fdb.learn(vlan, src, in_port, now_ns);
        }
        let known = if dst[0] & 1 == 0 { self.fdb.lookup(vlan, dst, now_ns) } else { None };
        match known {
            Some(port) if port == in_port => burst.drop_if_unsent(i, DropReason::L2Hairpin),
            Some(port) => self.emit_as(burst, i, port, how),
            None if self.flood_ports(burst, i, in_port, how) == 0 => {
                burst.drop_if_unsent(i, DropReason::L2NoPort);
            }
            None => {}
        }
    }

    #[cold]
    fn save(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize) {
        if self.saves == self.saved.len() {
            self.saved.push(Vec::with_capacity(SAVE_BYTES)); // at most as often as clones nest; then reused
        }
        let saved = &mut self.saved[self.saves];
        saved.clear();
        saved.extend_from_slice(burst.bytes(i));
        self.saves += 1;
    }

    #[cold]
    fn restore(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize) {
        self.saves -= 1;
        let (len, now) = (self.saved[self.saves].len(), burst.bytes(i).len());
        // All but the front lies where it did: there is room for what was there.
        if len != now && !self.resize(burst, i, len as i32 - now as i32) {
            return;
        }
        burst.bytes_mut(i).copy_from_slice(&self.saved[self.saves]);
    }

    fn grow(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, at: usize, n: usize) -> bool {
        if burst.bytes(i).len() + n > MAX_FRAME || !self.resize(burst, i, n as i32) {
            return false;
        }
        let data = burst.bytes_mut(i);
        data.copy_within(n..n + at, 0);
        data[at..at + n].fill(0);
        true
    }

    fn shrink(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, at: usize, n: usize) {
        burst.bytes_mut(i).copy_within(..at, n);
        self.resize(burst, i, -(n as i32));
    }

    #[cold]
    fn fail(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, reason: DropReason) {
        self.discard(burst, i, reason);
        self.saves = 0;
    }

    fn emit_part(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, port: u16, max_len: u16) {
        self.emit_cut(burst, i, port, max_len);
    }

    fn controller(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, reason: u8, max_len: u16) {
        if self.emit_cut(burst, i, CONTROLLER, max_len)
            && let Some(last) = self.outs.last_mut()
        {
            last.reason = reason;
        }
    }

    #[inline]
    fn meter(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, meter: u16) -> bool {
        self.meters.take(meter, burst.frame_len(i), burst.now_ns())
    }

    #[inline]
    fn live(&mut self, _ctx: &mut Ctx, port: u16) -> bool {
        self.liveness.get(port)
    }

    fn find(&mut self, ctx: &mut Ctx, burst: &Burst, _i: usize, table: u16, key: &[u64]) -> u64 {
        self.tables.find(ctx, burst.now_ns(), table, key)
    }

    fn learn(&mut self, _ctx: &mut Ctx, burst: &Burst, _i: usize, table: u16, key: &[u64], action: u16, args: &[u64]) {
        self.tables.learn(burst.now_ns(), table, key, action, args);
    }
}

#[cfg(test)]
mod tests;
