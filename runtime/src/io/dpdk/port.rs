//! Ports: DPDK's Ethernet devices, from a [`PortSpec`] to started queues.
//!
//! In: what the user asked for, how many queues, the pool to receive into. Out: a started port, its queues to hand to
//! workers, its length limit and the device's own counters. Never: a packet; those pass through the queues.

use std::ffi::CString;
use std::sync::Arc;

use dpdk_sys::{rte_device, rte_eth_dev_info};

use super::device::Limits;
use super::{DATA_ROOM, Eal, Error, Pool, RxQueue, TxQueue, check, configure, device, log};
use crate::io::spec::{PortKind, PortSpec};

/// Whether packets with several references may be sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TxRefs {
    /// They may: the driver looks at each when it frees them.
    #[default]
    Checked,
    /// They never are, and all come from one pool: the driver may free in bulk without a look (FAST_FREE, where it can). A
    /// breach corrupts the pool.
    Never,
}

/// How to open a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortConfig {
    /// Queues wanted to receive from; the port may have fewer, and pairs of queues may make it more.
    pub rx_queues: u16,
    /// Queues wanted to send to.
    pub tx_queues: u16,
    /// Places in a receive queue; the device rounds it.
    pub rx_descriptors: u16,
    /// Places in a transmit queue.
    pub tx_descriptors: u16,
    /// The MTU to set; otherwise the device's stays.
    pub mtu: Option<u16>,
    /// Whether packets with several references may be sent.
    pub tx_refs: TxRefs,
}

impl PortConfig {
    /// So many queues each way, and the usual rest.
    pub fn queues(n: u16) -> PortConfig {
        PortConfig {
            rx_queues: n,
            tx_queues: n,
            rx_descriptors: 1024,
            tx_descriptors: 1024,
            mtu: None,
            tx_refs: TxRefs::Checked,
        }
    }
}

/// The device's own counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets and bytes received.
    pub rx_packets: u64,
    /// Bytes of them.
    pub rx_bytes: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes of them.
    pub tx_bytes: u64,
    /// Packets the device dropped because the receive queue was full.
    pub rx_missed: u64,
    /// Packets it received with errors.
    pub rx_errors: u64,
    /// Packets it dropped because the pool was empty.
    pub rx_no_mbuf: u64,
    /// Packets it could not send.
    pub tx_errors: u64,
}

/// A started port. It closes when it and all its queues are dropped.
#[derive(Debug)]
pub struct Port {
    name: String,
    device: Arc<Device>,
    rx: Vec<Option<RxQueue>>,
    tx: Vec<Option<TxQueue>>,
    max_frame_len: u32,
    mac: [u8; 6],
}

/// The device behind a port and its queues.
#[derive(Debug)]
pub(super) struct Device {
    id: u16,
    name: String,
    handle: *mut rte_device,
    kind: PortKind,
    pool: Pool,
    eal: Eal,
}

// SAFETY: the handle is only used when the last owner drops it; DPDK locks its list of devices itself.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// Bytes of a frame beside its MTU: the Ethernet header and one tag.
pub(super) const FRAME_OVERHEAD: u32 = dpdk_sys::RTE_ETHER_HDR_LEN + 4;
impl Port {
    /// Opens and starts a port that receives into `pool`. `number` counts the ports of its kind
    /// ([`spec::numbers`](crate::io::spec::numbers)); `null` port 0 is the device `net_null0`.
    pub fn open(eal: &Eal, spec: &PortSpec, number: u16, config: &PortConfig, pool: &Pool) -> Result<Port, Error> {
        check::before_open(spec)?;
        let mut config = config.clone();
        if device::paired(&spec.kind) {
            let pairs = config.rx_queues.max(config.tx_queues);
            let pairs = pairs.min(check::interface_queues(&spec.kind).unwrap_or(u16::MAX));
            (config.rx_queues, config.tx_queues) = (pairs, pairs);
        }
        let limits = Limits { mtu: check::interface_mtu(&spec.kind), lockable_bytes: check::lockable_bytes() };
        buffers_are_large_enough(spec, limits, pool)?;
        let devargs = device::devargs(spec, number, config.rx_queues, limits)?;
        let device = Arc::new(probe(eal, spec, &devargs, pool)?);
        let id = device.id;
        let info = device_info(spec, id)?;
        config.rx_queues = config.rx_queues.clamp(1, info.max_rx_queues.max(1));
        config.tx_queues = config.tx_queues.clamp(1, info.max_tx_queues.max(1));
        let mark = log::mark();
        let failed = |step: &str, result: i32| check::refused(spec, step, result, &log::complaints(mark));
        quiet(&spec.kind, || configure::start(id, &info, &config, pool, &failed))?;
        let mtu = limits.mtu.unwrap_or_else(|| u32::from(device_mtu(id)));
        Ok(Port {
            name: spec.name.clone(),
            rx: (0..config.rx_queues).map(|queue| Some(RxQueue::new(device.clone(), queue))).collect(),
            tx: (0..config.tx_queues).map(|queue| Some(TxQueue::new(device.clone(), queue))).collect(),
            max_frame_len: mtu + FRAME_OVERHEAD,
            mac: mac(id),
            device,
        })
    }

