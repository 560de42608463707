//! What has to be built before anything is measured: the program `pipec`, the EAL plug-in, programs written by hand.
//!
//! In: this workspace. Out: paths of what was built from it, just now. Never: a stale one.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Error, process};

const FLOOR: &str = include_str!("../c/floor.c");
const SWX: &str = include_str!("../c/swx.c");

/// What is built by cargo.
#[derive(Clone, Debug)]
pub struct Artifacts {
    /// The program `pipec`.
    pub pipec: PathBuf,
    /// The plug-in that gives `net_null` ports their frames.
    pub plugin: PathBuf,
    /// The firewall written by hand.
    pub hand: PathBuf,
    /// This program, as it was built with the others.
    pub bench: PathBuf,
    /// The connection tracker alone.
    pub tracker: PathBuf,
    /// Look-up structures alone.
    pub lookups: PathBuf,
    /// A folder for what is made on the way, which is kept.
    pub folder: PathBuf,
}

impl Artifacts {
    /// Builds `pipec`, the plug-in and the firewall written by hand in release mode, into the folder that this program was built into.
    ///
    /// # Errors
    /// When that fails.
    pub fn build() -> Result<Artifacts, Error> {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let own = env::current_exe().map_err(|error| Error::Failed(format!("this program's own path: {error}")))?;
        let target = own.ancestors().nth(2).unwrap_or(manifest);
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.args([
            "build",
            "--locked",
            "--release",
            "--quiet",
            "-p",
            "pipec-cli",
            "-p",
            "pipec-bench-replay",
            "-p",
            "pipec-bench",
            "-p",
            "pipec-bench-lookups",
        ]);
        process::run(command.current_dir(manifest).env("CARGO_TARGET_DIR", target))?;
        let release = target.join("release");
        let folder = target.join("bench");
        fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, &error))?;
        let plugin = release.join("libpipec_bench_replay.so");
        check_plugin(&plugin)?;
        let program = |name: &str| release.join(name);
        Ok(Artifacts {
            pipec: program("pipec"),
            hand: program("pipec-bench-hand"),
            bench: program("pipec-bench"),
            tracker: program("ct"),
            lookups: program("pipec-bench-lookups"),
            plugin,
            folder,
        })
    }

    /// Compiles the C floor for this processor.
    ///
    /// # Errors
    /// When there is no C compiler, or it fails.
    pub fn floor(&self) -> Result<PathBuf, Error> {
        self.compile("floor", FLOOR)
    }

    /// Compiles the driver of DPDK's SWX pipeline for this processor.
    ///
    /// # Errors
    /// When there is no C compiler, or it fails.
    pub fn swx(&self) -> Result<PathBuf, Error> {
        self.compile("swx", SWX)
    }

    fn compile(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let (source, program) = (self.folder.join(format!("{name}.c")), self.folder.join(name));
        fs::write(&source, text).map_err(|error| Error::file(&source, &error))?;
        find("cc").ok_or_else(|| missing("a C compiler", "gcc"))?;
        let flags = process::run(Command::new("pkg-config").args(["--cflags", "--libs", "libdpdk"]))?;
        let mut command = Command::new("cc");
        command.args(["-O3", "-Wall", "-Werror", "-o"]).args([&program, &source]);
        process::run(command.args(flags.split_whitespace()).arg("-march=native"))?;
        Ok(program)
    }
}

/// The EAL loads a plug-in only if nobody but its owner may write the folders above it.
fn check_plugin(plugin: &Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;
    let writable = |folder: &&Path| fs::metadata(folder).is_ok_and(|data| data.permissions().mode() & 0o002 != 0);
    match plugin.ancestors().skip(1).find(writable) {
        None => Ok(()),
        Some(folder) => Err(Error::Failed(format!(
            "{}: everybody may write {}, and DPDK's EAL loads no plug-in from below such a folder; set CARGO_TARGET_DIR to \
             another place",
            plugin.display(),
            folder.display()
        ))),
    }
}

/// Where a program is, by the paths that programs are looked for in.
pub fn find(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&paths).collect();
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.iter().map(|folder| folder.join(program.as_ref())).find(|path| path.is_file())
}

/// What is not installed, and the Debian package that has it.
pub fn missing(what: &str, package: &str) -> Error {
    Error::Missing(format!("{what} is not installed (apt install {package})"))
}
