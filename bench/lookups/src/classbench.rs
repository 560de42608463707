//! Rule sets over five fields as they are met in the field, from a seed: access lists, firewalls, and chains of ipchains.
//!
//! The kinds, and what tells them apart, are those of ClassBench (Taylor, Turner: ClassBench: A Packet Classification Benchmark,
//! 2005): how long prefixes are, how they nest, which classes ports fall into (any, 1,024 and above, below, a range, one), and
//! how often each protocol is named. The figures here are our own, rough, in hundredths. Never: ClassBench's seed files.

use pipec_abi::table::{Entry, Range};

/// A cheap sequence of numbers.
pub struct Numbers(pub u64);

impl Numbers {
    /// The next one.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// One below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// One of the choices, by their weights.
    fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut at = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if at < *weight {
                return *choice;
            }
            at -= weight;
        }
        choices[0].1
    }
}

/// A rule; the first that matches counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Source address, 0 outside its prefix.
    pub src: u32,
    /// Bits of the prefix.
    pub src_len: u8,
    /// Destination address.
    pub dst: u32,
    /// Bits of the prefix.
    pub dst_len: u8,
    /// Source ports, from and to.
    pub sport: (u16, u16),
    /// Destination ports.
    pub dport: (u16, u16),
    /// Protocol, if one is named.
    pub proto: Option<u8>,
}

/// Kinds of sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Access lists: source ports hardly ever named, long destinations.
    Acl,
    /// Firewalls: many wildcards, ports on both sides.
    Fw,
    /// ipchains: a mix of both.
    Ipc,
}

/// Classes of ports.
#[derive(Clone, Copy)]
enum Ports {
    Any,
    High,
    Low,
    Arbitrary,
    One,
}

/// Figures of a kind: weights of prefix lengths, of classes of ports, and of protocols.
struct Figures {
    src: &'static [(u64, (u8, u8))],
    dst: &'static [(u64, (u8, u8))],
    sport: &'static [(u64, Ports)],
    dport: &'static [(u64, Ports)],
    proto: &'static [(u64, Option<u8>)],
    /// How many hundredths of prefixes lie in, or beside, one that was there before.
    nested: u64,
}

const ACL: Figures = Figures {
    src: &[(8, (0, 0)), (4, (8, 15)), (14, (16, 23)), (28, (24, 24)), (16, (25, 31)), (30, (32, 32))],
    dst: &[(2, (0, 0)), (2, (8, 15)), (12, (16, 23)), (20, (24, 24)), (19, (25, 31)), (45, (32, 32))],
    sport: &[(98, Ports::Any), (1, Ports::High), (1, Ports::One)],
    dport: &[(30, Ports::Any), (4, Ports::High), (1, Ports::Low), (12, Ports::Arbitrary), (53, Ports::One)],
    proto: &[(75, Some(6)), (12, Some(17)), (4, Some(1)), (9, None)],
    nested: 85,
};

const FW: Figures = Figures {
    src: &[(40, (0, 0)), (5, (8, 15)), (15, (16, 23)), (15, (24, 24)), (5, (25, 31)), (20, (32, 32))],
    dst: &[(20, (0, 0)), (3, (8, 15)), (12, (16, 23)), (18, (24, 24)), (12, (25, 31)), (35, (32, 32))],
    sport: &[(62, Ports::Any), (12, Ports::High), (1, Ports::Low), (5, Ports::Arbitrary), (20, Ports::One)],
    dport: &[(30, Ports::Any), (10, Ports::High), (2, Ports::Low), (8, Ports::Arbitrary), (50, Ports::One)],
    proto: &[(52, Some(6)), (28, Some(17)), (5, Some(1)), (2, Some(47)), (13, None)],
    nested: 70,
};

