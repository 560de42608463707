//! Statements: from what the grammar found to the nodes of the tree.

use pest::iterators::{Pair, Pairs};

use super::grammar::{Context, Rule};
use crate::ast::{self, Action, ActionKind, Arg, Expr, Layer, Name, Packet, Spanned, Step};
use crate::diag::Diagnostic;
use crate::source::Span;

impl Context<'_, '_> {
    /// A name or path.
    pub fn name(&self, pair: &Pair<'_, Rule>) -> Name {
        Spanned::new(pair.as_str().to_string(), self.span(pair))
    }

    /// `name = value`, as in `const` and `option`.
    pub fn named_value(&mut self, pairs: Pairs<'_, Rule>) -> Option<(Name, Expr)> {
        let (mut name, mut value) = (None, None);
        for pair in pairs {
            match pair.as_rule() {
                Rule::name => name = Some(self.name(&pair)),
                Rule::expr => value = self.expr(pair),
                _ => {}
            }
        }
        Some((name?, value?))
    }

    /// `port a, b = 2;`
    pub fn ports(&mut self, pairs: Pairs<'_, Rule>) -> Option<Vec<ast::Port>> {
        pairs
            .filter(|p| p.as_rule() == Rule::port_decl)
            .map(|decl| {
                let mut inner = decl.into_inner();
                let name = self.name(&inner.next()?);
                let number = match inner.find(|p| p.as_rule() == Rule::number) {
                    Some(number) => Some(self.number(number.as_str(), self.span(&number))?),
                    None => None,
                };
                Some(ast::Port { name, number })
            })
            .collect()
    }

    /// `set NAME = { … };`
    pub fn set(&mut self, pairs: Pairs<'_, Rule>) -> Option<ast::Set> {
        let (mut name, mut elements) = (None, None);
        for pair in pairs {
            match pair.as_rule() {
                Rule::name => name = Some(self.name(&pair)),
                Rule::elements => elements = self.elements(pair),
                _ => {}
            }
        }
        Some(ast::Set { name: name?, elements: elements? })
    }

    /// `name: type` declarations, of variables or parameters.
    pub fn vars(&mut self, pairs: Pairs<'_, Rule>) -> Option<Vec<ast::Var>> {
        pairs
            .filter(|p| p.as_rule() == Rule::var_decl)
            .map(|decl| {
                let mut inner = decl.into_inner().filter(|p| matches!(p.as_rule(), Rule::name | Rule::type_name));
                Some(ast::Var { name: self.name(&inner.next()?), ty: self.name(&inner.next()?) })
            })
            .collect()
    }

    /// `header NAME { fields } after PARENT if condition, …;`
    pub fn header(&mut self, pairs: Pairs<'_, Rule>) -> Option<ast::HeaderDecl> {
        let name = pairs.clone().find(|p| p.as_rule() == Rule::name)?;
        let (name, fields) = (self.name(&name), self.vars(pairs.clone())?);
        let after = pairs.filter(|p| p.as_rule() == Rule::parent).map(|parent| {
            let mut inner = parent.into_inner();
            let name = self.name(&inner.next()?);
            Some(match inner.find(|p| p.as_rule() == Rule::expr) {
                Some(cond) => (name, Some(self.expr(cond)?)),
                None => (name, None),
            })
        });
        let after = after.collect::<Option<_>>()?;
        Some(ast::HeaderDecl { name, fields, after })
    }

    /// `priority N: cond => actions;`
    pub fn rule(&mut self, pairs: Pairs<'_, Rule>) -> Option<ast::Rule> {
        let head = Spanned::new((), Span::default());
        let mut rule = ast::Rule { priority: None, cond: None, head, actions: vec![] };
        for pair in pairs {
            match pair.as_rule() {
                Rule::priority => {
                    let number = pair.into_inner().find(|p| p.as_rule() == Rule::number)?;
                    rule.priority = Some(self.number(number.as_str(), self.span(&number))?);
                }
                Rule::otherwise => rule.head.span = self.span(&pair),
                Rule::expr => {
                    rule.head.span = self.span(&pair);
                    rule.cond = Some(self.expr(pair)?);
                }
                Rule::act => rule.actions.push(self.action(pair)?),
                _ => {}
            }
        }
        Some(rule)
    }

    /// The first action among pairs.
    pub fn first_action(&mut self, mut pairs: Pairs<'_, Rule>) -> Option<Action> {
        let act = pairs.find(|p| p.as_rule() == Rule::act)?;
        self.action(act)
    }

    /// An `act`.
    pub fn action(&mut self, pair: Pair<'_, Rule>) -> Option<Action> {
        let span = self.span(&pair);
        let act = pair.into_inner().next()?;
        let rule = act.as_rule();
        let mut inner = act.into_inner();
        let kind = match rule {
            Rule::act_goto | Rule::act_call => {
                let name = inner.find(|p| p.as_rule() == Rule::name)?;
                let name = self.name(&name);
                if rule == Rule::act_goto { ActionKind::Goto(name) } else { ActionKind::Call(name) }
            }
            Rule::act_push | Rule::act_pop => {
                let name = inner.find(|p| p.as_rule() == Rule::name)?;
                let name = self.name(&name);
                let args = match inner.find(|p| p.as_rule() == Rule::args) {
                    Some(args) => Some(self.args(args)?),
                    None => None,
                };
                if rule == Rule::act_push { ActionKind::Push(name, args) } else { ActionKind::Pop(name, args) }
            }
            Rule::act_encap => ActionKind::Encap(self.packet(inner.find(|p| p.as_rule() == Rule::packet)?)?),
            Rule::act_decap => {
                let name = inner.find(|p| p.as_rule() == Rule::name)?;
                ActionKind::Decap(self.name(&name))
            }
            Rule::act_clone => {
                let actions = inner.filter(|p| p.as_rule() == Rule::act).map(|p| self.action(p));
                ActionKind::Clone(actions.collect::<Option<_>>()?)
            }
            Rule::act_learn => self.learn(inner)?,
            _ => {
                let name = self.name(&inner.next()?);
                match inner.next() {
                    None => ActionKind::Run(name, None),
                    Some(args) if args.as_rule() == Rule::args => ActionKind::Run(name, Some(self.args(args)?)),
                    Some(_) => ActionKind::Assign(name, self.expr(inner.find(|p| p.as_rule() == Rule::expr)?)?),
                }
            }
        };
        Some(Spanned::new(kind, span))
    }

