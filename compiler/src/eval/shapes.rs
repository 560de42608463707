//! Actions that put headers on a frame and take them off.

use pipec_abi::{DropReason, Env};

use super::declared::put_bits;
use super::event::Event;
use super::headers::{Frag, Headers, be16};
use super::machine::{Machine, Next};
use super::write;
use crate::field::{Field, Header};
use crate::hir::{Action, Encap, HeaderField, Inside, Place, Space, Tunnel, Value};

/// Labels of MPLS that are looked at, at the most (P8).
const LABELS: usize = 3;

impl<'a, E: Env + ?Sized> Machine<'a, E> {
    /// Does one of these actions; or else says why the packet is given up.
    pub fn shape(&mut self, action: &'a Action) -> Result<(), DropReason> {
        let before = self.burst.bytes(self.i).len() as i64;
        let (header, mut values) = self.written(action);
        let name = match action {
            Action::Push { header, values } => {
                self.push(*header, values)?;
                "push"
            }
            Action::Pop { header } => {
                self.pop(*header);
                "pop"
            }
            Action::PushVlan { tpid, tci } => {
                let tci = self.value(tci);
                self.push_tag(u128::from(*tpid), tci)?;
                "push vlan"
            }
            Action::PopVlan => {
                if self.headers().tci.is_some() {
                    self.take_out(12, 4);
                }
                "pop vlan"
            }
            Action::Truncate(max) => {
                let (max, len) = (usize::from(*max), self.burst.bytes(self.i).len());
                if len > max {
                    self.take_out(max, len - max);
                }
                "truncate"
            }
            Action::SetVlan { place, value } => {
                self.set_vlan(*place, value)?;
                "set vlan"
            }
            Action::PushMpls { eth_type, values } => {
                let values: Vec<_> = values.iter().map(|(place, value)| (*place, self.value(value))).collect();
                self.push_label(*eth_type)?;
                for (place, value) in values {
                    self.set(place, &Value::Const(value));
                }
                "push mpls"
            }
            Action::PopMpls { eth_type } => {
                self.pop_label(*eth_type)?;
                "pop mpls"
            }
            Action::Encap(encap) => {
                self.encap(encap)?;
                "encap"
            }
            Action::Decap { tunnel, header } => {
                self.decap(*tunnel, *header)?;
                "decap"
            }
            _ => return Ok(()),
        };
        let after = self.burst.bytes(self.i).len() as i64;
        if let Action::Encap(_) = action {
            values = self.outermost();
        }
        self.tell(Event::Reshape { action: name, header, values: values.into(), more: after - before });
        Ok(())
    }

    /// The declared header that an action is about, and the fields that it writes.
    fn written(&mut self, action: &Action) -> (Option<u16>, Vec<(Place, u128)>) {
        match action {
            Action::Push { header, values } => {
                (Some(*header), values.iter().map(|(place, value)| (*place, self.value(value))).collect())
            }
            Action::PushMpls { values, .. } => {
                (None, values.iter().map(|(place, value)| (*place, self.value(value))).collect())
            }
            Action::PushVlan { tci, .. } => (None, vec![(Place::field(Field::VlanTci), self.value(tci))]),
            Action::Pop { header } | Action::Decap { header, .. } => (Some(*header), vec![]),
            _ => (None, vec![]),
        }
    }

    /// What the headers say that stand in front of a packet now, as far as tunnels differ by it.
    fn outermost(&mut self) -> Vec<(Place, u128)> {
        const SHOWN: [Field; 8] = [
            Field::EthSrc,
            Field::EthDst,
            Field::Ipv4Src,
            Field::Ipv4Dst,
            Field::Ipv6Src,
            Field::Ipv6Dst,
            Field::UdpSrc,
            Field::UdpDst,
        ];
        let headers = self.headers();
        let there = |field: &Field| field.header().is_some_and(|header| headers.has(header));
        let mut places: Vec<Place> = SHOWN.into_iter().filter(there).map(Place::field).collect();
        let program = self.program;
        for (index, declared) in (0..).zip(&program.headers) {
            if self.declared(index, &headers).is_some() {
                let place = |field: &HeaderField| Place {
                    space: Space::Header(index),
                    offset: field.offset,
                    width: field.width,
                };
                places.extend(declared.fields.iter().map(place));
            }
        }
        places.into_iter().map(|place| (place, self.place(place))).collect()
    }

