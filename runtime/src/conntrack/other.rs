//! Everything without a state machine of its own: UDP, ICMP queries, and protocols without ports. And the timers of all.
//!
//! These connections know which directions they have seen, and nothing else:
//!
//! ```text
//! UDP, others    FIRST ──▶ MULTIPLE (a second packet of the original direction) ──▶ BOTH (an answer)
//! ICMP queries   FIRST ──▶ BOTH
//! ```
//!
//! As in Open vSwitch a connection that was answered lives on for less time than one that was not.

/// Where such a connection is: the last word of its entry.
pub mod seen {
    /// One packet.
    pub const FIRST: u64 = 0;
    /// Several packets of the original direction.
    pub const MULTIPLE: u64 = 1;
    /// Both directions.
    pub const BOTH: u64 = 2;
}

/// What decides how long a connection lives on after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Timer {
    /// TCP, after an opening segment.
    TcpFirst,
    /// TCP, before both ends are established.
    TcpOpening,
    /// TCP, both ends established.
    TcpEstablished,
    /// TCP, one end is closing.
    TcpClosing,
    /// TCP, both ends are closing.
    TcpFinWait,
    /// TCP, closed or reset.
    TcpClosed,
    /// One packet seen.
    OtherFirst,
    /// Several packets of one direction seen.
    OtherMultiple,
    /// Both directions seen.
    OtherBoth,
    /// ICMP, asked.
    IcmpFirst,
    /// ICMP, answered.
    IcmpReply,
}

/// Time-outs in nanoseconds, by [`Timer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts(pub [u64; 11]);

impl Default for Timeouts {
    fn default() -> Self {
        const S: u64 = 1_000_000_000;
        Timeouts([30 * S, 30 * S, 86_400 * S, 900 * S, 45 * S, 30 * S, 60 * S, 60 * S, 30 * S, 60 * S, 30 * S])
    }
}

impl Timeouts {
    /// When a connection ends that sees its next packet never.
    #[inline(always)]
    pub fn expiry(&self, timer: Timer, now_ns: u64) -> u64 {
        now_ns.wrapping_add(self.0[timer as usize])
    }
}

/// The next state and timer, after a packet of the original or the reply direction.
#[inline(always)]
pub fn update(state: u64, is_icmp: bool, is_reply: bool) -> (u64, Timer) {
    match (is_icmp, is_reply || state == seen::BOTH) {
        (false, true) => (seen::BOTH, Timer::OtherBoth),
        (false, false) => (seen::MULTIPLE, Timer::OtherMultiple),
        (true, true) => (seen::BOTH, Timer::IcmpReply),
        (true, false) => (seen::FIRST, Timer::IcmpFirst),
    }
}

/// The timer of a new connection.
pub fn first(is_icmp: bool) -> Timer {
    if is_icmp { Timer::IcmpFirst } else { Timer::OtherFirst }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_and_timers() {
        assert_eq!(update(seen::FIRST, false, false), (seen::MULTIPLE, Timer::OtherMultiple));
        assert_eq!(update(seen::MULTIPLE, false, true), (seen::BOTH, Timer::OtherBoth));
        assert_eq!(update(seen::BOTH, false, false), (seen::BOTH, Timer::OtherBoth));
        assert_eq!(update(seen::FIRST, true, false), (seen::FIRST, Timer::IcmpFirst));
        assert_eq!(update(seen::FIRST, true, true), (seen::BOTH, Timer::IcmpReply));
        assert_eq!(update(seen::BOTH, true, false), (seen::BOTH, Timer::IcmpReply));
        assert_eq!(Timeouts::default().expiry(Timer::TcpClosing, 5), 900_000_000_005);
    }
}
