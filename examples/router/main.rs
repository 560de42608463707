//! A router whose routes are put in while it runs, with the types that the macro makes of `pipelines/fib.pipe`.
//!
//! `cargo run --release --bin router` sends a few packets through it, without ports, and shows the routes that they took.

use std::net::Ipv4Addr;
use std::process::ExitCode;

use pipec_runtime::offline::Offline;
use pipec_runtime::tables::TableError;
use pipec_runtime::{Engine, pipeline};

/// A router with three ports.
#[pipeline(file = "../pipelines/fib.pipe")]
pub struct Fib;

fn main() -> ExitCode {
    let engine = match Engine::of::<Fib>() {
        Ok(engine) => engine,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    match run(&engine) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(engine: &Engine) -> Result<(), TableError> {
    let mut router = Offline::new(engine);
    let tables = fib::Tables::of(router.tables());
    let to_b = fib::routes::Route { out: fib::Port::B, smac: [2, 0, 0, 0, 0, 0xb], dmac: [2, 0, 0, 0, 0xb, 9] };
    tables.routes().insert((Ipv4Addr::new(10, 7, 0, 0), 16), to_b)?;
    tables.routes().set(0, (Ipv4Addr::new(10, 1, 0, 0), 16), fib::routes::Action::Drop)?;
    for host in [[10, 7, 0, 1], [10, 7, 0, 2], [10, 1, 0, 1], [10, 9, 9, 9]] {
        router.send(0, &[(2, packet(host))]);
    }
    for route in tables.routes().list()? {
        let (net, length) = route.key;
        println!("{net}/{length} {:?}: {} packets", route.action, route.counter.packets);
    }
    Ok(())
}

/// A UDP packet to an address.
fn packet(dst: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[12..24].copy_from_slice(&[8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    frame[26..30].copy_from_slice(&[10, 9, 9, 9]);
    frame[30..34].copy_from_slice(&dst);
    frame
}
