//! Folders of files made once and kept: `$XDG_CACHE_HOME/pipec`, or `~/.cache/pipec`.
//!
//! In: a key, and how to make what belongs to it. Out: a folder with it. Never: a folder that is half made; an interrupted
//! build leaves a folder of its own name, which nobody reads.

use std::path::{Path, PathBuf};

use pipec_runtime::error::system;

use crate::failure::Failure;

/// The folder for `key`, made by `make` in an empty folder if it is not there yet.
pub fn cached(key: &str, make: impl FnOnce(&Path) -> Result<(), Failure>) -> Result<PathBuf, Failure> {
    let root = root()?;
    let folder = root.join(key);
    if folder.is_dir() {
        return Ok(folder);
    }
    let working = Working::new(root.join(format!(".{key}.{}", std::process::id())))?;
    make(&working.0)?;
    match std::fs::rename(&working.0, &folder) {
        Err(_) if folder.is_dir() => Ok(folder), // somebody else was faster
        Err(error) => Err(refused(&folder, &error)),
        Ok(()) => Ok(folder),
    }
}

/// A folder to work in, which goes away unless it has been moved.
struct Working(PathBuf);

impl Working {
    fn new(path: PathBuf) -> Result<Working, Failure> {
        let _ = std::fs::remove_dir_all(&path); // of an interrupted process that had this number
        match std::fs::create_dir_all(&path) {
            Ok(()) => Ok(Working(path)),
            Err(error) => Err(refused(&path, &error)),
        }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0); // gone when all went well
    }
}

fn root() -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("pipec")).ok_or_else(|| {
        Failure::environment(
            "no folder to build in: neither XDG_CACHE_HOME nor HOME is set; set XDG_CACHE_HOME to a folder",
        )
    })
}

/// The cache cannot be written.
pub fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::environment(format!(
        "{}: cannot write what is built: {}; set XDG_CACHE_HOME to a folder that you may write",
        path.display(),
        system(error)
    ))
}
