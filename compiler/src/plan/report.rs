//! What was decided, and why: kept beside the plan, for people and for tests. Nothing is compiled from it.
//!
//! In: notes taken while [`lower`](super::lower) and [`matching`](super::matching) decide. Out: a [`Report`]. Never: a decision.

use std::collections::BTreeMap;

pub use super::product::Merged;
use crate::hir::{Place, TableId};

/// A piece of code that packets run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Body {
    /// For the whole burst, ahead.
    #[default]
    Prefix,
    /// Packet by packet, from a point on.
    Point(u8),
    /// A table that is called.
    Function(TableId),
}

/// How a table's rules are told apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Classifier {
    /// No test is left: what is known of the packet says which rule it takes.
    Direct,
    /// A tree of tests, each made once on a path.
    Tree {
        /// Tests on the longest path.
        depth: u32,
        /// Ends that it has.
        ends: u32,
    },
    /// Rule by rule, in order.
    Chain {
        /// Tests of all rules together.
        tests: u32,
    },
    /// A look-up in data: the table's number in [`Plan::tables`](super::Plan::tables).
    Lookup {
        /// That number.
        table: u16,
        /// Tests that all rules share, made in code before it.
        guard: u32,
        /// Predicted cycles a packet, where a burst's packets are looked up at once.
        cycles: f32,
    },
    /// A look-up of a key among entries: the table's number in [`Plan::tables`](super::Plan::tables).
    Keyed {
        /// That number.
        table: u16,
        /// The `Env` makes it, in the order of packets.
        ordered: bool,
    },
    /// The table is a function, called from here.
    Call,
}

/// One table at one place of the code.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Which.
    pub table: TableId,
    /// In which code.
    pub body: Body,
    /// Rules that what is known there leaves open.
    pub open: usize,
    /// What it became.
    pub classifier: Classifier,
    /// What was not taken before it, each with the reason.
    pub rejected: Vec<(&'static str, String)>,
}

/// A packet is copied, or put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    /// In which code.
    pub body: Body,
    /// The table whose rule does it.
    pub table: TableId,
    /// Why.
    pub why: &'static str,
}

/// A point at which packets wait for their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waits {
    /// The table whose rules packets wait in.
    pub table: TableId,
    /// The zone that packets are prepared in, if it is known.
    pub zone: Option<u16>,
}

/// All decisions of one plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Tables, in the order in which code was made for them.
    pub decisions: Vec<Decision>,
    /// Tables that are one with others.
    pub merged: Vec<Merged>,
    /// Points, in order.
    pub points: Vec<Waits>,
    /// What each body reads, in the order of its first uses.
    pub reads: BTreeMap<Body, Vec<Place>>,
    /// Where packets are copied or put back.
    pub copies: Vec<Copied>,
    /// Why nothing runs ahead, if nothing does.
    pub in_order: Option<String>,
    /// Whether tables are counted at run time, since a packet could pass too many.
    pub counted: bool,
}

impl Report {
    /// Decisions about one table.
    pub fn of(&self, table: TableId) -> impl Iterator<Item = &Decision> {
        self.decisions.iter().filter(move |decision| decision.table == table)
    }

    /// Notes a copy, once for each place.
    pub(super) fn copied(&mut self, copied: Copied) {
        if !self.copies.contains(&copied) {
            self.copies.push(copied);
        }
    }

    /// Notes what a body reads.
    pub(super) fn read(&mut self, body: Body, places: Vec<Place>) {
        let known = self.reads.entry(body).or_default();
        for place in places {
            if !known.contains(&place) {
                known.push(place);
            }
        }
    }
}
