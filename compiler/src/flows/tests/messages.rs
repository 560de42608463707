//! Tests of what the `.flows` front end says.

use std::path::Path;

use super::*;
use crate::diag::Severity;
use crate::flows::front_flows;
use crate::source::Sources;

#[test]
fn mistakes_are_explained() {
    for (text, expected) in [
        ("in_port=1", &["no-actions", "actions=drop"][..]),
        ("in_port=1 actions=ouput:1", &["no action `ouput`", "did you mean `output`"]),
        ("in_prt=1 actions=1", &["no field `in_prt`", "did you mean `in_port`"]),
        ("tun_id=1 actions=1", &["`tun_id` is not supported yet"]),
        ("nw_src=10.0.0.1 actions=1", &["`nw_src` needs a match on IPv4", "add `ip`"]),
        ("tcp,udp_dst=5 actions=1", &["`udp_dst` needs a match on UDP"]),
        ("tp_dst=5 actions=1", &["needs a match on TCP, UDP or SCTP"]),
        ("tcp,ip_frag=later,tp_dst=1 actions=1", &["later fragments"]),
        ("vlan_pcp=3 actions=1", &["needs a match on a VLAN tag"]),
        ("ip,arp actions=1", &["`arp` contradicts"]),
        ("dl_vlan=1,dl_vlan=2 actions=1", &["contradicts"]),
        ("tcp,tp_dst=70000 actions=1", &["70000 does not fit in 16 bits"]),
        ("dl_vlan=5000 actions=1", &["5000 does not fit"]),
        ("ip,nw_ttl=1/3 actions=1", &["`nw_ttl` takes no mask"]),
        ("ip,nw_tos=3 actions=1", &["multiple of 4"]),
        ("in_port=eth0 actions=1", &["no port `eth0`", "ovs-ofctl show"]),
        ("in_port=normal actions=1", &["no packet comes in by `normal`"]),
        ("in_port= actions=1", &["`in_port` needs a value"]),
        ("table=255 actions=1", &["there is no table 255"]),
        ("priority=65536 actions=1", &["does not fit in 16 bits"]),
        ("table=2 actions=goto_table:1", &["forward only", "resubmit(,1)"]),
        ("actions=goto_table:1,2", &["actions behind `goto_table`"]),
        ("actions=drop,1", &["`drop` beside other actions"]),
        ("actions=1,drop", &["`drop` beside other actions"]),
        ("actions=group:1", &["no line declares the group 1", "group_id="]),
        ("actions=meter:1,2", &["no line declares the meter 1", "bands=type=drop"]),
        ("group_id=1,type=pick,bucket=1", &["no type of group `pick`"]),
        ("group_id=1,type=all,bucket=watch_group:2,1", &["`watch_group` is not supported yet"]),
        ("group_id=1,type=all,bucket=group:1\nactions=group:1", &["does not stand before its own"]),
        ("meter=1 kbps bands=type=dscp_remark rate=1 prec_level=1", &["a band of `type=dscp_remark`"]),
        ("meter=1 kbps bands=type=drop", &["exactly one band and a rate"]),
        ("actions=output(port=1,max_len=13)", &["at least an Ethernet header"]),
        ("actions=output(port=NORMAL,max_len=64)", &["`max_len` of an output to `NORMAL`"]),
        ("actions=output:xxreg0[]", &["a port's number has at most 32 bits"]),
        ("actions=resubmit(,1,ct)", &["`resubmit` with `ct`"]),
        ("actions=resubmit()", &["needs a port or a table"]),
        ("actions=ct(table=1)", &["`ct` needs a match on IP"]),
        ("ip actions=ct(nat)", &["`nat` in `ct` is not supported yet"]),
        ("ip actions=ct(force)", &["`force` without `commit`"]),
        ("ip actions=ct(exec(set_field:1->ct_mark))", &["`exec` without `commit`"]),
        ("ip actions=ct(commit,exec(set_field:1->reg0))", &["`reg0` inside of `exec`"]),
        ("ip actions=ct(commit,exec(output:1))", &["`output` inside of `exec`"]),
        ("ip actions=ct(zone=reg0[0..7])", &["a zone has 16 bits", "reg0[0..15]"]),
        ("ip actions=ct(foo)", &["no argument `foo`"]),
        ("actions=set_field:1->ct_mark", &["only inside of `ct(commit,exec(...))`"]),
        ("actions=set_field:1->eth_type", &["`eth_type` cannot be written"]),
        ("actions=set_field:1->in_port", &["writing `in_port` is not supported yet"]),
        ("actions=set_field:1->tun_id", &["`tun_id` is not supported yet"]),
        ("actions=set_field:10.0.0.1->ip_src", &["`ip_src` needs a match on IPv4"]),
        ("actions=load:256->reg0[0..7]", &["256 does not fit in 8 bits"]),
        ("actions=load:1->reg0[0..32]", &["has no bits 0 to 32", "0 to 31"]),
        ("actions=load:1->reg0[0", &["a `[` is never closed"]),
        ("actions=load:1", &["no `->`"]),
        ("actions=move:reg0[0..7]->reg1[0..8]", &["differ in width", "8 bits", "9 bits"]),
        ("actions=push_vlan:0x9100", &["0x9100 is no type for `push_vlan`", "0x8100 or 0x88a8"]),
        ("mpls_label=5 actions=1", &["`mpls_label` needs a match on MPLS"]),
        ("mpls actions=set_field:1->mpls_bos", &["`mpls_bos` cannot be written"]),
        ("icmp6,icmp_type=136 actions=set_field:02:00:00:00:00:01->nd_sll", &["needs a match on neighbour discovery"]),
        ("ip actions=push_mpls:0x8847,set_field:1.2.3.4->ip_dst", &["`ip_dst` needs a match on IPv4"]),
        ("dl_vlan=1 actions=set_field:5->vlan_vid", &["removing a VLAN tag"]),
        ("actions=mod_foo:1", &["no action `mod_foo`"]),
        ("actions=ct(", &["a `(` is never closed"]),
        ("delete in_port=1 actions=1", &["changes rules of a running switch"]),
    ] {
        let (program, said) = front(text);
        assert!(program.is_none(), "{text} is accepted");
        for part in expected {
            assert!(said.contains(part), "{text}: `{part}` is not in\n{said}");
        }
    }
}

