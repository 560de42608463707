//! Code that reads fields: where a field lies, what must hold for it to be read, and which values are at hand already.

use std::collections::HashMap;

use pipec_abi::header::{L3, L4, proto};

use super::code::{Base, CtPart, Expr, Op, Stmt, Value};
use super::facts::{Facts, canonical_view, ones};
use super::numbers;
use crate::field::{Field, Header};
use crate::hir::{HeaderDecl, Match, Place, Read, Space, View};

/// A number of up to 128 bits as words: high (0 for narrow ones) and low.
#[derive(Clone, Debug, PartialEq)]
pub struct Wide {
    /// Bits 64 to 127.
    pub high: Expr,
    /// Bits 0 to 63.
    pub low: Expr,
}

impl Wide {
    /// A known number.
    pub fn constant(value: u128) -> Wide {
        Wide { high: Expr::Const((value >> 64) as u64), low: Expr::Const(value as u64) }
    }

    pub(super) fn narrow(low: Expr) -> Wide {
        Wide { high: Expr::Const(0), low }
    }
}

/// What a value at hand is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Held {
    L2,
    L3,
    L4,
    Arp,
    L3Offset,
    L4Offset,
    Low(Field, View),
    High(Field, View),
    /// Where neighbour discovery's fields are, as someone sees them; and where one of them is.
    Nd(View),
    NdField(Field, View),
    /// A declared header: its offset in bits 0–15, the end of what it lies in above; 0: absent.
    Header(u16),
    HeaderOffset(u16),
    /// Bits of a declared header: offset and width; the upper word or the lower.
    Bits(u16, u16, u8, bool),
}

/// Values at hand on a path.
#[derive(Clone, Debug, Default)]
pub struct Values {
    held: HashMap<Held, Value>,
    /// How the look-up of the current table sees `in_port`, where no constant is known: as a function's parameter.
    pub lookup_port_is_parameter: bool,
}

/// Hands out names of values.
#[derive(Clone, Debug, Default)]
pub struct Fresh {
    /// The next value.
    pub value: u32,
    /// The next label.
    pub label: u32,
    /// What was read of the packet.
    pub reads: Vec<Place>,
}

impl Fresh {
    /// A new value.
    pub fn value(&mut self) -> Value {
        self.value += 1;
        Value(self.value - 1)
    }
}

/// Where code is added: the values at hand, the facts, new names, and the statements.
pub struct Site<'a> {
    /// Values at hand; grows.
    pub values: &'a mut Values,
    /// What is known.
    pub facts: &'a Facts,
    /// The headers that the program declares.
    pub headers: &'a [HeaderDecl],
    /// Names.
    pub fresh: &'a mut Fresh,
    /// Statements, to which definitions are added.
    pub out: &'a mut Vec<Stmt>,
}

impl Values {
    /// The packet waits: nothing is at hand when it resumes.
    pub fn clear(&mut self) {
        self.held.clear();
    }

    /// A field was written.
    pub fn forget_field(&mut self, field: Field) {
        let tag = is_tag(field);
        self.held.retain(|held, _| match held {
            Held::Low(f, _) | Held::High(f, _) => *f != field && !(tag && is_tag(*f)),
            Held::L2 => !tag,
            _ => true,
        });
    }

    /// Any byte of the packet may have changed.
    pub fn forget_packet(&mut self) {
        self.held.retain(|held, _| matches!(held, Held::Low(f, _) | Held::High(f, _) if f.is_metadata()));
    }

    /// Something was written that declared headers from this one on may depend on; of itself the bits, if `own`.
    pub fn forget_headers(&mut self, from: u16, own: bool) {
        self.held.retain(|held, _| match held {
            Held::Header(h) | Held::HeaderOffset(h) => *h < from || own && *h == from,
            Held::Bits(h, ..) => *h < from,
            _ => true,
        });
    }

    /// The frame has another shape: only what is not in it stays.
    pub fn forget_frame(&mut self) {
        self.held.retain(|held, _| match held {
            Held::Low(field, _) | Held::High(field, _) => !in_frame(*field),
            _ => false,
        });
    }

    /// `ct.*` has changed.
    pub fn forget_ct(&mut self) {
        for field in [Field::CtState, Field::CtZone, Field::CtMark, Field::CtLabel] {
            self.forget_field(field);
        }
    }

    /// `ct.state` is this value.
    pub fn hold_ct_state(&mut self, value: Value) {
        self.held.insert(Held::Low(Field::CtState, View::Table), value);
    }
}

