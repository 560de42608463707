//! `entries from "file";`: puts the entries of a CSV or JSON file in its place. In: a tree and the sources, which load files.
//! Out: a tree with those entries, whose parts point into their files. Looks up no name but those of columns.
//!
//! A row has a value for each part of the key, under the part's name; `action`; a value for each parameter of that action,
//! under the parameter's name; and, if it has them, `priority`, `idle` and `hard`. Values are written as in a program. In CSV
//! the first line has the names, and lines that begin with `#` are comments; in JSON there is a list of objects.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::ast::{Arg, Entry, EntryAction, Item, KeyedStmt, Name, Pipeline, Spanned, Table};
use crate::diag::Diagnostic;
use crate::parse::{self, Cells};
use crate::source::{Sources, Span};

/// Fills in all entries that stand in other files.
pub fn fill(pipeline: &mut Pipeline, sources: &mut Sources, diagnostics: &mut Vec<Diagnostic>) {
    let params: BTreeMap<String, Vec<String>> = pipeline
        .items
        .iter()
        .filter_map(|item| if let Item::Action(action) = item { Some(action) } else { None })
        .map(|action| (action.name.node.clone(), action.params.iter().map(|p| p.name.node.clone()).collect()))
        .collect();
    for item in &mut pipeline.items {
        let Item::Table(table) = item else { continue };
        if !table.keyed.iter().any(|stmt| matches!(stmt.node, KeyedStmt::From(_))) {
            continue;
        }
        let columns = Columns::of(table, &params);
        for stmt in &mut table.keyed {
            if let KeyedStmt::From(path) = &stmt.node {
                stmt.node = KeyedStmt::Entries(read(path, &columns, sources, diagnostics));
            }
        }
    }
}

/// Names that columns may have.
struct Columns {
    key: Vec<String>,
    /// The actions of the table with their parameters.
    actions: Vec<(String, Vec<String>)>,
}

impl Columns {
    fn of(table: &Table, params: &BTreeMap<String, Vec<String>>) -> Columns {
        let mut columns = Columns { key: vec![], actions: vec![] };
        for stmt in &table.keyed {
            match &stmt.node {
                KeyedStmt::Key(parts) => columns.key = parts.iter().map(|part| part.name.node.clone()).collect(),
                KeyedStmt::Actions(names) => {
                    let of = |name: &Name| params.get(&name.node).cloned().unwrap_or_default();
                    columns.actions = names.iter().map(|name| (name.node.clone(), of(name))).collect();
                }
                _ => {}
            }
        }
        columns
    }

    fn is_known(&self, name: &str) -> bool {
        ["action", "priority", "idle", "hard"].contains(&name)
            || self.key.iter().any(|part| part == name)
            || self.actions.iter().any(|(_, params)| params.iter().any(|param| param == name))
    }

    fn list(&self) -> String {
        let params = self.actions.iter().flat_map(|(_, params)| params);
        let mut names: Vec<&str> = self.key.iter().map(String::as_str).collect();
        names.push("action");
        names.extend(params.map(String::as_str));
        names.dedup();
        names.join(", ")
    }
}

/// A row: where it is, and where the value under each name is.
struct Row {
    range: Range<usize>,
    cells: Vec<(String, Range<usize>)>,
}

