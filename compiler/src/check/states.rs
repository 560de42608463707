//! Kinds of packets, as a set of bits: which headers a packet has, and whether it was tracked. Everything `check` says about
//! presence comes from here. A set is always an upper bound: a packet of a kind that is not in it cannot be.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not};

use pipec_abi::ct::state::TRK;

use crate::field::{Field, Header};
use crate::hir::{Cond, Match, Place, Program, Space};

/// Kinds without regard to tags and tracking: what the Ethernet type and the IP protocol say.
const KINDS: [(u128, Option<u128>); 13] = [
    (0x0800, Some(6)),
    (0x0800, Some(17)),
    (0x0800, Some(132)),
    (0x0800, Some(1)),
    (0x0800, None),
    (0x86dd, Some(6)),
    (0x86dd, Some(17)),
    (0x86dd, Some(132)),
    (0x86dd, Some(58)),
    (0x86dd, None),
    (0x0806, None),
    (0x8035, None),
    (0, None),
];
/// Bits of a set: kinds, with and without a tag, not tracked and tracked.
const BITS: usize = KINDS.len() * 4;

/// A set of kinds of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct States(u64);

/// What one bit stands for.
struct Kind {
    eth_type: u128,
    proto: Option<u128>,
    tag: bool,
    tracked: bool,
}

fn kind(bit: usize) -> Kind {
    let (eth_type, proto) = KINDS[bit % KINDS.len()];
    Kind { eth_type, proto, tag: bit / KINDS.len() % 2 == 1, tracked: bit / KINDS.len() / 2 == 1 }
}

impl States {
    /// No packet.
    pub const NONE: States = States(0);
    /// Any packet.
    pub const ALL: States = States((1 << BITS) - 1);

    /// All kinds that a test holds for.
    fn where_(test: impl Fn(Kind) -> bool) -> States {
        States((0..BITS).filter(|&bit| test(kind(bit))).map(|bit| 1 << bit).sum())
    }

    /// Packets that `ct()` has not seen.
    pub fn fresh() -> States {
        States((1 << (BITS / 2)) - 1)
    }

    /// Packets with a header.
    pub fn has(header: Header) -> States {
        let ip = |k: &Kind| k.eth_type == 0x0800 || k.eth_type == 0x86dd;
        States::where_(|k| match header {
            Header::Eth => true,
            Header::Vlan => k.tag,
            Header::Arp => k.eth_type == 0x0806,
            Header::Rarp => k.eth_type == 0x8035,
            Header::Ipv4 => k.eth_type == 0x0800,
            Header::Ipv6 => k.eth_type == 0x86dd,
            Header::IpAny => ip(&k),
            Header::Tcp => k.proto == Some(6),
            Header::Udp => k.proto == Some(17),
            Header::Sctp => k.proto == Some(132),
            Header::Icmp => k.proto == Some(1),
            Header::Icmpv6 | Header::Nd => k.proto == Some(58),
            Header::Vlan2 => k.tag,
            Header::Declared(_) => true,
        })
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The same packets behind `ct()`: those with IP are tracked, others may be.
    pub fn track(self) -> States {
        let fresh = self & States::fresh();
        let tracked = States(fresh.0 << (BITS / 2)) | (self & !States::fresh());
        tracked | (self & !States::has(Header::IpAny))
    }

    /// The same packets behind `ct_clear`.
    pub fn clear(self) -> States {
        self & States::fresh() | States((self & !States::fresh()).0 >> (BITS / 2))
    }

    /// The same packets behind an action that changes which headers they have.
    pub fn reshape(self) -> States {
        let half = |some: States, all: States| if some.is_empty() { States::NONE } else { all };
        half(self & States::fresh(), States::fresh()) | half(self & !States::fresh(), !States::fresh())
    }

    /// The same packets, whether tracked or not.
    pub fn any_tracking(self) -> States {
        let fresh = self.clear();
        fresh | States(fresh.0 << (BITS / 2))
    }
}

impl BitAnd for States {
    type Output = States;
    fn bitand(self, other: States) -> States {
        States(self.0 & other.0)
    }
}

impl BitOr for States {
    type Output = States;
    fn bitor(self, other: States) -> States {
        States(self.0 | other.0)
    }
}

impl BitOrAssign for States {
    fn bitor_assign(&mut self, other: States) {
        self.0 |= other.0;
    }
}

impl Not for States {
    type Output = States;
    fn not(self) -> States {
        States(!self.0) & States::ALL
    }
}

/// Packets for which a condition can be true, and those for which it can be false.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// It may hold.
    pub holds: States,
    /// It may not hold.
    pub fails: States,
}

