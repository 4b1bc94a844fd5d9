/*
 * search_set.c - the five graphs of a domain, one after the other.
 */
#include <string.h>

#include "graph/graph.h"

const char *pattern_name(enum graph_pattern pattern)
{
	static const char *const names[] = {
		[PATTERN_BALANCED_TREE] = "BALANCED_TREE",
		[PATTERN_SPLIT_TREE] = "SPLIT_TREE",
		[PATTERN_TREE] = "TREE",
		[PATTERN_RING] = "RING",
		[PATTERN_NVLS] = "NVLS",
		[PATTERN_COLLNET_DIRECT] = "COLLNET_DIRECT",
	};
	size_t index = (size_t)pattern;

	return index && index < sizeof(names) / sizeof(names[0]) ? names[index]
								 : "UNKNOWN";
}

static void ask(const struct topo *topo, struct graph_set *set, enum graph_id id,
	enum graph_pattern pattern, int bounds[2])
{
	struct graph *graph = &set->graphs[id];

	graph->id = id;
	graph->pattern = pattern;
	graph->collnet = id == GRAPH_COLLNET_CHAIN || id == GRAPH_COLLNET_DIRECT;
	graph->cross_nic =
		pattern == PATTERN_RING || pattern == PATTERN_BALANCED_TREE
			? topo->rules.cross_nic
			: 0;
	graph->min_channels = bounds[0];
	graph->max_channels = bounds[1];
	graph->gpu_count = (int)topo->counts[TOPO_GPU];
}

/* Multicast needs an NVSwitch, GPUs of sm 90, at least two, and a rank on each. */
static bool can_nvls(const struct topo *topo)
{
	uint32_t count = topo->counts[TOPO_GPU];

	for (uint32_t g = 0; g < count; g++)
		if (topo_gpu_at(topo, g)->gpu.sm < 90)
			return false;
	return topo->counts[TOPO_NVS] && count >= 2 && count == topo->counts[TOPO_DEV];
}

/* CollNet graphs are told even where no plugin does collectives, as what they would be:
 * every NET is taken to be able while they are searched. */
static enum err search_collnet(
	struct topo *topo, const struct search_options *options, struct graph_set *set)
{
	bool coll[TOPO_NODES_MAX];
	enum err err;

	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++) {
		coll[i] = topo->nodes[TOPO_NET][i]->net.coll;
		topo->nodes[TOPO_NET][i]->net.coll = true;
	}
	err = graph_search(topo, options, &set->graphs[GRAPH_COLLNET_CHAIN]);
	if (!err)
		err = graph_search(topo, options, &set->graphs[GRAPH_COLLNET_DIRECT]);
	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		topo->nodes[TOPO_NET][i]->net.coll = coll[i];
	return err;
}

enum err graph_set_search(
	struct topo *topo, const struct search_options *options, struct graph_set *set)
{
	int ring[2] = {1, GRAPH_CHANNELS_MAX / 2}, any[2] = {1, GRAPH_CHANNELS_MAX};
	int same[2];
	enum err err;

	memset(set, 0, sizeof(*set));
	if (options->max_channels > 0 && options->max_channels < ring[1])
		ring[1] = options->max_channels;
	if (options->min_channels > 0)
		ring[0] = options->min_channels < ring[1] ? options->min_channels
							  : ring[1];
	ask(topo, set, GRAPH_RING, PATTERN_RING, ring);
	err = graph_search(topo, options, &set->graphs[GRAPH_RING]);
	if (err)
		return err;
	same[0] = same[1] = set->graphs[GRAPH_RING].channel_count;
	ask(topo, set, GRAPH_TREE, PATTERN_BALANCED_TREE, same);
	ask(topo, set, GRAPH_COLLNET_CHAIN, PATTERN_TREE, same);
	ask(topo, set, GRAPH_COLLNET_DIRECT, PATTERN_COLLNET_DIRECT, any);
	ask(topo, set, GRAPH_NVLS, PATTERN_NVLS, any);
	err = graph_search(topo, options, &set->graphs[GRAPH_TREE]);
	if (!err && topo->is_inter)
		err = search_collnet(topo, options, set);
	if (!err && can_nvls(topo))
		err = graph_search(topo, options, &set->graphs[GRAPH_NVLS]);
	return err;
}
