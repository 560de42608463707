//! A `.pipe` program as it is written: names are text, values are literals, nothing is looked up. `parse` makes it,
//! `print` writes it back, `resolve` gives it meaning.
//!
//! Everything that a message could point at is a [`Spanned`]. Two trees are equal if they say the same, wherever it stands.

use crate::source::Span;

/// A part of the tree and its place.
#[derive(Clone)]
pub struct Spanned<T> {
    /// The part.
    pub node: T,
    /// Where it stands.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// A part at a place.
    pub fn new(node: T, span: Span) -> Spanned<T> {
        Spanned { node, span }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Spanned<T> {
    /// What it says, not where.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.node.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    /// Equal whatever the places are.
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node
    }
}

/// A name, or a path of names with dots.
pub type Name = Spanned<String>;

/// A file: one pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Its name.
    pub name: Name,
    /// What stands in it, in order.
    pub items: Vec<Item>,
    /// Names in statements that could not be parsed: that such a name is unknown is no news.
    pub damaged: Vec<String>,
}

/// A statement of a pipeline.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Item {
    Ports(Vec<Port>),
    Const(Const),
    Set(Set),
    Option(Setting),
    Vars(Vec<Var>),
    Action(ActionDecl),
    Table(Table),
    Test(Test),
    Extern(Extern),
    /// `use "file";`: the items of that file stand here.
    Use(Spanned<String>),
    Group(Group),
    Meter(Meter),
    Header(HeaderDecl),
}

/// `lan` or `lan = 1` behind `port`.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The name.
    pub name: Name,
    /// The number, if one is given.
    pub number: Option<Expr>,
}

/// `const NAME = value;`
#[derive(Clone, Debug, PartialEq)]
pub struct Const {
    /// The name.
    pub name: Name,
    /// What it stands for.
    pub value: Expr,
}

/// `set NAME = { … };`
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// The name.
    pub name: Name,
    /// Values, ranges, prefixes, names of other sets.
    pub elements: Vec<Expr>,
}

/// `option NAME = value;`
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The name.
    pub name: Name,
    /// The value.
    pub value: Expr,
}

/// `vrf: u16` behind `var`.
#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    /// The name.
    pub name: Name,
    /// `port`, `mac`, `ipv4`, `ipv6`, or `u1` to `u128`.
    pub ty: Name,
}

/// `action NAME(params) { … }`
#[derive(Clone, Debug, PartialEq)]
pub struct ActionDecl {
    /// The name.
    pub name: Name,
    /// What calls have to give.
    pub params: Vec<Var>,
    /// What it does.
    pub body: Vec<Action>,
}

/// `extern action NAME(params);`
#[derive(Clone, Debug, PartialEq)]
pub struct Extern {
    /// The name.
    pub name: Name,
    /// What calls have to give.
    pub params: Vec<Var>,
}

/// `header NAME { fields } after PARENT if condition, …;`
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderDecl {
    /// The name.
    pub name: Name,
    /// Its fields, from the first bit on.
    pub fields: Vec<Var>,
    /// What it may stand behind, and when.
    pub after: Vec<(Name, Option<Expr>)>,
}

/// `table NAME { … }`, or `start { … }`, a table of that name.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The name.
    pub name: Name,
    /// The rules as they stand.
    pub rules: Vec<Spanned<Rule>>,
    /// Statements of a keyed table, as they stand; none: the table has rules.
    pub keyed: Vec<Spanned<KeyedStmt>>,
}

/// A statement of a keyed table.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum KeyedStmt {
    /// `key ipv4.dst: lpm, vrf: exact;`
    Key(Vec<KeyPart>),
    /// `actions route, drop;`
    Actions(Vec<Name>),
    /// `default drop;`
    Default(EntryAction),
    /// `size 1_000;`
    Size(Expr),
    /// `idle 60 s;`
    Idle(u64),
    /// `hard 300 s;`
    Hard(u64),
    /// `learned;`
    Learned,
    /// `entries { … }`
    Entries(Vec<Spanned<Entry>>),
    /// `entries from "fib.csv";`
    From(Name),
}

/// `ipv4.dst: lpm`
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    /// The field or variable.
    pub name: Name,
    /// How it is matched.
    pub kind: Name,
}

/// `priority 10: 10.0.0.0/8, _ => route(a) idle 60 s;`
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The priority, if one is given.
    pub priority: Option<Expr>,
    /// What is wanted of each part of the key: none is `_`.
    pub key: Vec<Spanned<Option<Expr>>>,
    /// What it does.
    pub action: EntryAction,
    /// Its own idle time, in nanoseconds.
    pub idle: Option<u64>,
    /// Its own hard time, in nanoseconds.
    pub hard: Option<u64>,
}

/// An action that an entry names, with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryAction {
    /// The name.
    pub name: Name,
    /// The arguments; no parentheses are none.
    pub args: Option<Vec<Arg>>,
}

/// `priority N: cond => actions;`
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The priority, if one is given.
    pub priority: Option<Expr>,
    /// When it holds; none is `else`.
    pub cond: Option<Expr>,
    /// Where the condition or `else` stands.
    pub head: Spanned<()>,
    /// What it does; nothing is allowed.
    pub actions: Vec<Action>,
}