/// Whether a field is of the frame, and not of what the runtime knows of it.
pub fn in_frame(field: Field) -> bool {
    !field.is_metadata()
}

/// Whether a field is part of a tag.
pub fn is_tag(field: Field) -> bool {
    use Field::{Vlan2Pcp, Vlan2Tci, Vlan2Vid, VlanPcp, VlanTci, VlanVid};
    matches!(field, VlanVid | VlanPcp | VlanTci | Vlan2Vid | Vlan2Pcp | Vlan2Tci)
}

impl Site<'_> {
    pub(super) fn hold(&mut self, held: Held, make: impl FnOnce(&mut Self) -> Expr) -> Value {
        if let Some(&value) = self.values.held.get(&held) {
            return value;
        }
        let expr = make(self);
        let value = self.fresh.value();
        self.out.push(Stmt::Let(value, expr));
        self.values.held.insert(held, value);
        value
    }

    pub(super) fn l2(&mut self) -> Value {
        self.hold(Held::L2, |_| Expr::L2)
    }

    pub(super) fn l3(&mut self) -> Value {
        self.hold(Held::L3, |site| Expr::L3 { l2: site.l2(), plain: false })
    }

    pub(super) fn l4(&mut self) -> Value {
        let read = Read { place: Place::field(Field::IpProto), view: View::Table };
        let proto = self.facts.constant(&read).map(|proto| proto as u8);
        self.hold(Held::L4, |site| Expr::L4 { l3: site.l3(), proto, plain: false })
    }

    /// Where IP begins.
    pub fn l3_offset(&mut self) -> Base {
        Base::At(self.hold(Held::L3Offset, |site| Expr::Value(site.l2()).with(Op::Shr, 16).with(Op::And, 0xffff)))
    }

    pub(super) fn l4_offset(&mut self) -> Base {
        Base::At(self.hold(Held::L4Offset, |site| Expr::Value(site.l4()).with(Op::And, 0xffff)))
    }

    /// What a read gives.
    pub fn read(&mut self, read: &Read) -> Wide {
        if let Some(value) = self.facts.constant(read) {
            return Wide::constant(value);
        }
        if !self.fresh.reads.contains(&read.place) {
            self.fresh.reads.push(read.place);
        }
        let Place { space, offset, width } = read.place;
        let field = match space {
            Space::Meta => return meta(offset, width),
            Space::Field(field) => field,
            Space::Header(header) => return self.declared_bits(header, offset, width),
        };
        let whole = self.field(field, canonical_view(read));
        let below = u32::from(field.width()) - u32::from(offset) - u32::from(width);
        slice(whole, below, width)
    }

    /// Two fields that are neighbours in the packet, the first above the second; nothing if one of them is at hand already.
    pub(super) fn pair(&mut self, first: &Read, second: &Read) -> Option<Expr> {
        let fields = [first, second].map(|read| match read.place.space {
            Space::Field(field) if !self.values.held.contains_key(&Held::Low(field, canonical_view(read))) => {
                Some(field)
            }
            _ => None,
        });
        self.fresh.reads.extend([first.place, second.place]);
        match fields {
            [Some(Field::Ipv4Src), Some(Field::Ipv4Dst)] => Some(self.address(L3::ADDRESSES, 12, 8)),
            [Some(field @ Field::TcpSrc), Some(Field::TcpDst)] => Some(self.transport(field, View::Table, 0, 4)),
            _ => None,
        }
    }

    fn field(&mut self, field: Field, view: View) -> Wide {
        if field == Field::InPort {
            let parameter = view == View::Table && self.values.lookup_port_is_parameter;
            return Wide::narrow(if parameter { Expr::LookupPort } else { Expr::InPort });
        }
        if field == Field::InPortNumber {
            let port = self.read(&Read { place: Place::field(Field::InPort), view }).low;
            return Wide::narrow(numbers::number_of(port, &self.facts.numbers));
        }
        let low = self.hold(Held::Low(field, view), |site| site.load(field, view, 0));
        let high = if field.width() > 64 {
            Expr::Value(self.hold(Held::High(field, view), |site| site.load(field, view, 64)))
        } else {
            Expr::Const(0)
        };
        Wide { high, low: Expr::Value(low) }
    }

    /// Bits `from` to `from + 63` of a field.
    fn load(&mut self, field: Field, view: View, from: u8) -> Expr {
        let word = |value: Value, shift: u64, mask: u64| Expr::Value(value).with(Op::Shr, shift).with(Op::And, mask);
        let load = |base: Base, offset: u16, bytes: u8| Expr::Load { base, offset, bytes };
        match field {
            Field::InPort | Field::InPortNumber => Expr::InPort,
            Field::CtState => Expr::Ct(CtPart::State),
            Field::CtZone => Expr::Ct(CtPart::Zone),
            Field::CtMark => Expr::Ct(CtPart::Mark),
            Field::CtLabel => Expr::Ct(if from == 0 { CtPart::LabelLow } else { CtPart::LabelHigh }),
            // Eight bytes are there, and read at once.
            Field::EthDst => load(Base::Frame, 0, 8).with(Op::Shr, 16),
            Field::EthSrc => load(Base::Frame, 6, 8).with(Op::Shr, 16),
            Field::EthType => Expr::Value(self.l2()).with(Op::And, 0xffff),
            Field::VlanTci => word(self.l2(), 32, 0xffff),
            Field::VlanVid => word(self.l2(), 32, 0xfff),
            Field::VlanPcp => word(self.l2(), 45, 7),
            Field::ArpOp | Field::ArpSpa | Field::ArpTpa | Field::ArpSha | Field::ArpTha => self.arp(field),
            Field::IpProto => word(self.l3(), 32, 0xff),
            Field::IpFrag => word(self.l3(), 40, 3),
            Field::IpTtl | Field::IpDscp | Field::IpEcn => self.ip_byte(field),
            Field::Ipv4Src => self.address(L3::ADDRESSES, 12, 4),
            Field::Ipv4Dst => self.address(L3::ADDRESSES, 16, 4),
            Field::Ipv6Src => self.address(L3::ADDRESSES | L3::V6, if from == 0 { 16 } else { 8 }, 8),
            Field::Ipv6Dst => self.address(L3::ADDRESSES | L3::V6, if from == 0 { 32 } else { 24 }, 8),
            Field::Ipv6Label => {
                let base = self.l3_offset();
                let flags = L3::REST | L3::V6;
                let there = Expr::Value(self.l3()).with(Op::And, flags).with(Op::Eq, flags);
                guard(there, load(base, 0, 4).with(Op::And, 0xf_ffff))
            }
            Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => self.transport(field, view, 0, 2),
            Field::TcpDst | Field::UdpDst | Field::SctpDst => self.transport(field, view, 2, 2),
            Field::TcpFlags => {
                // P24 hides ports; flags of a first fragment are seen.
                let flags = self.transport(field, View::Action, 12, 2);
                flags.with(Op::And, 0xfff)
            }
            Field::IcmpType | Field::Icmpv6Type => self.transport(field, view, 0, 1),
            Field::IcmpCode | Field::Icmpv6Code => self.transport(field, view, 1, 1),
            Field::FrameLen => Expr::Len,
            Field::Vlan2Tci => word(self.l2(), 48, 0xffff),
            Field::Vlan2Vid => word(self.l2(), 48, 0xfff),
            Field::Vlan2Pcp => word(self.l2(), 61, 7),
            Field::IpValid => word(self.l3(), 42, 1),
            Field::Ipv4Ihl => self.address(L3::ADDRESSES, 0, 1).with(Op::And, 15),
            Field::Ipv4Len => self.address(L3::ADDRESSES, 2, 2),
            Field::Ipv4Id => self.address(L3::ADDRESSES, 4, 2),
            Field::Ipv6Len => self.address(L3::ADDRESSES | L3::V6, 4, 2),
            Field::TcpSeq => self.transport(field, view, 4, 4),
            Field::TcpAck => self.transport(field, view, 8, 4),
            Field::TcpWindow => self.transport(field, view, 14, 2),
            Field::UdpLen => self.transport(field, view, 4, 2),
            Field::NdTarget => self.nd(field, view, 0, if from == 0 { 8 } else { 0 }, 8),
            Field::NdSll => self.nd(field, view, 16, 0, 6),
            Field::NdTll => self.nd(field, view, 32, 0, 6),
        }
    }

    /// Whether an ARP header can be read.
    pub(super) fn arp_there(&mut self) -> Value {
        self.hold(Held::Arp, |site| Expr::Arp(site.l2()))
    }

    fn arp(&mut self, field: Field) -> Expr {
        let there = Expr::Value(self.arp_there());
        let base = self.l3_offset();
        let (offset, bytes) = match field {
            Field::ArpOp => (6, 2),
            Field::ArpSha => (8, 6),
            Field::ArpSpa => (14, 4),
            Field::ArpTha => (18, 6),
            _ => (24, 4),
        };
        let value = Expr::Load { base, offset, bytes };
        if field != Field::ArpOp {
            return guard(there, value);
        }
        // P26: above 255 it reads 0.
        let op = self.fresh.value();
        self.out.push(Stmt::Let(op, guard(there, value)));
        guard(Expr::Value(op).with(Op::Le, 255), Expr::Value(op))
    }

    /// A field of neighbour discovery, whose offset stands `shift` bits up in the word.
    fn nd(&mut self, field: Field, view: View, shift: u64, offset: u16, bytes: u8) -> Expr {
        let at = self.hold(Held::NdField(field, view), |site| {
            let word = site.hold(Held::Nd(view), |site| {
                let flag = if view == View::Table { L4::MATCHES } else { L4::ACTIONS };
                guard(Expr::Value(site.l4()).with(Op::And, flag), Expr::Nd(site.l3()))
            });
            Expr::Value(word).with(Op::Shr, shift).with(Op::And, 0xffff)
        });
        guard(Expr::Value(at).with(Op::Ne, 0), Expr::Load { base: Base::At(at), offset, bytes })
    }

    /// TTL, DSCP, ECN: in one place in IPv4, in another in IPv6.
    fn ip_byte(&mut self, field: Field) -> Expr {
        let base = self.l3_offset();
        let l3 = Expr::Value(self.l3());
        let v4 = l3.clone().with(Op::And, L3::REST | L3::V6).with(Op::Eq, L3::REST);
        let v6 = l3.with(Op::And, L3::REST | L3::V6).with(Op::Eq, L3::REST | L3::V6);
        let load = |offset: u16, bytes: u8| Expr::Load { base, offset, bytes };
        let (of_v4, of_v6) = match field {
            Field::IpTtl => (load(8, 1), load(7, 1)),
            Field::IpDscp => (load(1, 1).with(Op::Shr, 2), load(0, 2).with(Op::Shr, 6).with(Op::And, 0x3f)),
            _ => (load(1, 1).with(Op::And, 3), load(0, 2).with(Op::Shr, 4).with(Op::And, 3)),
        };
        let eth_type = Read { place: Place::field(Field::EthType), view: View::Table };
        match self.facts.constant(&eth_type) {
            Some(0x0800) => guard(v4, of_v4),
            Some(_) => guard(v6, of_v6),
            None => guard(v4, of_v4).op(Op::Or, guard(v6, of_v6)),
        }
    }

    fn address(&mut self, flags: u64, offset: u16, bytes: u8) -> Expr {
        let base = self.l3_offset();
        let l3 = Expr::Value(self.l3());
        let there = l3.with(Op::And, L3::ADDRESSES | L3::V6).with(Op::Eq, flags);
        guard(there, Expr::Load { base, offset, bytes })
    }

    /// A field of a transport header. A table that reads one has tested the protocol beside it; an action may not have.
    fn transport(&mut self, field: Field, view: View, offset: u16, bytes: u8) -> Expr {
        let base = self.l4_offset();
        let flag = if view == View::Table { L4::MATCHES } else { L4::ACTIONS };
        let mut there = Expr::Value(self.l4()).with(Op::And, flag);
        let proto = match field.header() {
            Some(Header::Tcp) => proto::TCP,
            Some(Header::Udp) => proto::UDP,
            Some(Header::Sctp) => proto::SCTP,
            Some(Header::Icmp) => proto::ICMP,
            _ => proto::ICMPV6,
        };
        let read = Read { place: Place::field(Field::IpProto), view: View::Table };
        if view == View::Action && self.facts.constant(&read) != Some(u128::from(proto)) {
            let of = Expr::Value(self.l3()).with(Op::Shr, 32).with(Op::And, 0xff);
            there = there.with(Op::Ne, 0).op(Op::And, of.with(Op::Eq, u64::from(proto)));
        }
        // Where the protocol is known, the header is nearly always whole.
        match self.facts.constant(&read) {
            None if !matches!(there, Expr::Const(_)) => Expr::LoadIf { cond: Box::new(there), base, offset, bytes },
            _ => guard(there, Expr::Load { base, offset, bytes }),
        }
    }

    /// Whether a read passes a test: 0 or 1.
    pub fn test(&mut self, read: &Read, test: &Match) -> Expr {
        let Wide { high, low } = self.read(read);
        let wide = read.place.width > 64;
        match test {
            Match::Masked { value, mask } => {
                let full = ones(read.place.width);
                let part = |word: Expr, mask: u64, full: u64, value: u64| {
                    let word = if mask == full { word } else { word.with(Op::And, mask) };
                    word.with(Op::Eq, value)
                };
                let lower = part(low, *mask as u64, full as u64, *value as u64);
                if !wide || mask >> 64 == 0 {
                    return lower;
                }
                let upper = part(high, (mask >> 64) as u64, (full >> 64) as u64, (value >> 64) as u64);
                if *mask as u64 == 0 { upper } else { upper.op(Op::And, lower) }
            }
            Match::Range { low: from, high: to } => within(&high, &low, wide, *from, *to, ones(read.place.width)),
            Match::In(ranges) => ranges.iter().fold(Expr::Const(0), |any, &(from, to)| {
                any.op(Op::Or, within(&high, &low, wide, from, to, ones(read.place.width)))
            }),
        }
    }
}

