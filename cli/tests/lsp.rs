//! The language server, as an editor speaks with it.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A server and what an editor has asked it so far.
struct Server {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    asked: u64,
}

const URI: &str = "file:///tmp/a.pipe";

impl Server {
    fn start() -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_pipec"))
            .args(["lsp", "--stdio"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Server { child, to, from, asked: 0 };
        let answer = server.ask("initialize", json!({ "processId": null, "rootUri": null, "capabilities": {} }));
        assert_eq!(answer["serverInfo"]["name"], "pipec");
        assert_eq!(answer["capabilities"]["hoverProvider"], true);
        server.tell("initialized", json!({}));
        server
    }

    fn write(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len()).unwrap();
        self.to.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the server has ended");
            match line.trim().split_once(": ") {
                Some(("Content-Length", n)) => length = n.parse().unwrap(),
                Some(_) => {}
                None => break,
            }
        }
        let mut text = vec![0; length];
        self.from.read_exact(&mut text).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The whole answer to a request.
    fn answer(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        let answer = self.read();
        assert_eq!(answer["id"], self.asked, "{answer}");
        answer
    }

    /// The result of a request.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    fn diagnostics(&mut self) -> Value {
        let message = self.read();
        assert_eq!(message["method"], "textDocument/publishDiagnostics", "{message}");
        message["params"].clone()
    }

    fn open(&mut self, uri: &str, language: &str, text: &str) -> Vec<Value> {
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        self.tell("textDocument/didOpen", json!({ "textDocument": document }));
        let published = self.diagnostics();
        assert_eq!((&published["uri"], &published["version"]), (&json!(uri), &json!(1)));
        published["diagnostics"].as_array().unwrap().clone()
    }

    fn change(&mut self, version: i32, text: &str) -> Vec<Value> {
        let document = json!({ "uri": URI, "version": version });
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [{ "text": text }] }));
        let published = self.diagnostics();
        assert_eq!(published["version"], version);
        published["diagnostics"].as_array().unwrap().clone()
    }

    /// Asks about a place.
    fn at(&mut self, method: &str, (line, character): (u32, u32)) -> Value {
        let position = json!({ "line": line, "character": character });
        self.ask(method, json!({ "textDocument": { "uri": URI }, "position": position }))
    }

    /// Ends the server; what it wrote to standard error.
    fn end(mut self) {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.tell("exit", Value::Null);
        let status = self.child.wait().unwrap();
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        assert_eq!((status.code(), told.as_str()), (Some(0), ""));
    }
}

const PROGRAM: &str = "pipeline p {
    port lan, wan;
    set s = { 80 }; /* 𝕏ä */ set s = { 1 };
    table t { tcp.dst in s => goto u; }
    table u { else => norml; }
}
";

fn range(line: u32, from: u32, to: u32) -> Value {
    json!({ "start": { "line": line, "character": from }, "end": { "line": line, "character": to } })
}

#[test]
fn mistakes_are_told_whenever_the_text_changes() {
    let mut server = Server::start();
    let found = server.open(URI, "pipe", PROGRAM);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        (&found[0]["code"], &found[0]["severity"], &found[0]["source"]),
        (&json!("duplicate"), &json!(1), &json!("pipec"))
    );
    assert_eq!(found[0]["range"], range(2, 34, 35), "in UTF-16 units");
    let related = &found[0]["relatedInformation"][0];
    assert_eq!((&related["location"]["uri"], &related["location"]["range"]), (&json!(URI), &range(2, 8, 9)));
    assert!(found[1]["message"].as_str().unwrap().contains("did you mean `normal`?"), "{}", found[1]);
    let mended = PROGRAM.replace("norml", "normal").replace(" set s = { 1 };", "");
    assert_eq!(server.change(2, &mended), Vec::<Value>::new());
    let warned = server.change(3, &mended.replace("port lan, wan;", "port lan, wan; const K = 1;"));
    assert_eq!((&warned[0]["code"], &warned[0]["severity"]), (&json!("unused-name"), &json!(2)));
    server.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    assert_eq!(server.diagnostics()["diagnostics"], json!([]));
    server.end();
}

#[test]
fn rules_of_ovs_ofctl_are_checked_too() {
    let mut server = Server::start();
    let good = server.open("file:///a.flows", "plaintext", "ip actions=drop\n");
    assert_eq!(good, Vec::<Value>::new());
    let bad = server.open("untitled:1", "flows", "ip,\nip actions=dorp\n");
    assert!(!bad.is_empty() && bad.iter().all(|found| found["severity"] == 1), "{bad:?}");
    // Only diagnostics are there for them.
    let place = json!({ "textDocument": { "uri": "file:///a.flows" }, "position": { "line": 0, "character": 0 } });
    assert_eq!(server.ask("textDocument/hover", place), Value::Null);
    server.end();
}

