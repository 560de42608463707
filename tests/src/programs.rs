//! Random programs in the HIR: everything that it can say, over few values so that rules meet packets.

mod keyed;

use crate::shapes;
use pipec_compiler::field::{Field, Header};
use pipec_compiler::hir::{
    Action, Arith, Bucket, Cond, CounterId, Ct, Group, GroupId, GroupKind, Match, Meter, MeterId, MeterUnit, Options,
    Order, Place, Port, PortId, Program, Read, Rule, Space, Table, TableId, Value, View,
};
use pipec_compiler::source::Span;
use proptest::prelude::*;

/// Groups that programs have.
const GROUPS: u16 = 2;
/// Words of metadata that programs have.
const WORDS: u16 = 2;
/// Fields that conditions test and actions write, with values that frames have.
const FIELDS: &[(Field, Header, &[u128])] = &[
    (Field::EthDst, Header::Eth, &[0x0200_0000_0001, 0xffff_ffff_ffff]),
    (Field::EthSrc, Header::Eth, &[0x0200_0000_0001, 0x0200_0000_0002]),
    (Field::EthType, Header::Eth, &[0x0800, 0x0806, 0x8100]),
    (Field::VlanTci, Header::Eth, &[0x1001, 0]),
    (Field::VlanVid, Header::Vlan, &[0, 1, 2]),
    (Field::VlanPcp, Header::Vlan, &[0, 3]),
    (Field::ArpOp, Header::Arp, &[1, 2]),
    (Field::ArpSpa, Header::Arp, &[0x0a00_0001, 0x0a00_0002]),
    (Field::ArpTha, Header::Arp, &[0, 0x0200_0000_0001]),
    (Field::IpProto, Header::IpAny, &[1, 6, 17, 44, 58]),
    (Field::IpDscp, Header::IpAny, &[0, 1, 46]),
    (Field::IpEcn, Header::IpAny, &[0, 1]),
    (Field::IpTtl, Header::IpAny, &[0, 1, 2, 3]),
    (Field::IpFrag, Header::IpAny, &[0, 1, 3]),
    (Field::Ipv4Src, Header::Ipv4, &[0, 0x0a00_0001, 0x0a00_0002]),
    (Field::Ipv4Dst, Header::Ipv4, &[0x0a00_0001, 0x0a00_0003]),
    (Field::Ipv6Src, Header::Ipv6, &[0xfd << 120 | 1, 0xfd << 120 | 2]),
    (Field::Ipv6Dst, Header::Ipv6, &[0xfd << 120 | 1, 0xfd << 120 | 3]),
    (Field::Ipv6Label, Header::Ipv6, &[5, 0x1_0005]),
    (Field::TcpSrc, Header::Tcp, &[0, 1, 2]),
    (Field::TcpDst, Header::Tcp, &[1, 3]),
    (Field::TcpFlags, Header::Tcp, &[0, 2, 0x12]),
    (Field::UdpSrc, Header::Udp, &[0, 1, 2]),
    (Field::UdpDst, Header::Udp, &[1, 2, 3]),
    (Field::IcmpType, Header::Icmp, &[0, 3, 8]),
    (Field::IcmpCode, Header::Icmp, &[0, 1]),
    (Field::Icmpv6Type, Header::Icmpv6, &[128, 129]),
    (Field::FrameLen, Header::Eth, &[42, 60, 64]),
    (Field::Vlan2Tci, Header::Eth, &[0, 0x1002]),
    (Field::Vlan2Vid, Header::Vlan2, &[1, 2]),
    (Field::Vlan2Pcp, Header::Vlan2, &[0, 3]),
    (Field::IpValid, Header::IpAny, &[0, 1]),
    (Field::Ipv4Ihl, Header::Ipv4, &[0, 5, 6]),
    (Field::Ipv4Len, Header::Ipv4, &[0, 32, 40]),
    (Field::Ipv4Id, Header::Ipv4, &[0, 7]),
    (Field::Ipv6Len, Header::Ipv6, &[8, 12, 20]),
    (Field::TcpSeq, Header::Tcp, &[0, 1000, 1001]),
    (Field::TcpAck, Header::Tcp, &[0, 1000, 1002]),
    (Field::TcpWindow, Header::Tcp, &[0, 0xffff]),
    (Field::UdpLen, Header::Udp, &[0, 12]),
    (Field::NdTarget, Header::Nd, &[0, 0xfd << 120 | 1]),
    (Field::NdSll, Header::Nd, &[0, 0x0200_0000_0001]),
    (Field::NdTll, Header::Nd, &[0, 0x0200_0000_0001]),
    (Field::CtState, Header::Eth, &[0x20, 0x21, 0x22, 0x2a, 0x30]),
    (Field::CtZone, Header::Eth, &[0, 1, 2]),
    (Field::CtMark, Header::Eth, &[0, 7]),
    (Field::CtLabel, Header::Eth, &[0, 7 << 64 | 9]),
    (Field::InPortNumber, Header::Eth, &[1, 2, 9]),
];

