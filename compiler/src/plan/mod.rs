//! From the HIR to code for one packet: what is tested in which order, what is inlined, where the burst's packets stop
//! running ahead of each other. All decisions are taken here; back ends translate.
//!
//! In: a checked program. Out: a [`Plan`]. Never: looks at text, or at a back end.
//!
//! | file | decides |
//! |---|---|
//! | [`analysis`] | what tables do and reach; whether they are counted |
//! | [`product`] | which tables are one with those that they go on to; [`predict`]: by what that costs |
//! | [`split`] | which tables are taken apart by the values of a field |
//! | [`entries`] | how conditions are spelled out as entries, and where fields lie in a key |
//! | [`facts`] | what is known on a path, so that nothing is tested twice |
//! | [`values`] | how a field is read, and when a value at hand serves; `numbers`: those of ports, [`declared`]: of headers that the program declares |
//! | [`merge`] | which rules are one entry with ranges of ports |
//! | [`matching`] | whether a table is a tree of tests, a chain, or a look-up in data ([`lookup`]) |
//! | [`alike`] | which rules are one piece of code, with their constants as data |
//! | [`plain`] | what the prefix knows of frames with the common stack of headers |
//! | [`dead`] | which writes of variables nobody sees |
//! | [`report`] | nothing: it keeps what was decided, and why |
//! | [`lower`] | prefix, points and functions; the order of tests; copies or shares of outputs |

mod alike;
pub mod analysis;
pub mod code;
mod dead;
mod declared;
mod entries;
pub mod facts;
mod lookup;
mod lower;
mod matching;
mod merge;
mod numbers;
mod plain;
mod predict;
mod product;
pub mod report;
mod split;
pub mod values;
pub mod visit;

pub use code::Plan;
pub use report::Report;

use pipec_abi::table::Costs;

use crate::hir::Program;

/// Plans a checked program.
pub fn plan(program: &Program) -> Plan {
    plan_for(program, &Costs::default()).0
}

/// Plans a checked program for a machine on which steps of look-ups cost this, and tells what was decided.
pub fn plan_for(program: &Program, costs: &Costs) -> (Plan, Report) {
    lower::lower(program, costs)
}

/// Plans a checked program, and tells what was decided.
pub fn plan_reported(program: &Program) -> (Plan, Report) {
    plan_for(program, &Costs::default())
}
