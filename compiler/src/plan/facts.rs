//! What is known about a packet at a point of its path, before it runs: bits of fields, values excluded, ranges.
//!
//! Conditions are simplified under facts, so that nothing is tested twice on a path and what one test says about another
//! (`ip` holds, so `arp` does not) costs nothing at run time.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::field::{Field, Header};
use crate::hir::{Cond, Match, PRESENCE, Place, Read, Space, View};

/// A test on one place: what conditions consist of once headers are spelled out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Atom {
    /// What is read.
    pub read: Read,
    /// What it is held against.
    pub test: Match,
}

/// What a condition comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It depends on this, which is simpler.
    Open(Cond),
}

/// Facts about one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fact {
    /// Bits that are known, and their values.
    mask: u128,
    value: u128,
    /// (value, mask) that it does not match.
    not: Vec<(u128, u128)>,
    /// Other tests whose result is known.
    tests: Vec<(Match, bool)>,
}

/// What is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    facts: BTreeMap<Key, Fact>,
    /// Words of variables: bits that are known, and their values.
    vars: BTreeMap<u16, (u64, u64)>,
    /// How many ports there are: the values of `in_port`.
    pub ports: u16,
    /// Their OpenFlow numbers, where they are needed.
    pub numbers: Rc<[u32]>,
}

/// A read in an order.
type Key = (u8, u16, u16, u8, u8);

fn key(read: &Read) -> Key {
    let (space, field) = match read.place.space {
        Space::Field(field) => (0, field as u16),
        Space::Meta => (1, 0),
        Space::Header(header) => (2, header),
    };
    (space, field, read.place.offset, read.place.width, canonical_view(read) as u8)
}

/// The view of a read, where views differ: transport fields and `in_port`.
pub fn canonical_view(read: &Read) -> View {
    match read.place.space {
        Space::Field(Field::InPort | Field::InPortNumber) => read.view,
        Space::Field(field) if is_transport(field) => read.view,
        _ => View::Table,
    }
}

/// Whether a field is of a transport header: in fragments, tables see it as 0.
pub fn is_transport(field: Field) -> bool {
    matches!(
        field.header(),
        Some(Header::Tcp | Header::Udp | Header::Sctp | Header::Icmp | Header::Icmpv6 | Header::Nd)
    )
}

/// All ones of a width.
pub fn ones(width: u8) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

impl Facts {
    /// Nothing is known but the number of ports.
    pub fn new(ports: usize) -> Facts {
        Facts { ports: ports as u16, ..Facts::default() }
    }

    /// Nothing is known but the ports.
    pub fn of_ports(numbers: Rc<[u32]>) -> Facts {
        Facts { numbers: numbers.clone(), ..Facts::new(numbers.len()) }
    }

    /// The value of a read, if every bit is known.
    pub fn constant(&self, read: &Read) -> Option<u128> {
        if let Some(fact) = self.facts.get(&key(read)).filter(|fact| fact.mask == ones(read.place.width)) {
            return Some(fact.value);
        }
        self.variable(&read.place)
    }

    /// The value of a slice of the variables, if every bit is known.
    fn variable(&self, place: &Place) -> Option<u128> {
        if place.space != Space::Meta || self.vars.is_empty() {
            return None;
        }
        let mut value = 0;
        for (word, bits) in words_of(place) {
            let (mask, known) = *self.vars.get(&word)?;
            if mask & bits != bits {
                return None;
            }
            value = value << bits.count_ones() | u128::from((known & bits) >> bits.trailing_zeros());
        }
        Some(value)
    }

    /// Variables of a packet that begins: all are 0.
    pub fn no_variables_set(&mut self, words: u16) {
        self.vars = (0..words).map(|word| (word, (u64::MAX, 0))).collect();
    }

    /// A slice of the variables was written: with this, or with what is not known.
    pub fn write_variable(&mut self, place: &Place, value: Option<u128>) {
        let mut left = place.width;
        for (word, bits) in words_of(place) {
            left -= bits.count_ones() as u8;
            let (mask, known) = self.vars.entry(word).or_default();
            match value {
                Some(value) => {
                    *mask |= bits;
                    *known = *known & !bits | ((value >> left) as u64) << bits.trailing_zeros() & bits;
                }
                None => *mask &= !bits,
            }
        }
    }