/// A program with three ports. `cyclic`: tables may reach themselves.
pub fn program(cyclic: bool) -> impl Strategy<Value = Program> {
    (1usize..5, 1u8..3).prop_flat_map(move |(n, vlan_limit)| {
        let tables: Vec<_> =
            (0..n).map(|t| prop_oneof![3 => table(t, n, cyclic), 2 => keyed::table(t, n, cyclic)]).collect();
        let learn = prop::collection::vec((0usize..4, 0usize..8, any::<u8>()), 0..6);
        let groups: Vec<_> = (0..GROUPS).map(|g| group(g, n, cyclic)).collect();
        let numbers = prop::sample::select(&[[1, 2, 3], [9, 2, 4], [2, 3, 1]][..]);
        (tables, groups, meters(), numbers, learn).prop_map(move |(tables, groups, meters, numbers, learn)| {
            let mut program = Program {
                name: "random".into(),
                ports: numbers.map(|number| Port { name: format!("p{number}"), number }).into(),
                options: Options { vlan_limit },
                metadata_words: WORDS,
                tables,
                groups,
                meters,
                counters: vec!["first".into(), "second".into()],
                headers: shapes::headers(),
                ..Program::default()
            };
            keyed::learn(&mut program, &learn);
            program
        })
    })
}

/// A group; its buckets may use the groups before it, and tables only where loops are allowed.
fn group(g: u16, n: usize, cyclic: bool) -> impl Strategy<Value = Group> {
    let kind = prop::sample::select(
        &[GroupKind::All, GroupKind::Select, GroupKind::Select, GroupKind::FastFailover, GroupKind::Indirect][..],
    );
    let bucket =
        (0u16..3, prop::option::of((0u16..3).prop_map(PortId)), actions(if cyclic { 0 } else { n }, n, cyclic, 1, g))
            .prop_map(|(weight, watch, actions)| Bucket { weight, watch, actions });
    let field = prop::sample::select(FIELDS).prop_map(|(field, ..)| Value::Read(Place::field(field)));
    (kind, prop::collection::vec(field, 0..4), prop::collection::vec(bucket, 0..4)).prop_map(
        move |(kind, hash, mut buckets)| {
            buckets.truncate(if kind == GroupKind::Indirect { 1 } else { 4 });
            Group { name: format!("g{g}"), kind, hash, buckets, span: Span::default() }
        },
    )
}

/// A program whose rules change the shape of frames several times, look at what came of it in a second table, and send it.
pub fn shaping() -> impl Strategy<Value = Program> {
    let change = || prop_oneof![4 => shapes::action().boxed(), 1 => set().boxed(), 1 => Just(Action::DecTtl).boxed()];
    let list = |last: Vec<Action>| {
        let changes = prop::collection::vec(change(), 1..4);
        changes.prop_map(move |changes| [changes, last.clone()].concat())
    };
    let out = || vec![Action::InPort];
    let again = vec![Action::Clone(vec![Action::Call { table: TableId(1), in_port: None }]), Action::InPort];
    let first = prop::collection::vec((cond(), list(again)), 1..3);
    let second = prop::collection::vec((cond(), list(out())), 0..3);
    (first, list(vec![Action::Goto(TableId(1))]), second, 0u8..3).prop_map(
        move |(mut first, rest, mut second, vlan_limit)| {
            first.push((Cond::True, rest));
            second.push((Cond::True, out()));
            let rule =
                |(cond, actions)| Rule { priority: 0, cond, actions, text: String::new(), span: Span::default() };
            let table = |(t, rules): (usize, Vec<_>)| Table {
                name: format!("t{t}"),
                rules: rules.into_iter().map(rule).collect(),
                span: Span::default(),
                keyed: None,
            };
            Program {
                name: "shaping".into(),
                ports: (1..4).map(|n| Port { name: format!("p{n}"), number: n }).collect(),
                options: Options { vlan_limit },
                metadata_words: WORDS,
                tables: [first, second].into_iter().enumerate().map(table).collect(),
                headers: shapes::headers(),
                ..Program::default()
            }
        },
    )
}