    /// The port's name in the program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name DPDK has for the device.
    pub fn device_name(&self) -> &str {
        &self.device.name
    }

    /// DPDK's number of the port.
    pub fn id(&self) -> u16 {
        self.device.id
    }

    /// The port's Ethernet address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The longest frame it sends, from the Ethernet header on, without checksum.
    pub fn max_frame_len(&self) -> u32 {
        self.max_frame_len
    }

    /// How many queues it receives from. All must be polled.
    pub fn rx_queues(&self) -> u16 {
        self.rx.len() as u16
    }

    /// How many queues it sends to.
    pub fn tx_queues(&self) -> u16 {
        self.tx.len() as u16
    }

    /// The right to receive from a queue, once; `None` when it is taken or there is no such queue.
    pub fn take_rx_queue(&mut self, queue: u16) -> Option<RxQueue> {
        self.rx.get_mut(usize::from(queue)).and_then(Option::take)
    }

    /// The right to send to a queue, once; `None` when it is taken or there is no such queue.
    pub fn take_tx_queue(&mut self, queue: u16) -> Option<TxQueue> {
        self.tx.get_mut(usize::from(queue)).and_then(Option::take)
    }

    /// Whether there is a link.
    pub fn link_up(&self) -> bool {
        // SAFETY: plain numbers, of which all zeros is a value.
        let mut link: dpdk_sys::rte_eth_link = unsafe { std::mem::zeroed() };
        // SAFETY: the port is started while `device` lives; `link` is written.
        let result = unsafe { dpdk_sys::rte_eth_link_get_nowait(self.device.id, &raw mut link) };
        result == 0 && u32::from(link.link_status()) == dpdk_sys::RTE_ETH_LINK_UP
    }

    /// The device's own counters; zeros where it has none.
    pub fn stats(&self) -> PortStats {
        // SAFETY: plain numbers, of which all zeros is a value.
        let mut stats: dpdk_sys::rte_eth_stats = unsafe { std::mem::zeroed() };
        // SAFETY: the port is started while `device` lives; `stats` is written.
        unsafe { dpdk_sys::rte_eth_stats_get(self.device.id, &raw mut stats) };
        PortStats {
            rx_packets: stats.ipackets,
            rx_bytes: stats.ibytes,
            tx_packets: stats.opackets,
            tx_bytes: stats.obytes,
            rx_missed: stats.imissed,
            rx_errors: stats.ierrors,
            rx_no_mbuf: stats.rx_nombuf,
            tx_errors: stats.oerrors,
        }
    }

    /// Closes the port, once its queues are dropped too; drop does the same.
    pub fn close(self) {}
}

impl Device {
    pub(super) fn id(&self) -> u16 {
        self.id
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        quiet(&self.kind, || {
            // SAFETY: the port exists, and its queues are gone with their threads.
            unsafe { dpdk_sys::rte_eth_dev_stop(self.id) };
            // SAFETY: as above.
            unsafe { dpdk_sys::rte_eth_dev_close(self.id) };
            if !self.handle.is_null() {
                // SAFETY: the device was plugged in for this port, and DPDK still has it.
                unsafe { dpdk_sys::rte_dev_remove(self.handle) };
            }
        });
        self.eal.release_port(self.id);
    }
}

