//! Workloads: the rules that an engine runs, and the frames that its ports receive. One file a kind.
//!
//! In: a name, or a folder with rules and captures that were made elsewhere. Out: rules as `ovs-ofctl add-flows` reads them,
//! and frames for one port or two, all decided by one seed. Never: anything that depends on the machine.
//!
//! ```text
//! wire          port 1 ↔ port 2
//! ports-P       the same two ports, among P
//! firewall-N    the stateful firewall, both ways, N UDP streams without checksum
//! fwtcp-N       the same with N established TCP connections and valid checksums
//! classes-N-S   N flows of power-law rate over S classes, each matching under a mask of its own
//! l2-N          N Ethernet addresses
//! l3-N          N IPv4 prefixes with the Internet's mix of lengths
//! acl-N         N five-tuple rules with nested prefixes, port ranges and protocols
//! random-N      the rules of acl-N, frames with random fields
//! attack-N      the rules of acl-N, frames that each miss some rule by one bit
//! strangers-N   the rules of l2-N, frames to other addresses
//! collide-N     the same, frames to addresses that collide in a table under another key
//! flood-N       what port 1 receives goes to N others
//! gwlb-N-FORM   a gateway that balances the load of N services, in the form `goto`, `metadata` or `universal`
//! access-N      an access gateway with N users in VLANs, and routes
//! ```
//!
//! `NAME@512`, `NAME@1518` and `NAME@imix` are the same with longer frames.

mod access;
pub(crate) mod acl;
mod classes;
mod collide;
pub(crate) mod files;
mod firewall;
mod gwlb;
pub(crate) mod l2;
pub(crate) mod l3;
mod size;
mod wire;

use std::fmt;
use std::str::FromStr;

use crate::frames::{Frame, Protocol};

pub use acl::Traffic;
pub use collide::Strangers;
pub use files::{Files, MOST_PORTS, Through};
pub use gwlb::Form;
pub use size::Size;

/// What decides rules, frames and their order.
pub(crate) const SEED: u32 = 11;
/// Streams and flows, at most: more would not differ in their ports.
const MAX_FLOWS: u32 = 50_000_000;
/// Rules, at most.
const MAX_RULES: u32 = 10_000_000;
/// Classes, at most: each is a table, and a byte of an address.
const MAX_CLASSES: u32 = 200;
/// Services, at most: each may have a table of its own.
const MAX_SERVICES: u32 = 200;
/// Users, at most: twenty to a VLAN.
const MAX_USERS: u32 = 80_000;
/// Ports, at most.
const MAX_PORTS: u32 = 1000;
/// The rule that ends table 0.
const LAST: &str = "table=0,priority=0 actions=drop\n";
/// What names are.
pub const NAMES: &str = "wire, ports-P, firewall-N, fwtcp-N, classes-N-S, l2-N, l3-N, acl-N, random-N, attack-N, strangers-N, collide-N, flood-N, \
                        gwlb-N-FORM or access-N, perhaps followed by @512, @1518 or @imix,";

/// A workload. As text it is its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Workload {
    /// Rules and frames.
    pub kind: Kind,
    /// How long frames are made.
    pub size: Size,
}

/// What a workload is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "a field's name says what is counted")]
pub enum Kind {
    /// Two ports, each to the other.
    Wire,
    /// Two ports, each to the other, among others that neither receive nor are sent to.
    Ports { ports: u32 },
    /// What one port receives goes to so many others.
    Flood { copies: u32 },
    /// The stateful firewall.
    Firewall { protocol: Protocol, streams: u32 },
    /// Classes of flows, each with a mask of its own.
    Classes { flows: u32, classes: u32 },
    /// Ethernet addresses.
    L2 { entries: u32 },
    /// The same, asked for others.
    Strangers { entries: u32, strangers: Strangers },
    /// IPv4 prefixes.
    L3 { prefixes: u32 },
    /// Five-tuple rules.
    Acl { rules: u32, traffic: Traffic },
    /// A gateway that balances services' loads, written in one of three forms.
    Gwlb { services: u32, form: Form },
    /// An access gateway: homes in VLANs, users with public addresses, routes.
    Access { users: u32 },
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(name: &str) -> Result<Workload, String> {
        let (kind, size) = match name.split_once('@') {
            Some((kind, size)) => (kind, Size::named(size)),
            None => (name, Some(Size::Least)),
        };
        let workload = parse(kind).zip(size).map(|(kind, size)| Workload { kind, size });
        workload.ok_or_else(|| format!("expected {NAMES} with numbers, such as firewall-1000, found `{name}`"))
    }
}

