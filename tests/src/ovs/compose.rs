//! Frames from descriptions: `in_port(1),eth(src=…,dst=…),eth_type(0x0800),ipv4(…)` as the datapath prints keys, or
//! `in_port=1,dl_src=…,tcp,tp_dst=80` as OpenFlow does. The frames are those that Open vSwitch makes of them, to the byte:
//! 64 bytes of payload count up from 0 behind UDP, echo, and TCP without SYN, FIN and RST. What is not understood is named.

use std::net::{Ipv4Addr, Ipv6Addr};

/// What a description says of a packet.
#[derive(Clone, Debug, Default)]
pub struct Key {
    /// The port, by number or name.
    pub in_port: Option<String>,
    src: [u8; 6],
    dst: [u8; 6],
    eth_type: u16,
    /// TPID and TCI of each tag, outermost first.
    tags: Vec<(u16, u16)>,
    v4: [u32; 2],
    v6: [u128; 2],
    label: u32,
    proto: u8,
    tos: u8,
    ttl: u8,
    later: bool,
    fragment: bool,
    ports: [u16; 2],
    tcp_flags: u16,
    arp_op: u16,
    arp_hardware: [[u8; 6]; 2],
}

/// What could not be understood.
pub type Unknown = String;

impl Key {
    /// Reads either form.
    pub fn parse(text: &str) -> Result<Key, Unknown> {
        let mut key = Key::default();
        if text.contains('(') {
            key.datapath(text)?
        } else {
            key.openflow(text)?
        }
        Ok(key)
    }

    fn datapath(&mut self, text: &str) -> Result<(), Unknown> {
        for (name, value) in calls(text) {
            match name {
                "in_port" => self.in_port = Some(value.into()),
                "skb_priority" | "skb_mark" => {}
                "eth_type" => self.eth_type = number(value)? as u16,
                "encap" => self.datapath(value)?,
                "recirc_id" | "packet_type" if value.ends_with('0') => {}
                "vlan" | "eth" | "ipv4" | "ipv6" | "tcp" | "udp" | "sctp" | "icmp" | "icmpv6" | "arp" => {
                    if name == "vlan" {
                        self.tags.push((self.eth_type, 0));
                    }
                    for (field, value) in value.split(',').filter_map(|field| field.split_once('=')) {
                        self.field(&format!("{name}.{field}"), value)?;
                    }
                }
                "tcp_flags" => self.tcp_flags = flags(value)?,
                _ => return Err(name.into()),
            }
        }
        Ok(())
    }

    fn openflow(&mut self, text: &str) -> Result<(), Unknown> {
        for item in text.split([',', ' ', '\n']).filter(|item| !item.is_empty()) {
            let Some((name, value)) = item.split_once('=') else {
                (self.eth_type, self.proto) = match item {
                    "ip" => (0x0800, 0),
                    "icmp" => (0x0800, 1),
                    "tcp" => (0x0800, 6),
                    "udp" => (0x0800, 17),
                    "arp" => (0x0806, 0),
                    "ipv6" => (0x86dd, 0),
                    "icmp6" => (0x86dd, 58),
                    "tcp6" => (0x86dd, 6),
                    "udp6" => (0x86dd, 17),
                    _ => return Err(item.into()),
                };
                continue;
            };
            let field = match name {
                "in_port" => {
                    self.in_port = Some(value.into());
                    continue;
                }
                "dl_src" | "eth_src" => "eth.src",
                "dl_dst" | "eth_dst" => "eth.dst",
                "dl_type" | "eth_type" => {
                    self.eth_type = number(value)? as u16;
                    continue;
                }
                "dl_vlan" => {
                    self.tags.push((0x8100, number(value)? as u16));
                    continue;
                }
                "skb_priority" | "pkt_mark" => continue,
                "vlan_tci" if matches!(value, "0" | "0x0000") => continue,
                "nw_src" | "ip_src" if self.eth_type == 0x0806 => "arp.sip",
                "nw_dst" | "ip_dst" if self.eth_type == 0x0806 => "arp.tip",
                "nw_src" | "ip_src" => "ipv4.src",
                "nw_dst" | "ip_dst" => "ipv4.dst",
                "nw_proto" if self.eth_type == 0x0806 => "arp.op",
                "nw_proto" | "ip_proto" => "ipv4.proto",
                "nw_tos" => "ipv4.tos",
                "nw_ttl" => "ipv4.ttl",
                "nw_frag" | "ip_frag" => "ipv4.frag",
                "ipv6_src" => "ipv6.src",
                "ipv6_dst" => "ipv6.dst",
                "tp_src" | "icmp_type" | "icmpv6_type" | "tcp_src" | "udp_src" => "tcp.src",
                "tp_dst" | "icmp_code" | "icmpv6_code" | "tcp_dst" | "udp_dst" => "tcp.dst",
                "arp_spa" => "arp.sip",
                "arp_tpa" => "arp.tip",
                "arp_sha" => "arp.sha",
                "arp_tha" => "arp.tha",
                "arp_op" => "arp.op",
                _ => return Err(name.into()),
            };
            self.field(field, value)?;
        }
        Ok(())
    }

