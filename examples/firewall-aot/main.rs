//! The firewall, compiled to Rust by `build.rs`: what `pipec build --emit rust` writes, in a crate of one's own.
//!
//! `cargo run --release --bin firewall-aot -- --port lan=tap:lan0 --port wan=tap:wan0`

use std::process::ExitCode;

include!(concat!(env!("OUT_DIR"), "/firewall.rs"));

fn main() -> ExitCode {
    match pipec_runtime::Engine::of::<Firewall>() {
        Ok(engine) => pipec_runtime::host::main(&engine),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
