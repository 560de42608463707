//! The actions of one rule: text in, actions of the HIR out. Tables and ports have provisional ids: the number of the table,
//! and the order in which ports were met. Actions that we do not have are errors; none is left out silently.

use std::borrow::Cow;

use super::ct;
use super::matches::Match;
use super::names::Needs;
use super::ports::{self, Port, Ports};
use super::report::Report;
use super::sets;
use super::text::{Item, Items, Piece};
use super::values::number;
use crate::diag::Diagnostic;
use crate::hir::{Action, MeterId, TableId};
use crate::suggest::closest;

/// `clone`s in each other, at the most.
const NESTING: usize = 32;

/// What the actions of a rule may depend on, and what they add to.
pub struct Scope<'a> {
    /// The rule's match, and what the actions before made of it.
    pub matches: Cow<'a, Match>,
    /// The rule's table.
    pub table: u8,
    /// Ports met so far.
    pub ports: &'a mut Ports,
    /// Where errors go.
    pub report: &'a mut Report,
}

/// Actions that Open vSwitch has and we do not, yet.
const LATER: &[&str] = &[
    "bundle",
    "bundle_load",
    "check_pkt_larger",
    "clear_actions",
    "conjunction",
    "debug_recirc",
    "debug_slow",
    "dec_nsh_ttl",
    "decap",
    "delete_field",
    "encap",
    "enqueue",
    "fin_timeout",
    "learn",
    "multipath",
    "nat",
    "pop",
    "pop_queue",
    "push",
    "sample",
    "set_queue",
    "set_tunnel",
    "set_tunnel64",
    "write_actions",
];

/// Actions that we have.
const NAMES: &[&str] = &[
    "all",
    "clone",
    "controller",
    "ct",
    "ct_clear",
    "dec_mpls_ttl",
    "dec_ttl",
    "drop",
    "exit",
    "flood",
    "goto_table",
    "group",
    "in_port",
    "load",
    "local",
    "meter",
    "mod_dl_dst",
    "mod_dl_src",
    "mod_nw_dst",
    "mod_nw_ecn",
    "mod_nw_src",
    "mod_nw_tos",
    "mod_nw_ttl",
    "mod_tp_dst",
    "mod_tp_src",
    "mod_vlan_pcp",
    "mod_vlan_vid",
    "move",
    "normal",
    "note",
    "output",
    "pop_mpls",
    "pop_vlan",
    "push_mpls",
    "push_vlan",
    "resubmit",
    "set_field",
    "set_mpls_label",
    "set_mpls_tc",
    "set_mpls_ttl",
    "set_vlan_pcp",
    "set_vlan_vid",
    "strip_vlan",
    "write_metadata",
];

/// Reads an action list. Everything that is wrong is reported.
pub fn parse(text: Piece, scope: &mut Scope) -> Vec<Action> {
    parse_nested(text, scope, 0)
}

fn parse_nested(text: Piece, scope: &mut Scope, nesting: usize) -> Vec<Action> {
    let mut actions = Vec::new();
    let mut last: Option<Item> = None;
    let mut dropped: Option<Item> = None;
    for item in Items::new(text) {
        let Some(item) = scope.report.ok(item) else { break };
        if let Some(goto) = last.filter(|last| last.key.is("goto_table")) {
            let error = item.all.error("goto-not-last", "actions behind `goto_table`", "never reached");
            let help = "put it before `goto_table`, or use `resubmit(,TABLE)`, which comes back";
            scope.report.add(error.label(goto.all.span(), "does not come back").help(help));
        } else if let Some((drop, other)) = dropped.map(|drop| (drop, item)).or(last.map(|other| (item, other)))
            && drop.key.is("drop")
        {
            let error = drop.all.error("drop-not-alone", "`drop` beside other actions", "must be the only action");
            scope.report.add(error.label(other.all.span(), "another action").help("leave one of the two out"));
        }
        if item.key.is("drop") {
            dropped = Some(item);
        }
        last = Some(item);
        let result = parse_one(&item, scope, nesting, &mut actions);
        scope.report.ok(result);
    }
    actions
}

