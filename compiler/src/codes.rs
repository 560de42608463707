//! Every code that a diagnostic can have: a paragraph on what it means and what to do, and an example. `pipec check --explain`
//! and the book print them; the tests see that none is missing. Looks at no program.

/// A code and its explanation.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// As it stands in brackets in a message: `unknown-name`.
    pub id: &'static str,
    /// What it means, in a paragraph.
    pub text: &'static str,
    /// A program that gets it: `.pipe`, or rules of `ovs-ofctl`.
    pub example: &'static str,
}

/// The code with this name.
pub fn find(id: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.id == id)
}

macro_rules! codes {
    ($($id:literal $text:literal $example:expr;)*) => {
        /// All codes, in order of their names.
        pub const CODES: &[Code] = &[$(Code { id: $id, text: $text, example: $example }),*];
    };
}
macro_rules! bad {
    ($name:literal) => {
        include_str!(concat!("../../pipelines/bad/", $name, ".pipe"))
    };
}

codes! {
    "ambiguous-priority" "Two rules of a table have the same priority, a packet can match both, and they do different things. Nothing says which one is meant. Give the one that should win a higher priority, or make their conditions exclude each other." bad!("ambiguous-priority");
    "arguments" "Something is given too many arguments, too few, or ones that it does not have: an action, a header of a packet, an end of an `expect`." bad!("arguments");
    "bad-exec" "Inside of `exec(…)` of a `ct`, only the mark and the label of the connection can be set." "ip actions=ct(commit,exec(output:1))";
    "bad-group" "A group cannot be as it is declared: its kind has other parts, or it has no bucket that packets could take." bad!("bad-group");
    "bad-literal" "An address, a number or bytes are not written as they have to be: a part too many, a digit that is none, a number beyond 128 bits." bad!("bad-literal");
    "bad-meter" "A meter cannot be as it is declared: it needs a rate above nothing, in `pps` or `kbps`, and room for a burst." bad!("bad-meter");
    "bad-packet" "The headers of a packet cannot stand on each other in this order: a transport header needs IP below it, a tag needs Ethernet. Write them from the outside in." bad!("bad-packet");
    "bad-parent" "A header is declared behind something that it cannot stand behind: a name that is no header, a header that comes later in the program, or one without an end. Declare its parent first." bad!("bad-parent");
    "bad-prefix" "What stands behind the `/` is not the length of a prefix of such an address, or not a mask of leading ones." bad!("bad-prefix");
    "bad-stack" "The headers of an `encap` are none that a packet can be put into. They begin with `eth`, have one header of IP, and end with one that carries packets." bad!("bad-stack");
    "bad-value" "A value of a rule of `ovs-ofctl` is not of the form, the kind or the size that its field has." "tcp,tp_dst=65536 actions=drop";
    "chained-comparison" "Comparisons do not chain: `1 < ttl < 5` would compare a truth with a number. Write two comparisons with `&&`, or a range with `in`." bad!("chained-comparison");
    "contradiction" "A rule of `ovs-ofctl` asks a field for two different values, so no packet can match it." "tcp,udp actions=drop";
    "ct-before-ct" "A condition reads `ct.*`, but no packet that gets there went through `ct()`, so that it is always 0. Track packets first, and read the state in the table behind. (`ct.trk` asks just that, and can be read anywhere.)" bad!("ct-before-ct");
    "ct-without-commit" "Only `ct(commit)` can force, or set mark and label: without it, no connection is made that they could belong to." "ip actions=ct(force)";
    "drop-not-alone" "In a rule of `ovs-ofctl`, `drop` stands alone: together with other actions it means nothing." "ip actions=output:1,drop";
    "duplicate" "A name is declared twice, a port number is used twice, or a table has two `else`. Both places are shown; files that are used share their names with the program." bad!("duplicate");
    "empty-range" "The first value of a range is greater than the last, so that nothing is in it." bad!("empty-range");
    "endless-loop" "Packets that get here go round for ever: every rule that can match leads on, and nothing changes what the rules ask for. Let some packets end before they come around again." bad!("endless-loop");
    "entries-file" "A file of entries cannot be read as such. By its name it is CSV, whose first line says the columns, or JSON, a list of objects: the parts of the key, `action`, its parameters." bad!("entries-file");
    "entry-action" "An entry names an action that its table does not list behind `actions`, or one that entries cannot name." bad!("entry-action");
    "entry-key" "An entry has to give each part of the key, in order and as that part is matched: a value for `exact`, a prefix for `lpm`, a range for `range`, a value under a mask for `ternary`, `_` where anything goes." bad!("entry-key");
    "flow-syntax" "A line is not a rule as `ovs-ofctl add-flows` reads them." "tcp,tp_dst=80";
    "goto-backwards" "`goto_table` of OpenFlow leads to tables with greater numbers only. `resubmit` leads anywhere." "table=3,ip actions=goto_table:1";
    "goto-not-last" "Behind a `goto_table` nothing is done in this table: it has to be the last action." "ip actions=goto_table:1,output:1";
    "header-condition" "The condition under which a header follows its parent reads something beside the packet. Test ports, connections and variables in rules." bad!("header-condition");
    "header-size" "The fields of a header make no whole number of bytes, none at all, or more than 256 bytes." bad!("header-size");
    "host-bits" "An address has bits beyond the length of its prefix. It is taken as the network that it is in, which the help shows; with a mask, it is an error." bad!("host-bits");
    "keyed-table" "A keyed table says by `key` what packets are looked up by and by `actions` what entries may do; it has no rules. What packets learn has exact keys, in a table that is `learned`." bad!("keyed-table");
    "more-errors" "There are more errors than are shown. Mend those that are, and look again." "junk\n…";
    "negated-absent" "`!` is plain negation: it also holds for packets that have no such field at all. If those are not meant, test for the header too, or use `!=`." bad!("negated-absent");
    "nested-item" "A table, action or test begins inside a table: most likely the `}` before it is missing." bad!("nested-item");
    "never-matches" "No packet can meet this condition: its parts exclude each other, or no value of the field is in what it is compared with." bad!("never-matches");
    "no-actions" "A rule of `ovs-ofctl` needs `actions=`, even if it is `actions=drop`." "tcp";
    "no-expect" "A test sends packets and expects nothing, so that it cannot fail." bad!("no-expect");
    "no-file" "A file that the program names cannot be found or read. Its path counts from the folder of the file it stands in; `-I DIR` and `PIPEC_PATH` say where else to look." bad!("no-file");
    "no-packet" "An `expect` speaks of the packet that was sent last, and none was." bad!("no-packet");
    "no-table" "A pipeline without a table does nothing with packets." bad!("no-table");
    "no-timeout" "Time-outs of rules do nothing here: the rules of a `.flows` file stay." "idle_timeout=60,ip actions=drop";
    "not-a-condition" "Something that has a value stands where true or false is needed. Compare it with something." bad!("not-a-condition");
    "not-a-field" "A comparison needs something on one side that is read from the packet: a field or a variable." bad!("not-a-field");
    "not-a-set" "What stands behind `in` has to be a set, a range or a prefix." bad!("not-a-set");
    "not-a-value" "A name stands for something that is not one value: a set, a field, a header." bad!("not-a-value");
    "not-pushable" "A header of the language cannot be put on or taken off by itself. `push` and `pop` are for `vlan`, `mpls` and headers that the program declares; tunnels are `encap` and `decap`." bad!("not-pushable");
    "not-writable" "A field, constant, port or parameter cannot be assigned. Fields that can are listed in the book." bad!("not-writable");
    "not-yet" "The language will have this, and this version has not." bad!("not-yet");
    "overlapping-rules" "Two rules of a table of `ovs-ofctl` have the same priority and a packet can match both. OpenFlow leaves open which one is taken; here it is the first." "ip,nw_src=10.0.0.0/8 actions=output:1\nip,nw_dst=10.0.0.0/8 actions=output:2";
    "prerequisite" "A field is matched whose header the rule does not ask for. `ovs-ofctl` leaves such a field out, and the rule matches more than it says; here it is an error." "tp_dst=80 actions=drop";
    "priority" "In a table where one rule has a priority, all have, but `else` never has." bad!("priority");
    "read-only-field" "The field cannot be written by actions." "ip actions=load:1->NXM_NX_CT_MARK[]";
    "recursion" "An action calls itself, by whatever way. Actions are put in place of their calls, so that this would never end. Tables can be entered again." bad!("recursion");
    "replaced-rule" "Two rules have the same match, table and priority. As in Open vSwitch, the later one stays." "ip actions=output:1\nip actions=output:2";
    "reserved-name" "The name has a meaning in the language and cannot be declared." bad!("reserved-name");
    "second-pipeline" "A file has one pipeline." bad!("second-pipeline");
    "shadowed-rule" "Earlier rules of the table, which are shown, take all packets that this one could get. Put the narrower rule first, or remove this one." bad!("shadowed-rule");
    "stray-bracket" "A bracket closes nothing." bad!("stray-bracket");
    "syntax" "Something else is expected here. The message says what; brackets and semicolons bound each statement, so that a mistake in one spoils no other." bad!("syntax-values");
    "too-deep" "Brackets, or operators in a row, nest too deep. Split the condition: name parts of it by tables, or values by sets." bad!("too-deep");
    "too-many" "A limit of the compiler is reached, or there are more messages than are shown." bad!("too-many");
    "two-masks" "A field is held under two masks at once. One is enough: `field & mask == value`, or `field == value/mask`." bad!("two-masks");
    "unclosed-bracket" "A bracket is never closed. The message points to where it opens." bad!("unclosed-bracket");
    "unclosed-comment" "A `/*` has no `*/` behind it." bad!("unclosed-comment");
    "unclosed-string" "A string ends on the line on which it begins, with a `\"`." bad!("unclosed-string");
    "unknown-action" "There is no such action of OpenFlow." "ip actions=putout:1";
    "unknown-argument" "`ct(…)` has no such argument." "ip actions=ct(zoen=1)";
    "unknown-field" "There is no such field of OpenFlow." "nw_dts=10.0.0.1 actions=drop";
    "unknown-name" "Nothing of that name is declared, or built in. The help names what is near." bad!("unknown-name");
    "unknown-port" "A port has no such number or name." "in_port=nowhere actions=drop";
    "unknown-type" "Types are `port`, `mac`, `ipv4`, `ipv6`, and `u1` to `u128`." bad!("unknown-type");
    "unknown-unit" "Units of time are `ns`, `us`, `ms`, `s`, `min` and `h`." bad!("unknown-unit");
    "unreachable-action" "`goto`, `drop` and `exit` end the list of actions: what stands behind them is never done." bad!("unreachable-action");
    "unreachable-rule" "No packet that gets to the table can match this rule." bad!("unreachable-rule");
    "unreachable-table" "No packet gets to the table: nothing goes to it or calls it, or what does never matches." bad!("unreachable-table");
    "unset-variable" "A variable is read, and nothing sets it: it is always 0." bad!("unset-variable");
    "unsupported-action" "OpenFlow has this action, and this compiler has not." "ip actions=set_queue:1";
    "unsupported-field" "OpenFlow has this field, and this compiler has not." "tun_id=5 actions=drop";
    "unused-name" "A name is declared and nothing uses it, or a variable is set and never read. If that is meant, let the name begin with `_`." bad!("unused-name");
    "use-cycle" "Files use each other in a circle, which the message shows. Put what both need into a third file." bad!("use-cycle");
    "value-too-big" "A value has more bits than what it is written to or compared with, or is beyond what is allowed." bad!("value-too-big");
    "write-absent" "A header's field is written, but no packet that gets here has that header. Test for it." bad!("write-absent");
    "write-maybe-absent" "A header's field is written, and some packets that get here have no such header: for them, nothing is written. Test for it." bad!("write-maybe-absent");
    "wrong-kind" "Values of two kinds are mixed: an address is no number, a port is no address." bad!("wrong-kind");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted_and_explained() {
        assert!(CODES.is_sorted_by(|a, b| a.id < b.id));
        for code in CODES {
            assert!(code.text.ends_with(['.', ')']) && code.text.len() > 20, "{}", code.id);
            assert!(!code.example.is_empty(), "{}", code.id);
            let (name, known) = if code.example.starts_with("//") || code.example.contains(';') {
                ("a.pipe", true)
            } else {
                ("a.flows", code.example.contains("actions") && !matches!(code.id, "no-timeout"))
            };
            let mut sources = crate::source::Sources::default();
            let file = sources.add(name, code.example);
            let (_, diagnostics) = crate::front(&mut sources, file, &[1, 2]);
            let found: Vec<&str> = diagnostics.iter().map(|d| d.code).collect();
            // Files are not read here, so a program that needs one says so.
            assert!(!known || found.contains(&code.id) || found.contains(&"no-file"), "{}: {found:?}", code.id);
        }
    }
}
