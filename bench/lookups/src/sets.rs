//! What is looked up: entries for our structures, the same in the form that DPDK's want, and keys that hit all of them alike.

use std::collections::HashSet;

use pipec_abi::table::{Entry, Kind};

use crate::classbench::{self, Numbers, Order, Rule};

/// What DPDK's structures are built of, and the keys in the form they want.
pub enum Peers {
    /// Rules, and headers of 16 bytes.
    Acl(Vec<Rule>, Vec<u8>),
    /// Keys of so many bytes, and those to look up.
    Hash(usize, Vec<u8>, Vec<u8>),
    /// Prefixes of IPv4, and keys.
    Prefixes(Vec<u32>, Vec<u8>, Vec<u32>),
    /// Prefixes of IPv6, and keys, in network order.
    Prefixes6(Vec<u8>, Vec<u8>, Vec<u8>),
}

/// A set with its trace.
pub struct Set {
    /// Words of a key.
    pub width: usize,
    /// The low half of a value is the place.
    pub entries: Vec<Entry>,
    /// Keys, one behind the other.
    pub keys: Vec<u64>,
    /// Our structures that are for such sets.
    pub kinds: &'static [Kind],
    /// The same for peers.
    pub peers: Peers,
}

/// Makes the set with this name, and a trace of so many keys. Says what is wrong with the name.
pub fn set(name: &str, trace: usize, order: Order, seed: u64) -> Result<Set, String> {
    let wrong = || {
        format!(
            "no set `{name}`; sets are acl-N, fw-N, ipc-N, hash8-N, hash16-N, lpm-N and lpm6-N, N being how many entries; \
             behind acl-N, fw-N and ipc-N may stand @uniform, @pareto, @zipf or @elephants"
        )
    };
    let (plain, order) = match name.split_once('@') {
        Some((plain, order)) => (plain, Order::by_name(order).ok_or_else(wrong)?),
        None => (name, order),
    };
    let (kind, n) = plain.split_once('-').ok_or_else(wrong)?;
    let n: usize = n.parse().ok().filter(|n| (1..=4_000_000).contains(n)).ok_or_else(wrong)?;
    let mut numbers = Numbers(seed ^ 0xbeef);
    match kind {
        "hash8" => Ok(hash(1, n, trace, &mut numbers)),
        "hash16" => Ok(hash(2, n, trace, &mut numbers)),
        "lpm" => Ok(lpm(n, trace, &mut numbers)),
        "lpm6" => Ok(lpm6(n, trace, &mut numbers)),
        _ => {
            let kind = classbench::Kind::by_name(kind).ok_or_else(wrong)?;
            let rules = kind.rules(n, seed);
            let keys = classbench::trace(&rules, trace, order, seed ^ 77);
            Ok(five(rules, keys))
        }
    }
}

/// Rules over five fields.
pub fn five(rules: Vec<Rule>, keys: Vec<u64>) -> Set {
    let entries = rules.iter().enumerate().map(|(place, rule)| rule.entry(place as u64)).collect();
    let header = |key: &[u64]| {
        let mut header = [0u8; 16];
        header[0] = (key[1] >> 32) as u8;
        header[4..8].copy_from_slice(&(key[0] as u32).to_be_bytes());
        header[8..12].copy_from_slice(&((key[0] >> 32) as u32).to_be_bytes());
        header[12..14].copy_from_slice(&(key[1] as u16).to_be_bytes());
        header[14..16].copy_from_slice(&((key[1] >> 16) as u16).to_be_bytes());
        header
    };
    let headers = keys.chunks(2).flat_map(header).collect();
    let kinds = &[Kind::BitVector, Kind::TupleSpace];
    Set { width: 2, entries, keys, kinds, peers: Peers::Acl(rules, headers) }
}

fn hash(width: usize, n: usize, trace: usize, numbers: &mut Numbers) -> Set {
    let mut seen = HashSet::new();
    let mut entries: Vec<Entry> = Vec::with_capacity(n);
    while entries.len() < n {
        let key: Vec<u64> = (0..width).map(|_| numbers.number() << 16 ^ numbers.number()).collect();
        if seen.insert(key.clone()) {
            let value = entries.len() as u64;
            entries.push(Entry { mask: vec![u64::MAX; width], key, ranges: vec![], value });
        }
    }
    let keys: Vec<u64> = (0..trace).flat_map(|_| entries[numbers.below(n as u64) as usize].key.clone()).collect();
    let bytes = |words: &mut dyn Iterator<Item = u64>| words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>();
    let all = bytes(&mut entries.iter().flat_map(|entry| entry.key.iter().copied()));
    let peers = Peers::Hash(8 * width, all, bytes(&mut keys.iter().copied()));
    Set { width, entries, keys, kinds: &[Kind::Hash], peers }
}

