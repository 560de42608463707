//! What tests of mutated programs share: the corpus, things to put in, and changes drawn from a number.

#![allow(dead_code)] // each test file uses its part of it

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Programs of the corpus, good and bad.
pub static PIPES: LazyLock<Vec<String>> = LazyLock::new(|| corpus("pipe"));
/// Rules of `ovs-ofctl` of the corpus, and a few more.
pub static FLOWS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut all = corpus("flows");
    all.extend(MORE_FLOWS.iter().map(|text| text.to_string()));
    all
});

fn corpus(extension: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipelines");
    let mut paths: Vec<_> = [root.clone(), root.join("bad"), root.join("bad/parts")]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).expect("the corpus"))
        .map(|entry| entry.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).expect("text")).collect()
}

const MORE_FLOWS: &[&str] = &[
    "table=0, priority=10, in_port=1,dl_vlan=5,ip,nw_dst=10.0.0.0/8 actions=strip_vlan,dec_ttl,output:2\n\
     table=0,priority=5,ct_state=-trk,tcp actions=ct(table=1,zone=NXM_NX_REG0[0..15])\n\
     table=1,ct_state=+trk+new,tcp,tp_dst=0x50/0xfff0 actions=ct(commit,exec(set_field:1->ct_mark)),resubmit(,2)\n\
     table=2,reg0=0x1/0xff,metadata=5 actions=load:0x5->NXM_NX_REG1[3..9],move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],normal\n",
    "cookie=0x0, duration=3.2s, table=0, n_packets=0, n_bytes=0, idle_age=3, arp,arp_tpa=10.0.0.1 actions=in_port\n\
     ipv6,ipv6_src=2001:db8::/32,nw_frag=not_later actions=set_field:02:00:00:00:00:01->eth_dst,goto_table:7\n\
     table=7 actions=clone(mod_nw_ttl:3,output:1),drop\n",
];

/// Things that a change may put in.
pub const TOKENS: &[&str] = &[
    " ",
    "\n",
    ";",
    ",",
    "{",
    "}",
    "(",
    ")",
    "=>",
    "==",
    "!=",
    "!",
    "&&",
    "||",
    "|",
    "&",
    "+",
    "-",
    "/",
    "..=",
    "in",
    "=",
    "<",
    ">=",
    ":",
    ".",
    "\"",
    "\\",
    "/*",
    "*/",
    "//",
    "0",
    "1",
    "65536",
    "0xff",
    "340282366920938463463374607431768211456",
    "10.0.0.0/8",
    "02:00:00:00:00:01",
    "2001:db8::/32",
    "::",
    "ip",
    "tcp",
    "vlan.vid",
    "ip.ttl",
    "ct.new",
    "ct.trk",
    "in_port",
    "priority",
    "else",
    "goto",
    "call",
    "clone",
    "drop",
    "exit",
    "normal",
    "dec_ttl",
    "ct(commit)",
    "output(lan)",
    "lan",
    "table",
    "start",
    "action",
    "test",
    "send",
    "expect",
    "after",
    "set",
    "const",
    "var",
    "u16",
    "ipv4(",
    "use \"x.pipe\";",
    "where",
    "drop(policy)",
    "wan == ipv4()",
    "send 3 lan",
    "header",
    "extern action",
    "key ipv4.dst: lpm;",
    "entries {",
    "group",
    "meter",
    "push vlan(",
    "controller",
    "hex(",
    "é",
    "\u{0}",
    "\t",
];

/// The nearest place before `at` that is not inside a character.
pub fn boundary(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Numbers, one after the other (xorshift64*).
pub struct Random(pub u64);

impl Random {
    /// A number below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    /// A thing to put in.
    fn token(&mut self) -> &'static str {
        TOKENS[self.below(TOKENS.len())]
    }

    /// One of a list.
    pub fn of<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len())]
    }
}

/// The longest text that changes make.
const LONGEST: usize = 200_000;

