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
    const ANY_ORDER: bool = true;

    #[inline]
    fn copy(&mut self, burst: &Burst, i: usize) -> Option<Handle> {
        Mbuf::from_opaque(burst.pkt(i)).copy(&self.pool).map(Mbuf::opaque)
    }

    #[inline]
    fn share(&mut self, pkt: Handle, more: u16) {
        Mbuf::from_opaque(pkt).refer(more);
    }

    #[inline]
    fn free(&mut self, pkt: Handle) {
        Mbuf::from_opaque(pkt).free();
    }

    #[inline]
    fn frame_len(&self, pkt: Handle) -> u32 {
        Mbuf::from_opaque(pkt).len()
    }

    #[inline]
    fn cut(&mut self, pkt: Handle, len: u32) {
        Mbuf::from_opaque(pkt).truncate(len);
    }

    #[inline]
    fn prepend(&mut self, pkt: Handle, n: usize) -> Option<*mut u8> {
        let mut mbuf = Mbuf::from_opaque(pkt);
        mbuf.prepend(n).then(|| mbuf.data())
    }

    #[inline]
    fn strip(&mut self, pkt: Handle, n: usize) -> *mut u8 {
        let mut mbuf = Mbuf::from_opaque(pkt);
        mbuf.strip(n);
        mbuf.data()
    }
}
