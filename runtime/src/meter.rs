//! Meters: how fast packets may come, as buckets of tokens that all workers share without a lock.
//!
//! A bucket is one word: the moment at which it will be full again, in 64ths of a nanosecond since the first packet that any
//! meter saw. A packet moves that moment on by what its tokens take to come back; it may not move further ahead of now
//! than the whole bucket takes to fill. So buckets start full, and time is the burst's.

use std::sync::atomic::{AtomicU64, Ordering};

use pipec_abi::meta::MeterMeta;

/// Units of time in a second.
const SECOND: u128 = 64_000_000_000;
/// No packet has been seen yet.
const NEVER: u64 = u64::MAX;

/// The meters of a program.
#[derive(Debug, Default)]
pub struct Meters {
    /// The moment from which on time counts, in nanoseconds.
    start_ns: AtomicU64,
    meters: Vec<Meter>,
}

/// One meter.
#[derive(Debug)]
struct Meter {
    kilobits: bool,
    rate: u32,
    /// What an empty bucket takes to fill.
    fill: u64,
    /// When it is full.
    full_at: AtomicU64,
}

impl Meters {
    /// Meters with full buckets.
    pub fn new(metas: &[MeterMeta]) -> Meters {
        let meter = |meta: &MeterMeta| Meter {
            kilobits: meta.kilobits,
            rate: meta.rate,
            fill: time(u128::from(meta.burst) * if meta.kilobits { 1000 } else { 1 }, meta.kilobits, meta.rate),
            full_at: AtomicU64::new(0),
        };
        Meters { start_ns: AtomicU64::new(NEVER), meters: metas.iter().map(meter).collect() }
    }

    /// Takes a packet of `len` bytes from a meter's bucket; false if there is not enough in it.
    pub fn take(&self, meter: u16, len: u32, now_ns: u64) -> bool {
        let Some(meter) = self.meters.get(usize::from(meter)) else { return true };
        let now = self.now(now_ns);
        let cost = time(if meter.kilobits { u128::from(len) * 8 } else { 1 }, meter.kilobits, meter.rate);
        let moved = |full_at: u64| {
            let next = full_at.max(now).saturating_add(cost);
            (next - now <= meter.fill).then_some(next)
        };
        meter.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved).is_ok()
    }

    fn now(&self, now_ns: u64) -> u64 {
        let mut start = self.start_ns.load(Ordering::Relaxed);
        if start == NEVER {
            let first = self.start_ns.compare_exchange(NEVER, now_ns, Ordering::Relaxed, Ordering::Relaxed);
            start = first.map_or_else(|other| other, |_| now_ns);
        }
        now_ns.saturating_sub(start).saturating_mul(64)
    }
}

/// What tokens take to come: packets or bits, at so many packets or kilobits in a second.
fn time(tokens: u128, kilobits: bool, rate: u32) -> u64 {
    let rate = u128::from(rate.max(1)) * if kilobits { 1000 } else { 1 };
    u64::try_from((tokens * SECOND + rate / 2) / rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn meter(kilobits: bool, rate: u32, burst: u32) -> Meters {
        Meters::new(&[MeterMeta { name: "m".into(), kilobits, rate, burst }])
    }

    #[test]
    fn packets_pass_at_the_rate_and_a_burst_at_once() {
        let meters = meter(false, 10, 3);
        let start = 1_700_000_000_000 * MS;
        let passed = |at: u64| meters.take(0, 60, start + at * MS);
        assert_eq!([0, 0, 0, 0].map(passed), [true, true, true, false]);
        assert_eq!([99, 100, 101, 199, 200].map(passed), [false, true, false, false, true]);
        // A bucket holds no more than a burst, however long nothing comes.
        assert_eq!([10_000, 10_000, 10_000, 10_000].map(passed), [true, true, true, false]);
        assert!(meters.take(7, 60, start), "a meter that is not there lets packets through");
    }

    #[test]
    fn bits_are_counted_by_whole_frames() {
        let meters = meter(true, 8, 8); // 1,000 bytes a second, and as many at once
        assert_eq!([600, 400, 1].map(|len| meters.take(0, len, 5)), [true, true, false]);
        assert!(meters.take(0, 100, 5 + 100 * MS) && !meters.take(0, 1, 5 + 100 * MS));
        assert!(!meters.take(0, 1001, 10_000 * MS), "more than the bucket holds");
    }

    #[test]
    fn high_rates_are_kept() {
        let meters = meter(false, 3_000_000, 32);
        let passed = (0..1_000_000_u64).filter(|n| meters.take(0, 60, n * 100)).count();
        assert!((299_900..300_200).contains(&passed), "{passed} in a tenth of a second, of ten times as many");
    }

    #[test]
    fn workers_share_a_bucket() {
        let meters = meter(false, 1, 1000);
        let passed: usize = std::thread::scope(|scope| {
            let worker = || (0..400).filter(|_| meters.take(0, 60, 7)).count();
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().map(|worker| worker.join().expect("no panic")).sum()
        });
        assert_eq!(passed, 1000);
    }
}
