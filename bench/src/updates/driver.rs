//! The writer: entries come, change and go.
//!
//! In: a table that is looked up meanwhile. Out: how long each change took, how many there were. Never: a table that is larger
//! at the end than at the start.

use std::time::{Duration, Instant};

use pipec_runtime::Tables;
use pipec_runtime::tables::{Entry, TableError};
use serde::{Deserialize, Serialize};

use super::tables::Kind;
use crate::Error;

/// How long something took, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Half took at most this.
    pub median: u64,
    /// 99 of a hundred took at most this.
    pub p99: u64,
    /// The longest.
    pub max: u64,
}

impl Latency {
    /// Of these times.
    pub fn of(mut times: Vec<u64>) -> Latency {
        times.sort_unstable();
        let at = |share: f64| times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1)));
        let [median, p99, max] = [0.5, 0.99, 1.0].map(|share| at(share).copied().unwrap_or(0));
        Latency { median, p99, max }
    }
}

/// Changes a table, over and over.
pub struct Writer<'t> {
    tables: &'t Tables,
    others: Vec<Entry>,
    /// Which entry is next.
    at: usize,
    /// What is done with it: put in, changed, taken out.
    step: usize,
    /// What became of changes, for a message.
    kind: Kind,
}

impl<'t> Writer<'t> {
    /// A writer of entries that the table does not have; at least one.
    pub fn new(tables: &'t Tables, kind: Kind, others: Vec<Entry>) -> Writer<'t> {
        Writer { tables, others, at: 0, step: 0, kind }
    }

    /// Changes one entry after the other for a time, not faster than `pace` a second; adds how long each took to `latencies`.
    /// Changes a second.
    pub fn one_by_one(
        &mut self,
        time: Duration,
        pace: Option<f64>,
        latencies: &mut [Vec<u64>; 3],
    ) -> Result<f64, Error> {
        let (start, mut done) = (Instant::now(), 0u64);
        loop {
            let passed = start.elapsed();
            if passed >= time {
                break;
            }
            if pace.is_some_and(|pace| done as f64 >= passed.as_secs_f64() * pace) {
                std::hint::spin_loop();
                continue;
            }
            let (step, before) = (self.step, Instant::now());
            self.change().map_err(|error| self.failed(&error))?;
            latencies[step].push(before.elapsed().as_nanos() as u64);
            done += 1;
        }
        while self.step != 0 {
            self.change().map_err(|error| self.failed(&error))?;
        }
        Ok(done as f64 / start.elapsed().as_secs_f64())
    }

    /// The next change.
    fn change(&mut self) -> Result<(), TableError> {
        let entry = &self.others[self.at];
        match self.step {
            0 => self.tables.set("t", entry.clone())?,
            1 => self.tables.set("t", Entry { args: vec![1], ..entry.clone() })?,
            _ => {
                self.tables.remove("t", entry.priority, &entry.key)?;
                self.at = (self.at + 1) % self.others.len();
            }
        }
        self.step = (self.step + 1) % 3;
        Ok(())
    }

    /// Puts entries in and takes them out in batches for a time. Changes a second.
    pub fn batched(&mut self, time: Duration, size: usize) -> Result<f64, Error> {
        let (start, mut done) = (Instant::now(), 0);
        let size = size.min(self.others.len());
        while start.elapsed() < time {
            self.at = if self.at + size > self.others.len() { 0 } else { self.at };
            let entries = &self.others[self.at..self.at + size];
            let mut batch = self.tables.batch();
            let put = entries.iter().try_for_each(|entry| batch.set("t", entry.clone()));
            batch.commit();
            let mut batch = self.tables.batch();
            let taken = entries.iter().try_for_each(|entry| batch.remove("t", entry.priority, &entry.key).map(|_| ()));
            batch.commit();
            put.and(taken).map_err(|error| self.failed(&error))?;
            self.at += size;
            done += 2 * size;
        }
        self.at %= self.others.len();
        Ok(done as f64 / start.elapsed().as_secs_f64())
    }

    fn failed(&self, error: &TableError) -> Error {
        Error::Failed(format!("{}: {error}", self.kind.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled;

    #[test]
    fn latencies_are_ordered() {
        assert_eq!(Latency::of((1..=1000).rev().collect()), Latency { median: 501, p99: 991, max: 1000 });
        assert_eq!(Latency::of(vec![]), Latency::default());
        assert_eq!(Latency::of(vec![7]), Latency { median: 7, p99: 7, max: 7 });
    }

    #[test]
    fn entries_come_and_go() {
        let kind = Kind::Lpm;
        let content = kind.content(20);
        let (_, tables, _) = compiled::compile("updates.pipe", &kind.program()).unwrap();
        let mut writer = Writer::new(&tables, kind, content.others);
        let mut latencies = Default::default();
        assert!(writer.one_by_one(Duration::from_millis(5), None, &mut latencies).unwrap() > 0.0);
        assert!(writer.batched(Duration::from_millis(5), 7).unwrap() > 0.0);
        assert_eq!(tables.list("t").unwrap(), [], "nothing is left");
        assert!(!latencies[0].is_empty());
    }
}
