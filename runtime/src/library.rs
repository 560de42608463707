//! Programs in libraries: what `pipec build --emit lib` makes, or any library with the descriptor of the abi.
//!
//! In: a path, or a library's bytes. Out: an [`Engine`] that keeps the library loaded. Never: a library built against another
//! abi; such a one is refused before anything in it is called.
//!
//! `unsafe` stands here for loading: the library's initialisers run, and its descriptor is believed once the abi's hash in it
//! is right.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::Path;
use std::sync::Arc;

use libloading::Library;
use pipec_abi::ABI_HASH;
use pipec_abi::export::{Descriptor, SYMBOL};
use pipec_abi::meta::Meta;

use crate::engine::Engine;
use crate::error::{Error, system};

/// A library, and the file it was loaded from where that has no name: the number of the descriptor, which is part of the name
/// that the loader knows the library by, must not be used again meanwhile.
struct Loaded {
    library: Library,
    _file: Option<File>,
}

/// Loads the program in a library.
///
/// # Errors
/// When it cannot be loaded, holds no program, or was built for another abi.
pub fn load(path: &Path) -> Result<Engine, Error> {
    // A name without a folder would be searched for where the system keeps its libraries.
    let full = path.canonicalize().map_err(|error| {
        Error::Environment(format!(
            "{}: cannot open the library: {}; see that the path is right",
            path.display(),
            system(&error)
        ))
    })?;
    open(&full, &path.display().to_string(), None)
}

/// Loads the program in a library that is in memory; `name` is for messages.
///
/// # Errors
/// As [`load`].
pub fn load_bytes(name: &str, bytes: &[u8]) -> Result<Engine, Error> {
    let file = memory_file().and_then(|mut file| file.write_all(bytes).map(|()| file));
    let file = file.map_err(|error| {
        Error::Environment(format!(
            "{name}: no memory to load the program into: {}; free some and try again",
            system(&error)
        ))
    })?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    open(Path::new(&path), name, Some(file))
}

/// A file without a name, in memory.
fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a C string; the call has no other precondition.
    let fd = unsafe { libc::memfd_create(c"pipec-program".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was made just now, and nobody else has it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn open(path: &Path, name: &str, file: Option<File>) -> Result<Engine, Error> {
    let fail = |what: String| Error::Environment(format!("{name}: {what}"));
    // SAFETY: the library's initialisers run; whoever names a library to run trusts it as much as its program.
    let library = unsafe { Library::new(path) };
    let library = library.map_err(|error| fail(format!("cannot load the library: {error}")))?;
    let loaded = Loaded { library, _file: file };
    // SAFETY: the symbol is only taken for an address here.
    let symbol = unsafe { loaded.library.get::<*const Descriptor>(SYMBOL.as_bytes()) };
    let descriptor = *symbol.map_err(|_| {
        fail(format!("the library holds no program (no symbol `{SYMBOL}`); make one with pipec build --emit lib"))
    })?;
    // SAFETY: the hash is the first word of a descriptor, in every version of it.
    let hash = unsafe { *descriptor.cast::<u64>() };
    if hash != ABI_HASH {
        return Err(fail("the library was built by another version of pipec; build it again".to_string()));
    }
    // SAFETY: the hash says that it is a descriptor of this version, which lives as long as the library.
    let descriptor = unsafe { &*descriptor };
    // SAFETY: a descriptor points at so many bytes of a constant.
    let json = unsafe { std::slice::from_raw_parts(descriptor.meta, descriptor.meta_len) };
    let meta = std::str::from_utf8(json).map_err(|error| error.to_string());
    let meta = meta.and_then(|json| Meta::parse(json).map_err(|error| error.to_string()));
    let meta = meta.map_err(|error| fail(format!("cannot read the program's description: {error}; build it again")))?;
    // SAFETY: the same, of its tables.
    let tables = unsafe { std::slice::from_raw_parts(descriptor.tables, descriptor.n_tables) };
    // SAFETY: the same, of its actions in Rust.
    let externs = unsafe { std::slice::from_raw_parts(descriptor.externs, descriptor.n_externs) };
    let run = descriptor.run;
    Ok(Engine::function(meta, tables, run, Some(Arc::new(loaded))).with_externs(externs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(result: Result<Engine, Error>) -> String {
        result.err().map(|error| error.to_string()).expect("an error")
    }

    #[test]
    fn what_is_no_program_is_refused_by_name() {
        assert!(error(load(Path::new("none/lib.so"))).contains("none/lib.so: cannot open the library"));
        assert!(error(load_bytes("firewall", b"not a library")).contains("firewall: cannot load the library"));
    }
}
