//! Conversations through programs that track connections: every packet has one end, and all connections end in time.

use std::cell::LazyCell;

use pipec_runtime::Engine;

use super::input::Input;
use crate::engines::{jit, offline};

/// Longer than any connection is remembered without a packet.
const LONG_NS: u64 = 7 * 86_400 * 1_000_000_000;

thread_local! {
    static ENGINES: LazyCell<Vec<Engine>> = LazyCell::new(|| {
super::corpus().iter().map(jit).collect()
    });
}

/// The first byte chooses the program, the rest are frames.
pub fn conntrack(data: &[u8]) {
    let mut input = Input(data);
    let choice = usize::from(input.byte());
    ENGINES.with(|engines| {
        let engine = &engines[choice % engines.len()];
        let mut offline = offline(engine);
        let mut now_ns = 0;
        let mut received = 0;
        for (at_ns, frames) in input.arrivals(engine.meta().ports.len() as u16) {
            now_ns = at_ns;
            received += frames.len() as u64;
            let outcomes = offline.send(now_ns, &frames);
            assert_eq!(outcomes.len(), frames.len());
            for (outcome, (_, frame)) in outcomes.iter().zip(&frames) {
                assert_eq!(outcome.outputs.is_empty(), outcome.drop.is_some(), "one end: {outcome:?} of {frame:02x?}");
            }
        }
        let conntrack = offline.conntrack();
        let stats = conntrack.stats();
        assert!(stats.created <= received, "a packet makes one connection at the most: {stats:?}");
        let alive = conntrack.dump(now_ns).len();
        assert!(alive as u64 <= stats.live, "{alive} can be seen: {stats:?}");
        assert!(conntrack.dump(now_ns + LONG_NS).is_empty(), "all connections end");
        conntrack.sweep(now_ns + LONG_NS, usize::MAX);
        assert!(conntrack.is_empty(), "all connections are gone: {:?}", conntrack.stats());
    });
}