const IPC: Figures = Figures {
    src: &[(15, (0, 0)), (6, (8, 15)), (15, (16, 23)), (22, (24, 24)), (12, (25, 31)), (30, (32, 32))],
    dst: &[(12, (0, 0)), (6, (8, 15)), (15, (16, 23)), (22, (24, 24)), (12, (25, 31)), (33, (32, 32))],
    sport: &[(70, Ports::Any), (6, Ports::High), (1, Ports::Low), (5, Ports::Arbitrary), (18, Ports::One)],
    dport: &[(45, Ports::Any), (6, Ports::High), (1, Ports::Low), (8, Ports::Arbitrary), (40, Ports::One)],
    proto: &[(50, Some(6)), (25, Some(17)), (6, Some(1)), (2, Some(50)), (17, None)],
    nested: 80,
};

/// Ports that are named most.
const WELL_KNOWN: [u16; 20] =
    [80, 443, 53, 22, 25, 21, 110, 143, 161, 123, 3306, 5432, 8080, 389, 445, 139, 1433, 1521, 5060, 6000];
/// Ranges that are named most.
const USUAL: [(u16, u16); 8] =
    [(135, 139), (6000, 6063), (20, 21), (67, 68), (1645, 1646), (5000, 5100), (32_768, 61_000), (16_384, 32_767)];

impl Kind {
    /// The kind with this name.
    pub fn by_name(name: &str) -> Option<Kind> {
        [("acl", Kind::Acl), ("fw", Kind::Fw), ("ipc", Kind::Ipc)].iter().find(|(n, _)| *n == name).map(|(_, k)| *k)
    }

    /// `n` different rules, those that say more mostly before those that say less.
    pub fn rules(self, n: usize, seed: u64) -> Vec<Rule> {
        let figures = match self {
            Kind::Acl => &ACL,
            Kind::Fw => &FW,
            Kind::Ipc => &IPC,
        };
        let mut numbers = Numbers(seed ^ 0x9e37_79b9_7f4a_7c15 ^ n as u64);
        let (mut sources, mut destinations) = (Vec::new(), Vec::new());
        let mut seen = std::collections::HashSet::new();
        let mut rules = Vec::with_capacity(n);
        while rules.len() < n {
            let (src, src_len) = prefix(&mut numbers, figures.src, &mut sources, figures.nested, n);
            let (dst, dst_len) = prefix(&mut numbers, figures.dst, &mut destinations, figures.nested, n);
            let proto = numbers.weighted(figures.proto);
            let has_ports = matches!(proto, Some(6 | 17) | None);
            let mut ports = |classes| if has_ports { ports(&mut numbers, classes) } else { (0, u16::MAX) };
            let (sport, dport) = (ports(figures.sport), ports(figures.dport));
            let rule = Rule { src, src_len, dst, dst_len, sport, dport, proto };
            if seen.insert(rule) {
                rules.push(rule);
            }
        }
        let mut keyed: Vec<(i64, Rule)> =
            rules.into_iter().map(|rule| (numbers.below(24) as i64 - i64::from(rule.says()), rule)).collect();
        keyed.sort_by_key(|(key, _)| *key);
        keyed.into_iter().map(|(_, rule)| rule).collect()
    }
}

/// A prefix: new, or beside or inside one that is there, so that prefixes share beginnings as networks do.
fn prefix(
    numbers: &mut Numbers,
    lengths: &[(u64, (u8, u8))],
    known: &mut Vec<u32>,
    nested: u64,
    n: usize,
) -> (u32, u8) {
    let (least, most) = numbers.weighted(lengths);
    let len = least + numbers.below(u64::from(most - least) + 1) as u8;
    if len == 0 {
        return (0, 0);
    }
    let mask = u32::MAX << (32 - len);
    let reuse = !known.is_empty() && (numbers.below(100) < nested || known.len() > n);
    let address = if reuse {
        // Earlier ones are met more often.
        let at = numbers.below(known.len() as u64).min(numbers.below(known.len() as u64));
        let keep = numbers.weighted(&[(40, 32), (30, 24), (20, 20), (10, 12)]);
        let noise = if keep == 32 { 0 } else { numbers.number() as u32 & (u32::MAX >> keep) };
        known[at as usize] ^ noise
    } else {
        // Unicast, a third of it private.
        match numbers.below(3) {
            0 => 0x0a00_0000 | numbers.number() as u32 & 0x00ff_ffff,
            _ => 0x0b00_0000 + (numbers.number() as u32 % 0xd000_0000),
        }
    };
    known.push(address);
    (address & mask, len)
}

