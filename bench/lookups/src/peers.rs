//! DPDK's structures, through the shim in `c/peers.c`. All take what they are built of as plain arrays, and look a whole trace
//! up in one call, so that crossing into C is not measured.

use std::ffi::c_void;

use crate::classbench::Rule;
use crate::sets::Peers as Set;

/// A rule as the shim has it.
#[repr(C)]
struct CRule {
    src: u32,
    dst: u32,
    sport: [u16; 2],
    dport: [u16; 2],
    src_len: u8,
    dst_len: u8,
    proto: u8,
    proto_mask: u8,
}

unsafe extern "C" {
    fn peers_start() -> i32;
    fn peers_tsc_hz() -> u64;
    fn peers_memory() -> u64;
    fn acl_new(rules: *const CRule, n: u32) -> *mut c_void;
    fn acl_run(acl: *mut c_void, headers: *const *const u8, n: u32, found: *mut u32);
    fn acl_free(acl: *mut c_void);
    fn hash_new(keys: *const u8, key_len: u32, n: u32) -> *mut c_void;
    fn hash_run(hash: *mut c_void, keys: *const *const u8, n: u32, found: *mut u32);
    fn hash_change(hash: *mut c_void, key: *const u8, value: u32);
    fn hash_free(hash: *mut c_void);
    fn lpm_new(addresses: *const u32, lengths: *const u8, n: u32) -> *mut c_void;
    fn lpm_run(lpm: *mut c_void, keys: *const u32, n: u32, found: *mut u32);
    fn lpm_change(lpm: *mut c_void, address: u32, length: u8, value: u32);
    fn lpm_free(lpm: *mut c_void);
    fn fib_new(addresses: *const u32, lengths: *const u8, n: u32) -> *mut c_void;
    fn fib_run(fib: *mut c_void, keys: *const u32, n: u32, found: *mut u32);
    fn fib_change(fib: *mut c_void, address: u32, length: u8, value: u32);
    fn fib_free(fib: *mut c_void);
    fn lpm6_new(addresses: *const u8, lengths: *const u8, n: u32) -> *mut c_void;
    fn lpm6_run(lpm: *mut c_void, keys: *const u8, n: u32, found: *mut u32);
    fn lpm6_free(lpm: *mut c_void);
    fn fib6_new(addresses: *const u8, lengths: *const u8, n: u32) -> *mut c_void;
    fn fib6_run(fib: *mut c_void, keys: *const u8, n: u32, found: *mut u32);
    fn fib6_free(fib: *mut c_void);
}

/// DPDK, started.
#[derive(Clone, Copy)]
pub struct Dpdk(());

impl Dpdk {
    /// Starts it; says why not.
    pub fn start() -> Result<Dpdk, String> {
        // SAFETY: takes nothing; the caller starts it once.
        let started = unsafe { peers_start() };
        if started == 0 { Ok(Dpdk(())) } else { Err("DPDK's EAL does not start".into()) }
    }

    /// Cycles of the time-stamp counter a second.
    pub fn tsc_hz(self) -> u64 {
        // SAFETY: the EAL runs.
        unsafe { peers_tsc_hz() }
    }

    fn memory(self) -> u64 {
        // SAFETY: the EAL runs.
        unsafe { peers_memory() }
    }
}

/// A structure of DPDK.
pub struct Peer {
    /// Its name.
    pub name: &'static str,
    /// Bytes that DPDK took for it.
    pub memory: u64,
    at: *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    /// Where each key lies, for those that want pointers.
    pointers: Vec<*const u8>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: `at` was made by the shim's function that belongs to `free`, and is freed here alone.
        unsafe { (self.free)(self.at) };
    }
}

/// Names of the peers for a set.
pub fn names(set: &Set) -> &'static [&'static str] {
    match set {
        Set::Acl(..) => &["rte_acl"],
        Set::Hash(..) => &["rte_hash"],
        Set::Prefixes(..) => &["rte_lpm", "rte_fib"],
        Set::Prefixes6(..) => &["rte_lpm6", "rte_fib6"],
    }
}

