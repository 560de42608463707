//! What became of a traced packet, and what changed in it.

use pipec_compiler::eval::fields_of;
use pipec_compiler::field::Field;
use pipec_compiler::hir::{Place, Program};
use pipec_compiler::words;

/// A field that differs between a packet that came and one that was sent. A side is nothing where the field is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The field's name.
    pub field: &'static str,
    /// As it came.
    pub before: Option<String>,
    /// As it was sent.
    pub after: Option<String>,
}

/// What differs between two frames, field by field, in the order of fields.
pub fn changes(program: &Program, before: &[u8], after: &[u8]) -> Vec<Change> {
    // As many tags as a frame may have are looked behind, whatever the program does.
    let (before, after) = (fields_of(before, 2), fields_of(after, 2));
    let of = |fields: &[(Field, u128)], field: Field| {
        let value = fields.iter().find(|(known, _)| *known == field).map(|(_, value)| *value);
        value.map(|value| words::value(program, Place::field(field), value))
    };
    let changed = Field::ALL.iter().map(|&field| Change {
        field: field.name(),
        before: of(&before, field),
        after: of(&after, field),
    });
    changed.filter(|change| change.before != change.after).collect()
}
