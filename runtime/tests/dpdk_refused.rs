//! An EAL that does not start says why in one message, and prints nothing. In a process of its own, as a process can try once.
#![cfg(feature = "dpdk")]

use pipec_runtime::io::dpdk::{Eal, EalOptions, Error};

#[test]
fn a_wrong_argument_is_named() {
    let args = vec!["--no-huge".to_string(), "--bogus".to_string()];
    let error = Eal::start(&EalOptions { args, ..EalOptions::default() }).expect_err("there is no such argument");
    let Error::EalStart { reason, help } = &error else { panic!("{error}") };
    assert!(reason.contains("unrecognized option '--bogus'"), "{reason}");
    assert!(!reason.contains("Usage:"), "{reason}");
    assert_eq!(help, "correct the arguments given to it (--no-huge --bogus)");
    let again = Eal::start(&EalOptions::default()).expect_err("once is once");
    assert_eq!(again, Error::EalStarted);
}
