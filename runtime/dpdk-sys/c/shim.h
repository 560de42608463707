/* Plain functions around what DPDK's headers have only as static inlines or macros. */
#ifndef PIPEC_DPDK_SHIM_H
#define PIPEC_DPDK_SHIM_H

#include <stdint.h>
#include <stdio.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

/* Receive and transmit. As in rte_ethdev.h: ids must be of a started port and one of its queues, and a queue belongs to one
 * thread at a time. Callbacks that others have added to the queue are called. */
uint16_t shim_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);
uint16_t shim_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n);

/* NULL when the pool is empty. */
struct rte_mbuf *shim_pktmbuf_alloc(struct rte_mempool *pool);
/* 0, or negative with nothing taken. */
int shim_pktmbuf_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **pkts, unsigned int n);
void shim_pktmbuf_free(struct rte_mbuf *pkt);
/* rte_pktmbuf_free_bulk, quicker where all are plain: of one pool, one segment each, held once. */
void shim_pktmbuf_free_bulk(struct rte_mbuf **pkts, unsigned int n);
/* One segment, whatever follows it. */
void shim_pktmbuf_free_seg(struct rte_mbuf *seg);
/* Adds `by` to the reference count of every segment. */
void shim_pktmbuf_ref(struct rte_mbuf *pkt, int16_t by);
/* The reference count of this one segment. */
uint16_t shim_mbuf_refcnt(const struct rte_mbuf *seg);
/* Whether the segment's buffer is its own: neither attached to another mbuf nor to outside memory. */
int shim_mbuf_is_direct(const struct rte_mbuf *seg);
/* Bytes before and after the data of one segment. */
uint16_t shim_pktmbuf_headroom(const struct rte_mbuf *seg);
uint16_t shim_pktmbuf_tailroom(const struct rte_mbuf *seg);
/* The data room of the pool's mbufs, headroom included. */
uint16_t shim_pktmbuf_data_room(struct rte_mempool *pool);

/* rte_errno and rte_lcore_id(), which are thread-local variables. */
int shim_errno(void);
unsigned int shim_lcore_id(void);

/* A stdio stream, unbuffered, that hands each write to `write`; NULL without memory. */
typedef void (*shim_write_fn)(const char *text, size_t len);
FILE *shim_stream(shim_write_fn write);
/* Writes out what the C library holds back for standard output and standard error. */
void shim_flush(void);

#endif
