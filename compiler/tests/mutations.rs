//! Random changes to the corpus: whatever the text is, the front end ends with a program or with messages that point into
//! it, and what it can parse it can print and parse again.

mod mutate;

use mutate::{PIPES as CORPUS, TOKENS, boundary};
use pipec_compiler::diag::{has_errors, render_all};
use pipec_compiler::source::Sources;
use pipec_compiler::{parse, print};
use proptest::prelude::*;

/// One change: what, where, how long, with which token or program.
type Change = (u8, prop::sample::Index, u8, prop::sample::Index);

fn change(text: &mut String, (kind, place, length, other): &Change) {
    let start = boundary(text, place.index(text.len() + 1));
    let end = boundary(text, start + usize::from(*length));
    match kind % 6 {
        0 => text.insert_str(start, TOKENS[other.index(TOKENS.len())]),
        1 => text.replace_range(start..end, ""),
        2 => text.replace_range(start..end, TOKENS[other.index(TOKENS.len())]),
        3 => {
            let piece = text[start..end].to_string();
            text.insert_str(end, &piece);
        }
        4 => {
            let piece = text[start..end].to_string();
            let at = boundary(text, other.index(text.len() + 1));
            text.insert_str(at, &piece);
        }
        _ => {
            let donor = &CORPUS[other.index(CORPUS.len())];
            let from = boundary(donor, place.index(donor.len() + 1));
            let to = boundary(donor, from + usize::from(*length) * 2);
            text.insert_str(start, &donor[from..to]);
        }
    }
}

fn mutated() -> impl Strategy<Value = String> {
    let changes = prop::collection::vec(any::<Change>(), 0..8);
    (any::<prop::sample::Index>(), changes).prop_map(|(program, changes)| {
        let mut text = CORPUS[program.index(CORPUS.len())].clone();
        changes.iter().for_each(|each| change(&mut text, each));
        text
    })
}

/// What must hold for any text.
fn hold(text: &str) {
    let mut sources = Sources::default();
    let file = sources.add("mutated.pipe", text);
    let (program, diagnostics) = pipec_compiler::front_pipe(&mut sources, file);
    assert_eq!(program.is_none(), has_errors(&diagnostics), "{text}");
    for diagnostic in &diagnostics {
        for (span, _) in &diagnostic.labels {
            assert!(text.get(span.range()).is_some(), "{span:?} of {diagnostic:?} is not in\n{text}");
        }
    }
    assert!(diagnostics.is_empty() != render_all(&diagnostics, &sources, false).contains("mutated.pipe"));
    if let Some(program) = program {
        pipec_compiler::plan::plan(&program);
    }
    round_trip(text);
}

/// What can be parsed can be printed, and says the same when parsed again.
fn round_trip(text: &str) {
    let mut diagnostics = vec![];
    let Some(tree) = parse::pipe(text, 0, &mut diagnostics).filter(|_| diagnostics.is_empty()) else { return };
    let printed = print::pipeline(&tree);
    let again = parse::pipe(&printed, 0, &mut diagnostics);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}\nin what was printed:\n{printed}\nof\n{text}");
    let again = again.expect("what was printed has a pipeline");
    assert_eq!(again, tree, "{printed}\nof\n{text}");
    assert_eq!(print::pipeline(&again), printed);
}

#[test]
fn the_corpus_round_trips() {
    CORPUS.iter().for_each(|text| hold(text));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn changed_programs_end_with_a_program_or_messages(text in mutated()) {
        hold(&text);
    }

    #[test]
    fn packets_end_with_bytes_or_messages(changes in prop::collection::vec(any::<Change>(), 0..6)) {
        let mut text = String::from("lan: vlan(vid = 5) / ipv4(src = 10.0.0.1, ttl = 3) / tcp(flags = syn|ack) / \"payload\"");
        changes.iter().for_each(|each| change(&mut text, each));
        let mut sources = Sources::default();
        match pipec_compiler::packet::parse_packet(&mut sources, &text) {
            Ok((_, frame)) => prop_assert!(frame.len() <= 65_535),
            Err(diagnostics) => prop_assert!(!render_all(&diagnostics, &sources, false).is_empty(), "{}", text),
        }
    }
}

#[test]
fn deep_and_long_texts_end() {
    for text in [
        "(".repeat(100_000),
        "{".repeat(100_000),
        ")".repeat(100_000),
        format!("pipeline p {{ table t {{ {}ip => drop; }} }}", "!".repeat(100_000)),
        format!("pipeline p {{ table t {{ {} => drop; }} }}", ["ip"; 4_000].join(" && ")),
        format!("pipeline p {{ table t {{ {} => drop; }} }}", ["ip"; 4_000].join(" || ")),
        format!("pipeline p {{ table t {{ tcp.flags == {} => drop; }} }}", ["syn"; 4_000].join("|")),
        format!("pipeline p {{ table t {{ {}ip{} => drop; }} }}", "!(".repeat(120), ")".repeat(120)),
        format!("pipeline p {{ table t {{ ip => {}drop{}; }} }}", "clone { ".repeat(120), " }".repeat(120)),
        format!("pipeline p {{ {} }}", "table t { ".repeat(120)),
        format!("pipeline p {{ {} table t {{ else => a99(); }} }}", chain(100)),
        format!("pipeline p {{ {} table t {{ else => drop; }} }}", "x;".repeat(10_000)),
        format!("pipeline p {{ table t {{ {} }} }}", "goto x;".repeat(10_000)),
        format!("pipeline p {{ table t {{ {} }} }}", "ip => goto x;".repeat(4_000)),
        format!(
            "pipeline p {{ set a = {{ {} }}; set b = {{ {} }}; table t {{ tcp.dst in b => drop; }} }}",
            (0..4_000).map(|i| (i * 2).to_string()).collect::<Vec<_>>().join(","),
            ["a"; 4_000].join(",")
        ),
    ] {
        hold(&text);
    }
}

/// Actions that call the one before twice.
fn chain(length: usize) -> String {
    let call = |i: usize| format!("action a{i}() {{ a{0}(); a{0}(); }}", i - 1);
    (1..length).map(call).chain(["action a0() { drop; }".to_string()]).collect::<Vec<_>>().join(" ")
}
