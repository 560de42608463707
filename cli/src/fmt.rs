//! `pipec fmt`: one layout for programs.
//!
//! In: `.pipe` files, or standard input. Out: the files in their canonical layout, written whole or not at all. Never: a file
//! that does not parse, or one that would mean something else.

use std::io::Write;
use std::path::{Path, PathBuf};

use pipec_compiler::format::{self, format};
use pipec_compiler::source::Sources;
use pipec_runtime::error::system;
use pipec_runtime::host;

use crate::bundle::write_whole;
use crate::failure::Failure;
use crate::messages;
use crate::program;

/// Lay programs out in one way; comments stay, and so does what they mean
#[derive(clap::Args)]
pub struct Args {
    /// Programs (.pipe), which are written where they stand; - for standard input, written to standard output
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write nothing, name the files that are laid out otherwise, and fail if there are any
    #[arg(long)]
    check: bool,
}

/// Formats each file; fails with status 2 when any does not parse, with 1 when `--check` finds any to be different.
pub fn fmt(args: &Args, color: bool) -> Result<(), Failure> {
    let mut failed = None;
    for file in &args.files {
        match one(file, args.check, color) {
            Ok(()) => {}
            Err(Failure::Told(status)) => failed = failed.max(Some(status)),
            Err(Failure::Error(error)) if args.files.len() > 1 => {
                messages::failure(&error);
                failed = failed.max(Some(error.status()));
            }
            Err(error) => return Err(error),
        }
    }
    failed.map_or(Ok(()), |status| Err(Failure::Told(status)))
}

fn one(file: &Path, check: bool, color: bool) -> Result<(), Failure> {
    let text = program::read(file)?;
    let name = program::name(file, &text)?;
    if name.ends_with(".flows") {
        let message = "rules of ovs-ofctl keep their layout; fmt is for programs called NAME.pipe";
        return Err(Failure::usage(format!("{}: {message}", file.display())));
    }
    let formatted = match format(&text) {
        Ok(formatted) => formatted,
        Err(format::Error::Wrong(diagnostics)) => {
            let mut sources = Sources::default();
            sources.add(name, text);
            messages::tell(&diagnostics, &sources, color);
            return Err(Failure::Told(2));
        }
        Err(format::Error::Different) => {
            let message =
                "the layout would change the program, so it is left alone; this is a defect of pipec, please report it";
            return Err(Failure::environment(format!("{}: {message}", file.display())));
        }
    };
    if check {
        if formatted != text {
            host::print(&format!("{}: not formatted\n", file.display()))?;
            return Err(Failure::Told(1));
        }
        return Ok(());
    }
    if file == Path::new("-") {
        return Ok(host::print(&formatted)?);
    }
    if formatted == text { Ok(()) } else { write(file, &formatted) }
}

/// Writes a file whole, with the rights it had; where it is a link, what it points at.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    let place = std::fs::canonicalize(file).and_then(|place| {
        let mode = std::fs::metadata(&place)?.permissions().mode() & 0o7777;
        // Whoever may not write the file may not replace it either.
        std::fs::OpenOptions::new().write(true).open(&place)?;
        write_whole(&place, mode, |out| out.write_all(text.as_bytes()))
    });
    place.map_err(|error| {
        let help = "make the file and its folder writable for you, or pass it by standard input";
        Failure::environment(format!("{}: cannot write: {}; {help}", file.display(), system(&error)))
    })
}
