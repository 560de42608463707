//! The program after names are resolved: what `check`, `eval` and `plan` read. It knows ports, tables and fields, not text.
//!
//! ```text
//! program   := name port* option* variable* extern* table+ entry test* group* meter* counter*
//! table     := name rule*                              tried in order, the first that holds is taken; none: a table miss
//!            | name keyed rule*                        see `keyed`: rules are its actions, an entry says which is taken
//! rule      := id priority cond action*                no action: drop
//! cond      := true | has(header) | compare(read, test) | not cond | all cond* | any cond* | compare_to(read, order, read)
//! read      := place view                              view: what tables see, or what actions see
//! test      := masked(value, mask) | range(low, high) | in(range*)
//! place     := (space, bit offset, width)              space: a field of the packet, the metadata, or a declared header
//! value     := constant | read(place) | arith(op, value, value) | hash(value*) | param(n)
//! action    := output(port) | in_port | flood | all | normal | drop
//!            | set(place, value) | dec_ttl
//!            | ct(zone, commit, force, mark, label) | ct_clear
//!            | extern(action, value*) | call(table, in_port?) | goto(table) | clone{ action* } | exit
//!            | output_to(value) | output_part(value, max_len) | mirror(port) | controller(reason, max_len)
//!            | count(counter) | group(group) | meter(meter)
//!            | learn(table, key value*, action, argument value*)
//!            | truncate(length) | push(header, (place, value)*) | pop(header) | push_vlan(tpid, tci) | pop_vlan | set_vlan(place, value)
//!            | push_mpls(type, (place, value)*) | pop_mpls(type) | dec_mpls_ttl | encap(bytes, (place, value)*) | decap(tunnel, header)
//! group     := name kind hash bucket*                  kind: all, select, indirect, fast failover
//! bucket    := weight watch? action*
//! meter     := name unit rate burst                    unit: packets, or kilobits
//! header    := name bytes field* (after parent cond)*
//! ```
//!
//! Meaning, in one place; SEMANTICS and CONTRACTS have the reasons:
//!
//! - Actions are structured, there is no control-flow graph. `call` runs the table and returns to the next action, also
//!   after a miss; `goto` does not return: actions after it are never reached (`check` refuses them).
//! - `output`, `flood`, `all` and `normal` send the packet as it is then; what follows does not change what was sent.
//!   An `output` to the port the packet came in by does nothing; `in_port` is how to send it back.
//! - `drop` ends the packet, wherever it stands, like `exit`; outputs already made stay. A rule without actions ends
//!   its list only: the caller of the table goes on, as in OpenFlow.
//! - `dec_ttl` on a TTL of 0 or 1 ends the current action list (the rule's, or the clone's), not the callers'.
//! - `ct` sets `ct.*` for the rest of the packet and never clears it. OpenFlow's `ct(ARGS,table=T),REST` is
//!   `ct(ARGS); clone { goto T }; ct_clear; REST`.
//! - `clone` runs its actions on the packet, its variables and `ct.*` as they are, and puts all back behind it; what it
//!   sent stays sent. `exit` or `drop` inside ends only the clone.
//! - A `compare` on a field whose header is absent never stands alone: `resolve` writes `all [has(header), compare]`, so it
//!   is false there. `!=` is `all [has(header), not compare]`. A field of a present but malformed header reads 0.
//! - `has(ipv4)` is by Ethernet type alone; `has(tcp)` by IP protocol alone. Tables see ports and ICMP types of fragments
//!   as 0 (view `Table`), actions see them as they are (view `Action`).
//! - A table miss does nothing more; a packet that ends with no output is dropped under the last reason met:
//!   `drop` or an empty rule, a miss, an output left out, an expired TTL.
//! - Calls nest at most 64 deep, where a call or goto to a table behind the current one in the order of `tables` counts
//!   nothing; a packet passes at most 4,096 tables. Beyond either, all its outputs are discarded and it is dropped.
//! - `extern` calls an action that the user wrote in Rust, with a view of the packet and a word for each argument. It may write
//!   any byte of the packet, its length apart, and may end the packet as `drop` does.
//! - `arith` is on unsigned numbers, modulo 2^64: what it is written to keeps the low bits. `check` sees that no operand of a
//!   `shr` is wider than 64 bits; shifts by 64 or more give 0.
//! - `hash` is `pipec_abi::hash::hash` of its values: 32 bits. A value that is a place of more than 64 bits counts as two
//!   words, the upper one first; every other value is one.
//! - `compare_to` holds two places of at most 64 bits against each other; `resolve` writes what must be present beside it.
//! - Ports in values are OpenFlow numbers, 0 is none. `in_port` as a field is the dense number, `in_port.number` that of OpenFlow.
//! - `output_to` sends to the port with that number: as `output`, but nothing happens (reason `no_port`) where there is no such
//!   port. `output_part` is the same with a copy cut to `max_len` bytes. `mirror` sends also to the port the packet came in by.
//! - `controller` sends a copy of at most `max_len` bytes to the pseudo port `pipec_abi::CONTROLLER`: an output like others.
//! - `group` runs buckets as clones, so each ends for itself. All: every one. Select: the first whose share of the sum of
//!   weights the hash falls into, in 32 bits multiplied by the sum; is its watched port dead, the same again with
//!   `hash::again` among those alive. Fast failover: the first whose watched port lives. Indirect: the only one. Where none
//!   can be chosen nothing happens (reason `group`).
//! - `meter` ends the packet as `drop` does (reason `meter`), where it comes faster than its bucket of tokens fills.
//! - `count` counts the packet, as long as it is then, whatever becomes of it.
//! - `param(n)` is the n-th argument of the entry by which a rule of a keyed table was taken.
//! - Variables and `ct.*` are 0 when a packet enters.
//! - A declared header is present if one of its parents is, that parent's condition holds (as tables see it), and all its
//!   bytes are there; the first such parent counts. It begins behind its parent: behind the tags of Ethernet, the 28 bytes
//!   of ARP, the options of IP and TCP, the eight bytes of UDP and ICMP, the twelve of SCTP; never in a fragment. A field of
//!   an absent one reads 0, a write to it does nothing. Parents stand before it in `headers`, so none contains itself.
//! - `push` and `pop` of a declared header put bytes behind its parent (the first that is present, whatever its condition)
//!   and take them out; without a parent, or the header, nothing happens. Lengths of IP and UDP follow, and so do checksums
//!   of TCP, UDP, SCTP and ICMP, by what changed: wrong ones stay wrong. Values are read before the frame changes.
//! - `truncate` cuts off what is beyond so many bytes of the frame, if it is longer. Headers that are cut are malformed then.
//! - `push_vlan` adds an outermost tag, `pop_vlan` removes it if there is one, `set_vlan` writes a part of it and adds one
//!   where there is none. `push_mpls` adds a label: that of the outer one, else explicit null with class and TTL of IP or 64.
//!   More than three labels fail the packet, there and in `pop_mpls`. `dec_mpls_ttl` is to labels what `dec_ttl` is to IP.
//! - `encap` puts headers in front of the frame, or in place of Ethernet in front of the IP packet, where there must be one;
//!   lengths, types and IPv4's checksum are right, UDP over IPv4 has none. `decap` removes all up to the packet in a tunnel,
//!   where its header is present; IP inside keeps the outer Ethernet addresses. Without a whole packet inside it fails.
//! - Where there is no room for bytes in front of a frame, the packet fails.

