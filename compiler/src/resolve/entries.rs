//! Entries of keyed tables that the program brings along, and `learn`, by which packets make them.

use std::collections::HashMap;

use super::Resolver;
use super::action::{Bound, Scope};
use super::keyed::{Signature, TableAction};
use super::operand::Operand;
use super::value::Target;
use crate::ast::{self, Arg, EntryAction, Expr, ExprKind, KeyedStmt, Name, Spanned};
use crate::constant::{Constant, max, prefix_mask};
use crate::diag::Diagnostic;
use crate::field::{Field, Kind};
use crate::hir::{Action, KeyMatch, KeyPart, KeyedEntry, Learn, MatchKind, Space, Value};
use crate::source::Span;

impl<'a> Resolver<'a> {
    /// The entries of a table, in order.
    pub fn entries(&mut self, table: &'a ast::Table, signature: &Signature<'a>) -> Option<Vec<KeyedEntry>> {
        let mut entries: Vec<KeyedEntry> = vec![];
        let mut seen: HashMap<(u32, Vec<KeyMatch>), Span> = HashMap::new();
        let mut whole = true;
        let mut too_many = false;
        let lists = table.keyed.iter().filter_map(|stmt| match &stmt.node {
            KeyedStmt::Entries(entries) => Some(entries),
            _ => None,
        });
        for entry in lists.flatten() {
            if let Some(learned) = signature.learned {
                let message = "a learned table begins without entries: packets make them";
                self.push(
                    Diagnostic::error("keyed-table", message, entry.span, "an entry")
                        .label(learned, "packets make the entries"),
                );
                return None;
            }
            let Some(resolved) = self.entry(entry, signature) else {
                whole = false;
                continue;
            };
            if let Some(first) = seen.insert((resolved.priority, resolved.key.clone()), entry.span) {
                let message = "two entries have the same key";
                self.push(
                    Diagnostic::error("duplicate", message, entry.span, "the same key again")
                        .label(first, "the first entry with it"),
                );
                whole = false;
            }
            if entries.len() >= signature.size.0 as usize && !too_many {
                too_many = true;
                let message = format!("the table `{}` holds {} entries", table.name.node, signature.size.0);
                let diagnostic = Diagnostic::error("too-many", message, entry.span, "one too many");
                self.push(match signature.size.1 {
                    Some(size) => diagnostic.label(size, "its size"),
                    None => {
                        diagnostic.label(table.name.span, "it has no `size`, which means 1024").help("write `size N;`")
                    }
                });
                whole = false;
            }
            entries.push(resolved);
        }
        whole.then_some(entries)
    }

    fn entry(&mut self, entry: &'a Spanned<ast::Entry>, signature: &Signature<'a>) -> Option<KeyedEntry> {
        let priority = self.entry_priority(entry, signature);
        if entry.node.key.len() != signature.key.len() {
            let (have, want) = (entry.node.key.len(), signature.key.len());
            let message = format!("this entry has {have} values for a key of {want} parts");
            let place = entry.node.key.first().map_or(entry.span, |part| part.span);
            let diagnostic = Diagnostic::error("entry-key", message, place, "the entry's key");
            self.push(match signature.key.first() {
                Some((_, span)) => diagnostic.label(*span, "the key begins here"),
                None => diagnostic,
            });
            return None;
        }
        let mut key = vec![];
        for (value, (part, span)) in entry.node.key.iter().zip(&signature.key) {
            key.push(self.entry_part(value, part, *span));
        }
        let action = self.entry_action(&entry.node.action, signature);
        let (action, args) = action?;
        Some(KeyedEntry {
            priority: priority?,
            key: key.into_iter().collect::<Option<_>>()?,
            action,
            args,
            idle_ns: entry.node.idle,
            hard_ns: entry.node.hard,
            span: entry.span,
        })
    }

