//! Headers that random programs declare, and actions that put headers on and take them off.

use pipec_compiler::field::{Field, Header, Kind};
use pipec_compiler::hir::{
    Action, After, Cond, Encap, HeaderDecl, HeaderField, Inside, Match, Place, Read, Space, Tunnel, Value, View,
};
use pipec_compiler::standard;
use proptest::prelude::*;

/// Names of the headers, in their order among a program's.
const NAMES: &[&str] = &[
    "llc",
    "snap",
    "mpls",
    "gre",
    "gre_checksum",
    "gre_key",
    "vxlan",
    "geneve",
    "gtpu",
    "pair",
    "byte",
    "any",
    "wide",
];

/// The headers: standard ones, and some that lie behind many others.
pub fn headers() -> Vec<HeaderDecl> {
    let mut headers = vec![];
    for name in &NAMES[..9] {
        standard::add(&mut headers, name).expect("a standard header");
    }
    let field = |name: &str, offset, width| HeaderField { name: name.into(), offset, width, kind: Kind::Number };
    let declare = |name: &str, widths: &[u8], after: Vec<After>| {
        let mut offset = 0;
        let fields = widths.iter().enumerate().map(|(k, width)| {
            offset += u16::from(*width);
            field(&format!("f{k}"), offset - u16::from(*width), *width)
        });
        let fields = fields.collect();
        HeaderDecl { name: name.into(), bytes: offset / 8, fields, after }
    };
    let equal = |place: Place, value| {
        Cond::Compare(Read { place, view: View::Table }, Match::Masked { value, mask: ones(place.width) })
    };
    let is = |field, value| equal(Place::field(field), value);
    let after = |parent, cond| After { parent, cond };
    headers.push(declare("pair", &[3, 13], vec![after(Header::Udp, is(Field::UdpDst, 2))]));
    let pair = Place { space: Space::Header(9), offset: 0, width: 3 };
    headers.push(declare(
        "byte",
        &[8],
        vec![after(Header::Declared(9), equal(pair, 3)), after(Header::Icmp, Cond::True)],
    ));
    headers.push(declare(
        "any",
        &[1, 7, 24, 1, 7],
        vec![
            after(Header::Eth, is(Field::EthType, 0x88b5)),
            after(Header::Arp, Cond::True),
            after(Header::Tcp, Cond::Not(Box::new(is(Field::TcpDst, 1)))),
            after(Header::Sctp, Cond::True),
            after(Header::Vlan, is(Field::EthType, 0x8100)),
        ],
    ));
    let first = Read { place: Place::field(Field::IpProto), view: View::Table };
    let odd = Cond::Compare(first, Match::In(vec![(2, 5), (132, 132)]));
    headers.push(declare(
        "wide",
        &[5, 128, 3, 65, 63],
        vec![after(Header::Ipv6, odd.clone()), after(Header::Ipv4, odd)],
    ));
    headers
}

fn ones(width: u8) -> u128 {
    if width == 128 { u128::MAX } else { (1 << width) - 1 }
}

/// A header, by its place.
pub fn header() -> impl Strategy<Value = u16> {
    0u16..NAMES.len() as u16
}

/// A field of a header.
pub fn place() -> impl Strategy<Value = Place> {
    let all: Vec<Place> = headers()
        .iter()
        .enumerate()
        .flat_map(|(h, header)| {
            let place =
                move |f: &HeaderField| Place { space: Space::Header(h as u16), offset: f.offset, width: f.width };
            header.fields.iter().map(place).collect::<Vec<_>>()
        })
        .collect();
    prop::sample::select(all)
}

/// A value of some width: known, or read from the metadata, which has two words, or from the packet.
pub fn value(width: u8) -> BoxedStrategy<Value> {
    let known =
        prop_oneof![Just(0u128), Just(1), Just(3), any::<u128>()].prop_map(move |v| Value::Const(v & ones(width)));
    if width > 64 {
        return prop_oneof![2 => known, 1 => Just(Value::Read(Place { space: Space::Meta, offset: 0, width }))].boxed();
    }
    let meta = Just(Value::Read(Place { space: Space::Meta, offset: 64, width }));
    let fields: Vec<Field> = Field::ALL.iter().copied().filter(|f| f.width() == width && *f != Field::InPort).collect();
    if fields.is_empty() {
        return prop_oneof![2 => known, 1 => meta].boxed();
    }
    let field = prop::sample::select(fields).prop_map(|f| Value::Read(Place::field(f)));
    prop_oneof![2 => known, 1 => meta, 1 => field].boxed()
}