    pub fn dec_mpls_ttl(&mut self, header: u16) -> Next<'a> {
        let headers = self.headers();
        let Some((start, _)) = self.declared(header, &headers) else {
            self.tell(Event::Reshape { action: "dec_mpls_ttl", header: Some(header), values: [].into(), more: 0 });
            return Next::On;
        };
        let ttl = self.burst.bytes(self.i)[start + 3];
        if ttl < 2 {
            self.tell(Event::Expired);
            self.reason(DropReason::Ttl);
            return Next::EndList;
        }
        let place = Place { space: Space::Header(header), offset: 24, width: 8 };
        self.set(place, &Value::Const(u128::from(ttl - 1)));
        Next::On
    }

    fn put_in(&mut self, at: usize, n: usize) -> Result<(), DropReason> {
        if self.env.grow(self.ctx, self.burst, self.i, at, n) { Ok(()) } else { Err(DropReason::NoRoom) }
    }

    fn take_out(&mut self, at: usize, n: usize) {
        self.env.shrink(self.ctx, self.burst, self.i, at, n);
    }

    fn put(&mut self, at: usize, bytes: usize, value: u128) {
        write::put(self.burst.bytes_mut(self.i), at, bytes, value);
    }

    fn push(&mut self, header: u16, values: &'a [(Place, Value)]) -> Result<(), DropReason> {
        let values: Vec<(Place, u128)> = values.iter().map(|(place, value)| (*place, self.value(value))).collect();
        let headers = self.headers();
        let program = self.program;
        let declared = &program.headers[usize::from(header)];
        let place = declared.after.iter().find_map(|after| self.behind(after.parent, &headers));
        let Some((start, _)) = place else { return Ok(()) };
        let before = self.burst.bytes(self.i).to_vec();
        self.put_in(start, declared.bytes.into())?;
        self.follow(&before, &headers, start, i64::from(declared.bytes));
        for (place, value) in values {
            self.set_bits(start, place.offset, place.width, value);
        }
        Ok(())
    }

    fn pop(&mut self, header: u16) {
        let headers = self.headers();
        let Some((start, _)) = self.declared(header, &headers) else { return };
        let bytes = self.program.headers[usize::from(header)].bytes;
        let before = self.burst.bytes(self.i).to_vec();
        self.take_out(start, bytes.into());
        self.follow(&before, &headers, start, -i64::from(bytes));
    }

    fn push_tag(&mut self, tpid: u128, tci: u128) -> Result<(), DropReason> {
        self.put_in(12, 4)?;
        self.put(12, 2, tpid);
        self.put(14, 2, tci & 0xffff);
        Ok(())
    }

    fn set_vlan(&mut self, place: Place, value: &Value) -> Result<(), DropReason> {
        if self.headers().tci.is_some() {
            self.set(place, value);
            return Ok(());
        }
        let value = self.value(value);
        let pcp = place.space == Space::Field(Field::VlanPcp);
        self.push_tag(0x8100, if pcp { value << 13 } else { value })
    }

    /// Labels of a frame, if they are at most [`LABELS`]: else that many.
    fn labels(&self, headers: &Headers) -> Vec<u32> {
        let mut labels = vec![];
        if !matches!(headers.eth_type, 0x8847 | 0x8848) {
            return labels;
        }
        for label in self.burst.bytes(self.i)[headers.l3..].chunks_exact(4).take(LABELS) {
            let label = u32::from_be_bytes([label[0], label[1], label[2], label[3]]);
            labels.push(label);
            if label & 0x100 != 0 {
                break;
            }
        }
        labels
    }

    fn push_label(&mut self, eth_type: u16) -> Result<(), DropReason> {
        let headers = self.headers();
        let frame = self.burst.bytes(self.i);
        let label = match self.labels(&headers)[..] {
            [_, _, _] => return Err(DropReason::MplsLabels),
            [outer, ..] => outer & !0x100,
            [] => {
                let read = |field| headers.read(frame, field, crate::hir::View::Action) as u32;
                let ip = headers.has(Header::IpAny);
                let ttl = if ip { read(Field::IpTtl) } else { 64 };
                let class = if ip { read(Field::IpDscp) & 7 } else { 0 };
                let null = if headers.has(Header::Ipv6) { 2 } else { 0 };
                null << 12 | class << 9 | 0x100 | ttl
            }
        };
        self.put_in(headers.l3, 4)?;
        self.put(headers.l3 - 2, 2, u128::from(eth_type));
        self.put(headers.l3, 4, u128::from(label));
        Ok(())
    }

    fn pop_label(&mut self, eth_type: u16) -> Result<(), DropReason> {
        let headers = self.headers();
        match self.labels(&headers)[..] {
            [] => return Ok(()),
            [_, _, last] if last & 0x100 == 0 => return Err(DropReason::MplsLabels),
            _ => {}
        }
        self.take_out(headers.l3, 4);
        self.put(headers.l3 - 2, 2, u128::from(eth_type));
        Ok(())
    }

    fn encap(&mut self, encap: &'a Encap) -> Result<(), DropReason> {
        let values: Vec<_> = encap.values.iter().map(|(at, width, value)| (*at, *width, self.value(value))).collect();
        let headers = self.headers();
        let frame = self.burst.bytes(self.i).to_vec();
        let mut outer = encap.bytes.clone();
        let len = outer.len();
        // What goes, and what of the rest is inside: not what pads a frame behind IP.
        let (gone, inside) = match encap.inside {
            Inside::Frame => (0, frame.len()),
            Inside::Packet { eth_type, protocol } => {
                if headers.ip.is_none() {
                    return Ok(());
                }
                if let Some(at) = eth_type {
                    write::put(&mut outer, at.into(), 2, u128::from(headers.eth_type));
                }
                if let Some(at) = protocol {
                    outer[usize::from(at)] = if headers.eth_type == 0x0800 { 4 } else { 41 };
                }
                (headers.l3, headers.rest().map_or(frame.len(), |rest| rest.end) - headers.l3)
            }
        };
        let whole = len + inside;
        let (ip, v6) = (usize::from(encap.ip.0), encap.ip.1);
        let ip_len = if v6 { whole - ip - 40 } else { whole - ip };
        write::put(&mut outer, ip + if v6 { 4 } else { 2 }, 2, ip_len as u128);
        if let Some(udp) = encap.udp {
            write::put(&mut outer, usize::from(udp) + 4, 2, (whole - usize::from(udp)) as u128);
        }
        if let Some(at) = encap.length {
            write::put(&mut outer, at.into(), 2, inside as u128);
        }
        for (at, width, value) in values {
            put_bits(&mut outer, at.into(), width, value);
        }
        let frame = [&outer, &frame[gone..]].concat();
        if len >= gone {
            self.put_in(0, len - gone)?;
        } else {
            self.take_out(0, gone - len);
        }
        let out = self.burst.bytes_mut(self.i);
        out.copy_from_slice(&frame);
        if !v6 {
            write::put(out, ip + 10, 2, 0);
            let checksum = checksum(&[&out[ip..ip + 20]]);
            write::put(out, ip + 10, 2, u128::from(checksum));
        } else if let Some(udp) = encap.udp.map(usize::from) {
            write::put(out, udp + 6, 2, 0);
            let length = (whole - udp) as u32;
            let pseudo = [&out[ip + 8..ip + 40], &length.to_be_bytes(), &[0, 0, 0, 17]].concat();
            let sum = checksum(&[&pseudo, &out[udp..whole]]);
            write::put(out, udp + 6, 2, u128::from(if sum == 0 { 0xffff } else { sum }));
        }
        Ok(())
    }

    fn decap(&mut self, tunnel: Tunnel, header: u16) -> Result<(), DropReason> {
        let headers = self.headers();
        let Some((start, end)) = self.declared(header, &headers) else { return Ok(()) };
        // A tunnel's header lies in IP, which fragments cannot hide here.
        debug_assert!(headers.rest().is_none_or(|rest| rest.frag == Frag::No));
        let Some((inside, eth_type)) = inside(&self.burst.bytes(self.i)[..end], tunnel, start) else {
            return Err(DropReason::NoInner);
        };
        let least = match eth_type {
            None => 14,
            Some(0x86dd) => 40,
            Some(_) => 20,
        };
        if inside + least > end {
            return Err(DropReason::NoInner);
        }
        match eth_type {
            None => self.take_out(0, inside),
            Some(eth_type) => {
                self.take_out(14, inside - 14);
                self.put(12, 2, u128::from(eth_type));
            }
        }
        Ok(())
    }
}