/// A program of tables with some ten to twenty rules that mostly write and go on to the next, so that plans make them one.
pub fn connected() -> impl Strategy<Value = Program> {
    prop::sample::subsequence((0..FIELDS.len()).collect::<Vec<_>>(), 4).prop_flat_map(connected_by)
}

/// The same, whose rules test these fields and variables.
fn connected_by(fields: Vec<usize>) -> impl Strategy<Value = Program> {
    let cond = move || {
        let place = prop_oneof![
            Just(Place { space: Space::Meta, offset: 0, width: 64 }),
            Just(Place { space: Space::Meta, offset: 32, width: 32 })
        ];
        let register = (place, 0u128..4).prop_map(|(place, value)| {
            let mask = ones(place.width);
            Cond::Compare(Read { place, view: View::Table }, Match::Masked { value, mask })
        });
        let field = prop::sample::select(fields.clone()).prop_flat_map(|field| {
            let (field, header, values) = FIELDS[field];
            let test = prop::sample::select(values).prop_flat_map(move |value| test(field.width(), value));
            test.prop_map(move |test| {
                let read = Read { place: Place::field(field), view: View::Table };
                Cond::All(vec![Cond::Has(header), Cond::Compare(read, test)])
            })
        });
        let tests = (prop::option::weighted(0.8, register), prop::collection::vec(field, 1..3));
        tests.prop_map(|(register, tests)| Cond::All(register.into_iter().chain(tests).collect()))
    };
    let write = || {
        let count = (0u16..2).prop_map(|counter| Action::Count(CounterId(counter)));
        let register = (place(), 0u128..4).prop_map(|(place, value)| Action::Set { place, value: Value::Const(value) });
        prop_oneof![4 => register.boxed(), 1 => set().boxed(), 1 => count.boxed()]
    };
    let last = |t: usize| {
        let on = (t + 1..4).prop_map(|t| Action::Goto(TableId(t as u16)));
        let back = (t + 1..4).prop_map(|t| Action::Call { table: TableId(t as u16), in_port: None });
        let end = || {
            let ends = [Action::Drop, Action::InPort, Action::Flood, Action::DecTtl];
            prop_oneof![2 => (0u16..3).prop_map(|port| Action::Output(PortId(port))), 1 => prop::sample::select(ends.to_vec())]
        };
        if t < 3 { prop_oneof![6 => on, 2 => back, 2 => end()].boxed() } else { end().boxed() }
    };
    let table = move |t: usize| {
        let list = (prop::collection::vec(write(), 0..3), prop::option::weighted(0.9, last(t)))
            .prop_map(|(writes, last)| writes.into_iter().chain(last).collect::<Vec<_>>());
        let rule = (cond(), list).prop_map(|(cond, actions)| Rule {
            priority: 0,
            cond,
            actions,
            text: String::new(),
            span: Span::default(),
        });
        prop::collection::vec(rule, 6..20).prop_map(move |rules| Table {
            name: format!("t{t}"),
            rules,
            span: Span::default(),
            keyed: None,
        })
    };
    (0..4).map(table).collect::<Vec<_>>().prop_map(|tables| Program {
        name: "connected".into(),
        ports: (1..4).map(|n| Port { name: format!("p{n}"), number: n }).collect(),
        metadata_words: WORDS,
        tables,
        counters: vec!["first".into(), "second".into()],
        headers: shapes::headers(),
        ..Program::default()
    })
}

/// Two meters: one of packets, one of kilobits.
fn meters() -> impl Strategy<Value = Vec<Meter>> {
    let meter = |unit, rate: std::ops::Range<u32>, burst: std::ops::Range<u32>| {
        (rate, burst).prop_map(move |(rate, burst)| Meter {
            name: "m".into(),
            unit,
            rate,
            burst,
            span: Span::default(),
        })
    };
    (meter(MeterUnit::Packets, 1..20, 1..20), meter(MeterUnit::Kilobits, 1..100, 1..100)).prop_map(|(a, b)| vec![a, b])
}

