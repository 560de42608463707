//! Files that a program names, read from beside it.

use std::path::Path;

use pipec_compiler::source::{Loader, search};

/// Finds files beside the one that names them.
pub struct Beside;

impl Loader for Beside {
    fn find(&self, from: &str, path: &str) -> Result<String, String> {
        search(from, path, &[], Path::is_file)
    }

    fn read(&self, name: &str) -> Result<String, String> {
        std::fs::read_to_string(name).map_err(|error| error.to_string())
    }
}
