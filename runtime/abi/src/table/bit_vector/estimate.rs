//! What bit vectors of some entries would be, without building them.

use std::collections::HashSet;

use super::super::Entry;
use super::build::{UNDIVIDED, divide, next_join};
use super::crossed::{FEW, MAX_LIST};
use super::cut::{Cut, cuts, richest};
use super::part::FEW_WORDS;

/// Predicted of a look-up and of the memory.
#[derive(Debug, Default)]
pub(in super::super) struct Estimate {
    /// Levels of pieces, and joins.
    pub loads: usize,
    /// Vectors that are joined.
    pub vectors: usize,
    /// Jumps that are guessed wrong.
    pub wrong: f32,
    /// Lines at the most.
    pub probes: usize,
    /// Bytes.
    pub memory: usize,
}

/// Nothing if the key would have too many pieces.
pub(in super::super) fn estimate(width: usize, entries: &[Entry]) -> Option<Estimate> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| entry.value & 0xffff_ffff);
    let cuts = cuts(width, &sorted)?;
    let mut all = Estimate::default();
    if let [Some(a), Some(b)] = richest(&cuts, &sorted)
        && sorted.len() > UNDIVIDED
    {
        all.cross(&[a, b], &mut sorted);
    }
    for part in divide(&cuts, sorted) {
        all.add(&cuts, &part);
    }
    Some(all)
}

impl Estimate {
    /// What is crossed, if it is enough: nearly all that says much about both fields.
    fn cross(&mut self, rich: &[Cut; 2], entries: &mut Vec<&Entry>) {
        let says = |entry: &&Entry| rich.iter().all(|cut| cut.want(entry).is_narrow(cut));
        let (taken, mut left): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(|entry| says(entry));
        if taken.len() < FEW {
            return;
        }
        left.extend(taken.iter().step_by(8));
        self.loads += 3 + rich.iter().map(|cut| cut.width.div_ceil(8) as usize).sum::<usize>();
        self.probes += self.loads + MAX_LIST;
        self.wrong += 1.0;
        self.memory += taken.len() * (1024 + 16 * 16 + 64);
        *entries = left;
    }

    fn add(&mut self, cuts: &[Cut], entries: &[&Entry]) {
        let (loads, words) = (self.loads, entries.len().div_ceil(64));
        let summary = if words <= FEW_WORDS { 0 } else { words.div_ceil(64) };
        let mut classes: Vec<Option<usize>> = Vec::new();
        for cut in cuts {
            let wants = entries.iter().map(|entry| cut.want(entry)).collect::<HashSet<_>>().len();
            if wants > 1 || classes.is_empty() {
                let levels = cut.width.div_ceil(8) as usize;
                self.loads += levels;
                self.memory += 512 * (1 + wants * (levels - 1) * 2 / 5);
                classes.push(Some(wants + 1));
            }
        }
        while let Some((pairs, a, b)) = next_join(&classes, words) {
            // Of the pairs of classes about an eighth differ.
            classes[a] = classes[a].max(classes[b]).max(Some(pairs / 8));
            classes[b] = None;
            self.loads += 1;
            self.memory += 2 * pairs;
        }
        let left: Vec<usize> = classes.into_iter().flatten().collect();
        self.memory += 8 * entries.len() + 8 * (summary + words) * left.iter().sum::<usize>();
        self.probes += self.loads - loads + 1;
        if left.len() > 1 {
            self.vectors += left.len();
            self.probes += left.len() * (summary + words);
            // What is wrong are words that summaries promise too much of: the more vectors, the more.
            self.wrong +=
                if summary == 0 { 0.0 } else { 0.2 + 0.4 * (left.len() - 2) as f32 + 0.2 * (summary - 1) as f32 };
        }
    }
}
