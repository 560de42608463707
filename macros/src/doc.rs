//! What `cargo doc` shows of a pipeline: its ports, and its tables with their rules.

use pipec_compiler::hir::Program;

/// Markdown for the type's documentation.
pub fn of(program: &Program) -> String {
    let ports: Vec<_> = program.ports.iter().map(|port| format!("`{}` ({})", port.name, port.number)).collect();
    let mut text = format!("\n\nThe pipeline `{}`.\n\nPorts: {}\n", program.name, ports.join(", "));
    for (i, table) in program.tables.iter().enumerate() {
        let entry = if usize::from(program.entry.0) == i { ", where packets begin" } else { "" };
        text += &format!("\n# Table `{}`{entry}\n\n", table.name);
        if !table.rules.is_empty() {
            let rules: Vec<_> = table.rules.iter().take(SHOWN).map(|rule| rule.text.as_str()).collect();
            text += &format!("```text\n{}\n```\n", rules.join("\n"));
        }
        if table.rules.len() > SHOWN {
            text += &format!("and {} more rules\n", table.rules.len() - SHOWN);
        }
    }
    text
}

/// Rules of a table that are written out.
const SHOWN: usize = 40;
