//! Names that a program declares: which there are, what they stand for, and whether something uses them.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::value::Ranges;
use crate::ast::{self, Item, Name};
use crate::constant::Constant;
use crate::diag::Diagnostic;
use crate::field::{Field, Header, Kind};
use crate::hir::{self, CounterId, GroupId, MeterId, Place, PortId, Space, TableId};
use crate::parse::ITEM_WORDS;
use crate::source::Span;
use crate::standard;
use crate::suggest::closest;

/// Words that no name may be, besides those that begin an item.
const KEYWORDS: &[&str] = &[
    "after", "bucket", "call", "clone", "drop", "else", "expect", "goto", "in", "in_port", "pipeline", "priority",
    "send",
];

/// Messages up to which names are suggested: looking through all names takes time.
const MAX_SUGGESTIONS: usize = 100;

/// What a value's name stands for.
#[derive(Clone, Debug)]
pub enum Symbol {
    /// A port.
    Port(PortId),
    /// A constant.
    Const(Constant),
    /// A set.
    Set(Rc<Ranges>),
    /// A variable: where it is and how its values are written.
    Var(Place, Kind),
    /// A declared header: its place among the program's.
    Header(u16),
}

impl Symbol {
    /// What to call it.
    pub fn what(&self) -> &'static str {
        match self {
            Symbol::Port(_) => "port",
            Symbol::Const(_) => "constant",
            Symbol::Set(_) => "set",
            Symbol::Var(..) => "variable",
            Symbol::Header(_) => "header",
        }
    }
}

/// All names of a program.
#[derive(Debug, Default)]
pub struct Names<'a> {
    /// Ports, constants, sets, variables; none where the declaration is wrong.
    symbols: HashMap<&'a str, (Option<Symbol>, Span)>,
    tables: HashMap<&'a str, (TableId, Span)>,
    actions: HashMap<&'a str, &'a ast::ActionDecl>,
    /// Declared names in order, for what must not depend on hashes.
    order: Vec<(&'static str, &'a str, Span)>,
    used: HashSet<(&'static str, &'a str)>,
    /// Variables that something sets.
    assigned: HashSet<&'a str>,
    /// Parameters that the body of their action does not name.
    unused_params: Vec<(&'a str, Span)>,
    damaged: HashSet<&'a str>,
    /// Actions in Rust: their places in [`Names::externs`] and declarations.
    extern_actions: HashMap<&'a str, (u16, &'a ast::Extern)>,
    /// The actions in Rust.
    pub externs: Vec<hir::Extern>,
    groups: HashMap<&'a str, (GroupId, Span)>,
    meters: HashMap<&'a str, (MeterId, Span)>,
    /// Names of counters, in the order of their first use.
    pub counters: Vec<String>,
    /// The ports.
    pub ports: Vec<hir::Port>,
    /// The variables.
    pub variables: Vec<hir::Variable>,
    /// The headers: those declared, and standard ones that are used.
    pub headers: Vec<hir::HeaderDecl>,
    /// Bits of metadata that are taken.
    metadata_bits: u16,
}

