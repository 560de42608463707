/* See shim.h. Each function is one call of what it wraps, but for shim_pktmbuf_free_bulk. */
#define _GNU_SOURCE
#include "shim.h"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

uint16_t shim_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_rx_burst(port, queue, pkts, n);
}

uint16_t shim_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n)
{
	return rte_eth_tx_burst(port, queue, pkts, n);
}

struct rte_mbuf *shim_pktmbuf_alloc(struct rte_mempool *pool)
{
	return rte_pktmbuf_alloc(pool);
}

int shim_pktmbuf_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **pkts, unsigned int n)
{
	return rte_pktmbuf_alloc_bulk(pool, pkts, n);
}

void shim_pktmbuf_free(struct rte_mbuf *pkt)
{
	rte_pktmbuf_free(pkt);
}

void shim_pktmbuf_free_bulk(struct rte_mbuf **pkts, unsigned int n)
{
	if (n == 0)
		return;
	struct rte_mempool *pool = pkts[0]->pool;
	uint64_t odd = 0;
	for (unsigned int i = 0; i < n; i++) {
		const struct rte_mbuf *pkt = pkts[i];
		odd |= (uintptr_t)pkt->pool ^ (uintptr_t)pool;
		odd |= (uintptr_t)pkt->next;
		odd |= pkt->ol_flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL);
		odd |= (rte_mbuf_refcnt_read(pkt) ^ 1) | (pkt->nb_segs ^ 1);
	}
	if (odd == 0)
		rte_mempool_put_bulk(pool, (void *const *)pkts, n);
	else
		rte_pktmbuf_free_bulk(pkts, n);
}

void shim_pktmbuf_free_seg(struct rte_mbuf *seg)
{
	rte_pktmbuf_free_seg(seg);
}

void shim_pktmbuf_ref(struct rte_mbuf *pkt, int16_t by)
{
	rte_pktmbuf_refcnt_update(pkt, by);
}

uint16_t shim_mbuf_refcnt(const struct rte_mbuf *seg)
{
	return rte_mbuf_refcnt_read(seg);
}

int shim_mbuf_is_direct(const struct rte_mbuf *seg)
{
	return RTE_MBUF_DIRECT(seg);
}

uint16_t shim_pktmbuf_headroom(const struct rte_mbuf *seg)
{
	return rte_pktmbuf_headroom(seg);
}

uint16_t shim_pktmbuf_tailroom(const struct rte_mbuf *seg)
{
	return rte_pktmbuf_tailroom(seg);
}

uint16_t shim_pktmbuf_data_room(struct rte_mempool *pool)
{
	return rte_pktmbuf_data_room_size(pool);
}

int shim_errno(void)
{
	return rte_errno;
}

unsigned int shim_lcore_id(void)
{
	return rte_lcore_id();
}

static ssize_t stream_write(void *cookie, const char *text, size_t len)
{
	((shim_write_fn)cookie)(text, len);
	return (ssize_t)len;
}

FILE *shim_stream(shim_write_fn write)
{
	cookie_io_functions_t io = { .write = stream_write };
	FILE *stream = fopencookie((void *)write, "w", io);

	if (stream != NULL)
		setvbuf(stream, NULL, _IONBF, 0);
	return stream;
}

void shim_flush(void)
{
	fflush(stdout);
	fflush(stderr);
}
