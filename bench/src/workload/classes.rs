//! Flows of power-law rate (n/k² of n flows have k times the rate) over classes weighted by Zipf's law, each of which matches
//! under a mask of its own: the published series of caches against a growing number of masks.

use std::fmt::Write;

use super::{Content, SEED, frame_count};
use crate::frames::{self, put};
use crate::random::{Random, Weights};

/// So many flows over so many classes.
pub fn make(flows: u32, classes: u32) -> Content {
    let mut random = Random::new(SEED);
    let weights = Weights::new((1..=classes).map(|class| 1.0 / f64::from(class)));
    let class_of: Vec<u64> = (0..flows).map(|_| random.weighted(&weights) as u64 + 1).collect();
    let fastest = (f64::from(flows).sqrt() as u32).clamp(2, 1000);
    let weights = Weights::new((1..=fastest).map(|rate| 1.0 / f64::from(rate * rate)));
    let rates: Vec<f64> = (0..flows).map(|_| random.weighted(&weights) as f64 + 1.0).collect();
    let weights = Weights::new(rates);
    let frames = (0..frame_count(flows)).map(|_| {
        let flow = random.weighted(&weights);
        let (class, flow) = (class_of[flow], flow as u64);
        let mut frame = frames::plain();
        put(&mut frame, 26, 4, 0xc000_0000 + (flow >> 14));
        put(&mut frame, 34, 2, 1024 + flow % 16_384 * 3);
        put(&mut frame, 30, 4, (10 << 24) + (class << 16) + (flow & 0xffff));
        frames::seal(&mut frame);
        frame
    });
    let frames = vec![frames.collect()];
    Content { rules: rules(classes), frames }
}

fn rules(classes: u32) -> String {
    let mut rules = String::new();
    let mut line = |text: std::fmt::Arguments| writeln!(rules, "{text}").unwrap_or_default(); // a string takes all
    for class in 1..=classes {
        line(format_args!("table=0,priority=10,udp,nw_dst=10.{class}.0.0/16 actions=resubmit(,{class})"));
        let mask = (1u32 << (class % 16 + 1)) - 1;
        let mask = if class <= 16 { mask } else { mask << 8 & 0xffff };
        for value in (0..8).filter(|value| value & mask == *value) {
            line(format_args!("table={class},priority=10,udp,tp_src={value:#x}/{mask:#x} actions=output:2"));
        }
        line(format_args!("table={class},priority=1 actions=output:2"));
    }
    rules + super::LAST
}