/// Numbers without sign or leading zeros, so that a name is what its workload is shown as.
fn parse(name: &str) -> Option<Kind> {
    let (name, form) = match name.rsplit_once('-') {
        Some((name, word)) if name.starts_with("gwlb-") => (name, Form::named(word)),
        _ => (name, None),
    };
    let mut words = name.split('-');
    let kind = words.next()?;
    let number = |text: &str| text.parse().ok().filter(|number: &u32| number.to_string() == text);
    let numbers: Vec<u32> = words.map(number).collect::<Option<_>>()?;
    let up_to = |most: u32, number: u32| (1..=most).contains(&number).then_some(number);
    let acl = |rules: u32, traffic: Traffic| Some(Kind::Acl { rules: up_to(MAX_RULES, rules)?, traffic });
    Some(match (kind, &numbers[..]) {
        ("wire", []) => Kind::Wire,
        ("ports", [ports @ 2..=MAX_PORTS]) => Kind::Ports { ports: *ports },
        ("flood", [n]) => Kind::Flood { copies: up_to(MOST_PORTS - 1, *n)? },
        ("firewall", [n]) => Kind::Firewall { protocol: Protocol::Udp, streams: up_to(MAX_FLOWS, *n)? },
        ("fwtcp", [n]) => Kind::Firewall { protocol: Protocol::Tcp, streams: up_to(MAX_FLOWS, *n)? },
        ("classes", [n, s]) => Kind::Classes { flows: up_to(MAX_FLOWS, *n)?, classes: up_to(MAX_CLASSES, *s)? },
        ("l2", [n]) => Kind::L2 { entries: up_to(MAX_RULES, *n)? },
        ("strangers", [n]) => Kind::Strangers { entries: up_to(MAX_RULES, *n)?, strangers: Strangers::Any },
        ("collide", [n]) => Kind::Strangers { entries: up_to(MAX_RULES, *n)?, strangers: Strangers::Colliding },
        ("l3", [n]) => Kind::L3 { prefixes: up_to(MAX_RULES, *n)? },
        ("acl", [n]) => acl(*n, Traffic::Hits)?,
        ("random", [n]) => acl(*n, Traffic::Random)?,
        ("attack", [n]) => acl(*n, Traffic::Attack)?,
        ("gwlb", [n]) => Kind::Gwlb { services: up_to(MAX_SERVICES, *n)?, form: form? },
        ("access", [n]) => Kind::Access { users: up_to(MAX_USERS, *n)? },
        _ => return None,
    })
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Wire => write!(f, "wire")?,
            Kind::Ports { ports } => write!(f, "ports-{ports}")?,
            Kind::Flood { copies } => write!(f, "flood-{copies}")?,
            Kind::Firewall { protocol: Protocol::Udp, streams } => write!(f, "firewall-{streams}")?,
            Kind::Firewall { protocol: Protocol::Tcp, streams } => write!(f, "fwtcp-{streams}")?,
            Kind::Classes { flows, classes } => write!(f, "classes-{flows}-{classes}")?,
            Kind::L2 { entries } => write!(f, "l2-{entries}")?,
            Kind::Strangers { entries, strangers: Strangers::Any } => write!(f, "strangers-{entries}")?,
            Kind::Strangers { entries, strangers: Strangers::Colliding } => write!(f, "collide-{entries}")?,
            Kind::L3 { prefixes } => write!(f, "l3-{prefixes}")?,
            Kind::Acl { rules, traffic: Traffic::Hits } => write!(f, "acl-{rules}")?,
            Kind::Acl { rules, traffic: Traffic::Random } => write!(f, "random-{rules}")?,
            Kind::Acl { rules, traffic: Traffic::Attack } => write!(f, "attack-{rules}")?,
            Kind::Gwlb { services, form } => write!(f, "gwlb-{services}-{}", form.name())?,
            Kind::Access { users } => write!(f, "access-{users}")?,
        }
        f.write_str(self.size.suffix())
    }
}

impl TryFrom<String> for Workload {
    type Error = String;

    fn try_from(name: String) -> Result<Workload, String> {
        name.parse()
    }
}

impl From<Workload> for String {
    fn from(workload: Workload) -> String {
        workload.to_string()
    }
}

/// What a workload consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The rules, as `ovs-ofctl add-flows` reads them.
    pub rules: String,
    /// The frames that port 1 receives, and those that port 2 does where it receives any.
    pub frames: Vec<Vec<Frame>>,
}