fn read(
    path: &Name,
    columns: &Columns,
    sources: &mut Sources,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Spanned<Entry>> {
    let file = match sources.load(path.span.file, &path.node) {
        Ok(file) => file,
        Err(what) => {
            let message = format!("cannot read these entries: {what}");
            diagnostics.push(Diagnostic::error("no-file", message, path.span, "not read").help(
                "the path counts from the folder of the file it stands in, then from those of `-I DIR` and PIPEC_PATH",
            ));
            return vec![];
        }
    };
    let text = sources.file(file).text.as_str();
    let rows = if path.node.ends_with(".csv") {
        csv_rows(text, file, columns, diagnostics)
    } else if path.node.ends_with(".json") {
        json_rows(text, file, columns, diagnostics)
    } else {
        let message = "cannot tell by its name how entries stand in this file";
        diagnostics.push(
            Diagnostic::error("entries-file", message, path.span, "neither .csv nor .json")
                .help("call it NAME.csv or NAME.json"),
        );
        vec![]
    };
    let mut entries = vec![];
    for row in rows {
        if diagnostics.len() >= parse::MAX_DIAGNOSTICS {
            break;
        }
        let span = Span::new(file, row.range.clone());
        entries.extend(entry(&row, text, file, columns, diagnostics).map(|entry| Spanned::new(entry, span)));
    }
    entries
}

/// The entry of a row.
fn entry(row: &Row, text: &str, file: u16, columns: &Columns, diagnostics: &mut Vec<Diagnostic>) -> Option<Entry> {
    let span = Span::new(file, row.range.clone());
    let cell = |name: &str| {
        let cell = row.cells.iter().find(|(n, _)| n == name).map(|(_, range)| range.clone());
        cell.filter(|range| !text[range.clone()].trim().is_empty())
    };
    let mut cells = Cells::new(text, file, diagnostics);
    let mut key = vec![];
    for part in &columns.key {
        key.push(match cell(part) {
            Some(range) => cells.part(range)?,
            None => Spanned::new(None, span),
        });
    }
    let Some(action) = cell("action") else {
        diagnostics.push(Diagnostic::error("entries-file", "this entry names no action", span, "`action` is empty"));
        return None;
    };
    let name = cells.name(action);
    let params = columns.actions.iter().find(|(known, _)| *known == name.node).map_or(&[][..], |(_, params)| params);
    let mut args = vec![];
    for param in params {
        let Some(range) = cell(param) else { continue };
        let at = Span::new(file, range.clone());
        args.push(Arg { name: Some(Spanned::new(param.clone(), at)), value: cells.value(range)? });
    }
    let args = (!params.is_empty()).then_some(args);
    let priority = match cell("priority") {
        Some(range) => Some(cells.value(range)?),
        None => None,
    };
    let mut time = |name: &str| match cell(name) {
        Some(range) => cells.time(range).map(Some),
        None => Some(None),
    };
    let (idle, hard) = (time("idle")?, time("hard")?);
    Some(Entry { priority, key, action: EntryAction { name, args }, idle, hard })
}

/// Rows of a CSV file.
fn csv_rows(text: &str, file: u16, columns: &Columns, diagnostics: &mut Vec<Diagnostic>) -> Vec<Row> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).comment(Some(b'#')).from_reader(text.as_bytes());
    let mut names: Option<Vec<String>> = None;
    let mut rows = vec![];
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let at = error.position().map_or(0, |position| position.byte() as usize).min(text.len());
                let span = Span::new(file, at..text.len().min(at + 1));
                diagnostics.push(Diagnostic::error("entries-file", format!("this is not CSV: {error}"), span, "here"));
                break;
            }
        };
        let (range, fields) = places(text, &record);
        let Some(names) = &names else {
            let known = fields.iter().map(|range| column(&text[range.clone()], range, file, columns, diagnostics));
            match known.collect::<Option<Vec<String>>>() {
                Some(known) => names = Some(known),
                None => return vec![],
            }
            continue;
        };
        if fields.len() != names.len() {
            let message = format!("this line has {} values for {} columns", fields.len(), names.len());
            diagnostics.push(Diagnostic::error("entries-file", message, Span::new(file, range), "this line"));
            continue;
        }
        rows.push(Row { range, cells: names.iter().cloned().zip(fields).collect() });
    }
    rows
}

/// Where a record and its fields stand in the text.
fn places(text: &str, record: &csv::StringRecord) -> (Range<usize>, Vec<Range<usize>>) {
    let mut at = record.position().map_or(0, |position| position.byte() as usize);
    // What stands before it: empty lines and comments.
    while text[at..].starts_with(['\n', '\r', '#']) {
        at += text[at..].find('\n').map_or(text.len() - at, |end| end + 1);
    }
    let (start, mut fields) = (at, vec![]);
    for field in record {
        let quote = usize::from(text[at..].starts_with('"'));
        let from = (at + quote).min(text.len());
        let to = if text[from..].starts_with(field) { from + field.len() } else { from };
        fields.push(from..to);
        at = (to + quote + 1).min(text.len());
    }
    let end = fields.last().map_or(start, |last| last.end);
    (start..end, fields)
}

/// The name of a column, if the table has one of that name.
fn column(
    name: &str,
    range: &Range<usize>,
    file: u16,
    columns: &Columns,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<String> {
    let name = name.trim();
    if columns.is_known(name) {
        return Some(name.to_string());
    }
    let span = Span::new(file, range.start..range.end.max(range.start + 1));
    let message = format!("entries of this table have nothing that is called `{name}`");
    let help = format!("columns are {}; and priority, idle, hard", columns.list());
    diagnostics.push(Diagnostic::error("entries-file", message, span, "not known").help(help));
    None
}

/// Rows of a JSON file.
fn json_rows(text: &str, file: u16, columns: &Columns, diagnostics: &mut Vec<Diagnostic>) -> Vec<Row> {
    let mut wrong = |error: &serde_json::Error, base: usize, text: &str| {
        let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let at = (base + before + error.column().saturating_sub(1)).min(base + text.len().saturating_sub(1));
        let message = format!("this is not a list of entries in JSON: {error}");
        diagnostics.push(Diagnostic::error("entries-file", message, Span::new(file, at..at + 1), "here"));
    };
    let list: Vec<&RawValue> = match serde_json::from_str(text) {
        Ok(list) => list,
        Err(error) => {
            wrong(&error, 0, text);
            return vec![];
        }
    };
    let place = |raw: &RawValue| {
        let start = raw.get().as_ptr() as usize - text.as_ptr() as usize;
        start..start + raw.get().len()
    };
    let mut objects: Vec<(Range<usize>, BTreeMap<String, &RawValue>)> = vec![];
    for raw in list {
        match serde_json::from_str(raw.get()) {
            Ok(object) => objects.push((place(raw), object)),
            Err(error) => wrong(&error, place(raw).start, raw.get()),
        }
    }
    let mut rows = vec![];
    for (range, object) in objects {
        let mut cells = vec![];
        for (name, value) in object {
            let mut at = place(value);
            if value.get().starts_with('"') {
                at = at.start + 1..at.end - 1;
            } else if value.get() == "null" {
                at = at.start..at.start;
            }
            if column(&name, &range, file, columns, diagnostics).is_none() {
                return vec![];
            }
            cells.push((name, at));
        }
        rows.push(Row { range, cells });
    }
    rows
}