    fn entry_priority(&mut self, entry: &Spanned<ast::Entry>, signature: &Signature<'a>) -> Option<u32> {
        let Some(priority) = &entry.node.priority else { return Some(0) };
        if !signature.has_priorities() {
            let message = "entries of this table have no priority: the longest prefix is taken, or the only one";
            let diagnostic = Diagnostic::error("priority", message, priority.span, "not allowed here");
            self.push(match signature.key.first() {
                Some((_, span)) => diagnostic.label(*span, "no part is ternary, range or optional"),
                None => diagnostic,
            });
            return None;
        }
        match priority.node {
            ExprKind::Number { value, .. } if value <= 0xffff => Some(value as u32),
            _ => {
                self.error("value-too-big", "priorities go from 0 to 65535", priority.span, "too big");
                None
            }
        }
    }

    /// What an entry wants of a part of the key.
    fn entry_part(&mut self, value: &Spanned<Option<Expr>>, part: &KeyPart, span: Span) -> Option<KeyMatch> {
        let width = part.read.place.width;
        let full = max(width);
        let Some(expr) = &value.node else {
            if part.kind == MatchKind::Exact {
                let message = format!("`{}` is matched exactly: it needs a value", part.name);
                self.push(
                    Diagnostic::error("entry-key", message, value.span, "any value")
                        .label(span, "exact")
                        .help(format!("write a value, or match it otherwise: `{}: optional`", part.name)),
                );
                return None;
            }
            return Some(match part.kind {
                MatchKind::Range => KeyMatch::Range { low: 0, high: full },
                _ => KeyMatch::Masked { value: 0, mask: 0 },
            });
        };
        let target = Target { kind: part.value, width, flags: &[], name: &part.name, span };
        let exact = |value: u128| KeyMatch::Masked { value, mask: full };
        match (&expr.node, part.kind) {
            (ExprKind::Slash(address, length), MatchKind::Lpm) => {
                let (value, mask) = self.entry_prefix(address, length, &target)?;
                Some(KeyMatch::Masked { value: value & mask, mask })
            }
            (ExprKind::Slash(address, mask), MatchKind::Ternary) => {
                let (bits, mask) = self.masked_value(address, mask, &target)?;
                if bits & !mask != 0 {
                    let message = "bits of the value beyond the mask";
                    self.push(Diagnostic::warning("host-bits", message, address.span, "has bits that do not count"));
                }
                Some(KeyMatch::Masked { value: bits & mask, mask })
            }
            (ExprKind::Range(low, high), MatchKind::Range) => {
                let (a, b) = (self.value(low, &target), self.value(high, &target));
                let (a, b) = (a?, b?);
                if a > b {
                    let message = "this range is empty: its first value is greater than its last";
                    let diagnostic = Diagnostic::error("empty-range", message, expr.span, "holds nothing");
                    self.push(diagnostic.help("swap the two"));
                    return None;
                }
                Some(KeyMatch::Range { low: a, high: b })
            }
            (ExprKind::Slash(..) | ExprKind::Range(..) | ExprKind::Elements(_), kind) => {
                let message = format!("`{}` is matched as `{}`", part.name, kind.name());
                let help = match kind {
                    MatchKind::Lpm => "write a prefix, as in `10.0.0.0/8`",
                    MatchKind::Ternary => "write a value and a mask, as in `0x10/0xf0`",
                    MatchKind::Range => "write a range, as in `80..=89`",
                    _ => "write one value",
                };
                self.push(
                    Diagnostic::error("entry-key", message, expr.span, "not such a value")
                        .label(span, kind.name())
                        .help(help),
                );
                None
            }
            (_, MatchKind::Range) => self.value(expr, &target).map(|value| KeyMatch::Range { low: value, high: value }),
            _ => self.entry_value(expr, part, &target).map(exact),
        }
    }

    /// One value of a key. Of ports, what packets have there: the place of `in_port`, else the number.
    fn entry_value(&mut self, expr: &Expr, part: &KeyPart, target: &Target) -> Option<u128> {
        let value = self.value(expr, target)?;
        let place = part.read.place.space == Space::Field(Field::InPort);
        Some(if part.value == Kind::Port && !place { self.port_number(value) } else { value })
    }

    fn port_number(&self, place: u128) -> u128 {
        self.names.ports.get(place as usize).map_or(0, |port| u128::from(port.number))
    }

