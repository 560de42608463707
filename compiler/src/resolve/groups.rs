//! Declarations of groups and meters.

use super::Resolver;
use super::action::{Actions, Scope};
use crate::ast::{self, Expr, ExprKind};
use crate::diag::Diagnostic;
use crate::hir::{Bucket, Group, GroupId, GroupKind, Meter, MeterUnit};

/// Kinds of groups as they are written.
const KINDS: &[(&str, GroupKind)] = &[
    ("all", GroupKind::All),
    ("select", GroupKind::Select),
    ("indirect", GroupKind::Indirect),
    ("fast_failover", GroupKind::FastFailover),
];
/// Buckets of a group, at the most.
const MAX_BUCKETS: usize = 1024;

impl<'a> Resolver<'a> {
    /// A group, whose buckets may use those before it.
    pub fn group(&mut self, group: &'a ast::Group, id: GroupId) -> Option<Group> {
        let Some((_, kind)) = KINDS.iter().find(|(name, _)| *name == group.kind.node) else {
            let message = format!("there is no kind of group `{}`", group.kind.node);
            let diagnostic = Diagnostic::error("unknown-name", message, group.kind.span, "not known");
            let close = crate::suggest::closest(&group.kind.node, KINDS.iter().map(|(name, _)| *name));
            self.push(match close {
                Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
                None => diagnostic.help("kinds are all, select, indirect and fast_failover"),
            });
            return None;
        };
        self.right_buckets(group, *kind)?;
        let hash = match &group.hash {
            Some(list) => self.hashed(list, &Scope::default())?,
            None if *kind == GroupKind::Select => Group::default_hash(),
            None => vec![],
        };
        let mut buckets = vec![];
        for bucket in &group.buckets {
            let weight = match &bucket.node.weight {
                Some(weight) => self.small(weight, "a weight")?,
                None => 1,
            };
            let watch = match &bucket.node.watch {
                Some(name) => Some(self.port_named(name)?),
                None => None,
            };
            self.in_group = Some(id);
            let actions = self.actions(&bucket.node.actions, &mut Actions::default());
            self.in_group = None;
            buckets.push(Bucket { weight, watch, actions: actions? });
        }
        Some(Group { name: group.name.node.clone(), kind: *kind, hash, buckets, span: group.name.span })
    }

    /// Whether a group has the buckets that its kind needs, and nothing that means nothing to it.
    fn right_buckets(&mut self, group: &ast::Group, kind: GroupKind) -> Option<()> {
        let problem = match group.buckets.as_slice() {
            [] => Some((group.name.span, "a group needs a bucket", "it has none")),
            [_, second, ..] if kind == GroupKind::Indirect => {
                Some((second.span, "an indirect group has one bucket", "one too many"))
            }
            buckets if buckets.len() > MAX_BUCKETS => {
                Some((buckets[MAX_BUCKETS].span, "a group has at most 1,024 buckets", "one too many"))
            }
            buckets if kind == GroupKind::Select && buckets.iter().all(|bucket| weighs_nothing(&bucket.node)) => {
                Some((group.name.span, "no bucket of this group has a weight", "nothing can be chosen"))
            }
            _ => None,
        };
        let weighted = group.buckets.iter().find_map(|bucket| bucket.node.weight.as_ref());
        let hashed = group.hash.as_ref().and_then(|list| list.first());
        let odd = [(weighted, "a weight"), (hashed, "a hash")].into_iter().find_map(|(expr, what)| Some((expr?, what)));
        match (problem, odd) {
            (Some((span, message, label)), _) => self.error("bad-group", message, span, label),
            (None, Some((expr, what))) if kind != GroupKind::Select => {
                let message = format!("{what} means nothing in a group of kind `{}`", group.kind.node);
                self.push(
                    Diagnostic::error("bad-group", message, expr.span, "only `select` looks at it")
                        .label(group.kind.span, "the kind"),
                );
            }
            _ => return Some(()),
        }
        None
    }

    fn small(&mut self, expr: &Expr, what: &str) -> Option<u16> {
        let value = if let ExprKind::Number { value, .. } = expr.node { u16::try_from(value).ok() } else { None };
        if value.is_none() {
            self.error("value-too-big", format!("{what} has 16 bits"), expr.span, "expected 0 to 65535");
        }
        value
    }

    /// A meter.
    pub fn meter(&mut self, meter: &'a ast::Meter) -> Option<Meter> {
        let Some((rate, unit)) = &meter.rate else {
            let message = format!("the meter `{}` has no rate", meter.name.node);
            let diagnostic = Diagnostic::error("bad-meter", message, meter.name.span, "no `rate`");
            self.push(diagnostic.help("write `rate 1000 pps;` or `rate 1000 kbps;`"));
            return None;
        };
        let unit = match unit.node.as_str() {
            "pps" => MeterUnit::Packets,
            "kbps" => MeterUnit::Kilobits,
            other => {
                let message = format!("no unit of a rate `{other}`");
                let diagnostic = Diagnostic::error("unknown-unit", message, unit.span, "unknown");
                self.push(diagnostic.help("units are pps, packets a second, and kbps, kilobits a second"));
                return None;
            }
        };
        let rate = self.tokens(rate)?;
        let burst = match &meter.burst {
            Some(burst) => self.tokens(burst)?,
            None => rate,
        };
        Some(Meter { name: meter.name.node.clone(), unit, rate, burst, span: meter.name.span })
    }

    fn tokens(&mut self, expr: &Expr) -> Option<u32> {
        let value = if let ExprKind::Number { value, .. } = expr.node { u32::try_from(value).ok() } else { None };
        let value = value.filter(|value| *value > 0);
        if value.is_none() {
            let message = "rates and bursts of meters go from 1 to 4294967295";
            self.error("bad-meter", message, expr.span, "not in this range");
        }
        value
    }
}

fn weighs_nothing(bucket: &ast::Bucket) -> bool {
    bucket.weight.as_ref().is_some_and(|weight| matches!(weight.node, ExprKind::Number { value: 0, .. }))
}