/// A text that is a mutation of one of `corpus`, drawn from a number.
pub fn mutated(corpus: &[String], seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..4 {
        random.below(1);
    }
    let mut text = random.of(corpus).clone();
    for _ in 0..random.below(7) {
        change(&mut text, corpus, &mut random);
        if text.len() > LONGEST {
            text.truncate(boundary(&text, LONGEST));
        }
    }
    text
}

/// A place and one behind it.
fn range(text: &str, random: &mut Random, most: usize) -> (usize, usize) {
    let start = boundary(text, random.below(text.len() + 1));
    let length = random.below(most);
    (start, boundary(text, start + length))
}

fn change(text: &mut String, corpus: &[String], random: &mut Random) {
    match random.below(16) {
        0 | 1 => {
            let (at, _) = range(text, random, 1);
            text.insert_str(at, random.token());
        }
        2 => {
            let (start, end) = range(text, random, 40);
            text.replace_range(start..end, "");
        }
        3 | 4 => {
            let (start, end) = range(text, random, 12);
            text.replace_range(start..end, random.token());
        }
        5 => {
            // A piece again, somewhere.
            let (start, end) = range(text, random, 300);
            let piece = text[start..end].to_string();
            let (at, _) = range(text, random, 1);
            text.insert_str(at, &piece);
        }
        6 | 7 => {
            // A piece of another program.
            let donor = random.of(corpus);
            let (start, end) = range(donor, random, 400);
            let (at, until) = range(text, random, 400);
            text.replace_range(at..until, &donor[start..end]);
        }
        8 => {
            let (at, _) = range(text, random, 1);
            text.truncate(at);
        }
        9 => {
            // The other program's end.
            let donor = random.of(corpus);
            let (start, _) = range(donor, random, 1);
            let (at, _) = range(text, random, 1);
            text.truncate(at);
            text.push_str(&donor[start..]);
        }
        10 => {
            let (open, close) =
                *random.of(&[("(", ")"), ("{", "}"), ("!", ""), ("(!", ")"), ("clone { ", "}"), ("/*", "*/")]);
            let depth = *random.of(&[2, 20, 127, 128, 129, 5_000]);
            let (start, end) = range(text, random, 30);
            let inner = text[start..end].to_string();
            text.replace_range(start..end, &format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)));
        }
        11 => {
            let digits = *random.of(&[3, 10, 20, 39, 40, 400, 20_000]);
            let number = random.of(&["9", "0", "f", "1"]).repeat(digits);
            let (start, end) = range(text, random, 4);
            text.replace_range(start..end, &format!("{}{number}", random.of(&["", "0x", "0b", "-"])));
        }
        12 => {
            // A long line, or a long list.
            let (start, end) = range(text, random, 20);
            let piece = text[start..end].to_string();
            let glue = *random.of(&["", " && ", " || ", ", ", "|", "+", "; ", "/", ":", "."]);
            let times = *random.of(&[3, 50, 400, 3_000]);
            text.replace_range(start..end, &vec![piece; times].join(glue));
        }
        13 => {
            // A line again and again.
            let (at, _) = range(text, random, 1);
            let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
            let end = text[at..].find('\n').map_or(text.len(), |i| at + i + 1);
            let line = text[start..end].to_string();
            let times = *random.of(&[1, 2, 30, 500]);
            text.insert_str(start, &line.repeat(times));
        }
        14 => {
            let at = boundary(text, random.below(text.len() + 1));
            let c = char::from_u32(random.below(0x300) as u32).unwrap_or('?');
            text.insert(at, c);
        }
        _ => {
            // Two words swapped.
            let words: Vec<&str> = text.split_inclusive(' ').collect();
            let (a, b) = (random.below(words.len().max(1)), random.below(words.len().max(1)));
            let mut words: Vec<&str> = words;
            if a < words.len() && b < words.len() {
                words.swap(a, b);
            }
            *text = words.concat();
        }
    }
}
