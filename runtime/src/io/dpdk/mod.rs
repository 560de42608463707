//! Ports and packet buffers on DPDK.
//!
//! In: [`PortSpec`](super::spec::PortSpec)s. Out: started ports, a pool of packet buffers, and queues that move bursts
//! between the two. Never: what a packet means, which worker polls what, or what is counted.
//!
//! ```text
//! Eal::start ─▶ Pool::new ─▶ Port::open ─▶ take_rx_queue, take_tx_queue ─▶ a worker's thread: Eal::register_thread,
//!                                                                          RxQueue::receive, TxQueue::transmit
//! ```
//! Each holds on to what it stands on, so they may be dropped in any order. The packet path is `queue` and `mbuf`: no
//! allocation, lock, system call or `Result`.
//!
//! `unsafe` stands in these files, for calls of DPDK; what they offer is safe, but for one rule, which [`Mbuf`] states.

mod buffers;
mod check;
pub mod clock;
mod configure;
mod device;
mod eal;
mod error;
mod log;
mod mbuf;
mod memory;
mod pool;
mod port;
mod queue;

pub use buffers::Mbufs;
pub use eal::{Eal, EalOptions, RegisteredThread};
pub use error::Error;
pub use mbuf::Mbuf;
pub use pool::{DATA_ROOM, Pool};
pub use port::{Port, PortConfig, PortStats, TxRefs, data_room};
pub use queue::{Received, RxQueue, TxQueue};
