//! What editors ask, in the words of the protocol. In: a text that is being written, and a place. Out: answers with positions
//! in UTF-16 units. Never: looks at a file.

use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionTextEdit, DocumentSymbol, Documentation, Hover, HoverContents,
    Location, MarkupContent, MarkupKind, Position, SymbolKind, TextEdit, Uri,
};
use pipec_compiler::editor::{Document, Kind, OfferKind, Symbol};
use pipec_compiler::format::format;

use super::position::Lines;

fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

/// What to say about a place.
pub fn hover(document: &Document, position: Position) -> Option<Hover> {
    let lines = Lines::new(document.text());
    let (range, text) = document.hover(lines.byte(position))?;
    Some(Hover { contents: HoverContents::Markup(markdown(text)), range: Some(lines.range(&range)) })
}

/// Where a name is declared.
pub fn definition(document: &Document, uri: &Uri, position: Position) -> Option<Location> {
    let lines = Lines::new(document.text());
    let symbol = document.definition(lines.byte(position))?;
    Some(Location { uri: uri.clone(), range: lines.range(&symbol.at) })
}

/// What may stand at a place.
pub fn completion(document: &Document, position: Position) -> Vec<CompletionItem> {
    let lines = Lines::new(document.text());
    let Some(found) = document.complete(lines.byte(position)) else { return vec![] };
    let range = lines.range(&found.replaces);
    let item = |(i, offer): (usize, pipec_compiler::editor::Offer)| CompletionItem {
        label: offer.name.clone(),
        kind: Some(match offer.kind {
            OfferKind::Declared(kind) => completion_kind(kind),
            OfferKind::Field => CompletionItemKind::FIELD,
            OfferKind::Header => CompletionItemKind::STRUCT,
            OfferKind::Word => CompletionItemKind::KEYWORD,
            OfferKind::Action => CompletionItemKind::FUNCTION,
            OfferKind::Type => CompletionItemKind::TYPE_PARAMETER,
        }),
        detail: Some(offer.detail).filter(|detail| !detail.is_empty()),
        documentation: Some(offer.doc)
            .filter(|doc| !doc.is_empty())
            .map(|doc| Documentation::MarkupContent(markdown(doc))),
        // In our order: what the program declares first.
        sort_text: Some(format!("{i:04}")),
        filter_text: Some(offer.name.clone()),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text: offer.name })),
        ..CompletionItem::default()
    };
    found.offers.into_iter().enumerate().map(item).collect()
}

fn completion_kind(kind: Kind) -> CompletionItemKind {
    match kind {
        Kind::Const | Kind::Option => CompletionItemKind::CONSTANT,
        Kind::Set => CompletionItemKind::ENUM,
        Kind::Port => CompletionItemKind::VALUE,
        Kind::Var | Kind::Param => CompletionItemKind::VARIABLE,
        Kind::Action | Kind::Extern => CompletionItemKind::FUNCTION,
        Kind::Header => CompletionItemKind::STRUCT,
        Kind::HeaderField => CompletionItemKind::FIELD,
        Kind::Pipeline | Kind::Table | Kind::Test | Kind::Group | Kind::Meter => CompletionItemKind::MODULE,
    }
}

/// The statements of a program, those of a pipeline within it.
pub fn symbols(document: &Document) -> Vec<DocumentSymbol> {
    let lines = Lines::new(document.text());
    let mut top: Vec<DocumentSymbol> = vec![];
    for symbol in document.symbols().iter().filter(|symbol| !symbol.name.is_empty()) {
        let shown = document_symbol(symbol, &lines);
        let parent = match symbol.kind {
            Kind::Param | Kind::HeaderField => continue,
            Kind::Pipeline => None,
            _ => top.last_mut().filter(|parent| {
                let within = parent.range.start <= shown.range.start && shown.range.end <= parent.range.end;
                parent.kind == SymbolKind::MODULE && within
            }),
        };
        match parent {
            Some(parent) => parent.children.get_or_insert_default().push(shown),
            None => top.push(shown),
        }
    }
    top
}

#[allow(deprecated)] // a field that has a successor must be given all the same
fn document_symbol(symbol: &Symbol, lines: &Lines<'_>) -> DocumentSymbol {
    let kind = match symbol.kind {
        Kind::Pipeline => SymbolKind::MODULE,
        Kind::Port => SymbolKind::INTERFACE,
        Kind::Const | Kind::Option => SymbolKind::CONSTANT,
        Kind::Set => SymbolKind::ENUM,
        Kind::Var | Kind::Param => SymbolKind::VARIABLE,
        Kind::Action | Kind::Extern => SymbolKind::FUNCTION,
        Kind::Table => SymbolKind::CLASS,
        Kind::Test => SymbolKind::EVENT,
        Kind::Header | Kind::HeaderField => SymbolKind::STRUCT,
        Kind::Group | Kind::Meter => SymbolKind::OBJECT,
    };
    // The protocol wants the name within the statement.
    let item = symbol.item.start.min(symbol.at.start)..symbol.item.end.max(symbol.at.end);
    DocumentSymbol {
        name: symbol.name.clone(),
        detail: Some(symbol.kind.name().to_string()),
        kind,
        tags: None,
        deprecated: None,
        range: lines.range(&item),
        selection_range: lines.range(&symbol.at),
        children: None,
    }
}

/// The edits that lay a program out: none where it is or does not parse.
pub fn formatting(text: &str) -> Vec<TextEdit> {
    match format(text) {
        Ok(new_text) if new_text != text => {
            vec![TextEdit { range: Lines::new(text).range(&(0..text.len())), new_text }]
        }
        _ => vec![],
    }
}