fn parse_one(item: &Item, scope: &mut Scope, nesting: usize, actions: &mut Vec<Action>) -> Result<(), Diagnostic> {
    let name = item.key.text.to_ascii_lowercase();
    if item.value.is_none() && (name.starts_with(|c: char| c.is_ascii_digit()) || ports::reserved(&name).is_some()) {
        actions.push(send_to(item.key, scope)?);
        return Ok(());
    }
    match name.as_str() {
        "drop" => {}
        "output" => actions.push(output(item, scope)?),
        "resubmit" => actions.push(resubmit(item, scope)?),
        "goto_table" => {
            let piece = item.needs_value("a table")?;
            let table = table(piece)?;
            if table <= scope.table {
                let label = format!("must be above {}", scope.table);
                return Err(piece
                    .error("goto-backwards", "`goto_table` leads forward only", label)
                    .help(format!("`resubmit(,{table})` can lead anywhere")));
            }
            actions.push(Action::Goto(TableId(table.into())));
        }
        "ct" => ct::parse(item, scope, actions)?,
        "ct_clear" => actions.push(Action::CtClear),
        "dec_ttl" => {
            if item.value.is_some_and(|value| !value.text.is_empty()) {
                return Err(unsupported(item.all, "`dec_ttl` with controllers"));
            }
            warn_without(item, Needs::Ip, scope);
            actions.push(Action::DecTtl);
        }
        "clone" => {
            if nesting == NESTING {
                return Err(item.key.error(
                    "flow-syntax",
                    "`clone`s are nested too deep",
                    format!("at most {NESTING}"),
                ));
            }
            let before = scope.matches.clone();
            let inner = parse_nested(item.needs_value("actions")?, scope, nesting + 1);
            scope.matches = before;
            actions.push(Action::Clone(inner));
        }
        "push_vlan" | "pop_vlan" | "strip_vlan" | "push_mpls" | "pop_mpls" | "dec_mpls_ttl" | "set_mpls_label"
        | "set_mpls_tc" | "set_mpls_ttl" => super::shapes::parse(item, &name, scope, actions)?,
        "exit" => actions.push(Action::Exit),
        "note" => {}
        "controller" => actions.push(super::sending::controller(item)?),
        "group" => {
            let number = number(item.needs_value("a group")?, 32)? as u32;
            actions.push(Action::Group(scope.ports.groups.meet(number, item.all.span())));
        }
        "meter" => {
            let number = number(item.needs_value("a meter")?, 32)? as u32;
            actions.push(Action::Meter(MeterId(scope.ports.meters.meet(number, item.all.span()).0)));
        }
        "set_field" => sets::set_field(item.needs_value("`VALUE->FIELD`")?, scope, actions)?,
        "load" => sets::load(item.needs_value("`VALUE->FIELD[FIRST..LAST]`")?, scope, actions)?,
        "move" => sets::mov(item.needs_value("`FIELD[FIRST..LAST]->FIELD[FIRST..LAST]`")?, scope, actions)?,
        "write_metadata" => sets::write_metadata(item.needs_value("a value")?, actions)?,
        _ if name.starts_with("mod_") || name.starts_with("set_vlan_") => {
            sets::modify(item, &name, scope, actions)?.then_some(()).ok_or_else(|| unknown(item, &name))?;
        }
        _ => return Err(unknown(item, &name)),
    }
    Ok(())
}

/// The error for what we do not have.
pub fn unsupported(piece: Piece, what: &str) -> Diagnostic {
    piece.error("unsupported-action", format!("{what} is not supported yet"), "cannot be compiled")
}

fn unknown(item: &Item, name: &str) -> Diagnostic {
    if LATER.contains(&name) {
        return unsupported(item.key, &format!("the action `{name}`"));
    }
    let error = item.key.error("unknown-action", format!("no action `{name}`"), "not an action");
    match closest(name, NAMES.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None => error,
    }
}

