//! Rules that earlier rules leave nothing for: a warning that names them.
//!
//! A rule is shadowed if each of its cubes lies in a cube of an earlier rule. Earlier cubes are kept by the places and bits
//! they fix, each such signature in a hash table, so that a rule asks once a signature and not once a rule. In a table of few
//! rules, a rule is also held against all earlier ones together: what each leaves of it is what the next may take. What does
//! not fit within [`MAX_SIGNATURES`], [`MAX_RANGED`], [`MAX_TOGETHER`] and [`MAX_PIECES`] is not looked at: then nothing is
//! said.

use std::collections::HashMap;

use super::Input;
use super::cube::{Cube, Key};
use crate::diag::Diagnostic;

/// Signatures of a table that are looked at.
const MAX_SIGNATURES: usize = 128;
/// Cubes with ranges of a table that are looked at, and ranges of each.
const MAX_RANGED: usize = 64;

/// Cubes of a table up to which rules are held against all earlier ones together.
const MAX_TOGETHER: usize = 64;
/// Pieces of a cube that earlier rules may leave on the way.
const MAX_PIECES: usize = 64;

/// What shadows a rule: none, or the earlier rules that together do.
pub type Shadows = Vec<Vec<Vec<usize>>>;

/// Finds for each rule of each table the earlier rules that take all its packets.
pub fn find(input: &Input) -> Shadows {
    input.cubes.iter().map(|table| find_in_table(table)).collect()
}

fn find_in_table(rules: &[Option<Vec<Cube>>]) -> Vec<Vec<usize>> {
    let mut earlier = Earlier::default();
    let mut all: Vec<(&Cube, usize)> = vec![];
    let mut shadows = vec![];
    for (index, cubes) in rules.iter().enumerate() {
        let cubes = cubes.as_deref().unwrap_or(&[]);
        let mut by: Vec<usize> = vec![];
        let covered =
            !cubes.is_empty() && cubes.iter().all(|cube| earlier.covers(cube).map(|rule| by.push(rule)).is_some());
        let mut together = vec![];
        let covered = covered
            || !cubes.is_empty()
                && all.len() <= MAX_TOGETHER
                && cubes.iter().all(|cube| union_covers(&all, cube, &mut together))
                && {
                    by = together;
                    true
                };
        by.sort_unstable();
        by.dedup();
        shadows.push(if covered { by } else { vec![] });
        if !covered {
            cubes.iter().for_each(|cube| earlier.add(cube, index));
            all.extend(cubes.iter().take(MAX_TOGETHER + 1).map(|cube| (cube, index)));
        }
    }
    shadows
}

/// Whether earlier cubes together leave nothing of a cube; those that took something go to `by`.
fn union_covers(earlier: &[(&Cube, usize)], cube: &Cube, by: &mut Vec<usize>) -> bool {
    let mut left = vec![cube.clone()];
    for (other, rule) in earlier {
        let mut next = vec![];
        let mut took = false;
        for piece in left {
            match piece.without(other) {
                Some(mut rest) => {
                    took |= rest.first() != Some(&piece);
                    next.append(&mut rest);
                }
                None => next.push(piece),
            }
            if next.len() > MAX_PIECES {
                return false;
            }
        }
        if took {
            by.push(*rule);
        }
        left = next;
        if left.is_empty() {
            return true;
        }
    }
    false
}

/// Warns of shadowed rules.
pub fn check(input: &Input, shadows: &Shadows, diagnostics: &mut Vec<Diagnostic>) {
    for (table, rule) in input.rules() {
        let by = &shadows[table][rule];
        let Some(&first) = by.first() else { continue };
        let message = "this rule never gets a packet: rules before it take them all";
        let mut diagnostic =
            Diagnostic::warning("shadowed-rule", message, input.cond_span(table, rule), "never matches");
        for &earlier in by.iter().take(3) {
            diagnostic = diagnostic.label(input.cond_span(table, earlier), "takes its packets");
        }
        let same = by.len() == 1 && input.rule(table, first).actions == input.rule(table, rule).actions;
        diagnostics.push(match same {
            true => diagnostic.help("remove it: the rule before it does the same"),
            false if by.len() > 1 => diagnostic.help("remove it, or put it before them"),
            false => diagnostic.help("put the narrower rule first"),
        });
    }
}

/// The fixed bits of a cube's places.
type Signature = Vec<(Key, u128)>;

/// Cubes of the rules so far.
#[derive(Default)]
struct Earlier<'c> {
    signatures: Vec<(Signature, HashMap<Vec<u128>, usize>)>,
    by_signature: HashMap<Signature, usize>,
    ranged: Vec<(&'c Cube, usize)>,
}

impl<'c> Earlier<'c> {
    fn add(&mut self, cube: &'c Cube, rule: usize) {
        if cube.ranges() > 0 {
            if self.ranged.len() < MAX_RANGED && cube.ranges() <= MAX_RANGED {
                self.ranged.push((cube, rule));
            }
            return;
        }
        let signature: Signature = cube.parts.iter().map(|(key, values)| (*key, values.mask)).collect();
        let index = match self.by_signature.get(&signature) {
            Some(&index) => index,
            None if self.signatures.len() == MAX_SIGNATURES => return,
            None => {
                self.by_signature.insert(signature.clone(), self.signatures.len());
                self.signatures.push((signature, HashMap::new()));
                self.signatures.len() - 1
            }
        };
        let values = cube.parts.iter().map(|(_, values)| values.value).collect();
        self.signatures[index].1.entry(values).or_insert(rule);
    }

    /// The first rule found that takes all of a cube.
    fn covers(&self, cube: &Cube) -> Option<usize> {
        let exact = self.signatures.iter().filter_map(|(signature, rules)| {
            let values: Option<Vec<u128>> = signature
                .iter()
                .map(|(key, mask)| cube.get(*key).filter(|v| v.mask & mask == *mask).map(|v| v.value & mask))
                .collect();
            rules.get(&values?).copied()
        });
        let ranged = self.ranged.iter().filter(|(wide, _)| cube.ranges() <= MAX_RANGED && cube.within(wide));
        exact.chain(ranged.map(|(_, rule)| *rule)).min()
    }
}
