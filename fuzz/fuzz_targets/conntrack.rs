//! Conversations through connection tracking.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pipec_tests::fuzz::conntrack(data));
