//! What a test expects of the packets it sent, held against what became of them.
//!
//! In: the ends that an `expect` names, and what an engine made of each packet. Out: whether each end is met by one output or
//! drop and nothing is left over; if not, what to say. Runs nothing: whether a condition holds for a frame is asked of the
//! caller.

use pipec_abi::DropReason;

use crate::hir::{Cond, End, Expected, PortId, Program, Rule, Table, TableId};
use crate::packet::show;
use crate::source::Span;

/// A program whose only rule has this condition and does nothing: its first counter tells for how many frames it holds.
pub fn probe(program: &Program, cond: &Cond) -> Program {
    let span = Span::default();
    let rule = Rule { priority: 1, cond: cond.clone(), actions: vec![], text: String::new(), span };
    let tables = vec![Table { name: "probe".into(), rules: vec![rule], span, keyed: None }];
    let (tests, externs, groups, counters) = (vec![], vec![], vec![], vec![]);
    Program { tables, entry: TableId(0), tests, externs, groups, counters, ..program.clone() }
}

/// What became of one packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Port and frame of each output.
    pub outputs: Vec<(PortId, Vec<u8>)>,
    /// Why it was dropped, if it was.
    pub drop: Option<DropReason>,
}

/// What an `expect` did not find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// What was expected, in words.
    pub expected: String,
    /// What came, in words.
    pub came: String,
    /// Parts that do not hold, with what is wrong.
    pub labels: Vec<(Span, String)>,
    /// What else helps to see it.
    pub notes: Vec<String>,
}

/// One thing that became of a packet.
#[derive(Clone, Copy)]
enum Found<'c> {
    Output(PortId, &'c [u8]),
    Drop(DropReason),
}

/// Holds what is expected against what came; `holds` says whether a condition holds for a frame.
pub fn judge(
    program: &Program,
    ends: &[Expected],
    came: &[Came],
    holds: &mut dyn FnMut(&Cond, &[u8]) -> bool,
) -> Result<(), Unmet> {
    let found: Vec<Found<'_>> = came
        .iter()
        .flat_map(|came| {
            let outputs = came.outputs.iter().map(|(port, frame)| Found::Output(*port, frame));
            outputs.chain(came.drop.map(Found::Drop))
        })
        .collect();
    let wanted: Vec<&Expected> = ends.iter().flat_map(|end| std::iter::repeat_n(end, end.count as usize)).collect();
    let mut met: Vec<Vec<bool>> = vec![];
    for end in ends {
        let row = found.iter().map(|found| meets(end, *found, holds)).collect();
        met.extend(std::iter::repeat_n(row, end.count as usize));
    }
    let partner = pairs(&met, found.len());
    let missing: Vec<&Expected> =
        wanted.iter().zip(&partner.left).filter(|(_, p)| p.is_none()).map(|(end, _)| *end).collect();
    let extra: Vec<Found<'_>> =
        found.iter().zip(&partner.right).filter(|(_, p)| p.is_none()).map(|(found, _)| *found).collect();
    if missing.is_empty() && extra.is_empty() {
        return Ok(());
    }
    let mut unmet = Unmet {
        expected: in_words(ends.iter().map(|end| (end_text(program, end.end), end.count as usize))),
        came: in_words(found.iter().map(|found| (found_text(program, *found), 1))),
        labels: vec![],
        notes: vec![],
    };
    explain(program, &missing, &extra, holds, &mut unmet);
    Err(unmet)
}

/// Whether one end is met by what was found.
fn meets(end: &Expected, found: Found<'_>, holds: &mut dyn FnMut(&Cond, &[u8]) -> bool) -> bool {
    match (end.end, found) {
        (End::Drop(wanted), Found::Drop(reason)) => wanted.is_none_or(|wanted| wanted == reason),
        (End::Port(wanted), Found::Output(port, frame)) => {
            wanted == port
                && end.frame.as_ref().is_none_or(|wanted| wanted == frame)
                && end.when.iter().all(|(cond, _)| holds(cond, frame))
        }
        _ => false,
    }
}