fn table(t: usize, n: usize, cyclic: bool) -> impl Strategy<Value = Table> {
    let few = prop::collection::vec((cond(), actions(t, n, cyclic, 2, GROUPS)), 0..7);
    // So many that their look-up is data, with few kinds of actions.
    let many = (
        prop::collection::vec(actions(t, n, cyclic, 1, GROUPS), 1..4),
        prop::collection::vec((many_cond(), 0usize..4), 24..60),
    )
        .prop_map(|(kinds, rules)| {
            rules.into_iter().map(|(cond, k)| (cond, kinds[k % kinds.len()].clone())).collect::<Vec<_>>()
        });
    prop_oneof![4 => few, 1 => many].prop_map(move |rules| Table {
        name: format!("t{t}"),
        rules: rules
            .into_iter()
            .map(|(cond, actions)| Rule { priority: 0, cond, actions, text: String::new(), span: Span::default() })
            .collect(),
        span: Span::default(),
        keyed: None,
    })
}

/// Conditions that are no code: several tests at once, now and then an alternative or the opposite.
fn many_cond() -> impl Strategy<Value = Cond> {
    prop_oneof![
        6 => prop::collection::vec(compare(), 1..4).prop_map(Cond::All),
        1 => prop::collection::vec(compare(), 1..3).prop_map(Cond::Any),
        1 => compare().prop_map(|c| Cond::Not(Box::new(c))),
    ]
}

fn field() -> impl Strategy<Value = (Field, Header, u128)> {
    prop::sample::select(FIELDS).prop_flat_map(|(field, header, values)| {
        prop::sample::select(values).prop_map(move |value| (field, header, value))
    })
}

fn ones(width: u8) -> u128 {
    if width == 128 { u128::MAX } else { (1 << width) - 1 }
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place { space: Space::Meta, offset: 0, width: 64 }),
        Just(Place { space: Space::Meta, offset: 32, width: 32 }),
        Just(Place { space: Space::Meta, offset: 5, width: 16 }),
        Just(Place { space: Space::Meta, offset: 0, width: 128 }),
        Just(Place { space: Space::Meta, offset: 48, width: 32 }),
    ]
}

fn test(width: u8, value: u128) -> impl Strategy<Value = Match> {
    let full = ones(width);
    prop_oneof![
        4 => Just(Match::Masked { value, mask: full }),
        2 => any::<u128>().prop_map(move |mask| Match::Masked { value: value & mask & full, mask: mask & full }),
        1 => Just(Match::Range { low: 0, high: value }),
        1 => Just(Match::Range { low: value, high: full }),
        1 => Just(Match::Range { low: value, high: value.saturating_add(2).min(full) }),
        1 => Just(Match::In(vec![(0, 0), (value.max(1), value.max(1))])),
    ]
}

fn compare() -> impl Strategy<Value = Cond> {
    prop_oneof![22 => test_of_place(), 1 => compare_to()]
}

/// A test of a field, a variable, a port or a header, that may be part of a key.
fn test_of_place() -> impl Strategy<Value = Cond> {
    let of_field = field().prop_flat_map(|(field, header, value)| {
        test(field.width(), value).prop_map(move |test| {
            let read = Read { place: Place::field(field), view: View::Table };
            Cond::All(vec![Cond::Has(header), Cond::Compare(read, test)])
        })
    });
    let of_meta = (place(), 0u128..4).prop_flat_map(|(place, value)| {
        test(place.width, value).prop_map(move |test| Cond::Compare(Read { place, view: View::Table }, test))
    });
    let of_port = (0u128..3).prop_map(|port| {
        let read = Read { place: Place::field(Field::InPort), view: View::Table };
        Cond::Compare(read, Match::Masked { value: port, mask: 0xffff })
    });
    let of_header = shapes::place().prop_flat_map(|place| {
        let Space::Header(header) = place.space else { unreachable!("a place in a header") };
        let value = prop_oneof![Just(0u128), Just(1), Just(3), any::<u128>()].prop_map(move |v| v & ones(place.width));
        value.prop_flat_map(move |value| test(place.width, value)).prop_map(move |test| {
            let read = Read { place, view: View::Table };
            Cond::All(vec![Cond::Has(Header::Declared(header)), Cond::Compare(read, test)])
        })
    });
    prop_oneof![12 => of_field, 2 => of_meta, 4 => of_port, 4 => of_header]
}

