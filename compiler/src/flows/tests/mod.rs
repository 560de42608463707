//! Tests of the `.flows` front end: what rules become, and what is said of wrong ones.

mod messages;

use super::*;
use crate::diag::render_all;
use crate::field::{Field, Header};
use crate::hir::{
    Action, Cond, Ct, GroupId, GroupKind, Match, MeterId, MeterUnit, Place, PortId, Read, Space, TableId, Value, View,
};

/// The program, and the diagnostics as text.
fn front(text: &str) -> (Option<Program>, String) {
    let mut sources = Sources::default();
    let file = sources.add("dir/test.flows", text);
    let (program, diagnostics) = front_flows(&sources, file, &[]);
    (program, render_all(&diagnostics, &sources, false))
}

/// The program of a text without errors.
fn program(text: &str) -> Program {
    let (program, said) = front(text);
    program.unwrap_or_else(|| panic!("{text}:\n{said}"))
}

/// What is said of a text.
fn said(text: &str) -> String {
    front(text).1
}

/// The only condition of a program of one rule.
fn cond(matches: &str) -> Cond {
    program(&format!("{matches} actions=drop")).tables[0].rules[0].cond.clone()
}

/// The actions of a rule that matches and does this.
fn actions(matches: &str, actions: &str) -> Vec<Action> {
    program(&format!("{matches} actions={actions}")).tables[0].rules[0].actions.clone()
}

fn masked(field: Field, value: u128, mask: u128) -> Cond {
    compare(Place::field(field), value, mask)
}

fn is(field: Field, value: u128) -> Cond {
    masked(field, value, u128::MAX >> (128 - field.width()))
}

fn compare(place: Place, value: u128, mask: u128) -> Cond {
    Cond::Compare(Read { place, view: View::Table }, Match::Masked { value, mask })
}

fn meta(offset: u16, width: u8) -> Place {
    Place { space: Space::Meta, offset, width }
}

fn slice(field: Field, offset: u16, width: u8) -> Place {
    Place { space: Space::Field(field), offset, width }
}

fn set(place: Place, value: u128) -> Action {
    Action::Set { place, value: Value::Const(value) }
}

fn has(header: Header) -> Cond {
    Cond::Has(header)
}

#[test]
fn rules_are_ordered_by_table_priority_and_line() {
    let program = program(
        "# a comment\n\n table=7, priority=5, in_port=9 actions=output:3 # more\n\
         in_port=1,actions=drop\npriority=65535 in_port=2 actions=resubmit(,9)\nin_port=3 actions=LOCAL\n",
    );
    let names: Vec<_> = program.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!((program.name.as_str(), names), ("test", vec!["0", "7", "9"]));
    let priorities: Vec<_> = program.tables[0].rules.iter().map(|rule| rule.priority).collect();
    assert_eq!(priorities, [65535, 32768, 32768]);
    let ports: Vec<_> = program.ports.iter().map(|port| (port.name.as_str(), port.number)).collect();
    assert_eq!(ports, [("1", 1), ("2", 2), ("3", 3), ("9", 9), ("65534", 65534)]);
    let rules = &program.tables[0].rules;
    assert_eq!(rules[0].cond, is(Field::InPort, 1));
    assert_eq!(rules[0].actions, [Action::Call { table: TableId(2), in_port: None }]);
    assert_eq!(rules[2].actions, [Action::Output(PortId(4))]);
    assert_eq!(program.tables[1].rules[0].actions, [Action::Output(PortId(2))]);
    assert!(program.tables[2].rules.is_empty());
}

#[test]
fn extra_ports_are_ports() {
    let mut sources = Sources::default();
    let file = sources.add("x", "in_port=2 actions=all");
    let (program, _) = front_flows(&sources, file, &[5, 1, 2]);
    let numbers: Vec<_> = program.expect("a program").ports.iter().map(|port| port.number).collect();
    assert_eq!(numbers, [1, 2, 5]);
}