impl<'a> Names<'a> {
    /// Declares ports, tables and actions, which may be used before they are declared.
    pub fn collect(ast: &'a ast::Pipeline, diagnostics: &mut Vec<Diagnostic>) -> Names<'a> {
        let mut names = Names { damaged: ast.damaged.iter().map(String::as_str).collect(), ..Names::default() };
        let mut tables = 0_u16;
        for item in &ast.items {
            match item {
                Item::Ports(ports) => ports.iter().for_each(|port| names.port(port, diagnostics)),
                Item::Table(table) => {
                    let span = table.name.span;
                    if tables == u16::MAX {
                        diagnostics.push(Diagnostic::error("too-many", "too many tables", span, "one too many"));
                        break;
                    }
                    let id = TableId(tables);
                    tables += 1;
                    if let Some((_, first)) = names.tables.get(table.name.node.as_str()) {
                        diagnostics.push(duplicate("table", &table.name, *first));
                    } else if reserved(&table.name, false) && table.name.node != "start" {
                        diagnostics.push(reserved_name(&table.name));
                    }
                    names.tables.entry(&table.name.node).or_insert((id, span));
                }
                Item::Extern(item) => {
                    let name = &item.name;
                    if let Some(first) = names.first_action(&name.node) {
                        diagnostics.push(duplicate("action", name, first));
                        continue;
                    }
                    if reserved(name, false) || super::built_in::is_built_in(&name.node) {
                        diagnostics.push(reserved_name(name));
                    }
                    names.extern_actions.insert(&name.node, (names.externs.len() as u16, item));
                    names.externs.push(hir::Extern { name: name.node.clone(), params: vec![] });
                    names.order.push(("action", &name.node, name.span));
                }
                Item::Action(action) => {
                    let name = &action.name;
                    if let Some(first) = names.first_action(&name.node) {
                        diagnostics.push(duplicate("action", name, first));
                        continue;
                    }
                    if reserved(name, false) || super::built_in::is_built_in(&name.node) {
                        diagnostics.push(reserved_name(name));
                    }
                    names.actions.insert(&name.node, action);
                    names.order.push(("action", &name.node, name.span));
                }
                Item::Group(group) => {
                    let id = GroupId(names.groups.len() as u16);
                    names.choice("group", &group.name, diagnostics, |names, span| {
                        let first = names.groups.get(group.name.node.as_str()).map(|(_, first)| *first);
                        names.groups.entry(&group.name.node).or_insert((id, span));
                        first
                    });
                }
                Item::Meter(meter) => {
                    let id = MeterId(names.meters.len() as u16);
                    names.choice("meter", &meter.name, diagnostics, |names, span| {
                        let first = names.meters.get(meter.name.node.as_str()).map(|(_, first)| *first);
                        names.meters.entry(&meter.name.node).or_insert((id, span));
                        first
                    });
                }
                _ => {}
            }
        }
        names.number_ports(ast, diagnostics);
        names
    }

    /// Declares a group or a meter: `insert` says where one of that name stands already.
    fn choice(
        &mut self,
        what: &'static str,
        name: &'a Name,
        diagnostics: &mut Vec<Diagnostic>,
        insert: impl FnOnce(&mut Names<'a>, Span) -> Option<Span>,
    ) {
        if self.groups.len().max(self.meters.len()) >= usize::from(u16::MAX) {
            diagnostics.push(Diagnostic::error("too-many", format!("too many {what}s"), name.span, "one too many"));
            return;
        }
        if let Some(first) = insert(self, name.span) {
            diagnostics.push(duplicate(what, name, first));
            return;
        }
        if reserved(name, false) {
            diagnostics.push(reserved_name(name));
        }
        self.order.push((what, &name.node, name.span));
    }

    /// The group with this name, which counts as a use.
    pub fn group(&mut self, name: &str) -> Option<GroupId> {
        let (&key, &(id, _)) = self.groups.get_key_value(name)?;
        self.used.insert(("group", key));
        Some(id)
    }

    /// The meter with this name, which counts as a use.
    pub fn meter(&mut self, name: &str) -> Option<MeterId> {
        let (&key, &(id, _)) = self.meters.get_key_value(name)?;
        self.used.insert(("meter", key));
        Some(id)
    }

    /// The counter with this name: there is one for each name.
    pub fn counter(&mut self, name: &str) -> Option<CounterId> {
        let at = self.counters.iter().position(|counter| counter == name).unwrap_or(self.counters.len());
        if at == self.counters.len() {
            self.counters.push(name.to_string());
        }
        u16::try_from(at).ok().map(CounterId)
    }

    /// The OpenFlow number of a port.
    pub fn number_of(&self, port: PortId) -> u128 {
        self.ports.get(usize::from(port.0)).map_or(0, |port| port.number.into())
    }

    /// Declares a name for a value; `None` if what it stands for is wrong.
    pub fn declare(
        &mut self,
        what: &'static str,
        name: &'a Name,
        symbol: Option<Symbol>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        if let Some((_, first)) = self.symbols.get(name.node.as_str()) {
            diagnostics.push(duplicate("name", name, *first));
            return;
        }
        if reserved(name, true) || what == "header" && standard::names().any(|n| n == name.node) {
            diagnostics.push(reserved_name(name));
        }
        self.symbols.insert(&name.node, (symbol, name.span));
        self.order.push((what, &name.node, name.span));
    }

    fn port(&mut self, port: &'a ast::Port, diagnostics: &mut Vec<Diagnostic>) {
        if self.ports.len() >= usize::from(u16::MAX) {
            diagnostics.push(Diagnostic::error("too-many", "too many ports", port.name.span, "one too many"));
            return;
        }
        let known = self.symbols.contains_key(port.name.node.as_str());
        let id = PortId(self.ports.len() as u16);
        self.declare("port", &port.name, Some(Symbol::Port(id)), diagnostics);
        if !known {
            self.ports.push(hir::Port { name: port.name.node.clone(), number: 0 });
        }
    }

    /// Gives ports their numbers: those written, and for the others the place in the order of declaration.
    fn number_ports(&mut self, ast: &'a ast::Pipeline, diagnostics: &mut Vec<Diagnostic>) {
        let declared = ast.items.iter().filter_map(|item| if let Item::Ports(p) = item { Some(p) } else { None });
        let mut taken: HashMap<u32, Span> = HashMap::new();
        for (index, port) in declared.flatten().enumerate() {
            let Some((Some(Symbol::Port(id)), first)) = self.symbols.get(port.name.node.as_str()) else { continue };
            if *first != port.name.span {
                continue;
            }
            let (number, span) = match &port.number {
                None => (index as u128 + 1, port.name.span),
                Some(expr) => match expr.node {
                    ast::ExprKind::Number { value, .. } => (value, expr.span),
                    _ => continue,
                },
            };
            if !(1..0xff00).contains(&number) {
                let message = format!("port numbers go from 1 to {}", 0xff00 - 1);
                diagnostics.push(Diagnostic::error("value-too-big", message, span, "not a port number"));
                continue;
            }
            if let Some(first) = taken.insert(number as u32, span) {
                let message = format!("two ports have the number {number}");
                let diagnostic = Diagnostic::error("duplicate", message, span, "used again here")
                    .label(first, "used first here")
                    .help("ports without a number count from 1 in order of declaration");
                diagnostics.push(diagnostic);
            }
            self.ports[usize::from(id.0)].number = number as u32;
        }
    }

    /// Declares a variable with its place in the metadata: no word of 64 bits is straddled without need.
    pub fn variable(&mut self, name: &'a Name, ty: Option<(Kind, u8)>, diagnostics: &mut Vec<Diagnostic>) {
        let Some((kind, width)) = ty else { return self.declare("variable", name, None, diagnostics) };
        let bits = u16::from(width);
        let start = self.metadata_bits;
        let offset = if start % 64 + bits > 64 { start.next_multiple_of(64) } else { start };
        let Some(end) = offset.checked_add(bits).filter(|end| *end <= 4096) else {
            let message = "variables take more than 4,096 bits";
            diagnostics.push(Diagnostic::error("too-many", message, name.span, "one too many"));
            return;
        };
        self.metadata_bits = end;
        let place = Place { space: Space::Meta, offset, width };
        self.variables.push(hir::Variable { name: name.node.clone(), place });
        self.declare("variable", name, Some(Symbol::Var(place, kind)), diagnostics);
    }

    /// Words of metadata that the variables take.
    pub fn metadata_words(&self) -> u16 {
        self.metadata_bits.div_ceil(64)
    }

    /// What a name stands for, which counts as a use. The inner none: its declaration is wrong, and reported.
    pub fn symbol(&mut self, name: &str) -> Option<Option<Symbol>> {
        let (&key, (symbol, _)) = self.symbols.get_key_value(name)?;
        let symbol = symbol.clone();
        self.used.insert(("name", key));
        Some(symbol)
    }

    /// What a name stands for, without using it.
    pub fn peek(&self, name: &str) -> Option<&Symbol> {
        self.symbols.get(name)?.0.as_ref()
    }

    /// A declared or standard header; `used`: a standard one is added to the program's.
    pub fn header(&mut self, name: &str) -> Option<u16> {
        match self.peek(name) {
            Some(Symbol::Header(header)) => {
                let header = *header;
                self.symbol(name);
                Some(header)
            }
            Some(_) => None,
            None if self.symbols.contains_key(name) => None,
            None => standard::add(&mut self.headers, name),
        }
    }

    /// A field of a declared or standard header, as `foo.a`.
    pub fn header_field(&mut self, path: &str) -> Option<(Place, Kind, u16)> {
        let (header, field) = path.split_once('.')?;
        if !self.is_header_field(path) {
            return None;
        }
        let header = self.header(header)?;
        let field = self.headers[usize::from(header)].field(field)?;
        let place = Place { space: Space::Header(header), offset: field.offset, width: field.width };
        Some((place, field.kind, header))
    }

    /// Whether a path is a field of a declared or standard header.
    pub fn is_header_field(&self, path: &str) -> bool {
        let Some((header, field)) = path.split_once('.') else { return false };
        match self.peek(header) {
            Some(Symbol::Header(index)) => self.headers[usize::from(*index)].field(field).is_some(),
            Some(_) => false,
            None => !self.symbols.contains_key(header) && standard::fields().any(|(name, _)| name == path),
        }
    }

    /// The table with this name.
    pub fn table(&self, name: &str) -> Option<TableId> {
        self.tables.get(name).map(|(id, _)| *id)
    }

    /// The action with this name, which counts as a use if `used`.
    pub fn action(&mut self, name: &str) -> Option<&'a ast::ActionDecl> {
        let (&key, &action) = self.actions.get_key_value(name)?;
        self.used.insert(("action", key));
        Some(action)
    }

    /// Where an action of this name is declared, in the language or in Rust.
    fn first_action(&self, name: &str) -> Option<Span> {
        let action = self.actions.get(name).map(|action| action.name.span);
        action.or_else(|| self.extern_actions.get(name).map(|(_, item)| item.name.span))
    }

    /// The action in Rust with this name, which counts as a use.
    pub fn extern_action(&mut self, name: &str) -> Option<(u16, &'a ast::Extern)> {
        let (&key, &found) = self.extern_actions.get_key_value(name)?;
        self.used.insert(("action", key));
        Some(found)
    }

    /// Says what the parameters of an action in Rust are.
    pub fn set_extern_params(&mut self, name: &str, params: Vec<(Kind, u8)>) {
        if let Some((at, _)) = self.extern_actions.get(name) {
            self.externs[usize::from(*at)].params = params;
        }
    }

    /// The action with this name, without using it.
    pub fn peek_action(&self, name: &str) -> Option<&'a ast::ActionDecl> {
        self.actions.get(name).copied()
    }

