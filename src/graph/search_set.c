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
	graph->cross_nic = pattern == PATTERN_RING || pattern == PATTERN_BALANCED_TREE
				   ? topo->rules.cross_nic
				   : 0;
	graph->min_channels = bounds[0];
	graph->max_channels = bounds[1];
	graph->gpu_count = (int)topo->counts[TOPO_GPU];
}

/* Several ranks on one device. */
static bool is_shared(const struct topo_node *dev)
{
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < dev->link_count; i++)
		ranks += dev->links[i].to->kind == TOPO_GPU;
	return ranks > 1;
}

/* Is an NVLS graph asked for? It needs two GPUs, and no rank beside another on one of
 * them; what else it needs the search finds out, and a graph without channels then tells
 * how far that came. */
static bool asks_nvls(const struct topo *topo, const struct search_options *options)
{
	for (uint32_t d = 0; d < topo->counts[TOPO_DEV]; d++)
		if (is_shared(topo->nodes[TOPO_DEV][d]))
			return false;
	return topo->counts[TOPO_GPU] >= 2 && !options->no_multicast;
}

static bool has_coll(const struct topo *topo)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		if (topo->nodes[TOPO_NET][i]->net.coll)
			return true;
	return false;
}

static void set_coll(struct topo *topo, bool can)
{
	for (uint32_t i = 0; i < topo->counts[TOPO_NET]; i++)
		topo->nodes[TOPO_NET][i]->net.coll = can;
}

static enum err search_collnet(
	struct topo *topo, const struct search_options *options, struct graph_set *set)
{
	enum err err = graph_search(topo, options, &set->graphs[GRAPH_COLLNET_CHAIN]);

	return err ? err
		   : graph_search(topo, options, &set->graphs[GRAPH_COLLNET_DIRECT]);
}

/* Where no NET does collectives, CollNet graphs are still told, as what they would be if
 * all did; last, so that the others do not depend on it. */
static enum err suppose_collnet(
	struct topo *topo, const struct search_options *options, struct graph_set *set)
{
	enum err err;

	set_coll(topo, true);
	err = search_collnet(topo, options, set);
	set_coll(topo, false);
	return err;
}

enum err graph_set_search(
	struct topo *topo, const struct search_options *options, struct graph_set *set)
{
	int any[2] = {1, GRAPH_CHANNELS_MAX}, same[2] = {1, GRAPH_CHANNELS_MAX / 2};
	bool is_collnet = has_coll(topo);
	enum err err;

	memset(set, 0, sizeof(*set));
	ask(topo, set, GRAPH_RING, PATTERN_RING, same);
	err = graph_search(topo, options, &set->graphs[GRAPH_RING]);
	if (err)
		return err;
	same[0] = same[1] = set->graphs[GRAPH_RING].channel_count;
	ask(topo, set, GRAPH_TREE, PATTERN_BALANCED_TREE, same);
	ask(topo, set, GRAPH_COLLNET_CHAIN, PATTERN_TREE, same);
	ask(topo, set, GRAPH_COLLNET_DIRECT, PATTERN_COLLNET_DIRECT, any);
	ask(topo, set, GRAPH_NVLS, PATTERN_NVLS, any);
	err = graph_search(topo, options, &set->graphs[GRAPH_TREE]);
	if (!err && topo->is_inter && is_collnet)
		err = search_collnet(topo, options, set);
	if (!err && asks_nvls(topo, options))
		err = graph_search(topo, options, &set->graphs[GRAPH_NVLS]);
	if (!err && topo->is_inter && !is_collnet)
		err = suppose_collnet(topo, options, set);
	return err;
}
