//! Finds DPDK by pkg-config, binds its headers by bindgen and compiles the C shim. What is missing ends the build with one
//! message that names the package to install.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Functions and variables to bind, as patterns.
const FUNCTIONS: &[&str] = &[
    "shim_.*",
    "rte_eal_(init|cleanup|hotplug_.*|has_hugepages|process_type)",
    "rte_dev_(probe|remove)",
    "rte_errno|rte_strerror",
    "rte_get_tsc_hz",
    "rte_eth_dev_.*",
    "rte_eth_(rx|tx)_(queue_setup|burst_mode_get)",
    "rte_eth_(promiscuous|allmulticast)_.*",
    "rte_eth_(link|stats|xstats|macaddr)_get.*",
    "rte_eth_stats_reset",
    "rte_eth_add_rx_callback",
    "rte_lcore_count",
    "rte_thread_(un)?register",
    "rte_log_(cur_msg_loglevel|set_.*level.*)",
    "rte_openlog_stream",
    "rte_mempool_(avail_count|in_use_count|free|lookup)",
    "rte_mempool_(create_empty|set_ops_byname|populate_virt|obj_iter|op_calc_mem_size_default)",
    "rte_mbuf_best_mempool_ops",
    "rte_pktmbuf_(pool_create|pool_init|init|copy|clone)",
    "rte_socket_id",
    "rte_version",
];
/// Types to bind; what the functions need comes by itself.
const TYPES: &[&str] = &["rte_mbuf", "rte_mempool", "rte_ether_addr", "rte_pktmbuf_pool_private"];
/// Constants to bind.
const CONSTANTS: &[&str] = &[
    "SHIM_.*",
    "RTE_ETH_LINK_(UP|DOWN)",
    "RTE_ETHER_.*",
    "RTE_PKTMBUF_HEADROOM",
    "RTE_MBUF_F_(INDIRECT|EXTERNAL)",
    "RTE_MBUF_DEFAULT_.*",
    "RTE_MEMPOOL_F_NO_IOVA_CONTIG",
    "RTE_MAX_ETHPORTS",
    "RTE_MAX_LCORE",
    "RTE_LOG_.*",
];
/// The libraries the bound functions live in; drivers are loaded by the EAL when it starts.
const LIBRARIES: &[&str] = &["rte_ethdev", "rte_mbuf", "rte_mempool", "rte_ring", "rte_eal"];

fn main() {
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=build.rs");
    for variable in ["LIBCLANG_PATH", "PKG_CONFIG", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    if let Err(message) = build() {
        println!("cargo::error={message}"); // cargo prints this alone and fails the build
    }
}

fn build() -> Result<(), String> {
    let cflags = find_dpdk()?;
    find_libclang()?;
    bind(&cflags)?;
    compile_shim(&cflags)
}

/// Prints what to link and returns the C compiler's flags, which name the processor and the configuration header too.
fn find_dpdk() -> Result<Vec<String>, String> {
    let library = pkg_config::Config::new()
        .atleast_version("22.11")
        .cargo_metadata(false)
        .env_metadata(false)
        .probe("libdpdk")
        .map_err(|error| match error {
            pkg_config::Error::Command { .. } => {
                "pkg-config does not run, and DPDK is found by it; install the Debian package `pkg-config` (apt install pkg-config)".to_string()
            }
            pkg_config::Error::ProbeFailure { .. } | pkg_config::Error::Failure { .. } => {
                "DPDK 22.11 or newer is not installed (pkg-config does not find `libdpdk`); install the Debian package `libdpdk-dev` \
                 (apt install libdpdk-dev), or build without DPDK ports (--no-default-features)"
                    .to_string()
            }
            other => format!("pkg-config fails on libdpdk: {other}"),
        })?;
    for path in &library.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    for name in LIBRARIES {
        println!("cargo::rustc-link-lib={name}");
    }
    let pkg_config = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".to_string());
    let output = Command::new(pkg_config)
        .args(["--cflags", "libdpdk"])
        .output()
        .map_err(|error| format!("pkg-config --cflags libdpdk: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_string).collect())
}

/// bindgen panics without libclang; this asks first.
fn find_libclang() -> Result<(), String> {
    clang_sys::load().map_err(|_| {
        "libclang, which reads DPDK's headers, is not found; install the Debian package \
         `libclang-dev` (apt install libclang-dev), or set LIBCLANG_PATH"
            .to_string()
    })
}

fn bind(cflags: &[String]) -> Result<(), String> {
    let mut builder = bindgen::Builder::default()
        .header("c/wrapper.h")
        .clang_args(cflags)
        .opaque_type("rte_gtp_psc_generic_hdr") // packed in a way that derived traits cannot read
        .default_enum_style(bindgen::EnumVariation::Consts)
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(true)
        .wrap_unsafe_ops(true)
        .rust_edition(bindgen::RustEdition::Edition2024);
    builder = FUNCTIONS.iter().fold(builder, |builder, pattern| builder.allowlist_function(pattern));
    builder = TYPES.iter().fold(builder, |builder, pattern| builder.allowlist_type(pattern));
    builder = CONSTANTS.iter().fold(builder, |builder, pattern| builder.allowlist_var(pattern));
    let bindings = builder.generate().map_err(|error| {
        format!(
            "DPDK's headers cannot be read by libclang; if it does not find stddef.h, install the Debian package `libclang-dev` \
             (apt install libclang-dev): {}",
            error.to_string().replace('\n', " ")
        )
    })?;
    let path =
        PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set: run this through cargo")?).join("bindings.rs");
    bindings.write_to_file(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn compile_shim(cflags: &[String]) -> Result<(), String> {
    let mut build = cc::Build::new();
    build.file("c/shim.c").opt_level(3).warnings(true);
    for flag in cflags {
        build.flag(flag);
    }
    build.try_compile("dpdk_shim").map_err(|error| {
        format!(
            "the C shim does not compile; without a C compiler, install the Debian package `gcc` (apt install gcc): {}",
            error.to_string().replace('\n', " ")
        )
    })
}
