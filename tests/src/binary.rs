//! Programs of the workspace, for tests that start them: found beside the test, built if they are not there or are old.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository is where it was built")
}

/// The program `name` of a package, in the profile of this test.
///
/// # Panics
/// When it cannot be built.
pub fn binary(package: &str, name: &str) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.parent().and_then(Path::parent).expect("tests are in target/PROFILE/deps");
    let path = folder.join(name);
    if !is_fresh(&path) {
        build(package, name, folder);
    }
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// `pipec`.
pub fn pipec() -> PathBuf {
    binary("pipec-cli", "pipec")
}

/// Whether a program is newer than every source of the workspace. (Cargo lists what a program was made of only where it was
/// asked for that program, and not where it was built along with its tests.)
fn is_fresh(program: &Path) -> bool {
    let Some(built) = changed(program) else { return false };
    let folders = ["cli", "compiler", "examples", "macros", "pipelines", "runtime"];
    folders.iter().all(|folder| all_older(&root().join(folder), built))
}

fn all_older(folder: &Path, built: SystemTime) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().all(|entry| {
        let path = entry.path();
        if path.is_dir() { all_older(&path, built) } else { changed(&path).is_some_and(|then| then <= built) }
    })
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

fn build(package: &str, name: &str, folder: &Path) {
    let profile = match folder.file_name().and_then(|profile| profile.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--locked", "--package", package, "--bin", name, "--profile", profile]);
    cargo.current_dir(root()).env("CARGO_TARGET_DIR", folder.parent().unwrap_or(folder));
    println!("building {name}");
    let output = cargo.output().expect("cargo is there: it built this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