#[test]
fn dumps_are_read() {
    let program = program(
        "NXST_FLOW reply (xid=0x4):\nOFPST_FLOW reply (OF1.3) (xid=0x2):\n \
         cookie=0x1f, duration=3.14s, table=0, n_packets=7, n_bytes=420, idle_age=3, hard_age=4, reset_counts \
         priority=10,udp,in_port=1,tp_dst=53 actions=output:2\n \
         cookie=0x0, duration=1.2s, table=0, n_packets=0, n_bytes=0, send_flow_rem actions=NORMAL\n",
    );
    assert_eq!(program.tables[0].rules[1].priority, 10);
    assert_eq!(program.tables[0].rules[0].actions, [Action::Normal]);
    assert_eq!(program.tables[0].rules[0].cond, Cond::True);
}

#[test]
fn protocols_become_headers() {
    let all = |conds: &[Cond]| Cond::All(conds.to_vec());
    assert_eq!(cond(""), Cond::True);
    assert_eq!(cond("ip"), has(Header::Ipv4));
    assert_eq!(cond("dl_type=0x0806"), has(Header::Arp));
    assert_eq!(cond("rarp"), has(Header::Rarp));
    assert_eq!(cond("dl_type=0x88cc"), is(Field::EthType, 0x88cc));
    assert_eq!(cond("tcp6"), all(&[has(Header::Ipv6), has(Header::Tcp)]));
    assert_eq!(cond("icmp"), all(&[has(Header::Ipv4), has(Header::Icmp)]));
    assert_eq!(cond("icmp6"), all(&[has(Header::Ipv6), has(Header::Icmpv6)]));
    assert_eq!(cond("nw_proto=47,ip"), all(&[has(Header::Ipv4), is(Field::IpProto, 47)]));
    assert_eq!(cond("ipv6,nw_proto=1"), all(&[has(Header::Ipv6), is(Field::IpProto, 1)]));
    assert_eq!(cond("eth,dl_type=0x86dd,ip_proto=132"), all(&[has(Header::Ipv6), has(Header::Sctp)]));
}

#[test]
fn fields_of_packets() {
    let of = |matches: &str| match cond(matches) {
        Cond::All(mut conds) => conds.pop().expect("conditions"),
        cond => cond,
    };
    let multicast = 0x0100_0000_0000;
    assert_eq!(of("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00"), masked(Field::EthDst, multicast, multicast));
    assert_eq!(of("eth_src=2:0:0:0:0:1"), is(Field::EthSrc, 0x0200_0000_0001));
    assert_eq!(of("ip,nw_src=10.0.0.0/8"), masked(Field::Ipv4Src, 10 << 24, 0xff << 24));
    assert_eq!(of("ip,ip_dst=10.0.0.0/255.0.0.255"), masked(Field::Ipv4Dst, 10 << 24, 0xff00_00ff));
    assert_eq!(of("arp,nw_src=10.0.0.1"), is(Field::ArpSpa, 0x0a00_0001));
    assert_eq!(of("arp,nw_proto=2"), is(Field::ArpOp, 2));
    assert_eq!(of("rarp,arp_sha=2:0:0:0:0:1"), is(Field::ArpSha, 0x0200_0000_0001));
    assert_eq!(of("ipv6,ipv6_dst=fc00::/7"), masked(Field::Ipv6Dst, 0xfc << 120, 0xfe << 120));
    assert_eq!(of("ip,nw_tos=0xb8"), is(Field::IpDscp, 46));
    assert_eq!(of("ipv6,ip_ecn=1"), is(Field::IpEcn, 1));
    assert_eq!(of("ip,nw_ttl=255"), is(Field::IpTtl, 255));
    assert_eq!(of("ip,ip_frag=later"), masked(Field::IpFrag, 2, 2));
    assert_eq!(of("ip,nw_frag=no"), is(Field::IpFrag, 0));
    assert_eq!(of("tp_dst=0x60/0xffe0,tcp"), masked(Field::TcpDst, 0x60, 0xffe0));
    assert_eq!(of("udp6,tp_src=53"), is(Field::UdpSrc, 53));
    assert_eq!(of("sctp,sctp_dst=9"), is(Field::SctpDst, 9));
    assert_eq!(of("icmp,tp_src=8"), is(Field::IcmpType, 8));
    assert_eq!(of("icmp6,icmp_type=135"), is(Field::Icmpv6Type, 135));
    assert_eq!(of("icmp6,icmpv6_code=1"), is(Field::Icmpv6Code, 1));
    assert_eq!(of("tcp,tcp_flags=+syn-ack"), masked(Field::TcpFlags, 2, 0x12));
    assert_eq!(of("ip,nw_src=*"), has(Header::Ipv4));
}

