//! Readers while a writer changes tables: what they find was so at some moment of their burst, and batches are seen whole.

use std::sync::Arc;
use std::thread;

use pipec_abi::meta::{ActionMeta, KeyedMeta, Meta, ParamMeta, PartMeta, TableMeta, ValueMeta};
use pipec_abi::table::shape::ones;
use pipec_abi::table::{KeyMatch, MISS, MatchKind, Open, Part, Shape};
use pipec_abi::{Burst, Ctx, Env};

use super::*;
use crate::engine::Interpret;

/// Nobody runs it.
struct Nothing;

impl Interpret for Nothing {
    fn run(&self, _: &mut dyn Env, _: &mut Ctx, _: &mut Burst) {}
}

/// Tables with these keys, each with an action `put(value)`.
fn tables(keys: &[&[(u8, MatchKind)]], size: u32) -> Arc<Tables> {
    let number = |name: &str, width| ParamMeta { name: name.into(), width, value: ValueMeta::Number };
    let part = |&(width, kind): &(u8, MatchKind)| PartMeta {
        name: "part".into(),
        width,
        kind: kind.name().into(),
        value: ValueMeta::Number,
    };
    let table = |(number_of, key): (usize, &&[(u8, MatchKind)])| TableMeta {
        name: format!("t{number_of}"),
        rules: vec![],
        keyed: Some(KeyedMeta {
            table: number_of as u32,
            key: key.iter().map(part).collect(),
            actions: vec![ActionMeta { name: "put".into(), params: vec![number("value", 64)], entries: true }],
            default: None,
            size,
            idle_ns: 0,
            hard_ns: 0,
            learned: false,
            first_entry: number_of as u32 * size,
        }),
    };
    let meta = Meta { tables: keys.iter().enumerate().map(table).collect(), ..Meta::default() };
    let shape = |key: &&[(u8, MatchKind)]| Shape {
        parts: key.iter().map(|&(width, kind)| Part { width, kind }).collect(),
        args: 1,
        size,
        idle_ns: 0,
        hard_ns: 0,
        timed_entries: false,
        learned: false,
    };
    let bytes: Vec<Vec<u8>> = keys.iter().map(|key| Open::encode(&shape(key), &[])).collect();
    Tables::new(&Engine::interpreter(meta, &bytes, Arc::new(Nothing)))
}

const KEYS: [&[(u8, MatchKind)]; 3] =
    [&[(32, MatchKind::Exact)], &[(32, MatchKind::Lpm)], &[(16, MatchKind::Ternary), (16, MatchKind::Range)]];
/// Entries that come and go in each table.
const IDS: u64 = 24;

fn masked(value: u128, mask: u128) -> KeyMatch {
    KeyMatch::Masked { value: value & mask, mask }
}

/// What entry `id` of a table wants, and its priority; the last of each belongs to batches.
fn wants(table: usize, id: u64) -> (u32, Vec<KeyMatch>) {
    let (wide, last) = (u128::from(id), id == IDS);
    match table {
        0 => (0, vec![masked(wide, ones(32))]),
        1 if last => (0, vec![masked(99 << 24, 0xff00_0000)]),
        // Nested, so that the longest there is decides.
        1 => (0, vec![masked(0x0a0a_0a0a, ones(32) & !(ones(32) >> (id + 2)))]),
        _ if last => (9, vec![masked(0xffff, 0xffff), KeyMatch::Range { low: 7, high: 9 }]),
        _ => (id as u32 % 5, vec![masked(wide, 0x7 << (id % 3)), KeyMatch::Range { low: 0, high: 100 * wide }]),
    }
}

/// A key that is looked up, as values of the parts.
fn asked(table: usize, at: u64) -> Vec<u128> {
    match table {
        0 => vec![u128::from(at % IDS)],
        1 => vec![0x0a0a_0a0a ^ (1 << (at % 32))],
        _ => vec![u128::from(at % 32), u128::from(at * 77 % 2500)],
    }
}