/// Where the packet in a tunnel begins, and its Ethernet type; none for a frame.
fn inside(frame: &[u8], tunnel: Tunnel, start: usize) -> Option<(usize, Option<u16>)> {
    let by_type = |at: usize| match be16(frame, at) {
        0x6558 => Some(None),
        eth_type @ (0x0800 | 0x86dd) => Some(Some(eth_type)),
        _ => None,
    };
    match tunnel {
        Tunnel::Vxlan => Some((start + 8, None)),
        Tunnel::Geneve => Some((start + 8 + usize::from(frame[start] & 0x3f) * 4, by_type(start + 2)?)),
        Tunnel::Gre => {
            let [flags, version] = [frame[start], frame[start + 1] & 7];
            if version != 0 || flags & 0x40 != 0 {
                return None;
            }
            let words = [0x80, 0x20, 0x10].iter().filter(|bit| flags & **bit != 0).count();
            Some((start + 4 + 4 * words, by_type(start + 2)?))
        }
        Tunnel::Gtpu => {
            let byte = |at: usize| frame.get(at).copied();
            let flags = frame[start];
            if frame[start + 1] != 255 {
                return None;
            }
            let mut at = start + 8;
            if flags & 7 != 0 {
                at += 4;
                let mut next = if flags & 4 != 0 { byte(at - 1)? } else { 0 };
                let mut followed = 0;
                while next != 0 {
                    let len = usize::from(byte(at)?) * 4;
                    if len == 0 || followed == 16 {
                        return None;
                    }
                    next = byte(at + len - 1)?;
                    at += len;
                    followed += 1;
                }
            }
            match byte(at)? >> 4 {
                4 => Some((at, Some(0x0800))),
                6 => Some((at, Some(0x86dd))),
                _ => None,
            }
        }
    }
}

fn checksum(pieces: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for word in pieces.iter().flat_map(|piece| piece.chunks(2)) {
        sum += u32::from(word[0]) << 8 | u32::from(word.get(1).copied().unwrap_or(0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
