/* A bare dataplane, written by hand for one purpose: the floor that compiled programs are measured against.
 *
 * Two ports, each to the other. As `firewall` it keeps the addresses and ports of what went from port 0 to port 1 in a hash
 * table, and lets only the answers back. It checks no header, no checksum, no state, and forgets nothing.
 *
 * usage: floor EAL-ARGUMENTS -- wire|firewall WARM_SECONDS SECONDS; prints the packets it received and sent, and the seconds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>

#define BURST 32
#define SLOTS (1u << 20)

struct key { uint64_t addresses, ports; }; /* ports: protocol, from, to; 0 in a free slot */
static struct key *table;

static struct key key_of(const uint8_t *frame, int reply)
{
	uint32_t from, to;
	uint16_t from_port, to_port;

	memcpy(&from, frame + 26, 4);
	memcpy(&to, frame + 30, 4);
	memcpy(&from_port, frame + 34, 2);
	memcpy(&to_port, frame + 36, 2);
	if (reply) {
		uint32_t address = from;
		uint16_t port = from_port;
		from = to, to = address, from_port = to_port, to_port = port;
	}
	return (struct key){ (uint64_t)from << 32 | to, (uint64_t)frame[23] << 32 | (uint32_t)from_port << 16 | to_port };
}

static uint32_t hash(struct key key)
{
	unsigned __int128 wide = (unsigned __int128)(key.addresses ^ 0x9e3779b97f4a7c15) * (key.ports ^ 0xd6e8feb86659fd93);

	return ((uint64_t)wide ^ (uint64_t)(wide >> 64)) & (SLOTS - 1);
}

/* Whether the packet may pass; a new connection from port 0 is kept. */
static int passes(struct key key, uint32_t at, int reply)
{
	for (; table[at].ports; at = (at + 1) & (SLOTS - 1))
		if (table[at].addresses == key.addresses && table[at].ports == key.ports)
			return 1;
	if (!reply)
		table[at] = key;
	return !reply;
}

/* Moves those that may pass to the front, and frees the others. */
static uint16_t filter(struct rte_mbuf **pkts, uint16_t n, int reply)
{
	struct key keys[BURST];
	uint32_t at[BURST];
	uint16_t i, kept = 0;

	for (i = 0; i < n; i++) {
		keys[i] = key_of(rte_pktmbuf_mtod(pkts[i], const uint8_t *), reply);
		at[i] = hash(keys[i]);
		rte_prefetch0(&table[at[i]]);
	}
	for (i = 0; i < n; i++) {
		if (passes(keys[i], at[i], reply))
			pkts[kept++] = pkts[i];
		else
			rte_pktmbuf_free(pkts[i]);
	}
	return kept;
}

static void start_port(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = { 0 };

	if (rte_eth_dev_configure(port, 1, 1, &conf) || rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool) ||
	    rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL) || rte_eth_dev_start(port))
		rte_exit(EXIT_FAILURE, "port %d cannot be started\n", port);
}

int main(int argc, char **argv)
{
	int skip = rte_eal_init(argc, argv);

	if (skip < 0 || argc - skip != 4)
		rte_exit(EXIT_FAILURE, "usage: floor EAL-ARGUMENTS -- wire|firewall WARM_SECONDS SECONDS\n");
	argv += skip;
	const int firewall = !strcmp(argv[1], "firewall");
	const uint64_t hz = rte_get_tsc_hz();
	struct rte_mempool *pool = rte_pktmbuf_pool_create("floor", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	table = rte_zmalloc("table", SLOTS * sizeof(*table), 64);
	if (!pool || !table)
		rte_exit(EXIT_FAILURE, "not enough memory\n");
	start_port(0, pool);
	start_port(1, pool);

	struct rte_mbuf *pkts[BURST];
	uint64_t received = 0, sent = 0, start = rte_rdtsc() + atof(argv[2]) * hz, end = start + atof(argv[3]) * hz, now, polls = 0;
	int warm = 0;

	for (now = 0; now < end; polls++) {
		for (uint16_t port = 0; port < 2; port++) {
			uint16_t n = rte_eth_rx_burst(port, 0, pkts, BURST), kept = firewall ? filter(pkts, n, port) : n;
			uint16_t done = rte_eth_tx_burst(!port, 0, pkts, kept);

			received += n, sent += done;
			if (done < kept)
				rte_pktmbuf_free_bulk(pkts + done, kept - done);
		}
		if (polls % 64 == 0 && (now = rte_rdtsc()) >= start && !warm)
			received = sent = 0, start = now, warm = 1;
	}
	printf("{\"received\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"seconds\": %.6f}\n", received, sent, (double)(now - start) / hz);
	return rte_eal_cleanup();
}
