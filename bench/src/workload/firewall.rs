//! The stateful firewall: streams that port 1 began, and their answers into port 2.

use super::{Content, SEED};
use crate::frames::{self, Flow, Frame, Protocol};
use crate::random::Random;

const RULES: &str = "table=0, priority=100,ct_state=-trk,ip actions=ct(table=1)
table=0, priority=10,arp actions=NORMAL
table=0, priority=1 actions=drop
table=1, ct_state=+new+trk,ip,in_port=1 actions=ct(commit),output:2
table=1, ct_state=+new+trk,ip,in_port=2 actions=drop
table=1, ct_state=+est+trk,ip,in_port=1 actions=output:2
table=1, ct_state=+est+trk,ip,in_port=2 actions=output:1
";

/// So many streams.
pub fn make(protocol: Protocol, streams: u32) -> Content {
    let flows = (0..streams).map(stream);
    let mut there: Vec<Frame> = flows.clone().map(|flow| frames::there(protocol, flow)).collect();
    let mut back: Vec<Frame> = flows.map(|flow| frames::back(protocol, flow)).collect();
    let mut random = Random::new(SEED);
    random.shuffle(&mut there);
    random.shuffle(&mut back);
    Content { rules: RULES.to_string(), frames: vec![there, back] }
}

/// The addresses and ports of stream `i`: a thousand streams to a client, 250 servers.
fn stream(i: u32) -> Flow {
    let client_port = 1024 + (i % 50_000) as u16; // below 51,024
    Flow { addresses: (0x0a00_0001 + i / 1000, 0x0a64_0001 + i % 250), ports: (client_port, 80) }
}
