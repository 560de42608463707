//! Groups and meters: their heads, and the statements in them.

use super::Parser;
use super::cut::Piece;
use super::grammar::Rule;
use crate::ast::{Bucket, Expr, Group, Item, Meter, Name, Spanned};
use crate::diag::Diagnostic;
use crate::source::Span;

impl<'a> Parser<'a, '_, '_> {
    /// `group NAME KIND { … }`
    pub(super) fn group(&mut self, piece: &Piece<'a>) -> Option<Item> {
        let body = self.body(piece, "group")?;
        let head = self.statement(Rule::group_head, piece, |c, pairs| {
            let mut names = pairs.filter(|p| p.as_rule() == Rule::name);
            Some((c.name(&names.next()?), c.name(&names.next()?)))
        });
        let mut hash: Option<Vec<Expr>> = None;
        let mut buckets = vec![];
        for inner in self.pieces(&body, false) {
            match inner.word {
                "hash" => {
                    let list = self.statement(Rule::hash_stmt, &inner, |c, pairs| {
                        pairs.filter(|p| p.as_rule() == Rule::expr).map(|p| c.expr(p)).collect::<Option<Vec<_>>>()
                    });
                    let first = hash.is_none();
                    self.once(first, &inner, "hash");
                    hash = hash.or(list);
                }
                "bucket" => buckets.extend(self.bucket(&inner)),
                _ => self.error("syntax", "expected `hash` or `bucket`", &inner, "not a statement of a group"),
            }
        }
        let (name, kind) = head?;
        Some(Item::Group(Group { name, kind, hash, buckets }))
    }

    fn bucket(&mut self, piece: &Piece<'a>) -> Option<Spanned<Bucket>> {
        let body = self.body(piece, "bucket")?;
        let (weight, watch) = self.statement(Rule::bucket_head, piece, |c, pairs| {
            let (mut weight, mut watch): (Option<Expr>, Option<Name>) = (None, None);
            for pair in pairs {
                let rule = pair.as_rule();
                let inner = pair.into_inner().find(|p| matches!(p.as_rule(), Rule::number | Rule::name));
                match (rule, inner) {
                    (Rule::weight, Some(number)) => weight = Some(c.number(number.as_str(), c.span(&number))?),
                    (Rule::watch, Some(name)) => watch = Some(c.name(&name)),
                    _ => {}
                }
            }
            Some((weight, watch))
        })?;
        let inside = Piece { word: "", range: body.range(), body: None };
        let actions = self.statement(Rule::bucket_body, &inside, |c, pairs| {
            pairs.filter(|p| p.as_rule() == Rule::act).map(|p| c.action(p)).collect::<Option<Vec<_>>>()
        })?;
        let span = Span::new(self.context.file, piece.range.clone());
        Some(Spanned::new(Bucket { weight, watch, actions }, span))
    }

    /// `meter NAME { … }`
    pub(super) fn meter(&mut self, piece: &Piece<'a>) -> Option<Item> {
        let body = self.body(piece, "meter")?;
        let name = self.head(Rule::meter_head, piece);
        let (mut rate, mut burst): (Option<(Expr, Name)>, Option<Expr>) = (None, None);
        for inner in self.pieces(&body, false) {
            match inner.word {
                "rate" => {
                    let found = self.statement(Rule::rate_stmt, &inner, |c, mut pairs| {
                        let number = pairs.find(|p| p.as_rule() == Rule::number)?;
                        let unit = pairs.find(|p| p.as_rule() == Rule::rate_unit)?;
                        Some((c.number(number.as_str(), c.span(&number))?, c.name(&unit)))
                    });
                    let first = rate.is_none();
                    self.once(first, &inner, "rate");
                    rate = rate.or(found);
                }
                "burst" => {
                    let found = self.statement(Rule::burst_stmt, &inner, |c, mut pairs| {
                        let number = pairs.find(|p| p.as_rule() == Rule::number)?;
                        c.number(number.as_str(), c.span(&number))
                    });
                    let first = burst.is_none();
                    self.once(first, &inner, "burst");
                    burst = burst.or(found);
                }
                _ => self.error("syntax", "expected `rate` or `burst`", &inner, "not a statement of a meter"),
            }
        }
        Some(Item::Meter(Meter { name: name?, rate, burst }))
    }

    /// Reports a second statement where one is allowed.
    fn once(&mut self, first: bool, piece: &Piece<'a>, what: &str) {
        if !first {
            let span = Span::new(self.context.file, piece.range.start..piece.range.start + piece.word.len());
            let message = format!("`{what}` is given twice");
            self.context.diagnostics.push(Diagnostic::error("duplicate", message, span, "again here"));
        }
    }
}