    /// All ports count as used: an action sends to all of them.
    pub fn use_all_ports(&mut self) {
        for &(what, name, _) in &self.order {
            if what == "port" {
                self.used.insert(("name", name));
            }
        }
    }

    /// The port with this OpenFlow number.
    pub fn port_by_number(&mut self, number: u128) -> Option<PortId> {
        let at = self.ports.iter().position(|port| u128::from(port.number) == number)?;
        let name = self.ports[at].name.clone();
        self.symbol(&name);
        Some(PortId(at as u16))
    }

    /// Whether something has used the name of a value so far.
    pub fn is_used(&self, name: &str) -> bool {
        self.used.contains(&("name", name))
    }

    /// A name was looked up to be assigned, not to be read; `before`: whether it had been used before that.
    pub fn assigned(&mut self, name: &str, before: bool) {
        let Some((&key, (Some(Symbol::Var(..)), _))) = self.symbols.get_key_value(name) else { return };
        self.assigned.insert(key);
        if !before {
            self.used.remove(&("name", key));
        }
    }

    /// A parameter that the body of its action does not name.
    pub fn unused_param(&mut self, name: &'a Name) {
        if !name.node.starts_with('_') {
            self.unused_params.push((&name.node, name.span));
        }
    }

    /// Variables that are set and never read, and those that are read and never set.
    #[allow(clippy::type_complexity)]
    pub fn half_used(&self) -> (Vec<(String, Span)>, Vec<(String, Span)>) {
        let variables = self.order.iter().filter(|(what, name, _)| *what == "variable" && !name.starts_with('_'));
        let (mut unread, mut unset) = (vec![], vec![]);
        for &(_, name, span) in variables {
            match (self.is_used(name), self.assigned.contains(name)) {
                (false, true) => unread.push((name.to_string(), span)),
                (true, false) => unset.push((name.to_string(), span)),
                _ => {}
            }
        }
        (unread, unset)
    }

