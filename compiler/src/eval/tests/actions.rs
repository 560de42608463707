//! Every action of the HIR.

use super::*;
use crate::hir::{Ct, Space};

fn meta(offset: u16, width: u8) -> Place {
    Place { space: Space::Meta, offset, width }
}

fn ct(zone: Value) -> Ct {
    Ct { zone, commit: false, force: false, mark: None, label: None }
}

fn reason(outcome: &Outcome) -> Option<DropReason> {
    outcome.verdict.reason()
}

#[test]
fn outputs_are_sent_as_the_packet_is_then() {
    let frame = ipv4(17, &UDP);
    let outcome = run(&always(vec![output(1), set(Field::EthDst, 9), output(2), output(1)]), &frame);
    assert_eq!((outcome.ports(), outcome.verdict), (vec![1, 2, 1], Verdict::LISTED));
    let frames = outcome.frames();
    assert_eq!(frames[0], frame);
    assert_eq!((frames[1][5], &frames[1]), (9, &frames[2]));
}

#[test]
fn truncate_cuts_what_is_sent_after_it_and_what_tables_see() {
    let frame = ipv4(17, &UDP);
    let actions = vec![output(1), Action::Truncate(30), output(2), Action::Truncate(60), goto(1)];
    let v4 = Cond::Compare(
        Read { place: Place::field(Field::Ipv4Src), view: View::Table },
        Match::Masked { value: 0, mask: 0xffff_ffff },
    );
    let outcome = run(&program(vec![vec![(Cond::True, actions)], vec![(v4, vec![output(1)])]]), &frame);
    let cut = frame[..30].to_vec();
    assert_eq!(outcome.frames(), [frame, cut.clone(), cut], "a header that is cut is malformed: its fields read 0");
}

#[test]
fn an_output_to_the_port_it_came_from_is_left_out() {
    let outcome = run(&always(vec![output(0)]), &[0; 14]);
    assert_eq!((outcome.ports(), reason(&outcome)), (vec![], Some(DropReason::InPort)));
    assert!(outcome.events.contains(&Event::LeftOut(PortId(0))));
    assert_eq!(run(&always(vec![output(0), output(2)]), &[0; 14]).ports(), [2]);
    assert_eq!(run(&always(vec![Action::InPort]), &[0; 14]).ports(), [0]);
}

#[test]
fn flood_all_and_normal_are_the_environments() {
    let frame = [3; 14];
    let calls = run(&always(vec![Action::Flood, Action::All, Action::Normal]), &frame).calls;
    let (flood, normal) = (Call::Flood(0, frame.to_vec()), Call::Normal(0, frame.to_vec()));
    assert_eq!(calls, [flood.clone(), flood, normal]);
}

#[test]
fn drop_and_exit_end_the_packet_wherever_they_stand_and_outputs_stay() {
    for (end, why) in [(Action::Drop, DropReason::Policy), (Action::Exit, DropReason::Policy)] {
        let inner = vec![(Cond::True, vec![output(1), end.clone(), output(2)])];
        let outcome = run(&program(vec![vec![(Cond::True, vec![call(1), output(2)])], inner]), &[0; 14]);
        assert_eq!(outcome.ports(), [1]);
        assert_eq!(reason(&run(&always(vec![end]), &[0; 14])), Some(why));
    }
}

#[test]
fn a_rule_without_actions_ends_its_list_only() {
    let program = program(vec![vec![(Cond::True, vec![call(1), output(2)])], vec![(Cond::True, vec![])]]);
    assert_eq!(run(&program, &[0; 14]).ports(), [2]);
    assert_eq!(reason(&run(&always(vec![]), &[0; 14])), Some(DropReason::Policy));
}

#[test]
fn metadata_is_set_and_moved_by_slices() {
    let set = |place, value| Action::Set { place, value };
    let actions = vec![
        set(meta(32, 32), Value::Const(0x1122_3344)),
        set(meta(0, 8), Value::Read(meta(40, 8))),
        set(Place::field(Field::EthSrc), Value::Read(meta(0, 48))),
        set(meta(64, 128), Value::Const(0)),
        output(1),
    ];
    assert_eq!(run(&always(actions), &[0; 14]).frames()[0][6..12], [0x22, 0, 0, 0, 0x11, 0x22]);
}

#[test]
fn dec_ttl_lowers_it_or_ends_its_list() {
    let lists = program(vec![
        vec![(Cond::True, vec![call(1), output(2)])],
        vec![(Cond::True, vec![Action::DecTtl, output(1)])],
    ]);
    let mut frame = ipv4(17, &UDP);
    let sent = run(&lists, &frame).frames();
    assert_eq!((sent[0][22], sum(&sent[0][14..34], 0)), (63, 0xffff));
    for ttl in [0, 1] {
        frame[22] = ttl;
        let outcome = run(&lists, &frame);
        assert_eq!((outcome.ports(), outcome.frames()[0][22]), (vec![2], ttl));
    }
    let alone = always(vec![Action::DecTtl, output(1)]);
    assert_eq!(reason(&run(&alone, &frame)), Some(DropReason::Ttl));
    frame[22] = 2;
    assert_eq!(run(&alone, &frame).frames()[0][22], 1);
    frame[14] = 0x44;
    assert_eq!(reason(&run(&alone, &frame)), Some(DropReason::Ttl), "a malformed header reads 0");
    assert_eq!(run(&alone, &ethernet(0x0806, &[])).ports(), [1], "what is not IP has no TTL");
    let hops = ipv6(17, &UDP);
    assert_eq!(run(&alone, &hops).frames()[0][21], 63);
}

