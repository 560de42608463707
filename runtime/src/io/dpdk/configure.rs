//! A device's configuration: queues, spreading, MTU, offloads; and its start.
//!
//! In: what the device can do and how the port is wanted. Out: a started device. Never: an offload that changes what packets
//! look like; tags and checksums stay as they are on the wire.

use dpdk_sys::{rte_eth_conf, rte_eth_dev_info, rte_eth_rxconf, rte_eth_txconf};

use super::port::{FRAME_OVERHEAD, PortConfig, TxRefs};
use super::{Error, Pool};

/// A key that hashes both directions of a connection alike, so that they meet at one worker.
const RSS_KEY: [u8; 64] = {
    let mut key = [0x6d; 64];
    let mut i = 1;
    while i < key.len() {
        key[i] = 0x5a;
        i += 2;
    }
    key
};

/// Turns a failed step and its result into an error.
pub(super) type Failed<'a> = &'a dyn Fn(&str, i32) -> Error;

fn check_result(step: &str, result: i32, failed: Failed<'_>) -> Result<(), Error> {
    if result < 0 { Err(failed(step, result)) } else { Ok(()) }
}

/// Sets up a device with its queues and starts it.
pub(super) fn start(
    id: u16,
    info: &rte_eth_dev_info,
    config: &PortConfig,
    pool: &Pool,
    failed: Failed<'_>,
) -> Result<(), Error> {
    set_up(id, info, config, pool, failed)?;
    begin(id, failed)
}

fn set_up(id: u16, info: &rte_eth_dev_info, config: &PortConfig, pool: &Pool, failed: Failed<'_>) -> Result<(), Error> {
    let conf = device_conf(info, config, pool);
    // SAFETY: the device exists and is not started; the configuration is copied, and the key it points at is static.
    let result = unsafe { dpdk_sys::rte_eth_dev_configure(id, config.rx_queues, config.tx_queues, &raw const conf) };
    check_result("set up its queues", result, failed)?;
    if let Some(mtu) = config.mtu {
        // SAFETY: the device exists.
        let result = unsafe { dpdk_sys::rte_eth_dev_set_mtu(id, mtu) };
        check_result(&format!("set its MTU to {mtu}"), result, failed)?;
    }
    let (mut rx, mut tx) = (config.rx_descriptors, config.tx_descriptors);
    // SAFETY: both numbers are read and written.
    let result = unsafe { dpdk_sys::rte_eth_dev_adjust_nb_rx_tx_desc(id, &raw mut rx, &raw mut tx) };
    check_result("choose the length of its queues", result, failed)?;
    let any_socket = u32::MAX; // SOCKET_ID_ANY
    let rx_conf = rte_eth_rxconf { offloads: conf.rxmode.offloads, ..info.default_rxconf };
    for queue in 0..config.rx_queues {
        // SAFETY: the device is configured with this queue; the pool outlives it.
        let result =
            unsafe { dpdk_sys::rte_eth_rx_queue_setup(id, queue, rx, any_socket, &raw const rx_conf, pool.raw()) };
        check_result("set up a receive queue", result, failed)?;
    }
    let tx_conf = rte_eth_txconf { offloads: conf.txmode.offloads, ..info.default_txconf };
    for queue in 0..config.tx_queues {
        // SAFETY: the device is configured with this queue.
        let result = unsafe { dpdk_sys::rte_eth_tx_queue_setup(id, queue, tx, any_socket, &raw const tx_conf) };
        check_result("set up a transmit queue", result, failed)?;
    }
    Ok(())
}

fn device_conf(info: &rte_eth_dev_info, config: &PortConfig, pool: &Pool) -> rte_eth_conf {
    // SAFETY: plain numbers and pointers, of which all zeros is a value.
    let mut conf: rte_eth_conf = unsafe { std::mem::zeroed() };
    let rss = dpdk_sys::SHIM_RSS_FIELDS & info.flow_type_rss_offloads;
    if config.rx_queues > 1 && rss != 0 {
        conf.rxmode.mq_mode = dpdk_sys::RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = rss;
        if (1..=RSS_KEY.len()).contains(&usize::from(info.hash_key_size)) {
            conf.rx_adv_conf.rss_conf.rss_key = RSS_KEY.as_ptr().cast_mut();
            conf.rx_adv_conf.rss_conf.rss_key_len = info.hash_key_size;
        }
    }
    if let Some(mtu) = config.mtu {
        conf.rxmode.mtu = u32::from(mtu);
        if u32::from(mtu) + FRAME_OVERHEAD > u32::from(pool.data_room()) {
            conf.rxmode.offloads |= dpdk_sys::SHIM_RX_OFFLOAD_SCATTER & info.rx_offload_capa;
        }
    }
    conf.txmode.offloads = dpdk_sys::SHIM_TX_OFFLOAD_MULTI_SEGS & info.tx_offload_capa;
    if config.tx_refs == TxRefs::Never {
        conf.txmode.offloads |= dpdk_sys::SHIM_TX_OFFLOAD_FAST_FREE & info.tx_offload_capa;
    }
    conf
}

/// Starts the device, takes in all frames whatever their destination, and brings the link up. Not every device can do the
/// last two, and most need not.
fn begin(id: u16, failed: Failed<'_>) -> Result<(), Error> {
    // SAFETY: the device is configured.
    let result = unsafe { dpdk_sys::rte_eth_dev_start(id) };
    check_result("start it", result, failed)?;
    // SAFETY: the device exists.
    let result = unsafe { dpdk_sys::rte_eth_promiscuous_enable(id) };
    if result < 0 && result != -libc::ENOTSUP {
        return Err(failed("receive frames for other addresses", result));
    }
    // SAFETY: the device exists.
    let result = unsafe { dpdk_sys::rte_eth_dev_set_link_up(id) };
    if result < 0 && result != -libc::ENOTSUP {
        return Err(failed("bring its link up", result));
    }
    Ok(())
}
