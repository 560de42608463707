//! What `pipec fmt` makes of programs: one layout, whatever it was before, and never another program.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pipec_compiler::diag::Diagnostic;
use pipec_compiler::format::{Error, WIDTH, format};
use pipec_compiler::parse;
use pipec_compiler::token::{Kind, tokens};
use proptest::prelude::*;
use proptest::sample::Index;

/// The text formatted, which is stable.
#[track_caller]
fn formatted(text: &str) -> String {
    let once = format(text).unwrap_or_else(|error| panic!("{error:?}:\n{text}"));
    let twice = format(&once).unwrap_or_else(|error| panic!("{error:?}:\n{once}"));
    assert_eq!(once, twice, "not stable");
    once
}

/// The items of a pipeline, formatted.
#[track_caller]
fn items(text: &str) -> String {
    let whole = formatted(&format!("pipeline p{{{text}}}"));
    let inner = whole.strip_prefix("pipeline p {\n").unwrap().strip_suffix("}\n").unwrap();
    inner.lines().map(|line| line.strip_prefix("    ").unwrap_or(line).to_string() + "\n").collect()
}

/// A file of `pipelines`, by its path below it.
fn programs(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipelines").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pipe"));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn statements_stand_on_lines_of_their_own() {
    let text = "port a,b=2 ,;const K=1_000;set s={1,0x2..=5,10.0.0.0/8,};var n:u16;
action x(o:port){dec_ttl;eth.src=02:00:00:00:00:01;clone{ip.dscp=1;output(o);};clone{normal}}table t{}
start{!(ip&&tcp)||ct.new=>x(a),goto t;ipv4.src&255.0.0.255==K=>drop;else=>;}
test \"t\"{send a  eth()/ipv4(src=10.0.0.1)/\"x y\";expect a,b;after 61s;send a tcp(flags=syn|ack);}";
    let expected = "port a, b = 2;
const K = 1_000;
set s = { 1, 0x2..=5, 10.0.0.0/8 };
var n: u16;

action x(o: port) {
    dec_ttl;
    eth.src = 02:00:00:00:00:01;
    clone { ip.dscp = 1; output(o); };
    clone { normal }
}

table t { }

start {
    !(ip && tcp) || ct.new      => x(a), goto t;
    ipv4.src & 255.0.0.255 == K => drop;
    else                        =>;
}

test \"t\" {
    send a eth() / ipv4(src = 10.0.0.1) / \"x y\";
    expect a, b;
    after 61 s;
    send a tcp(flags = syn|ack);
}
";
    let found = items(text);
    assert_eq!(found, expected, "{found}");
}

#[test]
fn arrows_of_neighbours_stand_below_each_other() {
    let text = "table t { ip && !ct.trk => ct(), goto u;\narp => normal;\nelse => drop;\n
// apart
ipv4.src == 10.0.0.1 && ipv4.dst == 10.0.0.2 && tcp.dst == 80 => drop;\nip => drop;\ntcp.dst == 80 => normal;
}table u{}";
    let expected = "table t {
    ip && !ct.trk => ct(), goto u;
    arp           => normal;
    else          => drop;

    // apart
    ipv4.src == 10.0.0.1 && ipv4.dst == 10.0.0.2 && tcp.dst == 80 => drop;
    ip            => drop;
    tcp.dst == 80 => normal;
}

table u { }
";
    assert_eq!(items(text), expected);
}

#[test]
fn comments_stay_where_they_were() {
    let text = "/* a
    b */ // c
pipeline p { // d
    // e

    /* f */


    port a /* g */, b; // h
    // i
    table t { // j
        // k
        ip /* l */ && // m
            tcp => drop; /* n */
        else => // o
            drop;
        // p

    } // q
    // r
} // s
// t";
    let expected = "/* a
    b */
// c
pipeline p {  // d
    // e

    /* f */

    port a /* g */, b;  // h

    // i
    table t {  // j
        // k
        ip /* l */
            &&  // m
            tcp
            => drop; /* n */
        else
            =>  // o
            drop;
        // p
    }  // q

    // r
}  // s

// t
";
    let found = formatted(text);
    assert_eq!(found, expected, "{found}");
}

#[test]
fn long_lines_are_broken_where_it_reads_well() {
    let text = "set s = { 10.0.0.0/24, 10.0.1.0/24, 10.0.2.0/24, 10.0.3.0/24, 10.0.4.0/24, 10.0.5.0/24, 10.0.6.0/24, 10.0.7.0/24 };
table t {
ipv4.src == 10.0.0.1 && ipv4.dst == 10.0.0.2 && tcp.dst == 80 => eth.src = 02:00:00:00:00:01, output(a);
ipv4.src == 10.0.0.1 && ipv4.dst == 10.0.0.2 && tcp.dst == 80 && tcp.src == 1000 && ip.ttl == 17 && ip.dscp == 0 => drop;
}
test \"t\" {
send a vlan(vid = 5, tpid = 0x88a8) / vlan(vid = 7) / ipv4(src = 10.0.0.1, dst = 10.0.0.2) / udp(src = 1000, dst = 53);
}";
    let expected = "set s = {
    10.0.0.0/24, 10.0.1.0/24, 10.0.2.0/24, 10.0.3.0/24, 10.0.4.0/24, 10.0.5.0/24, 10.0.6.0/24,
    10.0.7.0/24
};

