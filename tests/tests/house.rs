//! House rules, as far as a program can tell: what depends on what, where `unsafe` stands, what the tree looks like.

#![allow(clippy::unwrap_used)] // also in what several tests share

use std::collections::BTreeSet;
use std::process::Command;

use pipec_tests::binary::root;
use pipec_tests::house::{File, files, of_crate, quoted};

/// Lines of a file, without its tests, past which a second idea is in it.
const MOST_LINES: usize = 600;
/// Files that are longer, and why.
const LONG: &[(&str, &str)] = &[];

/// Lines about files, as a failing test shows them.
fn shown(lines: &[String]) -> String {
    format!("\n{}\n", lines.join("\n"))
}

fn architecture() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The line of ARCHITECTURE.md that has these words.
fn line_with(words: &str) -> String {
    let text = architecture();
    let found: Vec<&str> = text.lines().filter(|line| line.contains(words)).collect();
    assert_eq!(found.len(), 1, "one line of ARCHITECTURE.md has `{words}`");
    found[0].to_string()
}

/// Packages that a package is made of, without those for its tests, as `cargo tree` has them: depth and name.
fn tree(package: &str, more: &[&str]) -> Vec<(usize, String)> {
    let args =
        ["tree", "--locked", "--edges", "normal,build", "--prefix", "depth", "--format", " {p}", "--package", package];
    let output = Command::new(env!("CARGO")).args(args).args(more).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (depth, name) = line.split_once(' ')?;
        Some((depth.parse().ok()?, name.split(' ').next()?.to_string()))
    };
    text.lines().map(|text| line(text).unwrap_or_else(|| panic!("cargo tree says `{text}`"))).collect()
}

fn names(tree: &[(usize, String)]) -> BTreeSet<&str> {
    tree.iter().map(|(_, name)| name.as_str()).collect()
}

#[test]
fn the_macro_needs_neither_dpdk_nor_cranelift_nor_a_command_line() {
    let tree = tree("pipec-macros", &[]);
    let names = names(&tree);
    assert!(names.contains("pipec-compiler"), "{names:?}");
    for name in names {
        assert!(!["pipec-dpdk-sys", "pipec-runtime", "clap", "bindgen"].contains(&name), "pipec-macros needs {name}");
        assert!(!name.starts_with("cranelift"), "pipec-macros needs {name}");
    }
}

#[test]
fn the_runtime_knows_the_compiler_only_through_the_macro() {
    for features in ["", "dpdk", "host", "dpdk,host"] {
        let tree = tree("pipec-runtime", &["--no-default-features", "--features", features]);
        let found = names(&tree);
        assert!(!found.contains("pipec-compiler") && !found.contains("pipec-macros"), "with {features}: {found:?}");
        assert_eq!(found.contains("pipec-dpdk-sys"), features.contains("dpdk"), "with {features}: {found:?}");
    }
    let users = tree("pipec-runtime", &["--all-features", "--invert", "pipec-compiler", "--depth", "1"]);
    assert_eq!(
        users.iter().filter(|(depth, _)| *depth == 1).map(|(_, name)| name.as_str()).collect::<Vec<_>>(),
        ["pipec-macros"]
    );
}

#[test]
fn the_abi_is_a_leaf() {
    assert_eq!(tree("pipec-abi", &[]), [(0, "pipec-abi".to_string())]);
}

#[test]
fn unsafe_stands_only_where_the_architecture_says() {
    let listed: Vec<String> = quoted(&line_with("`unsafe` stands in")).into_iter().skip(1).collect();
    let files: Vec<File> = files().into_iter().filter(|file| file.is_rust() && !file.is_test()).collect();
    let has_unsafe: Vec<&File> = files.iter().filter(|file| file.words().iter().any(|word| word == "unsafe")).collect();
    let below =
        |path: &str, place: &str| path == place || path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/'));
    let elsewhere = has_unsafe.iter().filter(|file| !listed.iter().any(|place| below(&file.path, place)));
    let elsewhere: Vec<String> = elsewhere.map(|file| file.path.clone()).collect();
    assert!(elsewhere.is_empty(), "unsafe where ARCHITECTURE.md does not list it:{}", shown(&elsewhere));
    // Bindings are made when they are built, and not in the tree.
    let has_any = |place: &str| has_unsafe.iter().any(|file| below(&file.path, place)) || place == "runtime/dpdk-sys";
    let without: Vec<String> = listed.iter().filter(|place| !has_any(place)).cloned().collect();
    assert!(without.is_empty(), "ARCHITECTURE.md lists what has no unsafe, or is no path:{}", shown(&without));
}

/// Modules of the compiler, in the order of ARCHITECTURE.md.
fn order() -> Vec<String> {
    let line = line_with("a module imports only from those before it");
    let list = line.split("`pipec-compiler`. ").nth(1).unwrap().split(": a module imports").next().unwrap();
    let modules = quoted(list).into_iter().flat_map(|group| group.split(' ').map(str::to_string).collect::<Vec<_>>());
    let mut modules: Vec<String> = modules.map(|module| module.split("::").next().unwrap().to_string()).collect();
    modules.dedup();
    modules
}

