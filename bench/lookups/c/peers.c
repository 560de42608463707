/* DPDK's look-up structures behind functions that are the same for all: make, look up a trace in bursts of 32, change an
 * entry, free. Failures are NULL; nothing here prints. */

#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_acl.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_fib.h>
#include <rte_fib6.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_lpm.h>
#include <rte_lpm6.h>
#include <rte_malloc.h>

#define BURST 32

int peers_start(void)
{
	char *argv[] = { "lookups", "--no-huge", "--no-pci", "--no-telemetry", "--no-shconf", "-m", "4096", "-l", NULL,
			 "--log-level=1", "--force-max-simd-bitwidth=256", NULL };
	char cpu[16];
	int n = 0, first = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		while (first < CPU_SETSIZE && !CPU_ISSET(first, &set))
			first++;
	snprintf(cpu, sizeof(cpu), "%d", first);
	argv[8] = cpu;
	while (argv[n] != NULL)
		n++;
	return rte_eal_init(n, argv) < 0 ? -1 : 0;
}

uint64_t peers_tsc_hz(void)
{
	return rte_get_tsc_hz();
}

/* Bytes that DPDK's heaps have given away. */
uint64_t peers_memory(void)
{
	struct rte_malloc_socket_stats stats;
	uint64_t sum = 0;
	int socket;

	for (socket = 0; socket < RTE_MAX_NUMA_NODES; socket++)
		if (rte_malloc_get_socket_stats(socket, &stats) == 0)
			sum += stats.heap_allocsz_bytes;
	return sum;
}

/* Rules over five fields; addresses and ports as numbers. */
struct rule {
	uint32_t src, dst;
	uint16_t sport[2], dport[2];
	uint8_t src_len, dst_len, proto, proto_mask;
};

RTE_ACL_RULE_DEF(five_rule, 5);

void *acl_new(const struct rule *rules, uint32_t n)
{
	const struct rte_acl_param param = { "acl", SOCKET_ID_ANY, RTE_ACL_RULE_SZ(5), n };
	struct rte_acl_config config = { .num_categories = 1, .num_fields = 5, .defs = {
		{ RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, 0 },
		{ RTE_ACL_FIELD_TYPE_MASK, 4, 1, 1, 4 },
		{ RTE_ACL_FIELD_TYPE_MASK, 4, 2, 2, 8 },
		{ RTE_ACL_FIELD_TYPE_RANGE, 2, 3, 3, 12 },
		{ RTE_ACL_FIELD_TYPE_RANGE, 2, 4, 3, 14 },
	} };
	struct rte_acl_ctx *acl = rte_acl_create(&param);
	uint32_t i;

	if (acl == NULL)
		return NULL;
	for (i = 0; i < n; i++) {
		const struct rule *r = &rules[i];
		struct five_rule five = { .data = { 1, n - i, i + 1 }, .field = {
			{ { .u8 = r->proto }, { .u8 = r->proto_mask } },
			{ { .u32 = r->src }, { .u32 = r->src_len } },
			{ { .u32 = r->dst }, { .u32 = r->dst_len } },
			{ { .u16 = r->sport[0] }, { .u16 = r->sport[1] } },
			{ { .u16 = r->dport[0] }, { .u16 = r->dport[1] } },
		} };
		if (rte_acl_add_rules(acl, (const struct rte_acl_rule *)&five, 1) != 0)
			goto fail;
	}
	if (rte_acl_build(acl, &config) != 0 || rte_acl_set_ctx_classify(acl, RTE_ACL_CLASSIFY_AVX2) != 0)
		goto fail;
	return acl;
fail:
	rte_acl_free(acl);
	return NULL;
}

/* Headers are 16 bytes each: protocol, three of nothing, addresses and ports in network order. */
void acl_run(void *acl, const uint8_t **headers, uint32_t n, uint32_t *found)
{
	uint32_t i;

	for (i = 0; i + BURST <= n; i += BURST)
		rte_acl_classify(acl, headers + i, found + i, BURST, 1);
}

void acl_free(void *acl)
{
	rte_acl_free(acl);
}

void *hash_new(const uint8_t *keys, uint32_t key_len, uint32_t n)
{
	const struct rte_hash_parameters param = { .name = "hash", .entries = n + n / 8 + 64, .key_len = key_len,
						   .hash_func = rte_hash_crc, .socket_id = SOCKET_ID_ANY };
	struct rte_hash *hash = rte_hash_create(&param);
	uint32_t i;

	for (i = 0; hash != NULL && i < n; i++)
		if (rte_hash_add_key_data(hash, keys + (size_t)i * key_len, (void *)(uintptr_t)(i + 1)) < 0) {
			rte_hash_free(hash);
			hash = NULL;
		}
	return hash;
}

void hash_run(void *hash, const void **keys, uint32_t n, uint32_t *found)
{
	void *data[BURST];
	uint64_t hits;
	uint32_t i, k;

	for (i = 0; i + BURST <= n; i += BURST) {
		rte_hash_lookup_bulk_data(hash, keys + i, BURST, &hits, data);
		for (k = 0; k < BURST; k++)
			found[i + k] = hits >> k & 1 ? (uint32_t)(uintptr_t)data[k] : 0;
	}
}

/* Takes a key out and puts it back. */
void hash_change(void *hash, const uint8_t *key, uint32_t value)
{
	rte_hash_del_key(hash, key);
	rte_hash_add_key_data(hash, key, (void *)(uintptr_t)value);
}