table t {
    ipv4.src == 10.0.0.1 && ipv4.dst == 10.0.0.2 && tcp.dst == 80
        => eth.src = 02:00:00:00:00:01, output(a);
    ipv4.src == 10.0.0.1
        && ipv4.dst == 10.0.0.2
        && tcp.dst == 80
        && tcp.src == 1000
        && ip.ttl == 17
        && ip.dscp == 0
        => drop;
}

test \"t\" {
    send a vlan(vid = 5, tpid = 0x88a8) / vlan(vid = 7) / ipv4(src = 10.0.0.1, dst = 10.0.0.2)
        / udp(src = 1000, dst = 53);
}
";
    let found = items(text);
    assert_eq!(found, expected, "{found}");
}

#[test]
fn programs_of_the_corpus_are_laid_out() {
    let mut wrong = vec![];
    for (path, text) in programs("") {
        let new = formatted(&text);
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            std::fs::write(&path, &new).unwrap();
            continue;
        }
        let wide = new.lines().any(|line| line.chars().count() > WIDTH && !line.contains("//"));
        if new != text || wide {
            wrong.push(path);
        }
    }
    assert!(wrong.is_empty(), "run `pipec fmt` on these, or this test with UPDATE_EXPECTED=1: {wrong:?}");
}

#[test]
fn slashes_between_headers_stand_apart() {
    let text = "test \"t\" { send 3 a eth()/ipv4(src=10.0.0.1);
        expect 2 a==eth/ipv4()/\"x\",b where ipv4.src in 10.0.0.0/8&&ip.ttl==3,drop; }";
    let expected = "test \"t\" {
    send 3 a eth() / ipv4(src = 10.0.0.1);
    expect 2 a == eth / ipv4() / \"x\", b where ipv4.src in 10.0.0.0/8 && ip.ttl == 3, drop;
}
";
    assert_eq!(items(text), expected);
}

#[test]
fn files_that_others_use_are_laid_out_too() {
    let text = "// Part.\nset s={1,2}; use \"b.pipe\" ;\ntable t{else=>drop;}";
    let expected = "// Part.\nset s = { 1, 2 };\nuse \"b.pipe\";\n\ntable t {\n    else => drop;\n}\n";
    assert_eq!(formatted(text), expected);
    assert!(format("set s = ;").is_err() && format("").is_err());
}

/// Mistakes of form in a text.
fn mistakes(text: &str, diagnostics: &mut Vec<Diagnostic>) {
    if parse::is_part(text) {
        parse::items(text, 0, diagnostics);
    } else {
        parse::pipe(text, 0, diagnostics);
    }
}

#[test]
fn wrong_programs_are_left_alone() {
    let mut refused = 0;
    for (path, text) in programs("bad") {
        let mut diagnostics = vec![];
        mistakes(&text, &mut diagnostics);
        match format(&text) {
            Err(Error::Wrong(found)) => {
                assert_eq!(found, diagnostics, "{}", path.display());
                refused += 1;
            }
            Err(Error::Different) => panic!("{}", path.display()),
            Ok(_) => {
                formatted(&text);
            }
        }
    }
    assert!(refused > 10);
}

static CORPUS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut programs = [programs(""), programs("bad")].concat();
    // A line that begins with the name of a statement begins a statement: such names cannot be laid out.
    programs.retain(|(path, text)| !path.ends_with("reserved-name.pipe") && format(text).is_ok());
    programs.into_iter().map(|(_, text)| text).collect()
});

/// The text with pieces put between its tokens.
fn strewn(text: &str, pieces: &[(Index, &str)]) -> String {
    let mut gaps: Vec<usize> = tokens(text).iter().filter(|t| t.kind != Kind::Comment).map(|t| t.range.end).collect();
    gaps.push(0);
    let mut places: Vec<(usize, &str)> = pieces.iter().map(|(index, piece)| (*index.get(&gaps), *piece)).collect();
    places.sort();
    let mut text = text.to_string();
    for (place, piece) in places.into_iter().rev() {
        text.insert_str(place, piece);
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Comments and white space anywhere: nothing is lost, the layout is stable, and no line is wider than it must be.
    #[test]
    fn comments_anywhere(
        program in any::<Index>(),
        pieces in prop::collection::vec(
            (any::<Index>(), prop::sample::select(vec![" // c\n", "\n// o\n", " /* b */ ", "\n/* o\n o */\n", "\n\n\n", "\n"])),
            0..12,
        ),
    ) {
        let text: &String = program.get(CORPUS.as_slice());
        let text = strewn(text, &pieces);
        let Ok(once) = format(&text) else {
            // A line that begins with the name of a statement begins a statement, and what stands behind it is wrong.
            let mut diagnostics = vec![];
            mistakes(&text, &mut diagnostics);
            prop_assert!(!diagnostics.is_empty(), "{}", text);
            return Ok(());
        };
        prop_assert_eq!(&format(&once).map_err(|error| format!("{error:?}:\n{once}")).unwrap(), &once);
    }
}
