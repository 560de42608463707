//! Files that programs name: beside the file that names them, else along the search path (`-I DIR`, then the folders of
//! `PIPEC_PATH`). In: names. Out: texts. Never: anything but regular files.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pipec_compiler::source::{Loader, search};
use pipec_runtime::error::system;

/// The folders of the search path: set once, from the command line.
static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Sets the search path: these folders, and those of the environment behind them.
pub fn search_path(mut folders: Vec<PathBuf>) {
    if let Some(more) = std::env::var_os("PIPEC_PATH") {
        folders.extend(std::env::split_paths(&more).filter(|folder| !folder.as_os_str().is_empty()));
    }
    let _ = FOLDERS.set(folders); // The command line is read once.
}

/// The search path.
pub fn folders() -> &'static [PathBuf] {
    FOLDERS.get().map_or(&[], Vec::as_slice)
}

/// Reads from the file system.
pub struct Files;

impl Loader for Files {
    fn find(&self, from: &str, path: &str) -> Result<String, String> {
        search(from, path, folders(), Path::is_file)
    }

    fn read(&self, name: &str) -> Result<String, String> {
        let bytes = std::fs::read(name).map_err(|error| format!("{name}: {}", system(&error)))?;
        String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            format!("{name}: this is not text (byte {at} is not UTF-8)")
        })
    }

    fn identity(&self, name: &str) -> String {
        std::fs::canonicalize(name).map_or_else(|_| name.to_string(), |path| path.to_string_lossy().into_owned())
    }
}
