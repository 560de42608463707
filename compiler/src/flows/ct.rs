//! `ct(...)`: its arguments, and how it becomes actions of the HIR. `ct(ARGS,table=T)` tracks, runs table T on a copy, and goes
//! on untracked; `ct(ARGS)` tracks and goes on untracked.

use super::actions::{Scope, table, unsupported};
use super::names::{Needs, What};
use super::sets::{Slice, arrow, constant};
use super::text::{Item, Items, Piece};
use super::values::{Masked, number};
use crate::diag::Diagnostic;
use crate::field::Field;
use crate::hir::{Action, Ct, TableId, Value};

/// Reads a `ct(...)` and adds its actions.
pub fn parse(item: &Item, scope: &mut Scope, actions: &mut Vec<Action>) -> Result<(), Diagnostic> {
    scope.matches.check(item.key, Needs::Ip)?;
    let mut ct = Ct { zone: Value::Const(0), commit: false, force: false, mark: None, label: None };
    let mut to = None;
    let mut only_with_commit: Option<Item> = None;
    for argument in item.value.into_iter().flat_map(Items::new) {
        let argument = argument?;
        match argument.key.text.to_ascii_lowercase().as_str() {
            "commit" => ct.commit = true,
            "force" => {
                ct.force = true;
                only_with_commit = Some(argument);
            }
            "table" => to = Some(table(argument.needs_value("a table")?)?),
            "zone" => ct.zone = zone(argument.needs_value("a zone")?, scope)?,
            "exec" => {
                only_with_commit = Some(argument);
                exec(argument.needs_value("actions")?, &mut ct)?;
            }
            "nat" | "alg" => return Err(unsupported(argument.all, &format!("`{}` in `ct`", argument.key.text))),
            name => {
                let known = "the arguments are `commit`, `force`, `table=`, `zone=` and `exec()`";
                return Err(argument
                    .key
                    .error("unknown-argument", format!("`ct` has no argument `{name}`"), "unknown")
                    .help(known));
            }
        }
    }
    if let Some(argument) = only_with_commit.filter(|_| !ct.commit) {
        let message = format!("`{}` without `commit`", argument.key.text);
        return Err(argument
            .all
            .error("ct-without-commit", message, "changes connections, which only `commit` does")
            .help("add `commit` to the `ct`"));
    }
    actions.push(Action::Ct(ct));
    if let Some(table) = to {
        actions.push(Action::Clone(vec![Action::Goto(TableId(table.into()))]));
    }
    actions.push(Action::CtClear);
    Ok(())
}

/// A number, or 16 bits of a field.
fn zone(piece: Piece, scope: &Scope) -> Result<Value, Diagnostic> {
    if piece.text.starts_with(|c: char| c.is_ascii_digit()) {
        return Ok(Value::Const(number(piece, 16)?));
    }
    let slice = Slice::parse(piece)?;
    if slice.width() != 16 {
        let label = format!("{} bits", slice.width());
        return Err(piece
            .error("bad-value", "a zone has 16 bits", label)
            .help(format!("write `{}[0..15]`", slice.name.text)));
    }
    Ok(Value::Read(slice.source(scope)?))
}

/// The actions of `exec`: constants for `ct_mark` and `ct_label`.
fn exec(piece: Piece, ct: &mut Ct) -> Result<(), Diagnostic> {
    for item in Items::new(piece) {
        let item = item?;
        let is_load = item.key.is("load");
        if item.key.is("move") {
            return Err(unsupported(item.all, "`move` inside of `exec`"));
        }
        if !is_load && !item.key.is("set_field") {
            let message = format!("`{}` inside of `exec`", item.key.text);
            return Err(item
                .key
                .error("bad-exec", message, "only `set_field` and `load` can stand here")
                .help("`exec` writes `ct_mark` and `ct_label`; other actions go outside of `ct`"));
        }
        let (value, to) = arrow(item.needs_value("`VALUE->FIELD`")?)?;
        let to = Slice::parse(to)?;
        let bits = constant(value, &to, is_load)?;
        let (value, mask) = (bits.value << to.low, bits.mask << to.low);
        match to.row.what {
            What::Field(Field::CtMark) => {
                let (old, old_mask) = ct.mark.map_or((0, 0), |(v, m)| (v.into(), m.into()));
                let new = over(Masked { value: old, mask: old_mask }, Masked { value, mask });
                ct.mark = Some((new.value as u32, new.mask as u32));
            }
            What::Field(Field::CtLabel) => {
                let (old, old_mask) = ct.label.unwrap_or((0, 0));
                let new = over(Masked { value: old, mask: old_mask }, Masked { value, mask });
                ct.label = Some((new.value, new.mask));
            }
            _ => {
                let message = format!("`{}` inside of `exec`", to.name.text);
                return Err(to.name.error("bad-exec", message, "only `ct_mark` and `ct_label` can be written here"));
            }
        }
    }
    Ok(())
}

/// One write after another.
fn over(first: Masked, then: Masked) -> Masked {
    Masked { value: first.value & !then.mask | then.value, mask: first.mask | then.mask }
}
