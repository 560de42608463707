//! A graph as an SVG picture that looks right on light and dark grounds, and needs nothing else to be shown.

use std::fmt::Write;

use super::layout::{Layout, layout};
use super::{Graph, Kind, Node, Way};

/// Width of a letter, and of a line, of the font.
const LETTER: f64 = 7.3;
const LINE: f64 = 16.0;
/// Between text and border.
const INSIDE: f64 = 10.0;

const STYLE: &str = "
    text { font: 12px ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; text-anchor: middle; }
    text.name { font-weight: bold; }
    text.edge { font-size: 11px; stroke-width: 4px; paint-order: stroke; }
    rect { stroke-width: 1.2px; }
    path { fill: none; stroke-width: 1.4px; }
    path.call { stroke-dasharray: 6 3; }
    rect.ground { fill: #ffffff; stroke: none; }
    text { fill: #5b6b7b; }
    text.name, text.edge { fill: #1c2733; }
    text.drop { fill: #b02a37; }
    text.edge { stroke: #ffffff; }
    rect { fill: #f4f7fa; stroke: #7a8a99; }
    rect.port { fill: #e3f2e6; }
    path { stroke: #7a8a99; }
    path.ct { stroke: #b3541e; }
    path.call { stroke: #3b6fb6; }
    marker path { fill: #7a8a99; }
    rect.start { fill: none; stroke-dasharray: 3 3; }
    marker path { stroke: none; }
    @media (prefers-color-scheme: dark) {
        rect.ground { fill: #0f151c; stroke: none; }
        text { fill: #9fb0c0; }
        text.name, text.edge { fill: #e6edf3; }
        text.drop { fill: #f28b93; }
        text.edge { stroke: #0f151c; }
        rect { fill: #1d2733; stroke: #8796a5; }
        rect.port { fill: #1f3326; }
        path { stroke: #8796a5; }
        path.ct { stroke: #f0a36b; }
        path.call { stroke: #7fb0f0; }
        marker path { fill: #8796a5; }
        rect.start { fill: none; }
        marker path { stroke: none; }
    }
";

/// Draws a graph.
pub fn svg(graph: &Graph) -> String {
    let sizes: Vec<(f64, f64)> = graph.nodes.iter().map(size).collect();
    let layout = layout(graph, &sizes);
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" \
         refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\"/></marker></defs>\n\
         <rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n",
        escaped(&graph.name)
    );
    for (edge, line) in graph.edges.iter().zip(&layout.lines) {
        let class = match edge.way {
            Way::Ct => "ct",
            Way::Call => "call",
            Way::Start | Way::Goto | Way::Output => "goto",
        };
        // Writing to a string does not fail.
        let _ = writeln!(out, "<path class=\"{class}\" d=\"{}\" marker-end=\"url(#tip)\"/>", path(line));
    }
    for (node, (size, centre)) in graph.nodes.iter().zip(sizes.iter().zip(&layout.centres)) {
        draw(node, *size, *centre, &mut out);
    }
    labels(graph, &layout, &mut out);
    out + "</svg>\n"
}

fn size(node: &Node) -> (f64, f64) {
    let letters = node.lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let least = if node.kind == Kind::Table { 110.0 } else { 50.0 };
    ((letters as f64 * LETTER + 2.0 * INSIDE).max(least).round(), node.lines.len() as f64 * LINE + INSIDE)
}

fn draw(node: &Node, (width, height): (f64, f64), (x, y): (f64, f64), out: &mut String) {
    let (class, round) = match node.kind {
        Kind::Start => ("start", 4.0),
        Kind::Table => ("table", 4.0),
        Kind::Port => ("port", height / 2.0),
    };
    let (left, top) = (x - width / 2.0, y - height / 2.0);
    // Writing to a string does not fail.
    let _ = writeln!(out, "<g><title>{}</title>", escaped(&node.detail));
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{round:.1}\"/>"
    );
    for (i, line) in node.lines.iter().enumerate() {
        let class = match (i, node.kind) {
            (0, _) => "name",
            (_, Kind::Table) if line == "drop" || line.starts_with("drop ") => "drop",
            _ => "more",
        };
        let at = top + INSIDE / 2.0 + (i as f64 + 0.75) * LINE;
        let _ = writeln!(out, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{at:.1}\">{}</text>", escaped(line));
    }
    out.push_str("</g>\n");
}

/// A smooth line through points: upright where it leaves and arrives.
fn path(points: &[(f64, f64)]) -> String {
    let Some((x, y)) = points.first() else { return String::new() };
    let mut path = format!("M{x:.1} {y:.1}");
    for pair in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        let _ = match (x0 - x1).abs() < 0.5 || (y0 - y1).abs() < 0.5 {
            true => write!(path, " L{x1:.1} {y1:.1}"),
            false => {
                let middle = (y0 + y1) / 2.0;
                write!(path, " C{x0:.1} {middle:.1} {x1:.1} {middle:.1} {x1:.1} {y1:.1}")
            }
        }; // writing to a string does not fail
    }
    path
}

/// What stands at edges: in the middle of the first gap, moved down where another stands there already.
fn labels(graph: &Graph, layout: &Layout, out: &mut String) {
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for (edge, line) in graph.edges.iter().zip(&layout.lines) {
        let label = edge.label();
        let (Some(a), Some(b)) = (line.first(), line.get(1)) else { continue };
        if label.is_empty() {
            continue;
        }
        let half = label.chars().count() as f64 * 3.4;
        let at = |part: f64| {
            // As the curve goes.
            let s = part * part * (3.0 - 2.0 * part);
            (a.0 + (b.0 - a.0) * s, a.1 + (b.1 - a.1) * part + 4.0)
        };
        let free =
            |x: f64, y: f64| !taken.iter().any(|(tx, ty, th)| (x - tx).abs() < half + th && (y - ty).abs() < 12.0);
        let places = [0.5, 0.62, 0.38, 0.74, 0.26, 0.84, 0.16];
        let (x, y) = places.iter().map(|part| at(*part)).find(|(x, y)| free(*x, *y)).unwrap_or_else(|| at(0.5));
        taken.push((x, y, half));
        let _ = writeln!(out, "<text class=\"edge\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(&label)); // cannot fail
    }
}

/// Text as it may stand in XML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
