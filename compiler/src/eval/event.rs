//! What a trace tells, in the order in which it happens.

use pipec_abi::{CtPoint, CtView, DropReason, Flow, Verdict};

use crate::field::Header;
use crate::hir::{CounterId, GroupId, MeterId, Place, PortId, Read, TableId};

/// Something that happened to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet begins; its place in the burst.
    Packet(usize),
    /// A table is entered: the first, or by a call, a goto, or again after a `ct()` of OpenFlow.
    Table {
        /// Which.
        table: TableId,
        /// How many calls deep it is.
        depth: u32,
        /// The port that its rules see in place of the packet's own.
        in_port: Option<PortId>,
    },
    /// The table that comes next is called: the actions behind the call follow when it returns.
    Call,
    /// A called table is over, and all that it went on to; the actions behind the call follow.
    Return,
    /// A rule of the table was taken.
    Rule(TableId, usize),
    /// A keyed table is looked up, by these values of the parts of its key.
    Key(TableId, Box<[u128]>),
    /// A keyed table is not looked up: the packet lacks a header that a part of the key is in.
    NoKey(TableId, Header),
    /// What the look-up gave. Its rule comes next.
    Entry {
        /// Of which table.
        table: TableId,
        /// The entry's place: of a table that packets do not fill, among those of the program. `None`: there is no entry, and
        /// this is the default.
        slot: Option<u32>,
        /// The rule.
        rule: usize,
        /// The arguments.
        args: Box<[u128]>,
    },
    /// `learn`
    Learn {
        /// Into which table.
        table: TableId,
        /// Parts of the key.
        key: Box<[u128]>,
        /// The rule that the entry takes.
        rule: usize,
        /// The arguments.
        args: Box<[u128]>,
    },
    /// No rule of the table holds.
    Miss(TableId),
    /// The packet was sent; what becomes of it is the port's business.
    Output(PortId),
    /// An output was left out: it was to the port the packet came in by.
    LeftOut(PortId),
    /// The packet was sent back to the port it came in by.
    InPort(PortId),
    /// `flood`
    Flood,
    /// `all`
    All,
    /// `normal`
    Normal,
    /// A place was written.
    Set {
        /// Which.
        place: Place,
        /// What was to be written.
        value: u128,
        /// What it read before.
        before: u128,
        /// What it reads now: the same as before if the field is not there.
        after: u128,
    },
    /// `dec_ttl`, and what is left; `None` for a packet that is not IP.
    DecTtl(Option<u8>),
    /// `dec_ttl` met a TTL of 0 or 1: the action list ends here.
    Expired,
    /// `ct()`, and `ct.*` after it.
    Ct {
        /// What was asked for.
        point: CtPoint,
        /// In which zone.
        zone: u16,
        /// What came back.
        view: CtView,
    },
    /// An action in Rust was called.
    Extern {
        /// Which.
        action: u16,
        /// What it wants of the packet.
        flow: Flow,
    },
    /// `ct_clear`
    CtClear,
    /// An action that puts headers on or takes them off.
    Reshape {
        /// Its name.
        action: &'static str,
        /// Which declared header it is about.
        header: Option<u16>,
        /// Fields that it wrote; of `encap`, what the outermost headers say.
        values: Box<[(Place, u128)]>,
        /// By how many bytes the frame is longer now.
        more: i64,
    },
    /// The actions of a `clone` begin.
    Clone,
    /// A `clone` is over: packet, variables and `ct.*` are back.
    CloneEnd,
    /// `exit`
    Exit,
    /// A reason to drop the packet, if it has no output.
    Reason(DropReason),
    /// The packet was given up, with the outputs it had.
    Failed(DropReason),
    /// The packet is done, and this becomes of it.
    End(Verdict),
    /// What a rule of the table that was entered last may look at, as it is now. Only where reasons are asked for.
    Seen {
        /// What is read.
        read: Read,
        /// What it gives.
        value: u128,
    },
    /// A rule of the table was tried before the one that was taken, and does not hold. Only where reasons are asked for.
    Tried {
        /// The table.
        table: TableId,
        /// The rule.
        rule: usize,
        /// The first of its tests that does not come out as it should, as [`crate::words::atom`] counts.
        atom: usize,
        /// What that test reads, if it reads a place.
        value: u128,
    },
    /// `output(…)` to the port with a number that was computed; none has it.
    NoPort(u64),
    /// The packet was sent, cut to so many bytes.
    Part(PortId, u16),
    /// `mirror(…)`
    Mirror(PortId),
    /// `controller(…)`: why, and how many bytes at the most.
    Controller(u8, u16),
    /// `count(…)`
    Count(CounterId),
    /// A bucket of a group begins, as a clone; `None`: it has none to choose.
    Bucket(GroupId, Option<usize>),
    /// `meter(…)`, and whether the packet may pass.
    Meter(MeterId, bool),
}
