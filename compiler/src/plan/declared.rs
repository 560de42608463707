//! Declared headers: where one begins, whether it is there, and its bits. A word says both: its offset, and above it the end
//! of what it lies in; 0 where it is absent.

use pipec_abi::header::{L3, L4, proto};

use super::code::{Base, Expr, Op, Value};
use super::facts::{Known, presence, spell_out};
use super::values::{Held, Site, Wide, guard};
use crate::field::{Field, Header};
use crate::hir::{Cond, Order, PRESENCE, Place, Read, View};

impl Site<'_> {
    /// The word of a declared header.
    pub fn declared(&mut self, header: u16) -> Value {
        self.hold(Held::Header(header), |site| {
            let declared = &site.headers[usize::from(header)];
            let mut found = Expr::Const(0);
            let mut open = Expr::Const(1);
            for after in &declared.after {
                let parent = site.behind(after.parent);
                let parent = site.bind(parent);
                let holds = site.holds(&after.cond);
                let here = match holds {
                    Expr::Const(0) => continue,
                    Expr::Const(_) => parent.clone().with(Op::Ne, 0),
                    holds => parent.clone().with(Op::Ne, 0).op(Op::And, holds),
                };
                let here = site.bind(here);
                let first = if open == Expr::Const(1) { here.clone() } else { open.clone().op(Op::And, here.clone()) };
                let chosen = guard(first, parent);
                found = found.op(Op::Or, chosen);
                open = open.op(Op::And, here.with(Op::Eq, 0));
            }
            let found = site.bind(found);
            let behind = found.clone().with(Op::And, 0xffff).with(Op::Add, u64::from(declared.bytes));
            guard(behind.op(Op::Le, found.clone().with(Op::Shr, 16)), found)
        })
    }

    /// Where a declared header begins; 0 where it is absent.
    pub fn declared_offset(&mut self, header: u16) -> Value {
        self.hold(Held::HeaderOffset(header), |site| Expr::Value(site.declared(header)).with(Op::And, 0xffff))
    }

    /// Bits of a declared header, or whether it is there.
    pub fn declared_bits(&mut self, header: u16, offset: u16, width: u8) -> Wide {
        if offset == PRESENCE {
            return Wide::narrow(Expr::Value(self.declared(header)).with(Op::Ne, 0));
        }
        let mut part = |from: u8, high: bool| {
            let bits = (width - from).min(64);
            let first = offset + u16::from(width - from - bits);
            Expr::Value(self.hold(Held::Bits(header, offset, width, high), |site| {
                let base = Base::At(site.declared_offset(header));
                let value = load_bits(base, first, bits);
                match site.facts.constant(&presence(header)) {
                    Some(1) => value,
                    _ => guard(Expr::Value(site.declared(header)).with(Op::Ne, 0), value),
                }
            }))
        };
        let low = part(0, false);
        Wide { high: if width > 64 { part(64, true) } else { Expr::Const(0) }, low }
    }

    /// Where the payload of a header begins, and above that its end; 0 where the header is absent or has no end.
    pub fn behind(&mut self, header: Header) -> Expr {
        let word = |value: Value| Expr::Value(value);
        let ethernet = |site: &mut Self| {
            let end = word(site.l2()).with(Op::Shr, 16).with(Op::And, 0xffff);
            end.op(Op::Or, Expr::Len.with(Op::Shl, 16))
        };
        match header {
            Header::Eth => ethernet(self),
            Header::Vlan => guard(word(self.l2()).with(Op::Shr, 32).with(Op::And, 0x1000), ethernet(self)),
            Header::Vlan2 => guard(word(self.l2()).with(Op::Shr, 48).with(Op::And, 0x1000), ethernet(self)),
            Header::Arp | Header::Rarp => {
                let eth_type = if header == Header::Arp { 0x0806 } else { 0x8035 };
                let there = word(self.l2()).with(Op::And, 0xffff).with(Op::Eq, eth_type);
                let whole = word(self.arp_there());
                guard(there.op(Op::And, whole), ethernet(self).with(Op::Add, 28))
            }
            Header::Ipv4 | Header::Ipv6 | Header::IpAny => {
                let (version, wanted) = match header {
                    Header::Ipv4 => (L3::V6, 0),
                    Header::Ipv6 => (L3::V6, L3::V6),
                    _ => (0, 0),
                };
                let l3 = word(self.l3());
                let there = l3.clone().with(Op::And, L3::REST | 3 << 40 | version).with(Op::Eq, L3::REST | wanted);
                guard(there, l3.with(Op::And, 0xffff_ffff))
            }
            Header::Tcp => {
                let at = self.l4_offset();
                let len = Expr::Load { base: at, offset: 12, bytes: 1 }.with(Op::Shr, 4).with(Op::Shl, 2);
                self.transport_payload(proto::TCP, len)
            }
            Header::Udp => self.transport_payload(proto::UDP, Expr::Const(8)),
            Header::Sctp => self.transport_payload(proto::SCTP, Expr::Const(12)),
            Header::Icmp => self.transport_payload(proto::ICMP, Expr::Const(8)),
            Header::Icmpv6 => self.transport_payload(proto::ICMPV6, Expr::Const(8)),
            Header::Nd => Expr::Const(0),
            Header::Declared(parent) => {
                let bytes = u64::from(self.headers[usize::from(parent)].bytes);
                let parent = word(self.declared(parent));
                guard(parent.clone().with(Op::Ne, 0), parent.with(Op::Add, bytes))
            }
        }
    }

    fn transport_payload(&mut self, protocol: u8, len: Expr) -> Expr {
        let Base::At(at) = self.l4_offset() else { return Expr::Const(0) };
        let (l3, l4) = (Expr::Value(self.l3()), Expr::Value(self.l4()));
        let known = self.facts.constant(&Read { place: Place::field(Field::IpProto), view: View::Table });
        let mut there = l4.with(Op::And, L4::MATCHES);
        if known != Some(u128::from(protocol)) {
            let is = l3.clone().with(Op::Shr, 32).with(Op::And, 0xff).with(Op::Eq, u64::from(protocol));
            there = there.with(Op::Ne, 0).op(Op::And, is);
        }
        let start = Expr::Value(at).op(Op::Add, len);
        guard(there, start.op(Op::Or, l3.with(Op::And, 0xffff_0000)))
    }

    /// A condition as a word, 0 or 1, without branches.
    pub fn holds(&mut self, cond: &Cond) -> Expr {
        let cond = match self.facts.simplify(cond) {
            Known::True => return Expr::Const(1),
            Known::False => return Expr::Const(0),
            Known::Open(cond) => cond,
        };
        match &cond {
            Cond::True => Expr::Const(1),
            Cond::Has(header) => self.holds(&spell_out(*header)),
            Cond::Compare(read, test) => self.test(read, test),
            Cond::CompareTo(left, order, right) => {
                let (left, right) = (self.read(left).low, self.read(right).low);
                let op = match order {
                    Order::Equal => Op::Eq,
                    Order::Less => Op::Lt,
                    Order::AtMost => Op::Le,
                };
                left.op(op, right)
            }
            Cond::Not(inner) => self.holds(inner).with(Op::Eq, 0),
            Cond::All(parts) => parts.iter().fold(Expr::Const(1), |all, part| {
                let part = self.holds(part);
                if all == Expr::Const(1) { part } else { all.op(Op::And, part) }
            }),
            Cond::Any(parts) => parts.iter().fold(Expr::Const(0), |any, part| {
                let part = self.holds(part);
                any.op(Op::Or, part)
            }),
        }
    }

    /// The expression as a value, unless it is known.
    fn bind(&mut self, expr: Expr) -> Expr {
        if matches!(expr, Expr::Const(_) | Expr::Value(_)) {
            return expr;
        }
        let value = self.fresh.value();
        self.out.push(super::code::Stmt::Let(value, expr));
        Expr::Value(value)
    }
}