    pub(super) fn args(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Arg>> {
        pair.into_inner()
            .filter(|p| p.as_rule() == Rule::arg)
            .map(|arg| {
                let (mut name, mut value) = (None, None);
                for part in arg.into_inner() {
                    match part.as_rule() {
                        Rule::name => name = Some(self.name(&part)),
                        Rule::expr => value = self.expr(part),
                        _ => {}
                    }
                }
                Some(Arg { name, value: value? })
            })
            .collect()
    }

    /// The string of a `test`.
    pub fn test_name(&mut self, mut pairs: Pairs<'_, Rule>) -> Option<Name> {
        let string = pairs.find(|p| p.as_rule() == Rule::string)?;
        let span = self.span(&string);
        Some(Spanned::new(self.string(string.as_str(), span)?, span))
    }

    /// `send 3 PORT packet;`
    pub fn send_step(&mut self, pairs: Pairs<'_, Rule>) -> Option<Step> {
        let count = self.count(pairs.clone());
        let (port, packet) = self.send(pairs)?;
        Some(Step::Send { count, port, packet })
    }

    /// How often, if that is given; what does not fit is as much as there is.
    fn count(&self, mut pairs: Pairs<'_, Rule>) -> Option<Spanned<u64>> {
        let digits = pairs.find(|p| p.as_rule() == Rule::digits)?;
        let count = digits.as_str().replace('_', "").parse().unwrap_or(u64::MAX);
        Some(Spanned::new(count, self.span(&digits)))
    }

    /// `send PORT packet;`, or `PORT: packet`.
    pub fn send(&mut self, pairs: Pairs<'_, Rule>) -> Option<(Name, Packet)> {
        let (mut port, mut packet) = (None, None);
        for pair in pairs {
            match pair.as_rule() {
                Rule::name => port = Some(self.name(&pair)),
                Rule::packet => packet = self.packet(pair),
                _ => {}
            }
        }
        Some((port?, packet?))
    }

    fn packet(&mut self, pair: Pair<'_, Rule>) -> Option<Packet> {
        let layers = pair.into_inner().filter(|p| p.as_rule() == Rule::layer).map(|layer| {
            let span = self.span(&layer);
            let mut inner = layer.into_inner();
            let first = inner.next()?;
            if first.as_rule() == Rule::string {
                let at = self.span(&first);
                return Some(Spanned::new(Layer::Payload(self.string(first.as_str(), at)?), span));
            }
            let args = match inner.next() {
                Some(args) => self.args(args)?,
                None => vec![],
            };
            Some(Spanned::new(Layer::Header(self.name(&first), args), span))
        });
        Some(Packet { layers: layers.collect::<Option<_>>()? })
    }

    /// `expect a, drop(policy), 3 b where ip.ttl == 63;`
    pub fn expect(&mut self, pairs: Pairs<'_, Rule>) -> Option<Step> {
        let ends = pairs.filter(|p| p.as_rule() == Rule::expected).map(|pair| {
            let span = self.span(&pair);
            let count = self.count(pair.clone().into_inner());
            let (mut name, mut reason, mut like) = (None, None, None);
            for part in pair.into_inner() {
                match part.as_rule() {
                    Rule::name => name = Some(self.name(&part)),
                    Rule::reason => reason = part.into_inner().find(|p| p.as_rule() == Rule::name),
                    Rule::expr => like = Some(ast::Like::Where(self.expr(part)?)),
                    Rule::packet => like = Some(ast::Like::Equal(self.packet(part)?)),
                    _ => {}
                }
            }
            let reason = reason.map(|reason| self.name(&reason));
            Some(Spanned::new(ast::Expected { count, name: name?, reason, like }, span))
        });
        Some(Step::Expect(ends.collect::<Option<_>>()?))
    }

    /// `after 61 s;`
    pub fn after(&mut self, pairs: Pairs<'_, Rule>) -> Option<Step> {
        let mut count = 0_u64;
        for pair in pairs {
            let span = self.span(&pair);
            let text = pair.as_str();
            match pair.as_rule() {
                Rule::digits => match text.replace('_', "").parse() {
                    Ok(number) => count = number,
                    Err(_) => count = u64::MAX,
                },
                Rule::unit => {
                    let Some((_, unit)) = UNITS.iter().find(|(name, _)| *name == text) else {
                        let names: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
                        let message = format!("no unit of time `{text}`");
                        let help = format!("units are {}", super::grammar::list(&names));
                        self.diagnostics.push(Diagnostic::error("unknown-unit", message, span, "unknown").help(help));
                        return None;
                    };
                    let Some(ns) = count.checked_mul(*unit) else {
                        let message = "this time is too long";
                        self.diagnostics.push(Diagnostic::error("value-too-big", message, span, "at most 584 years"));
                        return None;
                    };
                    return Some(Step::After { ns });
                }
                _ => {}
            }
        }
        None
    }
}

/// Units of time, in nanoseconds.
pub const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