impl Peer {
    /// Builds one; nothing if DPDK refuses.
    pub fn new(dpdk: Dpdk, name: &'static str, set: &Set) -> Option<Peer> {
        let before = dpdk.memory();
        type Free = unsafe extern "C" fn(*mut c_void);
        let (at, free): (*mut c_void, Free) = match set {
            Set::Acl(rules, _) => {
                let rules: Vec<CRule> = rules.iter().map(c_rule).collect();
                // SAFETY: the array has as many rules as is said; they are copied.
                (unsafe { acl_new(rules.as_ptr(), rules.len() as u32) }, acl_free)
            }
            Set::Hash(len, keys, _) => {
                // SAFETY: the array has as many keys of this length as is said; they are copied.
                (unsafe { hash_new(keys.as_ptr(), *len as u32, (keys.len() / len) as u32) }, hash_free)
            }
            Set::Prefixes(addresses, lengths, _) => {
                let (new, free): (unsafe extern "C" fn(*const u32, *const u8, u32) -> *mut c_void, Free) =
                    if name == "rte_lpm" { (lpm_new, lpm_free) } else { (fib_new, fib_free) };
                // SAFETY: both arrays have as many prefixes as is said; they are copied.
                (unsafe { new(addresses.as_ptr(), lengths.as_ptr(), lengths.len() as u32) }, free)
            }
            Set::Prefixes6(addresses, lengths, _) => {
                let (new, free): (unsafe extern "C" fn(*const u8, *const u8, u32) -> *mut c_void, Free) =
                    if name == "rte_lpm6" { (lpm6_new, lpm6_free) } else { (fib6_new, fib6_free) };
                // SAFETY: both arrays have as many prefixes as is said; they are copied.
                (unsafe { new(addresses.as_ptr(), lengths.as_ptr(), lengths.len() as u32) }, free)
            }
        };
        let pointers = match set {
            Set::Acl(_, headers) => headers.chunks(16).map(<[u8]>::as_ptr).collect(),
            Set::Hash(len, _, keys) => keys.chunks(*len).map(<[u8]>::as_ptr).collect(),
            _ => vec![],
        };
        let memory = dpdk.memory() - before;
        (!at.is_null()).then_some(Peer { name, memory, at, free, pointers })
    }

    /// Looks the set's keys up; what is found is the place of the entry plus one, or 0.
    pub fn run(&self, set: &Set, found: &mut [u32]) {
        let n = found.len() as u32;
        match set {
            Set::Acl(..) => {
                assert_eq!(self.pointers.len(), found.len(), "a result for each key");
                // SAFETY: `at` is an ACL; the pointers are into the set, which lives, and are as many as results.
                unsafe { acl_run(self.at, self.pointers.as_ptr(), n, found.as_mut_ptr()) }
            }
            Set::Hash(..) => {
                assert_eq!(self.pointers.len(), found.len(), "a result for each key");
                // SAFETY: `at` is a hash table; the pointers are into the set, which lives, and are as many as results.
                unsafe { hash_run(self.at, self.pointers.as_ptr(), n, found.as_mut_ptr()) }
            }
            Set::Prefixes(.., keys) => {
                assert_eq!(keys.len(), found.len(), "a result for each key");
                let run = if self.name == "rte_lpm" { lpm_run } else { fib_run };
                // SAFETY: `at` is what belongs to the name; keys are as many as results.
                unsafe { run(self.at, keys.as_ptr(), n, found.as_mut_ptr()) }
            }
            Set::Prefixes6(.., keys) => {
                assert_eq!(keys.len(), 16 * found.len(), "a result for each key");
                let run = if self.name == "rte_lpm6" { lpm6_run } else { fib6_run };
                // SAFETY: `at` is what belongs to the name; keys are as many as results.
                unsafe { run(self.at, keys.as_ptr(), n, found.as_mut_ptr()) }
            }
        }
    }

    /// Takes entry `i` out and puts it back; whether the structure can.
    pub fn change(&self, set: &Set, i: usize) -> bool {
        let value = i as u32 + 1;
        match set {
            Set::Hash(len, keys, _) => {
                // SAFETY: `at` is a hash table; the key has its length.
                unsafe { hash_change(self.at, keys[i * len..][..*len].as_ptr(), value) };
            }
            Set::Prefixes(addresses, lengths, _) => {
                let change = if self.name == "rte_lpm" { lpm_change } else { fib_change };
                // SAFETY: `at` is what belongs to the name.
                unsafe { change(self.at, addresses[i], lengths[i], value) };
            }
            _ => return false,
        }
        true
    }
}

fn c_rule(rule: &Rule) -> CRule {
    CRule {
        src: rule.src,
        dst: rule.dst,
        sport: [rule.sport.0, rule.sport.1],
        dport: [rule.dport.0, rule.dport.1],
        src_len: rule.src_len,
        dst_len: rule.dst_len,
        proto: rule.proto.unwrap_or(0),
        proto_mask: if rule.proto.is_some() { 0xff } else { 0 },
    }
}