/// Two places against each other.
fn compare_to() -> impl Strategy<Value = Cond> {
    let order = prop::sample::select(&[Order::Equal, Order::Less, Order::AtMost][..]);
    let side = || {
        let narrow = field().prop_map(|(field, header, _)| (Cond::Has(header), Place::field(field)));
        let meta = place().prop_map(|place| (Cond::True, place));
        prop_oneof![2 => narrow, 1 => meta].prop_filter("fits a word", |(_, place)| place.width <= 64)
    };
    (side(), order, side()).prop_map(|((has, left), order, (has_too, right))| {
        let read = |place| Read { place, view: View::Table };
        Cond::All(vec![has, has_too, Cond::CompareTo(read(left), order, read(right))])
    })
}

fn cond() -> impl Strategy<Value = Cond> {
    let header = prop::sample::select(
        &[
            Header::Vlan,
            Header::Arp,
            Header::Ipv4,
            Header::Ipv6,
            Header::IpAny,
            Header::Tcp,
            Header::Udp,
            Header::Icmp,
            Header::Vlan2,
            Header::Nd,
        ][..],
    );
    let declared = shapes::header().prop_map(|header| Cond::Has(Header::Declared(header)));
    let leaf = prop_oneof![1 => Just(Cond::True), 2 => header.prop_map(Cond::Has), 1 => declared, 5 => compare()];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            1 => inner.clone().prop_map(|c| Cond::Not(Box::new(c))),
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(Cond::All),
            2 => prop::collection::vec(inner, 1..4).prop_map(Cond::Any),
        ]
    })
}

fn value(width: u8) -> impl Strategy<Value = Value> {
    let of_place = prop_oneof![
        Just(Place { space: Space::Meta, offset: 64, width }),
        Just(Place { space: Space::Meta, offset: 0, width }),
    ];
    prop_oneof![
        3 => any::<u128>().prop_map(move |v| Value::Const(v & ones(width))),
        1 => of_place.prop_map(Value::Read),
        1 => computed(),
    ]
}

/// A value that is computed, of 64 bits.
fn computed() -> impl Strategy<Value = Value> {
    const OPS: &[Arith] = &[Arith::Add, Arith::Sub, Arith::And, Arith::Or, Arith::Xor, Arith::Shl, Arith::Shr];
    let narrow: Vec<Field> = FIELDS.iter().map(|(field, ..)| *field).filter(|field| field.width() <= 64).collect();
    let leaf = prop_oneof![
        1 => prop::sample::select(&[0u128, 1, 3, 63, 64, 0xffff][..]).prop_map(Value::Const),
        1 => any::<u64>().prop_map(|v| Value::Const(v.into())),
        3 => prop::sample::select(narrow).prop_map(|field| Value::Read(Place::field(field))),
        1 => Just(Value::Read(Place { space: Space::Meta, offset: 32, width: 40 })),
    ];
    let any_field = prop::sample::select(FIELDS).prop_map(|(field, ..)| Value::Read(Place::field(field)));
    leaf.prop_recursive(3, 8, 2, move |inner| {
        let hashed = prop_oneof![inner.clone(), any_field.clone()];
        prop_oneof![
            3 => (prop::sample::select(OPS), inner.clone(), inner)
                .prop_map(|(op, a, b)| Value::Arith(op, Box::new(a), Box::new(b))),
            1 => prop::collection::vec(hashed, 0..3).prop_map(Value::Hash),
        ]
    })
}

/// The number of a port, or of none.
fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => (0u128..11).prop_map(Value::Const),
        1 => Just(Value::Read(Place { space: Space::Meta, offset: 32, width: 32 })),
        1 => Just(Value::Read(Place::field(Field::InPortNumber))),
        2 => (computed(), Just(3)).prop_map(|(value, low)| {
            Value::Arith(Arith::And, Box::new(value), Box::new(Value::Const(low)))
        }),
    ]
}

