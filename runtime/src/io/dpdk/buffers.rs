//! DPDK's packets as a worker's [`Env`](crate::env::WorkerEnv) handles them.
//!
//! In: handles that a burst carries. Out: copies, further references, frees. Never: a burst's own arrays.

use pipec_abi::Burst;

use super::{Mbuf, Pool};
use crate::engine::Kind;
use crate::env::{Buffers, Handle};

/// Packets in DPDK's buffers; copies come from one pool.
#[derive(Debug, Clone)]
pub struct Mbufs {
    pool: Pool,
}

impl Mbufs {
    /// Copies will be made in `pool`.
    pub fn new(pool: Pool) -> Mbufs {
        Mbufs { pool }
    }
}

impl Kind for Mbufs {
    const MBUF: bool = true;
}

impl Buffers for Mbufs {
    #[inline]
    fn copy(&mut self, burst: &Burst, i: usize) -> Option<Handle> {
        Mbuf::from_opaque(burst.pkt(i)).copy(&self.pool).map(Mbuf::opaque)
    }

    #[inline]
    fn share(&mut self, pkt: Handle) -> Option<Handle> {
        Mbuf::from_opaque(pkt).refer(1);
        Some(pkt)
    }

    /// A first segment too short for addresses and tag is left as it is.
    fn strip_tag(&mut self, pkt: Handle) {
        let mut mbuf = Mbuf::from_opaque(pkt);
        if mbuf.head_len() >= 16 {
            mbuf.head_mut().copy_within(0..12, 4);
            mbuf.strip(4);
        }
    }

    #[inline]
    fn free(&mut self, pkt: Handle) {
        Mbuf::from_opaque(pkt).free();
    }

    #[inline]
    fn frame_len(&self, pkt: Handle) -> u32 {
        Mbuf::from_opaque(pkt).len()
    }
}
