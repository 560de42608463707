//! Connections as text, in the words of `ovs-appctl dpctl/dump-conntrack`.

use core::fmt;
use core::net::IpAddr;

use pipec_abi::header::proto;

use super::entry::{Entry, Snapshot, ctl};
use super::key::{Key, L4, Tuple, icmp_pair};
use super::tcp::{Pair, State};

/// One connection. `{}` is a line of Open vSwitch's dump, `{:#}` the same with the seconds it has left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// The direction of the packet that was committed.
    pub original: Tuple,
    /// The direction back.
    pub reply: Tuple,
    /// Mark.
    pub mark: u32,
    /// Label, high then low half.
    pub label: [u64; 2],
    /// States of the originator and of the responder, for TCP.
    pub tcp: Option<[State; 2]>,
    /// Whether a packet of the reply direction was seen.
    pub replied: bool,
    /// Time until it ends.
    pub left_ns: u64,
}

impl Dump {
    /// An entry, if it lives.
    pub fn of<const K: usize>(entry: &Entry<K>, label: impl FnOnce() -> [u64; 2], now_ns: u64) -> Option<Dump>
    where
        [u64; K]: Key,
    {
        let Snapshot { key, ctl, expires, mark, rest } = entry.snapshot()?;
        let swapped = ctl & ctl::SWAPPED != 0;
        let pair = Pair::unpack((0, 0, rest));
        let states = if swapped { [pair.dst.state, pair.src.state] } else { [pair.src.state, pair.dst.state] };
        Some(Dump {
            original: key.tuple(swapped),
            reply: key.tuple(!swapped),
            mark,
            label: if ctl & ctl::LABELLED != 0 { label() } else { [0; 2] },
            tcp: (key.proto() == proto::TCP).then_some(states),
            replied: ctl & ctl::REPLIED != 0,
            left_ns: expires.saturating_sub(now_ns),
        })
    }
}

impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.original.proto {
            proto::ICMP => f.write_str("icmp")?,
            2 => f.write_str("igmp")?,
            proto::TCP => f.write_str("tcp")?,
            proto::UDP => f.write_str("udp")?,
            33 => f.write_str("dccp")?,
            proto::ICMPV6 => f.write_str("icmpv6")?,
            proto::SCTP => f.write_str("sctp")?,
            136 => f.write_str("udplite")?,
            other => write!(f, "{other}")?,
        }
        f.write_str(",orig=(")?;
        tuple(f, &self.original)?;
        f.write_str("),reply=(")?;
        tuple(f, &self.reply)?;
        f.write_str(")")?;
        if self.original.zone != 0 {
            write!(f, ",zone={}", self.original.zone)?;
        }
        if f.alternate() {
            write!(f, ",timeout={}", self.left_ns / 1_000_000_000)?;
        }
        if self.mark != 0 {
            write!(f, ",mark={}", self.mark)?;
        }
        if self.label != [0; 2] {
            write!(f, ",labels={:#x}", u128::from(self.label[0]) << 64 | u128::from(self.label[1]))?;
        }
        if let Some([a, b]) = self.tcp {
            write!(f, ",protoinfo=(state={})", a.max(b).name())?;
        }
        Ok(())
    }
}

fn tuple(f: &mut fmt::Formatter<'_>, tuple: &Tuple) -> fmt::Result {
    let address = |f: &mut fmt::Formatter<'_>, name, address| match address {
        IpAddr::V4(address) => write!(f, "{name}={address}"),
        IpAddr::V6(address) => write!(f, "{name}={address}"),
    };
    address(f, "src", tuple.src)?;
    address(f, ",dst", tuple.dst)?;
    match tuple.l4 {
        L4::Icmp(id, kind) => {
            debug_assert!(icmp_pair(tuple.proto, kind).is_some());
            write!(f, ",id={id},type={kind},code=0")
        }
        L4::Ports(src, dst) => write!(f, ",sport={src},dport={dst}"),
    }
}
