//! Trees of the compiler as text for people. In: anything that derives `Debug`. Out: the same on lines of a readable width, a
//! bracket that does not fit broken into its parts. Never: anything but line breaks is changed.

use std::fmt::Debug;

/// Characters of a line, where that is possible.
const WIDTH: usize = 110;

/// Shows a tree.
pub fn show(tree: &impl Debug) -> String {
    let text = format!("{tree:?}");
    let mut out = String::new();
    let partners = partners(text.as_bytes());
    part(&text, 0..text.len(), &partners, 0, &mut out);
    out + "\n"
}

/// For each opening bracket outside of strings, what closes it.
fn partners(bytes: &[u8]) -> Vec<usize> {
    let mut partners = vec![0; bytes.len()];
    let mut open = vec![];
    let mut quoted = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'(' | b'[' | b'{' if !quoted => open.push(at),
            b')' | b']' | b'}' if !quoted => {
                if let Some(start) = open.pop() {
                    partners[start] = at;
                }
            }
            _ => {}
        }
        at += 1;
    }
    partners
}

/// Writes what lies in a range; the line it begins on is indented by `indent`.
fn part(text: &str, range: std::ops::Range<usize>, partners: &[usize], indent: usize, out: &mut String) {
    let broken = (range.len() + indent > WIDTH).then(|| widest(range.clone(), partners)).flatten();
    let Some(open) = broken else { return out.push_str(&text[range]) };
    let close = partners[open];
    out.push_str(&text[range.start..=open]);
    let mut start = open + 1;
    while start < close {
        let end = comma(text, start..close, partners);
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent + 2));
        let trimmed = start + (text[start..end].len() - text[start..end].trim_start().len());
        part(text, trimmed..trimmed + text[trimmed..end].trim_end().len(), partners, indent + 2, out);
        out.push(',');
        start = end + 1;
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
    out.push_str(&text[close..range.end]);
}

/// The bracket with most in it.
fn widest(range: std::ops::Range<usize>, partners: &[usize]) -> Option<usize> {
    let mut best = None;
    let mut at = range.start;
    while at < range.end {
        if partners[at] > at {
            best = best.max(Some((partners[at] - at, at)));
            at = partners[at];
        }
        at += 1;
    }
    best.filter(|(width, _)| *width > 1).map(|(_, at)| at)
}

/// Where the first part ends: at a comma outside of brackets and strings.
fn comma(text: &str, range: std::ops::Range<usize>, partners: &[usize]) -> usize {
    let bytes = text.as_bytes();
    let mut at = range.start;
    let mut quoted = false;
    while at < range.end {
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ if !quoted && partners[at] > at => at = partners[at],
            _ => {}
        }
        at += 1;
    }
    range.end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wide_is_broken_and_nothing_else_changes() {
        let tree = vec![("a, (\"b".repeat(10), vec![Some(1); 20]), ("c".to_string(), vec![])];
        let shown = show(&tree);
        assert!(shown.lines().count() > 4 && shown.lines().all(|line| line.chars().count() <= WIDTH + 2), "{shown}");
        let bare = |text: &str| text.replace([' ', '\n', ','], "");
        assert_eq!(bare(&shown), bare(&format!("{tree:?}")));
        assert_eq!(show(&Some(1)), "Some(1)\n");
    }
}
