//! From the tree to the HIR. In: an [`ast::Pipeline`]. Out: a [`hir::Program`] in which every name is an id or a value, every
//! value has the width of its field, every prerequisite is written out and rules stand in the order in which they are tried;
//! with [`Marks`] that say where its parts came from. Reports every mistake of names, kinds, widths and arguments.
//!
//! Decides nothing about what a program does: whether it makes sense is the question of `check`.

mod action;
mod arith;
mod built_in;
mod compare;
mod cond;
mod ct;
mod encap;
mod entries;
mod external;
mod groups;
mod header;
mod keyed;
pub mod marks;
mod names;
mod operand;
mod recursion;
mod sending;
mod shape;
mod table;
mod test;
mod value;

pub use built_in::names as built_in_actions;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::ast::{self, ExprKind, Item};
use crate::constant::normalise;
use crate::diag::Diagnostic;
use crate::hir::{self, GroupId, TableId};
use crate::parse::MAX_DIAGNOSTICS;
use crate::source::Span;
use marks::Marks;
use names::{Names, Symbol};
use value::Ranges;

/// Tags that can be parsed, at the most.
const MAX_VLAN_LIMIT: u128 = 2;

/// A program and where its parts came from.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The program.
    pub program: hir::Program,
    /// The places.
    pub marks: Marks,
}

/// Resolves a `.pipe` program; none if there was an error.
pub fn pipe(ast: &ast::Pipeline, diagnostics: &mut Vec<Diagnostic>) -> Option<Resolved> {
    let mut found = vec![];
    let names = Names::collect(ast, &mut found);
    let mut resolver = Resolver {
        names,
        diagnostics: found,
        broken: HashSet::new(),
        action_count: 0,
        ranges: 0,
        in_group: None,
        keyed: HashMap::new(),
        broken_tables: HashSet::new(),
    };
    let resolved = resolver.program(ast);
    diagnostics.append(&mut resolver.diagnostics);
    resolved
}

/// What is known while a program is resolved.
pub(crate) struct Resolver<'a> {
    names: Names<'a>,
    diagnostics: Vec<Diagnostic>,
    /// Actions that call themselves or grow too big, and are reported.
    broken: HashSet<&'a str>,
    /// Actions so far, calls expanded.
    action_count: usize,
    /// Ranges in conditions so far.
    ranges: usize,
    /// The group whose bucket is being resolved.
    in_group: Option<GroupId>,
    /// What entries of keyed tables look like.
    keyed: HashMap<&'a str, Rc<keyed::Signature<'a>>>,
    /// Keyed tables that are wrong, and reported.
    broken_tables: HashSet<&'a str>,
}

impl<'a> Resolver<'a> {
    fn push(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }

    fn error(&mut self, code: &'static str, message: impl Into<String>, span: Span, label: impl Into<String>) {
        self.push(Diagnostic::error(code, message, span, label));
    }

    fn program(&mut self, ast: &'a ast::Pipeline) -> Option<Resolved> {
        let options = self.declarations(ast);
        let actions: Vec<&ast::ActionDecl> =
            ast.items.iter().filter_map(|item| if let Item::Action(a) = item { Some(a) } else { None }).collect();
        self.find_recursion(&actions);
        self.signatures(ast);
        for action in actions {
            self.action_body(action);
        }
        let (mut groups, mut meters) = (vec![], vec![]);
        let mut ids = (0..).map(GroupId);
        for item in &ast.items {
            match item {
                Item::Group(group) => groups.extend(ids.next().and_then(|id| self.group(group, id))),
                Item::Meter(meter) => meters.extend(self.meter(meter)),
                _ => {}
            }
        }
        let (mut tables, mut tests) = (vec![], vec![]);
        let mut marks = Marks::default();
        for item in &ast.items {
            match item {
                Item::Table(table) => {
                    if let Some((table, rules)) = self.table_rules(table) {
                        marks.table_names.push(table.span);
                        marks.tables.push(rules);
                        tables.push(table);
                    }
                }
                Item::Test(test) => tests.extend(self.test(test)),
                _ => {}
            }
        }
        let has_table = ast.items.iter().any(|item| matches!(item, Item::Table(_)));
        if !has_table && ast.damaged.is_empty() {
            let message = "a pipeline needs a table";
            self.push(
                Diagnostic::error("no-table", message, ast.name.span, "it has none")
                    .help("write `table NAME { condition => actions; }`"),
            );
        }
        if crate::diag::has_errors(&self.diagnostics) || !has_table {
            return None;
        }
        marks.unused = self.names.unused();
        (marks.unread, marks.unset) = self.names.half_used();
        let entry = self.names.table("start").unwrap_or(TableId(0));
        let program = hir::Program {
            name: ast.name.node.clone(),
            ports: std::mem::take(&mut self.names.ports),
            options,
            metadata_words: self.names.metadata_words(),
            variables: std::mem::take(&mut self.names.variables),
            externs: std::mem::take(&mut self.names.externs),
            tables,
            entry,
            tests,
            headers: std::mem::take(&mut self.names.headers),
            groups,
            meters,
            counters: std::mem::take(&mut self.names.counters),
        };
        Some(Resolved { program, marks })
    }

    /// Constants, sets, variables and options, in the order of the source.
    fn declarations(&mut self, ast: &'a ast::Pipeline) -> hir::Options {
        let mut options = hir::Options::default();
        let mut vlan_limit = None;
        for item in &ast.items {
            match item {
                Item::Const(item) => {
                    let symbol = self.constant(&item.value, &[]).map(Symbol::Const);
                    self.names.declare("constant", &item.name, symbol, &mut self.diagnostics);
                }
                Item::Set(item) => {
                    let symbol = self.set(item).map(Symbol::Set);
                    self.names.declare("set", &item.name, symbol, &mut self.diagnostics);
                }
                Item::Vars(vars) => {
                    for var in vars {
                        let ty = self.type_of(&var.ty);
                        self.names.variable(&var.name, ty, &mut self.diagnostics);
                    }
                }
                Item::Extern(item) => {
                    let params = item.params.iter().map(|param| self.extern_param(param)).collect();
                    self.names.set_extern_params(&item.name.node, params);
                }
                Item::Header(header) => {
                    let symbol = self.header_declaration(header).map(Symbol::Header);
                    self.names.declare("header", &header.name, symbol, &mut self.diagnostics);
                }
                Item::Option(option) if option.name.node == "vlan_limit" => {
                    if let Some(first) = vlan_limit.replace(option.name.span) {
                        self.push(names::duplicate("option", &option.name, first));
                    }
                    match option.value.node {
                        ExprKind::Number { value, .. } if (0..=MAX_VLAN_LIMIT).contains(&value) => {
                            options.vlan_limit = value as u8;
                        }
                        _ => {
                            let message = "`vlan_limit` is 0, 1 or 2";
                            self.error("value-too-big", message, option.value.span, "not a number of tags");
                        }
                    }
                }
                Item::Option(option) => {
                    let message = format!("there is no option `{}`", option.name.node);
                    self.push(
                        Diagnostic::error("unknown-name", message, option.name.span, "not known")
                            .help("options are `vlan_limit`"),
                    );
                }
                _ => {}
            }
        }
        options
    }

    fn set(&mut self, set: &'a ast::Set) -> Option<Rc<Ranges>> {
        let mut kind = None;
        let mut list = vec![];
        let mut whole = true;
        for element in &set.elements {
            whole &= self.elements(element, &[], &mut kind, &mut list).is_some();
        }
        whole.then(|| Rc::new(Ranges { kind: kind.map(|(kind, _)| kind), list: normalise(list) }))
    }
}
