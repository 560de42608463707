//! `pipec lsp`: a language server on standard input and output, for editors.
//!
//! In: messages of the Language Server Protocol 3.17. Out: answers, and diagnostics whenever a text changes. It holds the texts
//! that editors have open, and reads no others. Never: ends because of a text or a message that it does not understand.

mod answers;
mod diagnostics;
mod files;
mod position;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    CompletionOptions, CompletionParams, Diagnostic, DidChangeTextDocumentParams, DidCloseTextDocumentParams,
    DidOpenTextDocumentParams, DocumentFormattingParams, DocumentSymbolParams, GotoDefinitionParams, HoverParams,
    HoverProviderCapability, OneOf, PublishDiagnosticsParams, ServerCapabilities, TextDocumentPositionParams,
    TextDocumentSyncCapability, TextDocumentSyncKind, Uri,
};
use pipec_compiler::editor::Document;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failure::Failure;
use files::Overlay;

/// Serve editors on standard input and output (Language Server Protocol)
#[derive(clap::Args)]
pub struct Args {
    /// For editors that say so; it is the only way
    #[arg(long)]
    stdio: bool,
}

/// Serves until the editor ends it.
pub fn lsp(_: &Args) -> Result<(), Failure> {
    let (connection, threads) = Connection::stdio();
    let served = serve(&connection);
    drop(connection);
    let ended = threads.join();
    let failed =
        |what: String| Failure::environment(format!("the editor and pipec lsp do not understand each other: {what}"));
    served.map_err(failed)?;
    ended.map_err(|error| failed(error.to_string()))
}

/// A text that an editor has open.
struct Open {
    document: Document,
    version: i32,
    /// Rules of `ovs-ofctl`, not a pipeline.
    flows: bool,
    /// URIs of other files with mistakes that were told because of this text.
    told: Vec<String>,
}

