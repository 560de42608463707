//! Lines that declare groups and meters, as `ovs-ofctl add-groups` and `add-meter` read them:
//!
//! ```text
//! group_id=1,type=select,bucket=weight:2,watch_port:3,actions=output:3,bucket=output:4
//! meter=1 pktps burst bands=type=drop rate=100 burst_size=20
//! ```
//!
//! A bucket is a set of actions: writes come first, and of outputs, groups and resubmits one counts.

use super::actions::{self, Scope, unsupported};
use super::matches::Match;
use super::ports::{self, Port, Ports};
use super::report::Report;
use super::text::{Item, Items, Piece};
use super::values::number;
use crate::diag::Diagnostic;
use crate::hir::{Action, Bucket, Group, GroupKind, Meter, MeterUnit};

/// Reads a line that declares a group; its number is its name.
pub fn group(line: Piece, ports: &mut Ports, report: &mut Report) -> Option<Group> {
    let starts: Vec<usize> = line.text.match_indices("bucket=").map(|(at, _)| at).collect();
    let head = line.slice(0, starts.first().copied().unwrap_or(line.text.len()));
    let mut group =
        Group { name: String::new(), kind: GroupKind::All, hash: vec![], buckets: vec![], span: line.span() };
    for item in Items::new(head) {
        let result = item.and_then(|item| group_item(&item, &mut group));
        report.ok(result)?;
    }
    if group.kind == GroupKind::Select {
        group.hash = Group::default_hash();
    }
    for (k, &start) in starts.iter().enumerate() {
        let end = starts.get(k + 1).copied().unwrap_or(line.text.len());
        let piece = line.slice(start + "bucket=".len(), end);
        let result = bucket(piece, ports, report);
        group.buckets.push(report.ok(result)?);
    }
    Some(group)
}

fn group_item(item: &Item, group: &mut Group) -> Result<(), Diagnostic> {
    match item.key.text {
        "add" => {}
        "group_id" => group.name = number(item.needs_value("a number")?, 32)?.to_string(),
        "type" => {
            let kind = item.needs_value("a type")?;
            group.kind = match kind.text {
                "all" => GroupKind::All,
                "select" => GroupKind::Select,
                "indirect" => GroupKind::Indirect,
                "ff" | "fast_failover" => GroupKind::FastFailover,
                other => {
                    let message = format!("no type of group `{other}`");
                    return Err(kind.error("bad-value", message, "all, select, indirect or ff"));
                }
            };
        }
        "selection_method" | "selection_method_param" | "fields" => {}
        name => return Err(unsupported(item.all, &format!("`{name}` of a group"))),
    }
    Ok(())
}

fn bucket(piece: Piece, ports: &mut Ports, report: &mut Report) -> Result<Bucket, Diagnostic> {
    let (mut weight, mut watch) = (1, None);
    let mut items = Items::new(piece);
    let mut rest = items.rest();
    while let Some(item) = items.next() {
        let item = item?;
        match (item.key.text, item.value) {
            ("bucket_id", Some(_)) => {}
            ("weight", Some(value)) => weight = number(value, 16)? as u16,
            ("watch_port", Some(value)) => {
                watch = match ports::parse(value)? {
                    Port::Number(number) => Some(ports.id(number)),
                    _ => None,
                }
            }
            ("watch_group", Some(_)) => return Err(unsupported(item.all, "`watch_group`")),
            ("action" | "actions", Some(_)) => {
                let skipped = rest.text.len() - rest.text.trim_start_matches([' ', ',', '\t', '\r']).len();
                rest = rest.skip(skipped + item.key.text.len() + 1);
                break;
            }
            _ => break,
        }
        rest = items.rest();
    }
    let matches = Match::of_bucket();
    let mut scope = Scope { matches: std::borrow::Cow::Borrowed(&matches), table: 0, ports, report };
    Ok(Bucket { weight, watch, actions: as_set(actions::parse(rest, &mut scope)) })
}

/// A list of actions in the order of an action set, with one that sends.
fn as_set(list: Vec<Action>) -> Vec<Action> {
    let rank = |action: &Action| match action {
        Action::PopVlan | Action::PopMpls { .. } => 0,
        Action::PushMpls { .. } => 1,
        Action::PushVlan { .. } => 2,
        Action::DecTtl | Action::DecMplsTtl { .. } => 3,
        Action::Set { .. } | Action::SetVlan { .. } => 4,
        Action::CtClear => 7,
        Action::Group(_) => 5,
        _ => 6,
    };
    let mut set: Vec<Action> = list.iter().filter(|action| rank(action) < 5).cloned().collect();
    set.sort_by_key(rank);
    let last = |wanted: u8| list.iter().rfind(|action| rank(action) == wanted).cloned();
    set.extend(last(5).or_else(|| last(6)));
    set
}

/// Reads a line that declares a meter; its number is its name.
pub fn meter(line: Piece, report: &mut Report) -> Option<Meter> {
    let mut meter = Meter { name: String::new(), unit: MeterUnit::Kilobits, rate: 0, burst: 0, span: line.span() };
    let mut bands = 0;
    for item in Items::new(line) {
        let result = item.and_then(|item| meter_item(&item, &mut meter, &mut bands));
        report.ok(result)?;
    }
    if bands != 1 || meter.rate == 0 {
        report.add(unsupported(line, "a meter without exactly one band and a rate"));
        return None;
    }
    if meter.burst == 0 {
        meter.burst = meter.rate;
    }
    Some(meter)
}

fn meter_item(item: &Item, meter: &mut Meter, bands: &mut u32) -> Result<(), Diagnostic> {
    match item.key.text {
        "meter" => meter.name = number(item.needs_value("a number")?, 32)?.to_string(),
        "pktps" => meter.unit = MeterUnit::Packets,
        "kbps" => meter.unit = MeterUnit::Kilobits,
        "burst" | "stats" => {}
        "band" | "bands" | "type" => {
            let kind = item.needs_value("a band")?;
            if !matches!(kind.text, "drop" | "type=drop") {
                return Err(unsupported(item.all, &format!("a band of `{}`", kind.text)));
            }
            *bands += 1;
        }
        "rate" => meter.rate = number(item.needs_value("a rate")?, 32)? as u32,
        "burst_size" => meter.burst = number(item.needs_value("a size")?, 32)? as u32,
        name => return Err(unsupported(item.all, &format!("`{name}` of a meter"))),
    }
    Ok(())
}
