//! TCP: flags, states and windows.
//!
//! In go the two ends of a connection and a segment, out comes whether the segment belongs to the connection, and the ends
//! are brought up to date. The rules T1–T11 that comments name are those of the semantics.
//!
//! An end is described by four numbers, after van Rooij's "Real Stateful TCP Packet Filtering in IP Filter" (2001):
//!
//! - `lo`: one past the highest sequence number it has sent,
//! - `hi`: the highest one its peer has allowed it to send,
//! - `window`: the largest window it has announced, unscaled,
//! - `scale`: what its SYN said about scaling and selective acknowledgement.
//!
//! A segment is inside the window if its last byte is at most `hi` of its sender, its first not more than one window of the
//! receiver below `lo` of its sender, and its acknowledgement near `lo` of its receiver. The right edge an end allows is
//! counted from its highest selective acknowledgement, as Linux does: a receiver that lost one segment of many still lets
//! the sender go on (D14).
//!
//! Whether a connection is *established* for a pipeline is not decided here: that takes a packet in each direction (D3).

use super::other::Timer;
use super::tcp_options::{Scale, offered, right_edge, say_nothing};

/// Flags, as in byte 13 of the header.
pub mod flag {
    #![allow(missing_docs)]
    pub const FIN: u8 = 0x01;
    pub const SYN: u8 = 0x02;
    pub const RST: u8 = 0x04;
    pub const PSH: u8 = 0x08;
    pub const ACK: u8 = 0x10;
    pub const URG: u8 = 0x20;
}
use flag::{ACK, FIN, PSH, RST, SYN, URG};

/// Bit `f` is set if the low six flags `f` may occur together (T1).
const LEGAL: u64 = {
    let mut legal = 0;
    let mut f = 0u8;
    while f < 64 {
        let torn = f & SYN != 0 && f & (RST | FIN) != 0;
        let empty = f & (SYN | ACK | RST) == 0;
        let unacknowledged = f & ACK == 0 && f & (FIN | PSH | URG) != 0;
        if !(torn || empty || unacknowledged) {
            legal |= 1 << f;
        }
        f += 1;
    }
    legal
};

/// Whether flags may occur together (T1).
#[inline(always)]
pub fn are_legal(flags: u8) -> bool {
    LEGAL >> (flags & 63) & 1 == 1
}

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Bytes of payload, without padding (T11).
    pub len: u16,
    /// Window as in the header.
    pub window: u16,
    /// Where in the frame options begin.
    pub options_at: u16,
    /// Bytes of options; 0 if they say nothing to a tracker.
    pub options_len: u8,
    /// Flags.
    pub flags: u8,
}

impl Segment {
    /// No segment.
    pub const NONE: Segment = Segment { seq: 0, ack: 0, len: 0, window: 0, options_at: 0, options_len: 0, flags: 0 };

    /// Reads a header that was validated; `at` is where in the frame it lies.
    pub fn read(tcp: &[u8], at: usize) -> Segment {
        use pipec_abi::header::{load8, load16, load32};
        let header_len = load8(tcp, 12) as usize >> 4 << 2;
        let options = tcp.get(20..header_len).unwrap_or(&[]);
        Segment {
            seq: load32(tcp, 4) as u32,
            ack: load32(tcp, 8) as u32,
            len: tcp.len().saturating_sub(header_len) as u16,
            window: load16(tcp, 14) as u16,
            options_at: (at + 20) as u16,
            options_len: if say_nothing(options) { 0 } else { options.len() as u8 },
            flags: load8(tcp, 13) as u8,
        }
    }

    #[inline(always)]
    fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// One past the last sequence number it takes up.
    #[inline(always)]
    fn end(&self) -> u32 {
        self.seq.wrapping_add(u32::from(self.len) + u32::from(self.has(SYN)) + u32::from(self.has(FIN)))
    }
}

/// Where one end is, numbered so that they can be compared. The gaps are names of other trackers that do not occur here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct State(pub u8);

#[allow(missing_docs)]
impl State {
    pub const CLOSED: State = State(0);
    pub const SYN_SENT: State = State(2);
    pub const ESTABLISHED: State = State(4);
    pub const CLOSING: State = State(7);
    pub const FIN_WAIT_2: State = State(9);
    pub const TIME_WAIT: State = State(10);

    /// The name in dumps.
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "CLOSED",
            2 => "SYN_SENT",
            4 => "ESTABLISHED",
            7 => "CLOSING",
            9 => "FIN_WAIT_2",
            _ => "TIME_WAIT",
        }
    }
}

