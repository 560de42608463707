//! Texts as rules of `ovs-ofctl`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pipec_tests::fuzz::parse_flows(data));
