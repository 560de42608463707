//! The book tells the truth: its programs are right or wrong as it says, what it shows is printed, its tables repeat what the
//! code knows, and the tutorial works. `book/README.md` says how blocks are marked.

#![allow(clippy::unwrap_used)] // also in what several tests share

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pipec_abi::DropReason;
use pipec_compiler::diag::{self, Diagnostic};
use pipec_compiler::field::{Field, Kind};
use pipec_compiler::front;
use pipec_compiler::hir::Program;
use pipec_compiler::source::Sources;
use pipec_tests::binary::{pipec, root};
use pipec_tests::book::{Block, Chapter, chapters, links, matches, source};
use pipec_tests::engines::{eval, jit};
use pipec_tests::live::dataplane::Dataplane;
use pipec_tests::live::netns::Netns;
use pipec_tests::program_tests::failures;
use rustix::process::Signal;

/// A folder with what the book's commands expect, removed behind the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("book-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["pipelines", "tests"] {
            std::os::unix::fs::symlink(root().join(name), folder.join(name)).unwrap();
        }
        Scratch(folder)
    }

    /// Writes the block to the file that it names.
    fn keep(&self, block: &Block) {
        if let Some(name) = block.value("file") {
            std::fs::write(self.0.join(name), &block.text).unwrap();
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn shown(wrong: &[String]) -> String {
    format!("\n{}\n", wrong.join("\n"))
}

fn chapter(path: &str) -> Chapter {
    chapters().into_iter().find(|chapter| chapter.path == path).unwrap_or_else(|| panic!("a chapter {path}"))
}

#[test]
fn every_chapter_is_listed_and_every_link_leads_somewhere() {
    let chapters = chapters();
    let listed: BTreeSet<&str> = chapters.iter().map(|chapter| chapter.path.as_str()).collect();
    let mut wrong = vec![];
    for folder in ["", "language/"] {
        for entry in std::fs::read_dir(source().join(folder)).unwrap().flatten() {
            let path = format!("{folder}{}", entry.file_name().to_string_lossy());
            if path.ends_with(".md") && path != "SUMMARY.md" && !listed.contains(path.as_str()) {
                wrong.push(format!("{path}: not in SUMMARY.md"));
            }
        }
    }
    for chapter in &chapters {
        let folder = chapter.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in links(&chapter.text).iter().filter(|link| !link.starts_with("https://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = source().join(folder).join(if file.is_empty() { chapter.path.as_str() } else { file });
            let Ok(text) = std::fs::read_to_string(&target) else {
                wrong.push(format!("{}: {link} leads nowhere", chapter.path));
                continue;
            };
            let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
            let mut anchors = headings.map(|h| h.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"));
            if !anchor.is_empty() && !anchors.any(|found| found == anchor) {
                wrong.push(format!("{}: {link}: no such heading", chapter.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
}

/// A block as a whole program, and its name.
fn whole(block: &Block) -> (String, String) {
    let text = if block.has("rules") {
        format!("pipeline p {{ port lan, wan; table t {{\n{}}} table u {{ else => drop; }} }}", block.text)
    } else if block.has("items") {
        format!("pipeline p {{ port lan, wan;\n{} table t {{ else => normal; }} }}", block.text)
    } else {
        block.text.clone()
    };
    let name = block.value("name").or(block.value("file")).map(str::to_string);
    (text, name.unwrap_or_else(|| format!("example.{}", block.words[0])))
}

fn compile(block: &Block) -> (Option<Program>, Vec<Diagnostic>, String) {
    let (text, name) = whole(block);
    let mut sources = Sources::default();
    let file = sources.add(name, text);
    let (program, diagnostics) = front(&mut sources, file, &[]);
    let rendered = diag::render_all(&diagnostics, &sources, false);
    (program, diagnostics, rendered)
}

/// What is wrong with a program of the book.
fn faults(block: &Block) -> Option<String> {
    let (program, diagnostics, rendered) = compile(block);
    let has_errors = diag::has_errors(&diagnostics);
    if block.has("bad") != has_errors {
        return Some(format!("is {}bad\n{rendered}", if has_errors { "" } else { "not " }));
    }
    if block.has("warn") != (!diagnostics.is_empty() && !has_errors) && !block.has("rules") && !block.has("items") {
        return Some(format!("has other warnings than its word says\n{rendered}")).filter(|_| !has_errors);
    }
    if let Some(shows) = &block.shows
        && !matches(shows, &rendered)
    {
        return Some(format!("the compiler says\n{rendered}"));
    }
    let program = program?;
    let on = |name: &'static str, engine| failures(&program, &engine).into_iter().map(move |f| format!("{name}: {f}"));
    let failed: Vec<String> = on("eval", eval(&program)).chain(on("jit", jit(&program))).collect();
    (!failed.is_empty()).then(|| failed.join("\n"))
}

#[test]
fn programs_are_right_or_wrong_as_it_says() {
    let (mut wrong, mut tests, mut count) = (vec![], 0, 0);
    for block in chapters().iter().flat_map(|chapter| &chapter.blocks) {
        if block.is("pipe") || block.is("flows") {
            count += 1;
            tests += compile(block).0.map_or(0, |program| program.tests.len());
            wrong.extend(faults(block).map(|fault| format!("{}: {fault}", block.place)));
        }
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
    assert!(count >= 15 && tests >= 5, "{count} programs with {tests} tests were found");
}

#[test]
fn commands_print_what_it_shows() {
    let (mut wrong, mut count) = (vec![], 0);
    let path = format!("{}:{}", pipec().parent().unwrap().display(), std::env::var("PATH").unwrap());
    for chapter in chapters() {
        let scratch = Scratch::new(&chapter.path.replace('/', "-"));
        for block in &chapter.blocks {
            scratch.keep(block);
            if !block.is("console") {
                continue;
            }
            for part in format!("\n{}", block.text).split("\n$ ").skip(1) {
                let (command, expected) = part.split_once('\n').unwrap_or((part, ""));
                let mut shell = Command::new("sh");
                shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(&scratch.0).env("PATH", &path);
                shell.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
                let output = shell.output().unwrap();
                let found = String::from_utf8(output.stdout).unwrap();
                if !output.status.success() || !matches(expected, &found) {
                    wrong.push(format!("{}: {command}: {}\n{found}", block.place, output.status));
                }
                count += 1;
            }
        }
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
    assert!(count >= 5, "{count} commands were found");
}

/// The rows of the table under a head, without the head.
fn rows<'a>(chapter: &'a Chapter, head: &str) -> Vec<&'a str> {
    let lines = chapter.text.lines().skip_while(|line| *line != head).skip(2);
    lines.take_while(|line| line.starts_with('|')).collect()
}

/// Panics unless a table has exactly these rows, in any order.
fn assert_table(path: &str, head: &str, expected: &[String]) {
    let chapter = chapter(path);
    let found: BTreeSet<&str> = rows(&chapter, head).into_iter().collect();
    let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
    let mut text = String::new();
    expected.iter().for_each(|row| writeln!(text, "{row}").unwrap());
    assert!(found == expected, "{path}: the table under `{head}` should be\n{text}");
}

#[test]
fn the_table_of_fields_is_that_of_the_compiler() {
    let row = |field: &Field| {
        let kind = match field.kind() {
            Kind::Number => "number",
            Kind::Mac => "MAC address",
            Kind::Ipv4 => "IPv4 address",
            Kind::Ipv6 => "IPv6 address",
            Kind::Port => "port",
            Kind::Flags => "flags",
        };
        let doc = field.doc().split_once("; values are").map_or(field.doc(), |(doc, _)| doc).trim_end_matches('.');
        let writable = if field.target().is_some() { "yes" } else { "" };
        format!("| `{}` | {} | {kind} | {writable} | {doc} |", field.name(), field.width())
    };
    let head = "| Field | Bits | Kind | Can be written | What it is |";
    assert_table("language/conditions.md", head, &Field::ALL.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn the_table_of_drop_reasons_is_that_of_the_runtime() {
    let row = |reason: &DropReason| format!("| `{}` | {} |", reason.name(), reason.describe().trim_end_matches('.'));
    let expected: Vec<String> = DropReason::ALL.iter().map(row).collect();
    assert_table("operations.md", "| Reason | What it means |", &expected);
}

#[test]
fn every_option_of_run_is_explained() {
    let help = Command::new(pipec()).args(["run", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let options = help.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
    let options: BTreeSet<&str> = options.filter_map(|line| line.split([' ', '=']).next()).collect();
    let chapter = chapter("operations.md");
    let rows = rows(&chapter, "| Option | What it does |");
    let explained: BTreeSet<&str> =
        rows.iter().filter_map(|row| row.strip_prefix("| `--")?.split([' ', '`']).next()).collect();
    assert_eq!(explained, options);
}

#[test]
fn the_tutorial_works_as_written() {
    if !Path::new("/dev/net/tun").exists() {
        return println!("left out: there is no /dev/net/tun");
    }
    let netns = match Netns::new() {
        Ok(netns) => netns,
        Err(error) => return println!("left out: {error}"),
    };
    let scratch = Scratch::new("tutorial");
    let chapter = chapter("tutorial.md");
    chapter.blocks.iter().filter(|block| !block.has("bad")).for_each(|block| scratch.keep(block));
    let scripts: Vec<&str> =
        chapter.blocks.iter().filter(|b| b.is("sh") && b.has("run")).map(|b| b.text.as_str()).collect();
    let (firewall, rest) = scripts.split_first().unwrap();
    let args: Vec<&str> = firewall.trim().strip_prefix("pipec run firewall.pipe ").unwrap().split(' ').collect();
    let program = scratch.0.join("firewall.pipe").display().to_string();
    let dataplane = Dataplane::start(&netns, &pipec(), &[&[program.as_str()], &args[..]].concat());

    let script = format!("mount -t tmpfs tmpfs /run\n{}", rest.join("\n"));
    let mut shell = netns.command(Path::new("bash"));
    let output = shell.args(["-euxo", "pipefail", "-c", &script]).stdin(Stdio::null()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for part in ["3 packets transmitted, 3 received", "3 packets transmitted, 0 received"] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let summary = dataplane.stop(Signal::INT).good();
    assert!(summary.contains("policy"), "{summary}");
}
