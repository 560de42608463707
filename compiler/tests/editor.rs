//! What editors are told about programs: names, what they stand for, what may stand at a place; and that half-written text
//! does no harm.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use pipec_compiler::editor::{Document, Kind, OfferKind, words};

const PROGRAM: &str = "// A program.
pipeline p {
    port lan, wan = 7;
    const WEB = 80; // not about `hosts`
    // Who may.
    // All of them.
    set hosts = { 10.0.0.0/8, 10.1.0.0/16 };
    var tag: u12, out: port;

    action route(out: port, smac: mac) {
        eth.src = smac;
        output(out);
    }

    table first {
        ip && tcp.dst == WEB && ipv4.src in hosts => tag = 5, route(lan, 02:00:00:00:00:01), goto second;
        in_port == wan => call second, output(wan);
    }

    table second { else => normal; }

    test \"a b\" { send lan ipv4(dst = 10.0.0.1) / udp(); expect wan, drop; }
}
";

/// A document, and the place of `§` in it.
fn placed(text: &str) -> (Document, usize) {
    let at = text.find('§').unwrap();
    (Document::new(text.replacen('§', "", 1)), at)
}

/// The program with text inserted before what follows `before`.
fn in_program(before: &str, inserted: &str) -> (Document, usize) {
    let at = PROGRAM.find(before).unwrap_or_else(|| panic!("{before}")) + before.len();
    placed(&format!("{}{inserted}{}", &PROGRAM[..at], &PROGRAM[at..]))
}

#[test]
fn names_are_found_with_their_places() {
    let document = Document::new(PROGRAM);
    let found: Vec<(Kind, &str)> = document.symbols().iter().map(|s| (s.kind, s.name.as_str())).collect();
    let expected = [
        (Kind::Pipeline, "p"),
        (Kind::Port, "lan"),
        (Kind::Port, "wan"),
        (Kind::Const, "WEB"),
        (Kind::Set, "hosts"),
        (Kind::Var, "tag"),
        (Kind::Var, "out"),
        (Kind::Action, "route"),
        (Kind::Param, "out"),
        (Kind::Param, "smac"),
        (Kind::Table, "first"),
        (Kind::Table, "second"),
        (Kind::Test, "a b"),
    ];
    assert_eq!(found, expected);
    let by_name = |name: &str| document.symbols().iter().find(|symbol| symbol.name == name).unwrap();
    assert_eq!(&PROGRAM[by_name("second").item.clone()], "table second { else => normal; }");
    assert_eq!(by_name("p").item, PROGRAM.find("pipeline").unwrap()..PROGRAM.trim_end().len());
    assert_eq!(by_name("hosts").comment, "Who may.\nAll of them.");
    assert_eq!(by_name("tag").comment, "");
    assert_eq!(by_name("out").detail, "variable out: port");
    assert_eq!(by_name("route").detail, "action route(out: port, smac: mac)");
}

#[test]
fn statements_that_are_not_finished_hide_nothing() {
    let document = Document::new("pipeline p {\n port a, \n const K = \n table t { ip => \n table u { x(\n set s = {");
    let found: Vec<&str> = document.symbols().iter().map(|symbol| symbol.name.as_str()).collect();
    assert_eq!(found, ["p", "a", "K", "t", "u", "s"]);
}

#[test]
fn names_that_later_parts_of_the_language_declare_are_known() {
    let text = "pipeline p { header foo { a: u16, b: u4 } after udp if udp.dst == 5; extern action f(x: u32);
        group lb select { bucket { output(a) } } meter m { rate 5 pps; } start { foo.a == 1 => group(lb), f(1); } }";
    let document = Document::new(text);
    let found: Vec<(Kind, &str)> = document.symbols().iter().map(|s| (s.kind, s.name.as_str())).collect();
    for expected in [
        (Kind::Header, "foo"),
        (Kind::HeaderField, "foo.a"),
        (Kind::HeaderField, "foo.b"),
        (Kind::Extern, "f"),
        (Kind::Group, "lb"),
        (Kind::Meter, "m"),
        (Kind::Table, "start"),
    ] {
        assert!(found.contains(&expected), "{expected:?} in {found:?}");
    }
    let at = |name: &str| document.definition(text.rfind(name).unwrap()).unwrap().at.start;
    assert_eq!(at("foo.a"), text.find("a: u16").unwrap());
    assert_eq!(at("lb)"), text.find("lb").unwrap());
    assert_eq!(at("f(1)"), text.find("f(x").unwrap());
}

