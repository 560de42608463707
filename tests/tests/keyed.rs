//! Tables whose entries come from outside: put in and taken out while packets flow, learned by packets, ended by time, and
//! with the types of a program.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use pipec_compiler::source::Sources;
use pipec_runtime::abi::DropReason;
use pipec_runtime::offline::Offline;
use pipec_runtime::tables::TableError;
use pipec_runtime::{Engine, pipeline};
use pipec_tests::engines;

const ROUTER: &str = include_str!("keyed/router.pipe");

/// The router as part of this crate.
#[pipeline(file = "tests/keyed/router.pipe")]
pub struct Router;

fn program(text: &str) -> pipec_compiler::hir::Program {
    let mut sources = Sources::default();
    let file = sources.add("test.pipe", text);
    let (program, diagnostics) = pipec_compiler::front(&mut sources, file, &[]);
    program.unwrap_or_else(|| panic!("{}", pipec_compiler::diag::render_all(&diagnostics, &sources, false)))
}

fn both(text: &str) -> Vec<Engine> {
    let program = program(text);
    vec![engines::eval(&program), engines::jit(&program)]
}

fn routers() -> Vec<Engine> {
    let mut all = both(ROUTER);
    all.push(Engine::of::<Router>().unwrap());
    all
}

/// UDP from an address to another.
fn packet(src: [u8; 4], dst: [u8; 4], port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0];
    frame.extend(src);
    frame.extend(dst);
    frame.extend([0, 1]);
    frame.extend(port.to_be_bytes());
    frame.resize(60, 0);
    frame
}

/// Where a packet to an address comes out, by its port's place; the reason if it does not.
fn sent(offline: &mut Offline, now_ns: u64, port: u16, dst: [u8; 4]) -> Result<u16, DropReason> {
    let outcome = offline.send(now_ns, &[(port, packet([10, 9, 9, 9], dst, 7))]).remove(0);
    match outcome.outputs.first() {
        Some((port, _)) => Ok(*port),
        None => Err(outcome.drop.expect("it is dropped")),
    }
}

#[test]
fn entries_decide_and_are_counted() {
    for engine in routers() {
        let mut offline = Offline::new(&engine);
        assert_eq!(sent(&mut offline, 0, 0, [10, 2, 0, 1]), Ok(1));
        assert_eq!(sent(&mut offline, 0, 0, [10, 1, 0, 1]), Ok(2));
        assert_eq!(sent(&mut offline, 0, 1, [10, 2, 0, 1]), Ok(0));
        assert_eq!(sent(&mut offline, 0, 1, [10, 1, 0, 1]), Err(DropReason::Policy));
        assert_eq!(sent(&mut offline, 0, 0, [11, 1, 0, 1]), Err(DropReason::NoMatch));
        assert_eq!(sent(&mut offline, 0, 2, [10, 1, 0, 1]), Err(DropReason::InPort));
        let listed = offline.tables().list("fib").unwrap();
        let counts: Vec<u64> = listed.iter().map(|one| one.counter.packets).collect();
        assert_eq!(counts, [2, 1, 1, 1], "longer prefixes first, in the order they were put in: {listed:?}");
        assert_eq!(listed[0].counter.bytes, 120);
    }
}

#[test]
fn changes_are_seen_by_the_next_burst_and_counted_anew() {
    for engine in routers() {
        let mut offline = Offline::new(&engine);
        let tables = offline.tables().clone();
        let parse = |text| tables.parse("fib", text).unwrap();
        assert_eq!(sent(&mut offline, 0, 0, [10, 1, 0, 1]), Ok(2));
        let old = parse("1, 10.1.0.0/16 => drop");
        assert_eq!(tables.insert("fib", old.clone()), Err(TableError::Exists("fib".into())));
        assert!(tables.remove("fib", 0, &old.key).unwrap());
        assert!(!tables.remove("fib", 0, &old.key).unwrap());
        assert_eq!(sent(&mut offline, 0, 0, [10, 1, 0, 1]), Ok(1));
        tables.insert("fib", parse("1, 10.1.0.0/16 => route(b, 02:00:00:00:00:04)")).unwrap();
        assert_eq!(tables.list("fib").unwrap()[0].counter.packets, 0, "another entry at the same place");
        tables.set("fib", parse("1, 10.1.0.0/16 => drop")).unwrap();
        assert_eq!(sent(&mut offline, 0, 0, [10, 1, 0, 1]), Err(DropReason::Policy));
        let full = TableError::Full { table: "fib".into(), size: 4 };
        assert_eq!(tables.insert("fib", parse("3, 10.1.0.0/16 => drop")), Err(full));
    }
}