    /// From here on `read` is `value`.
    pub fn set(&mut self, read: &Read, value: u128) {
        let mask = ones(read.place.width);
        self.facts.insert(key(read), Fact { mask, value: value & mask, ..Fact::default() });
    }

    /// From here on these bits of `read` are known.
    pub fn set_bits(&mut self, read: &Read, value: u128, mask: u128) {
        let fact = self.facts.entry(key(read)).or_default();
        fact.mask |= mask;
        fact.value = fact.value & !mask | value & mask;
    }

    /// Nothing is known any more of reads that `gone` names.
    pub fn forget(&mut self, gone: impl Fn(&Space) -> bool) {
        if gone(&Space::Meta) {
            self.vars.clear();
        }
        self.forget_tests(gone);
    }

    /// What tests said of reads that `gone` names is not known any more.
    pub fn forget_tests(&mut self, gone: impl Fn(&Space) -> bool) {
        self.facts.retain(|key, _| {
            !gone(&match key.0 {
                0 => Space::Field(Field::ALL[usize::from(key.1)]),
                1 => Space::Meta,
                _ => Space::Header(key.1),
            })
        });
    }

    /// Takes the result of a test as known.
    pub fn learn(&mut self, atom: &Atom, holds: bool) {
        let width = ones(atom.read.place.width);
        let ports = self.ports;
        let fact = self.facts.entry(key(&atom.read)).or_default();
        match atom.test {
            Match::Masked { value, mask } if holds => {
                fact.mask |= mask;
                fact.value = fact.value & !mask | value;
            }
            Match::Masked { value, mask } if mask.count_ones() == 1 => {
                fact.mask |= mask;
                fact.value = fact.value & !mask | (!value & mask);
            }
            Match::Masked { value, mask } => fact.not.push((value, mask)),
            _ => fact.tests.push((atom.test.clone(), holds)),
        }
        // The last port left is the one.
        if atom.read.place.space == Space::Field(Field::InPort) && fact.mask != width {
            let mut left = (0..ports).filter(|&p| !fact.not.contains(&(u128::from(p), width)));
            if let (Some(port), None) = (left.next(), left.next()) {
                fact.mask = width;
                fact.value = u128::from(port);
            }
        }
    }

    /// Takes the result of a condition as known, if it is a single test.
    pub fn learn_test(&mut self, cond: &Cond, holds: bool) {
        if let Cond::Compare(read, test) = cond {
            self.learn(&Atom { read: *read, test: test.clone() }, holds);
        }
    }

    /// Takes what a condition surely says as known.
    pub fn learn_all(&mut self, cond: &Cond) {
        match cond {
            Cond::All(parts) => parts.iter().for_each(|part| self.learn_all(part)),
            Cond::Has(header) => self.learn_all(&spell_out(*header)),
            test => self.learn_test(test, true),
        }
    }

    /// What a test comes to; open, it may have become simpler.
    fn test(&self, atom: &Atom) -> Known {
        if let Some(value) = self.variable(&atom.read.place) {
            return known(matches(&atom.test, value));
        }
        let Some(fact) = self.facts.get(&key(&atom.read)) else { return open(atom) };
        if let Some((_, holds)) = fact.tests.iter().find(|(test, _)| *test == atom.test) {
            return known(*holds);
        }
        match &atom.test {
            Match::Masked { value, mask } => {
                if (fact.value ^ value) & fact.mask & mask != 0 {
                    return Known::False;
                }
                // Whatever matches this matches something excluded.
                let sure_mask = fact.mask | mask;
                let sure_value = fact.value & fact.mask | value;
                if fact.not.iter().any(|&(v, m)| m & !sure_mask == 0 && sure_value & m == v) {
                    return Known::False;
                }
                let mask = mask & !fact.mask;
                if mask == 0 {
                    return Known::True;
                }
                open(&Atom { read: atom.read, test: Match::Masked { value: value & mask, mask } })
            }
            test => match self.constant(&atom.read) {
                Some(value) => known(matches(test, value)),
                None => open(atom),
            },
        }
    }

