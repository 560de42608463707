//! Groups: which buckets a packet goes through. Hashes.

use pipec_abi::{DropReason, Env, hash};

use super::event::Event;
use super::machine::{Machine, Next};
use crate::hir::{Bucket, GroupId, GroupKind, Value};

impl<'a, E: Env + ?Sized> Machine<'a, E> {
    /// The buckets that are run.
    pub(super) fn group(&mut self, id: GroupId) -> Next<'a> {
        let group = self.program.group(id);
        let buckets = match group.kind {
            GroupKind::All | GroupKind::Indirect => (0..group.buckets.len()).collect(),
            GroupKind::Select => {
                let hash = self.hash(&group.hash);
                self.select(&group.buckets, hash).into_iter().collect()
            }
            GroupKind::FastFailover => {
                let first = group.buckets.iter().position(|bucket| self.is_alive(bucket));
                first.into_iter().collect::<Vec<_>>()
            }
        };
        if buckets.is_empty() {
            self.tell(Event::Bucket(id, None));
            self.reason(DropReason::Group);
        }
        Next::Buckets(id, buckets)
    }

    /// A bucket that is run.
    pub(super) fn bucket(&mut self, id: GroupId, bucket: usize) -> Next<'a> {
        self.tell(Event::Bucket(id, Some(bucket)));
        Next::Clone(&self.program.group(id).buckets[bucket].actions)
    }

    fn select(&mut self, buckets: &[Bucket], hash: u32) -> Option<usize> {
        let weights: Vec<u64> = buckets.iter().map(|bucket| bucket.weight.into()).collect();
        let chosen = share(&weights, hash)?;
        if self.is_alive(&buckets[chosen]) {
            return Some(chosen);
        }
        let alive = buckets.iter().map(|bucket| if self.is_alive(bucket) { bucket.weight.into() } else { 0 });
        let alive: Vec<u64> = alive.collect();
        share(&alive, hash::again(hash))
    }

    fn is_alive(&mut self, bucket: &Bucket) -> bool {
        bucket.watch.is_none_or(|port| self.env.live(self.ctx, port.0))
    }

    /// The hash of some values.
    pub(super) fn hash(&mut self, values: &[Value]) -> u32 {
        let mut words = vec![];
        for value in values {
            let bits = self.value(value);
            if value.is_wide() {
                words.push((bits >> 64) as u64);
            }
            words.push(bits as u64);
        }
        hash::hash(&words)
    }
}

/// Whose share of the sum of all weights a hash falls into.
fn share(weights: &[u64], hash: u32) -> Option<usize> {
    let sum: u64 = weights.iter().sum();
    let mut at = (u64::from(hash) * sum) >> 32;
    for (k, weight) in weights.iter().enumerate() {
        if at < *weight {
            return Some(k);
        }
        at -= weight;
    }
    None
}
