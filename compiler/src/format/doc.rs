//! How text is broken into lines. In: words with the places where a line may end, in groups. Out: text no wider than
//! [`WIDTH`] where that is possible. Never: knows what the words mean.
//!
//! A group is on one line if it fits; otherwise every place of its own is a new line, and the groups in it are asked anew. A
//! fill puts as many items on a line as fit. After P. Wadler, "A prettier printer" (2003).

/// Characters of a line, at the most.
pub const WIDTH: usize = 100;
/// Characters of a level.
pub const STEP: usize = 4;

/// A text that is still to be broken into lines.
#[derive(Clone, Debug)]
pub enum Doc {
    /// Stays together.
    Text(String),
    /// A space, or a new line.
    Line,
    /// Nothing, or a new line.
    Soft,
    /// A level deeper.
    Nest(Group),
    /// On one line, or with new lines at all of its own places.
    Group(Group),
    /// Items with a space or a new line between any two.
    Fill(Group),
    /// A comment; `own`: on lines of its own. Nothing stands behind one that ends with its line.
    Comment { text: String, own: bool },
}

/// Several parts, and how wide they are on one line; none if they need several.
#[derive(Clone, Debug)]
pub struct Group {
    parts: Vec<Doc>,
    flat: Option<usize>,
}

impl Group {
    fn new(parts: Vec<Doc>, between: usize) -> Group {
        let gaps = between * parts.len().saturating_sub(1);
        let flat = parts.iter().map(Doc::flat).sum::<Option<usize>>().map(|width| width + gaps);
        Group { parts, flat }
    }
}

impl Doc {
    /// Text that stays together.
    pub fn text(text: impl Into<String>) -> Doc {
        Doc::Text(text.into())
    }

    /// A level deeper.
    pub fn nest(parts: Vec<Doc>) -> Doc {
        Doc::Nest(Group::new(parts, 0))
    }

    /// A group.
    pub fn group(parts: Vec<Doc>) -> Doc {
        Doc::Group(Group::new(parts, 0))
    }

    /// A fill.
    pub fn fill(items: Vec<Doc>) -> Doc {
        Doc::Fill(Group::new(items, 1))
    }

    /// The width on one line, if that is possible.
    pub fn flat(&self) -> Option<usize> {
        match self {
            Doc::Text(text) => Some(text.chars().count()),
            Doc::Line => Some(1),
            Doc::Soft => Some(0),
            Doc::Nest(group) | Doc::Group(group) | Doc::Fill(group) => group.flat,
            Doc::Comment { text, own } => (!own && is_inline(text)).then(|| text.chars().count() + 1),
        }
    }
}

/// Whether something may stand behind a comment.
fn is_inline(comment: &str) -> bool {
    comment.starts_with("/*") && !comment.contains('\n')
}

/// Writes documents below each other.
#[derive(Debug, Default)]
pub struct Writer {
    /// What is written.
    pub out: String,
    column: usize,
    /// A comment ended the line.
    ended: bool,
}

impl Writer {
    /// Writes a document from where the line stands; lines after the first are indented by `indent` characters.
    pub fn write(&mut self, doc: &Doc, indent: usize) {
        self.text("", indent);
        self.doc(doc, indent, false, 0);
    }

    /// Ends the line, if something stands on it.
    pub fn end_line(&mut self) {
        if self.column > 0 {
            self.out.push('\n');
        }
        self.column = 0;
        self.ended = false;
    }

    /// Leaves a line blank.
    pub fn blank_line(&mut self) {
        self.end_line();
        self.out.push('\n');
    }

    /// Writes text that stays together.
    pub fn text(&mut self, text: &str, indent: usize) {
        if self.ended {
            self.end_line();
        }
        if text == " " && self.column == 0 {
            return;
        }
        if self.column == 0 {
            self.out.extend(std::iter::repeat_n(' ', indent));
            self.column = indent;
        }
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    /// Writes a comment.
    pub fn comment(&mut self, text: &str, own: bool, indent: usize) {
        // What begins a line now begins one the next time, too.
        let own = own || self.ended || self.column == 0;
        if own {
            self.end_line();
        } else if self.column > 0 {
            self.trim();
            self.text(if text.starts_with("//") { "  " } else { " " }, indent);
        }
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        self.text(&lines.join("\n"), indent);
        self.ended = own || !is_inline(text);
    }

    /// Takes spaces at the end of the line away.
    fn trim(&mut self) {
        while self.out.ends_with(' ') {
            self.out.pop();
            self.column -= 1;
        }
    }

    /// A new line, at the next text.
    fn new_line(&mut self) {
        self.trim();
        self.end_line();
    }

    /// `after`: what stands behind it on the same line, at least.
    fn doc(&mut self, doc: &Doc, indent: usize, flat: bool, after: usize) {
        match doc {
            Doc::Text(text) => self.text(text, indent),
            Doc::Comment { text, own } => self.comment(text, *own, indent),
            Doc::Line if flat => self.text(" ", indent),
            Doc::Soft if flat => {}
            Doc::Line | Doc::Soft => self.new_line(),
            Doc::Nest(group) => self.all(&group.parts, indent + STEP, flat, after),
            Doc::Group(group) => {
                let fits = flat || self.fits(group.flat, indent, after);
                self.all(&group.parts, indent, fits, after);
            }
            Doc::Fill(group) => self.fill(&group.parts, indent, flat, after),
        }
    }

    fn fits(&self, width: Option<usize>, indent: usize, after: usize) -> bool {
        let column = if self.column == 0 || self.ended { indent } else { self.column };
        width.is_some_and(|width| column + width + after <= WIDTH)
    }

    fn all(&mut self, parts: &[Doc], indent: usize, flat: bool, after: usize) {
        for (i, part) in parts.iter().enumerate() {
            let rest = if flat { 0 } else { until_line(&parts[i + 1..], after) };
            self.doc(part, indent, flat, rest);
        }
    }

    fn fill(&mut self, items: &[Doc], indent: usize, flat: bool, after: usize) {
        for (i, item) in items.iter().enumerate() {
            let after = if i + 1 == items.len() { after } else { 0 };
            if i > 0 && flat {
                self.text(" ", indent);
            } else if i > 0 {
                let lead = item.flat().unwrap_or_else(|| lead(item).0);
                if self.fits(Some(lead + 1), indent, after) && !self.ended {
                    self.text(" ", indent);
                } else {
                    self.new_line();
                }
            }
            self.doc(item, indent, flat, after);
        }
    }
}

/// What stands before the next place where a line ends.
fn until_line(rest: &[Doc], after: usize) -> usize {
    let mut width = 0;
    for doc in rest {
        match doc {
            Doc::Line | Doc::Soft | Doc::Comment { .. } => return width,
            // A level begins with such a place, or with what belongs to the line.
            Doc::Nest(group) if matches!(group.parts.first(), Some(Doc::Line | Doc::Soft)) => return width,
            doc => width += doc.flat().unwrap_or(0),
        }
    }
    width + after
}

/// The width up to the first place where a line may end, and whether there is one.
fn lead(doc: &Doc) -> (usize, bool) {
    let mut width = 0;
    match doc {
        Doc::Text(text) => return (text.chars().count(), false),
        Doc::Line | Doc::Soft | Doc::Comment { .. } => return (0, true),
        Doc::Nest(group) | Doc::Group(group) | Doc::Fill(group) => {
            for part in &group.parts {
                let (more, ends) = lead(part);
                width += more;
                if ends {
                    return (width, true);
                }
            }
        }
    }
    (width, matches!(doc, Doc::Fill(_)))
}