mod headers;
mod keyed;

pub use headers::{After, Encap, HeaderDecl, HeaderField, Inside};
pub use keyed::{KeyMatch, KeyPart, Keyed, KeyedAction, KeyedEntry, Learn, MatchKind, Param};

use pipec_abi::DropReason;
pub use pipec_abi::reshape::Tunnel;

use crate::field::{Field, Header, Kind};
use crate::source::Span;

/// A port, by its place in [`Program::ports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortId(pub u16);

/// A table, by its place in [`Program::tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TableId(pub u16);

/// A whole program.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Program {
    /// The pipeline's name.
    pub name: String,
    /// Its ports; a [`PortId`] and the values of `in_port` count from 0 in this order.
    pub ports: Vec<Port>,
    /// What holds for the whole program.
    pub options: Options,
    /// Words of 64 bits that the metadata space has.
    pub metadata_words: u16,
    /// Names of variables, for people.
    pub variables: Vec<Variable>,
    /// Its actions in Rust.
    pub externs: Vec<Extern>,
    /// Its tables. For `.flows`, in the order of their numbers.
    pub tables: Vec<Table>,
    /// Where packets begin.
    pub entry: TableId,
    /// Its `test` blocks.
    pub tests: Vec<Test>,
    /// Its groups.
    pub groups: Vec<Group>,
    /// Its meters.
    pub meters: Vec<Meter>,
    /// Names of its own counters.
    pub counters: Vec<String>,
    /// Headers that it declares, and standard ones that it uses.
    pub headers: Vec<HeaderDecl>,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name; for `.flows`, its number in decimal.
    pub name: String,
    /// Its OpenFlow number.
    pub number: u32,
}

/// What holds for the whole program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Tags that are parsed, at the most.
    pub vlan_limit: u8,
}

impl Default for Options {
    fn default() -> Self {
        Options { vlan_limit: 1 }
    }
}