#[test]
fn what_has_no_effect_is_warned_of() {
    for (text, expected) in [
        ("idle_timeout=5 actions=1", "rules do not expire yet"),
        ("actions=mod_nw_src:10.0.0.1", "needs a match on IPv4"),
        ("arp actions=dec_ttl", "needs a match on IP"),
    ] {
        let (program, said) = front(text);
        assert!(program.is_some() && said.contains("warning") && said.contains(expected), "{text}:\n{said}");
    }
    assert_eq!(said("idle_timeout=0,hard_timeout=0 actions=1"), "");
}

#[test]
fn all_mistakes_are_told_with_their_places() {
    let mut sources = Sources::default();
    let text = "in_port=1 actions=foo,output:x\n\nnw_src=1,tp_dst=2 actions=bar\n";
    let file = sources.add("x", text);
    let (program, diagnostics) = front_flows(&sources, file, &[]);
    assert!(program.is_none() && diagnostics.iter().all(|d| d.severity == Severity::Error));
    let places: Vec<_> = diagnostics.iter().map(|d| sources.text(d.span())).collect();
    assert_eq!(places, ["foo", "x", "nw_src", "tp_dst", "bar"]);
}

#[test]
fn the_pipelines_are_read_without_a_word() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipelines");
    let mut read = 0;
    for entry in std::fs::read_dir(&folder).expect("the pipelines") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "flows") {
            let (program, said) = front(&std::fs::read_to_string(&path).expect("a file"));
            assert!(program.is_some() && said.is_empty(), "{}:\n{said}", path.display());
            read += 1;
        }
    }
    assert!(read >= 2);
}

#[test]
fn no_text_panics() {
    let words = [
        "in_port",
        "=",
        "1",
        ",",
        " ",
        "actions=",
        "(",
        ")",
        "->",
        "[",
        "]",
        "..",
        "ct",
        "set_field:",
        "reg0",
        "/",
        "0x",
        "*",
        "+",
        "-",
        "ip",
        "resubmit",
        "output:",
        "nw_src=",
        "ä",
        "::",
        "\n",
        "#",
        "clone(",
        "load:",
        "move:",
        "ct_state=",
        "dl_vlan=",
    ];
    let mut random = 7u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text += words[(random >> 33) as usize % words.len()];
        }
        said(&text);
    }
}