/// `from <= value <= to`.
fn within(high: &Expr, low: &Expr, wide: bool, from: u128, to: u128, full: u128) -> Expr {
    if from == to {
        let lower = low.clone().with(Op::Eq, from as u64);
        return if wide { high.clone().with(Op::Eq, (from >> 64) as u64).op(Op::And, lower) } else { lower };
    }
    // value <= bound, and bound <= value, on words or pairs of words.
    let at_most = |bound: u128| {
        let lower = low.clone().with(Op::Le, bound as u64);
        if !wide {
            return lower;
        }
        let bound = (bound >> 64) as u64;
        let less = high.clone().with(Op::Lt, bound);
        less.op(Op::Or, high.clone().with(Op::Eq, bound).op(Op::And, lower))
    };
    let at_least = |bound: u128| {
        let lower = Expr::Const(bound as u64).op(Op::Le, low.clone());
        if !wide {
            return lower;
        }
        let bound = Expr::Const((bound >> 64) as u64);
        let more = bound.clone().op(Op::Lt, high.clone());
        more.op(Op::Or, bound.op(Op::Eq, high.clone()).op(Op::And, lower))
    };
    match (from, to) {
        (0, to) if to >= full => Expr::Const(1),
        (0, to) => at_most(to),
        (from, to) if to >= full => at_least(from),
        (from, to) => at_least(from).op(Op::And, at_most(to)),
    }
}