fn set() -> impl Strategy<Value = Action> {
    let written: Vec<_> = FIELDS.iter().copied().filter(|(f, ..)| f.target().is_some()).collect();
    let of_field = prop::sample::select(written).prop_flat_map(|(field, _, values)| {
        let place = Place::field(field);
        let part = Place { offset: 1, width: field.width() - 1, ..place };
        let known = prop::sample::select(values).prop_map(move |v| Action::Set { place, value: Value::Const(v) });
        let other = move |place: Place| value(place.width).prop_map(move |value| Action::Set { place, value });
        match place.width {
            128 => known.boxed(),
            1 => prop_oneof![3 => known, 1 => other(place)].boxed(),
            _ => prop_oneof![3 => known, 1 => other(place), 1 => other(part)].boxed(),
        }
    });
    let of_meta = place().prop_flat_map(|place| {
        let other = value(place.width.min(64)).prop_map(move |value| match value {
            Value::Read(from) => Action::Set { place: Place { width: from.width, ..place }, value },
            value => Action::Set { place, value },
        });
        let same: Vec<Field> = FIELDS.iter().map(|(f, ..)| *f).filter(|f| f.width() == place.width).collect();
        if same.is_empty() {
            return other.boxed();
        }
        let from_field = prop::sample::select(same)
            .prop_map(move |field| Action::Set { place, value: Value::Read(Place::field(field)) });
        prop_oneof![1 => from_field, 2 => other].boxed()
    });
    let of_header = shapes::place()
        .prop_flat_map(|place| shapes::value(place.width).prop_map(move |value| Action::Set { place, value }));
    prop_oneof![2 => of_field, 2 => of_meta, 1 => of_header]
}

fn ct() -> impl Strategy<Value = Action> {
    let zone = prop_oneof![
        3 => (0u128..3).prop_map(Value::Const),
        1 => Just(Value::Read(Place { space: Space::Meta, offset: 48, width: 16 })),
    ];
    (zone, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(zone, commit, force, mark)| {
        Action::Ct(Ct {
            zone,
            commit,
            force: force && commit,
            mark: (mark && commit).then_some((7, 0xf)),
            label: (mark && commit).then_some((7 << 64 | 9, u128::MAX)),
        })
    })
}

/// Sending, counting, choosing.
fn sending(groups: u16) -> impl Strategy<Value = Action> {
    let max_len = || prop::sample::select(&[14u16, 60, u16::MAX][..]);
    let group = (0..groups.max(1)).prop_map(move |g| match groups {
        0 => Action::Count(CounterId(0)),
        _ => Action::Group(GroupId(g)),
    });
    prop_oneof![
        3 => number().prop_map(Action::OutputTo),
        1 => (number(), max_len()).prop_map(|(port, max_len)| Action::OutputPart { port, max_len }),
        1 => (0u16..3).prop_map(|port| Action::Mirror(PortId(port))),
        1 => (0u8..3, max_len()).prop_map(|(reason, max_len)| Action::Controller { reason, max_len }),
        1 => (0u16..2).prop_map(|counter| Action::Count(CounterId(counter))),
        2 => group,
        1 => (0u16..2).prop_map(|meter| Action::Meter(MeterId(meter))),
    ]
}

fn actions(t: usize, n: usize, cyclic: bool, nested: u32, groups: u16) -> BoxedStrategy<Vec<Action>> {
    let reach = move || {
        let first = if cyclic { 0 } else { t + 1 };
        (first..n.max(first + 1)).prop_map(move |k| if k < n { Some(TableId(k as u16)) } else { None })
    };
    let port = || (0u16..3).prop_map(PortId);
    let call = (reach(), prop::option::of(port())).prop_map(|(table, in_port)| match table {
        Some(table) => Action::Call { table, in_port },
        None => Action::CtClear,
    });
    let clone = if nested > 0 {
        actions(t, n, cyclic, nested - 1, groups).prop_map(Action::Clone).boxed()
    } else {
        Just(Action::Flood).boxed()
    };
    let action = prop_oneof![
        5 => port().prop_map(Action::Output),
        1 => Just(Action::InPort),
        1 => Just(Action::Flood),
        1 => Just(Action::All),
        1 => Just(Action::Normal),
        3 => set(),
        1 => Just(Action::DecTtl),
        3 => shapes::action(),
        3 => ct(),
        1 => Just(Action::CtClear),
        2 => call,
        1 => clone,
        3 => sending(groups),
    ];
    let last = prop_oneof![
        3 => Just(None),
        1 => Just(Some(Action::Drop)),
        1 => Just(Some(Action::Exit)),
        3 => reach().prop_map(|table| table.map(Action::Goto)),
    ];
    (prop::collection::vec(action, 0..4), last)
        .prop_map(|(mut actions, last)| {
            actions.extend(last);
            actions
        })
        .boxed()
}
