//! Source files and places in them. A program may name further files (`use`, `entries from`); how they are found and read
//! is the business of a [`Loader`], since this library reads no files.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A place in a source file, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// Which file: an index into [`Sources`].
    pub file: u16,
    /// First byte.
    pub start: u32,
    /// Behind the last byte.
    pub end: u32,
}

impl std::fmt::Debug for Span {
    /// `file:start..end`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}..{}", self.file, self.start, self.end)
    }
}

impl Span {
    /// A place in a file.
    pub fn new(file: u16, range: Range<usize>) -> Span {
        Span { file, start: range.start as u32, end: range.end as u32 }
    }

    /// The bytes as a range.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// From the start of this to the end of `other`, of the same file.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start, end: other.end }
    }
}

/// One file: how people know it, and its text.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path or other name, as the user gave it.
    pub name: String,
    /// The text.
    pub text: String,
}

/// Files of one program, at the most.
const MAX_FILES: usize = 4_096;

/// Finds and reads the files that a program names. Errors are what the user is told: what is wrong, and with which file.
pub trait Loader: Send + Sync {
    /// The name of the file that `path` means where it stands in the file `from`: what people know it by, what
    /// [`Loader::read`] takes, and the `from` of what stands in it.
    fn find(&self, from: &str, path: &str) -> Result<String, String>;

    /// The text of a file that was found.
    fn read(&self, name: &str) -> Result<String, String>;

    /// What two names of one file have in common.
    fn identity(&self, name: &str) -> String {
        name.to_string()
    }
}

/// Where a [`Loader`] of files finds `path` as it stands in the file `from`: beside that file, else in the first of `folders`
/// that has it. `is_file` says what is there.
pub fn search(from: &str, path: &str, folders: &[PathBuf], is_file: impl Fn(&Path) -> bool) -> Result<String, String> {
    let beside = Path::new(from).parent().unwrap_or(Path::new("")).join(path);
    let elsewhere = folders.iter().map(|folder| folder.join(path));
    let mut places: Vec<PathBuf> = std::iter::once(beside).chain(elsewhere).collect();
    places.dedup();
    match places.iter().find(|place| is_file(place)) {
        Some(place) => Ok(place.to_string_lossy().into_owned()),
        None => {
            let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            Err(format!("there is no file {}", places.join(", nor ")))
        }
    }
}

/// The files of one program.
#[derive(Clone, Default)]
pub struct Sources {
    files: Vec<Source>,
    /// The files that were loaded, or that the loader could load, by identity.
    loaded: HashMap<String, u16>,
    loader: Option<Arc<dyn Loader>>,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Sources {
    /// No files yet, and a way to read those that a program names.
    pub fn with_loader(loader: Arc<dyn Loader>) -> Sources {
        Sources { loader: Some(loader), ..Sources::default() }
    }

    /// Adds a file; the number goes into [`Span::file`].
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> u16 {
        let name = name.into();
        if let Some(loader) = &self.loader {
            self.loaded.insert(loader.identity(&name), self.files.len() as u16);
        }
        self.files.push(Source { name, text: text.into() });
        (self.files.len() - 1) as u16
    }

    /// The file that `path` means where it stands in the file `from`: read if that has not been done yet.
    pub fn load(&mut self, from: u16, path: &str) -> Result<u16, String> {
        let Some(loader) = self.loader.clone() else {
            return Err("programs that name other files cannot be read here".into());
        };
        let name = loader.find(&self.file(from).name, path)?;
        if let Some(&file) = self.loaded.get(&loader.identity(&name)) {
            return Ok(file);
        }
        if self.files.len() >= MAX_FILES {
            return Err(format!("a program has at most {MAX_FILES} files"));
        }
        let text = loader.read(&name)?;
        if u32::try_from(text.len()).is_err() {
            return Err(format!("{name}: the file is too big: at most 4 GiB"));
        }
        Ok(self.add(name, text))
    }

    /// All files in the order of their numbers.
    pub fn files(&self) -> &[Source] {
        &self.files
    }

    /// The file with this number.
    pub fn file(&self, file: u16) -> &Source {
        &self.files[usize::from(file)]
    }

    /// The text of a place.
    pub fn text(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.range()).unwrap_or("")
    }

    /// Line and column of a place's start, both from 1; columns count characters.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let before = self.file(span.file).text.get(..span.start as usize).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_searched_beside_the_one_that_names_it_and_then_along_the_path() {
        let folders = [PathBuf::from("/lib"), PathBuf::from("more")];
        let find = |from: &str, path: &str, there: &[&str]| {
            search(from, path, &folders, |place| there.iter().any(|one| Path::new(one) == place))
        };
        assert_eq!(find("a/b.pipe", "c.pipe", &["a/c.pipe", "/lib/c.pipe"]).as_deref(), Ok("a/c.pipe"));
        assert_eq!(find("a/b.pipe", "c.pipe", &["c.pipe", "/lib/c.pipe", "more/c.pipe"]).as_deref(), Ok("/lib/c.pipe"));
        assert_eq!(find("b.pipe", "d/c.pipe", &["d/c.pipe"]).as_deref(), Ok("d/c.pipe"));
        assert_eq!(find("a/b.pipe", "/c.pipe", &["/c.pipe", "a/c.pipe"]).as_deref(), Ok("/c.pipe"));
        assert_eq!(
            find("a/b.pipe", "c.pipe", &["c.pipe"]),
            Err("there is no file a/c.pipe, nor /lib/c.pipe, nor more/c.pipe".to_string())
        );
    }

    #[test]
    fn without_a_loader_nothing_is_read() {
        let mut sources = Sources::default();
        let file = sources.add("a.pipe", "");
        assert!(sources.load(file, "b.pipe").is_err_and(|what| what.contains("cannot be read here")));
    }
}
