//! Which entry of a keyed table a packet finds, and what a packet learns.
//!
//! Entries are tried one by one: the highest priority, then the longest prefix, then the first. Tables whose entries end with
//! time, or are made by packets, are the `Env`'s.

use std::rc::Rc;

use pipec_abi::Env;
use pipec_abi::table::{KeyMatch, MISS, OpenEntry, Table};

use super::event::Event;
use super::headers::Headers;
use super::machine::Machine;
use crate::describe::{open_place, shape};
use crate::hir::{Cond, Keyed, Learn, MatchKind, PortId, TableId};

impl<E: Env + ?Sized> Machine<'_, E> {
    /// The rule that a packet takes in a keyed table, and its arguments.
    pub fn entry(
        &mut self,
        table: TableId,
        keyed: &Keyed,
        headers: &Headers,
        in_port: Option<PortId>,
    ) -> (Option<usize>, Rc<[u128]>) {
        let found = self.find(table, keyed, headers, in_port);
        let (slot, rule, args) = match (found, &keyed.default) {
            (Some((slot, rule, args)), _) => (Some(slot), rule, args),
            (None, Some((rule, args))) => (None, usize::from(*rule), args.clone()),
            (None, None) => return (None, Rc::default()),
        };
        self.tell(Event::Entry { table, slot, rule, args: args.as_slice().into() });
        (Some(rule), args.into())
    }

    fn find(
        &mut self,
        table: TableId,
        keyed: &Keyed,
        headers: &Headers,
        in_port: Option<PortId>,
    ) -> Option<(u32, usize, Vec<u128>)> {
        let mut needed = keyed.key.iter().filter_map(|part| part.header);
        let lacks = needed.find(|header| !self.cond(&Cond::Has(*header), headers, in_port));
        if let Some(header) = lacks {
            self.tell(Event::NoKey(table, header));
            return None;
        }
        let key: Vec<u128> = keyed.key.iter().map(|part| self.read(part.read, headers, in_port)).collect();
        self.tell(Event::Key(table, key.as_slice().into()));
        let (number, first) = open_place(self.program, table);
        let shape = shape(keyed);
        let (found, words) = if shape.ordered() {
            let found = self.env.find(self.ctx, self.burst, self.i, number, &shape.pack(&key));
            (found, (0..usize::from(shape.args)).map(|k| self.ctx.arg(k)).collect())
        } else {
            let root = self.ctx.root().clone();
            let Some(Table::Open(open)) = root.tables.get(usize::from(number)).map(|table| &**table) else {
                return None;
            };
            let entries = open.entries();
            let best = best(keyed, &entries, &key)?;
            (best.found(), best.args.clone())
        };
        if found == MISS {
            return None;
        }
        let (action, slot) = ((found >> 32) as usize, found as u32);
        self.ctx.count_entry((first + slot) as usize, self.burst.frame_len(self.i));
        let (places, _) = keyed.arg_words(action);
        let params = keyed.actions[action].params.iter().zip(places);
        let word = |at: usize| u128::from(words.get(at).copied().unwrap_or(0));
        let args = params.map(|(p, at)| if p.width > 64 { word(at) << 64 | word(at + 1) } else { word(at) });
        Some((slot, action, args.collect()))
    }

    /// `learn`
    pub fn learn(&mut self, learn: &Learn) {
        let Some(keyed) = &self.program.table(learn.table).keyed else { return };
        let low = |value: u128, width: u8| if width >= 128 { value } else { value & ((1 << width) - 1) };
        let parts = learn.key.iter().zip(&keyed.key);
        let key: Vec<u128> = parts.map(|(value, part)| low(self.value(value), part.read.place.width)).collect();
        let (mut args, mut values) = (vec![], vec![]);
        for (value, param) in learn.args.iter().zip(&keyed.actions[usize::from(learn.action)].params) {
            let value = low(self.value(value), param.width);
            values.push(value);
            if param.width > 64 {
                args.push((value >> 64) as u64);
            }
            args.push(value as u64);
        }
        let (number, _) = open_place(self.program, learn.table);
        let (rule, told) = (usize::from(learn.action), values.into());
        self.tell(Event::Learn { table: learn.table, key: key.as_slice().into(), rule, args: told });
        let key = shape(keyed).pack(&key);
        self.env.learn(self.ctx, self.burst, self.i, number, &key, learn.action, &args);
    }
}

/// The entry that a key finds.
fn best<'e>(keyed: &Keyed, entries: &'e [OpenEntry], key: &[u128]) -> Option<&'e OpenEntry> {
    let wanted = |want: &KeyMatch, value: u128| match *want {
        KeyMatch::Masked { value: wanted, mask } => value & mask == wanted,
        KeyMatch::Range { low, high } => low <= value && value <= high,
    };
    let prefix = |entry: &OpenEntry| {
        let parts = keyed.key.iter().zip(&entry.key).filter(|(part, _)| part.kind == MatchKind::Lpm);
        parts.map(|(_, want)| if let KeyMatch::Masked { mask, .. } = want { mask.count_ones() } else { 0 }).sum::<u32>()
    };
    let mut best: Option<&OpenEntry> = None;
    for entry in entries {
        let holds = entry.key.iter().zip(key).all(|(want, value)| wanted(want, *value));
        if holds && best.is_none_or(|best| (entry.priority, prefix(entry)) > (best.priority, prefix(best))) {
            best = Some(entry);
        }
    }
    best
}
