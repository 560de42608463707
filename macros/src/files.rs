//! Files that programs name, while a crate is built: beside the file that names them, else in the folders of `PIPEC_PATH`.
//! Relative names count from the folder of `Cargo.toml`.

use std::path::{Path, PathBuf};

use pipec_compiler::source::{Loader, search};

/// Reads from the file system.
pub struct Files {
    root: PathBuf,
    folders: Vec<PathBuf>,
}

impl Files {
    /// The files of the crate that is being built.
    pub fn of_this_crate() -> Files {
        let root = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
        let folders = std::env::var_os("PIPEC_PATH").map_or(vec![], |path| std::env::split_paths(&path).collect());
        Files { root, folders }
    }

    /// Where a file is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

impl Loader for Files {
    fn find(&self, from: &str, path: &str) -> Result<String, String> {
        search(from, path, &self.folders, |place: &Path| self.root.join(place).is_file())
    }

    fn read(&self, name: &str) -> Result<String, String> {
        let path = self.path(name);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn identity(&self, name: &str) -> String {
        let path = self.path(name);
        std::fs::canonicalize(&path).unwrap_or(path).to_string_lossy().into_owned()
    }
}
