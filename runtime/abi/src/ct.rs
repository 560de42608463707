//! Connection tracking as compiled code sees it: what it asks for and what it gets back.

/// Bits of `ct.state`, numbered as in OpenFlow's `ct_state`.
pub mod state {
    /// No committed entry yet, or an entry that has not seen both directions.
    pub const NEW: u32 = 0x01;
    /// An entry that has seen a packet in each direction.
    pub const EST: u32 = 0x02;
    /// Related to an entry: an ICMP error about it, or an expected connection.
    pub const REL: u32 = 0x04;
    /// In the direction opposite to the one committed.
    pub const RPL: u32 = 0x08;
    /// Not a packet that any connection can contain.
    pub const INV: u32 = 0x10;
    /// Went through `ct()`.
    pub const TRK: u32 = 0x20;
    /// Its source was translated.
    pub const SNAT: u32 = 0x40;
    /// Its destination was translated.
    pub const DNAT: u32 = 0x80;
}

/// What one `ct()` of a program asks for, apart from the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct CtPoint {
    /// Of [`CtPoint::COMMIT`] and its like.
    pub flags: u32,
    /// New value of `ct.mark`, where `mark_mask` has ones. Only with commit.
    pub mark: u32,
    /// Which bits of `ct.mark` are set.
    pub mark_mask: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
    /// New value of `ct.label`, high then low half, where the mask has ones. Only with commit.
    pub label: [u64; 2],
    /// Which bits of `ct.label` are set.
    pub label_mask: [u64; 2],
}

impl CtPoint {
    /// Makes an entry if there is none.
    pub const COMMIT: u32 = 1;
    /// Replaces an entry made in the other direction.
    pub const FORCE: u32 = 2;
    /// The packet may have been written since the burst was prepared: look at it afresh.
    pub const FRESH: u32 = 4;
}

/// `ct.*` of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(C)]
pub struct CtView {
    /// Bits of [`state`]; 0 before any `ct()`.
    pub state: u32,
    /// Zone of the last `ct()`.
    pub zone: u32,
    /// Mark of the entry, 0 without one.
    pub mark: u32,
    /// Keeps the layout free of padding.
    pub reserved: u32,
    /// Label of the entry, high then low half, 0 without one.
    pub label: [u64; 2],
}

impl CtView {
    /// A packet that has not been tracked.
    pub const CLEAR: CtView = CtView { state: 0, zone: 0, mark: 0, reserved: 0, label: [0; 2] };
}