    /// Value and mask of a prefix, of an address or a number.
    fn entry_prefix(&mut self, address: &Expr, length: &Expr, target: &Target) -> Option<(u128, u128)> {
        if matches!(target.kind, Kind::Ipv4 | Kind::Ipv6 | Kind::Mac) {
            let (value, length) = self.prefix(address, length)?;
            let value = self.fit(value, address.span, target)?;
            return Some((value, prefix_mask(target.width, length)));
        }
        let value = self.value(address, target)?;
        let length_value = self.constant(length, &[])?;
        let Some(bits) = u8::try_from(length_value.bits).ok().filter(|bits| *bits <= target.width) else {
            let message = "this is not the length of a prefix";
            self.error("bad-prefix", message, length.span, format!("expected 0 to {}", target.width));
            return None;
        };
        Some((value, prefix_mask(target.width, bits)))
    }

    /// The action that an entry names, by its number, and its arguments.
    fn entry_action(&mut self, action: &'a EntryAction, signature: &Signature<'a>) -> Option<(u16, Vec<u128>)> {
        let index = self.action_index(&action.name, signature)?;
        let args = self.entry_args(action, &signature.actions[index])?;
        Some((index as u16, args))
    }

    fn action_index(&mut self, name: &Name, signature: &Signature<'a>) -> Option<usize> {
        let found = signature.actions.iter().position(|known| known.action.name == name.node);
        if found.is_none() {
            let message = format!("`{}` is not among the actions of this table", name.node);
            let names: Vec<&str> = signature.actions.iter().map(|known| known.action.name.as_str()).collect();
            let help = match crate::suggest::closest(&name.node, names.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("actions of this table are {}", names.join(", ")),
            };
            let diagnostic = Diagnostic::error("entry-action", message, name.span, "not an action of the table");
            let list = signature.actions.first().map(|first| first.span);
            let diagnostic = match list {
                Some(first) => diagnostic.label(first, "the table's actions begin here"),
                None => diagnostic,
            };
            self.push(diagnostic.help(help));
        }
        found
    }

    /// Arguments that are known: each of the kind of its parameter.
    pub fn entry_args(&mut self, call: &'a EntryAction, action: &TableAction<'a>) -> Option<Vec<u128>> {
        let args = call.args.as_deref().unwrap_or(&[]);
        let values: Vec<Option<Value>> =
            self.argument_values(&call.name, args, action, &Scope::default())?.into_iter().collect();
        let mut known = vec![];
        for (value, arg) in values.into_iter().zip(args) {
            match value? {
                Value::Const(value) => known.push(value),
                _ => {
                    let message = "an entry's arguments are known in advance";
                    self.error("not-a-value", message, arg.value.span, "known only at run time");
                    return None;
                }
            }
        }
        Some(known)
    }

    /// The arguments of an action, in the order of its parameters.
    fn argument_values(
        &mut self,
        name: &Name,
        args: &'a [Arg],
        action: &TableAction<'a>,
        scope: &Scope<'a>,
    ) -> Option<Vec<Option<Value>>> {
        let params = &action.action.params;
        if args.len() != params.len() {
            let count = |n: usize| if n == 1 { "1 argument".to_string() } else { format!("{n} arguments") };
            let message = format!("`{}` takes {}, not {}", name.node, count(params.len()), args.len());
            let declared = action.decl.map_or(action.span, |decl| decl.name.span);
            self.push(
                Diagnostic::error("arguments", message, name.span, "named here").label(declared, "declared here"),
            );
            return None;
        }
        let mut values = vec![];
        for (k, param) in params.iter().enumerate() {
            let declared = action.decl.and_then(|decl| decl.params.get(k)).map_or(action.span, |p| p.name.span);
            let named = |arg: &&Arg| arg.name.as_ref().is_some_and(|n| n.node == param.name);
            let Some(arg) = args.iter().find(named).or_else(|| args.get(k).filter(|arg| arg.name.is_none())) else {
                let message = format!("the parameter `{}` is not given", param.name);
                self.push(
                    Diagnostic::error("arguments", message, name.span, "named here").label(declared, "declared here"),
                );
                return None;
            };
            let target = Target { kind: param.kind, width: param.width, flags: &[], name: &param.name, span: declared };
            values.push(match param.kind {
                Kind::Port => self.port_value(&arg.value, scope),
                _ => self.operand_value(&arg.value, scope, &target),
            });
        }
        Some(values)
    }

