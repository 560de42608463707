//! Tables: which rule, what a miss does, calls and gotos, limits, counters, reasons, traces.

use super::*;
use crate::eval::{counter_of, counters};
use crate::field::Header;

#[test]
fn the_first_rule_that_holds_is_taken_and_counted() {
    let program = program(vec![
        vec![(Cond::Has(Header::Arp), vec![]), (Cond::True, vec![goto(1)]), (Cond::True, vec![output(1)])],
        vec![(Cond::Has(Header::Tcp), vec![output(1)])],
    ]);
    let outcome = run(&program, &ipv4(17, &UDP));
    assert_eq!(outcome.counters, [0, 1, 0, 0, 0, 1]);
    assert_eq!(outcome.verdict.reason(), Some(DropReason::NoMatch));
    assert_eq!(counters(&program), 6);
    assert_eq!(counter_of(&program, TableId(0), None), 3);
    assert_eq!(counter_of(&program, TableId(1), Some(0)), 4);
    assert_eq!(counter_of(&program, TableId(1), None), 5);
}

#[test]
fn conditions_combine() {
    let frame = ipv4(17, &UDP);
    let (yes, no) = (Cond::Has(Header::Udp), Cond::Has(Header::Tcp));
    assert!(holds(Cond::All(vec![yes.clone(), Cond::Not(Box::new(no.clone()))]), &frame));
    assert!(!holds(Cond::All(vec![yes.clone(), no.clone()]), &frame));
    assert!(holds(Cond::Any(vec![no.clone(), yes]), &frame));
    assert!(!holds(Cond::Any(vec![no.clone(), no]), &frame));
    assert!(holds(Cond::All(vec![]), &frame) && !holds(Cond::Any(vec![]), &frame));
}

#[test]
fn a_call_returns_even_after_a_miss_and_a_goto_does_not() {
    let calls = program(vec![vec![(Cond::True, vec![output(1), call(1), output(2)])], vec![]]);
    assert_eq!(run(&calls, &[0; 14]).ports(), [1, 2]);
    let gotos = program(vec![
        vec![(Cond::True, vec![call(1), output(2)])],
        vec![(Cond::True, vec![goto(2)])],
        vec![(Cond::True, vec![output(1)])],
    ]);
    assert_eq!(run(&gotos, &[0; 14]).ports(), [1, 2]);
    let changes =
        program(vec![vec![(Cond::True, vec![call(1), output(1)])], vec![(Cond::True, vec![set(Field::EthDst, 7)])]]);
    assert_eq!(run(&changes, &[0; 14]).frames()[0][5], 7);
}

#[test]
fn a_call_may_override_the_port_for_one_look_up() {
    let call = |table, port| Action::Call { table: TableId(table), in_port: Some(PortId(port)) };
    let from_2 = vec![
        (is(Field::InPort, 2), vec![output(2), output(0), Action::Call { table: TableId(2), in_port: None }]),
        (Cond::True, vec![]),
    ];
    let real = vec![(
        Cond::All(vec![is(Field::InPort, 0), sees(Field::InPort, View::Action, 0)]),
        vec![output(1), call(3, 2)],
    )];
    let both =
        vec![(Cond::All(vec![is(Field::InPort, 2), sees(Field::InPort, View::Action, 0)]), vec![Action::InPort])];
    let program = program(vec![vec![(Cond::True, vec![call(1, 2)])], from_2, real, both]);
    assert_eq!(run(&program, &[0; 14]).ports(), [2, 1, 0]);
}

#[test]
fn the_last_reason_is_the_one_that_counts() {
    let reason = |tables| run(&program(tables), &[0; 14]).verdict.reason();
    let (policy, miss, port) = (DropReason::Policy, DropReason::NoMatch, DropReason::InPort);
    assert_eq!(reason(vec![vec![]]), Some(miss));
    assert_eq!(reason(vec![vec![(Cond::True, vec![call(1), output(0)])], vec![]]), Some(port));
    assert_eq!(reason(vec![vec![(Cond::True, vec![output(0), call(1)])], vec![]]), Some(miss));
    assert_eq!(reason(vec![vec![(Cond::True, vec![output(0), call(1)])], vec![(Cond::True, vec![])]]), Some(policy));
    assert_eq!(reason(vec![vec![(Cond::True, vec![set(Field::EthDst, 1)])]]), Some(policy));
    assert_eq!(reason(vec![vec![(Cond::True, vec![output(1), call(1)])], vec![]]), None);
}

