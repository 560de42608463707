//! Why a packet, or a copy of one, was dropped. Every drop carries one of these; counters and traces use the names.

macro_rules! reasons {
    ($($name:ident $text:literal $doc:literal,)*) => {
        /// Why a packet or a copy was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum DropReason { $(#[doc = $doc] $name,)* }

        impl DropReason {
            /// All reasons, in the order of their codes.
            pub const ALL: &[DropReason] = &[$(DropReason::$name,)*];

            /// The name in counters, JSON and traces.
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$name => $text,)* }
            }

            /// What it means, for people.
            pub const fn describe(self) -> &'static str {
                match self { $(DropReason::$name => $doc,)* }
            }
        }
    };
}

reasons! {
    Policy "policy" "A rule said drop, or had no actions.",
    NoMatch "no_match" "The packet matched no rule of a table (table miss).",
    InPort "in_port" "The only output was the port the packet came from, which an output leaves out.",
    NoPort "no_port" "The program sends to a port that there is not, or that nothing is attached to.",
    Malformed "malformed" "The frame is shorter than an Ethernet header.",
    Ttl "ttl" "dec_ttl met a TTL or hop limit of 0 or 1.",
    Depth "depth" "Tables called each other deeper than 64.",
    Resubmits "resubmits" "One packet passed more than 4,096 tables.",
    Outputs "outputs" "One burst made more outputs than the worker can hold.",
    L2Reserved "l2_reserved" "`normal`: the destination is a reserved address of 802.1D.",
    L2Vlan "l2_vlan" "`normal`: the port does not carry the packet's VLAN, or the tag is cut short.",
    L2Hairpin "l2_hairpin" "`normal`: the destination was learned on the port the packet came from.",
    L2NoPort "l2_no_port" "`normal` or `flood`: there is no other port to send to.",
    TxTooBig "tx_too_big" "The frame is longer than the port takes.",
    TxQueueFull "tx_queue_full" "The port's transmit queue stayed full.",
    TxPortDown "tx_port_down" "The port is down.",
    NoMbuf "no_mbuf" "No packet buffer was free for a copy.",
    Meter "meter" "The packet came faster than its meter allows.",
    Group "group" "A group had no bucket to choose: no watched port is alive, or no bucket has a weight.",
    NoReader "no_reader" "The packet was for the controller, which reads too slowly or not at all.",
    NoRoom "no_room" "There was no room in front of the frame for headers that were pushed.",
    MplsLabels "mpls_labels" "More than three MPLS labels, where one was pushed or popped.",
    NoInner "no_inner" "A tunnel header to be removed had no whole packet behind it.",
}

impl DropReason {
    /// The reason with this code.
    pub const fn from_code(code: u8) -> Option<DropReason> {
        if (code as usize) < Self::ALL.len() { Some(Self::ALL[code as usize]) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip() {
        for &reason in DropReason::ALL {
            assert_eq!(DropReason::from_code(reason as u8), Some(reason));
        }
        assert_eq!(DropReason::from_code(DropReason::ALL.len() as u8), None);
    }
}
