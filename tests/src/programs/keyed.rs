//! Random keyed tables: all kinds of matches over few values, actions with parameters, times, and packets that learn.

use pipec_compiler::field::{Field, Header, Kind};
use pipec_compiler::hir::{
    Action, Cond, KeyMatch, KeyPart, Keyed, KeyedAction, KeyedEntry, Learn, MatchKind, Param, Place, Program, Read,
    Rule, Space, Table, TableId, Value, View,
};
use pipec_compiler::source::Span;
use proptest::prelude::*;

use super::{FIELDS, actions, ones, place};

/// Seconds that entries live.
const TIMES: &[u64] = &[0, 1, 10, 25];

/// A keyed table.
pub fn table(t: usize, n: usize, cyclic: bool) -> impl Strategy<Value = Table> {
    let plain = (prop::collection::vec(part(false), 1..4), Just(false));
    let learned = (prop::collection::vec(part(true), 1..3), Just(true));
    let times = prop_oneof![
        3 => Just((0, 0)),
        1 => (prop::sample::select(TIMES), prop::sample::select(TIMES)),
    ];
    let times = times.prop_map(|(idle, hard)| (idle * 1_000_000_000, hard * 1_000_000_000));
    let bodies = prop::collection::vec((params(), actions(t, n, cyclic, 1, super::GROUPS)), 1..4);
    (prop_oneof![3 => plain, 1 => learned], bodies, times, 1u32..9).prop_flat_map(
        move |((key, learned), bodies, times, size)| {
            let key = one_lpm(key);
            let n_actions = bodies.len();
            let entry = entry(key.clone(), bodies.iter().map(|(params, _)| params.clone()).collect());
            let entries = prop::collection::vec(entry, if learned { 0..1 } else { 0..size as usize + 1 });
            let default = prop::option::of((0..n_actions, prop::collection::vec(0u128..4, 4)));
            (entries, default).prop_map(move |(entries, default)| {
                let default = default.map(|(action, args)| {
                    let params = &bodies[action].0;
                    (action as u16, args.into_iter().take(params.len()).collect())
                });
                build(t, key.clone(), &bodies, default, entries, (size, times, learned))
            })
        },
    )
}

type Body = (Vec<Param>, Vec<Action>);

fn build(
    t: usize,
    key: Vec<KeyPart>,
    bodies: &[Body],
    default: Option<(u16, Vec<u128>)>,
    entries: Vec<KeyedEntry>,
    (size, (idle_ns, hard_ns), learned): (u32, (u64, u64), bool),
) -> Table {
    let headers: Vec<Cond> = key.iter().filter_map(|part| part.header).map(Cond::Has).collect();
    let rule = |(k, (params, body)): (usize, &Body)| Rule {
        priority: (bodies.len() - k) as u32,
        cond: if default.as_ref().is_some_and(|(d, _)| usize::from(*d) == k) {
            Cond::True
        } else {
            Cond::All(headers.clone())
        },
        actions: with_params(params, body),
        text: String::new(),
        span: Span::default(),
    };
    let mut unique: Vec<KeyedEntry> = vec![];
    for entry in entries {
        if !unique.iter().any(|e| e.key == entry.key && e.priority == entry.priority) {
            unique.push(entry);
        }
    }
    let action =
        |(k, (params, _)): (usize, &Body)| KeyedAction { name: format!("a{k}"), params: params.clone(), entries: true };
    Table {
        name: format!("t{t}"),
        rules: bodies.iter().enumerate().map(rule).collect(),
        span: Span::default(),
        keyed: Some(Keyed {
            key,
            actions: bodies.iter().enumerate().map(action).collect(),
            default,
            size,
            idle_ns,
            hard_ns,
            learned,
            entries: if learned { vec![] } else { unique },
        }),
    }
}

/// A body in which each parameter is used: a port is sent to, a MAC address is written, others go to the metadata.
fn with_params(params: &[Param], body: &[Action]) -> Vec<Action> {
    let uses = params.iter().zip(0u16..).map(|(param, k)| {
        let meta = Place { space: Space::Meta, offset: 0, width: param.width };
        match param.kind {
            Kind::Port => Action::OutputTo(Value::Param(k)),
            Kind::Mac => Action::Set { place: Place::field(Field::EthSrc), value: Value::Param(k) },
            _ => Action::Set { place: meta, value: Value::Param(k) },
        }
    });
    let mut all = body.to_vec();
    // Before the last, which may end the list, so that what comes before may suspend the packet.
    let at = all.len().saturating_sub(1);
    all.splice(at..at, uses);
    all
}

/// Parameters of different widths.
fn params() -> impl Strategy<Value = Vec<Param>> {
    let param = prop::sample::select(&[(Kind::Port, 16), (Kind::Mac, 48), (Kind::Number, 7), (Kind::Ipv6, 128)][..]);
    let param = param.prop_map(|(kind, width)| Param { name: "p".into(), kind, width });
    prop::collection::vec(param, 0..3)
}

