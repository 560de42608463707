//! Programs of several files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pipec_compiler::diag::{Diagnostic, render_all};
use pipec_compiler::hir::{Action, PortId, Program};
use pipec_compiler::source::{Loader, Sources, search};

/// Files in memory, and which of them were read.
struct Texts {
    texts: BTreeMap<String, String>,
    read: Arc<Mutex<Vec<String>>>,
}

impl Loader for Texts {
    fn find(&self, from: &str, path: &str) -> Result<String, String> {
        search(from, path, &["lib".into()], |place| self.texts.contains_key(&*place.to_string_lossy()))
    }
    fn read(&self, name: &str) -> Result<String, String> {
        self.read.lock().expect("no panic").push(name.to_string());
        Ok(self.texts[name].clone())
    }
}

/// The program that begins in `main.pipe`, what is said about it, and the files that were read.
fn front(files: &[(&str, &str)]) -> (Option<Program>, Vec<Diagnostic>, Sources, Vec<String>) {
    let texts = files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
    let read = Arc::new(Mutex::new(vec![]));
    let mut sources = Sources::with_loader(Arc::new(Texts { texts, read: read.clone() }));
    let file = sources.add("main.pipe", files[0].1);
    let (program, diagnostics) = pipec_compiler::front_pipe(&mut sources, file);
    let read = read.lock().expect("no panic").clone();
    (program, diagnostics, sources, read)
}

#[test]
fn what_is_used_stands_in_place_of_the_use() {
    let (program, diagnostics, sources, read) = front(&[
        (
            "main.pipe",
            "pipeline p { port a; use \"parts/ports.pipe\"; port c; use \"rules.pipe\"; start { else => call t; } }",
        ),
        ("parts/ports.pipe", "use \"names.pipe\"; port b; use \"../lib/rules.pipe\"; use \"names.pipe\";"),
        ("parts/names.pipe", "set hosts = { 10.0.0.0/8 };"),
        ("lib/rules.pipe", "table t { ipv4.src in hosts && in_port == a => output(b); in_port == c => output(a); }"),
        ("parts/../lib/rules.pipe", "table u { else => goto t; }"),
    ]);
    // Names are files here, so one that is reached by two names is two.
    assert_eq!(read, ["parts/ports.pipe", "parts/names.pipe", "parts/../lib/rules.pipe", "lib/rules.pipe"]);
    let warnings = render_all(&diagnostics, &sources, false);
    assert_eq!(diagnostics.len(), 1, "{warnings}");
    assert!(warnings.contains("unreachable-table") && warnings.contains("parts/../lib/rules.pipe:1:7"), "{warnings}");
    let program = program.expect("a program");
    let ports: Vec<(&str, u32)> = program.ports.iter().map(|port| (port.name.as_str(), port.number)).collect();
    assert_eq!(ports, [("a", 1), ("b", 2), ("c", 3)]);
    let tables: Vec<&str> = program.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(tables, ["u", "t", "start"]);
    let t = &program.tables[1];
    assert_eq!(t.rules[0].actions, [Action::Output(PortId(1))]);
    assert_eq!(sources.file(t.span.file).name, "lib/rules.pipe");
    assert_eq!(sources.text(t.rules[1].span), "in_port == c => output(a);");
}

#[test]
fn mistakes_are_shown_in_their_own_files() {
    let (program, diagnostics, sources, _) = front(&[
        ("main.pipe", "pipeline p {\n port a, b;\n use \"x.pipe\";\n table t { ipv4.src in hosts => output(b); }\n}"),
        ("x.pipe", "set hosts = {\n 10.0.0.0/33 };\nset more = { 1, };;\nport a;"),
    ]);
    assert_eq!(program, None);
    let text = render_all(&diagnostics, &sources, false);
    for part in ["x.pipe:2:11", "x.pipe:3:19", "x.pipe:4:6", "main.pipe:2:7", "declared first here"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert!(!text.contains("main.pipe:4"), "{text}");
}

#[test]
fn circles_are_refused_with_the_chain() {
    let (program, diagnostics, sources, _) = front(&[
        ("main.pipe", "pipeline p { port a; use \"b.pipe\"; table t { else => drop; } }"),
        ("b.pipe", "use \"c.pipe\";"),
        ("c.pipe", "\nuse \"b.pipe\";"),
    ]);
    assert_eq!(program, None);
    let [diagnostic] = &diagnostics[..] else { panic!("{diagnostics:?}") };
    assert!(diagnostic.message.ends_with("b.pipe uses c.pipe uses b.pipe"), "{}", diagnostic.message);
    let text = render_all(&diagnostics, &sources, false);
    assert!(text.contains("c.pipe:2:5") && text.contains("b.pipe:1:5"), "{text}");
    let deep: Vec<(String, String)> =
        (0..200).map(|i| (format!("f{i}.pipe"), format!("use \"f{}.pipe\";", i + 1))).collect();
    let main = ("main.pipe", "pipeline p { port a; use \"f0.pipe\"; table t { else => drop; } }");
    let files: Vec<(&str, &str)> =
        std::iter::once(main).chain(deep.iter().map(|(name, text)| (name.as_str(), text.as_str()))).collect();
    let (_, diagnostics, ..) = front(&files);
    assert_eq!(diagnostics[0].code, "too-many", "{diagnostics:?}");
}

#[test]
fn a_file_that_cannot_be_cut_is_reported_once() {
    let (program, diagnostics, ..) = front(&[
        ("main.pipe", "pipeline p { port a; use \"b.pipe\"; table t { ipv4.src in hosts => drop; } }"),
        ("b.pipe", "set hosts = { 10.0.0.1 }; /* "),
    ]);
    assert_eq!(program, None);
    assert_eq!(diagnostics.iter().map(|d| d.code).collect::<Vec<_>>(), ["unclosed-comment"]);
}
