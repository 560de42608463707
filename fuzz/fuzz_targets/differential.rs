//! Programs and frames on both engines.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pipec_tests::fuzz::differential(data));
