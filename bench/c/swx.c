/* DPDK's SWX pipeline as a peer: the interpreter of its instructions, since the headers that its generated C code needs are
 * not installed with DPDK.
 *
 * Two ports. `wire`: each to the other. `l2`: by a table of Ethernet addresses to port 1. `acl`: by a table of five-tuples under
 * masks to port 1 or away.
 *
 * usage: swx EAL-ARGUMENTS -- wire|l2|acl ENTRIES WARM_SECONDS SECONDS; ENTRIES is a file with a line for each entry, as
 * rte_swx_ctl_pipeline_table_entry_read reads it. Prints the packets it received and sent, and the seconds.
 */
#define ALLOW_EXPERIMENTAL_API
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_swx_ctl.h>
#include <rte_swx_pipeline.h>
#include <rte_swx_port_ethdev.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
/* Instructions that are interpreted between two looks at the clock. */
#define STEPS 10000
#define MAX_ENTRIES (1u << 20)

static void check(int result, const char *what)
{
	if (result && result != -EEXIST) /* some types are there from the start */
		rte_exit(EXIT_FAILURE, "swx: %s: error %d\n", what, result);
}

static void start_port(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf = { 0 };

	if (rte_eth_dev_configure(port, 1, 1, &conf) || rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool) ||
	    rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL) || rte_eth_dev_start(port))
		rte_exit(EXIT_FAILURE, "swx: port %d cannot be started\n", port);
}

static void add_ports(struct rte_swx_pipeline *p, struct rte_mempool *pool)
{
	check(rte_swx_pipeline_port_in_type_register(p, "ethdev", &rte_swx_port_ethdev_reader_ops), "readers");
	check(rte_swx_pipeline_port_out_type_register(p, "ethdev", &rte_swx_port_ethdev_writer_ops), "writers");
	for (uint16_t port = 0; port < 2; port++) {
		static char names[2][RTE_ETH_NAME_MAX_LEN];
		struct rte_swx_port_ethdev_reader_params in = { names[port], 0, 32 };
		struct rte_swx_port_ethdev_writer_params out = { names[port], 0, 32 };

		start_port(port, pool);
		check(rte_eth_dev_get_name_by_port(port, names[port]), "a port's name");
		check(rte_swx_pipeline_port_in_config(p, port, "ethdev", &in), "a port");
		check(rte_swx_pipeline_port_out_config(p, port, "ethdev", &out), "a port");
	}
}

static void add_headers(struct rte_swx_pipeline *p)
{
	struct rte_swx_field_params ethernet[] = { { "dst", 48 }, { "src", 48 }, { "type", 16 } };
	struct rte_swx_field_params ipv4[] = { { "ver_ihl", 8 }, { "tos", 8 }, { "len", 16 }, { "id", 16 }, { "frag", 16 },
		{ "ttl", 8 }, { "proto", 8 }, { "sum", 16 }, { "src", 32 }, { "dst", 32 } };
	struct rte_swx_field_params l4[] = { { "src", 16 }, { "dst", 16 } };
	struct rte_swx_field_params meta[] = { { "port", 32 }, { "src", 32 }, { "dst", 32 }, { "proto", 8 }, { "sport", 16 }, { "dport", 16 } };

	check(rte_swx_pipeline_struct_type_register(p, "ethernet_h", ethernet, COUNT(ethernet), 0), "Ethernet");
	check(rte_swx_pipeline_struct_type_register(p, "ipv4_h", ipv4, COUNT(ipv4), 0), "IPv4");
	check(rte_swx_pipeline_struct_type_register(p, "l4_h", l4, COUNT(l4), 0), "ports");
	check(rte_swx_pipeline_struct_type_register(p, "meta_t", meta, COUNT(meta), 0), "metadata");
	check(rte_swx_pipeline_packet_header_register(p, "ethernet", "ethernet_h"), "Ethernet");
	check(rte_swx_pipeline_packet_header_register(p, "ipv4", "ipv4_h"), "IPv4");
	check(rte_swx_pipeline_packet_header_register(p, "l4", "l4_h"), "ports");
	check(rte_swx_pipeline_packet_metadata_register(p, "meta_t"), "metadata");
}