/// Values of some fields of a header.
fn values(header: u16) -> BoxedStrategy<Vec<(Place, Value)>> {
    let fields = headers().swap_remove(usize::from(header)).fields;
    let one = |field: HeaderField| {
        let place = Place { space: Space::Header(header), offset: field.offset, width: field.width };
        prop::option::of(value(field.width).prop_map(move |value| (place, value)))
    };
    let all: Vec<_> = fields.into_iter().map(one).collect();
    all.prop_map(|all| all.into_iter().flatten().collect()).boxed()
}

/// An action that changes the shape of frames.
pub fn action() -> impl Strategy<Value = Action> {
    let push = header().prop_flat_map(|header| values(header).prop_map(move |values| Action::Push { header, values }));
    let eth_type = || prop::sample::select(&[0x0800u16, 0x86dd, 0x8847, 0x8848, 0x88b5][..]);
    let push_mpls = (eth_type(), prop_oneof![Just(vec![]).boxed(), values(2)])
        .prop_map(|(eth_type, values)| Action::PushMpls { eth_type, values });
    let tag = prop::sample::select(&[Field::VlanVid, Field::VlanPcp][..]).prop_flat_map(|field| {
        value(field.width()).prop_map(move |value| Action::SetVlan { place: Place::field(field), value })
    });
    let tunnel = prop::sample::select(Tunnel::NAMES).prop_map(|(name, tunnel)| {
        let header = NAMES.iter().position(|n| *n == name).expect("its header") as u16;
        Action::Decap { tunnel, header }
    });
    prop_oneof![
        4 => push,
        3 => header().prop_map(|header| Action::Pop { header }),
        2 => (prop::sample::select(&[0x8100u16, 0x88a8][..]), value(16)).prop_map(|(tpid, tci)| Action::PushVlan { tpid, tci }),
        2 => Just(Action::PopVlan),
        1 => (14u16..100).prop_map(Action::Truncate),
        2 => tag,
        2 => push_mpls,
        2 => eth_type().prop_map(|eth_type| Action::PopMpls { eth_type }),
        1 => Just(Action::DecMplsTtl { header: 2 }),
        3 => encap(),
        3 => tunnel,
    ]
}

/// A tunnel over IPv4 or IPv6, with some values known late.
fn encap() -> impl Strategy<Value = Action> {
    (any::<bool>(), 0usize..5, value(32), value(24), value(48)).prop_map(|(v6, kind, address, id, mac)| {
        let mut bytes = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8];
        let proto = [17, 17, 47, 17, 0][kind];
        if v6 {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, proto, 64]);
            bytes.extend([0xfd; 32]);
        } else {
            bytes.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let transport = bytes.len() as u16;
        let dst: [u8; 2] = [4789u16, 6081, 0, 2152, 0][kind].to_be_bytes();
        if proto == 17 {
            bytes.extend([0x9c, 0x40, dst[0], dst[1], 0, 0, 0, 0]);
        }
        let header = bytes.len() as u16;
        bytes.extend(match kind {
            0 => vec![8, 0, 0, 0, 0, 0, 0, 0],
            1 => vec![0, 0, 0x65, 0x58, 0, 0, 0, 0],
            2 => vec![0, 0, 8, 0],
            3 => vec![0x30, 255, 0, 0, 0, 0, 0, 7],
            _ => vec![],
        });
        let mut values = vec![(0, 48, mac), (if v6 { 14 + 36 } else { 14 + 16 } * 8, 32, address)];
        if kind < 2 {
            values.push(((header + 4) * 8, 24, id));
        }
        let packet = |eth_type, protocol| Inside::Packet { eth_type, protocol };
        Action::Encap(Box::new(Encap {
            bytes,
            values,
            ip: (14, v6),
            udp: (proto == 17).then_some(transport),
            length: (kind == 3).then_some(header + 2),
            inside: match kind {
                0 | 1 => Inside::Frame,
                2 => packet(Some(header + 2), None),
                3 => packet(None, None),
                _ => packet(None, Some(14 + if v6 { 6 } else { 9 })),
            },
        }))
    })
}
