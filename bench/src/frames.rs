//! Frames of 60 bytes for workloads.
//!
//! In: addresses, ports. Out: Ethernet frames with IPv4 and UDP or TCP whose checksums are right. Never: anything random.

/// A frame without FCS.
pub type Frame = [u8; 60];

/// Bytes of IPv4 and what it carries.
const IP_BYTES: u16 = 46;

/// What an IPv4 frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// IPv4 addresses: from, to.
    pub addresses: (u32, u32),
    /// Ports: from, to.
    pub ports: (u16, u16),
}

impl Flow {
    /// The other direction.
    #[must_use]
    pub fn reply(self) -> Flow {
        Flow { addresses: (self.addresses.1, self.addresses.0), ports: (self.ports.1, self.ports.0) }
    }
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// UDP without a checksum.
    Udp,
    /// A TCP segment in the middle of a connection, with six bytes of data and a valid checksum.
    Tcp,
}

/// Ethernet addresses of who is behind port 1, and of who is behind port 2.
const MACS: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];

/// A frame that port 1 receives.
pub fn there(protocol: Protocol, flow: Flow) -> Frame {
    frame(protocol, flow, [MACS[1], MACS[0]])
}

/// The frame that port 2 receives in answer.
pub fn back(protocol: Protocol, flow: Flow) -> Frame {
    frame(protocol, flow.reply(), [MACS[0], MACS[1]])
}

/// A frame with these Ethernet addresses, to and from.
fn frame(protocol: Protocol, flow: Flow, macs: [[u8; 6]; 2]) -> Frame {
    let mut frame = [0; 60];
    frame[0..12].copy_from_slice(macs.as_flattened());
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&IP_BYTES.to_be_bytes());
    frame[22] = 64;
    frame[26..30].copy_from_slice(&flow.addresses.0.to_be_bytes());
    frame[30..34].copy_from_slice(&flow.addresses.1.to_be_bytes());
    frame[34..36].copy_from_slice(&flow.ports.0.to_be_bytes());
    frame[36..38].copy_from_slice(&flow.ports.1.to_be_bytes());
    match protocol {
        Protocol::Udp => {
            frame[23] = 17;
            frame[38..40].copy_from_slice(&(IP_BYTES - 20).to_be_bytes());
        }
        Protocol::Tcp => {
            frame[23] = 6;
            frame[38..42].copy_from_slice(&1000u32.to_be_bytes()); // sequence number
            frame[42..46].copy_from_slice(&1000u32.to_be_bytes()); // acknowledgement
            frame[46..50].copy_from_slice(&[0x50, 0x10, 0xff, 0xff]); // 20 bytes of header, ACK, window
            let sum = checksum(&frame[26..60], 6 + u32::from(IP_BYTES - 20));
            frame[50..52].copy_from_slice(&sum.to_be_bytes());
        }
    }
    seal(&mut frame);
    frame
}

