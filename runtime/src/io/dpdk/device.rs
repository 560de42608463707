//! What a port is called at DPDK: a [`PortSpec`] to device arguments.
//!
//! In: the spec, its number among its kind, how many queues it will have, and what the machine allows. Out:
//! `NAME,ARG=VALUE,…` for `rte_dev_probe`. Never: a look at the machine itself. Arguments that the user gave replace ours of the same name.

use std::path::Path;

use super::Error;
use crate::io::spec::{PortKind, PortSpec};

/// Bytes in an AF_PACKET ring, if they may be locked: 4,096 frames of the usual size. The driver's own 512 frames drop
/// bursts.
const AF_PACKET_RING: u64 = 8 << 20;
/// Frames in an AF_PACKET ring, at least.
const AF_PACKET_FRAMES_MIN: u64 = 256;
/// What an AF_PACKET frame needs beside an interface's MTU: its header, an address, the Ethernet header, tags, alignment.
const AF_PACKET_HEADER: u32 = 128;
/// The size of AF_PACKET's blocks and the least of its frames, as the driver has them.
const AF_PACKET_BLOCK: u32 = 4096;
const AF_PACKET_FRAME: u32 = 2048;

/// What the machine allows a port.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    /// The MTU of the interface behind the port, where there is one.
    pub(super) mtu: Option<u32>,
    /// Bytes that may be locked, where that is limited.
    pub(super) lockable_bytes: Option<u64>,
}

/// The device arguments of a port.
pub(super) fn devargs(spec: &PortSpec, number: u16, queues: u16, limits: Limits) -> Result<String, Error> {
    let with = |name: String, ours: &[String], args: &str| join(&name, ours, args);
    Ok(match &spec.kind {
        PortKind::Tap { iface, args } => with(format!("net_tap{number}"), &[format!("iface={iface}")], args),
        PortKind::AfPacket { iface, args } => {
            let mut ours = vec![format!("iface={iface}"), format!("qpairs={queues}")];
            ours.extend(af_packet_ring(queues, limits));
            with(format!("net_af_packet{number}"), &ours, args)
        }
        PortKind::AfXdp { iface, args } => {
            let ours = [format!("iface={iface}"), format!("queue_count={queues}")];
            with(format!("net_af_xdp{number}"), &ours, args)
        }
        PortKind::Pci { address, args } => with(address.clone(), &[], args),
        PortKind::Vhost { path, args } => {
            let ours = [format!("iface={}", plain(spec, path)?), format!("queues={queues}")];
            with(format!("net_vhost{number}"), &ours, args)
        }
        PortKind::VirtioUser { path, args } => {
            let ours = [format!("path={}", plain(spec, path)?), format!("queues={queues}")];
            with(format!("net_virtio_user{number}"), &ours, args)
        }
        PortKind::Memif { path, args } => {
            let ours = ["role=client".to_string(), "id=0".to_string(), "socket-abstract=no".to_string()];
            let path = format!("socket={}", plain(spec, path)?);
            with(format!("net_memif{number}"), &[ours.as_slice(), &[path]].concat(), args)
        }
        PortKind::Ring { name: Some(name) } => format!("net_ring_{name}"),
        PortKind::Ring { name: None } => format!("net_ring{number}"),
        PortKind::Null { args } => with(format!("net_null{number}"), &[], args),
        PortKind::Pcap { rx, tx } => {
            let mut ours = Vec::new();
            for (key, path) in [("rx_pcap", rx), ("tx_pcap", tx)] {
                if let Some(path) = path {
                    ours.push(format!("{key}={}", plain(spec, path)?));
                }
            }
            with(format!("net_pcap{number}"), &ours, "")
        }
        PortKind::Devargs { devargs } => devargs.clone(),
    })
}

/// The device's name: what stands before the arguments.
pub(super) fn name(devargs: &str) -> &str {
    devargs.split_once(',').map_or(devargs, |(name, _)| name)
}

/// Whether receive and transmit queues come in pairs, each of which must be polled.
pub(super) fn paired(kind: &PortKind) -> bool {
    !matches!(kind, PortKind::Pci { .. } | PortKind::Null { .. } | PortKind::Devargs { .. })
}

/// `name,ours,args`, without those of ours that `args` has too.
fn join(name: &str, ours: &[String], args: &str) -> String {
    let key = |arg: &str| arg.split_once('=').map_or(arg, |(key, _)| key).to_string();
    let given: Vec<String> = args.split(',').map(key).collect();
    let mut parts = vec![name.to_string()];
    parts.extend(ours.iter().filter(|arg| !given.contains(&key(arg))).cloned());
    if !args.is_empty() {
        parts.push(args.to_string());
    }
    parts.join(",")
}

