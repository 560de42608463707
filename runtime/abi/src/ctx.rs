//! What one worker lends to a program while it runs a burst: counters, per-packet connection state and variables.

use core::ffi::c_void;
use std::sync::Arc;

use crate::cenv::{CEnv, CallTable};
use crate::external::{Extern, Flow, Packet};
use crate::table::{self, EntryCounter, Hot, MAX_ARGS, MISS, Root, Table};
use crate::{BURST, Burst, CtView, Env};

/// Tables that a packet passes at the most.
pub const MAX_TABLES: u32 = 4096;
/// How deep tables call each other at the most, forward calls not counted.
pub const MAX_DEPTH: u32 = 64;

/// Packets and bytes that came to one place of a program. Plain words of one worker; readers sum over workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counter {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames, without FCS.
    pub bytes: u64,
}

/// Where keys lie that are looked up at once, and where goes what is found: all are words of the scratch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gathered {
    /// Keys.
    pub n: usize,
    /// Words of each.
    pub width: usize,
    /// The first key.
    pub keys: usize,
    /// What is found for the first; behind all keys.
    pub found: usize,
    /// Arguments of what is found for the first; behind that.
    pub args: usize,
    /// Words of arguments.
    pub arg_words: usize,
}

/// One worker's scratch for one program.
#[repr(C)]
pub struct Ctx {
    /// The worker's `Env`, for carriers that do not know its type.
    env: *mut c_void,
    /// How to call it.
    calls: *const CEnv,
    /// One for each counter of the program.
    counters: *mut Counter,
    /// `BURST` times the program's words of variables.
    vars: *mut u64,
    /// How many tables the current packet is deep.
    depth: u32,
    /// How many tables the current packet has passed.
    resubmits: u32,
    /// `ct.*` of each packet.
    ct: [CtView; BURST],
    /// Where packets gather for look-ups of the whole burst.
    scratch: *mut u64,
    /// Arguments of the entry that was found last.
    args: [u64; MAX_ARGS],
    /// One for each place for an entry of an open table.
    entries: *const EntryCounter,
    entry_counters: Arc<[EntryCounter]>,
    /// The program's tables, shared by all workers.
    root: Arc<Root>,
    /// The program's actions in Rust, in the order of their declarations.
    externs: Arc<[Extern]>,
    n_counters: usize,
    n_vars: usize,
    n_scratch: usize,
    /// Heavy hitters in front of tables.
    hot: Box<[Option<Hot>]>,
}

/// Byte offsets of a context's fields, for the JIT.
pub mod offset {
    use super::Ctx;
    use core::mem::offset_of;
    /// `env: *mut c_void`
    pub const ENV: usize = offset_of!(Ctx, env);
    /// `calls: *const CEnv`
    pub const CALLS: usize = offset_of!(Ctx, calls);
    /// `counters: *mut Counter`
    pub const COUNTERS: usize = offset_of!(Ctx, counters);
    /// `vars: *mut u64`
    pub const VARS: usize = offset_of!(Ctx, vars);
    /// `depth: u32`
    pub const DEPTH: usize = offset_of!(Ctx, depth);
    /// `resubmits: u32`
    pub const RESUBMITS: usize = offset_of!(Ctx, resubmits);
    /// `ct: [CtView; 32]`
    pub const CT: usize = offset_of!(Ctx, ct);
    /// `scratch: *mut u64`
    pub const SCRATCH: usize = offset_of!(Ctx, scratch);
    /// `args: [u64; MAX_ARGS]`
    pub const ARGS: usize = offset_of!(Ctx, args);
    /// `entries: *const EntryCounter`
    pub const ENTRIES: usize = offset_of!(Ctx, entries);
}

const _: () = assert!(offset::ENV == 0 && offset::CALLS == 8 && offset::COUNTERS == 16 && offset::VARS == 24);

// SAFETY: a context and all it points at belong to one worker and move to its thread together.
unsafe impl Send for Ctx {}

impl Ctx {
    /// A context for a program with this many counters and words of variables a packet, these tables, and a counter for each
    /// place for an entry in them, which no other context has. Allocates; not for the packet path.
    pub fn new(n_counters: usize, n_vars: usize, root: Arc<Root>, entry_counters: Arc<[EntryCounter]>) -> Ctx {
        Ctx {
            env: core::ptr::null_mut(),
            calls: core::ptr::null(),
            counters: Box::leak(vec![Counter::default(); n_counters].into_boxed_slice()).as_mut_ptr(),
            vars: Box::leak(vec![0u64; n_vars * BURST].into_boxed_slice()).as_mut_ptr(),
            depth: 0,
            resubmits: 0,
            ct: [CtView::CLEAR; BURST],
            externs: Arc::new([]),
            scratch: core::ptr::dangling_mut(),
            args: [0; MAX_ARGS],
            entries: entry_counters.as_ptr(),
            entry_counters,
            root,
            n_counters,
            n_vars,
            n_scratch: 0,
            hot: Box::new([]),
        }
    }

