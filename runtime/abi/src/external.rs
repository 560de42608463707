//! Actions that users write in Rust: `extern action f(x: u32)` in a program, `fn f(packet: &mut Packet<'_>, x: u32)` beside it.
//!
//! They run in the ordered part of a program, one packet after another, on a view of the packet that cannot be left: its
//! bytes, and what the runtime knows of it. They must not block, allocate or panic; nothing else limits what they do. The
//! carriers bring them as [`Extern`]s, functions over argument words; [`Outcome`] is what theirs may return.

/// A packet, as an action in Rust sees it.
#[derive(Debug)]
pub struct Packet<'a> {
    bytes: &'a mut [u8],
    in_port: u16,
    now_ns: u64,
}

impl<'a> Packet<'a> {
    /// A view of a frame that came in by the program's port `in_port`, counted from 0, at a time in nanoseconds.
    pub fn new(bytes: &'a mut [u8], in_port: u16, now_ns: u64) -> Packet<'a> {
        Packet { bytes, in_port, now_ns }
    }

    /// The frame, from the first byte of Ethernet on.
    pub fn bytes(&self) -> &[u8] {
        self.bytes
    }

    /// The frame, to change. Checksums are the action's business.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// The port it came in by: its place in the program's order of ports, from 0.
    pub fn in_port(&self) -> u16 {
        self.in_port
    }

    /// The burst's time in nanoseconds since any fixed moment; it never runs backwards.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

/// What an action wants of its packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next action.
    Continue,
    /// The packet ends, as with `drop`.
    Drop,
}

/// What an action in Rust may return: nothing, or a [`Flow`].
pub trait Outcome {
    /// As a [`Flow`].
    fn flow(self) -> Flow;
}

impl Outcome for () {
    fn flow(self) -> Flow {
        Flow::Continue
    }
}

impl Outcome for Flow {
    fn flow(self) -> Flow {
        self
    }
}

/// An action as carriers bring it: the packet, and a word for each argument.
pub type Extern = fn(&mut Packet<'_>, &[u64]) -> Flow;
