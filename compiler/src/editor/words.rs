//! Words of the language with what they mean, for people who write programs.

/// A word, how it is used, and what it means.
pub type Word = (&'static str, &'static str, &'static str);

/// Statements of a pipeline.
pub const ITEMS: &[Word] = &[
    ("action", "action NAME(param: type, …) { … }", "An action of this program, used as `NAME(…)` in rules."),
    ("const", "const NAME = VALUE;", "A name for a value."),
    ("extern", "extern action NAME(param: type, …);", "An action that is written in Rust."),
    ("group", "group NAME KIND { bucket { … } … }", "Buckets of actions; the kind says which of them run."),
    ("header", "header NAME { field: u16, … } after PARENT if CONDITION;", "A header of this program's own."),
    ("meter", "meter NAME { rate 1000 pps; burst 100; }", "A limit; what is faster is dropped."),
    ("option", "option NAME = VALUE;", "What holds for the whole program, such as `vlan_limit`."),
    ("port", "port NAME, NAME = NUMBER;", "Ports; one without a number has its place in the order of ports, from 1."),
    ("set", "set NAME = { 80, 8000..=8080, 10.0.0.0/8 };", "A name for values, ranges and prefixes."),
    ("start", "start { CONDITION => ACTIONS; … }", "The table where packets begin; without it, the first one."),
    ("table", "table NAME { CONDITION => ACTIONS; … }", "Rules, of which the first that holds is taken."),
    (
        "test",
        "test \"NAME\" { send PORT PACKET; expect PORT; … }",
        "Packets, and what becomes of them; run by `pipec test`.",
    ),
    ("use", "use \"FILE\";", "Takes the items of another file in."),
    ("var", "var NAME: TYPE, …;", "Variables of a packet, 0 when it enters."),
];

/// Statements of a table.
pub const RULES: &[Word] = &[
    ("else", "else => ACTIONS;", "Holds for what no other rule takes."),
    ("priority", "priority N: CONDITION => ACTIONS;", "The rule with the highest priority that holds is taken."),
];

/// Statements of a table with a key.
pub const KEYED: &[Word] = &[
    ("actions", "actions NAME, …;", "What entries may do."),
    ("default", "default ACTION;", "What is done where no entry holds."),
    ("entries", "entries { VALUES => ACTION; … }", "Entries that the table begins with."),
    ("hard", "hard 300 s;", "How long an entry lives."),
    ("idle", "idle 60 s;", "How long an entry lives that no packet takes."),
    ("key", "key FIELD: lpm, FIELD: exact;", "What is looked up: `exact`, `lpm`, `ternary`, `range` or `optional`."),
    ("learned", "learned;", "Entries are added by `learn`."),
    ("size", "size 1_000_000;", "Entries, at the most."),
];

/// Statements of a test.
pub const STEPS: &[Word] = &[
    ("after", "after 61 s;", "Time passes."),
    ("expect", "expect PORT, …;", "What became of the packet sent last: the ports it came out of, or `drop`."),
    ("send", "send PORT ipv4(dst = 10.0.0.1) / udp(dst = 53);", "A packet comes in by a port."),
];

/// Actions.
pub const ACTIONS: &[Word] = &[
    ("all", "all", "To all ports but the one the packet came in by."),
    ("call", "call TABLE", "Goes through a table and comes back."),
    ("clone", "clone { ACTIONS }", "Runs actions and puts the packet back as it was; what they sent stays sent."),
    ("controller", "controller(reason = 3, max_len = 128)", "Hands a copy of the packet to the controller."),
    ("count", "count(NAME)", "Counts the packet under a name."),
    (
        "ct",
        "ct(commit, zone = 5, mark = 1)",
        "Looks the packet's connection up and sets `ct.*`; `commit` remembers it.",
    ),
    ("ct_clear", "ct_clear", "Sets `ct.*` to 0."),
    ("dec_mpls_ttl", "dec_mpls_ttl", "Takes 1 from the outer label's TTL; at 0 or 1 it ends the list of actions."),
    ("dec_ttl", "dec_ttl", "Takes 1 from the TTL; at 0 or 1 it ends the list of actions."),
    ("decap", "decap HEADER", "Takes a tunnel off, up to this header."),
    ("drop", "drop", "Ends the packet."),
    ("encap", "encap eth(…) / ipv4(…) / udp(…) / vxlan(…)", "Puts the packet into a tunnel."),
    ("exit", "exit", "Ends the packet; what it sent stays sent."),
    ("flood", "flood", "To all ports but the one the packet came in by."),
    ("goto", "goto TABLE", "Goes on in a table, and does not come back."),
    ("group", "group(NAME)", "Runs the buckets of a group."),
    ("in_port", "in_port", "Back to where the packet came from."),
    ("learn", "learn TABLE(KEYS) => ACTION", "Adds an entry to a learned table."),
    ("meter", "meter(NAME)", "Drops the packet where the meter's rate is exceeded."),
    ("mirror", "mirror(PORT)", "Sends a copy as the packet came in."),
    ("nat", "nat(…)", "Translates addresses of a connection."),
    ("normal", "normal", "As a learning switch does."),
    ("output", "output(PORT, …)", "Sends the packet as it is now; nothing to the port it came in by."),
    ("pop", "pop HEADER", "Takes a header off."),
    ("push", "push HEADER(FIELD = VALUE, …)", "Puts a header on."),
    ("truncate", "truncate(LENGTH)", "Cuts the packet that is sent."),
];

/// Other words.
pub const OTHERS: &[Word] = &[
    ("bucket", "bucket weight N { ACTIONS }", "Actions of a group."),
    ("burst", "burst 100;", "What a meter lets pass at once."),
    ("from", "entries from \"FILE\";", "Entries are read from a CSV or JSON file."),
    ("hash", "hash(FIELD, …)", "A number that packets of one conversation share; in a group, what chooses the bucket."),
    ("if", "after PARENT if CONDITION", "When a header is there."),
    ("in", "VALUE in 10.0.0.0/8", "Holds for what is in a set, a range or a prefix."),
    ("pipeline", "pipeline NAME { … }", "A program: ports, tables, actions."),
    ("rate", "rate 1000 pps;", "What a meter lets pass: `pps` or `kbps`."),
    ("watch", "bucket watch PORT { ACTIONS }", "The bucket is used while this port is up."),
    ("weight", "bucket weight N { ACTIONS }", "How often the bucket is chosen, beside the others' weights."),
    ("where", "expect PORT where CONDITION;", "What holds for the packet that came out."),
];

/// Types of variables and parameters.
pub const TYPES: &[&str] = &["ipv4", "ipv6", "mac", "port", "u1", "u8", "u12", "u16", "u32", "u64", "u128"];

/// All words that have a meaning, in any list.
pub fn all() -> impl Iterator<Item = &'static Word> {
    [ITEMS, RULES, KEYED, STEPS, ACTIONS, OTHERS].into_iter().flatten()
}
