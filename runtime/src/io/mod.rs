//! Where packets come from and go to.
//!
//! In: the ports that a user names. Out: bursts of packets, and places to send them. Never: what a packet means.
//!
//! [`spec`] reads the command line's port forms and knows nothing of DPDK; [`dpdk`] opens ports on it.

#[cfg(feature = "dpdk")]
pub mod dpdk;
pub mod spec;