    /// What a condition comes to.
    pub fn simplify(&self, cond: &Cond) -> Known {
        match cond {
            Cond::True => Known::True,
            Cond::Has(header) => self.simplify(&spell_out(*header)),
            Cond::Compare(read, test) => self.test(&Atom { read: *read, test: test.clone() }),
            Cond::Not(inner) => match self.simplify(inner) {
                Known::True => Known::False,
                Known::False => Known::True,
                Known::Open(cond) => Known::Open(Cond::Not(Box::new(cond))),
            },
            Cond::All(parts) => self.join(parts, &Known::False, Cond::All),
            Cond::Any(parts) => self.join(parts, &Known::True, Cond::Any),
            Cond::CompareTo(..) => Known::Open(cond.clone()),
        }
    }

    /// The parts of an `all` or `any`: one that is `decisive` decides, its opposite drops out.
    fn join(&self, parts: &[Cond], decisive: &Known, make: fn(Vec<Cond>) -> Cond) -> Known {
        let mut left = Vec::new();
        for part in parts {
            match self.simplify(part) {
                Known::Open(cond) => left.push(cond),
                result if result == *decisive => return result,
                _ => {}
            }
        }
        match left.len() {
            0 if *decisive == Known::True => Known::False,
            0 => Known::True,
            1 => Known::Open(left.remove(0)),
            _ => Known::Open(make(left)),
        }
    }
}

/// The words that a slice of the variables lies in, each with its bits; words are numbered from 0, bits of a word from the most
/// significant.
fn words_of(place: &Place) -> impl Iterator<Item = (u16, u64)> {
    let (from, to) = (u32::from(place.offset), u32::from(place.offset) + u32::from(place.width));
    (from / 64..to.div_ceil(64)).map(move |word| {
        let (first, end) = (from.max(word * 64) - word * 64, to.min(word * 64 + 64) - word * 64);
        (word as u16, (u64::MAX >> first) & (u64::MAX << (64 - end)))
    })
}

fn known(holds: bool) -> Known {
    if holds { Known::True } else { Known::False }
}

fn open(atom: &Atom) -> Known {
    Known::Open(Cond::Compare(atom.read, atom.test.clone()))
}

/// Whether a value passes a test.
pub fn matches(test: &Match, value: u128) -> bool {
    match test {
        Match::Masked { value: want, mask } => value & mask == *want,
        Match::Range { low, high } => (*low..=*high).contains(&value),
        Match::In(ranges) => ranges.iter().any(|(low, high)| (*low..=*high).contains(&value)),
    }
}

/// The presence of a header as tests on fields.
pub fn spell_out(header: Header) -> Cond {
    let is = |field: Field, value: u128| {
        let read = Read { place: Place::field(field), view: View::Table };
        Cond::Compare(read, Match::Masked { value, mask: ones(field.width()) })
    };
    let ipv4 = || is(Field::EthType, 0x0800);
    let ipv6 = || is(Field::EthType, 0x86dd);
    let ip = || Cond::Any(vec![ipv4(), ipv6()]);
    match header {
        Header::Eth => Cond::True,
        Header::Vlan => Cond::Compare(
            Read { place: Place::field(Field::VlanTci), view: View::Table },
            Match::Masked { value: 0x1000, mask: 0x1000 },
        ),
        Header::Arp => is(Field::EthType, 0x0806),
        Header::Rarp => is(Field::EthType, 0x8035),
        Header::Ipv4 => ipv4(),
        Header::Ipv6 => ipv6(),
        Header::IpAny => ip(),
        Header::Tcp => Cond::All(vec![ip(), is(Field::IpProto, 6)]),
        Header::Udp => Cond::All(vec![ip(), is(Field::IpProto, 17)]),
        Header::Sctp => Cond::All(vec![ip(), is(Field::IpProto, 132)]),
        Header::Icmp => Cond::All(vec![ipv4(), is(Field::IpProto, 1)]),
        Header::Icmpv6 => Cond::All(vec![ipv6(), is(Field::IpProto, 58)]),
        Header::Vlan2 => Cond::Compare(
            Read { place: Place::field(Field::Vlan2Tci), view: View::Table },
            Match::Masked { value: 0x1000, mask: 0x1000 },
        ),
        Header::Nd => {
            let kinds = Cond::Any(vec![is(Field::Icmpv6Type, 135), is(Field::Icmpv6Type, 136)]);
            Cond::All(vec![ipv6(), is(Field::IpProto, 58), kinds, is(Field::Icmpv6Code, 0)])
        }
        Header::Declared(header) => Cond::Compare(presence(header), Match::Masked { value: 1, mask: 1 }),
    }
}