void hash_free(void *hash)
{
	rte_hash_free(hash);
}

/* Next hops are 24 bits: the number of the prefix by length, plus one. */
void *lpm_new(const uint32_t *addresses, const uint8_t *lengths, uint32_t n)
{
	const struct rte_lpm_config config = { n + 64, 1 << 17, 0 };
	struct rte_lpm *lpm = rte_lpm_create("lpm", SOCKET_ID_ANY, &config);
	uint32_t i;

	for (i = 0; lpm != NULL && i < n; i++)
		if (rte_lpm_add(lpm, addresses[i], lengths[i], i + 1) < 0) {
			rte_lpm_free(lpm);
			lpm = NULL;
		}
	return lpm;
}

void lpm_run(void *lpm, const uint32_t *keys, uint32_t n, uint32_t *found)
{
	uint32_t i;

	for (i = 0; i + BURST <= n; i += BURST)
		rte_lpm_lookup_bulk((struct rte_lpm *)lpm, keys + i, found + i, BURST);
	for (i = 0; i < n; i++)
		found[i] = found[i] & RTE_LPM_LOOKUP_SUCCESS ? found[i] & 0xffffff : 0;
}

void lpm_change(void *lpm, uint32_t address, uint8_t length, uint32_t value)
{
	rte_lpm_delete(lpm, address, length);
	rte_lpm_add(lpm, address, length, value);
}

void lpm_free(void *lpm)
{
	rte_lpm_free(lpm);
}

void *fib_new(const uint32_t *addresses, const uint8_t *lengths, uint32_t n)
{
	struct rte_fib_conf config = { .type = RTE_FIB_DIR24_8, .default_nh = 0, .max_routes = n + 64,
				       .dir24_8 = { RTE_FIB_DIR24_8_4B, 1 << 17 } };
	struct rte_fib *fib = rte_fib_create("fib", SOCKET_ID_ANY, &config);
	uint32_t i;

	for (i = 0; fib != NULL && i < n; i++)
		if (rte_fib_add(fib, addresses[i], lengths[i], i + 1) < 0) {
			rte_fib_free(fib);
			fib = NULL;
		}
	return fib;
}

void fib_run(void *fib, const uint32_t *keys, uint32_t n, uint32_t *found)
{
	uint64_t hops[BURST];
	uint32_t i, k;

	for (i = 0; i + BURST <= n; i += BURST) {
		rte_fib_lookup_bulk(fib, (uint32_t *)(uintptr_t)keys + i, hops, BURST);
		for (k = 0; k < BURST; k++)
			found[i + k] = hops[k];
	}
}

void fib_change(void *fib, uint32_t address, uint8_t length, uint32_t value)
{
	rte_fib_delete(fib, address, length);
	rte_fib_add(fib, address, length, value);
}

void fib_free(void *fib)
{
	rte_fib_free(fib);
}

/* Addresses are 16 bytes in network order. */
void *lpm6_new(const uint8_t *addresses, const uint8_t *lengths, uint32_t n)
{
	const struct rte_lpm6_config config = { n + 64, 1 << 17, 0 };
	struct rte_lpm6 *lpm = rte_lpm6_create("lpm6", SOCKET_ID_ANY, &config);
	uint32_t i;

	for (i = 0; lpm != NULL && i < n; i++)
		if (rte_lpm6_add(lpm, addresses + 16 * (size_t)i, lengths[i], i + 1) < 0) {
			rte_lpm6_free(lpm);
			lpm = NULL;
		}
	return lpm;
}

void lpm6_run(void *lpm, const uint8_t *keys, uint32_t n, uint32_t *found)
{
	int32_t hops[BURST];
	uint32_t i, k;

	for (i = 0; i + BURST <= n; i += BURST) {
		rte_lpm6_lookup_bulk_func(lpm, (void *)(uintptr_t)(keys + 16 * (size_t)i), hops, BURST);
		for (k = 0; k < BURST; k++)
			found[i + k] = hops[k] < 0 ? 0 : hops[k];
	}
}

void lpm6_free(void *lpm)
{
	rte_lpm6_free(lpm);
}

void *fib6_new(const uint8_t *addresses, const uint8_t *lengths, uint32_t n)
{
	struct rte_fib6_conf config = { .type = RTE_FIB6_TRIE, .default_nh = 0, .max_routes = n + 64,
					.trie = { RTE_FIB6_TRIE_4B, 1 << 18 } };
	struct rte_fib6 *fib = rte_fib6_create("fib6", SOCKET_ID_ANY, &config);
	uint32_t i;

	for (i = 0; fib != NULL && i < n; i++)
		if (rte_fib6_add(fib, addresses + 16 * (size_t)i, lengths[i], i + 1) < 0) {
			rte_fib6_free(fib);
			fib = NULL;
		}
	return fib;
}

void fib6_run(void *fib, const uint8_t *keys, uint32_t n, uint32_t *found)
{
	uint64_t hops[BURST];
	uint32_t i, k;

	for (i = 0; i + BURST <= n; i += BURST) {
		rte_fib6_lookup_bulk(fib, (void *)(uintptr_t)(keys + 16 * (size_t)i), hops, BURST);
		for (k = 0; k < BURST; k++)
			found[i + k] = hops[k];
	}
}

void fib6_free(void *fib)
{
	rte_fib6_free(fib);
}
