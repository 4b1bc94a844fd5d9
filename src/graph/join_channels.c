/*
 * join_channels.c - rings and trees over all ranks, channel by channel.
 *
 * A ring leaves a node at the last GPU of the graph and enters the next at its first. A
 * tree over nodes hangs on the chains inside them: the chain's first GPU talks to the
 * parent, and the graph's pattern says which GPU talks to which child.
 */
#include "graph/join.h"

#include <string.h>

static const struct graph *node_graph(
	const struct cluster *cluster, int node, enum graph_id id)
{
	return &cluster->nodes[node].domain->set.graphs[id];
}

/* The way through a node on a channel, in ranks of its machine. Graphs that cross NICs
 * come in pairs; every other node takes the twin, so that traffic stays on its rail. */
static const int *ring_way(const struct join *join, int node, int channel)
{
	const struct graph *graph = node_graph(join->cluster, node, GRAPH_RING);
	bool is_twin = graph->cross_nic == 2 && join->graph_channels % 2 == 0 &&
		       node % 2 == 1;

	return graph->intra[is_twin ? channel ^ 1 : channel];
}

static void join_ring(const struct join *join, int source, struct channel *channel)
{
	const struct cluster *cluster = join->cluster;
	int nodes = cluster->node_count;

	for (int n = 0; n < nodes; n++) {
		const struct cluster_node *node = &cluster->nodes[n];
		const struct cluster_node *after = &cluster->nodes[(n + 1) % nodes];
		const int *way = ring_way(join, n, source);
		uint32_t last = node->domain->rank_count - 1;
		int leave = node->base + way[last];
		int enter = after->base + ring_way(join, (n + 1) % nodes, source)[0];

		for (uint32_t i = 0; i < last; i++) {
			channel->ring_next[node->base + way[i]] = node->base + way[i + 1];
			channel->ring_prev[node->base + way[i + 1]] = node->base + way[i];
		}
		channel->ring_next[leave] = enter;
		channel->ring_prev[enter] = leave;
	}
}

static enum err order_ring(const struct cluster *cluster, struct channel *channel)
{
	int rank = 0;

	for (int i = 0; i < cluster->rank_count; i++) {
		channel->ring_order[i] = rank;
		rank = channel->ring_next[rank];
		if (rank == 0 && i + 1 < cluster->rank_count)
			return err_set(ERR_INTERNAL, "a ring closes after %d of %d ranks",
				i + 1, cluster->rank_count);
	}
	return OK;
}

/* Which rank of a node talks to the parent (0), the first (1) or second child (2). */
static int tree_port(const struct cluster *cluster, int node, int channel, int port)
{
	const struct graph *graph = node_graph(cluster, node, GRAPH_TREE);
	const struct cluster_node *place = &cluster->nodes[node];
	uint32_t index = 0;

	if (port == 1)
		index = graph->pattern == PATTERN_TREE ? 0 : 1;
	if (port == 2)
		index = graph->pattern == PATTERN_SPLIT_TREE ? 1 : 0;
	if (index >= place->domain->rank_count)
		index = 0;
	return place->base + graph->intra[channel][index];
}

static void add_child(struct channel *channel, int rank, int child)
{
	for (int i = 0; i < 3; i++) {
		if (channel->tree_down[rank][i] < 0) {
			channel->tree_down[rank][i] = child;
			return;
		}
	}
}

static void join_chain(const struct cluster_node *node, int source,
	const struct graph *graph, struct channel *channel)
{
	const int *way = graph->intra[source];

	for (uint32_t i = 0; i + 1 < node->domain->rank_count; i++) {
		int above = node->base + way[i], below = node->base + way[i + 1];
		channel->tree_up[below] = above;
		channel->tree_down[above][0] = below;
	}
}

static void join_tree(const struct cluster *cluster, struct channel_source source,
	struct channel *channel)
{
	int from = source.graph_channel;

	for (int n = 0; n < cluster->node_count; n++) {
		struct binary_tree both[2], *tree = &both[source.tree];
		int top = tree_port(cluster, n, from, 0);

		join_chain(&cluster->nodes[n], from, node_graph(cluster, n, GRAPH_TREE),
			channel);
		binary_tree(n, cluster->node_count, both);
		if (tree->up >= 0)
			channel->tree_up[top] = tree_port(
				cluster, tree->up, from, tree->child_type == 0 ? 1 : 2);
		for (int d = 0; d < 2; d++)
			if (tree->down[d] >= 0)
				add_child(channel, tree_port(cluster, n, from, d + 1),
					tree_port(cluster, tree->down[d], from, 0));
	}
}

enum err join_channels(struct join *join)
{
	const struct cluster *cluster = join->cluster;
	size_t ranks = (size_t)cluster->rank_count;

	for (int c = 0; c < cluster->channel_count; c++) {
		struct channel *channel = &cluster->channels[c];
		enum err e;

		join_ring(join, join->sources[c].graph_channel, channel);
		e = order_ring(cluster, channel);
		if (e)
			return e;
		memset(channel->tree_up, -1, ranks * sizeof(*channel->tree_up));
		memset(channel->tree_down, -1, ranks * sizeof(*channel->tree_down));
		join_tree(cluster, join->sources[c], channel);
	}
	return OK;
}