/// One end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Peer {
    /// One past the highest sequence number sent.
    pub lo: u32,
    /// The highest sequence number its peer allows.
    pub hi: u32,
    /// The largest window announced, unscaled.
    pub window: u16,
    /// What its SYN said.
    pub scale: Scale,
    /// Where it is.
    pub state: State,
}

impl Peer {
    fn seq(&self) -> u64 {
        u64::from(self.lo) | u64::from(self.hi) << 32
    }

    fn rest(&self) -> u64 {
        u64::from(self.window) | u64::from(self.scale.0) << 16 | u64::from(self.state.0) << 24
    }

    fn unpack(seq: u64, rest: u64) -> Peer {
        Peer {
            lo: seq as u32,
            hi: (seq >> 32) as u32,
            window: rest as u16,
            scale: Scale((rest >> 16) as u8),
            state: State((rest >> 24) as u8),
        }
    }
}

/// Both ends, as a segment sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pair {
    /// Who sends it.
    pub src: Peer,
    /// Who receives it.
    pub dst: Peer,
}

impl Pair {
    /// From the words of an entry: sequence numbers of the sender, of the receiver, and the rest, the sender's half low.
    pub fn unpack((src, dst, rest): (u64, u64, u64)) -> Pair {
        Pair { src: Peer::unpack(src, rest), dst: Peer::unpack(dst, rest >> 32) }
    }

    /// The words of an entry.
    pub fn pack(&self) -> (u64, u64, u64) {
        (self.src.seq(), self.dst.seq(), self.src.rest() | self.dst.rest() << 32)
    }
}

/// What a segment does to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It belongs to it. The timer starts anew, if there is one.
    Valid(Option<Timer>),
    /// A SYN of an end that is not open yet (T4).
    Opening,
    /// A SYN where both ends are done: a new connection takes the place of this one (T5).
    Reuse,
    /// It does not belong to it.
    Outside,
}

/// Whether a segment can begin a connection (T2).
pub fn may_open(flags: u8, loose: bool) -> bool {
    if flags & SYN != 0 { flags & ACK == 0 } else { loose }
}

/// The ends after the segment that begins a connection.
pub fn open(segment: &Segment, options: &[u8]) -> Pair {
    let syn = segment.has(SYN);
    let scale = if syn { offered(options) } else { Scale::UNKNOWN };
    let src = Peer {
        lo: segment.seq,
        hi: segment.end().wrapping_add(1),
        window: if syn { descale(segment.window, scale) } else { segment.window }.max(1),
        scale,
        state: State::SYN_SENT,
    };
    let scale = if syn { Scale::default() } else { Scale::UNKNOWN };
    Pair { src, dst: Peer { lo: 0, hi: UNSET, window: 1, scale, state: State::CLOSED } }
}

/// Upper bound of an end that has not sent and not been acknowledged.
const UNSET: u32 = 1;
/// How far an acknowledgement, or a segment of a closed connection, may be off: a window and a reassembled fragment.
const SLACK: u32 = 0xffff + 1500;

/// `a >= b` in sequence space.
#[inline(always)]
pub fn at_least(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 >= 0
}

/// The window of a SYN, which is not scaled, as later windows count it.
fn descale(window: u16, scale: Scale) -> u16 {
    u32::from(window).div_ceil(1 << scale.shift()) as u16
}

/// [`update`] for most segments: an acknowledgement, perhaps with data, without options, between two ends that are
/// established, inside the window. In go and out come the words of an entry: the sender's sequence numbers, the receiver's,
/// and the rest. Nothing if the segment is of another kind. The timer is [`Timer::TcpEstablished`].
#[inline(always)]
pub fn update_established((src, dst, rest): (u64, u64, u64), segment: &Segment) -> Option<(u64, u64, u64)> {
    const STATES: u64 = 0xff00_0000_ff00_0000;
    const ESTABLISHED: u64 = (State::ESTABLISHED.0 as u64) << 24 | (State::ESTABLISHED.0 as u64) << 56;
    let is_plain = segment.flags & (SYN | FIN | RST | ACK) == ACK && segment.options_len == 0;
    if rest & STATES != ESTABLISHED || !is_plain {
        return None;
    }
    let (lo, hi, dst_lo, dst_hi) = (src as u32, (src >> 32) as u32, dst as u32, (dst >> 32) as u32);
    let (src_shift, dst_shift) = ((rest >> 16) as u32 & 15, (rest >> 48) as u32 & 15);
    let one_window = u32::from((rest >> 32) as u16) << dst_shift;
    let (seq, end) = match segment.len {
        0 => (lo, lo),
        len => (segment.seq, segment.seq.wrapping_add(u32::from(len))),
    };
    let behind = dst_lo.wrapping_sub(segment.ack);
    let is_inside = at_least(hi, end)
        & at_least(seq, lo.wrapping_sub(one_window))
        & (behind.wrapping_add(SLACK) <= SLACK + (SLACK << src_shift));
    if !is_inside {
        return None;
    }
    let lo = if at_least(end, lo) { end } else { lo };
    let open = u32::from(segment.window) << src_shift;
    let edge = segment.ack.wrapping_add(open);
    let dst_hi = if at_least(edge, dst_hi) { segment.ack.wrapping_add(open.max(1)) } else { dst_hi };
    let window = (rest as u16).max(segment.window);
    let word = |lo: u32, hi: u32| u64::from(lo) | u64::from(hi) << 32;
    Some((word(lo, hi), word(dst_lo, dst_hi), rest & !0xffff | u64::from(window)))
}