/// Warns if a rule writes what its match does not make sure of; `ovs-ofctl` accepts that from OpenFlow 1.0.
pub fn warn_without(item: &Item, needs: Needs, scope: &mut Scope) {
    if let Err(mut diagnostic) = scope.matches.check(item.key, needs) {
        diagnostic.severity = crate::diag::Severity::Warning;
        diagnostic.labels[0].1 += "; others pass unchanged";
        scope.report.add(diagnostic);
    }
}

/// The number of a table.
pub fn table(piece: Piece) -> Result<u8, Diagnostic> {
    match number(piece, 8)? {
        255 => Err(piece.error("bad-value", "there is no table 255", "tables are numbered 0 to 254")),
        table => Ok(table as u8),
    }
}

fn output(item: &Item, scope: &mut Scope) -> Result<Action, Diagnostic> {
    let value = item.needs_value("a port")?;
    if item.parentheses {
        let (mut port, mut max_len) = (None, None);
        for argument in Items::new(value) {
            let argument = argument?;
            match argument.value {
                Some(value) if argument.key.is("port") => port = Some(value),
                Some(value) if argument.key.is("max_len") => max_len = Some(value),
                None if port.is_none() => port = Some(argument.key),
                _ => return Err(unsupported(argument.all, &format!("`{}` in `output`", argument.key.text))),
            }
        }
        let port = port.ok_or_else(|| item.all.error("flow-syntax", "`output` needs a port", "no `port=`"))?;
        return match max_len {
            None => send_to(port, scope),
            Some(max_len) => super::sending::part(port, max_len, scope),
        };
    }
    if ports::reserved(value.text).is_none()
        && super::names::by_name(value.text.split('[').next().unwrap_or_default()).is_some()
    {
        return super::sending::to_field(value, scope);
    }
    send_to(value, scope)
}

/// Sending to a port, reserved ones included.
fn send_to(piece: Piece, scope: &mut Scope) -> Result<Action, Diagnostic> {
    Ok(match ports::parse(piece)? {
        Port::Number(number) => Action::Output(scope.ports.id(number)),
        Port::Ingress => Action::InPort,
        Port::Normal => Action::Normal,
        Port::Flood => Action::Flood,
        Port::All => Action::All,
        Port::Controller => Action::Controller { reason: 1, max_len: u16::MAX },
        Port::Other(name) => return Err(unsupported(piece, &format!("output to `{name}`"))),
    })
}

fn resubmit(item: &Item, scope: &mut Scope) -> Result<Action, Diagnostic> {
    let value = item.needs_value("a port or a table")?;
    let (port, rest) = match value.split_once(",").filter(|_| item.parentheses) {
        Some((port, rest)) => (port.trim(), Some(rest)),
        None => (value.trim(), None),
    };
    let (to, more) = match rest.map(|rest| rest.split_once(",").map_or((rest, None), |(to, more)| (to, Some(more)))) {
        Some((to, more)) => (Some(to.trim()), more),
        None => (None, None),
    };
    if let Some(more) = more {
        return Err(unsupported(more, "`resubmit` with `ct`"));
    }
    let in_port = match port.text {
        "" => None,
        _ => match ports::parse(port)? {
            Port::Number(number) => Some(scope.ports.id(number)),
            Port::Ingress => None,
            _ => {
                return Err(port.error("unknown-port", format!("no packet comes in by `{}`", port.text), "not a port"));
            }
        },
    };
    let table = match to.filter(|to| !to.text.is_empty() && to.text != "255") {
        Some(to) => table(to)?,
        None if port.text.is_empty() => {
            return Err(value.error("flow-syntax", "`resubmit` needs a port or a table", "neither is here"));
        }
        None => scope.table,
    };
    Ok(Action::Call { table: TableId(table.into()), in_port })
}
