//! Compiles the shim over DPDK's structures where DPDK is installed. Without it, ours are measured alone.

use std::process::Command;

/// Where the structures live.
const LIBRARIES: &[&str] =
    &["rte_acl", "rte_hash", "rte_lpm", "rte_fib", "rte_rib", "rte_mempool", "rte_ring", "rte_rcu", "rte_eal"];

fn main() {
    println!("cargo::rustc-check-cfg=cfg(peers)");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(why) = build() {
        println!("cargo::warning=DPDK's structures are left out: {why}");
    }
}

fn build() -> Result<(), String> {
    let config = pkg_config::Config::new().atleast_version("22.11").cargo_metadata(false).probe("libdpdk");
    let library = config.map_err(|_| "pkg-config does not find libdpdk 22.11 or newer (apt install libdpdk-dev)")?;
    let output = Command::new("pkg-config").args(["--cflags", "libdpdk"]).output().map_err(|e| e.to_string())?;
    let mut build = cc::Build::new();
    build.file("c/peers.c").opt_level(3).warnings(true);
    for flag in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        build.flag(flag);
    }
    build.try_compile("peers").map_err(|error| error.to_string())?;
    for path in &library.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    for name in LIBRARIES {
        println!("cargo::rustc-link-lib={name}");
    }
    println!("cargo::rustc-cfg=peers");
    Ok(())
}