fn ports(numbers: &mut Numbers, classes: &[(u64, Ports)]) -> (u16, u16) {
    match numbers.weighted(classes) {
        Ports::Any => (0, u16::MAX),
        Ports::High => (1024, u16::MAX),
        Ports::Low => (0, 1023),
        Ports::Arbitrary if numbers.below(10) < 7 => USUAL[numbers.below(USUAL.len() as u64) as usize],
        Ports::Arbitrary => {
            let low = numbers.below(60_000) as u16;
            (low, low.saturating_add(1 + numbers.below(4000) as u16))
        }
        Ports::One if numbers.below(10) < 8 => {
            let at = numbers.below(WELL_KNOWN.len() as u64).min(numbers.below(WELL_KNOWN.len() as u64));
            (WELL_KNOWN[at as usize], WELL_KNOWN[at as usize])
        }
        Ports::One => {
            let port = numbers.below(65_536) as u16;
            (port, port)
        }
    }
}

impl Rule {
    /// How much it says, in bits.
    fn says(&self) -> u32 {
        let ports = |(low, high): (u16, u16)| (high - low).leading_zeros();
        let addresses = u32::from(self.src_len) + u32::from(self.dst_len);
        addresses + ports(self.sport) + ports(self.dport) + if self.proto.is_some() { 8 } else { 0 }
    }

    /// As an entry over two words: both addresses; both ports and the protocol.
    pub fn entry(&self, place: u64) -> Entry {
        let mask = |len: u8| if len == 0 { 0 } else { u64::from(u32::MAX << (32 - len)) };
        let mut entry = Entry {
            mask: vec![mask(self.src_len) | mask(self.dst_len) << 32, 0],
            key: vec![u64::from(self.src) | u64::from(self.dst) << 32, 0],
            ranges: vec![],
            value: place,
        };
        for ((low, high), shift) in [(self.sport, 0), (self.dport, 16)] {
            if low == high {
                entry.mask[1] |= 0xffff << shift;
                entry.key[1] |= u64::from(low) << shift;
            } else if (low, high) != (0, u16::MAX) {
                entry.ranges.push(Range { word: 1, shift, width: 16, low: low.into(), high: high.into() });
            }
        }
        if let Some(proto) = self.proto {
            entry.mask[1] |= 0xff << 32;
            entry.key[1] |= u64::from(proto) << 32;
        }
        entry
    }

    /// A key that it matches.
    pub fn key(&self, numbers: &mut Numbers) -> [u64; 2] {
        let mut address = |address: u32, len: u8| {
            let host = if len == 32 { 0 } else { numbers.number() as u32 & (u32::MAX >> len) };
            u64::from(address | host)
        };
        let addresses = address(self.src, self.src_len) | address(self.dst, self.dst_len) << 32;
        let mut port = |(low, high): (u16, u16)| u64::from(low) + numbers.below(u64::from(high - low) + 1);
        let ports = port(self.sport) | port(self.dport) << 16;
        let proto = self.proto.unwrap_or_else(|| numbers.weighted(&[(7, 6), (3, 17)]));
        [addresses, ports | u64::from(proto) << 32]
    }
}

/// How often rules are met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All alike.
    Uniform,
    /// A few often and most seldom, by Pareto's law with the shape 1, and packets in trains.
    Pareto,
    /// Of some thousand flows the second is met half as often as the first, the third a third as often, and so on (Zipf's law):
    /// the same keys come again and again.
    Zipf,
    /// Nine of ten packets are of four flows, the others are all alike.
    Elephants,
}

impl Order {
    /// The order with this name.
    pub fn by_name(name: &str) -> Option<Order> {
        match name {
            "uniform" => Some(Order::Uniform),
            "pareto" => Some(Order::Pareto),
            "zipf" => Some(Order::Zipf),
            "elephants" => Some(Order::Elephants),
            _ => None,
        }
    }
}

/// Flows that are met by Zipf's law.
const FLOWS: usize = 4096;

/// Of so many packets this many are of a few flows.
const ELEPHANTS: (u64, u64, usize) = (10, 9, 4);

