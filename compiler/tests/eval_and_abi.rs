//! Parser and writes of `eval` and of the abi were written apart from the same rules: here they are held against each other,
//! on frames that are mostly right and a little wrong.

use std::sync::Arc;

use pipec_abi::edit::{self, Ttl};
use pipec_abi::{Burst, CtPoint, Ctx, DropReason, Emit, Env};
use pipec_compiler::eval::Eval;
use pipec_compiler::field::Field;
use pipec_compiler::hir::{Action, Cond, Options, Place, Program, Rule, Space, Table, Value};
use pipec_compiler::source::Span;
use proptest::prelude::*;

/// An `Env` for programs that only write.
struct Nothing;

impl Env for Nothing {
    fn ct_prepare(&mut self, _: &mut Ctx, _: &Burst, _: u32, _: u16) {}
    fn ct(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: &CtPoint, _: u16) -> u32 {
        0
    }
    fn emit(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16, _: Emit) {}
    fn flood(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16, _: Emit) {}
    fn normal(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16, _: Emit) {}
    fn save(&mut self, _: &mut Ctx, _: &mut Burst, _: usize) {}
    fn restore(&mut self, _: &mut Ctx, _: &mut Burst, _: usize) {}
    fn emit_part(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16, _: u16) {}
    fn controller(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u8, _: u16) {}
    fn meter(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: u16) -> bool {
        true
    }
    fn live(&mut self, _: &mut Ctx, _: u16) -> bool {
        true
    }
    fn fail(&mut self, _: &mut Ctx, _: &mut Burst, _: usize, _: DropReason) {}
}

/// Runs actions on a frame; what is in the first two words of metadata, and why it would be dropped.
fn run(actions: Vec<Action>, frame: &mut [u8], vlan_limit: u8) -> (u128, Option<DropReason>) {
    let rule = Rule { priority: 0, cond: Cond::True, actions, text: String::new(), span: Span::default() };
    let program = Program {
        name: "writes".into(),
        options: Options { vlan_limit },
        metadata_words: 2,
        tables: vec![Table { name: "0".into(), rules: vec![rule], span: Span::default(), keyed: None }],
        ..Program::default()
    };
    let eval = Eval::new(Arc::new(program));
    let mut ctx = eval.ctx();
    let mut burst = Burst::new();
    burst.begin(0);
    // SAFETY: the frame outlives the run and is touched by nobody else meanwhile.
    unsafe { burst.push(std::ptr::null_mut(), frame.as_mut_ptr(), frame.len() as u32, 0) };
    eval.run(&mut Nothing, &mut ctx, &mut burst);
    let words = ctx.vars(0);
    (u128::from(words[0]) << 64 | u128::from(words[1]), burst.verdict(0).reason())
}

/// What a field reads, by `eval`.
fn read(frame: &[u8], field: Field, vlan_limit: u8) -> u128 {
    let place = Place { space: Space::Meta, offset: 0, width: 128 };
    run(vec![Action::Set { place, value: Value::Read(Place::field(field)) }], &mut frame.to_vec(), vlan_limit).0
}

fn ethernet(eth_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &eth_type.to_be_bytes()[..], payload].concat()
}

fn ipv4(proto: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
    let [len_high, len] = (20 + payload.len() as u16).to_be_bytes();
    let [high, low] = fragment.to_be_bytes();
    let header = [0x45, 0, len_high, len, 0, 1, high, low, 64, proto, 0x12, 0x34, 10, 0, 0, 1, 10, 0, 0, 2];
    [&header[..], payload].concat()
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (payload.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, high, low, next, 64][..], &[0xfc; 32], payload].concat()
}

/// A transport header with bytes behind it.
fn segment() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let tcp = [3, 232, 0, 80, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x12, 1, 0, 9, 9, 0, 0];
    let sctp = [3, 232, 7, 208, 0, 0, 0, 1, 0, 0, 0, 0, 10, 0, 0, 4];
    let header = prop_oneof![
        Just((6, tcp.to_vec())),
        Just((17, vec![3, 232, 0, 53, 0, 12, 9, 9])),
        Just((17, vec![3, 232, 0, 53, 0, 12, 0, 0])),
        Just((1, vec![8, 0, 9, 9, 0, 1, 0, 2])),
        Just((58, vec![135, 0, 9, 9, 0, 0, 0, 0])),
        Just((132, sctp.to_vec())),
    ];
    (header, prop::collection::vec(any::<u8>(), 0..9))
        .prop_map(|((proto, header), rest)| (proto, [header, rest].concat()))
}