#[test]
fn calls_that_do_not_lead_on_nest_64_deep() {
    // Metadata counts down how often table 0 calls itself.
    let deep = |n: u128, jump: fn(u16) -> Action| {
        let place = Place { space: crate::hir::Space::Meta, offset: 0, width: 128 };
        let left = |value| Cond::Compare(Read { place, view: View::Table }, Match::Masked { value, mask: u128::MAX });
        let mut rules = vec![(left(n), vec![output(1)])];
        for i in 0..n {
            rules.push((left(i), vec![Action::Set { place, value: Value::Const(i + 1) }, output(2), jump(0)]));
        }
        run(&program(vec![rules]), &[0; 14])
    };
    for jump in [call, goto] {
        assert_eq!(deep(64, jump).ports().last(), Some(&1));
        let too_deep = deep(65, jump);
        assert_eq!(too_deep.calls, [Call::Fail(DropReason::Depth)], "all outputs are discarded");
        assert_eq!(too_deep.verdict.reason(), Some(DropReason::Depth));
    }
}

#[test]
fn calls_to_tables_behind_count_nothing_and_need_no_stack() {
    let chain = |n: u16| {
        let next = |i: u16| vec![(Cond::True, if i < n { vec![call(i + 1)] } else { vec![output(1)] })];
        run(&program((0..=n).map(next).collect()), &[0; 14])
    };
    assert_eq!(chain(100).ports(), [1]);
    assert_eq!(chain(4096).ports(), [1]);
    assert_eq!(chain(4097).calls, [Call::Fail(DropReason::Resubmits)]);
}

#[test]
fn a_packet_given_up_inside_a_clone_leaves_nothing_saved() {
    let forever = always(vec![output(1), set(Field::EthDst, 3), Action::Clone(vec![set(Field::EthDst, 4), call(0)])]);
    let outcome = run(&forever, &[0; 14]);
    assert_eq!(outcome.calls, [Call::Fail(DropReason::Depth)]);
    assert_eq!(outcome.events.last(), Some(&Event::End(Verdict::drop(DropReason::Depth))));
}

#[test]
fn packets_of_a_burst_run_one_after_the_other() {
    let program = program(vec![vec![
        (is(Field::InPort, 0), vec![set(Field::EthSrc, 1), output(1)]),
        (Cond::True, vec![Action::Drop]),
    ]]);
    let eval = Eval::new(Arc::new(program));
    let (mut env, mut ctx) = (Recorder::default(), eval.ctx());
    let mut frames = [[0; 14]; 3];
    let mut burst = Burst::new();
    burst.begin(0);
    for (i, frame) in frames.iter_mut().enumerate() {
        // SAFETY: the frames outlive the run and are touched by nobody else meanwhile.
        unsafe { burst.push(std::ptr::null_mut(), frame.as_mut_ptr(), 14, if i == 1 { 2 } else { 0 }) };
    }
    eval.run(&mut env, &mut ctx, &mut burst);
    assert_eq!(env.calls.len(), 2);
    let verdicts = [Verdict::LISTED, Verdict::drop(DropReason::Policy), Verdict::LISTED];
    assert_eq!(burst.verdicts()[..3], verdicts);
    let counted: Vec<_> = ctx.counters().iter().map(|c| (c.packets, c.bytes)).collect();
    assert_eq!(counted, [(2, 28), (1, 14), (0, 0)]);
}

#[test]
fn a_trace_tells_everything_in_order() {
    let program =
        program(vec![vec![(Cond::True, vec![Action::Clone(vec![output(1)]), set(Field::EthDst, 5), goto(1)])], vec![]]);
    let outcome = run(&program, &[0; 14]);
    let table = |table, depth| Event::Table { table: TableId(table), depth, in_port: None };
    let place = Place::field(Field::EthDst);
    let expected = [
        Event::Packet(0),
        table(0, 0),
        Event::Rule(TableId(0), 0),
        Event::Clone,
        Event::Output(PortId(1)),
        Event::CloneEnd,
        Event::Set { place, value: 5, before: 0, after: 5 },
        table(1, 0),
        Event::Miss(TableId(1)),
        Event::Reason(DropReason::NoMatch),
        Event::End(Verdict::LISTED),
    ];
    assert_eq!(outcome.events, expected);
}
