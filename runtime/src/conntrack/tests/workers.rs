//! Several workers on one table.

use super::frames::*;
use super::*;
use std::sync::Barrier;
use std::thread;

/// Runs `act` in one thread for each worker, each with a tracker.
fn with_workers<R: Send>(ct: &Arc<Conntrack>, n: usize, act: impl Fn(usize, Net) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..n)
            .map(|worker| {
                let net = Net { ct: ct.clone(), tracker: Tracker::new(ct.clone()), now_ns: 1_000 * S };
                let act = &act;
                scope.spawn(move || act(worker, net))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn shared(max_conns: usize) -> Arc<Conntrack> {
    Arc::new(Conntrack::new(&Config { max_conns, workers: 2, ..Config::default() }))
}

/// Checks that nothing was lost or made twice.
fn check(ct: &Conntrack, now_ns: u64) {
    let stats = ct.stats();
    assert_eq!(stats.created, stats.live + stats.expired + stats.replaced + stats.flushed, "{stats:?}");
    let dump = ct.dump(now_ns);
    let keys: std::collections::HashSet<_> = dump.iter().flat_map(|dump| [dump.original, dump.reply]).collect();
    assert_eq!(keys.len(), 2 * dump.len(), "no connection is there twice");
}

#[test]
fn both_directions_at_once_make_one_connection() {
    const N: u16 = 3_000;
    let ct = shared(10_000);
    let barrier = Barrier::new(2);
    let states = with_workers(&ct, 2, |worker, mut net| {
        barrier.wait();
        (1..=N)
            .map(|port| {
                let frame = if worker == 0 { udp(A, B, port, 53) } else { udp(B, A, 53, port) };
                net.ct(&frame, &COMMIT)
            })
            .collect::<Vec<_>>()
    });
    assert_eq!((ct.len(), ct.stats().created), (usize::from(N), u64::from(N)));
    for (one, other) in states[0].iter().zip(&states[1]) {
        assert!(matches!((one.as_str(), other.as_str()), ("new", "est+rpl") | ("est+rpl", "new")), "{one} {other}");
    }
    check(&ct, 1_000 * S);
}

#[test]
fn everything_at_once() {
    const ROUNDS: u64 = 60;
    let ct = shared(3_000);
    let barrier = Barrier::new(3);
    let end = 1_000 * S + ROUNDS * 7 * S;
    thread::scope(|scope| {
        scope.spawn(|| {
            barrier.wait();
            for round in 0..ROUNDS {
                ct.sweep(1_000 * S + round * 7 * S, 500);
                if round % 20 == 10 {
                    ct.flush();
                }
                for dump in ct.dump(1_000 * S) {
                    assert_eq!(dump.original, dump.reply.reverse());
                }
            }
        });
        with_workers(&ct, 2, |worker, mut net| {
            barrier.wait();
            for round in 0..ROUNDS {
                for port in 1..=300u16 {
                    let port = port + (round as u16 / 5) * 37;
                    let reply = (u64::from(port) + round + worker as u64) % 2 == 1;
                    let (src, dst, from, to) = if reply { (B, A, 53, port) } else { (A, B, port, 53) };
                    let tcp = Tcp {
                        src,
                        dst,
                        from,
                        to,
                        flags: [SYN, ACK, RST | ACK, ACK][round as usize % 4],
                        seq: 5,
                        ack: 6,
                        window: 100,
                        options: &[],
                        len: 0,
                    };
                    let point = [COMMIT, mark(7), LOOK, FORCE][usize::from(port) % 4];
                    net.together(&[(&udp(src, dst, from, to), &point), (&tcp.frame(), &point)]);
                }
                net.wait(7);
            }
        });
    });
    check(&ct, end - 7 * S);
    ct.flush();
    assert_eq!((ct.len(), ct.dump(end).len()), (0, 0));
    check(&ct, end);
    // Everything can be used again: nothing leaked.
    with_workers(&ct, 2, |worker, mut net| {
        net.now_ns = end;
        for _ in 0..2_000 {
            net.now_ns += S / 100;
            net.tracker.begin(net.now_ns);
        }
        for port in 1..=1_000 {
            assert_eq!(net.ct(&udp(A, B, port, 1 + worker as u16), &COMMIT), "new");
        }
    });
    assert_eq!(ct.len(), 2_000);
}

#[test]
fn the_limit_holds_for_all_workers_together() {
    let ct = shared(500);
    let barrier = Barrier::new(2);
    with_workers(&ct, 2, |worker, mut net| {
        barrier.wait();
        for port in 1..=600 {
            assert_eq!(net.ct(&udp(A, B, port, 1 + worker as u16), &COMMIT), "new");
        }
    });
    let stats = ct.stats();
    assert!((400..=500).contains(&stats.live), "{stats:?}");
    assert_eq!(stats.created + stats.full, 1_200);
}

#[test]
fn a_table_grows_under_two_workers() {
    const N: u16 = 20_000;
    let ct = shared(100_000);
    let barrier = Barrier::new(2);
    with_workers(&ct, 2, |worker, mut net| {
        barrier.wait();
        for port in 1..=N {
            assert_eq!(net.ct(&udp(A, B, port, 1 + worker as u16), &COMMIT), "new");
            let earlier = 1 + port / 2;
            assert_ne!(net.ct(&udp(B, A, 1 + worker as u16, earlier), &LOOK), "new", "{earlier} of {port}");
        }
    });
    assert_eq!(ct.len(), 2 * usize::from(N));
    check(&ct, 1_000 * S);
}