    fn field(&mut self, field: &str, value: &str) -> Result<(), Unknown> {
        let tag = || format!("{field} without a tag");
        match field {
            "eth.src" => self.src = mac(value)?,
            "eth.dst" => self.dst = mac(value)?,
            "vlan.vid" => self.tags.last_mut().ok_or_else(tag)?.1 |= number(value)? as u16,
            "vlan.pcp" => self.tags.last_mut().ok_or_else(tag)?.1 |= (number(value)? as u16) << 13,
            "ipv4.src" | "arp.sip" => self.v4[0] = ipv4(value)?,
            "ipv4.dst" | "arp.tip" => self.v4[1] = ipv4(value)?,
            "ipv6.src" => self.v6[0] = ipv6(value)?,
            "ipv6.dst" => self.v6[1] = ipv6(value)?,
            "ipv6.label" => self.label = number(value)?,
            "ipv4.proto" | "ipv6.proto" => self.proto = number(value)? as u8,
            "ipv4.tos" | "ipv6.tclass" => self.tos = number(value)? as u8,
            "ipv4.ttl" | "ipv6.hlimit" => self.ttl = number(value)? as u8,
            "ipv4.frag" | "ipv6.frag" => {
                self.fragment = value != "no";
                self.later = value == "later";
            }
            "tcp.src" | "udp.src" | "sctp.src" | "icmp.type" | "icmpv6.type" => self.ports[0] = number(value)? as u16,
            "tcp.dst" | "udp.dst" | "sctp.dst" | "icmp.code" | "icmpv6.code" => self.ports[1] = number(value)? as u16,
            "arp.op" => self.arp_op = number(value)? as u16,
            "arp.sha" => self.arp_hardware[0] = mac(value)?,
            "arp.tha" => self.arp_hardware[1] = mac(value)?,
            _ => return Err(field.into()),
        }
        Ok(())
    }

    /// The frame; with `len`, without payload and filled up with zeros to that length.
    pub fn frame(&self, len: Option<usize>) -> Vec<u8> {
        let mut frame = [self.dst, self.src].concat();
        for (tpid, tci) in &self.tags {
            frame.extend(tpid.to_be_bytes());
            frame.extend(tci.to_be_bytes());
        }
        frame.extend(self.eth_type.to_be_bytes());
        let room = len.map(|len| len.saturating_sub(frame.len()));
        match self.eth_type {
            0x0800 => frame.extend(self.ipv4_packet(room)),
            0x86dd => frame.extend(self.ipv6_packet(room)),
            0x0806 | 0x8035 => {
                frame.extend([0, 1, 8, 0, 6, 4]);
                frame.extend(self.arp_op.to_be_bytes());
                for (hardware, address) in self.arp_hardware.iter().zip(self.v4) {
                    frame.extend(hardware);
                    frame.extend(address.to_be_bytes());
                }
            }
            _ => {}
        }
        frame.resize(frame.len().max(len.unwrap_or(0)), 0);
        frame
    }

