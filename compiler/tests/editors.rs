//! What editors are given beside the server knows the words that the compiler knows.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use pipec_compiler::editor::words::{self, Word};
use pipec_compiler::field::Header;
use pipec_compiler::parse::{ITEM_WORDS, UNITS};
use pipec_compiler::resolve;
use serde_json::Value;

fn json(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/vscode").join(path);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The words between the first parentheses of an expression that hold a choice.
fn words_of(expression: &str) -> BTreeSet<&str> {
    let groups = expression.split('(').skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    let choice = groups.into_iter().find(|group| group.contains('|'));
    choice.unwrap_or_else(|| panic!("a choice in {expression}")).split('|').collect()
}

fn names(list: &[Word]) -> BTreeSet<&'static str> {
    list.iter().map(|(name, ..)| *name).collect()
}

#[test]
fn the_grammar_knows_the_words_of_the_language() {
    let grammar = json("syntaxes/pipe.tmLanguage.json");
    let rule = |name: &str| grammar["repository"][name]["match"].as_str().unwrap_or_else(|| panic!("{name}"));
    for (name, expected) in [
        ("items", names(words::ITEMS)),
        ("rules", names(words::RULES)),
        ("keyed", names(words::KEYED)),
        ("steps", names(words::STEPS)),
        ("actions", names(words::ACTIONS)),
        ("others", names(words::OTHERS)),
        ("headers", Header::NAMES.iter().map(|(name, _)| *name).collect()),
    ] {
        assert_eq!(words_of(rule(name)), expected, "`{name}` of pipe.tmLanguage.json");
    }
    let types = words_of(rule("types"));
    assert!(words::TYPES.iter().all(|ty| types.contains(ty) || ty.starts_with('u')), "{types:?}");
    let units = grammar["repository"]["numbers"]["patterns"][2]["match"].as_str().unwrap();
    assert_eq!(words_of(units), UNITS.iter().map(|(name, _)| *name).collect());
    for include in grammar["patterns"].as_array().unwrap() {
        let name = include["include"].as_str().unwrap().trim_start_matches('#');
        assert!(!grammar["repository"][name].is_null(), "{name}");
    }
}

#[test]
fn every_word_of_the_compiler_is_described() {
    let items = names(words::ITEMS);
    assert!(ITEM_WORDS.iter().all(|word| items.contains(word)), "{ITEM_WORDS:?}");
    let actions = names(words::ACTIONS);
    let missing: Vec<&str> = resolve::built_in_actions().filter(|name| !actions.contains(name)).collect();
    assert!(missing.is_empty(), "editor/words.rs does not describe {missing:?}");
}

#[test]
fn the_extension_names_what_is_there() {
    let package = json("package.json");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/vscode");
    let contributes = &package["contributes"];
    let mut paths = vec![package["main"].as_str().unwrap()];
    paths.extend(contributes["grammars"].as_array().unwrap().iter().map(|grammar| grammar["path"].as_str().unwrap()));
    for language in contributes["languages"].as_array().unwrap() {
        paths.push(language["configuration"].as_str().unwrap());
        json(language["configuration"].as_str().unwrap());
    }
    for path in paths {
        assert!(folder.join(path).is_file(), "{path}");
    }
    let code = std::fs::read_to_string(folder.join("extension.js")).unwrap();
    assert!(code.contains("'lsp'") && code.contains("pipec.restart"));
}
