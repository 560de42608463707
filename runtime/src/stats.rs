//! What a run counted, as text (`summary`) and JSON (`--stats json`) show it. Filled by whoever ran; never reads a clock.
//!
//! Two ledgers hold once nothing is on its way any more:
//!
//! ```text
//! packets received = forwarded + consumed + dropped under a reason
//! copies made      = copies sent + copies dropped under a reason
//! ```
//! The first output of a packet is the packet itself, every other one a copy. So packets sent = forwarded + copies sent.

use pipec_abi::meta::Meta;
use pipec_abi::{Counter, DropReason};
use serde::ser::{Serialize, SerializeMap, Serializer};

const REASONS: usize = DropReason::ALL.len();

/// Packets dropped, by reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drops([u64; REASONS]);

impl Default for Drops {
    fn default() -> Self {
        Drops([0; REASONS])
    }
}

impl Drops {
    /// Counts `n` packets.
    #[inline(always)]
    pub fn add(&mut self, reason: DropReason, n: u64) {
        self.0[reason as usize] += n;
    }

    /// Packets dropped under this reason.
    pub fn get(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Packets dropped under any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reasons that dropped anything, in the order of their codes.
    pub fn iter(&self) -> impl Iterator<Item = (DropReason, u64)> + '_ {
        DropReason::ALL.iter().zip(self.0).filter(|(_, n)| *n > 0).map(|(reason, n)| (*reason, n))
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Drops) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// What was dropped since `before`.
    #[must_use]
    pub fn since(&self, before: &Drops) -> Drops {
        let mut drops = *self;
        for (mine, theirs) in drops.0.iter_mut().zip(before.0) {
            *mine = mine.saturating_sub(theirs);
        }
        drops
    }
}

impl Serialize for Drops {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (reason, n) in self.iter() {
            map.serialize_entry(reason.name(), &n)?;
        }
        map.end()
    }
}

/// What one port counted.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct PortStats {
    /// Its name in the program.
    pub name: String,
    /// Its OpenFlow number.
    pub number: u32,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received, without FCS.
    pub rx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent, without FCS.
    pub tx_bytes: u64,
    /// Packets received here and dropped, and packets and copies that could not be sent here.
    pub drops: Drops,
}

/// What one worker counted. Cycles are of the time-stamp counter; a poll that received anything is wholly busy.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct WorkerStats {
    /// The processor it ran on.
    pub cpu: u32,
    /// Packets it received.
    pub packets: u64,
    /// Cycles of polls that received anything.
    pub busy_cycles: u64,
    /// Cycles of the others.
    pub idle_cycles: u64,
    /// Polls.
    pub polls: u64,
    /// Polls that received anything.
    pub busy_polls: u64,
}

/// Where packets and copies went: the two ledgers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Packets received.
    pub received: u64,
    /// Packets that went out of at least one port.
    pub forwarded: u64,
    /// Packets that the program took without sending or dropping them.
    pub consumed: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Copies asked for.
    pub copies_made: u64,
    /// Copies sent.
    pub copies_sent: u64,
    /// Copies dropped.
    pub copies_dropped: u64,
}

impl Ledger {
    /// Whether both ledgers hold: true once nothing is on its way any more.
    pub fn balances(&self) -> bool {
        self.received == self.forwarded + self.consumed + self.dropped
            && self.copies_made == self.copies_sent + self.copies_dropped
    }
}

/// What a run counted. Its JSON is what `--stats json` prints.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Stats {
    /// Cycles of the time-stamp counter in a second; 0 in a run over captures, which counts none.
    pub tsc_hz: u64,
    /// How long the run took; in a run over captures, by their own clock.
    pub seconds: f64,
    /// Ports, in the order of the program.
    pub ports: Vec<PortStats>,
    /// Workers; none in a run over captures.
    pub workers: Vec<WorkerStats>,
    /// Packets and copies dropped anywhere: the sum over the ports.
    pub drops: Drops,
    /// Where packets and copies went.
    #[serde(skip)]
    pub ledger: Ledger,
    /// Copies that went to the controller.
    #[serde(skip_serializing_if = "is_zero")]
    pub punted: u64,
    /// What the program counts under names of its own, since the start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<NamedCounter>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A counter of the program.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct NamedCounter {
    /// Its name.
    pub name: String,
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames, without FCS.
    pub bytes: u64,
}

impl NamedCounter {
    /// The program's own counters, from the values of all.
    pub fn of(meta: &Meta, counters: &[Counter]) -> Vec<NamedCounter> {
        let named = meta.by_name(counters);
        named.map(|(name, c)| NamedCounter { name: name.into(), packets: c.packets, bytes: c.bytes }).collect()
    }
}

impl Stats {
    /// The counts as one line of JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_keys_that_tools_rely_on() {
        let mut drops = Drops::default();
        drops.add(DropReason::Policy, 2);
        drops.add(DropReason::Ttl, 1);
        let port =
            PortStats { name: "lan".into(), number: 1, rx_packets: 3, rx_bytes: 180, drops, ..PortStats::default() };
        let stats =
            Stats { seconds: 1.5, ports: vec![port], workers: vec![WorkerStats::default()], drops, ..Stats::default() };
        let counted = NamedCounter { name: "denied".into(), packets: 2, bytes: 120 };
        let more = Stats { punted: 4, counters: vec![counted], ..stats.clone() }.to_json();
        assert!(more.ends_with(r#","punted":4,"counters":[{"name":"denied","packets":2,"bytes":120}]}"#), "{more}");
        assert_eq!(
            stats.to_json(),
            r#"{"tsc_hz":0,"seconds":1.5,"ports":[{"name":"lan","number":1,"rx_packets":3,"rx_bytes":180,"tx_packets":0,"tx_bytes":0,"drops":{"policy":2,"ttl":1}}],"workers":[{"cpu":0,"packets":0,"busy_cycles":0,"idle_cycles":0,"polls":0,"busy_polls":0}],"drops":{"policy":2,"ttl":1}}"#
        );
    }

    #[test]
    fn drops_add_up_and_are_told_apart() {
        let mut a = Drops::default();
        a.add(DropReason::NoMatch, 5);
        let before = a;
        a.add(DropReason::NoMatch, 2);
        a.add(DropReason::Policy, 1);
        let mut sum = a.since(&before);
        assert_eq!(sum.iter().collect::<Vec<_>>(), [(DropReason::Policy, 1), (DropReason::NoMatch, 2)]);
        sum.merge(&before);
        assert_eq!((sum, sum.total()), (a, 8));
    }

    #[test]
    fn a_ledger_with_a_packet_on_its_way_does_not_balance() {
        let even =
            Ledger { received: 3, forwarded: 2, dropped: 1, copies_made: 1, copies_sent: 1, ..Ledger::default() };
        assert!(even.balances());
        assert!(!Ledger { received: 4, ..even }.balances());
        assert!(!Ledger { copies_made: 2, ..even }.balances());
    }
}