    /// The context with this many words of scratch, where packets gather for look-ups of the whole burst. Allocates.
    #[must_use]
    pub fn with_scratch(mut self, words: usize) -> Ctx {
        self.free_scratch();
        self.scratch = Box::leak(vec![0u64; words].into_boxed_slice()).as_mut_ptr();
        self.n_scratch = words;
        self
    }

    /// The context with what is sampled of each table's traffic.
    #[must_use]
    pub fn with_hot(mut self, hot: Box<[Option<Hot>]>) -> Ctx {
        self.hot = hot;
        self
    }

    fn free_scratch(&mut self) {
        let scratch = core::ptr::slice_from_raw_parts_mut(self.scratch, self.n_scratch);
        self.n_scratch = 0;
        // SAFETY: leaked from a box of this length in `with_scratch`, or dangling and of no length.
        drop(unsafe { Box::from_raw(scratch) });
    }

    /// Says which `Env` serves this context.
    ///
    /// # Safety
    /// `env` must be alone to this context whenever a program runs with it, and outlive those runs.
    pub unsafe fn attach<E: Env>(&mut self, env: *mut E) {
        self.env = env.cast();
        self.calls = CallTable::<E>::CALLS;
    }

    /// Says which actions in Rust the program calls. Not for the packet path.
    pub fn set_externs(&mut self, externs: Arc<[Extern]>) {
        self.externs = externs;
    }

    /// Calls an action in Rust on packet `i`. One that is not there drops the packet.
    #[inline(always)]
    pub fn external(&self, action: usize, burst: &mut Burst, i: usize, arguments: &[u64]) -> Flow {
        let (in_port, now_ns) = (burst.in_port(i), burst.now_ns());
        match self.externs.get(action) {
            Some(action) => action(&mut Packet::new(burst.bytes_mut(i), in_port, now_ns), arguments),
            None => Flow::Drop,
        }
    }

