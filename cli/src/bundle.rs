//! Programs as one executable: this program, a library behind it, and a trailer that says so.
//!
//! ```text
//! executable := pipec library trailer
//! trailer    := magic(8) length of the library(8) hash of the library(16)      numbers little-endian
//! ```
//! In: a library's bytes, or this process's own file. Out: an executable, or the program behind it. Never: a program whose
//! bytes changed since they were put there.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use pipec_runtime::{Engine, Error, library};

use crate::build::hash::hash;

const MAGIC: &[u8; 8] = b"PIPECBIN";
const TRAILER: usize = 32;

/// The program behind this process's own executable, if there is one.
pub fn own_program() -> Result<Option<Engine>, Error> {
    // Where /proc is missing, there is no program to be found, and pipec is pipec.
    let Ok(mut file) = File::open("/proc/self/exe") else { return Ok(None) };
    let found =
        read_library(&mut file).map_err(|error| Error::Environment(format!("cannot read this program: {error}")))?;
    match found {
        None => Ok(None),
        Some(Err(what)) => Err(Error::Environment(format!("this program is damaged ({what}); build it again"))),
        Some(Ok(bytes)) => {
            let name = std::env::args().next().unwrap_or_else(|| "this program".to_string());
            library::load_bytes(&name, &bytes).map(Some)
        }
    }
}

/// The library behind an executable, or what is wrong with it.
fn read_library<F: Read + Seek>(file: &mut F) -> io::Result<Option<Result<Vec<u8>, &'static str>>> {
    let size = file.seek(SeekFrom::End(0))?;
    let Some(trailer_at) = size.checked_sub(TRAILER as u64) else { return Ok(None) };
    file.seek(SeekFrom::Start(trailer_at))?;
    let mut trailer = [0; TRAILER];
    file.read_exact(&mut trailer)?;
    let Some(numbers) = trailer.strip_prefix(MAGIC) else { return Ok(None) };
    let (len, sum) = numbers.split_at(8);
    let len = u64::from_le_bytes(len.try_into().unwrap_or_default());
    let Some(start) = trailer_at.checked_sub(len) else { return Ok(Some(Err("its length is wrong"))) };
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = vec![0; len as usize];
    file.read_exact(&mut bytes)?;
    Ok(Some(if hash(&[&bytes]).to_le_bytes() == sum { Ok(bytes) } else { Err("its bytes have changed") }))
}

/// Writes this program with a library behind it.
pub fn write(executable: &mut impl Write, library: &[u8]) -> io::Result<()> {
    let mut own = File::open("/proc/self/exe")?;
    io::copy(&mut own, executable)?;
    append(executable, library)
}

fn append(executable: &mut impl Write, library: &[u8]) -> io::Result<()> {
    executable.write_all(library)?;
    executable.write_all(MAGIC)?;
    executable.write_all(&(library.len() as u64).to_le_bytes())?;
    executable.write_all(&hash(&[library]).to_le_bytes())
}

/// Writes a file whole or not at all: beside its place first, then moved there.
pub fn write_whole(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut io::BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the path of a file"))?;
    let temporary = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let made = File::create(&temporary).and_then(|file| {
        let mut writer = io::BufWriter::new(&file);
        write(&mut writer)?;
        writer.flush()?;
        drop(writer);
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        std::fs::rename(&temporary, path)
    });
    if made.is_err() {
        let _ = std::fs::remove_file(&temporary); // it may never have been there
    }
    made
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn bundle() -> Vec<u8> {
        let mut file = b"executable".to_vec();
        append(&mut file, b"library").unwrap();
        file
    }

    #[test]
    fn what_was_appended_is_found() {
        assert_eq!(read_library(&mut Cursor::new(bundle())).unwrap(), Some(Ok(b"library".to_vec())));
        assert_eq!(read_library(&mut Cursor::new(b"short")).unwrap(), None);
        assert_eq!(read_library(&mut Cursor::new([0; 100])).unwrap(), None);
    }

    #[test]
    fn a_changed_program_is_not_run() {
        let mut changed = bundle();
        changed[12] ^= 1;
        assert_eq!(read_library(&mut Cursor::new(changed)).unwrap(), Some(Err("its bytes have changed")));
        let mut long = bundle();
        let at = long.len() - 20;
        long[at] = 1;
        assert_eq!(read_library(&mut Cursor::new(long)).unwrap(), Some(Err("its length is wrong")));
    }
}
