//! The firewall, compiled by `#[pipeline]` as part of this crate.
//!
//! `cargo run --release --bin firewall-macro -- --port lan=tap:lan0 --port wan=tap:wan0`

use std::process::ExitCode;

use pipec_runtime::{Engine, pipeline};

/// Hosts on `lan` may open connections; `wan` may only answer.
#[pipeline(file = "../pipelines/firewall.pipe")]
pub struct Firewall;

fn main() -> ExitCode {
    match Engine::of::<Firewall>() {
        Ok(engine) => pipec_runtime::host::main(&engine),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