/// For each declared header, the kinds of packets that can have it.
pub fn roots(program: &Program) -> Vec<States> {
    let mut roots: Vec<States> = vec![];
    for header in &program.headers {
        let mut root = States::NONE;
        for after in &header.after {
            root |= match after.parent {
                Header::Declared(parent) => roots.get(usize::from(parent)).copied().unwrap_or(States::ALL),
                parent => States::has(parent),
            } & outcome(&after.cond, &roots).holds;
        }
        roots.push(root);
    }
    roots
}

/// What a condition can be, for each kind of packets; `roots` are those of [`roots`].
pub fn outcome(cond: &Cond, roots: &[States]) -> Outcome {
    match cond {
        Cond::True => Outcome { holds: States::ALL, fails: States::NONE },
        // Not every packet of these kinds has the header.
        Cond::Has(Header::Declared(header)) => {
            let root = roots.get(usize::from(*header)).copied().unwrap_or(States::ALL);
            Outcome { holds: root, fails: States::ALL }
        }
        Cond::Has(header @ (Header::Vlan2 | Header::Nd)) => Outcome { holds: States::has(*header), fails: States::ALL },
        Cond::Has(header) => Outcome { holds: States::has(*header), fails: !States::has(*header) },
        Cond::Not(inner) => {
            let Outcome { holds, fails } = outcome(inner, roots);
            Outcome { holds: fails, fails: holds }
        }
        Cond::All(list) => list.iter().map(|part| outcome(part, roots)).fold(
            Outcome { holds: States::ALL, fails: States::NONE },
            |a, b| Outcome { holds: a.holds & b.holds, fails: a.fails | b.fails },
        ),
        Cond::Any(list) => list.iter().map(|part| outcome(part, roots)).fold(
            Outcome { holds: States::NONE, fails: States::ALL },
            |a, b| Outcome { holds: a.holds | b.holds, fails: a.fails & b.fails },
        ),
        Cond::Compare(read, test) => compare(read.place, test),
        Cond::CompareTo(..) => Outcome { holds: States::ALL, fails: States::ALL },
    }
}

fn compare(place: Place, test: &Match) -> Outcome {
    let unknown = Outcome { holds: States::ALL, fails: States::ALL };
    let Space::Field(field) = place.space else { return unknown };
    if place != Place::field(field) {
        return unknown;
    }
    // Some(value) where a kind of packets says what the field is.
    let known: fn(&Kind) -> Option<u128> = match field {
        Field::EthType => |k| (k.eth_type != 0).then_some(k.eth_type),
        Field::IpProto => |k| k.proto,
        Field::VlanTci => |k| (!k.tag).then_some(0),
        Field::CtState | Field::CtZone | Field::CtMark | Field::CtLabel => |k| (!k.tracked).then_some(0),
        _ => return unknown,
    };
    // Bits that are known besides.
    let trk = u128::from(TRK);
    let bit = |k: &Kind| match field {
        Field::CtState if k.tracked => trk,
        Field::VlanTci if k.tag => 0x1000,
        _ => 0,
    };
    let decided = |k: &Kind| match known(k) {
        Some(value) => Some(holds(test, value)),
        None => match test {
            Match::Masked { value, mask } if mask & bit(k) & !value != 0 => Some(false),
            Match::Masked { mask, .. } if mask & !bit(k) == 0 => Some(true),
            _ => None,
        },
    };
    Outcome {
        holds: States::where_(|k| decided(&k) != Some(false)),
        fails: States::where_(|k| decided(&k) != Some(true)),
    }
}

/// Whether a test holds for a value.
fn holds(test: &Match, value: u128) -> bool {
    match test {
        Match::Masked { value: wanted, mask } => value & mask == *wanted,
        Match::Range { low, high } => (low..=high).contains(&&value),
        Match::In(ranges) => ranges.iter().any(|(low, high)| (low..=high).contains(&&value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_exclude_each_other_as_packets_do() {
        let both = |a, b| !(States::has(a) & States::has(b)).is_empty();
        assert!(
            both(Header::Tcp, Header::Ipv6) && both(Header::Vlan, Header::Arp) && both(Header::Icmp, Header::IpAny)
        );
        assert!(
            !both(Header::Tcp, Header::Udp) && !both(Header::Icmp, Header::Ipv6) && !both(Header::Arp, Header::Ipv4)
        );
    }

    #[test]
    fn tracking_moves_between_halves() {
        let fresh = States::fresh();
        let ip = fresh & States::has(Header::Ipv4);
        assert_eq!(ip.track().clear(), ip);
        assert!((ip.track() & fresh).is_empty());
        assert_eq!(ip.any_tracking(), States::has(Header::Ipv4));
        assert!(!(fresh.track() & fresh).is_empty(), "what is not IP may stay untracked");
    }
}
