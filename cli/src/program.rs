//! From a file to a program. In: a path, or `-` for standard input. Out: the HIR and its sources, after diagnostics have been
//! printed. Never: a program with errors.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use pipec_compiler::diag;
use pipec_compiler::hir::Program;
use pipec_compiler::source::Sources;
use pipec_runtime::error::system;

use crate::failure::Failure;
use crate::files::Files;
use crate::messages;

/// A program that can be compiled.
pub struct Loaded {
    /// Its text.
    pub sources: Sources,
    /// What it is.
    pub program: Arc<Program>,
}

impl Loaded {
    /// The name of the program's own file, which is read before those that it uses.
    pub fn name(&self) -> &str {
        &self.sources.file(0).name
    }
}

/// Reads and checks a program; `ports` exist beside those that rules of a `.flows` file name.
pub fn load(path: &Path, ports: &[u32], color: bool) -> Result<Loaded, Failure> {
    load_with(path, ports, color, &Lints::default())
}

/// Which warnings are not shown, and which are errors, by their codes; `warnings` is all of them.
#[derive(Default)]
pub struct Lints {
    /// Not shown.
    pub allow: Vec<String>,
    /// Errors.
    pub deny: Vec<String>,
}

impl Lints {
    fn apply(&self, diagnostics: &mut Vec<diag::Diagnostic>) {
        let names = |list: &[String], code: &str| list.iter().any(|one| one == code || one == "warnings");
        let warns = |diagnostic: &diag::Diagnostic| diagnostic.severity == diag::Severity::Warning;
        diagnostics.retain(|diagnostic| !(warns(diagnostic) && names(&self.allow, diagnostic.code)));
        for diagnostic in diagnostics.iter_mut().filter(|diagnostic| warns(diagnostic)) {
            if names(&self.deny, diagnostic.code) {
                diagnostic.severity = diag::Severity::Error;
            }
        }
    }
}

/// As [`load`], with a say on warnings.
pub fn load_with(path: &Path, ports: &[u32], color: bool, lints: &Lints) -> Result<Loaded, Failure> {
    let text = read(path)?;
    let name = name(path, &text)?;
    let mut sources = Sources::with_loader(Arc::new(Files));
    let file = sources.add(name, text);
    let (program, mut diagnostics) = pipec_compiler::front(&mut sources, file, ports);
    lints.apply(&mut diagnostics);
    messages::tell(&diagnostics, &sources, color);
    match program {
        Some(program) if !diag::has_errors(&diagnostics) => Ok(Loaded { sources, program: Arc::new(program) }),
        _ => Err(Failure::Told(2)),
    }
}

/// The text of a program.
pub fn read(path: &Path) -> Result<String, Failure> {
    let bytes = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    let name = path.display();
    let bytes = bytes.map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => "see that the path is right",
            std::io::ErrorKind::PermissionDenied => "make the file readable for you",
            _ => "name a file with a program",
        };
        Failure::environment(format!("{name}: cannot read the program: {}; {help}", system(&error)))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!("{name}: this is not text (byte {at} is not UTF-8); a program is a text file"))
    })
}

/// The name of a source, which says its language.
pub fn name(path: &Path, text: &str) -> Result<String, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("pipe" | "flows") => Ok(path.display().to_string()),
        _ if path == Path::new("-") || path.starts_with("/dev") || path.starts_with("/proc") => {
            Ok(if looks_like_flows(text) { "stdin.flows" } else { "stdin.pipe" }.to_string())
        }
        _ => Err(Failure::usage(format!(
            "{}: cannot tell the language of the program by its name; call it NAME.pipe, or NAME.flows for rules of ovs-ofctl",
            path.display()
        ))),
    }
}

/// Whether a text without a name holds rules of `ovs-ofctl`: those never begin as a pipeline does.
fn looks_like_flows(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let first = lines.next().unwrap_or("");
    let word = first.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or("");
    !(first.starts_with("//") || first.starts_with("/*") || ["pipeline", "use"].contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_told_by_name_or_first_word() {
        let name = |path: &str, text| name(Path::new(path), text).ok();
        assert_eq!(name("a/b.pipe", ""), Some("a/b.pipe".to_string()));
        assert_eq!(name("b.flows", ""), Some("b.flows".to_string()));
        assert_eq!(name("b.txt", "pipeline"), None);
        assert_eq!(name("-", "# x\n\n  pipeline a {"), Some("stdin.pipe".to_string()));
        assert_eq!(name("/dev/fd/3", "// x"), Some("stdin.pipe".to_string()));
        assert_eq!(name("-", "# x\nip actions=drop"), Some("stdin.flows".to_string()));
        assert_eq!(name("-", ""), Some("stdin.flows".to_string()));
    }
}