/// The Internet checksum (RFC 1071) of an even number of bytes, and of what was summed before.
fn checksum(bytes: &[u8], before: u32) -> u16 {
    let mut sum =
        bytes.chunks_exact(2).fold(before, |sum, pair| sum + u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

/// The frame that workloads start from: UDP from 192.168.0.1 port 1024 to 10.0.0.1 port 80.
pub fn plain() -> Frame {
    there(Protocol::Udp, Flow { addresses: (0xc0a8_0001, 0x0a00_0001), ports: (1024, 80) })
}

/// Writes the low `width` bytes of a number at byte `at`.
pub fn put(frame: &mut Frame, at: usize, width: usize, number: u64) {
    frame[at..at + width].copy_from_slice(&number.to_be_bytes()[8 - width..]);
}

/// Makes the checksum of a changed IPv4 header right again.
pub fn seal(frame: &mut Frame) {
    seal_at(frame, 14);
}

/// The same of an IPv4 header that begins at byte `at`.
fn seal_at(frame: &mut [u8], at: usize) {
    frame[at + 10..at + 12].fill(0);
    let sum = checksum(&frame[at..at + 20], 0);
    frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
}

/// An IPv4 frame in a VLAN, which takes four bytes of what it carries.
pub fn tagged(frame: &Frame, vid: u16) -> Frame {
    let mut tagged = [0; 60];
    tagged[..12].copy_from_slice(&frame[..12]);
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    tagged[14..16].copy_from_slice(&vid.to_be_bytes());
    tagged[16..].copy_from_slice(&frame[12..56]);
    put(&mut tagged, 20, 2, u64::from(IP_BYTES) - 4);
    put(&mut tagged, 42, 2, u64::from(IP_BYTES) - 24); // of UDP
    seal_at(&mut tagged, 18);
    tagged
}

/// A frame of IPv4, perhaps in a VLAN, with zeros behind what it carries, `length` bytes in all.
pub fn stretch(frame: &Frame, length: usize) -> Vec<u8> {
    let ip = if frame[12..14] == [0x81, 0] { 18 } else { 14 };
    let more = (length - frame.len()) as u16;
    let mut long = frame.to_vec();
    long.resize(length, 0);
    let mut add = |at: usize| {
        let old = u16::from_be_bytes([long[at], long[at + 1]]);
        long[at..at + 2].copy_from_slice(&(old + more).to_be_bytes());
    };
    add(ip + 2);
    match frame[ip + 9] {
        17 => add(ip + 24),
        _ => {
            // The sum is over the length too; zeros add nothing.
            let old = u16::from_be_bytes([long[ip + 36], long[ip + 37]]);
            let new = checksum(&more.to_be_bytes(), u32::from(!old));
            long[ip + 36..ip + 38].copy_from_slice(&new.to_be_bytes());
        }
    }
    seal_at(&mut long, ip);
    long
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: Flow = Flow { addresses: (0x0a00_0001, 0x0a64_0001), ports: (1024, 80) };

    #[test]
    fn checksums_are_right() {
        for protocol in [Protocol::Udp, Protocol::Tcp] {
            for frame in [there(protocol, FLOW), back(protocol, FLOW)] {
                assert_eq!(checksum(&frame[14..34], 0), 0, "of the IPv4 header");
                if protocol == Protocol::Tcp {
                    assert_eq!(checksum(&frame[26..60], 6 + 26), 0, "of the TCP segment");
                }
            }
        }
    }

    #[test]
    fn an_answer_mirrors_what_it_answers() {
        let (a, b) = (there(Protocol::Tcp, FLOW), back(Protocol::Tcp, FLOW));
        assert_eq!((&a[26..30], &a[30..34]), (&b[30..34], &b[26..30]));
        assert_eq!((&a[34..36], &a[36..38]), (&b[36..38], &b[34..36]));
        assert_eq!((&a[0..6], &a[6..12]), (&b[6..12], &b[0..6]));
    }

    #[test]
    fn longer_and_tagged_frames_are_right() {
        let tagged = tagged(&plain(), 101);
        assert_eq!(tagged[12..18], [0x81, 0, 0, 101, 8, 0]);
        assert_eq!((checksum(&tagged[18..38], 0), tagged[21], tagged[43]), (0, 42, 22));
        for frame in [there(Protocol::Udp, FLOW), there(Protocol::Tcp, FLOW)] {
            let long = stretch(&frame, 1514);
            assert_eq!((long.len(), u16::from_be_bytes([long[16], long[17]])), (1514, 1500));
            assert_eq!(checksum(&long[14..34], 0), 0);
            if frame[23] == 6 {
                assert_eq!(checksum(&long[26..], 6 + 1480), 0, "of TCP");
            } else {
                assert_eq!(u16::from_be_bytes([long[38], long[39]]), 1480, "of UDP");
            }
        }
    }

    #[test]
    fn a_changed_header_is_sealed() {
        let mut frame = plain();
        put(&mut frame, 30, 4, 0xffff_0102_0304);
        assert_eq!(frame[29..35], [1, 1, 2, 3, 4, 4], "four bytes and no more");
        seal(&mut frame);
        assert_eq!(checksum(&frame[14..34], 0), 0);
    }
}
