//! The compiler: from the text of a program to generated Rust or machine code.
//!
//! A module imports only from modules before it in this order: `source show token diag field suggest codes`, `ast`, `parse`,
//! `format uses rows print constant`, `packet`, `hir`, `words`, `probe`, `flows`, `resolve`, `editor`, `check`, `eval`, `expect`,
//! `plan`, `backend`, `explain`, `graph`.
//! [`eval`] is the reference meaning and shares no code
//! with `plan` and `backend`.

pub mod ast;
pub mod backend;
pub mod check;
pub mod codes;
mod constant;
mod describe;
pub mod diag;
pub mod editor;
pub mod eval;
pub mod expect;
pub mod explain;
pub mod field;
pub mod flows;
pub mod format;
pub mod graph;
pub mod hir;
pub mod packet;
pub mod parse;
pub mod plan;
pub mod print;
pub mod probe;
pub mod resolve;
mod rows;
pub mod show;
pub mod source;
pub mod standard;
mod suggest;
pub mod token;
mod uses;
pub mod words;

use diag::Diagnostic;
use source::Sources;

/// Errors, and warnings, that one run reports; what goes beyond is counted.
const MAX_REPORTED: usize = 50;

/// Warnings of `check` about a `.flows` file: there may be rules by the thousand that say the same.
const MAX_FLOWS_WARNINGS: usize = 10;

/// Reads a program in the language that its file's name says: OpenFlow rules for `.flows`, else the language of pipelines.
/// `extra_ports` are numbers of ports that a `.flows` file has beside those its rules name.
pub fn front(sources: &mut Sources, file: u16, extra_ports: &[u32]) -> (Option<hir::Program>, Vec<Diagnostic>) {
    if sources.file(file).name.ends_with(".flows") {
        checked_flows(flows::front_flows(sources, file, extra_ports))
    } else {
        front_pipe(sources, file)
    }
}

/// What `check` has to say about a `.flows` file: warnings, since OpenFlow allows it all.
fn checked_flows(
    (program, mut diagnostics): (Option<hir::Program>, Vec<Diagnostic>),
) -> (Option<hir::Program>, Vec<Diagnostic>) {
    if let Some(program) = &program {
        let found = check::check(program, &Default::default(), check::Language::Flows);
        let warnings = found.into_iter().map(|d| Diagnostic { severity: diag::Severity::Warning, ..d }).collect();
        diagnostics.extend(diag::in_order(warnings, MAX_FLOWS_WARNINGS));
    }
    (program, diagnostics)
}

/// Parses, resolves and checks a `.pipe` file. The program is there if nothing is an error.
pub fn front_pipe(sources: &mut Sources, file: u16) -> (Option<hir::Program>, Vec<Diagnostic>) {
    let mut diagnostics = vec![];
    let ast = parse::pipe(&sources.file(file).text, file, &mut diagnostics);
    let ast = ast.and_then(|ast| uses::expand(ast, sources, file, &mut diagnostics));
    let ast = ast.map(|mut ast| {
        rows::fill(&mut ast, sources, &mut diagnostics);
        ast
    });
    let resolved = ast.as_ref().and_then(|ast| resolve::pipe(ast, &mut diagnostics));
    let resolved = resolved.filter(|_| !diag::has_errors(&diagnostics));
    if let Some(resolved) = &resolved {
        diagnostics.extend(check::check(&resolved.program, &resolved.marks, check::Language::Pipe));
    }
    let program = resolved.filter(|_| !diag::has_errors(&diagnostics)).map(|resolved| resolved.program);
    (program, diag::in_order(diagnostics, MAX_REPORTED))
}

/// The program with the text of every rule on one line, as it stands in the source.
pub(crate) fn with_rule_texts(mut program: hir::Program, sources: &Sources) -> hir::Program {
    for rule in program.tables.iter_mut().flat_map(|table| &mut table.rules) {
        rule.text = sources.text(rule.span).split_whitespace().collect::<Vec<_>>().join(" ");
    }
    program
}