pub(super) fn guard(cond: Expr, value: Expr) -> Expr {
    match cond {
        Expr::Const(0) => Expr::Const(0),
        Expr::Const(_) => value,
        cond => Expr::Guard(Box::new(cond), Box::new(value)),
    }
}

/// `width` bits above the lowest `below` bits.
pub fn slice(whole: Wide, below: u32, width: u8) -> Wide {
    let mask = ones(width);
    let (low, high) = match below {
        0 => (whole.low, whole.high),
        1..64 => {
            let from_high = whole.high.clone().with(Op::Shl, u64::from(64 - below));
            (
                whole.low.with(Op::Shr, u64::from(below)).op(Op::Or, from_high),
                whole.high.with(Op::Shr, u64::from(below)),
            )
        }
        _ => (whole.high.with(Op::Shr, u64::from(below - 64)), Expr::Const(0)),
    };
    Wide { high: high.with(Op::And, (mask >> 64) as u64), low: low.with(Op::And, mask as u64) }
}

/// A slice of the metadata: words are numbered from 0, bits of a word from the most significant.
fn meta(offset: u16, width: u8) -> Wide {
    let (word, bit) = (offset / 64, u32::from(offset % 64));
    if bit + u32::from(width) <= 64 {
        let low = Expr::Var(word).with(Op::Shr, u64::from(64 - bit - u32::from(width)));
        return Wide::narrow(low.with(Op::And, ones(width) as u64));
    }
    let pair = Wide { high: Expr::Var(word), low: Expr::Var(word + 1) };
    slice(pair, 128 - bit - u32::from(width), width)
}

/// Headers that a program parses beyond Ethernet: used to say how deep it looks.
pub fn parses_ip(header: Option<Header>) -> bool {
    !matches!(header, None | Some(Header::Eth | Header::Vlan))
}
