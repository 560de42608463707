//! Workloads: the rules that an engine runs, and the frames that its ports receive.
//!
//! In: a name. Out: rules as `ovs-ofctl add-flows` reads them, and frames for one port or two, in an order that the seed
//! decides. Never: anything that depends on the machine.
//!
//! ```text
//! wire          port 1 ↔ port 2
//! firewall-N    the stateful firewall, both ways, N UDP streams without checksum
//! fwtcp-N       the same with N established TCP connections and valid checksums
//! ```

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use pipec_runtime::pcap::{Resolution, Writer};

use crate::Error;
use crate::frames::{self, Flow, Frame, Protocol};

/// What decides the order of frames.
const SEED: u64 = 11;
/// Streams, at most: more would not differ in their ports.
const MAX_STREAMS: u32 = 50_000_000;

const WIRE: &str = "in_port=1 actions=output:2
in_port=2 actions=output:1
";
const FIREWALL: &str = "table=0, priority=100,ct_state=-trk,ip actions=ct(table=1)
table=0, priority=10,arp actions=NORMAL
table=0, priority=1 actions=drop
table=1, ct_state=+new+trk,ip,in_port=1 actions=ct(commit),output:2
table=1, ct_state=+new+trk,ip,in_port=2 actions=drop
table=1, ct_state=+est+trk,ip,in_port=1 actions=output:2
table=1, ct_state=+est+trk,ip,in_port=2 actions=output:1
";

/// A workload. As text it is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// Two ports, each to the other.
    Wire,
    /// The stateful firewall.
    Firewall {
        /// What the streams carry.
        protocol: Protocol,
        /// How many.
        streams: u32,
    },
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(name: &str) -> Result<Workload, String> {
        let unknown = || format!("expected wire, firewall-N or fwtcp-N with N streams, found `{name}`");
        if name == "wire" {
            return Ok(Workload::Wire);
        }
        let (kind, streams) = name.split_once('-').ok_or_else(unknown)?;
        let protocol = match kind {
            "firewall" => Protocol::Udp,
            "fwtcp" => Protocol::Tcp,
            _ => return Err(unknown()),
        };
        let streams = streams.parse().ok().filter(|n| (1..=MAX_STREAMS).contains(n)).ok_or_else(unknown)?;
        Ok(Workload::Firewall { protocol, streams })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Workload::Wire => write!(f, "wire"),
            Workload::Firewall { protocol: Protocol::Udp, streams } => write!(f, "firewall-{streams}"),
            Workload::Firewall { protocol: Protocol::Tcp, streams } => write!(f, "fwtcp-{streams}"),
        }
    }
}

impl Workload {
    /// The rules.
    pub fn rules(self) -> &'static str {
        match self {
            Workload::Wire => WIRE,
            Workload::Firewall { .. } => FIREWALL,
        }
    }

    /// The frames that ports 1 and 2 receive.
    pub fn frames(self) -> [Vec<Frame>; 2] {
        match self {
            Workload::Wire => {
                let flow = Flow { addresses: (0xc0a8_0001, 0x0a00_0001), ports: (1024, 80) };
                [vec![frames::there(Protocol::Udp, flow); 1024], vec![frames::there(Protocol::Udp, flow); 1024]]
            }
            Workload::Firewall { protocol, streams } => {
                let flows = (0..streams).map(stream);
                let mut there: Vec<Frame> = flows.clone().map(|flow| frames::there(protocol, flow)).collect();
                let mut back: Vec<Frame> = flows.map(|flow| frames::back(protocol, flow)).collect();
                frames::shuffle(&mut there, SEED);
                frames::shuffle(&mut back, SEED + 1);
                [there, back]
            }
        }
    }

    /// Writes rules and frames into a folder of the workload's name below `folder`.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(self, folder: &Path) -> Result<Files, Error> {
        let folder = folder.join(self.to_string());
        fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, &error))?;
        let rules = folder.join("rules.flows");
        fs::write(&rules, self.rules()).map_err(|error| Error::file(&rules, &error))?;
        for (port, frames) in self.frames().iter().enumerate() {
            let path = folder.join(format!("net_null{port}.pcap"));
            let failed = |error| Error::Failed(format!("{error}"));
            let mut writer = Writer::create(&path, Resolution::Micro).map_err(failed)?;
            for frame in frames {
                writer.write(0, frame).map_err(failed)?;
            }
            writer.finish().map_err(failed)?;
        }
        Ok(Files { workload: self, folder, rules })
    }
}

/// The addresses and ports of stream `i`: a thousand streams to a client, 250 servers.
fn stream(i: u32) -> Flow {
    let client_port = 1024 + (i % 50_000) as u16; // below 51,024
    Flow { addresses: (0x0a00_0001 + i / 1000, 0x0a64_0001 + i % 250), ports: (client_port, 80) }
}

/// A workload on disk.
#[derive(Clone, Debug)]
pub struct Files {
    /// Which one.
    pub workload: Workload,
    /// Where captures lie, `net_nullK.pcap` for the device of that name.
    pub folder: PathBuf,
    /// The rules.
    pub rules: PathBuf,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in ["wire", "firewall-100", "fwtcp-1000"] {
            assert_eq!(name.parse::<Workload>().unwrap().to_string(), name);
        }
        for name in ["", "wire-1", "firewall", "firewall-", "firewall-0", "firewall--1", "fw-1", "firewall-60000000"] {
            let message = name.parse::<Workload>().unwrap_err();
            assert!(message.contains("firewall-N") && message.contains(&format!("`{name}`")), "{message}");
        }
    }

    #[test]
    fn streams_differ_and_are_answered() {
        for name in ["firewall-2000", "fwtcp-2000"] {
            let [there, back] = name.parse::<Workload>().unwrap().frames();
            let ends = |frame: &Frame| {
                (frame[26..30].to_vec(), frame[34..36].to_vec(), frame[30..34].to_vec(), frame[36..38].to_vec())
            };
            let asked: BTreeSet<_> = there.iter().map(ends).collect();
            let answered: BTreeSet<_> = back.iter().map(ends).map(|(a, b, c, d)| (c, d, a, b)).collect();
            assert_eq!(asked.len(), 2000);
            assert_eq!(asked, answered);
        }
    }

    #[test]
    fn frames_are_those_of_earlier_figures() {
        let hex = |frame: &Frame| frame[..54].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(&Workload::Wire.frames()[1][7]),
            "02000000000202000000000108004500002e000000004011b015c0a800010a00000104000050001a0000000000000000000000000000"
        );
        let [_, back] = "fwtcp-1000".parse::<Workload>().unwrap().frames();
        let known = "02000000000102000000000208004500002e00000000400665a20a6400c40a000001005005bd000003e8000003e85010ffff8cc90000";
        assert!(back.iter().any(|frame| hex(frame) == known));
    }

    #[test]
    fn frames_are_the_same_every_time() {
        let workload = "firewall-300".parse::<Workload>().unwrap();
        assert_eq!(workload.frames(), workload.frames());
        let [there, back] = workload.frames();
        assert_eq!((there.len(), back.len()), (300, 300));
    }
}