/// Prefixes with the lengths of a full table of the Internet, roughly.
fn lpm(n: usize, trace: usize, numbers: &mut Numbers) -> Set {
    let mut prefixes = HashSet::new();
    while prefixes.len() < n {
        let len = match numbers.below(100) {
            0..58 => 24,
            58..78 => 22 + numbers.below(2),
            78..97 => 16 + numbers.below(6),
            97..98 => 8 + numbers.below(8),
            _ => 25 + numbers.below(8),
        } as u8;
        let address = (0x0100_0000 + numbers.below(0xdf00_0000)) as u32 & (u32::MAX << (32 - len));
        prefixes.insert((address, len));
    }
    let mut prefixes: Vec<(u32, u8)> = prefixes.into_iter().collect();
    prefixes.sort_unstable_by_key(|&(address, len)| (std::cmp::Reverse(len), address));
    let entry = |(place, &(address, len)): (usize, &(u32, u8))| Entry {
        mask: vec![u64::from(u32::MAX << (32 - len))],
        key: vec![address.into()],
        ranges: vec![],
        value: place as u64,
    };
    let entries = prefixes.iter().enumerate().map(entry).collect();
    let key = |_| {
        let (address, len) = prefixes[numbers.below(n as u64) as usize];
        address | if len == 32 { 0 } else { numbers.number() as u32 & (u32::MAX >> len) }
    };
    let keys: Vec<u32> = (0..trace).map(key).collect();
    let (addresses, lengths) = prefixes.iter().copied().unzip();
    let words = keys.iter().map(|&key| key.into()).collect();
    Set { width: 1, entries, keys: words, kinds: &[Kind::Lpm], peers: Peers::Prefixes(addresses, lengths, keys) }
}

fn lpm6(n: usize, trace: usize, numbers: &mut Numbers) -> Set {
    let mut prefixes = HashSet::new();
    let mut sites: Vec<u128> = Vec::new();
    while prefixes.len() < n {
        let len = match numbers.below(100) {
            0..46 => 48,
            46..60 => 32,
            60..75 => 36 + 4 * numbers.below(3),
            75..90 => 33 + numbers.below(15),
            90..94 => 29 + numbers.below(3),
            94..98 => 49 + numbers.below(16),
            _ => 65 + numbers.below(64),
        } as u8;
        // Half of all lie below a /32 that was there before.
        let network = if sites.is_empty() || numbers.below(2) == 0 {
            let new = 0x2000u128 << 112 | u128::from(numbers.below(1 << 29)) << 96;
            sites.push(new);
            new
        } else {
            sites[numbers.below(sites.len() as u64) as usize]
        };
        let below = u128::from(numbers.number() << 20 ^ numbers.number()) << 32 | u128::from(numbers.number() as u32);
        let address = (network | below & (u128::MAX >> 32)) & (u128::MAX << (128 - len));
        prefixes.insert((address, len));
    }
    let mut prefixes: Vec<(u128, u8)> = prefixes.into_iter().collect();
    prefixes.sort_unstable_by_key(|&(address, len)| (std::cmp::Reverse(len), address));
    let words = |value: u128| vec![value as u64, (value >> 64) as u64];
    let entry = |(place, &(address, len)): (usize, &(u128, u8))| Entry {
        mask: words(u128::MAX << (128 - len)),
        key: words(address),
        ranges: vec![],
        value: place as u64,
    };
    let entries = prefixes.iter().enumerate().map(entry).collect();
    let key = |_| {
        let (address, len) = prefixes[numbers.below(n as u64) as usize];
        let low = u128::from(numbers.number()) << 64 | u128::from(numbers.number() << 16);
        address | if len == 128 { 0 } else { low & (u128::MAX >> len) }
    };
    let keys: Vec<u128> = (0..trace).map(key).collect();
    let addresses = prefixes.iter().flat_map(|(address, _)| address.to_be_bytes()).collect();
    let lengths = prefixes.iter().map(|(_, len)| *len).collect();
    let network = keys.iter().flat_map(|key| key.to_be_bytes()).collect();
    let keys = keys.iter().flat_map(|&key| words(key)).collect();
    Set { width: 2, entries, keys, kinds: &[Kind::Lpm6], peers: Peers::Prefixes6(addresses, lengths, network) }
}

#[cfg(test)]
mod tests {
    use pipec_abi::table::{Costs, choose, name};

    use super::*;

    fn chosen(set_name: &str) -> &'static str {
        let set = set(set_name, 32, Order::Uniform, 1).expect("a set of this name");
        name(choose(set.width, &set.entries, &Costs::default()).kind)
    }

    #[test]
    fn every_set_gets_the_structure_that_measures_best() {
        for (set, kind) in [
            ("acl-100", "bit-vector"),
            ("fw-100", "bit-vector"),
            ("ipc-100", "bit-vector"),
            ("acl-1000", "bit-vector"),
            ("fw-1000", "bit-vector"),
            ("acl-10000", "bit-vector"),
            ("ipc-10000", "bit-vector"),
            ("acl-50000", "tuple-space"),
            ("hash8-1000", "hash"),
            ("hash16-20000", "hash"),
            ("lpm-1000", "lpm"),
            ("lpm6-1000", "lpm6"),
        ] {
            assert_eq!(chosen(set), kind, "{set}");
        }
    }
}
