//! Learning, ageing, eviction, and a map to compare with.

use super::*;
use std::collections::HashMap;

const S: u64 = 1_000_000_000;
/// Wall-clock time, as captures have it.
const NOW: u64 = 1_700_000_000 * S;

fn mac(n: u32) -> [u8; 6] {
    let [a, b, c, d] = n.to_be_bytes();
    [2, 0, a, b, c, d]
}

#[test]
fn addresses_are_learned_by_vlan() {
    let fdb = Fdb::new(100, 300);
    fdb.learn(0, mac(1), 5, NOW);
    fdb.learn(7, mac(1), 6, NOW);
    assert_eq!(fdb.lookup(0, mac(1), NOW), Some(5));
    assert_eq!(fdb.lookup(7, mac(1), NOW), Some(6));
    assert_eq!((fdb.lookup(8, mac(1), NOW), fdb.lookup(0, mac(2), NOW)), (None, None));
}

#[test]
fn group_addresses_are_not_learned_but_zero_is() {
    let fdb = Fdb::new(100, 300);
    fdb.learn(0, [1, 0, 0, 0, 0, 1], 1, NOW);
    fdb.learn(0, [0xff; 6], 1, NOW);
    fdb.learn(0, [0; 6], 1, NOW);
    assert_eq!((fdb.lookup(0, [0; 6], NOW), fdb.stats().current), (Some(1), 1));
}

#[test]
fn an_address_moves_at_once() {
    let fdb = Fdb::new(100, 300);
    for port in [1, 2, 1, 0xffff, 1] {
        fdb.learn(0, mac(1), port, NOW);
        assert_eq!(fdb.lookup(0, mac(1), NOW), Some(port));
    }
    let stats = fdb.stats();
    assert_eq!((stats.current, stats.learned, stats.moved), (1, 1, 4));
}

#[test]
fn addresses_are_forgotten_after_the_idle_time() {
    let fdb = Fdb::new(100, 300);
    fdb.learn(0, mac(1), 1, NOW);
    assert_eq!(fdb.lookup(0, mac(1), NOW + 300 * S - 512), Some(1));
    assert_eq!(fdb.lookup(0, mac(1), NOW + 300 * S), None);
    fdb.learn(0, mac(1), 1, NOW + 299 * S);
    assert_eq!(fdb.lookup(0, mac(1), NOW + 598 * S), Some(1));
    fdb.learn(0, mac(1), 2, NOW + 700 * S);
    let stats = fdb.stats();
    assert_eq!((stats.learned, stats.expired, stats.moved), (2, 1, 0), "that was no move");
    fdb.learn(0, mac(2), 2, NOW + 900 * S);
    assert_eq!((fdb.sweep(NOW + 1_000 * S), fdb.stats().current, fdb.stats().expired), (1, 1, 2));
}

#[test]
fn being_seen_is_written_once_a_second() {
    let fdb = Fdb::new(100, 300);
    fdb.learn(0, mac(1), 1, NOW);
    let value = |fdb: &Fdb| fdb.value(0);
    let first = value(&fdb);
    fdb.learn(0, mac(1), 1, NOW + S - 512);
    assert!(value(&fdb) == first);
    fdb.learn(0, mac(1), 1, NOW + S);
    assert!(value(&fdb) != first);
}

#[test]
fn a_port_that_makes_addresses_up_pushes_out_its_own() {
    let fdb = Fdb::new(10, 300);
    fdb.learn(0, mac(1000), 2, NOW);
    for n in 0..20 {
        fdb.learn(0, mac(n), 1, NOW + u64::from(n));
    }
    assert_eq!(fdb.lookup(0, mac(1000), NOW), Some(2));
    let left: Vec<_> = (0..20).filter(|&n| fdb.lookup(0, mac(n), NOW).is_some()).collect();
    assert_eq!(left, (11..20).collect::<Vec<_>>(), "the oldest went first");
    assert_eq!((fdb.stats().evicted, fdb.stats().current), (11, 10));
}

#[test]
fn what_was_seen_lately_stays() {
    let fdb = Fdb::new(10, 300);
    for n in 0..10 {
        fdb.learn(0, mac(n), 1, NOW);
    }
    fdb.learn(0, mac(0), 1, NOW + 5 * S);
    fdb.learn(0, mac(100), 1, NOW + 6 * S);
    assert_eq!((fdb.lookup(0, mac(0), NOW), fdb.lookup(0, mac(1), NOW)), (Some(1), None));
}