    /// Declared names that nothing used, in order.
    pub fn unused(&self) -> Vec<(&'static str, String, Span)> {
        let unused = self.order.iter().filter(|(what, name, _)| {
            let space = if ["action", "group", "meter"].contains(what) { what } else { "name" };
            !self.used.contains(&(space, *name)) && !self.assigned.contains(name) && !name.starts_with('_')
        });
        let params = self.unused_params.iter().map(|&(name, span)| ("parameter", name.to_string(), span));
        unused.map(|&(what, name, span)| (what, name.to_string(), span)).chain(params).collect()
    }

    /// Fields of the program's headers, with the headers' names.
    fn header_paths(&self) -> impl Iterator<Item = String> {
        let fields = |header: &hir::HeaderDecl| {
            header.fields.iter().map(|field| format!("{}.{}", header.name, field.name)).collect::<Vec<_>>()
        };
        self.headers.iter().flat_map(fields).collect::<Vec<_>>().into_iter()
    }

    /// Reports that there is no such `what`, unless the name stands in a statement that could not be parsed.
    pub fn unknown(&self, what: &'static str, name: &Name, diagnostics: &mut Vec<Diagnostic>) {
        if self.damaged.contains(name.node.as_str()) {
            return;
        }
        if diagnostics.len() > MAX_SUGGESTIONS {
            let message = format!("there is no {what} `{}`", name.node);
            diagnostics.push(Diagnostic::error("unknown-name", message, name.span, "not known"));
            return;
        }
        let standard_fields = standard::fields().map(|(name, _)| name);
        let mut paths: Vec<String> = standard_fields.chain(self.header_paths()).collect();
        let mut known: Vec<&str> = match what {
            "table" => self.tables.keys().copied().collect(),
            "action" => {
                let mut known: Vec<&str> = super::built_in::names().collect();
                known.extend(self.actions.keys());
                known.extend(self.extern_actions.keys());
                known
            }
            "port" => self.ports.iter().map(|port| port.name.as_str()).collect(),
            "group" => self.groups.keys().copied().collect(),
            "meter" => self.meters.keys().copied().collect(),
            _ => {
                let headers = Header::NAMES.iter().map(|(name, _)| *name);
                let flags = crate::field::CT_FLAGS.iter().map(|(name, _)| *name);
                let mut known: Vec<&str> = Field::names().chain(headers).chain(flags.map(ct_flag)).collect();
                // OpenFlow's names are for those who write them.
                known.retain(|known| name.node.contains('_') || !known.contains('_') || known.contains('.'));
                known.extend(self.symbols.keys());
                paths.extend(standard::names().map(String::from));
                paths.iter().map(String::as_str).chain(known).collect()
            }
        };
        known.sort_unstable();
        let message = format!("there is no {what} `{}`", name.node);
        let diagnostic = Diagnostic::error("unknown-name", message, name.span, "not known");
        diagnostics.push(match closest(&name.node, known.iter().copied()) {
            Some(close) => diagnostic.help(format!("did you mean `{close}`?")),
            None if what == "port" => diagnostic.help(format!("ports are declared: `port {};`", name.node)),
            None if what == "group" => {
                diagnostic.help(format!("declare it: `group {} select {{ bucket {{ … }} }}`", name.node))
            }
            None if what == "meter" => {
                diagnostic.help(format!("declare it: `meter {} {{ rate 1000 pps; }}`", name.node))
            }
            None if what == "table" => diagnostic.help(format!("tables: {}", known_list(&known))),
            None => diagnostic,
        });
    }
}

