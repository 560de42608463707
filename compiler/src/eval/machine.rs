//! One packet's way through the tables: a stack of action lists, each with the table it belongs to.
//!
//! `call` pushes a list, `goto` replaces the one on top, the end of a list pops it. A list that began as the actions of a
//! `clone` remembers what to put back when it is popped, even after a `goto` out of it.

use std::rc::Rc;

use pipec_abi::{Burst, CtPoint, CtView, Ctx, DropReason, Emit, Env, Flow};

use super::event::Event;
use super::fields;
use super::headers::{ETHERNET, Headers};
use super::write;
use crate::field::{Field, Header};
use crate::hir::{Action, Cond, Ct, GroupId, Order, Place, PortId, Program, Read, Space, TableId, Value, View};

/// Calls and gotos that do not lead to a table further behind: so many may be nested.
const DEPTH: u32 = 64;
/// Tables that one packet may enter by call and goto, misses included.
const PASSES: u32 = 4096;

/// The packet being run and what it runs on.
pub struct Machine<'a, E: ?Sized> {
    pub program: &'a Program,
    pub first_counter: &'a [usize],
    pub env: &'a mut E,
    pub ctx: &'a mut Ctx,
    pub burst: &'a mut Burst,
    pub i: usize,
    pub trace: &'a mut dyn FnMut(Event),
    /// Whether to tell why rules do not hold.
    pub reasons: bool,
    /// What the entry gave by which the current list was taken.
    pub args: Rc<[u128]>,
}

/// An action list that is being run.
struct List<'a> {
    left: std::slice::Iter<'a, Action>,
    table: TableId,
    depth: u32,
    /// For the list of a `clone`: what to put back.
    saved: Option<Saved>,
    /// Buckets to run before the next action, the last first.
    buckets: Vec<(GroupId, usize)>,
    /// What the entry gave by which the list was taken.
    args: Rc<[u128]>,
}

impl<'a> List<'a> {
    fn new(
        left: std::slice::Iter<'a, Action>,
        table: TableId,
        depth: u32,
        saved: Option<Saved>,
        args: Rc<[u128]>,
    ) -> List<'a> {
        List { left, table, depth, saved, buckets: vec![], args }
    }
}

/// What a `clone` puts back, beside the frame.
struct Saved {
    variables: Vec<u64>,
    ct: CtView,
}

/// What comes after an action.
pub(super) enum Next<'a> {
    /// The next action of the list.
    On,
    /// Another table, then the next action.
    Call(TableId, Option<PortId>),
    /// Another table instead of the rest of the list.
    Goto(TableId),
    /// These actions on a copy, then the next action.
    Clone(&'a [Action]),
    /// These buckets of a group, each on a copy, then the next action.
    Buckets(GroupId, Vec<usize>),
    /// The list ends.
    EndList,
    /// The packet ends, or the innermost copy.
    EndPacket,
    /// The packet is given up.
    Fail(DropReason),
}

impl<'a, E: Env + ?Sized> Machine<'a, E> {
    /// Runs the packet to its end.
    pub fn packet(&mut self) {
        let i = self.i;
        self.tell(Event::Packet(i));
        self.ctx.start_packet();
        self.ctx.vars(i).fill(0);
        *self.ctx.ct(i) = CtView::CLEAR;
        if self.burst.bytes(i).len() < ETHERNET {
            self.reason(DropReason::Malformed);
        } else if let Err((reason, stack)) = self.tables() {
            // What is saved is put back first, so that nothing of this packet is left with the `Env`.
            stack.into_iter().rev().for_each(|list| self.put_back(list));
            self.env.fail(self.ctx, self.burst, i, reason);
            self.tell(Event::Failed(reason));
        }
        let verdict = self.burst.verdict(i);
        self.tell(Event::End(verdict));
    }