#[test]
fn files_that_a_program_uses_are_read() {
    let scratch = common::Scratch::new("lsp uses");
    scratch.write("part.pipe", "table u { else => drop; }\n");
    let uri = |name: &str| format!("file://{}", scratch.path(name).display()).replace(' ', "%20");
    let mut server = Server::start();
    let root = "pipeline p { port a; use \"part.pipe\"; start { ip => output(a); else => goto u; } }\n";
    assert_eq!(server.open(&uri("root.pipe"), "pipe", root), Vec::<Value>::new());
    // As the editor has it, not as it is on the disk.
    assert_eq!(server.open(&uri("part.pipe"), "pipe", "table u { else => drop }\n")[0]["code"], "syntax");
    let change =
        json!({ "textDocument": { "uri": uri("root.pipe"), "version": 2 }, "contentChanges": [{ "text": root }] });
    server.tell("textDocument/didChange", change);
    let own = server.diagnostics();
    assert_eq!((&own["uri"], &own["diagnostics"]), (&json!(uri("root.pipe")), &json!([])));
    let other = server.diagnostics();
    assert_eq!((&other["uri"], &other["diagnostics"][0]["code"]), (&json!(uri("part.pipe")), &json!("syntax")));
    server.tell("textDocument/didClose", json!({ "textDocument": { "uri": uri("root.pipe") } }));
    for name in ["root.pipe", "part.pipe"] {
        let closed = server.diagnostics();
        assert_eq!((&closed["uri"], &closed["diagnostics"]), (&json!(uri(name)), &json!([])));
    }
    server.end();
}

#[test]
fn places_are_answered() {
    let mut server = Server::start();
    server.open(URI, "pipe", PROGRAM);
    let hover = server.at("textDocument/hover", (3, 16));
    assert_eq!(hover["range"], range(3, 14, 21));
    assert!(hover["contents"]["value"].as_str().unwrap().contains("Destination port"), "{hover}");
    assert_eq!(server.at("textDocument/hover", (0, 12)), Value::Null);
    let definition = server.at("textDocument/definition", (3, 35));
    assert_eq!((&definition["uri"], &definition["range"]), (&json!(URI), &range(4, 10, 11)));
    assert_eq!(server.at("textDocument/definition", (3, 27)), Value::Null);
    let symbols = server.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": URI } }));
    assert_eq!(symbols[0]["name"], "p");
    let children: Vec<&str> =
        symbols[0]["children"].as_array().unwrap().iter().map(|child| child["name"].as_str().unwrap()).collect();
    assert_eq!(children, ["lan", "wan", "s", "s", "t", "u"]);
    server.change(2, &PROGRAM.replace("tcp.dst in s", "tcp. in s"));
    let completion = server.at("textDocument/completion", (3, 18));
    let dst = completion.as_array().unwrap().iter().find(|item| item["label"] == "tcp.dst").unwrap();
    assert_eq!(dst["textEdit"], json!({ "range": range(3, 14, 18), "newText": "tcp.dst" }));
    assert!(dst["documentation"]["value"].as_str().unwrap().contains("Destination port"));
    server.end();
}

#[test]
fn texts_are_laid_out() {
    let mut server = Server::start();
    let format = json!({ "textDocument": { "uri": URI }, "options": { "tabSize": 2, "insertSpaces": false } });
    server.open(URI, "pipe", "pipeline p{\n table t{else=>normal;}\n}");
    let edits = server.ask("textDocument/formatting", format.clone());
    let whole = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 2, "character": 1 } });
    let text = "pipeline p {\n    table t {\n        else => normal;\n    }\n}\n";
    assert_eq!(edits, json!([{ "range": whole, "newText": text }]));
    for unchanged in [text, "pipeline p { table t { else => }"] {
        server.change(2, unchanged);
        assert_eq!(server.ask("textDocument/formatting", format.clone()), json!([]));
    }
    server.end();
}

#[test]
fn every_beginning_of_a_program_is_answered() {
    let mut server = Server::start();
    let text = include_str!("../../pipelines/tenants.pipe");
    server.open(URI, "pipe", "");
    for end in (0..=text.len()).step_by(7) {
        server.change(end as i32, &text[..end]);
        let line = text[..end].matches('\n').count() as u32;
        let character = (end - text[..end].rfind('\n').map_or(0, |at| at + 1)) as u32;
        for method in ["textDocument/completion", "textDocument/hover", "textDocument/definition"] {
            server.at(method, (line, character));
        }
    }
    server.end();
}

#[test]
fn what_makes_no_sense_is_refused_and_survived() {
    let mut server = Server::start();
    assert_eq!(server.answer("textDocument/rename", json!({}))["error"]["code"], -32601);
    assert_eq!(server.answer("textDocument/hover", json!({ "position": 3 }))["error"]["code"], -32602);
    assert_eq!(server.at("textDocument/hover", (0, 0)), Value::Null, "not open");
    server.tell(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": "file:///none", "version": 1 }, "contentChanges": [] }),
    );
    server.tell("textDocument/didOpen", json!(7));
    server.tell("$/setTrace", json!({ "value": "off" }));
    server.open(URI, "pipe", PROGRAM);
    assert_eq!(server.at("textDocument/hover", (99, 99)), Value::Null);
    server.end();
}