/// The bit that says that a declared header is present.
pub fn presence(header: u16) -> Read {
    Read { place: Place { space: Space::Header(header), offset: PRESENCE, width: 1 }, view: View::Table }
}

/// The first test that an open condition makes.
pub fn first_atom(cond: &Cond) -> Option<Atom> {
    match cond {
        Cond::Compare(read, test) => Some(Atom { read: *read, test: test.clone() }),
        Cond::Not(inner) => first_atom(inner),
        Cond::All(parts) | Cond::Any(parts) => parts.iter().find_map(first_atom),
        Cond::True | Cond::Has(_) | Cond::CompareTo(..) => None,
    }
}

/// Whether it holds two places against each other: such a test is no atom, and what it says of others is not known.
pub fn is_opaque(cond: &Cond) -> bool {
    match cond {
        Cond::CompareTo(..) => true,
        Cond::Not(inner) => is_opaque(inner),
        Cond::All(parts) | Cond::Any(parts) => parts.iter().any(is_opaque),
        Cond::True | Cond::Has(_) | Cond::Compare(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(field: Field, value: u128, mask: u128) -> Cond {
        Cond::Compare(Read { place: Place::field(field), view: View::Table }, Match::Masked { value, mask })
    }

    fn learn(facts: &mut Facts, cond: &Cond, holds: bool) {
        facts.learn(&first_atom(cond).expect("a test"), holds);
    }

    #[test]
    fn one_ethernet_type_excludes_another() {
        let mut facts = Facts::new(2);
        learn(&mut facts, &spell_out(Header::Ipv4), true);
        assert_eq!(facts.simplify(&Cond::Has(Header::Arp)), Known::False);
        assert_eq!(facts.simplify(&Cond::Has(Header::Ipv4)), Known::True);
        assert_eq!(facts.simplify(&Cond::Has(Header::IpAny)), Known::True);
    }

    #[test]
    fn the_last_port_left_is_known() {
        let mut facts = Facts::new(2);
        learn(&mut facts, &compare(Field::InPort, 0, 0xffff), false);
        assert_eq!(facts.simplify(&compare(Field::InPort, 1, 0xffff)), Known::True);
    }

    #[test]
    fn known_bits_leave_the_rest_of_a_mask() {
        let mut facts = Facts::new(2);
        facts.set_bits(&Read { place: Place::field(Field::CtState), view: View::Table }, 0x20, 0x20);
        assert_eq!(facts.simplify(&compare(Field::CtState, 0x21, 0x21)), Known::Open(compare(Field::CtState, 1, 1)));
        assert_eq!(facts.simplify(&compare(Field::CtState, 0, 0x20)), Known::False);
    }

    #[test]
    fn what_is_excluded_excludes_what_is_narrower() {
        let mut facts = Facts::new(2);
        learn(&mut facts, &compare(Field::Ipv4Dst, 0x0a00_0000, 0xff00_0000), false);
        assert_eq!(facts.simplify(&compare(Field::Ipv4Dst, 0x0a01_0000, 0xffff_0000)), Known::False);
        assert!(matches!(facts.simplify(&compare(Field::Ipv4Dst, 0x0b00_0000, 0xff00_0000)), Known::Open(_)));
    }
}
