/* The headers whose declarations the crate binds, and the shim's own functions. */
#include <stdio.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_version.h>

#include "shim.h"

/* Constants that bindgen cannot read out of their macros. */
static const uint64_t SHIM_RX_OFFLOAD_SCATTER = RTE_ETH_RX_OFFLOAD_SCATTER;
static const uint64_t SHIM_TX_OFFLOAD_MULTI_SEGS = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
static const uint64_t SHIM_TX_OFFLOAD_FAST_FREE = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
/* What names a connection's two ends. */
static const uint64_t SHIM_RSS_FIELDS = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_SCTP;
