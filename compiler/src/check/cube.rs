//! Conditions as unions of cubes: a cube says for some places which values they have, and nothing for the others.
//!
//! Headers become values of the Ethernet type, the IP protocol and the tag, so that one algebra knows that TCP is not UDP.
//! A field whose header is absent may have any value here: the conditions of the HIR never ask. Conditions that need more
//! than [`MAX_CUBES`] have none, and no claims are made about them.

use pipec_abi::ct::state;

use super::values::Values;
use crate::field::{Field, Header};
use crate::hir::{Cond, Match, PRESENCE, Place, Read, Space, View};

/// Cubes of one condition, at the most.
const MAX_CUBES: usize = 32;

/// A place, as a number to sort by.
pub type Key = u64;

/// For some places, the values they have.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Cube {
    /// Sorted by place, each once.
    pub parts: Vec<(Key, Values)>,
}

/// The cubes of a condition, without empty ones; none if there would be too many.
pub fn cubes(cond: &Cond) -> Option<Vec<Cube>> {
    union(cond, true)
}

fn union(cond: &Cond, positive: bool) -> Option<Vec<Cube>> {
    match (cond, positive) {
        (Cond::True, true) => Some(vec![Cube::default()]),
        (Cond::True, false) => Some(vec![]),
        (Cond::Not(inner), positive) => union(inner, !positive),
        (Cond::All(list), true) | (Cond::Any(list), false) => {
            let mut product = vec![Cube::default()];
            for part in list {
                let part = union(part, positive)?;
                let mut next = vec![];
                for a in &product {
                    next.extend(part.iter().filter_map(|b| a.and(b)));
                }
                product = next;
                if product.len() > MAX_CUBES {
                    return None;
                }
            }
            Some(product)
        }
        (Cond::All(list), false) | (Cond::Any(list), true) => {
            let mut sum = vec![];
            for part in list {
                sum.extend(union(part, positive)?);
                if sum.len() > MAX_CUBES {
                    return None;
                }
            }
            Some(sum)
        }
        // Any packet may meet it, and any may not.
        (Cond::CompareTo(..), _) => None,
        (Cond::Has(header), true) => Some(vec![has(*header)]),
        (Cond::Has(header), false) => has(*header).complement(),
        (Cond::Compare(read, test), true) => Some(compare(*read, test).into_iter().collect()),
        (Cond::Compare(read, test), false) => match compare(*read, test) {
            Some(cube) => cube.complement(),
            None => Some(vec![Cube::default()]),
        },
    }
}

/// A whole field as tables see it.
fn field(field: Field) -> Key {
    key(Read { place: Place::field(field), view: View::Table })
}

fn key(read: Read) -> Key {
    let space = match read.place.space {
        Space::Field(field) => field as u64 + 1,
        Space::Meta => 0,
        Space::Header(header) => 0x1_0000 + u64::from(header),
    };
    let view = u64::from(read.view == View::Action);
    space << 32 | view << 31 | u64::from(read.place.offset) << 8 | u64::from(read.place.width)
}

/// What a header says about types, protocols and tags.
pub fn has(header: Header) -> Cube {
    let eth = |value: u128| (field(Field::EthType), Values::masked(16, value, 0xffff));
    let proto = |value: u128| (field(Field::IpProto), Values::masked(8, value, 0xff));
    let ranges = vec![(0x0800, 0x0800), (0x86dd, 0x86dd)];
    let any = (field(Field::EthType), Values { width: 16, mask: 0, value: 0, ranges });
    let parts = match header {
        Header::Eth => vec![],
        Header::Vlan => vec![(field(Field::VlanTci), Values::masked(16, 0x1000, 0x1000))],
        Header::Arp => vec![eth(0x0806)],
        Header::Rarp => vec![eth(0x8035)],
        Header::Ipv4 => vec![eth(0x0800)],
        Header::Ipv6 => vec![eth(0x86dd)],
        Header::IpAny => vec![any],
        Header::Tcp => vec![any, proto(6)],
        Header::Udp => vec![any, proto(17)],
        Header::Sctp => vec![any, proto(132)],
        Header::Icmp => vec![eth(0x0800), proto(1)],
        Header::Icmpv6 => vec![eth(0x86dd), proto(58)],
        Header::Vlan2 => vec![(field(Field::Vlan2Tci), Values::masked(16, 0x1000, 0x1000))],
        Header::Nd => {
            let kinds = Values { width: 8, mask: 0, value: 0, ranges: vec![(135, 136)] };
            let kind = (field(Field::Icmpv6Type), kinds);
            vec![eth(0x86dd), proto(58), kind, (field(Field::Icmpv6Code), Values::masked(8, 0, 0xff))]
        }
        Header::Declared(header) => {
            let place = Place { space: Space::Header(header), offset: PRESENCE, width: 1 };
            vec![(key(Read { place, view: View::Table }), Values::masked(1, 1, 1))]
        }
    };
    Cube { parts }
}

/// A comparison; none if it never holds.
fn compare(read: Read, test: &Match) -> Option<Cube> {
    let width = read.place.width;
    let part = match test {
        Match::Masked { value, mask } => {
            let (read, shift) = whole(read);
            (key(read), Values::masked(read.place.width, value << shift, mask << shift))
        }
        Match::Range { low, high } => (key(read), Values::ranges(width, vec![(*low, *high)])?),
        Match::In(ranges) => (key(read), Values::ranges(width, ranges.clone())?),
    };
    // A test that is always true says nothing.
    let parts = if part.1.mask == 0 && part.1.ranges.is_empty() { vec![] } else { vec![part] };
    Cube { parts }.consistent()
}