#[test]
fn vlans_are_matches_on_the_tag() {
    assert_eq!(cond("dl_vlan=100"), masked(Field::VlanTci, 0x1064, 0x1fff));
    assert_eq!(cond("dl_vlan=0xffff"), is(Field::VlanTci, 0));
    assert_eq!(cond("vlan_tci=0/0xfff"), masked(Field::VlanTci, 0, 0xfff));
    assert_eq!(cond("vlan_vid=0x1000/0x1000"), masked(Field::VlanTci, 0x1000, 0x1000));
    assert_eq!(cond("dl_vlan_pcp=3"), masked(Field::VlanTci, 0x7000, 0xf000));
    assert_eq!(cond("vlan_pcp=3,vlan_vid=0x1064"), is(Field::VlanTci, 0x7064));
}

#[test]
fn connections_and_metadata() {
    assert_eq!(cond("ct_state=+new-est+trk"), masked(Field::CtState, 0x21, 0x23));
    assert_eq!(cond("ct_zone=5"), is(Field::CtZone, 5));
    assert_eq!(cond("ct_mark=0x10/0xf0"), masked(Field::CtMark, 0x10, 0xf0));
    assert_eq!(cond("ct_label=0x1/0x1"), masked(Field::CtLabel, 1, 1));
    assert_eq!(cond("reg0=1"), compare(meta(0, 32), 1, 0xffff_ffff));
    assert_eq!(cond("reg1=0x10/0xf0"), compare(meta(32, 32), 0x10, 0xf0));
    assert_eq!(cond("reg2=1,reg3=2"), compare(meta(64, 64), 1 << 32 | 2, u64::MAX.into()));
    assert_eq!(cond("xreg7=5"), compare(meta(448, 64), 5, u64::MAX.into()));
    assert_eq!(cond("metadata=0x5/0xff"), compare(meta(544, 32), 5, 0xff));
    let words = [compare(meta(128, 32), 1, 0xffff_ffff), compare(meta(192, 64), 2, u64::MAX.into())];
    assert_eq!(
        cond("xxreg1=0x1000000000000000000000002/0xffffffff00000000ffffffffffffffff"),
        Cond::All(words.to_vec())
    );
    let used = program("reg5=1 actions=load:1->NXM_NX_REG0[0..3]");
    let names: Vec<_> = used.variables.iter().map(|variable| (variable.name.as_str(), variable.place)).collect();
    assert_eq!((names, used.metadata_words), (vec![("reg0", meta(0, 32)), ("reg5", meta(160, 32))], 3));
    assert_eq!(program("actions=drop").metadata_words, 0);
    assert_eq!(program("metadata=1 actions=drop").metadata_words, 9);
}

#[test]
fn outputs() {
    let all = "1,output:2,output(port=3),in_port,ALL,flood,NORMAL,LOCAL,output:65529,output:IN_PORT";
    let (program, text) = front(&format!("actions={all}"));
    assert!(program.is_none() && text.contains("output to `TABLE` is not supported yet"), "{text}");
    let out = |id| Action::Output(PortId(id));
    let expected =
        [out(0), out(1), out(2), Action::InPort, Action::All, Action::Flood, Action::Normal, out(3), Action::InPort];
    assert_eq!(actions("", &all.replace(",output:65529", "")), expected);
    assert_eq!(actions("", "drop"), []);
    assert_eq!(actions("", ""), []);
    assert_eq!(actions("", "note:01.02,exit"), [Action::Exit]);
}