/// Takes a segment with legal flags into account: both ends after it, and what it is to them. With `check` off, windows are
/// kept but not enforced (T10).
pub fn update(pair: Pair, segment: &Segment, options: &[u8], check: bool) -> (Pair, Outcome) {
    if segment.flags & (SYN | ACK) == SYN
        && let Some(done) = update_opening(pair, segment, options)
    {
        return done;
    }
    let mut at = At { pair, view: View::new(&pair, segment) };
    if at.pair.src.state < State::SYN_SENT {
        at = first_of_its_end(at, segment, options);
    }
    if segment.options_len > 0 && segment.has(ACK) && !segment.has(SYN) {
        at.view.edge = right_edge(at.view.ack, &at.pair.dst, options);
    }
    let At { pair, view } = at;
    if !check || view.is_inside(&pair, segment) {
        let pair = change_states(view.advance(pair), segment.flags);
        return (pair, Outcome::Valid(Some(timer(pair.src.state, pair.dst.state))));
    }
    if view.is_near(pair) {
        return (close_states(view.advance(pair), segment.flags), Outcome::Valid(None));
    }
    (pair, Outcome::Outside)
}

/// A SYN, if its place in the sequence does not matter: its sender has not opened yet (T4), or both ends are done (T5).
fn update_opening(pair: Pair, segment: &Segment, options: &[u8]) -> Option<(Pair, Outcome)> {
    let Pair { src, dst } = pair;
    if src.state >= State::FIN_WAIT_2 && dst.state >= State::FIN_WAIT_2 {
        Some((pair, Outcome::Reuse))
    } else if src.state == State::SYN_SENT {
        Some((pair, Outcome::Opening))
    } else if src.state < State::SYN_SENT {
        let at = At { pair, view: View::new(&pair, segment) };
        Some((first_of_its_end(at, segment, options).pair, Outcome::Opening))
    } else {
        None
    }
}

/// Both ends and a segment.
#[derive(Clone, Copy)]
struct At {
    pair: Pair,
    view: View,
}

/// A segment as its window check sees it.
#[derive(Clone, Copy)]
struct View {
    /// First and last-plus-one sequence number; those of an empty segment do not count.
    seq: u32,
    end: u32,
    ack: u32,
    /// The highest number its sender has received, selectively or not.
    edge: u32,
    window: u32,
    /// Shifts of the sender's and the receiver's windows.
    src_shift: u32,
    dst_shift: u32,
    /// Whether `ack` must be near what it acknowledges (T3: not in the first segment of an end).
    ack_counts: bool,
}

impl View {
    fn new(Pair { src, dst }: &Pair, segment: &Segment) -> View {
        let are_settled = src.scale.0 & dst.scale.0 & (Scale::OFFERED | Scale::UNSEEN) != 0;
        let shifts = if are_settled && !segment.has(SYN) { (src.scale.shift(), dst.scale.shift()) } else { (0, 0) };
        let (src_shift, dst_shift) = shifts;
        // Without an acknowledgement there is nothing to check; some senders of RST leave the number at 0.
        let acknowledges = segment.has(ACK) && !(segment.ack == 0 && segment.has(RST));
        let ack = if acknowledges { segment.ack } else { dst.lo };
        let (mut seq, mut end) = (segment.seq, segment.end());
        if seq == end && src.state >= State::SYN_SENT {
            (seq, end) = (src.lo, src.lo);
        }
        let window = u32::from(segment.window);
        View { seq, end, ack, edge: ack, window, src_shift, dst_shift, ack_counts: true }
    }

