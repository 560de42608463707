//! Actions on VLAN tags and MPLS labels. What follows them is checked against what they leave.

use std::borrow::Cow;

use super::actions::{Scope, warn_without};
use super::names::{MPLS, Needs};
use super::text::Item;
use super::values::number;
use crate::diag::Diagnostic;
use crate::hir::{Action, Place, Space, Value};

/// Reads one of these actions.
pub fn parse(item: &Item, name: &str, scope: &mut Scope, actions: &mut Vec<Action>) -> Result<(), Diagnostic> {
    let one_of = |types: &[u16]| {
        let text = item.needs_value("an Ethernet type")?;
        let value = number(text, 16)? as u16;
        if types.is_empty() || types.contains(&value) {
            return Ok(value);
        }
        let names: Vec<String> = types.iter().map(|eth_type| format!("0x{eth_type:04x}")).collect();
        Err(text.error("bad-value", format!("{} is no type for `{name}`", text.text), names.join(" or ")))
    };
    match name {
        "push_vlan" => {
            actions.push(Action::PushVlan { tpid: one_of(&[0x8100, 0x88a8])?, tci: Value::Const(0) });
            scope.matches = Cow::Owned(scope.matches.tagged(true));
        }
        "pop_vlan" | "strip_vlan" => {
            actions.push(Action::PopVlan);
            scope.matches = Cow::Owned(scope.matches.tagged(false));
        }
        "push_mpls" => {
            let eth_type = one_of(&[0x8847, 0x8848])?;
            actions.push(Action::PushMpls { eth_type, values: vec![] });
            scope.matches = Cow::Owned(scope.matches.retyped(eth_type));
        }
        "pop_mpls" => {
            let eth_type = one_of(&[])?;
            warn_without(item, Needs::Mpls, scope);
            actions.push(Action::PopMpls { eth_type });
            scope.matches = Cow::Owned(scope.matches.retyped(eth_type));
        }
        "dec_mpls_ttl" => {
            warn_without(item, Needs::Mpls, scope);
            actions.push(Action::DecMplsTtl { header: MPLS });
        }
        _ => {
            let (offset, width) = match name {
                "set_mpls_label" => (0, 20),
                "set_mpls_tc" => (20, 3),
                _ => (24, 8),
            };
            let value = number(item.needs_value("a value")?, width)?;
            warn_without(item, Needs::Mpls, scope);
            let place = Place { space: Space::Header(MPLS), offset, width };
            actions.push(Action::Set { place, value: Value::Const(value) });
        }
    }
    Ok(())
}