fn part(exact: bool) -> impl Strategy<Value = KeyPart> {
    let field = prop::sample::select(FIELDS).prop_map(|(field, header, _)| (Place::field(field), header, field.kind()));
    let field = field.prop_map(|(place, header, kind)| (place, Some(header).filter(|h| *h != Header::Eth), kind));
    let meta = place().prop_map(|place| (place, None, Kind::Number));
    let port = Just((Place::field(Field::InPort), None, Kind::Port));
    let kind = prop::sample::select(&MatchKind::NAMES[..]);
    (prop_oneof![6 => field, 2 => meta, 1 => port], kind).prop_map(move |((place, header, value), (_, kind))| KeyPart {
        name: "k".into(),
        read: Read { place, view: View::Table },
        header,
        kind: if exact { MatchKind::Exact } else { kind },
        value,
    })
}

/// At most one part is matched by the longest prefix.
fn one_lpm(mut key: Vec<KeyPart>) -> Vec<KeyPart> {
    let lpm = key.iter_mut().filter(|part| part.kind == MatchKind::Lpm);
    lpm.skip(1).for_each(|part| part.kind = MatchKind::Ternary);
    key
}

/// Values that packets have of a part.
fn values(part: &KeyPart) -> Vec<u128> {
    let known = match part.read.place.space {
        Space::Field(field) => FIELDS.iter().find(|(f, ..)| *f == field).map(|(_, _, values)| values.to_vec()),
        Space::Meta | Space::Header(_) => None,
    };
    known.unwrap_or_else(|| (0..4).collect())
}

fn want(part: &KeyPart) -> BoxedStrategy<KeyMatch> {
    let full = ones(part.read.place.width);
    let value = prop::sample::select(values(part)).prop_map(move |value| value & full);
    let masked = |value: u128, mask: u128| KeyMatch::Masked { value: value & mask, mask };
    match part.kind {
        MatchKind::Exact => value.prop_map(move |value| masked(value, full)).boxed(),
        MatchKind::Optional => {
            prop_oneof![value.prop_map(move |value| masked(value, full)), Just(masked(0, 0))].boxed()
        }
        MatchKind::Lpm => {
            let width = part.read.place.width;
            let short = (value, 0u8..4).prop_map(move |(value, short)| {
                masked(value, full & !ones(short.min(width).max(1)).wrapping_sub(u128::from(short == 0)))
            });
            prop_oneof![4 => short, 1 => Just(masked(0, 0))].boxed()
        }
        MatchKind::Ternary => (value, any::<u128>()).prop_map(move |(value, mask)| masked(value, mask & full)).boxed(),
        MatchKind::Range => (value, 0u128..3)
            .prop_map(move |(low, more)| KeyMatch::Range { low, high: low.saturating_add(more).min(full) })
            .boxed(),
    }
}

fn entry(key: Vec<KeyPart>, params: Vec<Vec<Param>>) -> impl Strategy<Value = KeyedEntry> {
    let priorities = key.iter().any(|part| part.kind.has_priority());
    let wants: Vec<_> = key.iter().map(want).collect();
    let priority = if priorities { (0u32..3).boxed() } else { Just(0).boxed() };
    let times = prop_oneof![8 => Just(None), 1 => prop::sample::select(TIMES).prop_map(|s| Some(s * 1_000_000_000))];
    (priority, wants, 0..params.len(), prop::collection::vec(any::<u128>(), 4), times).prop_map(
        move |(priority, key, action, args, idle_ns)| {
            let args = args.into_iter().zip(&params[action]);
            let args = args.map(|(arg, p)| if p.kind == Kind::Port { arg % 5 } else { arg & ones(p.width) });
            let args = args.collect();
            KeyedEntry { priority, key, action: action as u16, args, idle_ns, hard_ns: None, span: Span::default() }
        },
    )
}

/// Lets rules of a program learn: each seed chooses a learned table, a rule, and what is learned.
pub fn learn(program: &mut Program, seeds: &[(usize, usize, u8)]) {
    let learned: Vec<usize> = (0..program.tables.len())
        .filter(|t| program.tables[*t].keyed.as_ref().is_some_and(|keyed| keyed.learned))
        .collect();
    if learned.is_empty() {
        return;
    }
    for &(at, rule, seed) in seeds {
        let target = learned[at % learned.len()];
        let Some(keyed) = program.tables[target].keyed.clone() else { continue };
        let key = keyed.key.iter().map(|part| match seed % 3 {
            0 => Value::Const(values(part)[usize::from(seed) % values(part).len()] & ones(part.read.place.width)),
            1 => Value::Read(Place { space: Space::Meta, offset: 0, width: part.read.place.width }),
            _ => Value::Read(part.read.place),
        });
        let action = usize::from(seed) % keyed.actions.len();
        let args = keyed.actions[action].params.iter().map(|param| match param.kind {
            Kind::Port => Value::Const(u128::from(seed) % 5),
            _ if param.width == 48 => Value::Read(Place::field(Field::EthDst)),
            _ => Value::Const(u128::from(seed) & ones(param.width)),
        });
        let (key, args) = (key.collect(), args.collect());
        let learn = Action::Learn(Box::new(Learn { table: TableId(target as u16), key, action: action as u16, args }));
        let t = (at + rule) % program.tables.len();
        let rules = program.tables[t].rules.len();
        if let Some(rule) = program.tables[t].rules.get_mut(rule % rules.max(1)) {
            rule.actions.insert(0, learn);
        }
    }
}