    /// How to call the `Env` attached.
    pub fn calls(&self) -> Option<&'static CEnv> {
        // SAFETY: null, or the constant that `attach` stored.
        unsafe { self.calls.as_ref() }
    }

    /// The `Env` attached.
    pub fn env(&self) -> *mut c_void {
        self.env
    }

    /// The program's counters.
    #[inline(always)]
    pub fn counters(&self) -> &[Counter] {
        // SAFETY: made in `new` with this length, freed in `drop`.
        unsafe { core::slice::from_raw_parts(self.counters, self.n_counters) }
    }

    #[inline(always)]
    fn counters_mut(&mut self) -> &mut [Counter] {
        // SAFETY: as in `counters`; `&mut self` makes it the only view.
        unsafe { core::slice::from_raw_parts_mut(self.counters, self.n_counters) }
    }

    /// Zeroes the counters.
    pub fn clear_counters(&mut self) {
        self.counters_mut().fill(Counter::default());
    }

    /// Counts a packet of `len` bytes.
    #[inline(always)]
    pub fn count(&mut self, counter: usize, len: u32) {
        let c = &mut self.counters_mut()[counter];
        c.packets += 1;
        c.bytes += u64::from(len);
    }

    /// What a table says of a key: [`MISS`](table::MISS) or a value.
    #[inline(always)]
    pub fn lookup(&self, table: usize, key: &[u64]) -> u64 {
        match self.root.tables.get(table) {
            Some(table) => table.lookup(key),
            None => table::MISS,
        }
    }

    /// What an open table says of a key: [`MISS`](table::MISS), or an action above 32 bits and the entry's place below. The
    /// entry's arguments are there until the next look-up.
    #[inline(always)]
    pub fn find(&mut self, table: usize, key: &[u64]) -> u64 {
        let Some(Table::Open(open)) = self.root.tables.get(table).map(|table| &**table) else { return table::MISS };
        let row = open.find(key);
        for (to, from) in self.args.iter_mut().zip(row.args()) {
            *to = from;
        }
        row.found()
    }

    /// As [`Ctx::find`], but passes over entries at places that `alive` does not let pass, by trying one after another.
    pub fn find_alive(&mut self, table: usize, key: &[u64], alive: impl Fn(u32) -> bool) -> u64 {
        let root = self.root.clone();
        match root.tables.get(table).map(|table| &**table) {
            Some(Table::Open(open)) => {
                let row = open.find_alive(key, alive);
                for (to, from) in self.args.iter_mut().zip(row.args()) {
                    *to = from;
                }
                row.found()
            }
            _ => MISS,
        }
    }

    /// Takes an entry's row as found: what the look-up gives, then its arguments; nothing is a miss.
    pub fn found(&mut self, row: &[u64]) -> u64 {
        let Some((found, args)) = row.split_first() else { return table::MISS };
        for (to, from) in self.args.iter_mut().zip(args) {
            *to = *from;
        }
        *found
    }

    /// A word of the arguments of the entry that was found last.
    #[inline(always)]
    pub fn arg(&self, word: usize) -> u64 {
        self.args[word]
    }

    /// Counts a packet of `len` bytes for the entry at a place.
    #[inline(always)]
    pub fn count_entry(&mut self, place: usize, len: u32) {
        if let Some(counter) = self.entry_counters.get(place) {
            counter.count(len);
        }
    }

    /// The tables.
    pub fn root(&self) -> &Arc<Root> {
        &self.root
    }

    /// Takes other tables, between two bursts.
    pub fn set_root(&mut self, root: Arc<Root>) {
        self.root = root;
    }

    /// The words in which packets gather for look-ups of the whole burst.
    #[inline(always)]
    pub fn scratch(&mut self) -> &mut [u64] {
        // SAFETY: made in `with_scratch` with this length, freed in `drop`; `&mut self` makes it the only view.
        unsafe { core::slice::from_raw_parts_mut(self.scratch, self.n_scratch) }
    }

    fn parts(&mut self) -> (&Root, &mut [u64], &mut [Option<Hot>]) {
        // SAFETY: as in `scratch`; the root lies elsewhere.
        let scratch = unsafe { core::slice::from_raw_parts_mut(self.scratch, self.n_scratch) };
        (&self.root, scratch, &mut self.hot)
    }

    /// Looks up the keys of all packets that have gathered: `n` keys of `width` words from word `keys` of the scratch on; what
    /// the table says of each is put from word `found` on, which lies behind the keys.
    pub fn lookup_all(&mut self, number: usize, Gathered { n, width, keys, found, .. }: Gathered) {
        let (root, scratch, hot) = self.parts();
        let Some((before, behind)) = scratch.split_at_mut_checked(found) else { return };
        let (Some(keys), Some(found)) = (before.get(keys..keys + n * width), behind.get_mut(..n)) else { return };
        match root.tables.get(number) {
            Some(table) => match hot.get_mut(number) {
                Some(Some(hot)) => hot.lookup_burst(table, keys, found),
                _ => table.lookup_burst(keys, found),
            },
            None => found.fill(MISS),
        }
    }

    /// As [`Ctx::lookup_all`] for an open table: the arguments of each entry that is found are put from word `args` on, a row
    /// of [`BURST`] for each word of arguments.
    pub fn find_all(&mut self, table: usize, gathered: Gathered) {
        let Gathered { n, width, keys, found, args, arg_words } = gathered;
        let (root, scratch, _) = self.parts();
        let Some((before, behind)) = scratch.split_at_mut_checked(found) else { return };
        let (Some(keys), true) = (before.get(keys..keys + n * width), behind.len() >= n) else { return };
        let Some(Table::Open(open)) = root.tables.get(table).map(|table| &**table) else {
            return behind[..n].fill(MISS);
        };
        open.find_burst(keys, n, |k, row| {
            behind[k] = row.found();
            for (word, arg) in row.args().take(arg_words).enumerate() {
                if let Some(place) = behind.get_mut(args - found + word * BURST + k) {
                    *place = arg;
                }
            }
        });
    }

    /// The variables of packet `i`.
    #[inline(always)]
    pub fn vars(&mut self, i: usize) -> &mut [u64] {
        let n = self.n_vars;
        // SAFETY: made in `new` with BURST * n_vars words, freed in `drop`; `&mut self` makes it the only view.
        let all = unsafe { core::slice::from_raw_parts_mut(self.vars, n * BURST) };
        &mut all[i * n..(i + 1) * n]
    }

    /// `ct.*` of packet `i`.
    #[inline(always)]
    pub fn ct(&mut self, i: usize) -> &mut CtView {
        &mut self.ct[i]
    }

    /// Starts a packet: depth and number of tables passed are 0.
    #[inline(always)]
    pub fn start_packet(&mut self) {
        self.depth = 0;
        self.resubmits = 0;
    }

    /// Counts a table that the current packet passes; `back` if it nests deeper. 1 if it has passed too many, 2 if it is too
    /// deep, else 0.
    pub fn enter(&mut self, back: bool) -> u8 {
        self.resubmits += 1;
        self.depth += u32::from(back);
        match (self.resubmits > MAX_TABLES, self.depth > MAX_DEPTH) {
            (true, _) => 1,
            (_, true) => 2,
            _ => 0,
        }
    }

    /// How many tables the current packet is deep.
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Comes back from tables.
    pub fn set_depth(&mut self, depth: u32) {
        self.depth = depth;
    }
}

impl Drop for Ctx {
    fn drop(&mut self) {
        self.free_scratch();
        let counters = core::ptr::slice_from_raw_parts_mut(self.counters, self.n_counters);
        // SAFETY: leaked from a box of this length in `new`.
        drop(unsafe { Box::from_raw(counters) });
        let vars = core::ptr::slice_from_raw_parts_mut(self.vars, self.n_vars * BURST);
        // SAFETY: leaked from a box of this length in `new`.
        drop(unsafe { Box::from_raw(vars) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_variables_are_apart() {
        let mut ctx = Ctx::new(2, 3, Arc::default(), EntryCounter::new(0));
        ctx.count(1, 60);
        ctx.count(1, 40);
        ctx.vars(4)[2] = 9;
        assert_eq!(ctx.counters()[1], Counter { packets: 2, bytes: 100 });
        assert_eq!(ctx.counters()[0], Counter::default());
        assert_eq!((ctx.vars(4)[2], ctx.vars(5)[0], ctx.vars(3)[2]), (9, 0, 0));
    }
}
