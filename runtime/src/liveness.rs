//! Which ports are there and have a link. Written by whoever watches the links, read by workers for fast failover.

use std::sync::atomic::{AtomicBool, Ordering};

/// A flag for each port of a program.
#[derive(Debug, Default)]
pub struct Liveness(Vec<AtomicBool>);

impl Liveness {
    /// Ports of which these are alive.
    pub fn new(alive: impl IntoIterator<Item = bool>) -> Liveness {
        Liveness(alive.into_iter().map(AtomicBool::new).collect())
    }

    /// Whether a port is alive.
    #[inline]
    pub fn get(&self, port: u16) -> bool {
        self.0.get(usize::from(port)).is_some_and(|alive| alive.load(Ordering::Relaxed))
    }

    /// Says whether a port is alive.
    pub fn set(&self, port: u16, alive: bool) {
        if let Some(flag) = self.0.get(usize::from(port)) {
            flag.store(alive, Ordering::Relaxed);
        }
    }
}
