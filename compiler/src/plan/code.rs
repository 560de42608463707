//! What `plan` hands to the back ends: structured code over one packet, in words of 64 bits. Back ends translate it
//! statement by statement; every decision has been taken.
//!
//! ```text
//! plan      := prefix plain? stage* point* function* prepare* ct_point* meta
//! body      := stmt*                                       runs for one packet; falling off its end is `return 0`
//! stage     := table body                                  the look-up of all packets that gather, then the body for each
//! stmt      := gather(stage, expr…, v…) | v = lookup(table, expr…) | switch v { stmt* … } | count n + v
//!            | let v = expr | if expr { stmt* } else { stmt* } | label: { stmt* } | break label | return code
//!            | count n | verdict word | verdict expr | drop_if_unsent reason | suspend point prepare?
//!            | v = ct(point, zone) | ct_clear | emit port how | emit_in how | flood how | normal how
//!            | set target high low | store(base, offset, bytes) = expr | v = dec_ttl | var[word] = expr | v = call function(in_port?)
//!            | clear (vars, ct) | v = enter(back) | v = depth | set_depth v
//!            | v = find(table, expr…) | count_entry n + v | learn(table, expr…, action, expr…)
//!            | v = external(action, expr…) | save | restore | set_ct v v v v v | fail reason
//!            | emit_to expr how | emit_part expr max_len | controller reason max_len | v = meter(n) | v = live(port)
//!            | v = reshape what expr expr | v = encap stack | finish stack | fail_with v
//!            | set_bits at expr offset width = high low
//! expr      := constant | v | arg[word] | found | found_arg[word] | carried[n] | row(rows, v, word) | len | in_port | lookup_port | load(base, offset, bytes) | var[word] | ct part
//!            | l2 | l3(v) | l4(v) | arp(v) | nd(v) | expr op expr | expr cmp expr | guard(expr, expr) | load if expr | log2 expr
//! ```
//!
//! A value is assigned once, before its uses and in a block around them: code never needs a merge of values.
//! `return 0`: the packet goes on in the caller; `return 1`: it has ended; `return 2`: it has failed. In the prefix and in
//! points all three mean the same.
//!
//! `load` reads a big-endian number, `store` writes one; `plan` asks for them only where the bytes are known to be there.
//! `find` looks up in a table whose entries are not the program's; `arg` is a word of the arguments of what the last `find` found,
//! and stands nowhere but right behind it.
//!
//! `gather` keeps a key, and values, until all packets of the burst have come this far; then the stage's table is asked for all
//! keys at once, and its body goes on with each packet that gathered: `found` is what its key gave, `carried` its values. A
//! stage's packets gather in the prefix or in stages before it. `row` is a word of a table of constants, by the low 32 bits
//! of a value.
//!
//! `guard(c, e)` is `e` where `c` is not 0, else 0, and `e` is not evaluated then.

use pipec_abi::edit::Target;
use pipec_abi::meta::Meta;
use pipec_abi::reshape::{Reshape, Stack};
use pipec_abi::{BURST, CtPoint, DropReason, Emit};

/// A value of a body: assigned once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

/// A label of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u32);

/// A program, planned.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Runs for every packet of a burst first.
    pub prefix: Vec<Stmt>,
    /// The same for frames that are `pipec_abi::header::is_plain_ipv4`, if that makes a difference.
    pub plain: Option<Vec<Stmt>>,
    /// Look-ups for the whole burst, behind the prefix, in order.
    pub stages: Vec<Stage>,
    /// Constants that rules with the same actions differ in.
    pub rows: Vec<Rows>,
    /// Where packets resume, in order. Entry `k + 1` is `points[k]`.
    pub points: Vec<Vec<Stmt>>,
    /// Tables that are not part of the bodies above.
    pub functions: Vec<Function>,
    /// Zones of the sets that packets are prepared in.
    pub prepares: Vec<u16>,
    /// What each `ct` asks for.
    pub ct_points: Vec<CtPoint>,
    /// Tables that are data, as `pipec_abi::table::encode` writes them.
    pub tables: Vec<Vec<u8>>,
    /// Its actions in Rust, and the kinds and widths of their parameters.
    pub externs: Vec<External>,
    /// Tags that are parsed, at the most.
    pub vlan_limit: u32,
    /// Values that any body has, at the most.
    pub values: u32,
    /// What the program is.
    pub meta: Meta,
    /// Headers that are put in front of packets.
    pub stacks: Vec<Stack>,
    /// Frames may begin elsewhere after some statements.
    pub reshapes: bool,
}

/// A look-up of all packets that gather for it, and what they do then.
#[derive(Clone, Debug, Default)]
pub struct Stage {
    /// The table.
    pub table: u16,
    /// It is an open one, whose entries have so many words of arguments.
    pub open: Option<u8>,
    /// Words of a key.
    pub width: u8,
    /// Values that each packet keeps.
    pub carried: u16,
    /// Its first word of the scratch.
    pub at: u32,
    /// What follows the look-up.
    pub body: Vec<Stmt>,
}