#[test]
fn expired_addresses_make_room_before_others() {
    let fdb = Fdb::new(10, 300);
    fdb.learn(0, mac(100), 3, NOW);
    for n in 0..9 {
        fdb.learn(0, mac(n), 1, NOW + 200 * S);
    }
    fdb.learn(0, mac(50), 1, NOW + 301 * S);
    assert_eq!((fdb.stats().expired, fdb.stats().evicted, fdb.stats().current), (1, 0, 10));
}

#[test]
fn flush_forgets_all_and_places_are_used_again() {
    let fdb = Fdb::new(8192, 300);
    for round in 0..3 {
        for n in 0..8192 {
            fdb.learn(1, mac(n), (n % 7) as u16, NOW);
        }
        assert_eq!(fdb.dump(NOW).len(), 8192, "round {round}");
        fdb.flush();
        assert_eq!((fdb.dump(NOW).len(), fdb.stats().current), (0, 0));
        assert_eq!(fdb.lookup(1, mac(5), NOW), None);
    }
    assert_eq!(fdb.stats().evicted, 0);
}

#[test]
fn a_dump_reads_like_open_vswitchs() {
    let fdb = Fdb::new(10, 300);
    fdb.learn(10, [0x50, 0x54, 0, 0, 0, 5], 2, NOW);
    fdb.learn(0, [0x50, 0x54, 0, 0, 0, 1], 1, NOW + 3 * S);
    let lines: Vec<_> = fdb.dump(NOW + 12 * S).iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["    1     0  50:54:00:00:00:01    9", "    2    10  50:54:00:00:00:05   12"]);
}

#[test]
fn random_use_equals_a_map() {
    let fdb = Fdb::new(1000, 300);
    let mut model: HashMap<(u16, u32), (u16, u64)> = HashMap::new();
    let (mut state, mut now) = (1u64, NOW);
    for _ in 0..200_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (n, vlan, port) = ((state >> 33) as u32 % 200, (state >> 41) as u16 % 3, (state >> 50) as u16 % 4);
        now += (state >> 60) * S / 4;
        let known = model.get(&(vlan, n)).filter(|(_, seen)| now - seen < 300 * S);
        // Ages are kept to the second: leave out what is about to expire.
        if known.is_none_or(|(_, seen)| now - seen < 298 * S) {
            assert_eq!(fdb.lookup(vlan, mac(n), now), known.map(|(port, _)| *port));
        }
        if port < 3 && n % 3 == 0 {
            fdb.learn(vlan, mac(n), port, now);
            model.insert((vlan, n), (port, now));
        }
    }
}

#[test]
fn two_threads_learn_and_look_up() {
    let fdb = Fdb::new(300, 300);
    std::thread::scope(|scope| {
        for thread in 0..2u32 {
            let fdb = &fdb;
            scope.spawn(move || {
                for round in 0..30_000u32 {
                    let n = round * 7 % 400;
                    fdb.learn(0, mac(n), (n + 1) as u16, NOW);
                    if let Some(port) = fdb.lookup(0, mac(n + thread), NOW) {
                        assert_eq!(u32::from(port), n + thread + 1, "the port of another address");
                    }
                    if round % 10_000 == 9_999 {
                        fdb.flush();
                    }
                }
            });
        }
    });
    for dump in fdb.dump(NOW) {
        assert_eq!(fdb.lookup(0, dump.mac, NOW), Some(dump.port));
    }
    assert!(fdb.stats().current <= 300);
}

#[test]
fn reserved_addresses() {
    for last in 0..=255 {
        assert_eq!(is_reserved(&[0x01, 0x80, 0xc2, 0, 0, last]), last < 16);
        assert_eq!(is_reserved(&[0x00, 0xe0, 0x2b, 0, 0, last]), [0, 4, 6].contains(&last));
        let cisco = (0xc0..=0xc7).contains(&last) || last == 0xcc || last == 0xcd;
        assert_eq!(is_reserved(&[0x01, 0x00, 0x0c, 0xcc, 0xcc, last]), cisco);
    }
    assert!(is_reserved(&[0x01, 0, 0x0c, 0, 0, 0]) && is_reserved(&[0x01, 0, 0x0c, 0xcd, 0xcd, 0xcd]));
    assert!(!is_reserved(&[0xff; 6]) && !is_reserved(&[0; 6]) && !is_reserved(&[1, 0, 0x5e, 0, 0, 1]));
}
