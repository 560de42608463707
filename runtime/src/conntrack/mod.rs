//! Connection tracking.

use std::sync::Arc;

use pipec_abi::{Burst, CtPoint, CtView, ct::state};

/// How connections are tracked.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Threads that track.
    pub workers: usize,
    /// Connections at the most.
    pub max_conns: usize,
}

/// All connections.
pub struct Conntrack;

impl Conntrack {
    /// An empty table.
    pub fn new(_config: &Config) -> Conntrack {
        Conntrack
    }
}

/// One worker's access to the connections.
pub struct Tracker;

impl Tracker {
    /// Access to a table.
    pub fn new(_ct: Arc<Conntrack>) -> Tracker {
        Tracker
    }
    /// Starts a burst.
    pub fn begin(&mut self, _now_ns: u64) {}
    /// Prepares packets of a burst.
    pub fn prepare(&mut self, _burst: &Burst, _set: u32, _zone: u16) {}
    /// Tracks one packet.
    pub fn ct(&mut self, view: &mut CtView, _burst: &mut Burst, _i: usize, _point: &CtPoint, zone: u16) -> u32 {
        *view = CtView { state: state::TRK | state::NEW, zone: u32::from(zone), ..CtView::CLEAR };
        view.state
    }
}