impl Workload {
    /// Makes rules and frames, these of the least size.
    pub fn make(self) -> Content {
        match self.kind {
            Kind::Wire | Kind::Ports { .. } => wire::make(),
            Kind::Flood { copies } => wire::flood(copies),
            Kind::Firewall { protocol, streams } => firewall::make(protocol, streams),
            Kind::Classes { flows, classes } => classes::make(flows, classes),
            Kind::L2 { entries } => l2::make(entries),
            Kind::Strangers { entries, strangers } => collide::make(entries, strangers),
            Kind::L3 { prefixes } => l3::make(prefixes),
            Kind::Acl { rules, traffic } => acl::make(rules, traffic),
            Kind::Gwlb { services, form } => gwlb::make(services, form),
            Kind::Access { users } => access::make(users),
        }
    }

    /// How many ports there are. What the workload receives comes from the first or the first two.
    pub fn ports(self) -> u32 {
        match self.kind {
            Kind::Ports { ports } => ports,
            Kind::Flood { copies } => copies + 1,
            _ => 2,
        }
    }
}

impl From<Kind> for Workload {
    fn from(kind: Kind) -> Workload {
        Workload { kind, size: Size::Least }
    }
}

/// Frames enough that each of `count` flows or rules comes up several times, within reason.
fn frame_count(count: u32) -> usize {
    (4 * count as usize).clamp(1 << 18, 1 << 22)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in [
            "wire",
            "ports-2",
            "ports-256",
            "firewall-100",
            "fwtcp-1000",
            "classes-1000-20",
            "l2-10",
            "l3-1",
            "acl-7",
            "attack-9",
            "strangers-10",
            "collide-1000",
        ] {
            assert_eq!(name.parse::<Workload>().unwrap().to_string(), name);
        }
        let bad =
            ["", "wire-1", "firewall", "firewall-", "firewall-0", "firewall--1", "fw-1", "firewall-60000000", "l2-+1"];
        for name in bad.into_iter().chain([
            "ports-1",
            "ports-9999",
            "classes-5",
            "classes-5-0",
            "l2-1-1",
            "acl-01",
            "gwlb-1",
            "gwlb-1-x",
            "wire@9",
            "flood-99",
        ]) {
            let message = name.parse::<Workload>().unwrap_err();
            assert!(message.contains("firewall-N") && message.contains(&format!("`{name}`")), "{message}");
        }
    }

    fn make(name: &str) -> Content {
        name.parse::<Workload>().unwrap().make()
    }

    #[test]
    fn streams_differ_and_are_answered() {
        for name in ["firewall-2000", "fwtcp-2000"] {
            let frames = make(name).frames;
            let ends = |frame: &Frame| {
                (frame[26..30].to_vec(), frame[34..36].to_vec(), frame[30..34].to_vec(), frame[36..38].to_vec())
            };
            let asked: BTreeSet<_> = frames[0].iter().map(ends).collect();
            let answered: BTreeSet<_> = frames[1].iter().map(ends).map(|(a, b, c, d)| (c, d, a, b)).collect();
            assert_eq!(asked.len(), 2000);
            assert_eq!(asked, answered);
        }
    }

    /// Rules, and the first and the last thousand frames of each port, are those of `workloads.py` with NumPy 2.4.
    #[test]
    fn workloads_are_those_of_earlier_figures() {
        let known: [(&str, u64, &[u64]); 7] = [
            ("wire", 0xeafa_abe6_f338_f24f, &[0xc200_48b9_1fca_9b25, 0xc200_48b9_1fca_9b25]),
            ("firewall-1000", 0x3abd_6cb5_4bc1_210c, &[0x4ffd_a66e_01c2_81a5, 0x8a32_d7eb_df1e_72e5]),
            ("fwtcp-1000", 0x3abd_6cb5_4bc1_210c, &[0x4ad3_94c7_e63b_8cd9, 0x1170_20af_6f3e_dd71]),
            ("classes-1000-20", 0x059b_27d8_ae17_9409, &[0xc70d_42c9_c650_bc52]),
            ("l2-1000", 0x0b77_9963_e4a7_1b41, &[0xa0fc_be63_401e_1143]),
            ("l3-1000", 0x2df3_793a_2b00_e18d, &[0xfa4d_5dd1_c600_262b]),
            ("acl-100", 0xeb59_78f7_9665_0273, &[0x18d1_0d83_b21f_7ff6]),
        ];
        for (name, rules, frames) in known {
            let content = make(name);
            assert_eq!(hash(content.rules.as_bytes()), rules, "rules of {name}");
            let ends = |frames: &Vec<Frame>| match frames.len() {
                0..=2000 => hash(frames.as_flattened()),
                count => hash(frames[..1000].as_flattened().iter().chain(frames[count - 1000..].as_flattened())),
            };
            assert_eq!(content.frames.iter().map(ends).collect::<Vec<_>>(), frames, "frames of {name}");
        }
    }

    /// A hash of bytes (FNV-1a of 64 bits).
    fn hash<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u64 {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step)
    }
}