impl Stage {
    /// The numbers of its packets, a word each.
    pub fn lanes(&self) -> u32 {
        self.at
    }

    /// Its keys, one behind the other.
    pub fn keys(&self) -> u32 {
        self.at + BURST as u32
    }

    /// What is found, a word a packet.
    pub fn found(&self) -> u32 {
        self.keys() + BURST as u32 * u32::from(self.width)
    }

    /// Arguments of what is found: for each word a row with a place for each packet.
    pub fn args(&self) -> u32 {
        self.found() + BURST as u32
    }

    /// Values that packets keep, in the same way.
    pub fn kept(&self) -> u32 {
        self.args() + BURST as u32 * u32::from(self.open.unwrap_or(0))
    }

    /// The word behind it.
    pub fn end(&self) -> u32 {
        self.kept() + BURST as u32 * u32::from(self.carried)
    }
}

/// A table of constants: rows of words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Words of a row.
    pub stride: usize,
    /// All rows.
    pub words: Vec<u64>,
}

/// An action in Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// The name of its function.
    pub name: String,
    /// What the words that it gets stand for.
    pub params: Vec<Param>,
}

/// What a word that an action in Rust gets stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// An unsigned number of so many bits.
    Number(u8),
    /// An Ethernet address.
    Mac,
    /// An IPv4 address.
    Ipv4,
}

/// A table as a function of a packet and the port its look-up is told.
#[derive(Clone, Debug)]
pub struct Function {
    /// The table's name.
    pub name: String,
    /// The body.
    pub body: Vec<Stmt>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Stmt {
    Let(Value, Expr),
    If {
        cond: Expr,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    Block(Label, Vec<Stmt>),
    Break(Label),
    Return(u8),
    Count(u32),
    /// Counts at a counter plus the low 32 bits of a value.
    CountAt {
        base: u32,
        place: Value,
    },
    /// Looks a key up in a table that is data: `pipec_abi::table::MISS`, or the entry's place and, above 32 bits, a case.
    Lookup {
        result: Value,
        table: u16,
        key: Vec<Expr>,
    },
    /// The packet waits until all of the burst can be looked up at once, with its key and these values.
    Gather {
        stage: u8,
        key: Vec<Expr>,
        carry: Vec<Value>,
    },
    /// One of several lists by the upper 32 bits of a value, counted from 0; the last for all that are beyond.
    Switch {
        value: Value,
        cases: Vec<Vec<Stmt>>,
    },
    /// Sets the verdict, as a word.
    Verdict(u16),
    /// Sets the verdict to a word that is known when the packet runs.
    VerdictOf(Expr),
    DropIfUnsent(DropReason),
    /// The packet waits at a point; it is prepared with the set, if there is one.
    Suspend {
        point: u8,
        prepare: Option<u8>,
    },
    Ct {
        state: Value,
        point: u16,
        zone: Expr,
    },
    CtClear,
    Emit {
        port: u16,
        how: Emit,
    },
    /// To the port the packet came in by.
    EmitIn {
        how: Emit,
    },
    Flood {
        how: Emit,
    },
    Normal {
        how: Emit,
    },
    Set {
        target: Target,
        high: Expr,
        low: Expr,
    },
    /// Writes the low bytes of a word, big-endian, where they are known to be.
    Store {
        base: Base,
        offset: u16,
        bytes: u8,
        value: Expr,
    },
    /// 1 if the TTL has expired.
    DecTtl {
        expired: Value,
    },
    SetVar {
        word: u16,
        value: Expr,
    },
    /// 0, 1 or 2 as the function returns.
    Call {
        result: Value,
        function: u16,
        in_port: Option<u16>,
    },
    /// Variables and `ct.*` are 0, depth and number of tables too.
    Clear,
    /// Counts a table; 1 if the packet has passed too many, 2 if it is too deep. `back`: the table is not behind the current.
    Enter {
        exceeded: Value,
        back: bool,
    },
    /// Reads how deep the packet is.
    Depth(Value),
    /// Puts that back.
    SetDepth(Value),
    Save,
    Restore,
    /// To a port that is known when the packet runs.
    EmitTo {
        port: Expr,
        how: Emit,
    },
    /// A copy cut to so many bytes, to a port that may be known only then.
    EmitPart {
        port: Expr,
        max_len: u16,
    },
    Controller {
        reason: u8,
        max_len: u16,
    },
    /// 1 if the packet may pass.
    Meter {
        passes: Value,
        meter: u16,
    },
    /// 1 if the port is alive.
    Live {
        alive: Value,
        port: u16,
    },
    /// Puts back `ct.*` from values: state, zone, mark, label high, label low.
    SetCt([Value; 5]),
    Fail(DropReason),
    /// Calls an action in Rust; 1 if it drops the packet.
    External {
        dropped: Value,
        action: u16,
        arguments: Vec<Expr>,
    },
    /// Looks a key up in an open table: `pipec_abi::table::MISS`, or the entry's place and, above 32 bits, its action. `ordered`:
    /// the `Env` does, since time and packets change what is there.
    Find {
        result: Value,
        table: u16,
        key: Vec<Expr>,
        ordered: bool,
    },
    /// Counts an entry: the first counter of its table plus the low 32 bits of a value.
    CountEntry {
        first: u32,
        place: Value,
    },
    /// Makes an entry of a learned table.
    Learn {
        table: u16,
        key: Vec<Expr>,
        action: u16,
        args: Vec<Expr>,
    },
    /// Changes the shape of the frame; the result is an outcome of `pipec_abi::reshape`: 0, or why the packet fails.
    Reshape {
        failed: Value,
        what: Reshape,
        a: Expr,
        b: Expr,
    },
    /// Puts a stack of headers in front; the result likewise.
    Encap {
        failed: Value,
        stack: u16,
    },
    /// The stack's checksums.
    Finish {
        stack: u16,
    },
    /// Fails as an outcome says.
    FailWith(Value),
    /// Writes bits behind a byte of the frame. `covered`: the checksum that covers them follows.
    SetBits {
        at: Expr,
        offset: u16,
        width: u8,
        high: Expr,
        low: Expr,
        covered: bool,
    },
}

/// Part of `ct.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CtPart {
    State,
    Zone,
    Mark,
    LabelHigh,
    LabelLow,
}

/// Where a load starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// At the frame's first byte.
    Frame,
    /// At the byte that a value says.
    At(Value),
}

