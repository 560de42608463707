//! Whether a condition of a test holds for a frame: the reference interpreter runs a program of one rule over it.

use std::sync::Arc;

use pipec_compiler::eval::Eval;
use pipec_compiler::expect::probe;
use pipec_compiler::hir::{Cond, Program};
use pipec_runtime::Engine;
use pipec_runtime::conntrack::Config;
use pipec_runtime::offline::Offline;

use crate::engine::Interpreter;

/// Conditions that were asked for, each as a program that counts.
pub struct Probes<'p> {
    program: &'p Program,
    known: Vec<(Cond, Offline)>,
}

impl<'p> Probes<'p> {
    /// For conditions of a program's tests.
    pub fn new(program: &'p Program) -> Probes<'p> {
        Probes { program, known: vec![] }
    }

    /// Whether a condition holds for a frame; never for one without an Ethernet header.
    pub fn holds(&mut self, cond: &Cond, frame: &[u8]) -> bool {
        let at = match self.known.iter().position(|(known, _)| known == cond) {
            Some(at) => at,
            None => {
                self.known.push((cond.clone(), offline(self.program, cond)));
                self.known.len() - 1
            }
        };
        let offline = &mut self.known[at].1;
        let before = offline.counters();
        offline.send(0, &[(0, frame)]);
        offline.counters().first().zip(before.first()).is_some_and(|(now, before)| now.packets > before.packets)
    }
}

/// A program whose only rule has this condition.
fn offline(program: &Program, cond: &Cond) -> Offline {
    let eval = Eval::new(Arc::new(probe(program, cond)));
    let attached = vec![true; eval.meta().ports.len()];
    let (meta, tables) = (eval.meta(), eval.tables());
    let engine = Engine::interpreter(meta, &tables, Arc::new(Interpreter(eval)));
    Offline::with_config(&engine, &attached, Config { max_conns: 64, ..Config::default() })
}