    fn ipv4_packet(&self, room: Option<usize>) -> Vec<u8> {
        let addresses = [self.v4[0].to_be_bytes(), self.v4[1].to_be_bytes()].concat();
        let segment = self.segment(1, &addresses, room.map(|room| room.saturating_sub(20)));
        let fragment: u16 = if self.fragment { 0x2000 | if self.later { 100 } else { 0 } } else { 0 };
        let mut packet = vec![0x45, self.tos];
        packet.extend((20 + segment.len() as u16).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([self.ttl, self.proto, 0, 0]);
        packet.extend(addresses);
        let checksum = checksum(&[&packet]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(segment);
        packet
    }

    fn ipv6_packet(&self, room: Option<usize>) -> Vec<u8> {
        let addresses = [self.v6[0].to_be_bytes(), self.v6[1].to_be_bytes()].concat();
        let segment = self.segment(58, &addresses, room.map(|room| room.saturating_sub(40)));
        let word = 6 << 28 | u32::from(self.tos) << 20 | self.label;
        let mut packet = word.to_be_bytes().to_vec();
        packet.extend((segment.len() as u16).to_be_bytes());
        packet.extend([self.proto, self.ttl]);
        packet.extend(addresses);
        packet.extend(segment);
        packet
    }

    /// What follows the IP header. `icmp` is the protocol number of this version's ICMP.
    fn segment(&self, icmp: u8, addresses: &[u8], room: Option<usize>) -> Vec<u8> {
        let [src, dst] = self.ports.map(u16::to_be_bytes);
        let (header, echo) = ([src, dst].concat(), matches!(self.ports[0], 0 | 8 | 128 | 129));
        let (mut segment, at, payload) = match self.proto {
            _ if self.later => (vec![], None, false),
            6 => {
                let rest = [0, 0, 0, 0, 0, 0, 0, 0, 0x50 | (self.tcp_flags >> 8) as u8, self.tcp_flags as u8];
                ([&header[..], &rest, &[0; 6]].concat(), Some(16), self.tcp_flags & 7 == 0)
            }
            17 => ([&header[..], &[0; 4]].concat(), Some(6), true),
            proto if proto == icmp => (vec![self.ports[0] as u8, self.ports[1] as u8, 0, 0, 0, 0, 0, 0], Some(2), echo),
            _ => (vec![], None, false),
        };
        match room {
            Some(room) => segment.resize(segment.len().max(room), 0),
            None if payload => segment.extend(0..64),
            None => {}
        }
        if self.proto == 17 && !self.later {
            let len = (segment.len() as u16).to_be_bytes();
            segment[4..6].copy_from_slice(&len);
        }
        if let Some(at) = at {
            let len = (segment.len() as u32).to_be_bytes();
            let pseudo = [addresses, &[0, self.proto], &len].concat();
            let with_pseudo = self.proto != 1;
            let checksum = checksum(&[if with_pseudo { &pseudo } else { &[] }, &segment]);
            segment[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        }
        segment
    }
}

/// `name(value)` items, separated by commas; parentheses nest.
fn calls(text: &str) -> Vec<(&str, &str)> {
    let mut items = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('(') {
        let mut depth = 0;
        let close = rest.char_indices().find(|(_, c)| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth == 0 && *c == ')'
        });
        let Some((close, _)) = close else { break };
        items.push((rest[..open].trim_matches([',', ' ']), &rest[open + 1..close]));
        rest = &rest[close + 1..];
    }
    items
}

fn number(text: &str) -> Result<u32, Unknown> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("number {text}"))
}

/// A number, or names joined by `|`.
fn flags(text: &str) -> Result<u16, Unknown> {
    let names = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr", "ns"];
    if text.starts_with("0x") || text == "0" {
        return number(text).map(|flags| flags as u16);
    }
    text.split('|').try_fold(0, |flags, name| {
        let bit = names.iter().position(|n| *n == name).ok_or_else(|| format!("flag {name}"))?;
        Ok(flags | 1 << bit)
    })
}

fn mac(text: &str) -> Result<[u8; 6], Unknown> {
    let bytes: Vec<u8> = text.split(':').filter_map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes.try_into().map_err(|_| format!("address {text}"))
}

fn ipv4(text: &str) -> Result<u32, Unknown> {
    text.parse::<Ipv4Addr>().map(u32::from).map_err(|_| format!("address {text}"))
}

fn ipv6(text: &str) -> Result<u128, Unknown> {
    text.parse::<Ipv6Addr>().map(u128::from).map_err(|_| format!("address {text}"))
}

fn checksum(parts: &[&[u8]]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    let mut sum: u32 = parts.iter().flat_map(|part| part.chunks(2).map(word)).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
