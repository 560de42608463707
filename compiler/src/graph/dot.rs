//! A graph in the language of Graphviz.

use std::fmt::Write;

use super::{Graph, Kind, Way};

/// The graph as a `digraph`.
pub fn dot(graph: &Graph) -> String {
    let mut out =
        format!("digraph {} {{\n    rankdir = TB;\n    node [fontname = \"monospace\"];\n", quoted(&graph.name));
    for (i, node) in graph.nodes.iter().enumerate() {
        let shape = match node.kind {
            Kind::Start => "plaintext",
            Kind::Table => "box",
            Kind::Port => "ellipse",
        };
        let label = quoted(&node.lines.join("\n"));
        let _ = writeln!(out, "    n{i} [shape = {shape}, label = {label}];"); // writing to a string does not fail
    }
    for edge in &graph.edges {
        let style = match edge.way {
            Way::Call => ", style = dashed",
            Way::Ct => ", penwidth = 2",
            Way::Output => ", color = gray",
            Way::Start | Way::Goto => "",
        };
        let label = quoted(&edge.label());
        let _ = writeln!(out, "    n{} -> n{} [label = {label}{style}];", edge.from, edge.to);
    }
    out + "}\n"
}

/// A string with its quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
