//! Look-ups of the whole burst at once: packets gather until all have come so far, the table is asked for all keys together,
//! and each goes on behind.
//!
//! Only what runs ahead gathers, and where nothing has to come back: in the prefix and in stages, at places whose lists end
//! with the packet. Elsewhere the same look-up is made on the spot.

use super::{End, Lower, State};
use crate::plan::code::{Expr, Stage, Stmt, Value};
use crate::plan::visit;

/// Stages of a program at the most.
const MAX_STAGES: usize = 32;

/// What is asked for.
#[derive(Clone, Copy)]
pub(in crate::plan) struct Ask {
    /// The table, as data.
    pub table: u16,
    /// It is open, and its entries have so many words of arguments.
    pub open: Option<u8>,
}

impl<'p> Lower<'p> {
    /// Looks a key up, for all packets at once if that can be. `go_on` makes what follows, and is told what was found and
    /// whether packets gathered.
    pub(in crate::plan) fn look_up(
        &mut self,
        ask: Ask,
        key: Vec<Expr>,
        mut state: State,
        out: &mut Vec<Stmt>,
        go_on: impl FnOnce(&mut Self, State, Value, bool, &mut Vec<Stmt>),
    ) {
        let result = self.fresh.value();
        if !self.may_gather(&state) {
            out.push(match ask.open {
                None => Stmt::Lookup { result, table: ask.table, key },
                Some(_) => Stmt::Find { result, table: ask.table, key, ordered: false },
            });
            return go_on(self, state, result, false, out);
        }
        let stage = self.stages.len();
        self.stages.push(Stage { table: ask.table, open: ask.open, width: key.len() as u8, ..Stage::default() });
        let mut rest = Vec::new();
        state.gathered = true;
        go_on(self, state, result, true, &mut rest);
        let mut kept = visit::free(&rest);
        kept.remove(&result);
        let carry: Vec<Value> = kept.into_iter().collect();
        let mut body = vec![Stmt::Let(result, Expr::Found)];
        body.extend(carry.iter().enumerate().map(|(k, value)| Stmt::Let(*value, Expr::Carried(k as u16))));
        body.append(&mut rest);
        self.stages[stage].carried = carry.len() as u16;
        self.stages[stage].body = body;
        out.push(Stmt::Gather { stage: stage as u8, key, carry });
        out.push(Stmt::Return(1));
    }

    /// Whether packets may gather here.
    pub(in crate::plan) fn may_gather(&self, state: &State) -> bool {
        !state.in_order && ends_with_packet(state) && self.stages.len() < MAX_STAGES
    }

    /// Gives each stage its place in the scratch; how many words all take.
    pub(super) fn place_stages(&mut self) -> u32 {
        let mut at = 0;
        for stage in &mut self.stages {
            stage.at = at;
            at = stage.end();
        }
        at
    }
}

/// Whether the current list ends with the packet.
pub(super) fn ends_with_packet(state: &State) -> bool {
    state.list_end == End::Packet && state.exit_end == End::Packet
}