    /// Runs from the entry table until nothing is left; or else gives the reason to give up, and the lists that were open.
    fn tables(&mut self) -> Result<(), (DropReason, Vec<List<'a>>)> {
        let entry = self.program.entry;
        let mut passes = 0;
        let (left, args) = self.look_up(entry, 0, None);
        let mut stack = vec![List::new(left, entry, 0, None, args)];
        while let Some(list) = stack.last_mut() {
            self.args = list.args.clone();
            let next = match list.buckets.pop() {
                Some((group, bucket)) => self.bucket(group, bucket),
                None => list.left.next().map_or(Next::EndList, |action| self.action(action)),
            };
            match next {
                Next::On => {}
                Next::Call(table, in_port) => match enter(list, table, &mut passes) {
                    Ok(depth) => {
                        self.tell(Event::Call);
                        let (left, args) = self.look_up(table, depth, in_port);
                        stack.push(List::new(left, table, depth, None, args));
                    }
                    Err(reason) => return Err((reason, stack)),
                },
                Next::Goto(table) => match enter(list, table, &mut passes) {
                    Ok(depth) => {
                        (list.table, list.depth) = (table, depth);
                        (list.left, list.args) = self.look_up(table, depth, None);
                    }
                    Err(reason) => return Err((reason, stack)),
                },
                Next::Clone(actions) => {
                    let (table, depth) = (list.table, list.depth);
                    let args = list.args.clone();
                    stack.push(List::new(actions.iter(), table, depth, Some(self.save()), args));
                }
                Next::Buckets(group, buckets) => {
                    list.buckets.extend(buckets.into_iter().rev().map(|bucket| (group, bucket)));
                }
                Next::Fail(reason) => return Err((reason, stack)),
                Next::EndList => {
                    let called = list.saved.is_none();
                    stack.pop().into_iter().for_each(|list| self.put_back(list));
                    if called && !stack.is_empty() {
                        self.tell(Event::Return);
                    }
                }
                Next::EndPacket => {
                    while let Some(list) = stack.pop() {
                        let was_clone = list.saved.is_some();
                        self.put_back(list);
                        if was_clone {
                            break;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The actions of the rule that the packet takes, none if it takes no rule; with the arguments of its entry.
    fn look_up(
        &mut self,
        table: TableId,
        depth: u32,
        in_port: Option<PortId>,
    ) -> (std::slice::Iter<'a, Action>, Rc<[u128]>) {
        self.tell(Event::Table { table, depth, in_port });
        let rules = &self.program.table(table).rules;
        let headers = self.headers();
        let (rule, args) = match &self.program.table(table).keyed {
            Some(keyed) => self.entry(table, keyed, &headers, in_port),
            None => (rules.iter().position(|rule| self.cond(&rule.cond, &headers, in_port)), Rc::default()),
        };
        if self.reasons {
            self.give_reasons(table, rule, &headers, in_port);
        }
        let counter = self.first_counter[usize::from(table.0)] + rule.unwrap_or(rules.len());
        self.ctx.count(counter, self.burst.frame_len(self.i));
        let Some(rule) = rule else {
            self.tell(Event::Miss(table));
            self.reason(DropReason::NoMatch);
            return ([].iter(), args);
        };
        self.tell(Event::Rule(table, rule));
        if rules[rule].actions.is_empty() {
            self.reason(DropReason::Policy);
        }
        (rules[rule].actions.iter(), args)
    }

    pub(super) fn cond(&mut self, cond: &Cond, headers: &Headers, in_port: Option<PortId>) -> bool {
        match cond {
            Cond::True => true,
            Cond::Has(Header::Declared(header)) => self.declared(*header, headers).is_some(),
            Cond::Has(header) => headers.has(*header),
            Cond::Compare(read, test) => fields::holds(self.read(*read, headers, in_port), test),
            Cond::Not(cond) => !self.cond(cond, headers, in_port),
            Cond::All(conds) => conds.iter().all(|cond| self.cond(cond, headers, in_port)),
            Cond::Any(conds) => conds.iter().any(|cond| self.cond(cond, headers, in_port)),
            Cond::CompareTo(left, order, right) => {
                let (left, right) = (self.read(*left, headers, in_port), self.read(*right, headers, in_port));
                match order {
                    Order::Equal => left == right,
                    Order::Less => left < right,
                    Order::AtMost => left <= right,
                }
            }
        }
    }

    fn action(&mut self, action: &'a Action) -> Next<'a> {
        let own_port = self.burst.in_port(self.i);
        match action {
            Action::Output(port) => self.output(*port, None),
            Action::InPort => {
                self.tell(Event::InPort(PortId(own_port)));
                self.env.emit(self.ctx, self.burst, self.i, own_port, Emit::Copy);
            }
            Action::Flood => {
                self.tell(Event::Flood);
                self.env.flood(self.ctx, self.burst, self.i, own_port, Emit::Copy);
            }
            // No port can be kept from flooding yet, so that all ports are those that flood.
            Action::All => {
                self.tell(Event::All);
                self.env.flood(self.ctx, self.burst, self.i, own_port, Emit::Copy);
            }
            Action::Normal => {
                self.tell(Event::Normal);
                self.env.normal(self.ctx, self.burst, self.i, own_port, Emit::Copy);
            }
            Action::Drop => {
                self.reason(DropReason::Policy);
                return Next::EndPacket;
            }
            Action::Set { place, value } => self.set(*place, value),
            Action::DecTtl => return self.dec_ttl(),
            Action::Ct(ct) => self.track(ct),
            Action::CtClear => {
                *self.ctx.ct(self.i) = CtView::CLEAR;
                self.tell(Event::CtClear);
            }
            Action::Extern { action, args } => {
                let words: Vec<u64> = args.iter().map(|arg| self.value(arg) as u64).collect();
                let flow = self.ctx.external(usize::from(*action), self.burst, self.i, &words);
                self.tell(Event::Extern { action: *action, flow });
                if flow == Flow::Drop {
                    self.reason(DropReason::Policy);
                    return Next::EndPacket;
                }
            }
            Action::Learn(learn) => self.learn(learn),
            Action::Call { table, in_port } => return Next::Call(*table, *in_port),
            Action::Goto(table) => return Next::Goto(*table),
            Action::Clone(actions) => return Next::Clone(actions),
            Action::Exit => {
                self.tell(Event::Exit);
                return Next::EndPacket;
            }
            Action::OutputTo(number) => self.output_to(number, None),
            Action::OutputPart { port, max_len } => self.output_to(port, Some(*max_len)),
            Action::Mirror(port) => {
                self.tell(Event::Mirror(*port));
                self.env.emit(self.ctx, self.burst, self.i, port.0, Emit::Copy);
            }
            Action::Controller { reason, max_len } => {
                self.tell(Event::Controller(*reason, *max_len));
                self.env.controller(self.ctx, self.burst, self.i, *reason, *max_len);
            }
            Action::Count(counter) => {
                self.ctx.count(usize::from(counter.0), self.burst.frame_len(self.i));
                self.tell(Event::Count(*counter));
            }
            Action::Group(group) => return self.group(*group),
            Action::Meter(meter) => {
                let passes = self.env.meter(self.ctx, self.burst, self.i, meter.0);
                self.tell(Event::Meter(*meter, passes));
                if !passes {
                    self.reason(DropReason::Meter);
                    return Next::EndPacket;
                }
            }
            Action::DecMplsTtl { header } => return self.dec_mpls_ttl(*header),
            shape => {
                if let Err(reason) = self.shape(shape) {
                    return Next::Fail(reason);
                }
            }
        }
        Next::On
    }

    pub(super) fn set(&mut self, place: Place, value: &Value) {
        let value = self.value(value);
        let before = self.place(place);
        match place.space {
            Space::Header(header) => self.set_declared(header, place, value),
            Space::Meta => fields::set_metadata(self.ctx.vars(self.i), place.offset, place.width, value),
            Space::Field(field) => {
                let whole = self.place(Place::field(field));
                let whole = fields::replace(whole, field.width(), place.offset, place.width, value);
                let headers = self.headers();
                write::write(self.burst.bytes_mut(self.i), &headers, field, whole);
            }
        }
        let after = self.place(place);
        self.tell(Event::Set { place, value, before, after });
    }

    fn dec_ttl(&mut self) -> Next<'a> {
        let headers = self.headers();
        if !headers.has(Header::IpAny) {
            self.tell(Event::DecTtl(None));
            return Next::On;
        }
        // A malformed header reads 0.
        let ttl = headers.read(self.burst.bytes(self.i), Field::IpTtl, View::Action) as u8;
        if ttl <= 1 {
            self.tell(Event::Expired);
            self.reason(DropReason::Ttl);
            return Next::EndList;
        }
        write::write_ttl(self.burst.bytes_mut(self.i), &headers, ttl - 1);
        self.tell(Event::DecTtl(Some(ttl - 1)));
        Next::On
    }

    fn track(&mut self, ct: &Ct) {
        let zone = self.value(&ct.zone) as u16;
        let mut point = CtPoint { flags: CtPoint::FRESH, ..CtPoint::default() };
        if ct.commit {
            point.flags |= CtPoint::COMMIT;
        }
        if ct.force {
            point.flags |= CtPoint::FORCE;
        }
        if let Some((mark, mask)) = ct.mark {
            (point.mark, point.mark_mask) = (mark, mask);
        }
        if let Some((label, mask)) = ct.label {
            (point.label, point.label_mask) = (halves(label), halves(mask));
        }
        self.env.ct(self.ctx, self.burst, self.i, &point, zone);
        let view = *self.ctx.ct(self.i);
        self.tell(Event::Ct { point, zone, view });
    }

    pub(super) fn value(&mut self, value: &Value) -> u128 {
        match value {
            Value::Param(k) => self.args.get(usize::from(*k)).copied().unwrap_or(0),
            Value::Const(value) => *value,
            Value::Read(place) => self.place(*place),
            Value::Arith(op, left, right) => {
                let (left, right) = (self.value(left) as u64, self.value(right) as u64);
                u128::from(fields::arith(*op, left, right))
            }
            Value::Hash(values) => u128::from(self.hash(values)),
        }
    }

    /// What an action reads.
    pub(super) fn place(&mut self, place: Place) -> u128 {
        let headers = self.headers();
        self.read(Read { place, view: View::Action }, &headers, None)
    }

    pub(super) fn read(&mut self, read: Read, headers: &Headers, in_port: Option<PortId>) -> u128 {
        let Place { space, offset, width } = read.place;
        let field = match space {
            Space::Field(field) => field,
            Space::Meta => return fields::metadata(self.ctx.vars(self.i), offset, width),
            Space::Header(header) => return self.declared_bits(header, offset, width, headers),
        };
        let ct = *self.ctx.ct(self.i);
        let whole = match field {
            Field::InPort | Field::InPortNumber => {
                let overridden = in_port.filter(|_| read.view == View::Table);
                let port = overridden.map_or(self.burst.in_port(self.i), |port| port.0);
                u128::from(if field == Field::InPort { port } else { self.number_of(port) })
            }
            Field::CtState => u128::from(ct.state),
            Field::CtZone => u128::from(ct.zone),
            Field::CtMark => u128::from(ct.mark),
            Field::CtLabel => u128::from(ct.label[0]) << 64 | u128::from(ct.label[1]),
            _ => headers.read(self.burst.bytes(self.i), field, read.view),
        };
        fields::slice(whole, field.width(), offset, width)
    }

    pub(super) fn headers(&self) -> Headers {
        Headers::parse(self.burst.bytes(self.i), self.program.options.vlan_limit)
    }

    fn save(&mut self) -> Saved {
        self.tell(Event::Clone);
        self.env.save(self.ctx, self.burst, self.i);
        Saved { variables: self.ctx.vars(self.i).to_vec(), ct: *self.ctx.ct(self.i) }
    }

    /// Puts back what a list saved, if it did.
    fn put_back(&mut self, list: List<'a>) {
        if let Some(saved) = list.saved {
            self.env.restore(self.ctx, self.burst, self.i);
            self.ctx.vars(self.i).copy_from_slice(&saved.variables);
            *self.ctx.ct(self.i) = saved.ct;
            self.tell(Event::CloneEnd);
        }
    }

    /// The packet is dropped under this reason, if it has no output and no other reason comes later.
    pub(super) fn reason(&mut self, reason: DropReason) {
        self.burst.drop_if_unsent(self.i, reason);
        self.tell(Event::Reason(reason));
    }

    pub(super) fn tell(&mut self, event: Event) {
        (self.trace)(event);
    }
}

/// How deep a list that goes on in `table` is, if the packet may enter it.
fn enter(list: &List<'_>, table: TableId, passes: &mut u32) -> Result<u32, DropReason> {
    let depth = list.depth + u32::from(table <= list.table);
    if depth > DEPTH {
        return Err(DropReason::Depth);
    }
    if *passes == PASSES {
        return Err(DropReason::Resubmits);
    }
    *passes += 1;
    Ok(depth)
}

fn halves(value: u128) -> [u64; 2] {
    [(value >> 64) as u64, value as u64]
}