#[test]
fn ct_asks_afresh_in_the_zone_and_sets_the_view() {
    let frame = ipv4(17, &UDP);
    let all = Ct {
        zone: Value::Read(meta(16, 16)),
        commit: true,
        force: true,
        mark: Some((5, 7)),
        label: Some((1 << 64 | 2, 3 << 64 | 4)),
    };
    let commit = Action::Set { place: meta(0, 32), value: Value::Const(0xffff_1234) };
    let read = Action::Set { place: Place::field(Field::EthDst), value: Value::Read(Place::field(Field::CtMark)) };
    let program = program(vec![
        vec![(is(Field::CtState, 0), vec![commit, Action::Ct(all), read, goto(1)])],
        vec![(Cond::All(vec![is(Field::CtState, 0x22), is(Field::CtZone, 0x1234)]), vec![output(1)])],
    ]);
    let view = CtView { state: 0x22, mark: 77, label: [8, 9], ..CtView::CLEAR };
    let outcome = run_scripted(&program, &frame, &[view]);
    assert_eq!((outcome.ports(), outcome.frames()[0][5]), (vec![1], 77));
    let Call::Ct(point, zone, bytes) = &outcome.calls[0] else { panic!("ct comes first") };
    assert_eq!((point.flags, point.mark, point.mark_mask), (7, 5, 7));
    assert_eq!((point.label, point.label_mask, *zone, bytes), ([1, 2], [3, 4], 0x1234, &frame));
    assert!(outcome.events.iter().any(|event| matches!(event, Event::Ct { zone: 0x1234, .. })));
}

#[test]
fn ct_sees_what_was_written_and_ct_clear_forgets() {
    let actions = vec![set(Field::EthDst, 9), Action::Ct(ct(Value::Const(3))), Action::CtClear, goto(1)];
    let program = program(vec![vec![(Cond::True, actions)], vec![(is(Field::CtState, 0), vec![output(1)])]]);
    let outcome = run(&program, &[0; 14]);
    let Call::Ct(point, 3, bytes) = &outcome.calls[0] else { panic!("ct comes first") };
    assert_eq!((point.flags, bytes[5]), (CtPoint::FRESH, 9));
    assert_eq!(outcome.ports(), [1]);
}

#[test]
fn clone_puts_everything_back_and_keeps_what_it_sent() {
    let inner = vec![
        set(Field::EthDst, 9),
        Action::Set { place: meta(0, 64), value: Value::Const(u128::MAX) },
        Action::Ct(ct(Value::Const(1))),
        output(2),
    ];
    let nested = vec![Action::Clone(inner), output(1), set(Field::EthDst, 5)];
    let program = program(vec![
        vec![(Cond::True, vec![Action::Clone(nested), goto(1)])],
        vec![(Cond::All(vec![is(Field::CtState, 0), is(Field::EthDst, 0)]), vec![output(1)])],
    ]);
    let outcome = run(&program, &[0; 14]);
    assert_eq!(outcome.ports(), [2, 1, 1]);
    let frames = outcome.frames();
    assert_eq!((frames[0][5], frames[1][5], frames[2][5]), (9, 0, 0));
    assert_eq!(outcome.bytes, [0; 14]);
}

#[test]
fn exit_drop_and_an_expired_ttl_end_only_the_clone() {
    for (end, after) in [(Action::Exit, vec![1, 2]), (Action::Drop, vec![1, 2]), (Action::DecTtl, vec![1, 2])] {
        let mut frame = ipv4(17, &UDP);
        frame[22] = 1;
        let direct = vec![Action::Clone(vec![output(1), end.clone(), output(1)]), output(2)];
        assert_eq!(run(&always(direct), &frame).ports(), after, "{end:?}");
        let through = program(vec![
            vec![(Cond::True, vec![Action::Clone(vec![goto(1)]), output(2)])],
            vec![(Cond::True, vec![output(1), end.clone(), output(1)])],
        ]);
        assert_eq!(run(&through, &frame).ports(), after, "{end:?} behind a goto");
    }
    let called = program(vec![
        vec![(Cond::True, vec![Action::Clone(vec![call(1), output(1)]), output(2)])],
        vec![(Cond::True, vec![Action::Exit])],
    ]);
    assert_eq!(run(&called, &[0; 14]).ports(), [2]);
}

#[test]
fn the_fork_of_openflow_runs_depth_first_and_the_rest_is_untracked() {
    let first =
        vec![Action::Ct(ct(Value::Const(0))), Action::Clone(vec![goto(1)]), Action::CtClear, call(1), output(2)];
    let program = program(vec![
        vec![(Cond::True, first)],
        vec![(is(Field::CtState, 0x21), vec![output(1), set(Field::EthDst, 9)]), (Cond::True, vec![Action::InPort])],
    ]);
    let outcome = run(&program, &[0; 14]);
    assert_eq!((outcome.ports(), outcome.frames()[2][5]), (vec![1, 0, 2], 0));
}