/// At most eight names.
fn known_list(known: &[&str]) -> String {
    let more = if known.len() > 8 { ", …" } else { "" };
    format!("{}{more}", known[..known.len().min(8)].join(", "))
}

/// The full name of a flag of `ct.state`.
fn ct_flag(flag: &'static str) -> &'static str {
    match flag {
        "new" => "ct.new",
        "est" => "ct.est",
        "rel" => "ct.rel",
        "rpl" => "ct.rpl",
        "inv" => "ct.inv",
        "trk" => "ct.trk",
        "snat" => "ct.snat",
        _ => "ct.dnat",
    }
}

/// Whether a name means something already; names of values must differ from headers and fields too.
fn reserved(name: &Name, value: bool) -> bool {
    let name = name.node.as_str();
    let word = KEYWORDS.contains(&name) || ITEM_WORDS.contains(&name);
    word || value && (Header::by_name(name).is_some() || Field::by_name(name).is_some())
}

fn reserved_name(name: &Name) -> Diagnostic {
    let message = format!("`{}` has a meaning in the language", name.node);
    Diagnostic::error("reserved-name", message, name.span, "cannot be declared").help("choose another name")
}

/// Two declarations of a name.
pub fn duplicate(what: &str, name: &Name, first: Span) -> Diagnostic {
    let message = format!("the {what} `{}` is declared twice", name.node);
    Diagnostic::error("duplicate", message, name.span, "declared again here").label(first, "declared first here")
}
