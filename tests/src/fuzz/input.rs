//! Bytes as numbers and frames. Random bytes are hardly ever a packet that anything believes, so frames can begin as
//! well-formed ones or as replies to the frame before, be changed in a few places, and have their checksums put right.

use std::sync::LazyLock;

use pipec_compiler::packet::parse_packet;
use pipec_compiler::source::Sources;

use crate::engines::Arrival;
use crate::frames::checksum;

/// Frames of one input at the most.
const MOST_FRAMES: usize = 96;

/// Frames to begin with.
static FRAMES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let texts = [
        "p: ipv4() / tcp(src = 1000, dst = 80, flags = syn, seq = 100)",
        "p: ipv4() / tcp(src = 1000, dst = 80, flags = ack, seq = 101, ack = 1) / \"data\"",
        "p: ipv4() / tcp(src = 1000, dst = 80, flags = fin|ack, seq = 101, ack = 1)",
        "p: ipv4() / tcp(src = 1000, dst = 80, flags = rst, seq = 101)",
        "p: ipv4() / udp(src = 1000, dst = 53) / \"data\"",
        "p: ipv4() / icmp()",
        "p: ipv4() / icmp(type = 3, code = 3) / ipv4(src = 192.0.2.2, dst = 192.0.2.1) / udp(src = 53, dst = 1000) / \"data\"",
        "p: ipv4(mf = 1) / udp()",
        "p: ipv4() / sctp()",
        "p: ipv6() / tcp(src = 1000, dst = 80, flags = syn, seq = 100)",
        "p: ipv6() / udp(src = 1000, dst = 53) / \"data\"",
        "p: ipv6() / icmpv6()",
        "p: vlan(vid = 10) / ipv4() / udp()",
        "p: vlan(vid = 10, tpid = 0x88a8) / vlan(vid = 20) / ipv4() / udp()",
        "p: arp()",
    ];
    let frame = |text: &&str| parse_packet(&mut Sources::default(), text).map(|(_, frame)| frame);
    texts.iter().filter_map(|text| frame(text).ok()).collect()
});

/// Bytes that are read from the front.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next byte; 0 where there is none.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// At most `n` bytes.
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// All that is left, as frames that arrive at `ports` ports.
    pub fn arrivals(&mut self, ports: u16) -> Vec<Arrival> {
        let mut now_ns = 1_000_000_000_000;
        let mut arrivals: Vec<Arrival> = vec![(now_ns, vec![])];
        let mut before = vec![];
        for _ in 0..MOST_FRAMES {
            if self.0.is_empty() {
                break;
            }
            let how = self.byte();
            if how & 0x80 != 0 {
                // From milliseconds to days.
                now_ns += 1_000_000 << (self.byte() % 28);
                arrivals.push((now_ns, vec![]));
            }
            let frame = self.frame(how, &before);
            before.clone_from(&frame);
            if let Some((_, frames)) = arrivals.last_mut() {
                frames.push((u16::from(how & 3) % ports, frame));
            }
        }
        arrivals
    }

    /// One frame, made as bits 2 to 4 of `how` say.
    fn frame(&mut self, how: u8, before: &[u8]) -> Vec<u8> {
        let mut frame = match how >> 2 & 3 {
            0 => {
                let len = self.byte();
                return self.take(usize::from(len)).to_vec();
            }
            1 => before.to_vec(),
            2 => reply(before),
            _ => FRAMES[usize::from(self.byte()) % FRAMES.len()].clone(),
        };
        for _ in 0..how >> 5 & 3 {
            let (at, value) = (usize::from(self.byte()), self.byte());
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        if how & 0x10 == 0 {
            repair(&mut frame);
        }
        frame
    }
}

/// Where IP begins, and its Ethernet type.
fn ip(frame: &[u8]) -> Option<(usize, u16)> {
    let mut at = 12;
    loop {
        let eth_type = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
        match eth_type {
            0x8100 | 0x88a8 if at < 20 => at += 4,
            0x0800 | 0x86dd => return Some((at + 2, eth_type)),
            _ => return None,
        }
    }
}

