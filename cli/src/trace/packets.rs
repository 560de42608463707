//! The packets that `pipec trace` runs: as text on the command line, or out of a capture.

use std::path::Path;

use pipec_compiler::hir::PortId;
use pipec_compiler::packet::parse_packet;
use pipec_compiler::source::Sources;
use pipec_runtime::pcap::Capture;

use crate::failure::Failure;
use crate::messages;
use crate::program::Loaded;

/// `PORT: PACKET`, or `PORT: HEX`.
pub fn packet(loaded: &Loaded, text: &str, color: bool) -> Result<(PortId, Vec<u8>), Failure> {
    let Some((name, packet)) = text.split_once(':') else {
        let form = "expected PORT: PACKET, such as 'lan: ipv4(dst = 8.8.8.8) / udp(dst = 53)'";
        return Err(Failure::usage(format!("{text}: {form}")));
    };
    let port = find_port(loaded, name.trim())?;
    if let Some(frame) = hex(packet.trim()) {
        return Ok((port, frame));
    }
    // A port that is a number is no name in the language; another name of that length keeps the places in messages.
    let stand_in: String = name.chars().map(|c| if c.is_ascii_digit() { 'p' } else { c }).collect();
    let mut sources = Sources::default();
    let parsed = parse_packet(&mut sources, &format!("{stand_in}:{packet}"));
    let (_, frame) = parsed.map_err(|diagnostics| {
        messages::tell(&diagnostics, &sources, color);
        Failure::Told(2)
    })?;
    Ok((port, frame))
}

/// The port with a name or number.
pub fn find_port(loaded: &Loaded, name: &str) -> Result<PortId, Failure> {
    let ports = &loaded.program.ports;
    let by_name = ports.iter().position(|port| port.name == name);
    let found = by_name.or_else(|| ports.iter().position(|port| port.number.to_string() == name));
    found.map(|port| PortId(port as u16)).ok_or_else(|| {
        let names: Vec<String> = ports.iter().map(|port| format!("`{}`", port.name)).collect();
        Failure::usage(format!("there is no port `{name}` in {}; it has {}", loaded.program.name, names.join(", ")))
    })
}

/// The bytes of a frame in hexadecimal digits; they begin with an Ethernet header.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
    let whole = digits.len() >= 28 && digits.len().is_multiple_of(2);
    whole.then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Packets of a capture by their numbers, from 1: in that order, each as often as it is asked for.
pub fn captured(path: &Path, wanted: &[u64]) -> Result<Vec<Vec<u8>>, Failure> {
    let mut capture = Capture::open(path).map_err(pipec_runtime::Error::from)?;
    let last = wanted.iter().copied().max().unwrap_or(1);
    let mut frames: Vec<Vec<u8>> = vec![];
    while (frames.len() as u64) < last {
        match capture.next().transpose().map_err(pipec_runtime::Error::from)? {
            Some(packet) => frames.push(packet.frame),
            None => {
                let (path, n) = (path.display(), frames.len());
                return Err(Failure::usage(format!("--packet {last}: {path} has {n} packets; they count from 1")));
            }
        }
    }
    let frame = |number: &u64| frames.get(number.checked_sub(1)? as usize).cloned();
    let frames: Option<Vec<Vec<u8>>> = wanted.iter().map(frame).collect();
    frames.ok_or_else(|| Failure::usage("--packet 0: packets of a capture count from 1"))
}