#[test]
fn resubmits_and_gotos() {
    let program =
        program("table=1 actions=resubmit:5,resubmit(6),resubmit(,3),resubmit(7,3),resubmit(in_port,0),goto_table:2");
    let call = |table, port: Option<u16>| Action::Call { table: TableId(table), in_port: port.map(PortId) };
    let names: Vec<_> = program.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["0", "1", "2", "3"]);
    let expected =
        [call(1, Some(0)), call(1, Some(1)), call(3, None), call(3, Some(2)), call(0, None), Action::Goto(TableId(2))];
    assert_eq!(program.tables[1].rules[0].actions, expected);
}

#[test]
fn ct_forks_and_goes_on_untracked() {
    let zone = |zone| Ct { zone, commit: false, force: false, mark: None, label: None };
    let fork = |table| Action::Clone(vec![Action::Goto(TableId(table))]);
    assert_eq!(
        actions("ip", "ct(table=1,zone=5),output:2"),
        [Action::Ct(zone(Value::Const(5))), fork(1), Action::CtClear, Action::Output(PortId(0))]
    );
    assert_eq!(actions("ipv6", "ct"), [Action::Ct(zone(Value::Const(0))), Action::CtClear]);
    assert_eq!(actions("ipv6", "ct()"), actions("ipv6", "ct"));
    let exec = "exec(set_field:0x5/0xf->ct_mark,load:0x1->NXM_NX_CT_MARK[4],set_field:3->ct_label)";
    let ct = Ct {
        zone: Value::Read(meta(16, 16)),
        commit: true,
        force: true,
        mark: Some((0x15, 0x1f)),
        label: Some((3, u128::MAX)),
    };
    let args = format!("ct(commit,force,zone=NXM_NX_REG0[0..15],{exec})");
    assert_eq!(actions("ip", &args), [Action::Ct(ct), Action::CtClear]);
    assert_eq!(actions("", "ct_clear"), [Action::CtClear]);
}

#[test]
fn writes() {
    let mac = 0x0200_0000_0001;
    assert_eq!(actions("", "set_field:2:0:0:0:0:1->eth_src"), [set(Place::field(Field::EthSrc), mac)]);
    assert_eq!(actions("", "mod_dl_dst:2:0:0:0:0:1"), [set(Place::field(Field::EthDst), mac)]);
    assert_eq!(actions("ip", "mod_nw_tos:184"), [set(Place::field(Field::IpDscp), 46)]);
    assert_eq!(actions("ip", "set_field:184->nw_tos"), [set(slice(Field::IpDscp, 0, 6), 46)]);
    assert_eq!(actions("tcp", "mod_tp_dst:80"), [set(Place::field(Field::TcpDst), 80)]);
    assert_eq!(actions("udp6", "set_field:80->tp_dst"), [set(Place::field(Field::UdpDst), 80)]);
    assert_eq!(actions("icmp6", "set_field:1->icmp_type"), [set(Place::field(Field::Icmpv6Type), 1)]);
    assert_eq!(actions("arp", "load:2->NXM_OF_ARP_OP[]"), [set(Place::field(Field::ArpOp), 2)]);
    assert_eq!(actions("ip", "set_field:10.0.0.0/8->ip_dst"), [set(slice(Field::Ipv4Dst, 0, 8), 10)]);
    assert_eq!(actions("", "set_field:0x5a/0xff->reg1"), [set(meta(56, 8), 0x5a)]);
    assert_eq!(actions("", "set_field:0x101/0x103->reg0"), [set(meta(30, 2), 1), set(meta(23, 1), 1)]);
    assert_eq!(actions("", "load:0x7->NXM_NX_REG2[28..31]"), [set(meta(64, 4), 7)]);
    assert_eq!(actions("", "set_field:7->metadata"), [set(meta(512, 64), 7)]);
    assert_eq!(actions("", "write_metadata:0x10/0xf0"), [set(meta(568, 4), 1)]);
    assert_eq!(
        actions("dl_vlan=1", "mod_vlan_vid:5,mod_vlan_pcp:2"),
        [set(Place::field(Field::VlanVid), 5), set(Place::field(Field::VlanPcp), 2)]
    );
    assert_eq!(actions("dl_vlan=1", "set_field:4101->vlan_vid"), [set(Place::field(Field::VlanVid), 5)]);
    assert_eq!(actions("dl_vlan=1", "set_field:5->dl_vlan"), [set(Place::field(Field::VlanVid), 5)]);
    assert_eq!(actions("ip", "dec_ttl"), [Action::DecTtl]);
    let three = [Field::TcpSrc, Field::UdpSrc, Field::SctpSrc].map(|field| set(Place::field(field), 9));
    assert_eq!(actions("ip", "mod_tp_src:9"), three);
    let moved = |place, from| Action::Set { place, value: Value::Read(from) };
    assert_eq!(
        actions("", "move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[]"),
        [moved(Place::field(Field::EthDst), Place::field(Field::EthSrc))]
    );
    assert_eq!(
        actions("ip", "move:NXM_OF_IP_SRC[0..7]->reg0[8..15]"),
        [moved(meta(16, 8), slice(Field::Ipv4Src, 24, 8))]
    );
    let tag = slice(Field::VlanTci, 4, 12);
    assert_eq!(actions("", "move:NXM_OF_VLAN_TCI[0..11]->NXM_NX_REG0[0..11]"), [moved(meta(20, 12), tag)]);
}