/// A variable: a name for a place in the metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub place: Place,
}

/// An action that the user writes in Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extern {
    /// Its name, which is its function's.
    pub name: String,
    /// Its parameters' kinds and widths, of at most 64 bits.
    pub params: Vec<(Kind, u8)>,
}

/// A table of rules that the program states (a sealed table).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name; for `.flows`, its number in decimal.
    pub name: String,
    /// Its rules, highest priority first, then in the order of the source.
    pub rules: Vec<Rule>,
    /// Where it is declared.
    pub span: Span,
    /// What makes it a keyed table, if it is one.
    pub keyed: Option<Keyed>,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its priority; rules of `.pipe` without one count down from the top of their table, `else` has 0.
    pub priority: u32,
    /// When it holds.
    pub cond: Cond,
    /// What it does.
    pub actions: Vec<Action>,
    /// Its source text on one line, for counters and traces.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A condition on a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Cond {
    True,
    Has(Header),
    Compare(Read, Match),
    Not(Box<Cond>),
    All(Vec<Cond>),
    Any(Vec<Cond>),
    /// Two places of at most 64 bits, against each other.
    CompareTo(Read, Order, Read),
}

/// How two places are held against each other; what is not here is written with `not`, or with the sides swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Order {
    Equal,
    Less,
    AtMost,
}

/// Where bits come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// A field, or the metadata.
    pub space: Space,
    /// First bit, counted from the most significant: of the field, or of the metadata's first word.
    pub offset: u16,
    /// How many bits.
    pub width: u8,
}

/// What a place lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Space {
    Field(Field),
    Meta,
    /// A declared header: its place in [`Program::headers`].
    Header(u16),
}

/// The offset of the place whose one bit says that a declared header is present: what `plan` and `check` make of `has`.
pub const PRESENCE: u16 = u16::MAX;

impl Place {
    /// A whole field.
    pub fn field(field: Field) -> Place {
        Place { space: Space::Field(field), offset: 0, width: field.width() }
    }
}

/// A place as someone sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    /// The place.
    pub place: Place,
    /// Who looks.
    pub view: View,
}

/// Who looks at a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// A table: transport fields of fragments are 0, `in_port` may be overridden by the call.
    Table,
    /// An action: the packet as it is.
    Action,
}

/// What a value is held against. Bits beyond the place's width are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Match {
    /// `read & mask == value`; `value & !mask == 0`.
    Masked { value: u128, mask: u128 },
    /// `low <= read <= high`.
    Range { low: u128, high: u128 },
    /// In any of the ranges, which are sorted and disjoint.
    In(Vec<(u128, u128)>),
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// It is known.
    Const(u128),
    /// It is read when the action runs, in the view of actions.
    Read(Place),
    /// It is computed when the action runs, in words of 64 bits.
    Arith(Arith, Box<Value>, Box<Value>),
    /// 32 bits that depend on all of these.
    Hash(Vec<Value>),
    /// An argument of the entry by which the rule was taken.
    Param(u16),
}

impl Value {
    /// Whether it has two words.
    pub fn is_wide(&self) -> bool {
        match self {
            Value::Read(place) => place.width > 64,
            _ => false,
        }
    }
}

/// An operation on unsigned words of 64 bits; what goes beyond is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arith {
    Add,
    Sub,
    And,
    Or,
    Xor,
    /// By 64 and more: 0.
    Shl,
    /// By 64 and more: 0.
    Shr,
}

/// What a rule does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    Output(PortId),
    InPort,
    Flood,
    All,
    Normal,
    Drop,
    Set {
        place: Place,
        value: Value,
    },
    DecTtl,
    Ct(Ct),
    CtClear,
    Call {
        table: TableId,
        in_port: Option<PortId>,
    },
    Goto(TableId),
    Clone(Vec<Action>),
    Exit,
    /// An action in Rust, by its place in [`Program::externs`].
    Extern {
        action: u16,
        args: Vec<Value>,
    },
    // sending, counting, choosing
    OutputTo(Value),
    OutputPart {
        port: Value,
        max_len: u16,
    },
    Mirror(PortId),
    Controller {
        reason: u8,
        max_len: u16,
    },
    Count(CounterId),
    Group(GroupId),
    Meter(MeterId),
    // keyed tables
    Learn(Box<Learn>),
    /// Puts a declared header behind its parent; places are in it, without overlap, all other bits are 0.
    Push {
        header: u16,
        values: Vec<(Place, Value)>,
    },
    /// Takes a declared header out.
    Pop {
        header: u16,
    },
    PushVlan {
        tpid: u16,
        tci: Value,
    },
    PopVlan,
    /// Bytes of the frame that stay.
    Truncate(u16),
    /// `place` is of `vlan.vid` or `vlan.pcp`.
    SetVlan {
        place: Place,
        value: Value,
    },
    /// Places are in the declared header of MPLS.
    PushMpls {
        eth_type: u16,
        values: Vec<(Place, Value)>,
    },
    PopMpls {
        eth_type: u16,
    },
    /// The declared header of MPLS.
    DecMplsTtl {
        header: u16,
    },
    Encap(Box<Encap>),
    /// The declared header of the tunnel.
    Decap {
        tunnel: Tunnel,
        header: u16,
    },
}