/// At most 64 bits, from bit `first` behind `base` on.
fn load_bits(base: Base, first: u16, bits: u8) -> Expr {
    let (from, to) = (first / 8, (first + u16::from(bits)).div_ceil(8));
    let below = u64::from(to * 8 - first - u16::from(bits));
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    if to - from == 9 {
        let upper = load_bytes(base, from, 8).with(Op::Shl, 8 - below);
        let last = Expr::Load { base, offset: to - 1, bytes: 1 };
        return upper.op(Op::Or, last.with(Op::Shr, below)).with(Op::And, mask);
    }
    let span = u64::from(to - from) * 8;
    let word = load_bytes(base, from, (to - from) as u8).with(Op::Shr, below);
    if u64::from(bits) + below == span { word } else { word.with(Op::And, mask) }
}

/// At most eight bytes as a number.
fn load_bytes(base: Base, offset: u16, bytes: u8) -> Expr {
    let first = match bytes {
        1 | 2 | 4 | 6 | 8 => return Expr::Load { base, offset, bytes },
        3 => 2,
        5 => 4,
        _ => 6,
    };
    let upper = Expr::Load { base, offset, bytes: first };
    let last = Expr::Load { base, offset: offset + u16::from(first), bytes: 1 };
    upper.with(Op::Shl, 8).op(Op::Or, last)
}