#[test]
fn clones_nest() {
    let inner = Action::Clone(vec![Action::Output(PortId(0)), Action::Clone(vec![Action::Exit])]);
    assert_eq!(actions("", "clone(output:1,clone(exit)),2"), [inner, Action::Output(PortId(1))]);
    let deep = format!("actions={}{}", "clone(".repeat(100_000), ")".repeat(100_000));
    assert!(said(&deep).contains("nested too deep"));
}

#[test]
fn the_later_of_two_equal_rules_stays() {
    let (program, text) = front("tcp,tp_dst=80 actions=1\npriority=32768,tp_dst=0x50,tcp actions=2\n");
    let rules = program.expect("a program").tables.remove(0).rules;
    assert_eq!((rules.len(), &rules[0].actions), (1, &vec![Action::Output(PortId(1))]));
    assert!(text.contains("warning[replaced-rule]"), "{text}");
}

#[test]
fn overlapping_rules_are_warned_of_and_the_first_wins() {
    let (program, text) = front("tcp actions=1\nip,nw_src=10.0.0.1 actions=2\nudp,nw_src=10.0.0.1 actions=2\n");
    assert!(text.contains("warning[overlapping-rules]") && text.contains("test.flows:2:1"), "{text}");
    assert_eq!(text.matches("overlapping-rules").count(), 1, "equal actions are no matter:\n{text}");
    let states = said("ct_state=+trk,ip actions=1\nct_state=+est actions=2");
    assert!(states.contains("overlapping-rules"), "{states}");
    let first = &program.expect("a program").tables[0].rules[0];
    assert_eq!(first.actions, [Action::Output(PortId(0))]);
    for apart in [
        "tcp actions=1\nudp,nw_src=10.0.0.1 actions=2",
        "priority=2,tcp actions=1\npriority=1,ip actions=2",
        "table=1,tcp actions=1\ntable=2,ip actions=2",
        "reg0=1 actions=1\nreg0=2,reg1=1 actions=2",
        "in_port=1 actions=1\nin_port=2,ip actions=2",
        "ct_state=+new+trk,ip actions=1\nct_state=+est+trk actions=2",
        "ct_state=-trk,ip actions=1\nct_state=+rpl actions=2",
        "ct_state=+inv,ip actions=1\nct_state=+new actions=2",
    ] {
        assert_eq!(said(apart), "", "{apart}");
    }
}