/// Runs `f`, without what the libraries behind AF_XDP write to the terminal in passing.
fn quiet<T>(kind: &PortKind, f: impl FnOnce() -> T) -> T {
    match kind {
        PortKind::AfXdp { .. } => log::capture(f).0,
        _ => f(),
    }
}

/// AF_PACKET's frames are copied into one buffer each.
fn buffers_are_large_enough(spec: &PortSpec, limits: Limits, pool: &Pool) -> Result<(), Error> {
    let (PortKind::AfPacket { .. }, Some(mtu)) = (&spec.kind, limits.mtu) else {
        return Ok(());
    };
    if device::af_packet_frame(mtu) <= u32::from(pool.data_room()) {
        return Ok(());
    }
    let problem = format!("packet buffers of {} bytes are too small for its MTU of {mtu}", pool.data_room());
    Err(Error::port(spec, problem, "lower the interface's MTU, or make larger buffers"))
}

/// The room for data that buffers need for these ports: [`DATA_ROOM`], or more where an interface has long packets.
pub fn data_room(specs: &[PortSpec]) -> u16 {
    let mtus = specs.iter().filter(|spec| matches!(spec.kind, PortKind::AfPacket { .. }));
    let rooms = mtus.filter_map(|spec| check::interface_mtu(&spec.kind)).map(device::af_packet_frame);
    rooms.filter_map(|room| u16::try_from(room).ok()).fold(DATA_ROOM, u16::max)
}

/// Plugs the device in, unless an argument of the EAL has, and finds its port.
fn probe(eal: &Eal, spec: &PortSpec, devargs: &str, pool: &Pool) -> Result<Device, Error> {
    let name = device::name(devargs);
    let mark = log::mark();
    if port_id(name).is_none() {
        let c_devargs = CString::new(devargs.replace('\0', "")).unwrap_or_default();
        // SAFETY: the EAL has started; DPDK copies the string.
        let result = unsafe { dpdk_sys::rte_dev_probe(c_devargs.as_ptr()) };
        if result < 0 {
            return Err(check::refused(spec, "open it", result, &log::complaints(mark)));
        }
    }
    let id = port_id(name).ok_or_else(|| check::refused(spec, "open it", -libc::ENODEV, &log::complaints(mark)))?;
    if !eal.claim_port(id) {
        let problem = format!("DPDK's device `{name}` is open already, for another port");
        return Err(Error::port(spec, problem, "give each port a device of its own"));
    }
    let handle = device_info(spec, id).map_or(std::ptr::null_mut(), |info| info.device);
    Ok(Device { id, name: name.to_string(), handle, kind: spec.kind.clone(), pool: pool.clone(), eal: eal.clone() })
}

fn port_id(name: &str) -> Option<u16> {
    let c_name = CString::new(name).ok()?;
    let mut id = 0;
    // SAFETY: a C string, and a number that is written.
    let result = unsafe { dpdk_sys::rte_eth_dev_get_port_by_name(c_name.as_ptr(), &raw mut id) };
    (result == 0).then_some(id)
}

fn device_info(spec: &PortSpec, id: u16) -> Result<rte_eth_dev_info, Error> {
    // SAFETY: plain numbers and pointers, of which all zeros is a value.
    let mut info: rte_eth_dev_info = unsafe { std::mem::zeroed() };
    // SAFETY: `info` is written.
    match unsafe { dpdk_sys::rte_eth_dev_info_get(id, &raw mut info) } {
        0 => Ok(info),
        errno => Err(check::refused(spec, "ask what it can do", errno, "")),
    }
}

fn device_mtu(id: u16) -> u16 {
    let mut mtu = dpdk_sys::RTE_ETHER_MTU as u16;
    // SAFETY: the number is written.
    unsafe { dpdk_sys::rte_eth_dev_get_mtu(id, &raw mut mtu) };
    mtu
}

fn mac(id: u16) -> [u8; 6] {
    let mut address = dpdk_sys::rte_ether_addr { addr_bytes: [0; 6] };
    // SAFETY: the address is written.
    unsafe { dpdk_sys::rte_eth_macaddr_get(id, &raw mut address) };
    address.addr_bytes
}
