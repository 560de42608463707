//! What compiled code asks of the runtime.
//!
//! Static Rust is generic over [`Env`], so calls are direct; libraries and the JIT go through [`cenv`](crate::cenv). The
//! contract of every method is also `eval`'s: an engine may call them in other numbers (`eval` never prepares), never with
//! another meaning. No method allocates, locks, waits or fails; what cannot be done is a drop under a reason.

use crate::{Burst, CtPoint, Ctx, DropReason};

/// Whether a packet may still be written after an output of it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Emit {
    /// Nothing writes it any more: the output may share its bytes.
    Share = 0,
    /// It will be written: the output gets the bytes as they are now.
    Copy = 1,
}

/// Everything with state outside the packet.
///
/// `ctx` is the worker's scratch for this program; carriers that do not know the type of the `Env` find it there.
/// Ports are the program's dense numbers. Outputs collect in a list per packet and are committed, in the order of the
/// packets of the burst, when the burst ends.
pub trait Env {
    /// Hashes and prefetches for the packets in `set` (bit `i` = packet `i`), which will ask [`ct`](Env::ct) in this zone.
    /// Changes nothing that a packet can see.
    fn ct_prepare(&mut self, ctx: &mut Ctx, burst: &Burst, set: u32, zone: u16);

    /// Tracks packet `i`: sets `ctx.ct(i)`, returns its `state`.
    fn ct(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, point: &CtPoint, zone: u16) -> u32;

    /// Sends packet `i` as it is now to `port`, and the packet lives on. The verdict becomes [`Verdict::LISTED`](crate::Verdict::LISTED). Whether
    /// `port` is the one it came in by is the caller's business.
    fn emit(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, port: u16, how: Emit);

    /// Sends packet `i` to every port that floods but `in_port`. With no such port it is a drop, unless the packet has other outputs.
    fn flood(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, in_port: u16, how: Emit);

    /// Sends packet `i` as a learning switch does: learns its source on `in_port`, looks up its destination, floods.
    fn normal(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, in_port: u16, how: Emit);

    /// Remembers the bytes of packet `i` and how many there are, before a `clone` that writes them. Nests.
    fn save(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize);

    /// Puts back what the last [`save`](Env::save) of packet `i` remembered.
    fn restore(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize);

    /// Makes room for `n` bytes, all 0, before byte `at` of packet `i`; false, and no change, where there is no room in front
    /// of the frame or it would become longer than 65,535 bytes. `at` is at most the frame's length.
    /// An `Env` that says nothing else has no room.
    fn grow(&mut self, _ctx: &mut Ctx, _burst: &mut Burst, _i: usize, _at: usize, _n: usize) -> bool {
        false
    }

    /// Takes `n` bytes out of packet `i`, from byte `at` on. They are there.
    fn shrink(&mut self, _ctx: &mut Ctx, burst: &mut Burst, i: usize, at: usize, n: usize) {
        burst.bytes_mut(i).copy_within(..at, n);
        burst.strip(i, n);
    }

    /// Gives up on packet `i`: discards its outputs and drops it.
    fn fail(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, reason: DropReason);

    /// As [`emit`](Env::emit), with a copy of at most `max_len` bytes.
    fn emit_part(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, port: u16, max_len: u16);

    /// Sends a copy of packet `i`, at most `max_len` bytes of it, to [`CONTROLLER`](crate::CONTROLLER), and tells why.
    fn controller(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, reason: u8, max_len: u16);

    /// Takes packet `i` from a meter's bucket of tokens; false if there is not enough in it.
    fn meter(&mut self, ctx: &mut Ctx, burst: &mut Burst, i: usize, meter: u16) -> bool;

    /// Whether a port is there and its link is up.
    fn live(&mut self, ctx: &mut Ctx, port: u16) -> bool;

    // ---- tables whose entries end with time, or are made by packets ----------------------------------------------------

    /// Looks a key up for packet `i` in an open table whose look-ups are in order, as [`Ctx::find`] does: entries whose time is
    /// over at the time of the burst are not there, the one that is found has been used.
    fn find(&mut self, ctx: &mut Ctx, _burst: &Burst, _i: usize, table: u16, key: &[u64]) -> u64 {
        ctx.find(usize::from(table), key)
    }

    /// Packet `i` makes an entry of a learned table, or puts another action and arguments into the one that has the key. The next
    /// look-up sees it. If the table is full, this is counted and nothing else happens.
    #[allow(clippy::too_many_arguments)]
    fn learn(
        &mut self,
        _ctx: &mut Ctx,
        _burst: &Burst,
        _i: usize,
        _table: u16,
        _key: &[u64],
        _action: u16,
        _args: &[u64],
    ) {
    }
}
