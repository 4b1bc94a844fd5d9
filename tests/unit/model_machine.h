/*
 * model_machine.h - one machine for the tests of the model: nodes of eight H100, as NCCL
 * finds them.
 */
#ifndef MODEL_MACHINE_H
#define MODEL_MACHINE_H

#include "tune/model.h"

static inline void machine_fill(struct cluster *c, int nodes)
{
	struct graph_info ring = {.pattern = PATTERN_RING,
		.channel_count = nodes > 1 ? 8 : 16,
		.bw_intra = nodes > 1 ? 48 : 20,
		.bw_inter = nodes > 1 ? 48 : 20,
		.type_intra = PATH_NVL,
		.type_inter = PATH_PIX};
	struct graph_info nvls = {.pattern = PATTERN_NVLS,
		.channel_count = 8,
		.bw_intra = 40,
		.bw_inter = 48,
		.type_intra = PATH_NVL,
		.type_inter = PATH_PIX};

	*c = (struct cluster){.rank_count = 8 * nodes,
		.node_count = nodes,
		.local_ranks = 8,
		.min_local_ranks = 8,
		.max_local_ranks = 8,
		.channel_count = 16,
		.coll_channels = 16,
		.nvls_channels = 16,
		.nvls_support = true,
		.p2p_channels = 32,
		.p2p_channels_per_peer = 4,
		.min_sm = 90,
		.max_sm = 90,
		.max_tree_pattern = nodes > 1 ? PATTERN_TREE : PATTERN_BALANCED_TREE,
		.cpu_arch = CPU_ARCH_X86,
		.cpu_vendor = CPU_INTEL,
		.nvs_count = 1};
	c->info[ALGO_RING] = c->info[ALGO_TREE] = c->info[ALGO_PAT] = ring;
	c->info[ALGO_TREE].pattern = PATTERN_TREE;
	c->info[ALGO_NVLS] = c->info[ALGO_NVLS_TREE] = nvls;
}

#endif