#[test]
fn modules_of_the_compiler_import_only_from_those_before() {
    let order = order();
    let place = |module: &str| order.iter().position(|known| known == module);
    let mut wrong = vec![];
    for file in files().iter().filter(|file| file.is_rust() && !file.is_test()) {
        let Some(path) = file.path.strip_prefix("compiler/src/").filter(|path| *path != "lib.rs") else { continue };
        let module = path.split(['/', '.']).next().unwrap();
        let Some(own) = place(module) else {
            wrong.push(format!("{}: ARCHITECTURE.md does not say where `{module}` stands in the order", file.path));
            continue;
        };
        for used in of_crate(&file.words()) {
            // What is no module is an item of the crate's root.
            if place(&used).is_some_and(|used| used > own) {
                wrong.push(format!("{}: uses `{used}`, which comes after `{module}`", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
}

#[test]
fn back_ends_know_the_plan_and_nothing_else() {
    let mut wrong = vec![];
    for file in files().iter().filter(|file| file.is_rust() && !file.is_test()) {
        let Some(path) = file.path.strip_prefix("compiler/src/backend/") else { continue };
        let own = path.split(['/', '.']).next().unwrap();
        let words = file.words();
        for used in of_crate(&words).iter().filter(|used| !["plan", "backend"].contains(&used.as_str())) {
            wrong.push(format!("{}: uses `{used}`", file.path));
        }
        for other in ["rust", "jit"].iter().filter(|other| **other != own && own != "mod") {
            let named = words
                .windows(3)
                .any(|w| ["backend", "super"].contains(&w[0].as_str()) && w[1] == "::" && w[2] == *other);
            if named {
                wrong.push(format!("{}: uses the back end `{other}`", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
}

#[test]
fn the_reference_shares_no_code_with_what_it_is_held_against() {
    let mut wrong = vec![];
    for file in files().iter().filter(|file| file.is_rust() && !file.is_test()) {
        let Some(path) = file.path.strip_prefix("compiler/src/") else { continue };
        let forbidden: &[&str] = match path.split(['/', '.']).next().unwrap() {
            "eval" => &["check", "plan", "backend"],
            "plan" | "backend" => &["eval"],
            _ => &[],
        };
        let used = of_crate(&file.words()).into_iter().filter(|used| forbidden.contains(&used.as_str()));
        wrong.extend(used.map(|used| format!("{}: uses `{used}`", file.path)));
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
}

#[test]
fn files_hold_one_idea_and_say_which() {
    let mut wrong = vec![];
    for file in files().iter().filter(|file| file.is_rust()) {
        let lines = file.text.lines().take_while(|line| *line != "#[cfg(test)]").count();
        match (lines > MOST_LINES, LONG.iter().any(|(path, _)| *path == file.path)) {
            (true, false) => wrong.push(format!("{}: {lines} lines; look for the second idea", file.path)),
            (false, true) => wrong.push(format!("{}: {lines} lines; take it off the list of long files", file.path)),
            _ => {}
        }
        if !file.text.starts_with("//! ") {
            wrong.push(format!("{}: begin with //!: what goes in, what comes out, what it never does", file.path));
        }
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
}

#[test]
fn tests_run_and_code_is_done() {
    let mut wrong = vec![];
    for file in files().iter().filter(|file| file.is_rust()) {
        let text = file.text.lines().filter(|line| !line.trim_start().starts_with("//"));
        if text.clone().any(|line| line.trim_start().starts_with("#[ignore")) {
            wrong.push(format!("{}: has a test that does not run", file.path));
        }
        let words = file.words();
        for name in ["todo", "unimplemented", "dbg"] {
            if words.windows(2).any(|pair| pair[0] == name && pair[1] == "!") {
                wrong.push(format!("{}: has {name}!", file.path));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
}

#[test]
fn nothing_names_a_place_on_somebodys_machine() {
    let folders = ["home", "root", "Users", "work"].map(|folder| format!("/{folder}/"));
    let mut wrong = vec![];
    for file in files() {
        for (n, line) in file.text.lines().enumerate() {
            let is_absolute = |folder: &String| {
                let at = line.find(folder.as_str());
                at.is_some_and(|at| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-}".contains(c)))
            };
            if folders.iter().any(is_absolute) {
                wrong.push(format!("{}:{}: {}", file.path, n + 1, line.trim()));
            }
        }
        // What code is made for is the project's; where crates come from and what links them is a machine's.
        let is_ours = |line: &str| ["#", "[target.", "rustflags = "].iter().any(|start| line.starts_with(start));
        if file.path.starts_with(".cargo/") && !file.text.lines().all(|line| line.is_empty() || is_ours(line)) {
            wrong.push(format!("{}: settings of one machine", file.path));
        }
        let sources = file.text.lines().filter_map(|line| line.strip_prefix("source = "));
        if file.path.ends_with("Cargo.lock") {
            let public = "\"registry+https://github.com/rust-lang/crates.io-index\"";
            wrong.extend(sources.filter(|source| *source != public).map(|source| format!("{}: {source}", file.path)));
        }
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
}

#[test]
fn packages_are_named_licensed_and_linted_alike() {
    let files = files();
    let has = |path: &str| files.iter().any(|file| file.path == path && file.text.len() > 500);
    assert!(has("LICENSE-MIT") && has("LICENSE-APACHE"), "both licences are there");
    let manifests = files.iter().filter(|file| file.path.ends_with("Cargo.toml") && file.path != "Cargo.toml");
    let mut wrong = vec![];
    for manifest in manifests {
        let lines: Vec<&str> = manifest.text.lines().map(str::trim).collect();
        let name = lines.iter().find_map(|line| line.strip_prefix("name = "));
        if !name.is_some_and(|name| name.starts_with("\"pipec-")) {
            wrong.push(format!("{}: its name does not begin with pipec-", manifest.path));
        }
        let is_own = lines.contains(&"[workspace]");
        let licences = ["license.workspace = true", "license = \"MIT OR Apache-2.0\""];
        if !lines.contains(&licences[usize::from(is_own)]) {
            wrong.push(format!("{}: has no licence", manifest.path));
        }
        if !is_own && !manifest.text.contains("[lints]\nworkspace = true") {
            wrong.push(format!("{}: does not take the workspace's lints", manifest.path));
        }
    }
    assert!(wrong.is_empty(), "{}", shown(&wrong));
}