fn serve(connection: &Connection) -> Result<(), String> {
    let (id, _) = connection.initialize_start().map_err(|error| error.to_string())?;
    let info = json!({ "name": "pipec", "version": env!("CARGO_PKG_VERSION") });
    let initialized = json!({ "capabilities": capabilities(), "serverInfo": info });
    connection.initialize_finish(id, initialized).map_err(|error| error.to_string())?;
    let mut open = BTreeMap::new();
    for message in &connection.receiver {
        let answers = match message {
            Message::Request(request) => {
                if connection.handle_shutdown(&request).map_err(|error| error.to_string())? {
                    return Ok(());
                }
                vec![Message::Response(answer(&open, request))]
            }
            Message::Notification(notification) => {
                let answers = notified(&mut open, notification).unwrap_or_default();
                answers.into_iter().map(Message::Notification).collect()
            }
            Message::Response(_) => vec![],
        };
        for answer in answers {
            connection.sender.send(answer).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn capabilities() -> ServerCapabilities {
    ServerCapabilities {
        text_document_sync: Some(TextDocumentSyncCapability::Kind(TextDocumentSyncKind::FULL)),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        definition_provider: Some(OneOf::Left(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        document_formatting_provider: Some(OneOf::Left(true)),
        completion_provider: Some(CompletionOptions {
            trigger_characters: Some([".", "(", ":", "/"].map(String::from).into()),
            ..CompletionOptions::default()
        }),
        ..ServerCapabilities::default()
    }
}

/// Texts by their URIs.
type Texts = BTreeMap<String, Open>;

/// The answer to a request.
fn answer(open: &Texts, request: Request) -> Response {
    let Request { id, method, params } = request;
    match method.as_str() {
        "textDocument/hover" => with(id, params, |params: HoverParams| {
            let place = params.text_document_position_params;
            let document = pipe(open, &place.text_document.uri)?;
            Some(json!(answers::hover(&document.document, place.position)))
        }),
        "textDocument/definition" => with(id, params, |params: GotoDefinitionParams| {
            let TextDocumentPositionParams { text_document, position } = params.text_document_position_params;
            let document = pipe(open, &text_document.uri)?;
            Some(json!(answers::definition(&document.document, &text_document.uri, position)))
        }),
        "textDocument/completion" => with(id, params, |params: CompletionParams| {
            let place = params.text_document_position;
            let document = pipe(open, &place.text_document.uri)?;
            Some(json!(answers::completion(&document.document, place.position)))
        }),
        "textDocument/documentSymbol" => with(id, params, |params: DocumentSymbolParams| {
            Some(json!(answers::symbols(&pipe(open, &params.text_document.uri)?.document)))
        }),
        "textDocument/formatting" => with(id, params, |params: DocumentFormattingParams| {
            Some(json!(answers::formatting(pipe(open, &params.text_document.uri)?.document.text())))
        }),
        _ => Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("pipec does not know `{method}`")),
    }
}

/// An open text of the language of pipelines.
fn pipe<'o>(open: &'o Texts, uri: &Uri) -> Option<&'o Open> {
    open.get(uri.as_str()).filter(|open| !open.flows)
}

/// Answers a request from its parameters; with nothing where there is nothing to say.
fn with<P: DeserializeOwned>(id: RequestId, params: Value, answer: impl FnOnce(P) -> Option<Value>) -> Response {
    let params = match serde_json::from_value(params) {
        Ok(params) => params,
        Err(error) => return Response::new_err(id, ErrorCode::InvalidParams as i32, error.to_string()),
    };
    match catch_unwind(AssertUnwindSafe(|| answer(params))) {
        Ok(result) => Response::new_ok(id, result),
        Err(_) => {
            let message = "pipec failed on this text; this is a defect of pipec, please report it";
            Response::new_err(id, ErrorCode::InternalError as i32, message.into())
        }
    }
}

/// Takes a change of a text in, and answers with what is wrong with it.
fn notified(open: &mut Texts, notification: Notification) -> Option<Vec<Notification>> {
    let Notification { method, params } = notification;
    match method.as_str() {
        "textDocument/didOpen" => {
            let opened: DidOpenTextDocumentParams = serde_json::from_value(params).ok()?;
            let text = opened.text_document;
            let flows = match text.language_id.as_str() {
                "flows" => true,
                "pipe" => false,
                _ => text.uri.as_str().ends_with(".flows"),
            };
            open.insert(
                text.uri.to_string(),
                Open { document: Document::new(text.text), version: text.version, flows, told: vec![] },
            );
            Some(tell(open, text.uri))
        }
        "textDocument/didChange" => {
            let changed: DidChangeTextDocumentParams = serde_json::from_value(params).ok()?;
            let uri = changed.text_document.uri;
            let known = open.get_mut(uri.as_str())?;
            // Texts come whole: a change without a range.
            let text = changed.content_changes.into_iter().rev().find(|change| change.range.is_none())?.text;
            known.document = Document::new(text);
            known.version = changed.text_document.version;
            Some(tell(open, uri))
        }
        "textDocument/didClose" => {
            let closed: DidCloseTextDocumentParams = serde_json::from_value(params).ok()?;
            let uri = closed.text_document.uri;
            let closed = open.remove(uri.as_str())?;
            let mut answers = vec![published(uri, vec![], None)];
            answers.extend(closed.told.iter().filter_map(|uri| Some(published(uri.parse().ok()?, vec![], None))));
            Some(answers)
        }
        _ => None,
    }
}

/// What is wrong with an open text and with the files it uses; what was told of files that it uses no more is taken back.
fn tell(open: &mut Texts, uri: Uri) -> Vec<Notification> {
    let Some(Open { document, version, flows, told }) = open.get(uri.as_str()) else { return vec![] };
    let others = open.iter().filter(|(other, _)| *other != uri.as_str());
    let others =
        others.filter_map(|(uri, open)| Some((files::path(&uri.parse().ok()?), open.document.text().to_string())));
    let overlay = Overlay(others.collect());
    let check = || diagnostics::diagnostics(&uri, *flows, document.text(), overlay);
    let mut found = catch_unwind(AssertUnwindSafe(check)).unwrap_or_default();
    for gone in told {
        found.entry(gone.clone()).or_default();
    }
    // Its own come first.
    let own = found.remove(uri.as_str()).unwrap_or_default();
    let mut answers = vec![published(uri.clone(), own, Some(*version))];
    let used: Vec<String> = found.iter().filter(|(_, found)| !found.is_empty()).map(|(uri, _)| uri.clone()).collect();
    answers.extend(found.into_iter().filter_map(|(uri, found)| {
        let is_news = !found.is_empty() || told.contains(&uri);
        is_news.then(|| Some(published(uri.parse().ok()?, found, None)))?
    }));
    if let Some(open) = open.get_mut(uri.as_str()) {
        open.told = used;
    }
    answers
}

fn published(uri: Uri, diagnostics: Vec<Diagnostic>, version: Option<i32>) -> Notification {
    let params = PublishDiagnosticsParams { uri, diagnostics, version };
    Notification::new("textDocument/publishDiagnostics".into(), params)
}