/// Where the transport header begins and the packet ends, its protocol, and the sum over the pseudo header.
fn transport(frame: &[u8]) -> Option<(usize, usize, u8, u32)> {
    let (at, eth_type) = ip(frame)?;
    let header = frame.get(at..at + 20)?;
    let word = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
    let (start, end, protocol, addresses) = match eth_type {
        0x0800 => (at + usize::from(header[0] & 15) * 4, at + word(2), header[9], at + 12..at + 20),
        _ => (at + 40, at + 40 + word(4), header[6], at + 8..at + 40),
    };
    let len = end.checked_sub(start)?;
    let sum = frame.get(addresses)?.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
    (end <= frame.len()).then_some((start, end, protocol, sum + len as u32 + u32::from(protocol)))
}

/// The frame that answers this one.
fn reply(frame: &[u8]) -> Vec<u8> {
    let mut answer = frame.to_vec();
    let mut swap = |a: usize, b: usize, len: usize| {
        if b + len <= frame.len() {
            answer[a..a + len].copy_from_slice(&frame[b..b + len]);
            answer[b..b + len].copy_from_slice(&frame[a..a + len]);
        }
    };
    swap(0, 6, 6);
    match ip(frame) {
        Some((at, 0x0800)) => swap(at + 12, at + 16, 4),
        Some((at, _)) => swap(at + 8, at + 24, 16),
        None => {}
    }
    let Some((at, end, protocol, _)) = transport(frame) else { return answer };
    if matches!(protocol, 6 | 17 | 132) {
        swap(at, at + 2, 2);
    }
    match (protocol, frame.get(at..end)) {
        (1, Some([8, ..])) => answer[at] = 0,
        (58, Some([128, ..])) => answer[at] = 129,
        (6, Some(tcp)) if tcp.len() >= 20 => {
            let word = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
            let data = tcp.len().saturating_sub(usize::from(tcp[12] >> 4) * 4) as u32;
            let ack = word(4).wrapping_add(data + u32::from(tcp[13] & 3 != 0));
            answer[at + 4..at + 8].copy_from_slice(&word(8).to_be_bytes());
            answer[at + 8..at + 12].copy_from_slice(&ack.to_be_bytes());
            answer[at + 13] = tcp[13] & 7 | 0x10;
        }
        _ => {}
    }
    answer
}

/// Puts the checksums of IPv4, TCP, UDP and ICMP right, where their headers are whole.
fn repair(frame: &mut [u8]) {
    if let Some((at, 0x0800)) = ip(frame) {
        let len = usize::from(frame.get(at).map_or(0, |byte| byte & 15)) * 4;
        put(frame, at, at + len, at + 10, 0);
    }
    let Some((start, end, protocol, pseudo)) = transport(frame) else { return };
    match protocol {
        1 => put(frame, start, end, start + 2, 0),
        6 => put(frame, start, end, start + 16, pseudo),
        17 => put(frame, start, end, start + 6, pseudo),
        58 => put(frame, start, end, start + 2, pseudo),
        _ => {}
    }
}

/// Writes the checksum of `start..end`, on top of a sum, to `at`.
fn put(frame: &mut [u8], start: usize, end: usize, at: usize, sum: u32) {
    if at + 2 > end || end > frame.len() {
        return;
    }
    frame[at..at + 2].fill(0);
    let sum = checksum(&frame[start..end], sum);
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_to_begin_with_have_right_checksums_and_replies() {
        assert_eq!(FRAMES.len(), 15);
        for frame in FRAMES.iter() {
            let mut repaired = frame.clone();
            repair(&mut repaired);
            assert_eq!(&repaired, frame);
            assert_ne!(&reply(frame), frame);
        }
        let udp = &FRAMES[4];
        assert_eq!(&reply(&reply(udp)), udp);
        let syn_ack = reply(&FRAMES[0]);
        assert_eq!((syn_ack[47], &syn_ack[42..46]), (0x12, &[0, 0, 0, 101][..]));
    }

    #[test]
    fn any_bytes_are_arrivals() {
        let mut bytes = vec![];
        for n in 0..2000u32 {
            bytes.push((n.wrapping_mul(2_654_435_761) >> 23) as u8);
            let arrivals = Input(&bytes).arrivals(2);
            assert!(arrivals.iter().all(|(_, frames)| frames.iter().all(|(port, _)| *port < 2)));
        }
    }
}