#[test]
fn overlaps_found_by_groups_are_those_found_one_by_one() {
    let mut random = 1u64;
    let mut next = |n: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % n
    };
    for _ in 0..100 {
        let mut ports = Ports::default();
        let mut report = Report::default();
        let rules: Vec<_> = (0..20)
            .map(|_| {
                let mut line = format!("reg0={}/{} ", next(4), next(4));
                if next(2) == 0 {
                    line += &format!("reg1={} ", next(3));
                }
                if next(2) == 0 {
                    line += ["ip ", "tcp ", "udp "][next(3) as usize];
                }
                line += "actions=drop";
                rule::parse(Piece::new(0, 0, &line), &mut ports, &mut report).expect("a rule").matches
            })
            .collect();
        let mut distinct: Vec<&matches::Match> = Vec::new();
        rules.iter().for_each(|m| {
            if !distinct.contains(&m) {
                distinct.push(m)
            }
        });
        let mut found = std::collections::BTreeSet::new();
        overlap::find(&distinct, &mut 100_000, |a, b| {
            assert!(distinct[a].overlaps(distinct[b]));
            found.insert(b);
            found.insert(a);
        });
        let overlapping = |i: usize| (0..distinct.len()).any(|j| j != i && distinct[i].overlaps(distinct[j]));
        for i in (0..distinct.len()).filter(|i| !found.contains(i)) {
            let others: Vec<_> = (0..distinct.len()).filter(|&j| j != i && distinct[i].overlaps(distinct[j])).collect();
            assert!(!overlapping(i) || others.iter().all(|j| found.contains(j)), "{i} {others:?}");
        }
    }
}

#[test]
fn a_hundred_thousand_rules_are_read() {
    let mut text = String::new();
    for i in 0..100_000 {
        text += &format!(
            "table=0,priority=10,dl_dst=02:00:00:{:02x}:{:02x}:{:02x} actions=output:2\n",
            i >> 16,
            i >> 8 & 255,
            i & 255
        );
    }
    text += "table=0,priority=0 actions=drop\n";
    let program = program(&text);
    assert_eq!(program.tables[0].rules.len(), 100_001);
}

#[test]
fn outputs_may_be_computed_cut_or_for_the_controller() {
    let to = |offset, width| Action::OutputTo(Value::Read(meta(offset, width)));
    assert_eq!(actions("", "output:reg0[],output:reg1[0..15]"), [to(0, 32), to(48, 16)]);
    let in_port = slice(Field::InPortNumber, 0, 16);
    assert_eq!(
        actions("", "move:in_port[]->reg0[0..15]"),
        [Action::Set { place: meta(16, 16), value: Value::Read(in_port) }]
    );
    let program = program("actions=output(port=7,max_len=64),controller:60,CONTROLLER,controller(reason=no_match)");
    assert_eq!(program.ports[0].number, 7);
    let controller = |reason, max_len| Action::Controller { reason, max_len };
    let whole = u16::MAX;
    assert_eq!(
        program.tables[0].rules[0].actions,
        [
            Action::OutputPart { port: Value::Const(7), max_len: 64 },
            controller(1, 60),
            controller(1, whole),
            controller(0, whole)
        ]
    );
}

#[test]
fn groups_and_meters_stand_on_lines_of_their_own() {
    let program = program(
        "group_id=9,type=select,bucket=weight:2,watch_port:4,actions=output:4,set_field:1->reg0,bucket=5
         group_id=7,type=all,bucket=group:9,bucket=actions=resubmit(,3)
         meter=3 pktps burst stats bands=type=drop rate=10 burst_size=4
         in_port=5 actions=meter:3,group:7",
    );
    let select = &program.groups[0];
    assert_eq!((select.name.as_str(), select.kind), ("9", GroupKind::Select));
    assert_eq!((select.buckets[0].weight, select.buckets[0].watch), (2, Some(PortId(0))));
    assert_eq!(select.buckets[0].actions, [set(meta(0, 32), 1), Action::Output(PortId(0))]);
    assert_eq!((select.buckets[1].weight, &select.buckets[1].actions[..]), (1, &[Action::Output(PortId(1))][..]));
    let all = &program.groups[1];
    assert_eq!(all.buckets[0].actions, [Action::Group(GroupId(0))]);
    assert_eq!(all.buckets[1].actions, [Action::Call { table: TableId(1), in_port: None }]);
    let meter = &program.meters[0];
    assert_eq!((meter.unit, meter.rate, meter.burst), (MeterUnit::Packets, 10, 4));
    assert_eq!(program.tables[0].rules[0].actions, [Action::Meter(MeterId(0)), Action::Group(GroupId(1))]);
}
