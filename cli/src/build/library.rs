//! Generated Rust to a library, by the installed `rustc`.
//!
//! In: a program. Out: the path of a library in the cache. Never: cargo, the network, or the source tree; the only crate that
//! generated code needs is `pipec-abi`, whose sources this program carries.

use std::path::{Path, PathBuf};
use std::process::Command;

use pipec_compiler::hir::Program;
use pipec_runtime::error::system;

use super::cache::{cached, refused};
use super::hash::hash;
use crate::calibrate;
use crate::externs;
use crate::failure::Failure;

include!(concat!(env!("OUT_DIR"), "/abi_sources.rs"));

/// The processor this runs on, as rustc calls it.
pub const NATIVE: &str = "native";

/// Whether there is a compiler at all.
pub fn rustc_is_installed() -> bool {
    Rustc::find(NATIVE).is_ok()
}

/// The Rust source of a program, for a crate that depends on `pipec-abi`; its actions in Rust are a module of it.
pub fn source(program: &Program) -> Result<String, Failure> {
    let mut source = pipec_compiler::backend::rust::emit(&calibrate::plan(program)?.0);
    if let Some(actions) = externs::text(program)? {
        source += &format!("\nuse externs::*;\n\nmod externs {{\n{}\n}}\n", actions.trim_end());
    }
    Ok(source)
}

/// Compiles a program; the path of its library.
pub fn compile(program: &Program, target_cpu: &str) -> Result<PathBuf, Failure> {
    let name = pipec_compiler::backend::rust::type_name(&program.name);
    let source = format!("{}\npipec_abi::export_program!({name});\n", source(program)?);
    let rustc = Rustc::find(target_cpu)?;
    let abi = abi(&rustc)?;
    let key = format!("program-{:032x}", hash(&[source.as_bytes(), abi.as_os_str().as_encoded_bytes()]));
    let folder = cached(&key, |folder| {
        let main = folder.join("program.rs");
        std::fs::write(&main, &source).map_err(|error| refused(&main, &error))?;
        let abi = abi.join("libpipec_abi.rlib");
        let extern_abi = format!("pipec_abi={}", abi.display());
        let (main, out) =
            (main.to_string_lossy().into_owned(), folder.join("program.so").to_string_lossy().into_owned());
        rustc.run(&["--crate-name", "program", "--crate-type", "cdylib", "--extern", &extern_abi, "-o", &out, &main])
    })?;
    Ok(folder.join("program.so"))
}

/// The folder with the compiled `pipec-abi`.
fn abi(rustc: &Rustc) -> Result<PathBuf, Failure> {
    let parts: Vec<&[u8]> = ABI_SOURCES.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()]).collect();
    let sources = hash(&parts).to_le_bytes();
    let key = format!("abi-{:032x}", hash(&[&sources, rustc.identity.as_bytes()]));
    cached(&key, |folder| {
        for (name, text) in ABI_SOURCES {
            let path = folder.join("src").join(name);
            let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&path, text)).map_err(|error| refused(&path, &error))?;
        }
        let main = folder.join("src/lib.rs").to_string_lossy().into_owned();
        let out = folder.join("libpipec_abi.rlib").to_string_lossy().into_owned();
        rustc.run(&["--crate-name", "pipec_abi", "--crate-type", "rlib", "-o", &out, &main])
    })
}

/// The compiler, and for which processor it compiles.
struct Rustc {
    path: PathBuf,
    target_cpu: String,
    /// Changes whenever compiled code may.
    identity: String,
}

impl Rustc {
    fn find(target_cpu: &str) -> Result<Rustc, Failure> {
        let path = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
        let version = Command::new(&path).arg("-vV").output().map_err(|error| missing(&path, &error))?;
        let version = String::from_utf8_lossy(&version.stdout).into_owned();
        let cpu = if target_cpu == NATIVE { processor() } else { String::new() };
        let identity = format!("{version}{target_cpu}{cpu}{FLAGS:?}");
        Ok(Rustc { path, target_cpu: target_cpu.to_string(), identity })
    }

    fn run(&self, args: &[&str]) -> Result<(), Failure> {
        let target = format!("target-cpu={}", self.target_cpu);
        let output = Command::new(&self.path).args(FLAGS).args(["-C", &target]).args(args).output();
        let output = output.map_err(|error| missing(&self.path, &error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::environment(format!(
            "rustc failed ({}); it said:\n{said}\nSee that it is Rust 1.95 or newer with a linker (cc); --target-cpu takes what \
             `rustc --print target-cpus` lists",
            output.status
        )))
    }
}

const FLAGS: &[&str] = &[
    "--edition=2024",
    "--cap-lints=allow",
    "-Copt-level=3",
    "-Ccodegen-units=1",
    "-Cpanic=abort",
    "-Cstrip=debuginfo",
];

fn missing(path: &Path, error: &std::io::Error) -> Failure {
    Failure::environment(format!(
        "cannot run the Rust compiler `{}`: {}; install Rust 1.95 or newer (or name it in RUSTC), or do without: \
         --engine jit, --emit rust",
        path.display(),
        system(error)
    ))
}

/// What this processor is: code for it is of no use on another.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("model name") || line.starts_with("flags"))
        .collect()
}
