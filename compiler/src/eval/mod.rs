//! The reference meaning of a program: it runs the HIR, packet by packet and rule by rule, with no cleverness.
//!
//! A burst goes in; its frames, verdicts, variables, `ct.*` and counters come out changed, and everything else happens through
//! the [`Env`]. It shares nothing with `plan`, the back ends, or the abi's parser and writes, so that they can be held
//! against it: of the abi it knows the burst, the context and the `Env`. It never prepares or shares: connections are looked
//! at afresh, every output is a copy.
//!
//! ```text
//! headers   where headers lie in a frame
//! fields    what a field reads
//! write     what a write changes
//! keyed     which entry of a keyed table a packet finds
//! declared  headers that the program declares
//! shapes    headers put on and taken off
//! machine   tables and actions of one packet; outputs: to ports that are computed; groups: which buckets are run
//! event     what a trace tells
//! reasons   why rules do not hold, for traces
//! ```

mod declared;
mod event;
mod fields;
mod groups;
mod headers;
mod keyed;
mod machine;
mod outputs;
mod reasons;
mod shapes;
#[cfg(test)]
mod tests;
mod write;

use std::rc::Rc;
use std::sync::Arc;

use pipec_abi::meta::Meta;
use pipec_abi::table::{EntryCounter, Root, Table};
use pipec_abi::{Burst, Ctx, Env};

pub use event::Event;

use crate::describe::{describe, open_tables};
use crate::field::Field;
use crate::hir::{Program, TableId, View};
use machine::Machine;

/// Runs one program.
#[derive(Clone, Debug)]
pub struct Eval {
    program: Arc<Program>,
    /// For each table, the counter of its first rule.
    first_counter: Arc<[usize]>,
}

impl Eval {
    /// Takes a program that `check` accepts.
    pub fn new(program: Arc<Program>) -> Eval {
        let first_counter =
            (0..program.tables.len()).map(|table| counter_of(&program, TableId(table as u16), Some(0))).collect();
        Eval { program, first_counter }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What the program is: counters are numbered as by [`counter_of`].
    pub fn meta(&self) -> Meta {
        let tables = self.program.tables.iter().enumerate();
        let places = tables.flat_map(|(t, table)| (0..=table.rules.len()).map(move |r| vec![(t as u32, r as u32)]));
        let named = self.program.counters.iter().map(|_| vec![]);
        describe(&self.program, named.chain(places).collect(), 0)
    }

    /// A context of the size the program needs.
    pub fn ctx(&self) -> Ctx {
        let tables = self.tables().iter().map(|bytes| Arc::new(Table::decode(bytes, 0))).collect();
        let entries =
            self.program.tables.iter().filter_map(|t| t.keyed.as_ref()).map(|keyed| keyed.size as usize).sum();
        let root = Arc::new(Root { version: 0, tables });
        let words = usize::from(self.program.metadata_words);
        Ctx::new(counters(&self.program), words, root, EntryCounter::new(entries))
    }

    /// Its tables that are data, as bytes: only those whose entries are not rules of the program.
    pub fn tables(&self) -> Vec<Vec<u8>> {
        open_tables(&self.program)
    }

    /// Runs the packets of the burst one by one, each to its end.
    pub fn run<E: Env + ?Sized>(&self, env: &mut E, ctx: &mut Ctx, burst: &mut Burst) {
        self.run_traced(env, ctx, burst, &mut |_| {});
    }

    /// [`Eval::run`], and tells everything that happens.
    pub fn run_traced<E: Env + ?Sized>(
        &self,
        env: &mut E,
        ctx: &mut Ctx,
        burst: &mut Burst,
        trace: &mut dyn FnMut(Event),
    ) {
        self.run_with(env, ctx, burst, trace, false);
    }

    /// [`Eval::run_traced`], and also tells which rules were tried and why they do not hold.
    pub fn run_explained<E: Env + ?Sized>(
        &self,
        env: &mut E,
        ctx: &mut Ctx,
        burst: &mut Burst,
        trace: &mut dyn FnMut(Event),
    ) {
        self.run_with(env, ctx, burst, trace, true);
    }

    fn run_with<E: Env + ?Sized>(
        &self,
        env: &mut E,
        ctx: &mut Ctx,
        burst: &mut Burst,
        trace: &mut dyn FnMut(Event),
        reasons: bool,
    ) {
        for i in 0..burst.len() {
            let (program, first_counter) = (&self.program, &self.first_counter);
            Machine { program, first_counter, env, ctx, burst, i, trace, reasons, args: Rc::default() }.packet();
        }
    }
}

/// The fields that a frame has, and their values, in the order of [`Field::ALL`]; without those of its way through a program.
pub fn fields_of(frame: &[u8], vlan_limit: u8) -> Vec<(Field, u128)> {
    if frame.len() < headers::ETHERNET {
        return vec![];
    }
    let headers = headers::Headers::parse(frame, vlan_limit);
    let present = |field: Field| field.header().is_some_and(|header| headers.has(header));
    let fields = Field::ALL.iter().filter(|field| present(**field));
    fields.filter_map(|&field| Some((field, headers.value(frame, field, View::Action)?))).collect()
}

/// Counters of a program: its own, then rules table by table, in order; behind the rules of each table stands its miss.
pub fn counters(program: &Program) -> usize {
    program.counters.len() + program.tables.iter().map(|table| table.rules.len() + 1).sum::<usize>()
}

/// The counter of a rule, or with `None` that of the table's misses.
pub fn counter_of(program: &Program, table: TableId, rule: Option<usize>) -> usize {
    let before: usize = program.tables[..usize::from(table.0)].iter().map(|t| t.rules.len() + 1).sum();
    program.counters.len() + before + rule.unwrap_or(program.table(table).rules.len())
}