fn elephants(rules: &[Rule], n: usize, numbers: &mut Numbers) -> Vec<u64> {
    let (of, heavy, flows) = ELEPHANTS;
    let any = |numbers: &mut Numbers| rules[numbers.below(rules.len() as u64) as usize].key(numbers);
    let flows: Vec<[u64; 2]> = (0..flows).map(|_| any(numbers)).collect();
    let mut keys = Vec::with_capacity(2 * n);
    for _ in 0..n {
        let is_heavy = numbers.below(of) < heavy;
        keys.extend(if is_heavy { flows[numbers.below(flows.len() as u64) as usize] } else { any(numbers) });
    }
    keys
}

fn zipf(rules: &[Rule], n: usize, numbers: &mut Numbers) -> Vec<u64> {
    let flows: Vec<[u64; 2]> =
        (0..FLOWS).map(|_| rules[numbers.below(rules.len() as u64) as usize].key(numbers)).collect();
    let mut sum = 0.0;
    let up_to: Vec<f64> = (1..=FLOWS)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let mut keys = Vec::with_capacity(2 * n);
    for _ in 0..n {
        let at = numbers.below(1 << 32) as f64 / (1u64 << 32) as f64 * sum;
        keys.extend(flows[up_to.partition_point(|up_to| *up_to <= at).min(FLOWS - 1)]);
    }
    keys
}

/// Keys that match rules chosen in this order.
pub fn trace(rules: &[Rule], n: usize, order: Order, seed: u64) -> Vec<u64> {
    let mut numbers = Numbers(seed | 1);
    match order {
        Order::Zipf => return zipf(rules, n, &mut numbers),
        Order::Elephants => return elephants(rules, n, &mut numbers),
        Order::Uniform | Order::Pareto => {}
    }
    let mut keys = Vec::with_capacity(2 * n);
    while keys.len() < 2 * n {
        let (at, train) = match order {
            Order::Uniform | Order::Zipf | Order::Elephants => (numbers.below(rules.len() as u64) as usize, 1),
            Order::Pareto => {
                // Places of rules by how often they are met are scattered over the set.
                let share = (1 + numbers.below(1 << 20)) as f64 / f64::from(1 << 20);
                let rank = (1.0 / share - 1.0) as u64;
                let at = rank.wrapping_mul(0x9e37_79b9) % rules.len() as u64;
                (at as usize, 1 + numbers.below(4))
            }
        };
        let key = rules[at].key(&mut numbers);
        for _ in 0..train {
            keys.extend(key);
        }
    }
    keys.truncate(2 * n);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_match_the_rules_they_were_made_for() {
        for kind in [Kind::Acl, Kind::Fw, Kind::Ipc] {
            let rules = kind.rules(500, 1);
            assert_eq!(rules, kind.rules(500, 1));
            assert_eq!(rules.len(), 500);
            let mut numbers = Numbers(3);
            for rule in &rules {
                let key = rule.key(&mut numbers);
                assert!(rule.entry(0).holds(&key), "{rule:?} {key:x?}");
            }
            for order in [Order::Uniform, Order::Pareto, Order::Zipf, Order::Elephants] {
                let entries: Vec<Entry> = rules.iter().map(|rule| rule.entry(0)).collect();
                let trace = trace(&rules, 300, order, 7);
                assert_eq!(trace.len(), 600);
                assert!(trace.chunks(2).all(|key| entries.iter().any(|entry| entry.holds(key))));
            }
        }
    }

    #[test]
    fn kinds_differ_as_they_should() {
        let share = |kind: Kind, of: fn(&Rule) -> bool| {
            let rules = kind.rules(2000, 5);
            rules.iter().filter(|rule| of(rule)).count() as f64 / 2000.0
        };
        assert!(share(Kind::Acl, |r| r.sport == (0, u16::MAX)) > 0.9);
        assert!(share(Kind::Fw, |r| r.src_len == 0) > share(Kind::Acl, |r| r.src_len == 0) + 0.2);
        assert!(share(Kind::Ipc, |r| r.proto.is_none()) > share(Kind::Acl, |r| r.proto.is_none()));
    }
}
