//! Computed outputs, groups, meters, counters, hashes, and places held against each other.

use super::*;
use crate::hir::{
    Arith, Bucket, CounterId, Group, GroupId, GroupKind, Meter, MeterId, MeterUnit, Order, Program, Space,
};
use pipec_abi::hash;

fn meta(offset: u16, width: u8) -> Place {
    Place { space: Space::Meta, offset, width }
}

fn assign(place: Place, value: Value) -> Action {
    Action::Set { place, value }
}

fn reason(outcome: &Outcome) -> Option<DropReason> {
    outcome.verdict.reason()
}

fn bucket(weight: u16, watch: Option<u16>, actions: Vec<Action>) -> Bucket {
    Bucket { weight, watch: watch.map(PortId), actions }
}

fn grouped(kind: GroupKind, buckets: Vec<Bucket>, rest: Vec<Action>) -> Program {
    let mut actions = vec![Action::Group(GroupId(0))];
    actions.extend(rest);
    let hash = vec![Value::Read(Place::field(Field::EthSrc))];
    let group = Group { name: "g".into(), kind, hash, buckets, span: Span::default() };
    Program { groups: vec![group], ..always(actions) }
}

#[test]
fn a_computed_output_is_by_openflow_number() {
    for (number, ports, why) in [
        (2, vec![1], None),
        (1, vec![], Some(DropReason::InPort)),
        (0, vec![], Some(DropReason::NoPort)),
        (9, vec![], Some(DropReason::NoPort)),
    ] {
        let known = run(&always(vec![Action::OutputTo(Value::Const(number))]), &[0; 14]);
        let place = meta(16, 16);
        let computed = vec![assign(place, Value::Const(number)), Action::OutputTo(Value::Read(place))];
        let computed = run(&always(computed), &[0; 14]);
        assert_eq!((known.ports(), reason(&known)), (ports.clone(), why), "{number}");
        assert_eq!((computed.ports(), reason(&computed)), (ports, why), "{number}");
    }
    let own = Value::Read(Place::field(Field::InPortNumber));
    let next = Value::Arith(Arith::Add, Box::new(own), Box::new(Value::Const(2)));
    assert_eq!(run(&always(vec![Action::OutputTo(next)]), &[0; 14]).ports(), [2]);
}

#[test]
fn copies_are_cut_and_mirrors_go_back_too() {
    let part = Action::OutputPart { port: Value::Const(2), max_len: 20 };
    let controller = Action::Controller { reason: 3, max_len: 16 };
    let outcome = run(&always(vec![part, Action::Mirror(PortId(0)), controller, output(2)]), &[7; 60]);
    let calls = [
        Call::Emit(1, vec![7; 20]),
        Call::Emit(0, vec![7; 60]),
        Call::Controller(3, vec![7; 16]),
        Call::Emit(2, vec![7; 60]),
    ];
    assert_eq!(outcome.calls, calls);
}

#[test]
fn all_buckets_get_the_packet_as_it_was() {
    let buckets =
        vec![bucket(1, None, vec![set(Field::EthDst, 9), output(1), Action::Exit]), bucket(1, None, vec![output(2)])];
    let outcome = run(&grouped(GroupKind::All, buckets, vec![output(1)]), &[0; 14]);
    assert_eq!(outcome.ports(), [1, 2, 1]);
    let frames = outcome.frames();
    assert_eq!((frames[0][5], frames[1][5], frames[2][5]), (9, 0, 0));
}

#[test]
fn a_hash_selects_by_weight_and_sticks() {
    let buckets = |watch| {
        vec![bucket(3, watch, vec![output(1)]), bucket(0, None, vec![output(0)]), bucket(1, None, vec![output(2)])]
    };
    let mut counts = [0; 3];
    for n in 0..400u16 {
        let mut frame = [0; 14];
        frame[10..12].copy_from_slice(&n.to_be_bytes());
        let program = grouped(GroupKind::Select, buckets(None), vec![]);
        let ports = run(&program, &frame).ports();
        assert_eq!(ports, run(&program, &frame).ports());
        counts[usize::from(ports[0])] += 1;
        // Port 1 is dead: its share goes elsewhere, the others' stays.
        let moved = run(&grouped(GroupKind::Select, buckets(Some(1)), vec![]), &frame).ports();
        assert_eq!(moved, [2]);
    }
    assert_eq!(counts[0], 0);
    assert!((260..340).contains(&counts[1]), "{counts:?}");
}

#[test]
fn the_first_living_bucket_takes_over() {
    let buckets = vec![bucket(1, Some(1), vec![output(1)]), bucket(1, Some(2), vec![output(2)])];
    assert_eq!(run(&grouped(GroupKind::FastFailover, buckets, vec![]), &[0; 14]).ports(), [2]);
    let dead = vec![bucket(1, Some(1), vec![output(1)])];
    let outcome = run(&grouped(GroupKind::FastFailover, dead, vec![]), &[0; 14]);
    assert_eq!(reason(&outcome), Some(DropReason::Group));
    assert!(outcome.events.contains(&Event::Bucket(GroupId(0), None)));
}

#[test]
fn a_meter_ends_what_comes_too_fast() {
    let meter = || Meter { name: "m".into(), unit: MeterUnit::Packets, rate: 1, burst: 1, span: Span::default() };
    for (id, ports, why) in [(0, vec![2], None), (1, vec![], Some(DropReason::Meter))] {
        let actions = vec![Action::Clone(vec![Action::Meter(MeterId(id)), output(2)])];
        let outcome = run(&Program { meters: vec![meter(), meter()], ..always(actions) }, &[0; 14]);
        assert_eq!((outcome.ports(), reason(&outcome)), (ports, why));
    }
}

#[test]
fn counters_of_the_program_stand_before_those_of_rules() {
    let actions = vec![Action::Count(CounterId(1)), Action::Count(CounterId(1))];
    let program = Program { counters: vec!["a".into(), "b".into()], ..always(actions) };
    assert_eq!(run(&program, &[0; 14]).counters, [0, 2, 1, 0]);
}

#[test]
fn a_hash_is_of_words_the_upper_first() {
    let label = Place::field(Field::CtLabel);
    let values = vec![Value::Const(7), Value::Read(label), Value::Read(Place::field(Field::EthDst))];
    let place = meta(0, 32);
    let outcome = run(&always(vec![assign(place, Value::Hash(values))]), &[1; 14]);
    let expected = u128::from(hash::hash(&[7, 0, 0, 0x0101_0101_0101]));
    assert!(outcome.events.iter().any(|event| matches!(event, Event::Set { value, .. } if *value == expected)));
}

#[test]
fn places_are_held_against_each_other() {
    let read = |field| Read { place: Place::field(field), view: View::Table };
    for (src, order, holds) in [
        (1, Order::Equal, false),
        (2, Order::Equal, true),
        (1, Order::Less, true),
        (2, Order::Less, false),
        (2, Order::AtMost, true),
        (3, Order::AtMost, false),
    ] {
        let cond = Cond::CompareTo(read(Field::EthSrc), order, read(Field::EthDst));
        let mut frame = [0; 14];
        (frame[5], frame[11]) = (2, src);
        let outcome = run(&program(vec![vec![(cond, vec![output(1)])]]), &frame);
        assert_eq!(outcome.ports().len(), usize::from(holds), "{src} {order:?} 2");
    }
}
