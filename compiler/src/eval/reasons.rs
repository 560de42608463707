//! Why rules do not hold: for each rule before the one that is taken, the first test that does not come out as it should.
//! Nothing of it changes what a packet does.

use pipec_abi::Env;

use super::event::Event;
use super::headers::Headers;
use super::machine::Machine;
use crate::hir::{Cond, PortId, Read, TableId};
use crate::words::atoms;

impl<E: Env + ?Sized> Machine<'_, E> {
    /// Tells what the table's rules look at, and of those before `taken` why they do not hold.
    pub(super) fn give_reasons(
        &mut self,
        table: TableId,
        taken: Option<usize>,
        headers: &Headers,
        in_port: Option<PortId>,
    ) {
        if self.program.table(table).keyed.is_some() {
            return; // its rules are not tried: the entry says which is taken
        }
        let rules = &self.program.table(table).rules;
        let mut seen: Vec<Read> = vec![];
        for rule in rules {
            each_read(&rule.cond, &mut |read| {
                if !seen.contains(read) {
                    seen.push(*read);
                }
            });
        }
        for read in seen {
            let value = self.read(read, headers, in_port);
            self.tell(Event::Seen { read, value });
        }
        for (number, rule) in rules.iter().enumerate().take(taken.unwrap_or(rules.len())) {
            if let Some(atom) = self.fails(&rule.cond, true, 0, headers, in_port) {
                let value = match crate::words::atom(&rule.cond, atom) {
                    Some(Cond::Compare(read, _)) => self.read(*read, headers, in_port),
                    _ => 0,
                };
                self.tell(Event::Tried { table, rule: number, atom, value });
            }
        }
    }

    /// The first test because of which a condition is not `wanted`; none if it is. `first` is the number of its first test.
    fn fails(
        &mut self,
        cond: &Cond,
        wanted: bool,
        first: usize,
        headers: &Headers,
        in_port: Option<PortId>,
    ) -> Option<usize> {
        match cond {
            Cond::Not(inner) => self.fails(inner, !wanted, first, headers, in_port),
            Cond::All(parts) | Cond::Any(parts) => {
                let mut at = first;
                let mut found = vec![];
                for part in parts {
                    found.push(self.fails(part, wanted, at, headers, in_port));
                    at += atoms(part);
                }
                // `all` that should hold fails by any part, `any` only by all of them; the other way round if it should not.
                let by_any = matches!(cond, Cond::All(_)) == wanted;
                let failed = if by_any { found.iter().any(Option::is_some) } else { found.iter().all(Option::is_some) };
                if failed { found.into_iter().flatten().next().or(Some(first)) } else { None }
            }
            leaf => (self.cond(leaf, headers, in_port) != wanted).then_some(first),
        }
    }
}

fn each_read(cond: &Cond, visit: &mut impl FnMut(&Read)) {
    match cond {
        Cond::Compare(read, _) => visit(read),
        Cond::Not(inner) => each_read(inner, visit),
        Cond::All(parts) | Cond::Any(parts) => parts.iter().for_each(|part| each_read(part, visit)),
        _ => {}
    }
}
