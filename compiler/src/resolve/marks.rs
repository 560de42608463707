//! Where the parts of a resolved program stand in the source, for the messages of `check`. The HIR has places of rules
//! only; here are those of conditions, actions and names. Programs from other front ends may come without.

use crate::field::{Field, Header};
use crate::source::Span;

/// Marks of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// For each table, for each rule, in the order of the HIR.
    pub tables: Vec<Vec<RuleMarks>>,
    /// Where each table's name stands.
    pub table_names: Vec<Span>,
    /// Names that nothing uses: what it is, the name, the place.
    pub unused: Vec<(&'static str, String, Span)>,
    /// Variables that are set and never read.
    pub unread: Vec<(String, Span)>,
    /// Variables that are read and never set.
    pub unset: Vec<(String, Span)>,
}

/// Marks of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleMarks {
    /// The condition, or `else`.
    pub cond: Span,
    /// Fields and headers that the condition reads, as they are written.
    pub reads: Vec<ReadMark>,
    /// Fields read below a `!` that does not name their header.
    pub negated: Vec<ReadMark>,
    /// The actions in the order of the HIR, what is in a clone behind the clone.
    pub actions: Vec<ActionMark>,
}

/// A field or a header that a condition names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadMark {
    /// As it is written.
    pub name: String,
    /// The field; none for a bare header, or a variable.
    pub field: Option<Field>,
    /// What must be present.
    pub header: Option<Header>,
    /// Which bits of the field are looked at, where that is known.
    pub mask: u128,
    /// The place.
    pub span: Span,
}

/// An action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionMark {
    /// The action, in the rule or in the body of an `action`.
    pub span: Span,
    /// The rule's call that it comes from, if it is in the body of an `action`.
    pub via: Option<Span>,
}