/// The whole field that a place is a slice of, and by how much the slice is shifted; tags are one field.
fn whole(read: Read) -> (Read, u32) {
    let Space::Field(inside) = read.place.space else { return (read, 0) };
    let shift = u32::from(inside.width()).saturating_sub(u32::from(read.place.offset) + u32::from(read.place.width));
    let (outer, shift) = match inside {
        Field::VlanVid => (Field::VlanTci, shift),
        Field::VlanPcp => (Field::VlanTci, shift + 13),
        field => (field, shift),
    };
    (Read { place: Place::field(outer), ..read }, shift)
}

impl Cube {
    /// What both say; none if they contradict each other.
    pub fn and(&self, other: &Cube) -> Option<Cube> {
        let mut parts = Vec::with_capacity(self.parts.len() + other.parts.len());
        let (mut a, mut b) = (self.parts.iter().peekable(), other.parts.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.0 == y.0 => {
                    parts.push((x.0, x.1.and(&y.1)?));
                    a.next();
                    b.next();
                }
                (Some(x), Some(y)) if x.0 > y.0 => parts.extend(b.next().cloned()),
                (Some(_), _) => parts.extend(a.next().cloned()),
                (None, Some(_)) => parts.extend(b.next().cloned()),
                (None, None) => break,
            }
        }
        Cube { parts }.consistent()
    }

    /// This, if its bits of `ct.state` can go together.
    fn consistent(self) -> Option<Cube> {
        let state_key = field(Field::CtState);
        let Some((_, values)) = self.parts.iter().find(|(key, _)| *key == state_key) else { return Some(self) };
        let ones = values.value & values.mask;
        let zeros = values.mask & !values.value;
        let (trk, new, est) = (u128::from(state::TRK), u128::from(state::NEW), u128::from(state::EST));
        let untracked = zeros & trk != 0 && ones & !trk != 0;
        let both = ones & new != 0 && ones & est != 0;
        (!untracked && !both).then_some(self)
    }

    /// Everything else; none if that is too much.
    fn complement(&self) -> Option<Vec<Cube>> {
        let mut out = vec![];
        for (key, values) in &self.parts {
            for values in values.complement() {
                out.extend(Cube { parts: vec![(*key, values)] }.consistent());
            }
        }
        (out.len() <= MAX_CUBES).then_some(out)
    }

    /// What is in this and not in `other`, in pieces that have nothing in common; none if that is too much.
    pub fn without(&self, other: &Cube) -> Option<Vec<Cube>> {
        if self.and(other).is_none() {
            return Some(vec![self.clone()]);
        }
        let mut out = vec![];
        // Inside of `other` in the places before, outside of it in this one.
        let mut inside = self.clone();
        for (key, values) in &other.parts {
            let part = |values: Values| Cube { parts: vec![(*key, values)] };
            for outside in values.complement() {
                out.extend(inside.and(&part(outside)));
            }
            if out.len() > MAX_CUBES {
                return None;
            }
            match inside.and(&part(values.clone())) {
                Some(next) => inside = next,
                None => break,
            }
        }
        Some(out)
    }

    /// Whether every packet in this is certainly in `other`.
    pub fn within(&self, other: &Cube) -> bool {
        other.parts.iter().all(|(key, values)| self.get(*key).is_some_and(|own| own.within(values)))
    }

    /// What is said about a place.
    pub fn get(&self, key: Key) -> Option<&Values> {
        let at = self.parts.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(&self.parts[at].1)
    }

    /// How many ranges it has.
    pub fn ranges(&self) -> usize {
        self.parts.iter().map(|(_, values)| values.size()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(field: Field, value: u128) -> Cond {
        let mask = u128::MAX >> (128 - u32::from(field.width()));
        Cond::Compare(Read { place: Place::field(field), view: View::Table }, Match::Masked { value, mask })
    }

    #[test]
    fn contradictions_have_no_cubes() {
        let tcp = Cond::All(vec![Cond::Has(Header::Tcp), equal(Field::TcpDst, 80)]);
        let udp = Cond::All(vec![Cond::Has(Header::Udp), equal(Field::UdpDst, 53)]);
        assert_eq!(cubes(&Cond::All(vec![tcp.clone(), udp.clone()])), Some(vec![]));
        assert_eq!(cubes(&Cond::Any(vec![tcp.clone(), udp])).map(|c| c.len()), Some(2));
        assert_eq!(cubes(&Cond::All(vec![Cond::Has(Header::Ipv6), equal(Field::EthType, 0x0800)])), Some(vec![]));
        assert_eq!(cubes(&Cond::All(vec![tcp.clone(), Cond::Not(Box::new(Cond::Has(Header::IpAny)))])), Some(vec![]));
        assert_eq!(cubes(&Cond::All(vec![tcp.clone(), Cond::Not(Box::new(tcp))])), Some(vec![]));
    }

    #[test]
    fn a_tag_is_one_field() {
        let vid = Cond::All(vec![Cond::Has(Header::Vlan), equal(Field::VlanVid, 5)]);
        let untagged = equal(Field::VlanTci, 0);
        assert_eq!(cubes(&Cond::All(vec![vid.clone(), untagged])), Some(vec![]));
        let cube = cubes(&vid).expect("one cube");
        let tagged = cubes(&Cond::Has(Header::Vlan)).expect("one cube");
        assert!(cube[0].within(&tagged[0]) && !tagged[0].within(&cube[0]));
    }
}
