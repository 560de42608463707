//! Texts as `.pipe` programs.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pipec_tests::fuzz::parse_pipe(data));