/// An operation on words; shifts are by less than 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Op {
    And,
    Or,
    Add,
    Sub,
    Shl,
    Shr,
    // comparisons, unsigned: 0 or 1
    Eq,
    Ne,
    Lt,
    Le,
    // what hashes are made of
    Xor,
    Mul,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Expr {
    Const(u64),
    Value(Value),
    Len,
    /// The port the packet came in by.
    InPort,
    /// The port a function's look-up is told.
    LookupPort,
    Load {
        base: Base,
        offset: u16,
        bytes: u8,
    },
    Var(u16),
    Ct(CtPart),
    L2,
    /// IP behind Ethernet. `plain`: the frame is `pipec_abi::header::is_plain_ipv4`.
    L3 {
        l2: Value,
        plain: bool,
    },
    /// The transport header, of IP in `l3`; its protocol where that is known.
    L4 {
        l3: Value,
        proto: Option<u8>,
        plain: bool,
    },
    Arp(Value),
    /// Fields of neighbour discovery, of an IPv6 header.
    Nd(Value),
    Op(Op, Box<Expr>, Box<Expr>),
    Guard(Box<Expr>, Box<Expr>),
    /// As a guard around a load, but the address depends on the condition and no branch: for conditions that differ from packet
    /// to packet.
    LoadIf {
        cond: Box<Expr>,
        base: Base,
        offset: u16,
        bytes: u8,
    },
    /// The place of the highest bit that is set; 0 if there is none.
    Log2(Box<Expr>),
    /// A word of the arguments of the entry that was found last.
    Arg(u16),
    /// Of the stage whose body this is: what was found.
    Found,
    /// Of the stage whose body this is: a word of the arguments of what was found.
    FoundArg(u16),
    /// Of the stage whose body this is: a value that the packet kept.
    Carried(u16),
    /// A word of a row of constants, by the low 32 bits of a value.
    Row {
        rows: u16,
        at: Value,
        /// Words of a row.
        stride: u16,
        word: u16,
    },
}

impl Expr {
    /// `self op other`, folded where both are known.
    pub fn op(self, op: Op, other: Expr) -> Expr {
        if let (Expr::Const(a), Expr::Const(b)) = (&self, &other) {
            return Expr::Const(op.eval(*a, *b));
        }
        match (op, &self, &other) {
            (Op::And, _, Expr::Const(u64::MAX))
            | (Op::Or | Op::Shl | Op::Shr | Op::Add | Op::Sub, _, Expr::Const(0)) => self,
            (Op::Or, Expr::Const(0), _) => other,
            (Op::And, _, Expr::Const(0)) => Expr::Const(0),
            _ => Expr::Op(op, Box::new(self), Box::new(other)),
        }
    }

    /// `self op constant`.
    pub fn with(self, op: Op, constant: u64) -> Expr {
        self.op(op, Expr::Const(constant))
    }
}

impl Op {
    /// What it makes of two words.
    pub fn eval(self, a: u64, b: u64) -> u64 {
        match self {
            Op::And => a & b,
            Op::Or => a | b,
            Op::Add => a.wrapping_add(b),
            Op::Sub => a.wrapping_sub(b),
            Op::Shl => a << (b & 63),
            Op::Shr => a >> (b & 63),
            Op::Eq => u64::from(a == b),
            Op::Ne => u64::from(a != b),
            Op::Lt => u64::from(a < b),
            Op::Le => u64::from(a <= b),
            Op::Xor => a ^ b,
            Op::Mul => a.wrapping_mul(b),
        }
    }
}