#[test]
fn names_lead_to_their_declarations() {
    let document = Document::new(PROGRAM);
    for (use_, declaration) in [
        ("WEB && ", "WEB = 80"),
        ("hosts =>", "hosts = {"),
        ("tag = 5", "tag: u12"),
        ("route(lan", "route(out"),
        ("lan, 02", "lan, wan"),
        ("second;", "second {"),
        ("second, output", "second {"),
        ("wan => call", "wan = 7"),
        ("smac;", "smac: mac"),
        ("out);", "out: port, smac"),
        ("lan ipv4", "lan, wan"),
        ("first {", "first {"),
    ] {
        let (from, to) = (PROGRAM.find(use_).unwrap(), PROGRAM.find(declaration).unwrap());
        for from in [from, from + 1] {
            assert_eq!(document.definition(from).map(|symbol| symbol.at.start), Some(to), "{use_}");
        }
    }
    for nothing in ["ip &&", "eth.src", "80;", "normal", "// A", "{ 10", "dst = 10"] {
        assert_eq!(document.definition(PROGRAM.find(nothing).unwrap()), None, "{nothing}");
    }
    // Only in its action is a parameter known.
    let (document, at) = in_program("ip && ", "s§mac && ");
    assert_eq!(document.definition(at), None);
}

#[test]
fn hovering_tells_what_a_word_means() {
    let document = Document::new(PROGRAM);
    for (place, parts) in [
        ("tcp.dst", &["`tcp.dst`: a number, 16 bits", "Destination port", "with tcp", "Can be written"][..]),
        ("in_port ==", &["`in_port`: a port", "Cannot be written"]),
        ("ip &&", &["`ip`: a header, on eth", "Holds for packets that have it"]),
        ("normal", &["learning switch"]),
        ("goto", &["goto TABLE"]),
        ("table first", &["table NAME {", "the first that holds"]),
        ("second;", &["table second"]),
        ("hosts =>", &["set hosts = { 10.0.0.0/8", "Who may.\nAll of them."]),
        ("smac;", &["parameter smac: mac"]),
        ("expect", &["the ports it came out of"]),
    ] {
        let (range, text) = document.hover(PROGRAM.find(place).unwrap() + 1).unwrap_or_else(|| panic!("{place}"));
        assert!(PROGRAM[range].starts_with(place.split([' ', ';']).next().unwrap()));
        for part in parts {
            assert!(text.contains(part), "{place}: `{part}` in {text}");
        }
    }
    for nothing in ["80;", "// A", "\"a b", "dst = 10", "&& tcp"] {
        assert_eq!(document.hover(PROGRAM.find(nothing).unwrap()), None, "{nothing}");
    }
    let flag = Document::new("start { ct.est && nw_src == 1 => drop; }");
    assert!(flag.hover(10).unwrap().1.contains("Bit 0x2 of `ct.state`"));
    assert!(flag.hover(20).unwrap().1.contains("`ipv4.src`"), "OpenFlow's names are understood");
}

/// What is offered at `§`, as names.
#[track_caller]
fn offered((document, at): (Document, usize)) -> Vec<String> {
    document.complete(at).map_or(vec![], |found| found.offers.into_iter().map(|offer| offer.name).collect())
}

#[track_caller]
fn offers(place: (Document, usize), wanted: &[&str], unwanted: &[&str]) {
    let found = offered(place);
    for name in wanted {
        assert!(found.iter().any(|found| found == name), "`{name}` in {found:?}");
    }
    for name in unwanted {
        assert!(!found.iter().any(|found| found == name), "no `{name}` in {found:?}");
    }
}