#[test]
fn a_batch_over_tables_is_seen_whole_or_not_at_all() {
    for engine in routers() {
        let mut offline = Offline::new(&engine);
        let tables = offline.tables().clone();
        let mut batch = tables.batch();
        batch.clear("fib").unwrap();
        batch.set("interfaces", tables.parse("interfaces", "a => tag(9)").unwrap()).unwrap();
        batch.insert("fib", tables.parse("fib", "9, 0.0.0.0/0 => route(c, 02:00:00:00:00:05)").unwrap()).unwrap();
        assert_eq!(sent(&mut offline, 0, 0, [10, 2, 0, 1]), Ok(1), "nothing is seen before the batch is committed");
        batch.commit();
        assert_eq!(sent(&mut offline, 0, 0, [10, 2, 0, 1]), Ok(2));
        assert_eq!(sent(&mut offline, 0, 1, [10, 2, 0, 1]), Err(DropReason::NoMatch));
        let mut dropped = tables.batch();
        dropped.clear("fib").unwrap();
        drop(dropped);
        assert_eq!(sent(&mut offline, 0, 0, [10, 2, 0, 1]), Ok(2));
    }
}

#[test]
fn packets_see_no_half_of_a_batch_while_another_thread_makes_them() {
    let engine = Engine::of::<Router>().unwrap();
    let mut offline = Offline::new(&engine);
    let tables = offline.tables().clone();
    let (old, new) = ("9, 0.0.0.0/0 => route(c, 02:00:00:00:00:05)", "8, 0.0.0.0/0 => route(b, 02:00:00:00:00:05)");
    let to = |vrf: u8, fib: &str| {
        let mut batch = tables.batch();
        batch.clear("fib").unwrap();
        batch.set("interfaces", tables.parse("interfaces", &format!("a => tag({vrf})")).unwrap()).unwrap();
        batch.insert("fib", tables.parse("fib", fib).unwrap()).unwrap();
        batch.commit();
    };
    to(9, old);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..500).for_each(|k| if k % 2 == 0 { to(8, new) } else { to(9, old) }));
        let mut seen = [0; 3];
        while !writer.is_finished() || seen[2] == 0 {
            let port =
                sent(&mut offline, 0, 0, [10, 2, 0, 1]).expect("there is a route in the old tables and in the new");
            seen[usize::from(port)] += 1;
        }
        assert!(seen[2] > 0 && seen[0] == 0, "{seen:?}");
    });
    let listed = tables.list("fib").unwrap();
    assert_eq!(listed.len(), 1);
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let engine = Engine::of::<Router>().unwrap();
    let tables = pipec_runtime::Tables::new(&engine);
    for (table, text, part) in [
        ("fib", "1 => drop", "the key has 2 parts, not 1"),
        ("fib", "5000, 10.0.0.0/8 => drop", "vrf: 0x1388 has more than 12 bits"),
        ("fib", "1, 10.0.0.0/40 => drop", "ipv4.dst: /40 is longer than 32 bits"),
        ("fib", "1, 2001:db8::1 => drop", "ipv4.dst: `2001:db8::1` is not an IPv4 address"),
        ("fib", "_, 10.0.0.0/8 => drop", "vrf: it is matched as exact"),
        ("fib", "1, 10.0.0.0/8 => flood", "it has no action `flood`; it has route, drop"),
        ("fib", "1, 10.0.0.0/8 => route(a)", "the action `route` has 2 parameters, not 1"),
        ("fib", "1, 10.0.0.0/8 => route(z, 02:00:00:00:00:01)", "out: `z` is not a port of the program"),
        ("fib", "priority 3: 1, 10.0.0.0/8 => drop", "its entries have no priorities"),
        ("fib", "1, 10.0.0.0/8 => drop idle 3 s", "its entries have no time-outs"),
        ("nat", "1 => drop", "no table `nat` whose entries can be changed; there are interfaces, fib"),
        ("start", "1 => drop", "its entries are rules of the program"),
    ] {
        let error = tables.parse(table, text).and_then(|entry| tables.insert(table, entry)).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn typed_tables_take_keys_and_actions_as_rust_values() {
    let engine = Engine::of::<Router>().unwrap();
    let mut offline = Offline::new(&engine);
    let tables = router::Tables::of(offline.tables());
    let key = |vrf, net: [u8; 4], len| router::fib::Key { vrf, ipv4_dst: (Ipv4Addr::from(net), len) };
    assert!(tables.fib().remove(key(1, [10, 0, 0, 0], 8)).unwrap());
    let route = router::fib::Route { out: router::Port::C, dmac: [2, 0, 0, 0, 0, 6] };
    tables.fib().insert(key(1, [10, 2, 0, 0], 16), route.clone()).unwrap();
    tables.fib().set(0, key(1, [10, 1, 0, 0], 16), router::fib::Action::Drop).unwrap();
    assert_eq!(sent(&mut offline, 0, 0, [10, 2, 0, 1]), Ok(2));
    assert_eq!(sent(&mut offline, 0, 0, [10, 1, 0, 1]), Err(DropReason::Policy));
    let listed = tables.fib().list().unwrap();
    let one = listed.iter().find(|one| one.key == key(1, [10, 2, 0, 0], 16)).expect("what was put in");
    assert_eq!((one.action.clone(), one.counter.packets), (route.into(), 1));
    let interfaces = tables.interfaces().list().unwrap();
    assert_eq!(interfaces[0].key, router::InPort(router::Port::B));
}

const TIMED: &str = r#"
pipeline timed {
    port a, b;
    action to(out: port) { output(out); }
    start {
        key ipv4.dst: lpm;
        actions to;
        idle 10 s;
        size 8;
        entries { 10.0.0.0/8 => to(b); 10.1.0.0/16 => to(a) idle 2 s hard 5 s; }
    }
}
"#;

const S: u64 = 1_000_000_000;

#[test]
fn time_ends_entries() {
    for engine in both(TIMED) {
        let mut offline = Offline::new(&engine);
        let start = 7 * S;
        assert_eq!(sent(&mut offline, start, 1, [10, 1, 0, 1]), Ok(0));
        assert_eq!(sent(&mut offline, start + S, 1, [10, 1, 0, 1]), Ok(0), "used, so that it is idle anew");
        assert_eq!(sent(&mut offline, start + 2 * S + S / 2, 1, [10, 1, 0, 1]), Ok(0));
        assert_eq!(sent(&mut offline, start + 4 * S, 1, [10, 1, 0, 1]), Ok(0));
        assert_eq!(sent(&mut offline, start + 5 * S, 0, [10, 1, 0, 1]), Ok(1), "too old: the shorter prefix is next");
        assert_eq!(offline.tables().list("start").unwrap().len(), 1);
        assert_eq!(sent(&mut offline, start + 14 * S, 0, [10, 1, 0, 1]), Ok(1));
        assert_eq!(sent(&mut offline, start + 24 * S, 0, [10, 1, 0, 1]), Err(DropReason::NoMatch));
        assert_eq!(offline.tables().list("start").unwrap(), []);
        let tables = offline.tables().clone();
        tables.insert("start", tables.parse("start", "10.0.0.0/8 => to(b) idle 1 s").unwrap()).unwrap();
        assert_eq!(sent(&mut offline, start + 24 * S + S / 2, 0, [10, 1, 0, 1]), Ok(1));
        assert_eq!(sent(&mut offline, start + 26 * S, 0, [10, 1, 0, 1]), Err(DropReason::NoMatch));
    }
}

const LEARNING: &str = r#"
pipeline learning {
    port a, b, c;
    action to(out: port, seen: u16) { output(out); }
    table known {
        key ipv4.src: exact;
        actions to;
        learned;
        size 2;
        idle 10 s;
    }
    start {
        in_port == a => learn known(ipv4.dst) => to(b, udp.dst), output(c);
        else => goto known;
    }
}
"#;

#[test]
fn what_a_packet_learns_the_next_of_its_burst_knows() {
    for engine in both(LEARNING) {
        let mut offline = Offline::new(&engine);
        let teach = |host: u8| (0, packet([1, 1, 1, 1], [10, 0, 0, host], 7));
        let ask = |host: u8| (2, packet([10, 0, 0, host], [1, 1, 1, 1], 7));
        let burst = [ask(1), teach(1), ask(1), ask(2), teach(2), ask(2), teach(3), ask(3), ask(1)];
        let ports: Vec<Option<u16>> =
            offline.send(S, &burst).iter().map(|o| o.outputs.first().map(|(port, _)| *port)).collect();
        assert_eq!(ports, [None, Some(2), Some(1), None, Some(2), Some(1), Some(2), None, Some(1)]);
        let stats = offline.tables().learned("known").unwrap();
        assert_eq!((stats.entries, stats.learned, stats.full), (2, 2, 1));
        let listed = offline.tables().list("known").unwrap();
        let counts: Vec<u64> = listed.iter().map(|one| one.counter.packets).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(listed[0].entry.args, [2, 7]);
        // Ten seconds later all is forgotten, and there is room.
        let ports: Vec<Option<u16>> = offline
            .send(11 * S, &[ask(1), teach(3), ask(3)])
            .iter()
            .map(|o| o.outputs.first().map(|(p, _)| *p))
            .collect();
        assert_eq!(ports, [None, Some(2), Some(1)]);
        let listed = offline.tables().list("known").unwrap();
        assert_eq!((listed.len(), listed[0].counter.packets), (1, 1), "counted anew");
        assert!(offline.tables().remove("known", 0, &listed[0].entry.key).unwrap());
        assert_eq!(offline.tables().list("known").unwrap(), []);
    }
}

const FILTER: &str = r#"
pipeline filter {
    port a, b;
    action mark(class: u3) { vlan_class = class; goto out; }
    var vlan_class: u3;
    table acl {
        key ip.proto: optional, udp.dst: range, ipv4.src: ternary;
        actions mark, drop;
        default mark(0);
        entries {
            priority 10: 17, 7..=9, 10.0.0.0/8 => mark(1);
            priority 20: 17, 8, 10.0.0.1/255.0.0.255 => drop;
            _, _, _ => mark(2);
        }
    }
    table out { vlan_class == 1 => output(a); vlan_class == 2 => output(b); }
    start { udp => goto acl; }
}
"#;

#[test]
fn kinds_of_matches_mix_and_priorities_decide() {
    for engine in both(FILTER) {
        let mut offline = Offline::new(&engine);
        let mut class = |src, port| {
            let outcome = offline.send(0, &[(1, packet(src, [1, 1, 1, 1], port))]).remove(0);
            outcome.outputs.first().map(|(port, _)| *port)
        };
        assert_eq!(class([10, 0, 0, 2], 8), Some(0));
        assert_eq!(class([10, 7, 0, 1], 8), None);
        assert_eq!(class([10, 7, 0, 1], 9), Some(0));
        assert_eq!(class([11, 7, 0, 1], 9), None, "back to where it came from");
    }
}
