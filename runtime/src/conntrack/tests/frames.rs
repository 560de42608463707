//! Frames for tests, with right lengths and checksums.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::conntrack::checksum::Sum;

pub const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
pub const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
/// A router between them.
pub const R: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9));
pub const A6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));
pub const B6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
pub const R6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 9, 9));

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;
pub const URG: u8 = 32;

/// Scale 7, selective acknowledgements allowed.
pub const OPTIONS: &[u8] = &[1, 3, 3, 7, 1, 1, 4, 2];

/// The checksum of `bytes`, with a pseudo header if there are addresses.
fn checksum(bytes: &[u8], pseudo: Option<(IpAddr, IpAddr, u8)>) -> [u8; 2] {
    let mut sum = Sum::default().slice(bytes);
    if let Some((src, dst, proto)) = pseudo {
        sum = sum.number(u32::from(proto)).number(bytes.len() as u32);
        for address in [src, dst] {
            sum = match address {
                IpAddr::V4(address) => sum.four(address.octets()),
                IpAddr::V6(address) => sum.slice(&address.octets()),
            };
        }
    }
    (!sum.fold()).to_ne_bytes()
}

/// An IP packet.
pub fn ip(src: IpAddr, dst: IpAddr, proto: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = match (src, dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut header = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, proto, 0, 0];
            header[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
            header.extend(src.octets());
            header.extend(dst.octets());
            let sum = checksum(&header, None);
            header[10..12].copy_from_slice(&sum);
            header
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let mut header = vec![0x60, 0, 0, 0, 0, 0, proto, 64];
            header[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
            header.extend(src.octets());
            header.extend(dst.octets());
            header
        }
        _ => panic!("addresses of one family"),
    };
    packet.extend(payload);
    packet
}

/// A frame around an IP packet, padded to 60 bytes.
pub fn frame(packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] });
    frame.extend(packet);
    frame.resize(frame.len().max(60), 0xaa);
    frame
}

pub fn udp_bytes(src: IpAddr, dst: IpAddr, from: u16, to: u16, data: &[u8]) -> Vec<u8> {
    let mut udp = vec![0; 8];
    udp[0..2].copy_from_slice(&from.to_be_bytes());
    udp[2..4].copy_from_slice(&to.to_be_bytes());
    udp[4..6].copy_from_slice(&(8 + data.len() as u16).to_be_bytes());
    udp.extend(data);
    let sum = checksum(&udp, Some((src, dst, 17)));
    udp[6..8].copy_from_slice(&sum);
    udp
}

pub fn udp(src: IpAddr, dst: IpAddr, from: u16, to: u16) -> Vec<u8> {
    frame(&ip(src, dst, 17, &udp_bytes(src, dst, from, to, b"hello")))
}

/// One TCP segment, to be varied.
#[derive(Clone, Copy)]
pub struct Tcp<'a> {
    pub src: IpAddr,
    pub dst: IpAddr,
    pub from: u16,
    pub to: u16,
    pub flags: u8,
    pub seq: u32,
    pub ack: u32,
    pub window: u16,
    pub options: &'a [u8],
    pub len: usize,
}

impl Tcp<'_> {
    pub fn bytes(&self) -> Vec<u8> {
        let mut tcp = vec![0; 20];
        tcp[0..2].copy_from_slice(&self.from.to_be_bytes());
        tcp[2..4].copy_from_slice(&self.to.to_be_bytes());
        tcp[4..8].copy_from_slice(&self.seq.to_be_bytes());
        tcp[8..12].copy_from_slice(&self.ack.to_be_bytes());
        tcp[12] = (5 + self.options.len().div_ceil(4) as u8) << 4;
        tcp[13] = self.flags;
        tcp[14..16].copy_from_slice(&self.window.to_be_bytes());
        tcp.extend(self.options);
        tcp.resize(20 + self.options.len().next_multiple_of(4), 0);
        tcp.resize(tcp.len() + self.len, 0x55);
        let sum = checksum(&tcp, Some((self.src, self.dst, 6)));
        tcp[16..18].copy_from_slice(&sum);
        tcp
    }

    pub fn frame(&self) -> Vec<u8> {
        frame(&ip(self.src, self.dst, 6, &self.bytes()))
    }
}

/// An ICMP message of `src`'s family: type, code, the four bytes behind the checksum, and the rest.
pub fn icmp_bytes(src: IpAddr, dst: IpAddr, kind: u8, code: u8, word: [u8; 4], rest: &[u8]) -> Vec<u8> {
    let mut icmp = vec![kind, code, 0, 0];
    icmp.extend(word);
    icmp.extend(rest);
    let sum = checksum(&icmp, src.is_ipv6().then_some((src, dst, 58)));
    icmp[2..4].copy_from_slice(&sum);
    icmp
}

pub fn icmp(src: IpAddr, dst: IpAddr, kind: u8, code: u8, word: [u8; 4], rest: &[u8]) -> Vec<u8> {
    let proto = if src.is_ipv6() { 58 } else { 1 };
    frame(&ip(src, dst, proto, &icmp_bytes(src, dst, kind, code, word, rest)))
}

/// An echo request, or the answer.
pub fn echo(src: IpAddr, dst: IpAddr, id: u16, is_reply: bool) -> Vec<u8> {
    let kind = match (src.is_ipv6(), is_reply) {
        (false, false) => 8,
        (false, true) => 0,
        (true, false) => 128,
        (true, true) => 129,
    };
    let [a, b] = id.to_be_bytes();
    icmp(src, dst, kind, 0, [a, b, 0, 1], b"abcdefgh")
}

/// Puts a VLAN tag in.
pub fn tagged(frame: &[u8], vid: u16) -> Vec<u8> {
    let mut tagged = frame[..12].to_vec();
    tagged.extend([0x81, 0]);
    tagged.extend(vid.to_be_bytes());
    tagged.extend(&frame[12..]);
    tagged
}
