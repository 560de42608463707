//! The action of `telemetry.pipe`. A stamp is the hop (2 bytes) and the burst's time (8 bytes), behind the UDP header.

use pipec_abi::external::{Flow, Packet};

/// Where UDP over IPv4 without options begins.
const UDP: usize = 14 + 20;

pub fn stamp(packet: &mut Packet<'_>, hop: u16) -> Flow {
    let now = packet.now_ns().to_be_bytes();
    let Some(udp) = packet.bytes_mut().get_mut(UDP..) else { return Flow::Drop };
    let [_, _, _, _, high, low, check_high, check_low, room @ ..] = udp else { return Flow::Drop };
    let len = usize::from(u16::from_be_bytes([*high, *low]));
    if len < 8 + 10 || room.len() < 10 {
        return Flow::Drop;
    }
    room[..2].copy_from_slice(&hop.to_be_bytes());
    room[2..10].copy_from_slice(&now);
    (*check_high, *check_low) = (0, 0); // There is none (RFC 768).
    Flow::Continue
}
