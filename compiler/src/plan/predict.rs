//! What it costs to tell rules apart, predicted: for decisions between tables together and apart.
//!
//! In: rules, and what is known of the packet. Out: cycles a packet, as `choose` counts them for look-ups and a few constants
//! for code. Never: a decision, or a clock.

use pipec_abi::table::{self, Costs};

use super::entries::{apart, entries, key_width, layout, spell_rules};
use super::facts::Facts;
use super::lookup::{MIN_GATHERED, MIN_RULES};
use super::matching::{MAX_TREE_RULES, Open, each_read, ends, still_open};
use super::merge;
use crate::field::Field;
use crate::hir::{Read, Space};

/// Cycles of a test and its branch, where it is foreseen.
pub(super) const TEST: f32 = 1.5;
/// Cycles beside the look-up where packets gather: what they keep is stored, and taken up again.
const GATHER: f32 = 10.0;

/// Cycles to tell rules apart. `same`: whether two do the same. `behind`: another look-up is before them, so that few packets
/// gather for them.
pub(super) fn cycles(
    rules: &[Open],
    same: impl Fn(usize, usize) -> bool,
    facts: &Facts,
    behind: bool,
    costs: &Costs,
) -> f32 {
    let open = still_open(rules, facts);
    if open.len() >= if behind { MIN_RULES } else { MIN_GATHERED }
        && let Some(cycles) = look_up(&open, same, facts, costs)
    {
        return cycles;
    }
    let surprise = if surprising(&open) { costs.mispredict } else { 0.0 };
    let tree = (open.len() <= MAX_TREE_RULES).then(|| ends(&open, facts, 2 * MAX_TREE_RULES)).flatten();
    match tree {
        Some((1, _)) => 0.0,
        Some((_, depth)) => depth as f32 / 2.0 * TEST + surprise,
        None => {
            let mut tests = 0;
            open.iter().for_each(|(_, cond)| each_read(cond, &mut |_| tests += 1));
            tests as f32 / 2.0 * TEST + surprise
        }
    }
}

/// Cycles of a look-up in data; nothing if it cannot be one.
fn look_up(rules: &[Open], same: impl Fn(usize, usize) -> bool, facts: &Facts, costs: &Costs) -> Option<f32> {
    let apart = apart(rules, facts);
    let mut spelled = spell_rules(&apart.rules, &apart.facts)?;
    merge::merge(&mut spelled, same);
    let slots = layout(&spelled)?;
    let entries = entries(&spelled, &slots, |rule| rule as u64);
    Some(table::choose(key_width(&slots), &entries, costs).cycles + apart.shared.len() as f32 * TEST + GATHER)
}

/// Whether rules ask for what differs from packet to packet. Ports, kinds of packets and states of connections come in runs,
/// and branches on them are foreseen.
fn surprising(rules: &[Open]) -> bool {
    let mut any = false;
    rules.iter().for_each(|(_, cond)| each_read(cond, &mut |read| any |= !comes_in_runs(read)));
    any
}

/// Whether neighbours among packets mostly have the same there.
pub(super) fn comes_in_runs(read: &Read) -> bool {
    use Field::{CtState, EthType, InPort, InPortNumber, IpFrag, IpProto, VlanTci};
    matches!(read.place.space, Space::Field(CtState | EthType | InPort | InPortNumber | IpFrag | IpProto | VlanTci))
}