    /// Inside the window (T6).
    fn is_inside(&self, Pair { src, dst }: &Pair, segment: &Segment) -> bool {
        let one_window = u32::from(dst.window) << self.dst_shift;
        let behind = if self.ack_counts { dst.lo.wrapping_sub(self.ack) as i32 } else { 0 };
        let reset_fits = segment.seq.wrapping_sub(src.lo).wrapping_add(1) <= 2;
        // Without short-circuits: nearly always all of it holds, and five tests make one jump.
        at_least(src.hi, self.end)
            & at_least(self.seq, src.lo.wrapping_sub(one_window))
            & (behind >= -(SLACK as i32))
            & (behind <= (SLACK << self.src_shift) as i32)
            & (!segment.has(RST) | reset_fits)
    }

    /// Not far outside, where that is harmless: the receiver has not opened yet, or an end is done (T6, second rule).
    fn is_near(self, Pair { src, dst }: Pair) -> bool {
        let unsettled = dst.state < State::SYN_SENT || dst.state >= State::FIN_WAIT_2 || src.state >= State::FIN_WAIT_2;
        unsettled && at_least(src.hi.wrapping_add(SLACK), self.end) && at_least(self.seq, src.lo.wrapping_sub(SLACK))
    }

    /// Moves the window along.
    fn advance(&self, Pair { mut src, mut dst }: Pair) -> Pair {
        src.window = src.window.max(self.window as u16);
        if at_least(self.end, src.lo) {
            src.lo = self.end;
        }
        let open = self.window << self.src_shift;
        if at_least(self.edge.wrapping_add(open), dst.hi) {
            dst.hi = self.edge.wrapping_add(open.max(1));
        }
        Pair { src, dst }
    }
}

/// The first segment of an end tells where its numbers begin, and, if it is a SYN, what it offers (T3, T7).
fn first_of_its_end(at: At, segment: &Segment, options: &[u8]) -> At {
    let At { pair: Pair { mut src, mut dst }, mut view } = at;
    let offer = if segment.has(SYN) { offered(options) } else { src.scale };
    if dst.scale.has(Scale::OFFERED) && offer.has(Scale::OFFERED) {
        src.scale = offer;
        (view.src_shift, view.dst_shift) = (offer.shift(), dst.scale.shift());
        view.window = u32::from(descale(segment.window, offer));
    } else if !dst.scale.has(Scale::UNSEEN) {
        // One of them does not scale, so neither does.
        src.scale = Scale(offer.0 & Scale::SACK);
        if segment.has(SYN) {
            let unscaled = u32::from(dst.window) << dst.scale.shift();
            dst.window = unscaled.min(0xffff) as u16;
        }
        dst.scale = Scale(dst.scale.0 & Scale::SACK);
    }
    let end = segment.end();
    src.lo = segment.seq;
    src.state = State::SYN_SENT;
    let allowed = end.wrapping_add((u32::from(dst.window) << view.dst_shift).max(1));
    if src.hi == UNSET || at_least(allowed, src.hi) {
        src.hi = allowed;
        view.ack_counts = false;
    }
    src.window = src.window.max(view.window as u16);
    if segment.seq == end {
        (view.seq, view.end) = (src.lo, src.lo);
    }
    At { pair: Pair { src, dst }, view }
}

fn change_states(pair: Pair, flags: u8) -> Pair {
    let Pair { src, mut dst } = pair;
    if flags & ACK != 0 {
        if dst.state == State::SYN_SENT {
            dst.state = State::ESTABLISHED;
        } else if dst.state == State::CLOSING {
            dst.state = State::FIN_WAIT_2;
        }
    }
    let pair = Pair { src, dst };
    if flags & (FIN | RST) != 0 { close_states(pair, flags) } else { pair }
}

fn close_states(pair: Pair, flags: u8) -> Pair {
    let Pair { mut src, mut dst } = pair;
    if flags & FIN != 0 && src.state < State::CLOSING {
        src.state = State::CLOSING;
    }
    if flags & RST != 0 {
        src.state = State::TIME_WAIT;
        dst.state = State::TIME_WAIT;
    }
    Pair { src, dst }
}

/// How long a connection lives on without packets (T9).
fn timer(a: State, b: State) -> Timer {
    let (low, high) = (a.min(b), a.max(b));
    if low == State::ESTABLISHED && high == State::ESTABLISHED {
        Timer::TcpEstablished
    } else if low >= State::FIN_WAIT_2 {
        Timer::TcpClosed
    } else if low >= State::CLOSING {
        Timer::TcpFinWait
    } else if low < State::ESTABLISHED {
        Timer::TcpOpening
    } else if high >= State::CLOSING {
        Timer::TcpClosing
    } else {
        Timer::TcpEstablished
    }
}
