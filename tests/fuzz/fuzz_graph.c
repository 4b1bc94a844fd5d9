/* A graph file that is taken fits the topology, and comes back after it was written. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/graph.h"

enum { GPUS = 4, NETS = 2 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* Four GPUs on two hosts and two NICs. */
static void make_topo(struct topo *topo, struct topo_node *nodes, bool is_inter)
{
	memset(topo, 0, sizeof(*topo));
	memset(nodes, 0, (GPUS + NETS) * sizeof(*nodes));
	for (int i = 0; i < GPUS + NETS; i++) {
		bool is_gpu = i < GPUS;
		enum topo_kind kind = is_gpu ? TOPO_GPU : TOPO_NET;
		int index = is_gpu ? i : i - GPUS;

		nodes[i].kind = kind;
		nodes[i].id = is_gpu ? (uint64_t)(i & 1) << 56 | 0x14000u * (unsigned)i
				     : (uint64_t)index;
		if (is_gpu) {
			nodes[i].gpu.dev = i >> 1;
			nodes[i].gpu.rank = GPUS - 1 - i;
		}
		topo->nodes[kind][index] = &nodes[i];
	}
	topo->counts[TOPO_GPU] = GPUS;
	topo->counts[TOPO_NET] = is_inter ? NETS : 0;
	topo->is_inter = is_inter;
	topo->rules.cross_nic = 2;
}

static void check_graph(const struct topo *topo, const struct graph *graph)
{
	int gpu_count = graph->id == GRAPH_NVLS ? 1 : GPUS;

	assert(graph->channel_count >= 1 && graph->channel_count <= GRAPH_CHANNELS_MAX);
	for (int c = 0; c < graph->channel_count; c++) {
		unsigned seen = 0;

		for (int g = 0; g < gpu_count; g++) {
			int rank = graph->intra[c][g];

			assert(rank >= 0 && rank < GPUS && !(seen >> rank & 1));
			seen |= 1u << rank;
		}
		for (int n = 0; n < 2 && topo->is_inter; n++)
			assert(topo_net_of_id(topo, graph->inter[c][n]) >= 0);
	}
}

static void write_again(const struct topo *topo, const struct graph_set *set)
{
	static struct graph_set again;
	static char path[64];
	bool has[GRAPH_COUNT];

	if (!path[0])
		snprintf(path, sizeof(path), "/dev/shm/fuzz_graph.%d", getpid());
	assert(!graph_file_write(path, topo, set));
	assert(!graph_file_read(path, topo, &again, has));
	for (int id = 0; id < GRAPH_COUNT; id++) {
		const struct graph *a = &set->graphs[id], *b = &again.graphs[id];

		assert(has[id] == (a->channel_count > 0));
		for (int c = 0; c < a->channel_count; c++)
			assert(a->intra[c][0] == b->intra[c][0]);
	}
	unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct topo topo;
	static struct topo_node nodes[GPUS + NETS];
	static struct graph_set set;
	bool has[GRAPH_COUNT];
	struct xml_node *tree;

	if (xml_parse((const char *)data, bytes, "fuzz", "graphs", &tree))
		return 0;
	/* The input itself says whether there are other domains. */
	make_topo(&topo, nodes, xml_attr(tree, "inter") != NULL);
	memset(&set, 0, sizeof(set));
	for (int id = 0; id < GRAPH_COUNT; id++) {
		set.graphs[id].id = (enum graph_id)id;
		set.graphs[id].pattern = PATTERN_TREE;
	}
	set.graphs[GRAPH_RING].pattern = PATTERN_RING;
	if (!graph_file_parse(tree, &topo, &set, has)) {
		for (int id = 0; id < GRAPH_COUNT; id++)
			if (has[id])
				check_graph(&topo, &set.graphs[id]);
		write_again(&topo, &set);
	}
	xml_free(tree);
	return 0;
}
