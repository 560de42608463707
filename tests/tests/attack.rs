//! What packets may cost has a bound, and nobody who does not know the key of the hash can choose packets that cost more.
//!
//! The attacker knows the rules, the structure and the code, builds the same table under a key of its own, and looks for keys
//! that cost most there. The table that runs has another key, and `explain` has said what it reads at the most.

use pipec_abi::table::{Entry, Table, decode};
use pipec_compiler::hir::Program;
use pipec_compiler::plan::plan_reported;
use pipec_tests::classifier::{explanation, table};

/// Cheap numbers.
struct Numbers(u64);
impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Keys near entries: what an entry wants, with other bits as they come, and sometimes a bit of it wrong.
fn near(numbers: &mut Numbers, entry: &Entry) -> Vec<u64> {
    let mut key: Vec<u64> = entry.key.iter().zip(&entry.mask).map(|(key, mask)| key | numbers.next() & !mask).collect();
    if numbers.next().is_multiple_of(2) {
        let word = (numbers.next() % key.len() as u64) as usize;
        key[word] ^= 1 << (numbers.next() % 64);
    }
    key
}

/// The number of cache lines that `explain` says a look-up reads at the most.
fn explained(program: &Program) -> (&'static str, u32) {
    let explanation = explanation(program);
    let place = &explanation.tables[0].places[0];
    let words: Vec<&str> = place.worst_case.split(' ').collect();
    let at = words.iter().position(|word| *word == "cache").expect("a number of cache lines");
    (place.classifier, words[at - 1].parse().expect("a number"))
}

#[track_caller]
fn holds_out(rules: &[String], classifier: &str) {
    let program = table(rules);
    let (found, most) = explained(&program);
    assert_eq!(found, classifier);
    let (plan, _) = plan_reported(&program);
    let (_, _, entries) = decode(&plan.tables[0]);
    let mut numbers = Numbers(0x5eed);
    let attackers = Table::decode(&plan.tables[0], 1);
    let of_any = |_| {
        let entry = (numbers.next() % entries.len() as u64) as usize;
        near(&mut numbers, &entries[entry])
    };
    let mut keys: Vec<Vec<u64>> = (0..20_000).map(of_any).collect();
    keys.extend(entries.iter().map(|entry| entry.key.clone()));
    // The dearest first; as many as fill a queue.
    keys.sort_by_key(|key| std::cmp::Reverse(attackers.probes(key)));
    for seed in [2, 0xdead_beef, 1 << 63] {
        let table = Table::decode(&plan.tables[0], seed);
        let dearest = keys.iter().map(|key| table.probes(key)).max().unwrap_or(0);
        assert!(dearest <= most, "{classifier}: a key reads {dearest} lines, and explain says {most}");
        assert!(table.worst_probes() <= most, "{classifier}: {} and not {most}", table.worst_probes());
    }
}

#[test]
fn exact_keys() {
    let rule = |i: u32| format!("eth.dst == 02:00:00:{:02x}:{:02x}:00 => output(b);", i >> 8, i & 0xff);
    holds_out(&(0..3000).map(rule).collect::<Vec<_>>(), "hash");
}

#[test]
fn prefixes() {
    let mut rules: Vec<String> = (0..250).map(|i| format!("ipv4.dst in 10.{i}.7.128/25 => output(b);")).collect();
    rules.extend((0..250).map(|i| format!("ipv4.dst in 10.{i}.0.0/16 => output(a);")));
    holds_out(&rules, "lpm");
}

#[test]
fn rules_of_many_shapes() {
    let rule = |i: u32| {
        let (host, bits) = (i * 7919 % 65_536, 8 + i % 24);
        let address = (0x0a00_0000 | host << 4) & (u32::MAX << (32 - bits));
        let address = std::net::Ipv4Addr::from(address);
        format!("ipv4.src in {address}/{bits} && ipv4.dst in 10.{}.0.0/{} => output(b);", i % 50, 16 + i % 3)
    };
    holds_out(&(0..400).map(rule).collect::<Vec<_>>(), "bit-vector");
}

/// Two masks, thousands of entries each.
#[test]
fn few_masks_and_many_entries() {
    let exact = |i: u32| format!("ipv4.src == 10.{}.{}.1 && tcp.dst == {} => output(b);", i / 256, i % 256, i % 7000);
    let wide = |i: u32| format!("ipv4.src == 11.{}.{}.1 => output(a);", i / 256, i % 256);
    let rules: Vec<String> = (0..9000).map(exact).chain((0..9000).map(wide)).collect();
    holds_out(&rules, "tuple-space");
}
