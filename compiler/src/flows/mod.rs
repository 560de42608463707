//! The front end for `.flows`: rules as `ovs-ofctl add-flows` reads them and `dump-flows` prints them. Text goes in, a program
//! of the HIR comes out, and all that is wrong with the text.
//!
//! ```text
//! file    := line*                              blank lines, `#` comments and the head of a dump are skipped
//! line    := "add"? item* "actions=" action*    items and actions are separated by commas or blanks
//! item    := table | priority | time-out | statistics | protocol | field=value[/mask]
//! action  := name | port | name:argument | name(argument*)
//! ```
//!
//! It never guesses: a field, an action or an argument that we do not have is an error that names it, and so is a match on a
//! field whose header the match does not ask for (`ovs-ofctl` drops such a field, and the rule matches more than it says).
//!
//! ```text
//! text      pieces of a line, and the items in them
//! values    numbers, addresses, flags
//! names     the fields of OpenFlow
//! ports     ports, reserved ones included
//! matches   the match of a rule
//! actions   the actions of a rule; sets: those that write; ct: `ct(...)`; shapes: tags and labels
//! sending   outputs that are computed or cut
//! groups    lines that declare groups and meters
//! rule      a line
//! overlap   which rules overlap
//! program   all rules together
//! report    what is said to the user
//! ```

mod actions;
mod ct;
mod groups;
mod matches;
mod names;
mod overlap;
mod ports;
mod program;
mod report;
mod rule;
mod sending;
mod sets;
mod shapes;
#[cfg(test)]
mod tests;
mod text;
mod values;

use std::path::Path;

use crate::diag::Diagnostic;
use crate::hir::Program;
use crate::source::{Sources, Span};
use ports::Ports;
use report::Report;
use text::Piece;

/// Reads file `file`. Its ports are those that it mentions and `extra_ports`, by number. There is no program if there is an error.
pub fn front_flows(sources: &Sources, file: u16, extra_ports: &[u32]) -> (Option<Program>, Vec<Diagnostic>) {
    let source = sources.file(file);
    let mut report = Report::default();
    let mut ports = Ports::default();
    for &port in extra_ports {
        ports.id(port);
    }
    let (mut rules, mut declared) = (Vec::new(), program::Declared::default());
    let mut start = 0;
    for line in source.text.split_inclusive('\n') {
        let piece = rule::without_comment(Piece::new(file, start, line));
        let words = piece.text.strip_prefix("add ").unwrap_or(piece.text).trim_start();
        if words.starts_with("group_id=") {
            declared.groups.extend(groups::group(piece, &mut ports, &mut report));
        } else if words.starts_with("meter=") {
            declared.meters.extend(groups::meter(piece, &mut report));
        } else {
            rules.extend(rule::parse(piece, &mut ports, &mut report));
        }
        start += line.len();
    }
    if report.has_errors() {
        return (None, report.finish());
    }
    let name = Path::new(&source.name).file_stem().map_or("flows".into(), |stem| stem.to_string_lossy());
    let program = program::build(&name, rules, declared, &ports, Span::new(file, 0..source.text.len()), &mut report);
    let program = (!report.has_errors()).then(|| crate::with_rule_texts(program, sources));
    (program, report.finish())
}
