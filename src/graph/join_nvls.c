/*
 * join_nvls.c - NVLink SHARP: which GPUs of each node head a multicast group, and the
 * trees that join the heads of the same number across nodes.
 */
#include "graph/join.h"

#include <string.h>

enum {
	CHANNELS_SM90 = 16,
	CHANNELS_SM100 = 32,
	CHANNELS_SM100_ALONE = 24, /* one domain */
	KIB = 1024,
};

struct nvls_tuning {
	int channels, chunk, tree_chunk;
};

/* Two nodes of Blackwell with fast NICs. */
static void tune_pair(int per_node, bool is_near, float bw, struct nvls_tuning *tuning)
{
	tuning->channels = 32;
	tuning->tree_chunk = 128 * KIB;
	if (per_node <= 4)
		tuning->chunk = tuning->tree_chunk = 256 * KIB;
	else if (per_node >= 16 || (per_node <= 8 && is_near && bw < 96.0f))
		tuning->tree_chunk = 64 * KIB;
}

/* Measured by NVIDIA on Blackwell over several nodes; slow NICs keep the defaults. */
static void tune_sm100(const struct cluster *cluster, struct nvls_tuning *tuning)
{
	int per_node = cluster->min_local_ranks;
	float bw = cluster->min_net_bw;
	bool is_near = cluster->info[ALGO_NVLS].type_inter <= PATH_PXB;

	tuning->chunk = 128 * KIB;
	if (cluster->node_count == 2 && bw >= 48.0f) {
		tune_pair(per_node, is_near, bw, tuning);
	} else if (bw >= 96.0f && per_node <= 8) {
		tuning->channels = 24;
		tuning->chunk = tuning->tree_chunk = 256 * KIB;
	} else if (bw >= 96.0f) {
		tuning->channels = 32;
		tuning->tree_chunk = per_node < 32 ? 128 * KIB : 64 * KIB;
	} else if (bw >= 48.0f) {
		tuning->channels = 24;
		tuning->tree_chunk = is_near ? 64 * KIB : 128 * KIB;
	}
}

void join_nvls_tune(struct join *join)
{
	struct cluster *cluster = join->cluster;
	const struct channel_rules *rules = &join->args->channels;
	struct nvls_tuning tuning = {.channels = CHANNELS_SM90, .chunk = 128 * KIB};
	int sm = join_facts(join, 0)->first_sm;

	if (!cluster->nvls_support)
		return;
	if (sm >= 100)
		tuning.channels = cluster->node_count > 1 ? CHANNELS_SM100
							  : CHANNELS_SM100_ALONE;
	if (cluster->min_sm >= 100 && cluster->node_count > 1)
		tune_sm100(cluster, &tuning);
	if (rules->nvls_channels)
		tuning.channels = (int)rules->nvls_channels;
	if (rules->nvls_chunk)
		tuning.chunk = (int)rules->nvls_chunk;
	if (rules->nvls_tree_chunk)
		tuning.tree_chunk = (int)rules->nvls_tree_chunk;
	if (!tuning.tree_chunk)
		tuning.tree_chunk = cluster->node_count >= 4 ? 64 * KIB : tuning.chunk;
	if (tuning.channels > join->max_ctas)
		tuning.channels = join->max_ctas;
	if (tuning.channels < join->min_ctas)
		tuning.channels = join->min_ctas;
	cluster->nvls_channels = tuning.channels;
	cluster->nvls_chunk_bytes = tuning.chunk;
	cluster->nvls_tree_chunk_bytes = tuning.tree_chunk;
}

static int head_rank(const struct join *join, int node, int head)
{
	return join->cluster->nodes[node].base + join_facts(join, node)->heads[head];
}

static void join_heads(const struct join *join, int node)
{
	struct cluster *cluster = join->cluster;
	struct binary_tree trees[2];

	binary_tree(node, cluster->node_count, trees);
	for (int h = 0; h < join->head_count; h++) {
		int rank = head_rank(join, node, h);
		cluster->nvls_head_rank[rank] = h;
		for (int t = 0; t < 2 && cluster->node_count > 1; t++) {
			int children = 0;
			if (trees[t].up >= 0)
				cluster->nvls_tree[t].up[rank] = head_rank(
					join, trees[t].up, h);
			for (int d = 0; d < 2; d++)
				if (trees[t].down[d] >= 0)
					cluster->nvls_tree[t].down[rank][children++] =
						head_rank(join, trees[t].down[d], h);
		}
	}
}

void join_nvls(struct join *join)
{
	struct cluster *cluster = join->cluster;
	size_t ranks = (size_t)cluster->rank_count;

	memset(cluster->nvls_head_rank, -1, ranks * sizeof(int));
	for (int t = 0; t < 2; t++) {
		memset(cluster->nvls_tree[t].up, -1, ranks * sizeof(int));
		memset(cluster->nvls_tree[t].down, -1, ranks * sizeof(int[3]));
	}
	if (!cluster->nvls_support)
		return;
	join->head_count = GRAPH_CHANNELS_MAX;
	for (int n = 0; n < cluster->node_count; n++)
		if (join_facts(join, n)->head_count < join->head_count)
			join->head_count = join_facts(join, n)->head_count;
	cluster->nvls_head_count = join->head_count;
	if (!join->head_count)
		cluster->nvls_channels = 0;
	for (int n = 0; n < cluster->node_count; n++)
		join_heads(join, n);
}
