//! Why a port cannot be opened, in words.
//!
//! In: a port, before DPDK is asked for it and after DPDK has refused. Out: an error that names the thing and the remedy.
//! Never: a change to the machine. DPDK's drivers mostly answer with "-1" or "invalid argument", so the usual causes are
//! looked for here.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::Error;
use super::error::errno_text;
use crate::io::spec::{PortKind, PortSpec};

/// Capabilities, by their numbers in the kernel.
const NET_ADMIN: (u32, &str) = (12, "CAP_NET_ADMIN");
const NET_RAW: (u32, &str) = (13, "CAP_NET_RAW");
const IPC_LOCK: (u32, &str) = (14, "CAP_IPC_LOCK");
const SYS_ADMIN: (u32, &str) = (21, "CAP_SYS_ADMIN");
const BPF: (u32, &str) = (39, "CAP_BPF");
/// Kernel drivers through which DPDK reaches a PCI device.
const PCI_DRIVERS: [&str; 5] = ["vfio-pci", "uio_pci_generic", "igb_uio", "mlx5_core", "mlx4_core"];

/// What can be seen before DPDK is asked.
pub(super) fn before_open(spec: &PortSpec) -> Result<(), Error> {
    match &spec.kind {
        PortKind::AfPacket { iface, .. } | PortKind::AfXdp { iface, .. } => interface_exists(spec, iface),
        PortKind::Pci { address, .. } => pci_device_is_bound(spec, address),
        PortKind::Pcap { rx, tx } => {
            rx.as_ref().map_or(Ok(()), |path| file_can_be_read(spec, path))?;
            tx.as_ref().map_or(Ok(()), |path| folder_exists(spec, path))
        }
        PortKind::Vhost { path, .. } | PortKind::Memif { path, .. } => folder_exists(spec, path),
        PortKind::VirtioUser { path, .. } if !path.exists() => Err(Error::port(
            spec,
            format!("no socket or device `{}`", path.display()),
            "start the vhost side first, which makes it",
        )),
        _ => Ok(()),
    }
}

/// The error for a step (`open it`) that DPDK has refused.
pub(super) fn refused(spec: &PortSpec, step: &str, errno: i32, complaints: &str) -> Error {
    let said = match (complaints.is_empty(), errno) {
        (false, _) => complaints.to_string(),
        (true, -1) => "DPDK gives no reason".to_string(), // drivers say so, and hardly ever mean EPERM
        (true, _) => errno_text(errno),
    };
    let missing = missing_rights(&spec.kind);
    if !missing.is_empty() {
        let problem = format!("not permitted without {} ({said})", missing.join(", "));
        return Error::port(spec, problem, "run as root, or give the program these capabilities (setcap)");
    }
    let help = match &spec.kind {
        _ if errno.abs() == libc::ENOMEM => "give DPDK more memory (--eal -m --eal MIB), or use fewer workers",
        PortKind::Tap { .. } if !Path::new("/dev/net/tun").exists() => "load the kernel's tun module (modprobe tun)",
        PortKind::Tap { .. } => "choose a name that no other interface or program has",
        PortKind::AfPacket { .. } if complaints.contains("mmap failed") => {
            "raise the limit of locked memory (ulimit -l), or use fewer workers"
        }
        PortKind::AfPacket { .. } | PortKind::AfXdp { .. } => "look at the interface with `ip link`, and bring it up",
        PortKind::Pci { .. } => "look at the device with `dpdk-devbind.py --status`",
        PortKind::Vhost { path, .. } | PortKind::Memif { path, .. } if path.exists() => {
            "remove the socket if no other program uses it, and see that this one may write there"
        }
        PortKind::Vhost { .. } | PortKind::VirtioUser { .. } | PortKind::Memif { .. } => {
            "see whether another program uses the socket, and may reach it"
        }
        PortKind::Pcap { .. } => "see that the file is a capture of Ethernet frames",
        PortKind::Null { .. } | PortKind::Ring { .. } => "see whether its arguments are those of DPDK's driver",
        PortKind::Devargs { .. } => "see that DPDK has the driver, and that the arguments are its own",
    };
    Error::port(spec, format!("cannot {step}: {said}"), help)
}

/// The MTU of an interface of the kernel, where the port has one.
pub(super) fn interface_mtu(kind: &PortKind) -> Option<u32> {
    match kind {
        PortKind::AfPacket { iface, .. } | PortKind::AfXdp { iface, .. } => {
            fs::read_to_string(net(iface).join("mtu")).ok()?.trim().parse().ok()
        }
        _ => None,
    }
}

/// The receive queues an interface of the kernel has, where AF_XDP takes them one by one.
pub(super) fn interface_queues(kind: &PortKind) -> Option<u16> {
    let PortKind::AfXdp { iface, .. } = kind else {
        return None;
    };
    let queues = fs::read_dir(net(iface).join("queues")).ok()?.flatten();
    let received = queues.filter(|queue| queue.file_name().to_string_lossy().starts_with("rx-"));
    u16::try_from(received.count()).ok().filter(|count| *count > 0)
}

fn net(iface: &str) -> PathBuf {
    Path::new("/sys/class/net").join(iface)
}