/// A condition or a value.
pub type Expr = Spanned<ExprKind>;

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Radix {
    Decimal,
    Hex,
    Binary,
}

/// What a condition or value says.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ExprKind {
    Number {
        value: u128,
        radix: Radix,
    },
    Mac(u64),
    Ipv4(u32),
    Ipv6(u128),
    /// A string: an address that is a string for the sake of Rust's lexer, or bytes.
    Text(String),
    /// A field, a header, a flag, or a declared name.
    Path(String),
    /// `{ a, b }`.
    Elements(Vec<Expr>),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    Arith(Arith, Box<Expr>, Box<Expr>),
    /// `low..=high`.
    Range(Box<Expr>, Box<Expr>),
    /// `address/length` or `value/mask`.
    Slash(Box<Expr>, Box<Expr>),
    /// `hash(a, b)`.
    Call(Name, Vec<Expr>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
}

impl Comparison {
    /// The operators as they are written.
    pub const NAMES: &[(&str, Comparison)] = &[
        ("==", Comparison::Eq),
        ("!=", Comparison::Ne),
        ("<", Comparison::Lt),
        ("<=", Comparison::Le),
        (">", Comparison::Gt),
        (">=", Comparison::Ge),
        ("in", Comparison::In),
    ];

    /// The operator as it is written.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, c)| *c == self).map_or("?", |(n, _)| n)
    }
}

/// How two values make a third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arith {
    BitOr,
    BitAnd,
    Add,
    Sub,
    BitXor,
    Shl,
    Shr,
}

impl Arith {
    /// The operators as they are written.
    pub const NAMES: &[(&str, Arith)] = &[
        ("|", Arith::BitOr),
        ("&", Arith::BitAnd),
        ("+", Arith::Add),
        ("-", Arith::Sub),
        ("^", Arith::BitXor),
        ("<<", Arith::Shl),
        (">>", Arith::Shr),
    ];

    /// The operator as it is written.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, a)| *a == self).map_or("?", |(n, _)| n)
    }
}

/// An action of a rule.
pub type Action = Spanned<ActionKind>;

/// What an action says.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ActionKind {
    Goto(Name),
    Call(Name),
    Clone(Vec<Action>),
    Assign(Name, Expr),
    /// `drop`, `output(lan)`, or an action of the program.
    Run(Name, Option<Vec<Arg>>),
    /// `learn sessions(ipv4.dst) => pin(in_port)`
    Learn(Name, Vec<Arg>, EntryAction),
    /// `push vlan(vid = 5)`
    Push(Name, Option<Vec<Arg>>),
    /// `pop vlan`, `pop mpls(0x0800)`
    Pop(Name, Option<Vec<Arg>>),
    /// `encap eth() / ipv4(dst = 10.0.0.1) / udp() / vxlan(vni = 5)`
    Encap(Packet),
    /// `decap vxlan`
    Decap(Name),
}

/// `value` or `name = value` between parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// The name, if one is given.
    pub name: Option<Name>,
    /// The value.
    pub value: Expr,
}

/// `group NAME KIND { hash …; bucket … { … } }`
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name.
    pub name: Name,
    /// Which buckets are run.
    pub kind: Name,
    /// What `hash` lists, if it stands there.
    pub hash: Option<Vec<Expr>>,
    /// The buckets.
    pub buckets: Vec<Spanned<Bucket>>,
}

/// `bucket weight N watch PORT { … }`
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    /// The weight, if one is given.
    pub weight: Option<Expr>,
    /// The port that must be alive, if one is given.
    pub watch: Option<Name>,
    /// What it does.
    pub actions: Vec<Action>,
}

/// `meter NAME { rate N UNIT; burst N; }`
#[derive(Clone, Debug, PartialEq)]
pub struct Meter {
    /// The name.
    pub name: Name,
    /// The rate and its unit, if given.
    pub rate: Option<(Expr, Name)>,
    /// The burst, if given.
    pub burst: Option<Expr>,
}

/// `test "name" { … }`
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The name.
    pub name: Name,
    /// What happens, in order.
    pub steps: Vec<Spanned<Step>>,
}

/// A statement of a test.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Step {
    Send {
        /// How often, if that is given.
        count: Option<Spanned<u64>>,
        port: Name,
        packet: Packet,
    },
    /// What becomes of the packets of the `send` before it.
    Expect(Vec<Spanned<Expected>>),
    After {
        ns: u64,
    },
}

/// `3 wan where ipv4.ttl == 63`, `drop(policy)`, `wan == ipv4() / udp()`
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// How often, if that is given.
    pub count: Option<Spanned<u64>>,
    /// A port, or `drop`.
    pub name: Name,
    /// The reason of a `drop`, if it is given.
    pub reason: Option<Name>,
    /// What is said of the packet.
    pub like: Option<Like>,
}

/// What is said of a packet that comes out.
#[derive(Clone, Debug, PartialEq)]
pub enum Like {
    /// This holds for it.
    Where(Expr),
    /// It is this packet.
    Equal(Packet),
}

/// Layers of a packet, the outermost first.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// The layers; never empty.
    pub layers: Vec<Spanned<Layer>>,
}

/// A layer of a packet.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Layer {
    Header(Name, Vec<Arg>),
    Payload(String),
}