    /// A port as a value: its OpenFlow number.
    fn port_value(&mut self, expr: &Expr, scope: &Scope<'a>) -> Option<Value> {
        Some(match self.port_or_param(expr, scope)? {
            Ok(port) => Value::Const(self.port_number(u128::from(port.0))),
            Err(Bound::Value(value, ..)) => value,
            Err(Bound::Place(place, _)) => Value::Read(place),
            Err(_) => Value::Const(0),
        })
    }

    /// A port as its place among the ports, as `in_port` has it.
    fn port_place(&mut self, expr: &Expr, scope: &Scope<'a>) -> Option<Value> {
        match self.port_or_param(expr, scope)? {
            Ok(port) => Some(Value::Const(u128::from(port.0))),
            Err(Bound::Any(..)) => Some(Value::Const(0)),
            Err(_) if matches!(&expr.node, ExprKind::Path(name) if name == "in_port") => {
                Some(Value::Read(crate::hir::Place::field(Field::InPort)))
            }
            Err(_) => {
                let message = "a key that is `in_port` is learned from `in_port`, or from the name of a port";
                self.error("wrong-kind", message, expr.span, "a number that is computed");
                None
            }
        }
    }

    fn operand_value(&mut self, expr: &Expr, scope: &Scope<'a>, target: &Target) -> Option<Value> {
        Some(match self.operand(expr, scope, target)? {
            Operand::Const(Constant { bits, .. }) => Value::Const(bits),
            Operand::Place(place, _) => Value::Read(place),
            Operand::Computed(value, ..) => value,
            Operand::Any(..) => Value::Const(0),
        })
    }

    /// `learn table(key) => action(args)`
    pub fn learn(
        &mut self,
        table: &'a Name,
        key: &'a [Arg],
        action: &'a EntryAction,
        scope: &Scope<'a>,
    ) -> Option<Action> {
        let id = self.table(table)?;
        let Some(signature) = self.keyed.get(table.node.as_str()).cloned() else {
            if !self.broken_tables.contains(table.node.as_str()) {
                let message = format!("`{}` has rules: packets make no entries of it", table.node);
                self.push(
                    Diagnostic::error("keyed-table", message, table.span, "not a learned table")
                        .help("declare a table with `key …: exact;` and `learned;`"),
                );
            }
            return None;
        };
        if signature.learned.is_none() {
            let message = format!("packets do not make entries of `{}`", table.node);
            self.push(
                Diagnostic::error("keyed-table", message, table.span, "not a learned table")
                    .help("write `learned;` in the table"),
            );
            return None;
        }
        if key.len() != signature.key.len() {
            let message = format!("the key of `{}` has {} parts, not {}", table.node, signature.key.len(), key.len());
            self.error("entry-key", message, table.span, "learned here");
            return None;
        }
        let mut values = vec![];
        for (arg, (part, span)) in key.iter().zip(&signature.key) {
            let (kind, width) = (part.value, part.read.place.width);
            let target = Target { kind, width, flags: &[], name: &part.name, span: *span };
            values.push(match kind {
                // What packets have there is the place of a port, not its number.
                Kind::Port if part.read.place.space == Space::Field(Field::InPort) => {
                    self.port_place(&arg.value, scope)
                }
                Kind::Port => self.port_value(&arg.value, scope),
                _ => self.operand_value(&arg.value, scope, &target),
            });
        }
        let index = self.action_index(&action.name, &signature)?;
        let args = action.args.as_deref().unwrap_or(&[]);
        let args = self.argument_values(&action.name, args, &signature.actions[index], scope)?;
        Some(Action::Learn(Box::new(Learn {
            table: id,
            key: values.into_iter().collect::<Option<_>>()?,
            action: index as u16,
            args: args.into_iter().collect::<Option<_>>()?,
        })))
    }
}