fn interface_exists(spec: &PortSpec, iface: &str) -> Result<(), Error> {
    if net(iface).exists() {
        return Ok(());
    }
    let mut names: Vec<String> = fs::read_dir("/sys/class/net")
        .map(|entries| entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    names.sort();
    let help = match names.is_empty() {
        true => "there are no interfaces at all here".to_string(),
        false => format!("choose one of {}", names.join(", ")),
    };
    Err(Error::port(spec, format!("no network interface `{iface}`"), help))
}

fn pci_device_is_bound(spec: &PortSpec, address: &str) -> Result<(), Error> {
    let device = Path::new("/sys/bus/pci/devices").join(address);
    if !device.exists() {
        let help = "look for the address with `lspci -D` or `dpdk-devbind.py --status`";
        return Err(Error::port(spec, format!("no PCI device `{address}`"), help));
    }
    let driver = fs::read_link(device.join("driver")).ok();
    let driver = driver.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    match driver {
        Some(name) if PCI_DRIVERS.contains(&name.as_str()) => Ok(()),
        other => {
            let owner = other.map_or("no driver".to_string(), |name| format!("the kernel driver `{name}`"));
            let help = format!("bind it to DPDK's: dpdk-devbind.py --bind=vfio-pci {address}");
            Err(Error::port(spec, format!("PCI device `{address}` is bound to {owner}"), help))
        }
    }
}

fn file_can_be_read(spec: &PortSpec, path: &Path) -> Result<(), Error> {
    File::open(path).map(drop).map_err(|error| {
        Error::port(spec, format!("cannot read `{}`: {error}", path.display()), "name a capture that exists")
    })
}

fn folder_exists(spec: &PortSpec, path: &Path) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if folder.is_dir() {
        return Ok(());
    }
    Err(Error::port(spec, format!("no folder `{}`", folder.display()), "make it, or choose a path that exists"))
}

/// Bytes that this process may still lock, where that is limited.
pub(super) fn lockable_bytes() -> Option<u64> {
    if effective_capabilities() >> IPC_LOCK.0 & 1 == 1 {
        return None;
    }
    let number = |file: &str, line: &str| {
        let text = fs::read_to_string(file).ok()?;
        let rest = text.lines().find_map(|text| text.strip_prefix(line))?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    let limit = number("/proc/self/limits", "Max locked memory")?; // in bytes; not a number when unlimited
    let locked = number("/proc/self/status", "VmLck:").unwrap_or(0) * 1024;
    Some(limit.saturating_sub(locked))
}

/// The capabilities a port needs and this process has not.
fn missing_rights(kind: &PortKind) -> Vec<&'static str> {
    let needed: &[(u32, &'static str)] = match kind {
        PortKind::Tap { .. } if Path::new("/dev/net/tun").exists() => &[NET_ADMIN],
        PortKind::AfPacket { .. } => &[NET_RAW, NET_ADMIN],
        PortKind::AfXdp { .. } => &[NET_ADMIN, NET_RAW, IPC_LOCK, SYS_ADMIN, BPF],
        _ => &[],
    };
    let held = effective_capabilities();
    needed.iter().filter(|(bit, _)| held >> bit & 1 == 0).map(|(_, name)| *name).collect()
}

/// The process's effective capabilities, as the kernel counts them; all where it does not say.
fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        before_open(&text.parse().unwrap()).unwrap_err().to_string()
    }

    #[test]
    fn what_does_not_exist_is_named() {
        let message = error("lan=af_packet:nosuch0");
        assert!(message.starts_with("port `lan=af_packet:nosuch0`: no network interface `nosuch0`; "), "{message}");
        assert!(error("p=pci:ffff:00:00.0").contains("no PCI device `ffff:00:00.0`; look for"));
        assert!(error("p=pcap:/nosuch/file").contains("cannot read `/nosuch/file`: No such file"));
        assert!(error("p=pcap:,/nosuch/file").contains("no folder `/nosuch`; make it"));
        assert!(error("p=vhost:/nosuch/socket").contains("no folder `/nosuch`; make it"));
        assert!(error("p=virtio-user:/nosuch/socket").contains("start the vhost side first"));
    }

    #[test]
    fn what_needs_nothing_passes() {
        for text in ["a=null", "a=ring", "a=tap:x", "a=vhost:socket", "a=pcap:,out.pcap", "a=net_null0"] {
            assert_eq!(before_open(&text.parse().unwrap()), Ok(()));
        }
    }

    #[test]
    fn a_refusal_quotes_dpdk() {
        let spec = "a=ring".parse().unwrap();
        let message = refused(&spec, "open it", -libc::EINVAL, "").to_string();
        assert!(message.starts_with("port `a=ring`: cannot open it: Invalid argument; see whether"), "{message}");
        assert!(refused(&spec, "open it", -1, "").to_string().contains("cannot open it: DPDK gives no reason; "));
        let message = refused(&spec, "start it", -1, "EAL: no such bus").to_string();
        assert!(message.contains("cannot start it: EAL: no such bus; "), "{message}");
        let message = refused(&spec, "open it", -libc::ENOMEM, "").to_string();
        assert!(message.ends_with("give DPDK more memory (--eal -m --eal MIB), or use fewer workers"), "{message}");
    }
}