/// A counter with a name, by its place in [`Program::counters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CounterId(pub u16);

/// A group, by its place in [`Program::groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupId(pub u16);

/// A meter, by its place in [`Program::meters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeterId(pub u16);

/// Lists of actions, of which some are run on copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name; for `.flows`, its number in decimal.
    pub name: String,
    /// Which buckets are run.
    pub kind: GroupKind,
    /// What a packet's bucket depends on, where one is selected.
    pub hash: Vec<Value>,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
    /// Where it is declared.
    pub span: Span,
}

impl Group {
    /// What a selecting group's hash is of, if nothing else is said: addresses, types and ports.
    pub fn default_hash() -> Vec<Value> {
        const FIELDS: &[Field] = &[
            Field::EthSrc,
            Field::EthDst,
            Field::EthType,
            Field::VlanVid,
            Field::IpProto,
            Field::Ipv4Src,
            Field::Ipv4Dst,
            Field::Ipv6Src,
            Field::Ipv6Dst,
            Field::TcpSrc,
            Field::TcpDst,
            Field::UdpSrc,
            Field::UdpDst,
            Field::SctpSrc,
            Field::SctpDst,
        ];
        FIELDS.iter().map(|field| Value::Read(Place::field(*field))).collect()
    }
}

/// Which buckets of a group are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum GroupKind {
    All,
    Select,
    Indirect,
    FastFailover,
}

/// A list of actions of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its share, where one is selected.
    pub weight: u16,
    /// The port that must be alive for it.
    pub watch: Option<PortId>,
    /// What it does.
    pub actions: Vec<Action>,
}

/// How fast packets may come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    /// Its name; for `.flows`, its number in decimal.
    pub name: String,
    /// What it counts.
    pub unit: MeterUnit,
    /// So many in a second.
    pub rate: u32,
    /// So many at once.
    pub burst: u32,
    /// Where it is declared.
    pub span: Span,
}

/// What a meter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MeterUnit {
    Packets,
    Kilobits,
}

/// A `ct(...)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ct {
    /// The zone; 16 bits.
    pub zone: Value,
    /// Makes an entry if there is none.
    pub commit: bool,
    /// Replaces an entry made in the other direction.
    pub force: bool,
    /// New bits of the mark: value and mask. Only with commit.
    pub mark: Option<(u32, u32)>,
    /// New bits of the label: value and mask. Only with commit.
    pub label: Option<(u128, u128)>,
}

/// A `test` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// What happens, in order; an `expect` speaks of what the last `send` before it sent.
    pub steps: Vec<Step>,
    /// Where it stands.
    pub span: Span,
}

/// A step of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Step {
    Send {
        port: PortId,
        frame: Vec<u8>,
        /// How often, at one moment.
        count: u32,
        span: Span,
    },
    /// What became of the packets of the last `Send`, in any order, and of nothing else.
    Expect {
        ends: Vec<Expected>,
        span: Span,
    },
    After {
        ns: u64,
    },
}

/// What became of a packet, or of one of its copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Where it ended.
    pub end: End,
    /// How often.
    pub count: u32,
    /// What holds for it as it came out; no part reads ports, `ct.*` or the metadata.
    pub when: Vec<(Cond, Span)>,
    /// The bytes it has, if all of them are said.
    pub frame: Option<Vec<u8>>,
    /// Where it stands.
    pub span: Span,
}

/// Where a packet ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It came out of a port, or was given to the controller.
    Port(PortId),
    /// It was dropped; if that is said, under this reason.
    Drop(Option<DropReason>),
}

impl Program {
    /// The table with this id.
    pub fn table(&self, id: TableId) -> &Table {
        &self.tables[usize::from(id.0)]
    }

    /// The group with this id.
    pub fn group(&self, id: GroupId) -> &Group {
        &self.groups[usize::from(id.0)]
    }

    /// The port with this OpenFlow number.
    pub fn port_numbered(&self, number: u128) -> Option<PortId> {
        self.ports.iter().position(|port| u128::from(port.number) == number).map(|at| PortId(at as u16))
    }
}