fn mix(at: u64) -> u64 {
    let x = (at ^ at >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 7
}

/// Change number `at`: the tables and the entry, and whether it comes.
fn change(at: u64) -> (Vec<usize>, u64, bool) {
    let random = mix(at);
    match random % 10 {
        0 => (vec![0, 1, 2], IDS, true),
        _ => (vec![(random >> 8) as usize % 3], (random >> 16) % IDS, !(random >> 32).is_multiple_of(3)),
    }
}

/// The tables as a list of what is in them, with the number of the change that put it there and when it first came.
#[derive(Clone, Default)]
struct Model(Vec<(usize, u64, u64, u64)>);

impl Model {
    fn make(&mut self, at: u64) {
        let (tables, id, comes) = change(at);
        for table in tables {
            let old = self.0.iter().position(|entry| (entry.0, entry.1) == (table, id));
            match (old, comes) {
                (Some(old), true) => self.0[old].2 = at,
                (Some(old), false) => drop(self.0.remove(old)),
                (None, true) => self.0.push((table, id, at, at)),
                (None, false) => {}
            }
        }
    }

    /// The change that put in what a key finds.
    fn find(&self, table: usize, key: &[u128]) -> Option<u64> {
        let holds = |id| wants(table, id).1.iter().zip(key).all(|(want, key)| want.holds(*key));
        let entries = self.0.iter().filter(|entry| entry.0 == table && holds(entry.1));
        let rank = |id| if table == 1 { id as u32 } else { wants(table, id).0 };
        entries.max_by_key(|entry| (rank(entry.1), std::cmp::Reverse(entry.3))).map(|entry| entry.2)
    }
}

fn make(tables: &Tables, at: u64) {
    let (numbers, id, comes) = change(at);
    let mut batch = tables.batch();
    for table in numbers {
        let ((priority, key), name) = (wants(table, id), format!("t{table}"));
        if comes {
            batch.set(&name, Entry::new(key, "put", vec![at.into()]).priority(priority)).expect("it fits");
        } else {
            batch.remove(&name, priority, &key).expect("there is such a table");
        }
    }
    batch.commit();
}

#[test]
fn readers_find_what_was_so_in_their_burst() {
    const CHANGES: u64 = 6000;
    let tables = tables(&KEYS, 64);
    let (begun, done) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for seed in 0..2u64 {
            let (tables, begun, done) = (&tables, &begun, &done);
            scope.spawn(move || {
                let (mut reader, root, counters) = Reader::new(tables);
                let mut ctx = Ctx::new(0, 0, root, counters);
                let shapes = tables.stores.iter().flatten().map(|store| store.shape.clone()).collect::<Vec<_>>();
                let (mut model, mut made, mut bursts) = (Model::default(), 0, seed);
                while made < CHANGES {
                    bursts += 1;
                    let first = done.load(Ordering::Acquire);
                    reader.begin(&mut ctx);
                    let mut look = |table: usize, key: &[u128]| {
                        let found = ctx.find(table, &shapes[table].pack(key));
                        (found != MISS).then(|| ctx.arg(0))
                    };
                    let keys: Vec<(usize, Vec<u128>)> =
                        (0..30).map(|k| (k % 3, asked(k % 3, mix(bursts * 30 + k as u64)))).collect();
                    let found: Vec<Option<u64>> = keys.iter().map(|(table, key)| look(*table, key)).collect();
                    let whole = [look(0, &[IDS.into()]), look(1, &[99 << 24]), look(2, &[0xffff, 8])];
                    if bursts.is_multiple_of(50) {
                        reader.rest();
                    }
                    let last = begun.load(Ordering::Acquire);
                    assert!(whole.iter().all(|found| *found == whole[0]), "half of a batch: {whole:?}");
                    (made + 1..=first).for_each(|at| model.make(at));
                    made = first;
                    let mut states = vec![model.clone()];
                    for at in first + 1..=last {
                        let mut next = states[states.len() - 1].clone();
                        next.make(at);
                        states.push(next);
                    }
                    for ((table, key), found) in keys.iter().zip(found) {
                        let valid = states.iter().any(|model| model.find(*table, key) == found);
                        let want: Vec<_> = states.iter().map(|model| model.find(*table, key)).collect();
                        assert!(valid, "table {table}, {key:x?}: {found:?} between {first} and {last}: {want:?}");
                    }
                }
            });
        }
        for at in 1..=CHANGES {
            begun.store(at, Ordering::Release);
            make(&tables, at);
            done.store(at, Ordering::Release);
        }
    });
    let mut writer = lock(&tables.writer);
    tables.reclaim(&mut writer);
    assert!(writer.retired.is_empty(), "old roots are freed when no worker holds them");
}

#[test]
fn a_table_grows_and_shrinks_and_lists_what_is_in_it() {
    for (table, key) in KEYS.iter().enumerate() {
        let tables = tables(&[key], 5000);
        let entry = |at: u32| {
            let key = match table {
                0 => vec![masked(at.into(), ones(32))],
                1 => vec![masked(u128::from(at) << 12, 0xffff_f000)],
                _ => vec![masked(at.into(), 0xffff), KeyMatch::Range { low: 0, high: 0xffff }],
            };
            Entry::new(key, "put", vec![at.into()])
        };
        let mut batch = tables.batch();
        batch.load("t0", (0..3000).map(entry)).expect("there is room");
        batch.commit();
        (3000..5000).for_each(|at| tables.insert("t0", entry(at)).expect("there is room"));
        assert_eq!(tables.insert("t0", entry(5000)), Err(TableError::Full { table: "t0".into(), size: 5000 }));
        let listed: Vec<u128> = tables.list("t0").expect("a table").iter().map(|l| l.entry.args[0]).collect();
        assert!(listed.into_iter().eq(0..5000), "in the order they came");
        for at in (0..5000).step_by(2) {
            assert_eq!(tables.remove("t0", 0, &entry(at).key), Ok(true));
        }
        let mut batch = tables.batch();
        batch.clear("t0").expect("a table");
        batch.insert("t0", entry(7)).expect("there is room");
        batch.commit();
        assert_eq!(tables.list("t0").expect("a table").len(), 1);
    }
}
