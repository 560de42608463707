//! Compiles the functions around ring ports; their headers are found by pkg-config, as `dpdk-sys` finds them.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(why) = build() {
        println!("cargo::error={why}");
    }
}

fn build() -> Result<(), String> {
    let asked = Command::new("pkg-config").args(["--cflags", "libdpdk"]).output();
    let output = asked.map_err(|error| format!("pkg-config does not run: {error} (apt install pkg-config)"))?;
    if !output.status.success() {
        return Err("pkg-config does not find libdpdk (apt install libdpdk-dev)".to_string());
    }
    let mut build = cc::Build::new();
    build.file("c/rings.c").opt_level(3).warnings(true);
    for flag in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        build.flag(flag);
    }
    build.try_compile("rings").map_err(|error| error.to_string())
}