/// Extension headers of IPv6, in front of a segment.
fn extended() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let kinds = prop::sample::select(vec![0u8, 43, 44, 51, 60]);
    let headers = prop::collection::vec((kinds, any::<[u8; 7]>(), 0u8..3), 0..4);
    (segment(), headers).prop_map(|(end, headers)| {
        headers.into_iter().rev().fold(end, |(next, payload), (kind, fill, len)| {
            let len = if kind == 44 { 0 } else { len };
            let size = if kind == 51 { (usize::from(len) + 2) * 4 } else { (usize::from(len) + 1) * 8 };
            let mut header = vec![next, len];
            header.extend(fill.iter().map(|byte| byte & 1).cycle().take(size - 2));
            (kind, [header, payload].concat())
        })
    })
}

fn packet() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let fragment = prop::sample::select(vec![0u16, 0, 0, 0x4000, 0x2000, 0x2001, 0x00b9]);
    let arp = (any::<u16>(), any::<[u8; 20]>()).prop_map(|(op, rest)| {
        let [high, low] = (op % 512).to_be_bytes();
        (0x0806, [&[0, 1, 8, 0, 6, 4, high, low], &rest[..]].concat())
    });
    prop_oneof![
        4 => (segment(), fragment).prop_map(|((proto, payload), fragment)| (0x0800, ipv4(proto, fragment, &payload))),
        4 => extended().prop_map(|(next, payload)| (0x86dd, ipv6(next, &payload))),
        1 => arp,
        1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(|bytes| (0x0800, bytes)),
    ]
}

fn frame() -> impl Strategy<Value = Vec<u8>> {
    let framed = (packet(), 0..8, any::<[u8; 4]>()).prop_map(|((eth_type, packet), how, tags)| {
        let of = eth_type.to_be_bytes();
        match how {
            0 => ethernet(0x8100, &[&tags[..2], &of, &packet].concat()),
            1 => ethernet(0x88a8, &[&tags[..2], &[0x81, 0], &tags[2..], &of, &packet].concat()),
            2 => ethernet(0x0030, &[&[0xaa, 0xaa, 3, 0, 0, 0], &of[..], &packet].concat()),
            _ => ethernet(eth_type, &packet),
        }
    });
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    (framed, changes, any::<Option<prop::sample::Index>>()).prop_map(|(mut frame, changes, cut)| {
        for (at, byte) in changes {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        if let Some(cut) = cut {
            let len = 14 + cut.index(frame.len() - 13);
            frame.truncate(len);
        }
        frame
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn writes_are_the_same(frame in frame(), value in any::<u128>(), vlan_limit in 0u8..3) {
        for &field in Field::ALL {
            let Some(target) = field.target() else { continue };
            let value = value & u128::MAX >> (128 - field.width());
            let (mut ours, mut theirs) = (frame.clone(), frame.clone());
            run(vec![Action::Set { place: Place::field(field), value: Value::Const(value) }], &mut ours, vlan_limit);
            edit::set(&mut theirs, target, value, vlan_limit.into());
            prop_assert_eq!(&ours, &theirs, "{:?} = {:x}", field, value);
        }
        let (mut ours, mut theirs) = (frame.clone(), frame);
        let (_, reason) = run(vec![Action::DecTtl], &mut ours, vlan_limit);
        let ttl = edit::dec_ttl(&mut theirs, vlan_limit.into());
        prop_assert_eq!(ours, theirs);
        prop_assert_eq!(reason == Some(DropReason::Ttl), ttl == Ttl::Expired);
    }

    #[test]
    fn headers_are_the_same(frame in frame(), vlan_limit in 0u8..3) {
        use pipec_abi::header::{arp, l2, l3, l4};
        let (l2, read) = (l2(&frame, vlan_limit.into()), |field| read(&frame, field, vlan_limit));
        let l3 = l3(&frame, l2);
        let l4 = l4(&frame, l3);
        prop_assert_eq!(read(Field::EthType), u128::from(l2.eth_type()));
        prop_assert_eq!(read(Field::VlanTci), u128::from(l2.tci()));
        prop_assert_eq!(read(Field::IpProto), u128::from(l3.proto()));
        prop_assert_eq!(read(Field::IpFrag), u128::from(l3.frag()));
        let word = |at: usize| u128::from(pipec_abi::header::load16(&frame, at));
        for (field, proto, at) in [(Field::TcpDst, 6, 2), (Field::UdpSrc, 17, 0), (Field::SctpDst, 132, 2)] {
            let there = l4.for_actions() && l3.proto() == proto;
            prop_assert_eq!(read(field), if there { word(l4.offset() + at) } else { 0 }, "{:?}", field);
        }
        if read(Field::ArpTpa) != 0 {
            prop_assert!(arp(&frame, l2));
        }
        if read(Field::Ipv4Src) != 0 || read(Field::Ipv6Src) != 0 {
            prop_assert!(l3.has_addresses());
        }
    }
}
