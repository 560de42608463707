/* What a ring port of DPDK's net_ring driver consists of, from the other side: a packet that is put into `rings_in` is received
 * by the port, and once the port is diverted, what it sends arrives in another ring. Nothing here prints. */

#include <stdio.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#define SLOTS 4096

/* The ring that the driver makes for a queue of a device. */
static struct rte_ring *ring_of(const char *device, unsigned int queue)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "ETH_RXTX%u_%s", queue, device);
	return rte_ring_lookup(name);
}

/* What queue 0 of the device receives from; NULL while there is no such device. */
struct rte_ring *rings_in(const char *device)
{
	return ring_of(device, 0);
}

/* The ring of this name for what a port sends; several threads may send. */
struct rte_ring *rings_out(const char *name)
{
	struct rte_ring *ring = rte_ring_lookup(name);

	return ring != NULL ? ring : rte_ring_create(name, SLOTS, SOCKET_ID_ANY, RING_F_SC_DEQ);
}

/* Lets all `queues` transmit queues of a started port send into `out` in place of their own rings. A queue of the driver
 * begins with a pointer to its ring; where it does not, nothing is changed and the result is -1. */
int rings_divert(uint16_t port, const char *device, unsigned int queues, struct rte_ring *out)
{
	void **data = rte_eth_fp_ops[port].txq.data;

	for (unsigned int queue = 0; queue < queues; queue++) {
		struct rte_ring **ring = data[queue];

		if (ring == NULL || *ring == NULL || *ring != ring_of(device, queue))
			return -1;
	}
	for (unsigned int queue = 0; queue < queues; queue++)
		__atomic_store_n((struct rte_ring **)data[queue], out, __ATOMIC_RELEASE);
	return 0;
}

unsigned int rings_put(struct rte_ring *ring, struct rte_mbuf **pkts, unsigned int n)
{
	return rte_ring_enqueue_burst(ring, (void **)pkts, n, NULL);
}

unsigned int rings_take(struct rte_ring *ring, struct rte_mbuf **pkts, unsigned int n)
{
	return rte_ring_dequeue_burst(ring, (void **)pkts, n, NULL);
}

static inline void own(const void *at)
{
#ifdef __x86_64__
	asm volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

/* Asks for the cache lines of packets that another processor had last, all at once, to write to them. */
void rings_own(struct rte_mbuf **pkts, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		own(pkts[i]);
		own((const char *)pkts[i] + RTE_CACHE_LINE_SIZE);
	}
	for (unsigned int i = 0; i < n; i++)
		own(rte_pktmbuf_mtod(pkts[i], const char *));
}

static void largest(struct rte_mempool *pool, void *arg)
{
	struct rte_mempool **best = arg;

	if (pool->private_data_size >= sizeof(struct rte_pktmbuf_pool_private) && (*best == NULL || pool->size > (*best)->size))
		*best = pool;
}

/* The program's largest pool of packet buffers; NULL where it has none. */
struct rte_mempool *rings_pool(void)
{
	struct rte_mempool *best = NULL;

	rte_mempool_walk(largest, &best);
	return best;
}

/* The time-stamp counter. */
uint64_t rings_now(void)
{
	return rte_rdtsc();
}
