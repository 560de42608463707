//! The sets that targets are about. A file of its own, since `pipec-bench` reads it too, which is not linked with DPDK's
//! structures.

/// Their names.
pub const SETS: &[&str] = &[
    "hash8-1000000",
    "hash16-1000000",
    "lpm-1000000",
    "lpm6-200000",
    "acl-100",
    "acl-1000",
    "acl-10000",
    "fw-100",
    "fw-1000",
    "fw-10000",
    "ipc-100",
    "ipc-1000",
    "ipc-10000",
    "acl-1000@uniform",
    "acl-1000@elephants",
    "acl-10000@elephants",
];