static void add_program(struct rte_swx_pipeline *p, const char *what)
{
	const char *forward[] = { "mov m.port 1", "return" }, *reject[] = { "drop" };
	const char *actions[] = { "forward", "reject" };
	struct rte_swx_match_field_params mac[] = { { "h.ethernet.dst", RTE_SWX_TABLE_MATCH_EXACT } };
	struct rte_swx_match_field_params tuple[] = { { "m.src", RTE_SWX_TABLE_MATCH_WILDCARD }, { "m.dst", RTE_SWX_TABLE_MATCH_WILDCARD },
		{ "m.proto", RTE_SWX_TABLE_MATCH_WILDCARD }, { "m.sport", RTE_SWX_TABLE_MATCH_WILDCARD },
		{ "m.dport", RTE_SWX_TABLE_MATCH_WILDCARD } };
	struct rte_swx_pipeline_table_params table = { .action_names = actions, .n_actions = 2, .default_action_name = "reject" };
	const char *wire[] = { "rx m.port", "xor m.port 1", "tx m.port" };
	const char *l2[] = { "rx m.port", "extract h.ethernet", "table t", "emit h.ethernet", "tx m.port" };
	const char *acl[] = { "rx m.port", "extract h.ethernet", "extract h.ipv4", "extract h.l4", "mov m.src h.ipv4.src",
		"mov m.dst h.ipv4.dst", "mov m.proto h.ipv4.proto", "mov m.sport h.l4.src", "mov m.dport h.l4.dst", "table t",
		"emit h.ethernet", "emit h.ipv4", "emit h.l4", "tx m.port" };
	int is_l2 = !strcmp(what, "l2");

	if (!strcmp(what, "wire")) {
		check(rte_swx_pipeline_instructions_config(p, wire, COUNT(wire)), "instructions");
		return;
	}
	check(rte_swx_pipeline_action_config(p, "forward", NULL, forward, COUNT(forward)), "an action");
	check(rte_swx_pipeline_action_config(p, "reject", NULL, reject, COUNT(reject)), "an action");
	table.fields = is_l2 ? mac : tuple;
	table.n_fields = is_l2 ? COUNT(mac) : COUNT(tuple);
	check(rte_swx_pipeline_table_config(p, "t", &table, NULL, NULL, MAX_ENTRIES), "a table");
	check(rte_swx_pipeline_instructions_config(p, is_l2 ? l2 : acl, is_l2 ? COUNT(l2) : COUNT(acl)), "instructions");
}

static void add_entries(struct rte_swx_pipeline *p, const char *path)
{
	struct rte_swx_ctl_pipeline *ctl = rte_swx_ctl_pipeline_create(p);
	FILE *file = fopen(path, "r");
	char line[512];

	if (!ctl || !file)
		rte_exit(EXIT_FAILURE, "swx: %s cannot be read\n", path);
	while (fgets(line, sizeof(line), file)) {
		int blank = 0;
		struct rte_swx_table_entry *entry = rte_swx_ctl_pipeline_table_entry_read(ctl, "t", line, &blank);

		if (!entry && blank)
			continue;
		if (!entry || rte_swx_ctl_pipeline_table_entry_add(ctl, "t", entry))
			rte_exit(EXIT_FAILURE, "swx: an entry cannot be read: %s", line);
		free(entry->key), free(entry->key_mask), free(entry->action_data), free(entry);
	}
	fclose(file);
	check(rte_swx_ctl_pipeline_commit(ctl, 1), "the entries");
}

/* Packets of both ports: received, sent. */
static void count(struct rte_swx_pipeline *p, uint64_t *received, uint64_t *sent)
{
	*received = *sent = 0;
	for (uint32_t port = 0; port < 2; port++) {
		struct rte_swx_port_in_stats in;
		struct rte_swx_port_out_stats out;

		check(rte_swx_ctl_pipeline_port_in_stats_read(p, port, &in), "counters");
		check(rte_swx_ctl_pipeline_port_out_stats_read(p, port, &out), "counters");
		*received += in.n_pkts, *sent += out.n_pkts;
	}
}

int main(int argc, char **argv)
{
	int skip = rte_eal_init(argc, argv);
	struct rte_swx_pipeline *p = NULL;

	if (skip < 0 || argc - skip != 5)
		rte_exit(EXIT_FAILURE, "usage: swx EAL-ARGUMENTS -- wire|l2|acl ENTRIES WARM_SECONDS SECONDS\n");
	argv += skip;
	struct rte_mempool *pool = rte_pktmbuf_pool_create("swx", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	if (!pool)
		rte_exit(EXIT_FAILURE, "swx: not enough memory\n");
	check(rte_swx_pipeline_config(&p, "bench", 0), "a pipeline");
	add_ports(p, pool);
	add_headers(p);
	add_program(p, argv[1]);
	check(rte_swx_pipeline_build(p), "the pipeline");
	if (strcmp(argv[1], "wire"))
		add_entries(p, argv[2]);

	const uint64_t hz = rte_get_tsc_hz();
	uint64_t start = rte_rdtsc() + atof(argv[3]) * hz, end = start + atof(argv[4]) * hz, now = 0;
	uint64_t before[2] = { 0 }, after[2];
	int warm = 0;

	while (now < end) {
		rte_swx_pipeline_run(p, STEPS);
		now = rte_rdtsc();
		if (now >= start && !warm)
			count(p, &before[0], &before[1]), start = now, warm = 1;
	}
	count(p, &after[0], &after[1]);
	printf("{\"received\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"seconds\": %.6f}\n", after[0] - before[0], after[1] - before[1],
	       (double)(now - start) / hz);
	return rte_eal_cleanup();
}
