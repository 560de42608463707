//! Packets of DPDK as the worker's `Env` knows them.

use pipec_abi::Burst;

use crate::engine::Kind;
use crate::env::{Buffers, Handle};
use crate::io::dpdk::{Mbuf, Pool};

/// Packet buffers of one pool.
pub struct Mbufs {
    pool: Pool,
}

impl Mbufs {
    /// Copies come from this pool.
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
    fn strip_tag(&mut self, pkt: Handle) {
        let mut mbuf = Mbuf::from_opaque(pkt);
        if let Some(head) = mbuf.head_mut().get_mut(..16) {
            head.copy_within(..12, 4);
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