/// Bytes in a frame of AF_PACKET's rings, for an interface of this MTU; a buffer must hold as many.
pub(super) fn af_packet_frame(mtu: u32) -> u32 {
    (mtu + AF_PACKET_HEADER).next_multiple_of(64).max(AF_PACKET_FRAME)
}

/// How long the rings are, and how large their frames. A queue has two rings; all of a port's take at most half of what may
/// be locked, as other ports come.
fn af_packet_ring(queues: u16, limits: Limits) -> Vec<String> {
    let frame = af_packet_frame(limits.mtu.unwrap_or(0));
    let block = frame.next_multiple_of(AF_PACKET_BLOCK);
    let room = limits.lockable_bytes.unwrap_or(u64::MAX) / 2 / (2 * u64::from(queues.max(1)));
    let blocks = AF_PACKET_RING.min(room) / u64::from(block);
    let frames = (blocks * u64::from(block / frame)).max(AF_PACKET_FRAMES_MIN);
    let mut args = vec![format!("framecnt={}", 1_u64 << frames.ilog2())];
    if frame != AF_PACKET_FRAME {
        args.extend([format!("framesz={frame}"), format!("blocksz={block}")]);
    }
    args
}

/// A path as device arguments can carry it.
fn plain(spec: &PortSpec, path: &Path) -> Result<String, Error> {
    match path.to_str() {
        Some(text) if !text.contains([',', '=', '[', ']', '(', ')']) && !text.contains(char::is_whitespace) => {
            Ok(text.to_string())
        }
        _ => Err(Error::port(
            spec,
            format!("DPDK does not take the path `{}`", path.display()),
            "use one without spaces, commas, brackets, `=`, and bytes that are not UTF-8",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str, number: u16, queues: u16) -> String {
        devargs(&text.parse().unwrap(), number, queues, Limits { mtu: Some(1500), ..Limits::default() }).unwrap()
    }

    #[test]
    fn each_kind_has_its_driver() {
        let cases = [
            ("p=tap:lan0", "net_tap1,iface=lan0"),
            ("p=af_packet:eth0", "net_af_packet1,iface=eth0,qpairs=2,framecnt=4096"),
            ("p=af_xdp:eth0", "net_af_xdp1,iface=eth0,queue_count=2"),
            ("p=pci:01:00.0", "0000:01:00.0"),
            ("p=vhost:/v", "net_vhost1,iface=/v,queues=2"),
            ("p=virtio-user:/v", "net_virtio_user1,path=/v,queues=2"),
            ("p=memif:/m", "net_memif1,role=client,id=0,socket-abstract=no,socket=/m"),
            ("p=ring", "net_ring1"),
            ("p=ring:x", "net_ring_x"),
            ("p=null:no-rx=1", "net_null1,no-rx=1"),
            ("p=pcap:a,b", "net_pcap1,rx_pcap=a,tx_pcap=b"),
            ("p=pcap:,b", "net_pcap1,tx_pcap=b"),
            ("p=net_x3,y=z", "net_x3,y=z"),
        ];
        for (text, expected) in cases {
            assert_eq!(args(text, 1, 2), expected, "{text}");
        }
        assert_eq!(name("net_x3,y=z"), "net_x3");
    }

    #[test]
    fn the_users_arguments_replace_ours() {
        assert_eq!(
            args("p=memif:/m,role=server,id=7", 0, 1),
            "net_memif0,socket-abstract=no,socket=/m,role=server,id=7"
        );
        assert_eq!(args("p=af_packet:e,framecnt=64", 0, 1), "net_af_packet0,iface=e,qpairs=1,framecnt=64");
    }

    #[test]
    fn long_packets_get_long_frames() {
        let spec = "p=af_packet:e".parse().unwrap();
        let args = devargs(&spec, 0, 1, Limits { mtu: Some(9000), ..Limits::default() }).unwrap();
        assert_eq!(args, "net_af_packet0,iface=e,qpairs=1,framecnt=512,framesz=9152,blocksz=12288");
        assert_eq!(af_packet_frame(1500), 2048);
    }

    #[test]
    fn rings_fit_into_half_of_what_may_be_locked() {
        let frames = |mib: u64, queues: u16| {
            let limits = Limits { mtu: Some(1500), lockable_bytes: Some(mib << 20) };
            let args = devargs(&"p=af_packet:e".parse().unwrap(), 0, queues, limits).unwrap();
            args.rsplit_once('=').unwrap().1.parse::<u64>().unwrap()
        };
        assert_eq!((frames(64, 1), frames(8, 1), frames(8, 2), frames(0, 1)), (4096, 1024, 512, 256));
    }

    #[test]
    fn a_path_that_devargs_cannot_carry_is_refused() {
        let error = devargs(&"p=vhost:/a b".parse().unwrap(), 0, 1, Limits::default()).unwrap_err();
        assert!(error.to_string().starts_with("port `p=vhost:/a b`: DPDK does not take the path `/a b`; use one"));
    }
}