/// Who goes with whom.
struct Pairs {
    left: Vec<Option<usize>>,
    right: Vec<Option<usize>>,
}

/// As many pairs as there can be, by augmenting paths.
fn pairs(met: &[Vec<bool>], right: usize) -> Pairs {
    let mut pairs = Pairs { left: vec![None; met.len()], right: vec![None; right] };
    for start in 0..met.len() {
        // Breadth first: which left one each right one was reached from.
        let mut from: Vec<Option<usize>> = vec![None; right];
        let mut queue = std::collections::VecDeque::from([start]);
        'search: while let Some(left) = queue.pop_front() {
            for at in 0..right {
                if !met[left][at] || from[at].is_some() {
                    continue;
                }
                from[at] = Some(left);
                if let Some(taken) = pairs.right[at] {
                    queue.push_back(taken);
                    continue;
                }
                let mut at = at;
                while let Some(left) = from[at] {
                    pairs.right[at] = Some(left);
                    match pairs.left[left].replace(at) {
                        Some(before) if left != start => at = before,
                        _ => break,
                    }
                }
                break 'search;
            }
        }
    }
    pairs
}

/// Says why what is missing is not there, where something else is.
fn explain(
    program: &Program,
    missing: &[&Expected],
    extra: &[Found<'_>],
    holds: &mut dyn FnMut(&Cond, &[u8]) -> bool,
    unmet: &mut Unmet,
) {
    for end in missing {
        let End::Port(wanted) = end.end else { continue };
        let same = extra.iter().find_map(|found| match found {
            Found::Output(port, frame) if *port == wanted => Some(*frame),
            _ => None,
        });
        let Some(frame) = same else { continue };
        for (cond, span) in &end.when {
            if !holds(cond, frame) {
                unmet
                    .labels
                    .push((*span, format!("does not hold for what came out of {}", port_name(program, wanted))));
            }
        }
        if let Some(expected) = &end.frame {
            let differs = (0..expected.len().max(frame.len())).find(|at| expected.get(*at) != frame.get(*at));
            unmet.notes.push(format!("expected {}", show(expected)));
            unmet.notes.push(format!("first different byte: {}", differs.unwrap_or(0)));
        }
        if unmet.labels.len() >= 8 {
            break;
        }
    }
    for found in extra.iter().take(8) {
        if let Found::Output(port, frame) = found {
            let hex: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
            unmet.notes.push(format!("out of {}: {}", port_name(program, *port), show(frame)));
            unmet.notes.push(format!("its bytes: {hex}"));
        }
    }
}

/// The name of a port, or of what stands in for one.
pub fn port_name(program: &Program, port: PortId) -> &str {
    program.ports.get(usize::from(port.0)).map_or("controller", |port| port.name.as_str())
}

fn end_text(program: &Program, end: End) -> String {
    match end {
        End::Port(port) => port_name(program, port).to_string(),
        End::Drop(None) => "drop".to_string(),
        End::Drop(Some(reason)) => format!("drop({})", reason.name()),
    }
}

fn found_text(program: &Program, found: Found<'_>) -> String {
    match found {
        Found::Output(port, _) => port_name(program, port).to_string(),
        Found::Drop(reason) => format!("drop({})", reason.name()),
    }
}

/// "2 wan, drop(policy)".
fn in_words(list: impl Iterator<Item = (String, usize)>) -> String {
    let mut counts: Vec<(String, usize)> = vec![];
    for (text, count) in list {
        match counts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, n)) => *n += count,
            None => counts.push((text, count)),
        }
    }
    let words = counts.into_iter().map(|(text, n)| if n == 1 { text } else { format!("{n} {text}") });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "nothing".to_string() } else { words.join(", ") }
}