#[test]
fn what_is_offered_fits_the_place() {
    let (start, rule) = ("table first {\n        ", "=> tag = 5, ");
    offers(in_program("ip && ", "tcp.§"), &["tcp.dst", "tcp.src", "tcp.syn", "tcp.flags"], &["udp.dst", "tcp_dst"]);
    offers(in_program("ip && ", "ipv4.d§"), &["ipv4.dst", "ipv4.ttl"], &["drop"]);
    offers(in_program("ip && ", "ct.§ && "), &["ct.new", "ct.state", "ct.mark"], &["tcp.syn"]);
    offers(in_program("ip && ", "§"), &["hosts", "WEB", "tag", "lan", "tcp", "ipv4.src"], &["goto", "smac", "dl_dst"]);
    offers(in_program(start, "§"), &["else", "priority", "ip", "hosts"], &["goto", "table"]);
    offers(in_program(rule, "§"), &["route", "output", "goto", "tag", "eth.dst"], &["hosts", "ip.frag", "first"]);
    offers(in_program(rule, "goto §"), &["first", "second"], &["route", "lan"]);
    offers(in_program(rule, "call se§"), &["second"], &["lan"]);
    offers(in_program(rule, "output(§"), &["lan", "wan", "out"], &["WEB", "drop"]);
    offers(in_program(rule, "output(lan, §"), &["wan"], &["drop"]);
    offers(in_program(rule, "eth.src = §"), &["eth.dst", "WEB"], &["drop"]);
    offers(in_program("smac;\n        ", "§"), &["output", "goto", "eth.dst"], &["else", "hosts"]);
    offers(in_program("eth.src = ", "§"), &["smac", "out"], &["drop"]);
    offers(in_program("wan = 7;\n    ", "§"), &["table", "port", "var"], &["drop", "lan"]);
    offers(in_program("var tag: ", "§"), &["port", "u16", "mac"], &["lan"]);
    offers(in_program("action route(out: ", "§"), &["port", "mac"], &["lan"]);
    offers(in_program("test \"a b\" { ", "§"), &["send", "expect", "after"], &["drop"]);
    offers(in_program("{ send ", "§ "), &["lan", "wan"], &["tcp"]);
    offers(in_program("{ send lan ", "§ "), &["ipv4", "tcp"], &["lan"]);
    offers(in_program("10.0.0.1) / ", "§ "), &["udp", "tcp"], &["lan"]);
    offers(in_program("send lan ipv4(", "§"), &["src", "dst", "ttl"], &["lan", "ipv4"]);
    offers(in_program("expect ", "§"), &["lan", "drop"], &["output"]);
    offers(in_program("expect wan, ", "§"), &["lan", "drop"], &["output"]);
    offers(placed("§"), &["pipeline"], &["table"]);
    for silent in
        ["pipeline p { // §", "pipeline p { /* § */ }", "pipeline p { test \"§\" { } }", "pipeline p { port a = 7§"]
    {
        assert_eq!(offered(placed(silent)), Vec::<String>::new(), "{silent}");
    }
}

#[test]
fn what_is_written_already_is_replaced() {
    let (document, at) = in_program("ip && ", "ipv4.d§ && ");
    let found = document.complete(at).unwrap();
    assert_eq!(&document.text()[found.replaces], "ipv4.d");
    let offer = found.offers.iter().find(|offer| offer.name == "ipv4.dst").unwrap();
    assert_eq!(offer.kind, OfferKind::Field);
    assert!(offer.doc.contains("Destination address"));
    let mut names: Vec<&str> = found.offers.iter().map(|offer| offer.name.as_str()).collect();
    names.sort_unstable();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "nothing is offered twice");
}

#[test]
fn words_are_described_once_and_in_order() {
    for list in [words::ITEMS, words::RULES, words::KEYED, words::STEPS, words::ACTIONS, words::OTHERS] {
        assert!(list.is_sorted_by_key(|(word, ..)| *word));
        assert!(list.iter().all(|(word, usage, doc)| usage.contains(word) && doc.ends_with('.')));
    }
    for word in pipec_compiler::parse::ITEM_WORDS {
        assert!(words::ITEMS.iter().any(|(known, ..)| known == word), "`{word}` is not described");
    }
}

/// All that editors ask, at every place of a text.
fn ask(text: &str, step: usize) {
    let document = Document::new(text);
    for at in (0..=text.len() + 1).step_by(step) {
        let _ = document.hover(at);
        let _ = document.definition(at);
        let _ = document.complete(at);
    }
    for symbol in document.symbols() {
        assert!(text.get(symbol.at.clone()).is_some() && text.get(symbol.item.clone()).is_some());
    }
}

#[test]
fn half_written_programs_do_no_harm() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipelines");
    let firewall = std::fs::read_to_string(folder.join("firewall.pipe")).unwrap();
    for text in [PROGRAM, firewall.as_str(), "pipeline ä { port é𝕏; table \"𝕏 { /* ä"] {
        let ends: Vec<usize> = (0..=text.len()).filter(|&end| text.is_char_boundary(end)).collect();
        for &end in &ends {
            let document = Document::new(&text[..end]);
            for at in [end.saturating_sub(1), end] {
                let _ = document.hover(at);
                let _ = document.definition(at);
                let _ = document.complete(at);
            }
            let _ = Document::new(&text[end..]).complete(0);
        }
        ask(text, 1);
    }
    ask(&"table t { x(".repeat(300), 97);
}
